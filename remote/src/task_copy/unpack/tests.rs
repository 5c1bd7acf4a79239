use std::io::Seek as _;

use jobc_container::tar::Writer;

use super::*;

/// An entry: its path, kind, target of a link or content, and mode.
type Part<'a> = (&'a str, tar::Kind, &'a str, u32);

/// An archive as a task may make it: with any path and link.
fn archive(parts: &[Part<'_>]) -> File {
    let mut archive = Writer::new(tempfile::tempfile().unwrap());
    for (path, kind, text, mode) in parts {
        let mut entry = Entry { mode: *mode, ..Entry::new(*kind, *path) };
        if *kind == FILE {
            entry.size = text.len() as u64;
        } else {
            entry.link = text.as_bytes().to_vec();
        }
        archive.file(&entry, &mut text.as_bytes()).unwrap();
    }
    let mut file = archive.finish().unwrap();
    file.rewind().unwrap();
    file
}

fn check(parts: &[Part<'_>]) -> (tempfile::TempDir, Result<Copied>) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("outside"), "old").unwrap();
    let result = unpack(archive(parts), "out", &directory.path().join("copy"));
    (directory, result)
}

const FILE: tar::Kind = tar::Kind::File;
const DIR: tar::Kind = tar::Kind::Directory;
const LINK: tar::Kind = tar::Kind::Symlink;
const HARD: tar::Kind = tar::Kind::HardLink;

#[test]
fn files_directories_and_links_are_written() {
    let (directory, result) = check(&[
        ("./out", DIR, "", 0o555),
        ("./out/a", FILE, "text", 0o4755),
        ("./out/deep/b", FILE, "", 0o600),
        ("./out/deep/link", LINK, "../a", 0o777),
        ("./out/hard", HARD, "./out/a", 0o755),
    ]);
    let copied = result.unwrap();
    assert_eq!((copied.entries, copied.bytes, copied.skipped), (5, 4, vec![]));
    let at = |name: &str| directory.path().join("copy").join(name);
    assert_eq!(std::fs::read_to_string(at("deep/link")).unwrap(), "text");
    assert_eq!(std::fs::read_to_string(at("hard")).unwrap(), "text");
    // No special bits.
    assert_eq!(std::fs::metadata(at("a")).unwrap().permissions().mode() & 0o7777, 0o755);
    assert_eq!(std::fs::metadata(at("")).unwrap().permissions().mode() & 0o777, 0o555);
    std::fs::set_permissions(at(""), Permissions::from_mode(0o755)).unwrap();
    let (directory, result) = check(&[("./out", FILE, "one", 0o644)]);
    assert_eq!(result.unwrap().entries, 1);
    assert_eq!(std::fs::read_to_string(directory.path().join("copy")).unwrap(), "one");
}

#[test]
fn nothing_is_written_outside() {
    for parts in [
        &[("./out", DIR, "", 0o755), ("./out/../outside", FILE, "new", 0o644)][..],
        &[("../outside", FILE, "new", 0o644)],
        &[("outside", FILE, "new", 0o644)],
        &[("./out", DIR, "", 0o755), ("./out/l", LINK, ".", 0o777), ("./out/l/x", FILE, "new", 0o644)],
    ] {
        let (directory, result) = check(parts);
        assert_eq!(result.unwrap_err().kind, Kind::Unsupported, "{parts:?}");
        assert_eq!(std::fs::read_to_string(directory.path().join("outside")).unwrap(), "old");
    }
    // Absolute paths are those below the name, or none.
    let (directory, result) = check(&[("/tmp/jobc-escape", FILE, "new", 0o644)]);
    assert!(result.is_err() && !directory.path().join("copy").exists());
}

#[test]
fn links_that_lead_out_are_left_out() {
    for link in ["/etc/passwd", "../outside", "a/../../outside", "../../x", "a/../b"] {
        let (directory, result) = check(&[
            ("./out", DIR, "", 0o755),
            ("./out/l", LINK, link, 0o777),
            ("./out/hard", HARD, "/etc/passwd", 0o644),
            ("./out/dev", tar::Kind::Character, "", 0o666),
        ]);
        let copied = result.unwrap();
        assert_eq!((copied.entries, copied.skipped.len()), (1, 3), "{link}");
        assert_eq!(std::fs::read_dir(directory.path().join("copy")).unwrap().count(), 0, "{link}");
    }
}

#[test]
fn a_link_that_is_in_the_way_is_replaced_not_followed() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("outside"), "old").unwrap();
    std::fs::create_dir(directory.path().join("copy")).unwrap();
    symlink("../outside", directory.path().join("copy/a")).unwrap();
    let parts = [("./out", DIR, "", 0o755), ("./out/a", FILE, "new", 0o644)];
    unpack(archive(&parts), "out", &directory.path().join("copy")).unwrap();
    assert_eq!(std::fs::read_to_string(directory.path().join("outside")).unwrap(), "old");
    assert_eq!(std::fs::read_to_string(directory.path().join("copy/a")).unwrap(), "new");
}

#[test]
fn packed_files_are_unpacked_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("source");
    std::fs::create_dir_all(source.join("d")).unwrap();
    std::fs::write(source.join("d/file"), vec![7; 100_000]).unwrap();
    symlink("d/file", source.join("link")).unwrap();
    let path = directory.path().join("archive");
    let packed = super::super::pack::pack(&source, "out", File::create(&path).unwrap()).unwrap();
    let copy = directory.path().join("copy");
    let unpacked = unpack(File::open(&path).unwrap(), "out", &copy).unwrap();
    assert_eq!(packed, unpacked);
    assert_eq!((packed.entries, packed.bytes), (4, 100_000));
    assert_eq!(std::fs::read(copy.join("link")).unwrap(), vec![7; 100_000]);
}
