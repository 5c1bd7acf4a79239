use super::*;
use crate::tar::{Entry, Writer};

/// The results for an archive and a directory with these files, which must agree. A trailing `/` marks a directory.
fn check(files: &[&str]) -> Option<(String, bool)> {
    let directory = tempfile::tempdir().expect("a directory");
    let (tree, packed) = (directory.path().join("tree"), directory.path().join("r.tar"));
    let mut archive = Writer::new(File::create(&packed).expect("a file"));
    fs::create_dir(&tree).expect("a directory");
    for file in files {
        let kind = if file.ends_with('/') { Is::Directory } else { Is::File };
        archive.entry(&Entry::new(kind, file.as_bytes())).expect("an entry");
        let path = tree.join(file);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        if kind == Is::Directory {
            fs::create_dir_all(path).expect("a directory");
        } else {
            fs::write(path, "").expect("a file");
        }
    }
    archive.finish().expect("an end");
    let of_archive = TopDirectory::of_archive(&packed, &AtomicBool::new(false)).expect("an archive");
    assert_eq!(of_archive, TopDirectory::of_directory(&tree), "{files:?}");
    of_archive.map(|top| (top.name, top.is_root))
}

#[test]
fn a_single_directory_may_hold_a_root() {
    let (root, other) = (Some(("rootfs".to_owned(), true)), Some(("rootfs".to_owned(), false)));
    assert_eq!(check(&["rootfs/", "rootfs/bin/", "rootfs/bin/bash"]), root);
    assert_eq!(check(&["./rootfs/", "./rootfs/usr/bin/env", "./rootfs/etc/passwd"]), root);
    assert_eq!(check(&["rootfs/bin/busybox"]), root);
    // An application, and a Python environment.
    assert_eq!(check(&["rootfs/bin/serve", "rootfs/etc/serve.conf"]), other);
    assert_eq!(check(&["rootfs/bin/python", "rootfs/lib/python3.12/site.py", "rootfs/pyvenv.cfg"]), other);
}

#[test]
fn a_root_itself_has_none() {
    for files in [
        &["bin/", "bin/sh", "etc/passwd"][..],
        &["usr/", "usr/bin/bash", "usr/etc/passwd"],
        &["rootfs/bin/sh", "other"],
        &["rootfs"],
        &[],
    ] {
        assert_eq!(check(files), None, "{files:?}");
    }
}

#[test]
fn an_archive_that_is_damaged_has_an_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("r.tar");
    fs::write(&path, [b'x'; 700]).expect("a file");
    assert!(TopDirectory::of_archive(&path, &AtomicBool::new(false)).is_err());
    assert_eq!(TopDirectory::of(&path), None);
}
