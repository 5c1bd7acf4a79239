use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::sync::atomic::AtomicBool;

use rustix::fs::{CWD, XattrFlags};

use super::*;
use jobc_container::archive::extract;
use jobc_container::archive::tree::{OPAQUE_ATTRIBUTES, Owners, Tree};
use jobc_container::tar::Reader;

/// A directory with one of everything that an overlay leaves.
fn upper() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: &str| dir.path().join(name);
    fs::create_dir(at("b")).expect("a directory");
    fs::create_dir(at("opaque")).expect("a directory");
    fs::write(at("b/file"), "text").expect("a file");
    fs::hard_link(at("b/file"), at("linked")).expect("a link");
    symlink("t".repeat(120), at("a-link")).expect("a link");
    fs::write(at("opaque/inner"), vec![0; 100_000]).expect("a file");
    rustix::fs::setxattr(at("opaque"), OPAQUE_ATTRIBUTES[1], b"y", XattrFlags::empty())
        .expect("an attribute");
    rustix::fs::setxattr(at("b/file"), c"user.note", b"two\nlines", XattrFlags::empty())
        .expect("an attribute");
    rustix::fs::mknodat(CWD, at("gone"), FileType::CharacterDevice, Mode::empty(), 0).expect("a whiteout");
    rustix::fs::mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RUSR, 0).expect("a pipe");
    dir
}

fn packed(directory: &Path, pack: &PackOptions) -> Vec<u8> {
    let mut archive = Vec::new();
    write(directory, pack, &mut archive).expect("packed");
    archive
}

#[test]
fn an_upper_directory_becomes_a_layer() {
    let dir = upper();
    let archive =
        packed(dir.path(), &PackOptions { latest: Some(1000), root: true, ..PackOptions::default() });
    assert_eq!(
        archive,
        packed(dir.path(), &PackOptions { latest: Some(1000), root: true, ..PackOptions::default() })
    );
    let mut reader = Reader::new(&archive[..]);
    let mut lines = String::new();
    while let Some(entry) = reader.next().expect("an entry") {
        let path = String::from_utf8_lossy(&entry.path);
        let link = entry.link.iter().take(10).copied().map(char::from).collect::<String>();
        assert!(entry.mtime.seconds <= 1000);
        lines += &format!("{:?} {path} {link} {} {}\n", entry.kind, entry.size, entry.attributes.len());
    }
    insta::assert_snapshot!(lines, @r"
    Directory ./  0 0
    Symlink a-link tttttttttt 0 0
    Directory b/  0 0
    File b/file  4 1
    File .wh.gone  0 0
    HardLink linked b/file 0 0
    Directory opaque/  0 0
    File opaque/.wh..wh..opq  0 0
    File opaque/inner  100000 0
    Fifo pipe  0 0
    ");
}

#[test]
fn what_was_packed_is_unpacked_the_same() {
    let dir = upper();
    let archive = packed(dir.path(), &PackOptions { root: true, ..PackOptions::default() });
    let other = tempfile::tempdir().expect("a directory");
    let owners = if rustix::process::geteuid().is_root() { Owners::FromArchive } else { Owners::CurrentUser };
    let mut tree = Tree::layer(other.path(), owners).expect("a tree");
    extract(&mut tree, &archive[..], 99, &AtomicBool::new(false)).expect("filled");
    tree.finish().expect("finished");
    assert_eq!(packed(other.path(), &PackOptions { root: true, ..PackOptions::default() }), archive);
    let data = fs::symlink_metadata(other.path().join("gone")).expect("a whiteout");
    assert_eq!(data.rdev(), 0);
}

#[test]
fn paths_are_left_out_and_names_of_whiteouts_refused() {
    let dir = upper();
    let without = vec![b"opaque".to_vec(), b"b/file".to_vec()];
    let archive = packed(dir.path(), &PackOptions { without, ..PackOptions::default() });
    let mut reader = Reader::new(&archive[..]);
    while let Some(entry) = reader.next().expect("an entry") {
        assert!(!entry.path.starts_with(b"opaque") && entry.path != b"b/file", "{entry:?}");
    }
    fs::write(dir.path().join(".wh.x"), "").expect("a file");
    let error = write(dir.path(), &PackOptions::default(), &mut Vec::new()).expect_err("refused");
    assert!(error.message().contains("`.wh.x`: a layer cannot have a name"), "{error}");
}

/// Holes of a gibibyte take no time and no space; smaller ones are zeros, which every tool can write again.
#[test]
fn only_large_holes_are_holes_in_the_layer() {
    use std::os::unix::fs::FileExt as _;
    let dir = tempfile::tempdir().expect("a directory");
    for (name, size) in [("large", 500 << 30), ("small", 2 << 20)] {
        let file = fs::File::create(dir.path().join(name)).expect("a file");
        file.set_len(size).expect("a size");
        file.write_all_at(b"data", 1 << 20).expect("written");
    }
    let archive = packed(dir.path(), &PackOptions::default());
    assert!(archive.len() < 4 << 20, "{}", archive.len());
    let mut reader = Reader::new(&archive[..]);
    let mut found = Vec::new();
    while let Some(entry) = reader.next().expect("an entry") {
        let data: u64 = entry.sparse.iter().flatten().map(|(_, length)| length).sum();
        found.push((
            String::from_utf8(entry.path.clone()).expect("a name"),
            entry.size,
            entry.sparse.is_some(),
            data < 1 << 17,
        ));
    }
    assert_eq!(
        found,
        [("large".to_owned(), 500 << 30, true, true), ("small".to_owned(), 2 << 20, false, true)]
    );
    let to = tempfile::tempdir().expect("a directory");
    let mut tree = Tree::layer(to.path(), Owners::CurrentUser).expect("a tree");
    extract(&mut tree, &archive[..], 99, &AtomicBool::new(false)).expect("unpacked");
    tree.finish().expect("finished");
    let large = fs::File::open(to.path().join("large")).expect("a file");
    let mut content = [0; 6];
    large.read_exact_at(&mut content, (1 << 20) - 1).expect("read");
    assert_eq!(&content, b"\0data\0");
    let status = large.metadata().expect("a status");
    assert!(status.len() == 500 << 30 && status.blocks() * 512 < 1 << 20, "{status:?}");
}
