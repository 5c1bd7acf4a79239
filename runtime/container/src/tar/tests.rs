use std::io::Write as _;
use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::*;

fn read(archive: &[u8]) -> Vec<(Entry, Vec<u8>)> {
    let mut reader = Reader::new(archive);
    let mut entries = Vec::new();
    while let Some(entry) = reader.next().expect("an entry") {
        let mut data = Vec::new();
        loop {
            let piece = reader.data().expect("data").to_vec();
            if piece.is_empty() {
                break;
            }
            reader.consume(piece.len());
            data.extend(piece);
        }
        entries.push((entry, data));
    }
    assert_eq!(reader.end(), Some(ArchiveEnd::Marked));
    entries
}

fn write(entries: &[(Entry, Vec<u8>)]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new());
    for (entry, data) in entries {
        writer.file(entry, &mut &data[..]).expect("written");
    }
    writer.finish().expect("finished")
}

prop_compose! {
    fn entry()(
        name in proptest::collection::vec(1u8.., 1..220),
        mode in 0u32..0o10000, uid in 0..u32::MAX, gid in 0..u32::MAX,
        seconds in -5_000_000_000i64..50_000_000_000, nanoseconds in prop_oneof![Just(0), 0u32..1_000_000_000],
        attributes in proptest::collection::vec((proptest::collection::vec(b'a'..=b'z', 1..9), any::<Vec<u8>>()), 0..3),
        data in any::<Vec<u8>>(),
    ) -> (Entry, Vec<u8>) {
        let mut path = name;
        while path.ends_with(b"/") { path.pop(); path.push(b'x'); }
        let mut attributes: Vec<(Vec<u8>, Vec<u8>)> = attributes;
        attributes.sort();
        attributes.dedup_by(|a, b| a.0 == b.0);
        let size = data.len() as u64;
        let entry = Entry {
            mode, uid, gid, mtime: Time { seconds, nanoseconds }, attributes, size,
            ..Entry::new(Kind::File, path)
        };
        (entry, data)
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(entries in proptest::collection::vec(entry(), 0..5)) {
        prop_assert_eq!(read(&write(&entries)), entries);
    }

    #[test]
    fn any_bytes_are_an_archive_or_an_error(mut bytes in any::<Vec<u8>>(), at in 0usize..2048, byte in any::<u8>()) {
        let file = Entry { size: 600, ..Entry::new(Kind::File, *b"name") };
        let mut archive = write(&[(file, vec![b'x'; 600])]);
        bytes.truncate(1500);
        archive.splice(..bytes.len(), bytes);
        let at = at % archive.len();
        archive[at] = byte;
        let mut reader = Reader::new(&archive[..]);
        while let Ok(Some(_)) = reader.next() {}
    }
}

/// GNU tar itself for each kind of entry: we read its archives, and it reads ours.
#[test]
fn gnu_tar_agrees() {
    let dir = tempfile::tempdir().expect("a directory");
    let long = "n".repeat(120);
    let script = format!(
        "mkdir d; printf text > d/{long}; ln -s {} link; ln d/{long} hard; mkfifo pipe; truncate -s 3000000 holes; \
         printf x | dd of=holes bs=1 seek=1000000 conv=notrunc status=none; touch -d '1965-01-02 03:04:05.678Z' d/{long}",
        "t".repeat(150)
    );
    let run = |script: &str| {
        let status = Command::new("sh").args(["-ec", script]).current_dir(dir.path()).status().expect("sh");
        assert!(status.success(), "{script}");
    };
    run(&format!("mkdir in; cd in; {script}"));
    // 1965-01-02 03:04:05 UTC.
    let at = -157_668_955;
    for format in [
        "gnu --sparse",
        "posix",
        "posix --sparse --sparse-version=0.0",
        "posix --sparse --sparse-version=0.1",
        "posix --sparse",
    ] {
        run(&format!("cd in; tar --sort=name --format={format} -cf ../tar ."));
        let entries = read(&std::fs::read(dir.path().join("tar")).expect("an archive"));
        let find = |path: &str| {
            let found = entries.iter().find(|(entry, _)| entry.path == path.as_bytes());
            found.unwrap_or_else(|| panic!("{format}: {path} in {entries:?}"))
        };
        let (file, data) = find(&format!("./d/{long}"));
        assert_eq!(data, b"text");
        let nanoseconds = if format.starts_with("gnu") { 0 } else { 678_000_000 };
        assert_eq!(file.mtime, Time { seconds: at, nanoseconds }, "{format}");
        assert_eq!(find("./link").0.link, "t".repeat(150).as_bytes());
        assert_eq!(
            (find("./hard").0.kind, &find("./hard").0.link[..]),
            (Kind::HardLink, format!("./d/{long}").as_bytes())
        );
        assert_eq!(find("./pipe").0.kind, Kind::Fifo);
        let (holes, data) = find("./holes");
        assert_eq!(holes.size, 3_000_000, "{format}");
        let map = holes.sparse.clone().unwrap_or_else(|| vec![(0, holes.size)]);
        assert_eq!(holes.sparse.is_some(), format.contains("sparse"), "{format}");
        let mut at = 0;
        let mut whole = vec![0; 3_000_000];
        for (offset, length) in map {
            let (offset, length) = (usize::try_from(offset).unwrap(), usize::try_from(length).unwrap());
            whole[offset..offset + length].copy_from_slice(&data[at..at + length]);
            at += length;
        }
        assert_eq!(whole.iter().position(|byte| *byte == b'x'), Some(1_000_000), "{format}");
        assert_eq!(whole.iter().filter(|byte| **byte != 0).count(), 1);
        // The same through our writer, unpacked by GNU tar.
        let (plain, _): (Vec<_>, Vec<_>) = entries.into_iter().partition(|(entry, _)| entry.sparse.is_none());
        let mut tar = Command::new("tar")
            .args(["-tvf", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("tar");
        tar.stdin.take().expect("a pipe").write_all(&write(&plain)).expect("written");
        let output = tar.wait_with_output().expect("an end");
        assert!(output.status.success());
        assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), plain.len());
    }
}

/// What is written as a sparse file is read by this reader, GNU tar and Python, each of which knows the format itself.
#[test]
fn a_sparse_file_that_is_written_is_read_by_others() {
    let dir = tempfile::tempdir().expect("a directory");
    let long = format!("{}/{}", "d".repeat(90), "n".repeat(120));
    let pieces = [(4096, 512), (3_000_000_000, 1024)];
    let mut content = vec![0; 1536];
    content[..5].copy_from_slice(b"first");
    content[512..516].copy_from_slice(b"last");
    let mut writer = Writer::new(Vec::new());
    for name in ["holes", &long] {
        let entry = Entry { size: 20_000_000_000, mode: 0o640, ..Entry::new(Kind::File, name) };
        writer.sparse_file(&entry, &pieces, &mut &content[..]).expect("written");
    }
    let all_hole = Entry { size: 5_000_000_000, ..Entry::new(Kind::File, "hole") };
    writer.sparse_file(&all_hole, &[], &mut std::io::empty()).expect("written");
    let archive = writer.finish().expect("finished");
    assert!(archive.len() < 20_000);
    let entries = read(&archive);
    for (found, name) in entries.iter().zip(["holes", &long]) {
        let (entry, data) = found;
        assert_eq!((&entry.path[..], entry.size, entry.mode), (name.as_bytes(), 20_000_000_000, 0o640));
        assert_eq!(
            (entry.sparse.as_deref(), &data[..]),
            (Some(&[pieces[0], pieces[1], (20_000_000_000, 0)][..]), &content[..])
        );
    }
    let (hole, data) = &entries[2];
    assert_eq!(
        (hole.size, hole.sparse.as_deref(), data.len()),
        (5_000_000_000, Some(&[(5_000_000_000, 0)][..]), 0)
    );
    std::fs::write(dir.path().join("tar"), &archive).expect("a file");
    let run = |script: &str| {
        let output = Command::new("sh").args(["-ec", script]).current_dir(dir.path()).output().expect("sh");
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let shown = run(&format!(
        "tar -xf tar && stat -c '%s %a' holes {long} hole && dd if={long} bs=4 skip=750000000 count=1 status=none && du -k holes | cut -f1"
    ));
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[..2], ["20000000000 640"; 2]);
    assert!(lines[3].starts_with("last"), "{shown}");
    let python = "import tarfile\nfor m in tarfile.open('tar'): print(m.name[:5], m.size, m.sparse)";
    std::fs::write(dir.path().join("list.py"), python).expect("a file");
    let listed = run("if command -v python3 >/dev/null; then python3 list.py; fi");
    if !listed.is_empty() {
        let holes = "20000000000 [(4096, 512), (3000000000, 1024), (20000000000, 0)]";
        assert_eq!(listed, format!("holes {holes}\nddddd {holes}\nhole 5000000000 [(5000000000, 0)]\n"));
    }
}
