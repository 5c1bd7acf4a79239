use std::os::unix::fs::PermissionsExt as _;

use super::*;

#[test]
fn closed_directories_and_those_that_are_gone() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("root");
    fs::create_dir_all(path.join("closed/in")).expect("directories");
    fs::write(path.join("closed/in/file"), "").expect("a file");
    for closed in ["closed/in", "closed"] {
        fs::set_permissions(path.join(closed), fs::Permissions::from_mode(0o100)).expect("closed");
    }
    remove(&path).expect("removed");
    assert!(!path.exists());
    remove(&path).expect("gone already");
}

#[test]
fn a_link_is_not_followed() {
    let directory = tempfile::tempdir().expect("a directory");
    let (root, outside) = (directory.path().join("root"), directory.path().join("outside"));
    fs::create_dir_all(&outside).expect("a directory");
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o500)).expect("closed");
    fs::create_dir(&root).expect("a directory");
    std::os::unix::fs::symlink(&outside, root.join("link")).expect("a link");
    grant_owner_access(&root).expect("opened");
    let mode = fs::metadata(&outside).expect("data").permissions().mode() & 0o777;
    assert_eq!(mode, 0o500, "what is outside keeps its bits");
    remove(&root).expect("removed");
    assert!(outside.exists());
}

#[test]
fn directories_deeper_than_there_are_file_descriptors() {
    let dir = tempfile::tempdir().expect("a directory");
    let top = dir.path().join("top");
    fs::create_dir(&top).expect("a directory");
    let mut at = rustix::fs::openat(CWD, &top, DIRECTORY_FLAGS, Mode::empty()).expect("open");
    for _ in 0..30_000 {
        rustix::fs::mkdirat(&at, c"d", Mode::RWXU).expect("a directory");
        at = rustix::fs::openat(&at, c"d", DIRECTORY_FLAGS, Mode::empty()).expect("open");
    }
    drop(at);
    fs::write(top.join(".moved-up-1"), "a name that is taken").expect("a file");
    fs::create_dir(top.join(".moved-up-2")).expect("a directory");
    remove(&top).expect("removed");
    assert!(!top.exists());
}
