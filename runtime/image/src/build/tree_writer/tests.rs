use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use insta::assert_snapshot;

use super::*;
use crate::build::overlay::mount_layers;
use crate::build::source_listing::find;
use jobc_dockerfile::ignore::Ignore;

/// Creates files in a directory: `name=content`, `name/`, `name -> link`; bits before a blank.
fn make(directory: &Path, files: &[&str]) {
    for file in files {
        let (mode, file) = file.split_once(' ').filter(|(mode, _)| mode.len() == 4).unwrap_or(("", file));
        let name = file.split([' ', '=']).next().unwrap();
        let path = directory.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        if let Some((_, link)) = file.split_once(" -> ") {
            std::os::unix::fs::symlink(link, &path).unwrap();
        } else if let Some((_, content)) = file.split_once('=') {
            std::fs::write(&path, content).unwrap();
        } else {
            std::fs::create_dir_all(&path).unwrap();
        }
        if !mode.is_empty() {
            let mode = u32::from_str_radix(mode, 8).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
    }
}

fn list(directory: &Path, below: &Path, output: &mut String) {
    let mut names: Vec<_> = std::fs::read_dir(directory.join(below)).unwrap().flatten().collect();
    names.sort_by_key(std::fs::DirEntry::file_name);
    for name in names {
        let path = below.join(name.file_name());
        let status = std::fs::symlink_metadata(directory.join(&path)).unwrap();
        let (mode, shown) = (status.mode() & 0o7777, path.display());
        if status.is_dir() {
            *output += &format!("{mode:04o} {shown}/\n");
            list(directory, &path, output);
        } else if status.is_symlink() {
            *output +=
                &format!("{shown} -> {}\n", std::fs::read_link(directory.join(&path)).unwrap().display());
        } else {
            *output +=
                &format!("{mode:04o} {shown}={}\n", std::fs::read_to_string(directory.join(&path)).unwrap());
        }
    }
}

/// The tree of an image after sources of a context were copied to a target.
fn check(context: &[&str], image: &[&str], sources: &[&str], target: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let (from, onto) = (directory.path().join("context"), directory.path().join("image"));
    make(&from, context);
    std::fs::create_dir(&onto).unwrap();
    make(&onto, image);
    let open = |path: &Path| mount_layers(&[path.to_owned()], None).unwrap();
    let (from, root, stopped) = (open(&from), open(&onto), AtomicBool::new(false));
    let mut place = TreeWriter::new(&root, FileAttributes::default(), &stopped);
    for source in sources {
        for found in find(&from, source, &Ignore::default(), false).unwrap() {
            if let Err(error) = place.copy_source(&from, &found, target) {
                return error.to_string();
            }
        }
    }
    place.finish().unwrap();
    let mut output = String::new();
    list(&onto, Path::new(""), &mut output);
    output
}

#[test]
fn a_file_goes_to_its_target_or_into_a_directory() {
    if !jobc_test_skip::is_root() {
        return;
    }
    assert_snapshot!(check(&["0640 f=1"], &[], &["f"], "/a/b"), @r"
    0755 a/
    0640 a/b=1
    ");
    assert_snapshot!(check(&["0640 f=1"], &[], &["f"], "/a/b/"), @r"
    0755 a/
    0755 a/b/
    0640 a/b/f=1
    ");
    assert_snapshot!(check(&["0640 f=1"], &["0700 a/b/"], &["f"], "/a/b"), @r"
    0755 a/
    0700 a/b/
    0640 a/b/f=1
    ");
    assert_snapshot!(check(&["0640 f=new"], &["0600 b=old"], &["f"], "/b"), @"0640 b=new");
}

#[test]
fn of_a_directory_the_content_is_copied() {
    if !jobc_test_skip::is_root() {
        return;
    }
    assert_snapshot!(check(&["0700 d/", "0640 d/f=1", "0711 d/in/", "0600 d/in/g=2"], &["0750 to/in/", "0600 to/in/h=3"], &["d"], "/to"), @r"
    0755 to/
    0640 to/f=1
    0711 to/in/
    0600 to/in/g=2
    0600 to/in/h=3
    ");
    assert_snapshot!(check(&["0644 d/f=1"], &[], &["d"], "/new/here"), @r"
    0755 new/
    0755 new/here/
    0644 new/here/f=1
    ");
}

#[test]
fn links_of_the_image_are_followed_inside_it() {
    assert_snapshot!(check(&["0644 f=1"], &["real/", "abs -> /real", "up -> ../../../../real"], &["f"], "/abs/"), @r"
    abs -> /real
    0755 real/
    0644 real/f=1
    up -> ../../../../real
    ");
    assert_snapshot!(check(&["0644 f=1"], &["real/", "up -> ../../../../real"], &["f"], "/up/x"), @r"
    0755 real/
    0644 real/x=1
    up -> ../../../../real
    ");
    assert_snapshot!(check(&["0644 lib/x=1"], &["usr/lib/", "lib -> usr/lib"], &["."], "/"), @r"
    lib -> usr/lib
    0755 usr/
    0755 usr/lib/
    0644 usr/lib/x=1
    ");
    // A link that is replaced by a file is removed; its target stays.
    assert_snapshot!(check(&["0644 f=1"], &["0600 etc/shadow=secret", "l -> etc/shadow"], &["f"], "/l"), @r"
    0755 etc/
    0600 etc/shadow=secret
    0644 l=1
    ");
}

#[test]
fn what_dangling_links_name_is_created_inside_the_image() {
    assert_snapshot!(check(&["0644 f=1"], &["l -> /nowhere"], &["f"], "/l/x"), @r"
    l -> /nowhere
    0755 nowhere/
    0644 nowhere/x=1
    ");
    let chain = &["0755 var/", "var/run -> ../../up/run", "up -> a", "a -> /b/c"];
    assert_snapshot!(check(&["0644 f=1"], chain, &["f"], "/var/run/deep/x"), @r"
    a -> /b/c
    0755 b/
    0755 b/c/
    0755 b/c/run/
    0755 b/c/run/deep/
    0644 b/c/run/deep/x=1
    up -> a
    0755 var/
    var/run -> ../../up/run
    ");
    assert_snapshot!(check(&["0644 f=1"], &["one -> two", "two -> one"], &["f"], "/one/x"), @"`/one`: too many levels of symbolic links (ELOOP)");
}

#[test]
fn entries_that_cannot_be_replaced_are_errors() {
    assert_snapshot!(check(&["d/f=1"], &["to/f/g=2"], &["d"], "/to"), @"`/d/f`: the image has a directory of that name");
    assert_snapshot!(check(&["f=1"], &["file=2"], &["f"], "/file/x"), @"`/file`: it is not a directory");
}

#[test]
fn links_bits_times_and_names_are_kept() {
    if !jobc_test_skip::is_root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (from, onto) = (directory.path().join("context"), directory.path().join("image"));
    make(&from, &["4755 d/tool=x", "d/link -> tool", "d/dangling -> /no/where"]);
    std::fs::hard_link(from.join("d/tool"), from.join("d/again")).unwrap();
    let time = std::time::UNIX_EPOCH + std::time::Duration::new(1_000_000_000, 123_456_789);
    std::fs::File::open(from.join("d/tool")).unwrap().set_modified(time).unwrap();
    std::fs::create_dir(&onto).unwrap();
    let open = |path: &Path| mount_layers(&[path.to_owned()], None).unwrap();
    let (context, root, stopped) = (open(&from), open(&onto), AtomicBool::new(false));
    let mut place = TreeWriter::new(&root, FileAttributes::default(), &stopped);
    for found in find(&context, "d", &Ignore::default(), false).unwrap() {
        place.copy_source(&context, &found, "/to").unwrap();
    }
    place.finish().unwrap();
    let status = |name: &str| std::fs::symlink_metadata(onto.join("to").join(name)).unwrap();
    let tool = status("tool");
    assert_eq!((tool.mode() & 0o7777, tool.mtime(), tool.mtime_nsec()), (0o4755, 1_000_000_000, 123_456_789));
    assert_eq!(status("again").ino(), tool.ino());
    assert!(status("dangling").is_symlink());
}
