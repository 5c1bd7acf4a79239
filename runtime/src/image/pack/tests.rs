use std::os::unix::fs::PermissionsExt as _;

use insta::assert_snapshot;

use super::*;
use crate::tar::Reader;

/// The entries of an archive, a line each.
fn listed(bytes: &[u8]) -> String {
    let mut reader = Reader::new(bytes);
    let mut said = String::new();
    while let Some(entry) = reader.next().expect("an entry") {
        let path = String::from_utf8_lossy(&entry.path).into_owned();
        let link = String::from_utf8_lossy(&entry.link).into_owned();
        said += &format!("{:?} {:04o} {path} {link}", entry.kind, entry.mode).trim_end().to_owned();
        said += "\n";
    }
    said
}

fn packed(folder: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    upper(folder, false, &mut bytes, &AtomicBool::new(false)).expect("packed");
    bytes
}

#[test]
fn an_upper_folder_becomes_a_layer() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(at("etc/empty")).unwrap();
    std::fs::write(at("etc/b"), "b").unwrap();
    std::fs::set_permissions(at("etc/b"), std::fs::Permissions::from_mode(0o4750)).unwrap();
    std::fs::hard_link(at("etc/b"), at("etc/c")).unwrap();
    std::os::unix::fs::symlink("/etc/b", at("a")).unwrap();
    for name in [at("etc"), at("etc/empty")] {
        std::fs::set_permissions(name, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let _listener = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    assert_snapshot!(listed(&packed(folder.path())), @r"
    Symlink 0777 a /etc/b
    Folder 0755 etc/
    File 4750 etc/b
    HardLink 4750 etc/c etc/b
    Folder 0755 etc/empty/
    ");
}

#[test]
fn what_an_overlay_hides_has_marks() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root makes the marks of an overlay");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir(at("d")).unwrap();
    std::fs::set_permissions(at("d"), std::fs::Permissions::from_mode(0o700)).unwrap();
    rustix::fs::setxattr(at("d"), c"trusted.overlay.opaque", b"y", rustix::fs::XattrFlags::empty()).unwrap();
    for name in ["gone", "d/!first"] {
        rustix::fs::mknodat(CWD, at(name), FileType::CharacterDevice, Mode::empty(), 0).unwrap();
    }
    assert_snapshot!(listed(&packed(folder.path())), @r"
    Folder 0700 d/
    File 0000 d/.wh..wh..opq
    File 0000 d/.wh.!first
    File 0000 .wh.gone
    ");
}

#[test]
fn clamped_the_same_files_give_the_same_bytes() {
    let make = || {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("d")).unwrap();
        std::fs::write(folder.path().join("d/new"), "x").unwrap();
        std::fs::write(folder.path().join("old"), "y").unwrap();
        let old = std::time::UNIX_EPOCH + std::time::Duration::from_secs(5);
        File::options().write(true).open(folder.path().join("old")).unwrap().set_modified(old).unwrap();
        folder
    };
    let (one, two) = (make(), make());
    assert_ne!(packed(one.path()), packed(two.path()), "their times differ");
    for folder in [&one, &two] {
        clamp(folder.path(), 1_000_000_000).unwrap();
    }
    assert_eq!(packed(one.path()), packed(two.path()));
    let old = std::fs::metadata(one.path().join("old")).unwrap().modified().unwrap();
    assert_eq!(old.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs(), 5);
}
