use std::fs::{self, File};
use std::os::unix::fs::symlink;

use super::*;

const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:100:Ann:/home/ann:/bin/sh\nbob:x:1001:1001::relative:\n\
                      1000:x:77:78::/home/number:\nshort:x:5:5\n:x:6:6::/:\nbad:x:-1:0::/:\nlast:x:4294967295:0::/:\n";
const GROUP: &str = "root:x:0:\nusers:x:100:bob\nvideo:x:44:ann,bob\naudio:x:29:ann\nannex:x:30:annette\nagain:x:44:ann\nbare:x:31\n";

/// A root with a /etc/passwd and a /etc/group.
fn root() -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a directory");
    fs::create_dir(root.path().join("etc")).expect("a directory");
    fs::write(root.path().join("etc/passwd"), PASSWD).expect("a file");
    fs::write(root.path().join("etc/group"), GROUP).expect("a file");
    root
}

fn check(root: &tempfile::TempDir, text: &str) -> String {
    let root = Layers::open(&[root.path().to_owned()]).expect("the root");
    let output = match lookup(&root, text) {
        Ok(Account { uid, gid, additional }) => format!("{:?}", (uid, gid, additional)),
        Err(error) => error.to_string(),
    };
    format!("{text}: {output}\n")
}

#[test]
fn users_are_found_by_name_and_by_id() {
    let root = root();
    let cases = [
        "root",
        "0",
        "ann",
        "bob",
        "1000",
        "1001",
        "2000",
        "ann:video",
        "ann:44",
        "2000:3000",
        "2000:video",
        "bob:nobody",
        "nobody",
        "short",
        "bare:bare",
        "bob:bare",
        "",
        ":",
        "ann:",
        ":video",
        "-1",
        "+5",
        "4294967295",
        "last",
        "ann:4294967295",
        "a:b:c",
    ];
    insta::assert_snapshot!(cases.map(|text| check(&root, text)).concat());
    let empty = tempfile::tempdir().expect("a directory");
    insta::assert_snapshot!(["root", "0", "5:6", "5:x"].map(|text| check(&empty, text)).concat());
}

#[test]
fn home_directories_are_found() {
    let root = root();
    let home = |uid| home(&[root.path().to_owned()], uid).into_string().expect("text");
    assert_eq!([0, 1000, 1001, 77, 5, 4242].map(home), ["/root", "/home/ann", "/", "/home/number", "/", "/"]);
    assert_eq!(super::home(&["/nowhere".into()], 0).as_c_str(), c"/");
}

#[test]
fn what_is_read_stays_inside_the_root_and_is_a_file() {
    let outside = tempfile::tempdir().expect("a directory");
    fs::write(outside.path().join("passwd"), "evil:x:666:666::/:\n").expect("a file");
    let passwd = |make: &dyn Fn(&std::path::Path)| {
        let root = root();
        let path = root.path().join("etc/passwd");
        fs::remove_file(&path).expect("gone");
        make(&path);
        check(&root, "evil")
    };
    let absent = "evil: no user `evil` in the container's /etc/passwd\n";
    assert_eq!(passwd(&|path| symlink(outside.path().join("passwd"), path).expect("a link")), absent);
    let up = format!("../../../../../../../..{}/passwd", outside.path().display());
    assert_eq!(passwd(&|path| symlink(&up, path).expect("a link")), absent);
    let other = |path: &std::path::Path| {
        fs::write(path.with_file_name("other"), "evil:x:7:8::/:\n").expect("a file");
        symlink("/etc/other", path).expect("a link");
    };
    assert_eq!(passwd(&other), "evil: (7, 8, [8])\n", "a link inside is followed");
    let not_a_file = "evil: cannot read the container's /etc/passwd: it is not a regular file\n";
    assert_eq!(passwd(&|path| fs::create_dir(path).expect("a directory")), not_a_file);
    let fifo = |path: &std::path::Path| {
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
            .expect("a fifo");
    };
    assert_eq!(passwd(&fifo), not_a_file, "and does not block");
    let large =
        |path: &std::path::Path| File::create(path).expect("a file").set_len(9 << 20).expect("a hole");
    assert_eq!(passwd(&large), "evil: cannot read the container's /etc/passwd: it is larger than 8 MiB\n");
    let chain = |path: &std::path::Path| symlink("/proc/self/root/etc/passwd", path).expect("a link");
    assert_eq!(passwd(&chain), absent, "no /proc there");
}
