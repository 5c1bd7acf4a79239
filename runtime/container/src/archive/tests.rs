use std::io::Write as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{EntryType, Header};

use super::*;

/// One entry of an archive: its kind, its name as raw bytes, what it holds or links to.
struct Member<'a>(EntryType, &'a str, &'a str);

const FILE: EntryType = EntryType::Regular;
const DIRECTORY: EntryType = EntryType::Directory;
const LINK: EntryType = EntryType::Symlink;
const HARD_LINK: EntryType = EntryType::Link;

fn header(kind: EntryType, name: &str, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.as_gnu_mut().expect("a header of GNU tar").name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(if kind == DIRECTORY { 0o755 } else { 0o644 });
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(1_700_000_000);
    header
}

/// Writes a header as it is and its data.
fn append(archive: &mut Vec<u8>, mut header: Header, data: &[u8]) {
    header.set_cksum();
    archive.extend(header.as_bytes());
    archive.extend(data);
    archive.resize(archive.len().next_multiple_of(512), 0);
}

fn tar(members: &[Member<'_>]) -> Vec<u8> {
    let mut archive = Vec::new();
    for Member(kind, name, text) in members {
        let linked = matches!(*kind, LINK | HARD_LINK);
        let mut header = header(*kind, name, if linked { 0 } else { text.len() as u64 });
        if linked {
            header.as_gnu_mut().expect("a header of GNU tar").linkname[..text.len()]
                .copy_from_slice(text.as_bytes());
        }
        append(&mut archive, header, if linked { b"" } else { text.as_bytes() });
    }
    archive.extend([0; 1024]);
    archive
}

/// A directory with an `outside` that must stay as it is, and `root` where an archive is unpacked to.
struct TestDirectory(tempfile::TempDir);

impl TestDirectory {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().expect("a directory"));
        fs::create_dir(place.outside()).expect("a directory");
        fs::write(place.outside().join("sentinel"), "untouched").expect("a file");
        place
    }

    fn outside(&self) -> PathBuf {
        self.0.path().join("outside")
    }

    fn root(&self) -> PathBuf {
        self.0.path().join("root")
    }

    /// Unpacks and returns the result; checks that what is outside is as it was, and that nothing is left of an
    /// error.
    fn unpack(&self, archive: &[u8]) -> String {
        let before = tree(&self.outside());
        let file = self.0.path().join("rootfs.tar");
        fs::write(&file, archive).expect("an archive");
        let result = unpack(&file, &self.root());
        assert_eq!(tree(&self.outside()), before, "what is outside stays as it was");
        assert_eq!(before.lines().count(), 1);
        assert!(!self.0.path().join("root.part").exists(), "nothing half done is left");
        assert_eq!(self.root().exists(), result.is_ok());
        match result {
            Ok(()) => tree(&self.root()),
            Err(error) => {
                let help: String = error.hints.iter().map(|help| format!("  help: {help}\n")).collect();
                format!("{error}\n{help}").replace(&self.0.path().display().to_string(), "DIR")
            }
        }
    }
}

/// A directory's content: mode, kind, path, and what a file or a link holds.
fn tree(directory: &Path) -> String {
    let mut lines = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(next) = directories.pop() {
        for entry in fs::read_dir(&next).expect("a directory") {
            let path = entry.expect("an entry").path();
            let data = fs::symlink_metadata(&path).expect("data");
            let kind = data.file_type();
            let shown = path.strip_prefix(directory).expect("below").display().to_string();
            let what = if kind.is_dir() {
                directories.push(path.clone());
                "/".to_owned()
            } else if kind.is_symlink() {
                format!(" -> {}", fs::read_link(&path).expect("a link").display())
            } else if kind.is_fifo() {
                " pipe".to_owned()
            } else if kind.is_char_device() {
                format!(" device {:?}", (rustix::fs::major(data.rdev()), rustix::fs::minor(data.rdev())))
            } else {
                let text = fs::read_to_string(&path).expect("text");
                format!(" = {text:?}{}", if data.nlink() > 1 { " linked" } else { "" })
            };
            lines.push(format!("{shown}{what} {:04o}\n", data.mode() & 0o7777));
        }
    }
    lines.sort();
    lines.concat()
}

/// The members of an archive, and what they become.
fn check(members: &[Member<'_>]) -> String {
    let place = TestDirectory::new();
    let list: String =
        members.iter().map(|Member(kind, name, text)| format!("{kind:?} {name} {text}\n")).collect();
    // The path from the root to the outside, for members that try to escape.
    let up = "../".repeat(12) + place.outside().to_str().expect("text").trim_start_matches('/');
    let real: Vec<(String, String)> = members
        .iter()
        .map(|Member(_, name, text)| {
            let real =
                |text: &str| text.replace("UP", &up).replace("OUT", place.outside().to_str().expect("text"));
            (real(name), real(text))
        })
        .collect();
    let members: Vec<Member<'_>> =
        members.iter().zip(&real).map(|(Member(kind, ..), (name, text))| Member(*kind, name, text)).collect();
    let output = place.unpack(&tar(&members));
    let out = place.outside();
    let output = output.replace("DIR/outside", "OUT").replace(&("../".repeat(11) + "..OUT"), "UP");
    // Where a member is named like the sentinel, inside the root: its directories have names of this run.
    let inner = out.strip_prefix("/").expect("absolute");
    let output: String = output
        .lines()
        .filter(|line| !line.split_once("/ ").is_some_and(|(directory, _)| inner.starts_with(directory)))
        .map(|line| line.replace(&inner.display().to_string(), "INSIDE") + "\n")
        .collect();
    let output = output.replace(out.to_str().expect("text"), "OUT");
    let indented: String = output.lines().map(|line| format!("    {line}\n")).collect();
    format!("{list}{indented}\n")
}

#[test]
fn a_usual_root() {
    let members = [
        Member(DIRECTORY, "./", ""),
        Member(DIRECTORY, "./usr/", ""),
        Member(DIRECTORY, "./usr/bin/", ""),
        Member(FILE, "./usr/bin/sh", "binary"),
        Member(LINK, "./bin", "usr/bin"),
        Member(FILE, "./bin/ls", "through a link inside"),
        Member(HARD_LINK, "./usr/bin/dash", "./usr/bin/sh"),
        Member(FILE, "/absolute/name", "begins at the root"),
        Member(LINK, "lib", "/usr/lib"),
        Member(DIRECTORY, "usr/lib", ""),
        Member(FILE, "lib/x.so", "an absolute link begins at the root too"),
        Member(EntryType::Fifo, "pipe", ""),
        Member(FILE, "old-directory/", ""),
        Member(FILE, "twice", "first"),
        Member(FILE, "twice", "second"),
        Member(LINK, "changed", "usr"),
        Member(DIRECTORY, "changed", ""),
        Member(FILE, "changed/file", "x"),
    ];
    insta::assert_snapshot!(check(&members));
}

#[test]
fn no_member_escapes_the_root() {
    let cases = [
        check(&[Member(FILE, "UP/evil", "x")]),
        check(&[Member(FILE, "a/../../evil", "x")]),
        check(&[Member(FILE, "OUT/sentinel", "an absolute path of the host")]),
        check(&[Member(LINK, "way", "OUT"), Member(FILE, "way/sentinel", "x")]),
        check(&[Member(LINK, "way", "UP"), Member(FILE, "way/sentinel", "x")]),
        check(&[Member(LINK, "way", "/"), Member(FILE, "way/inside", "x")]),
        check(&[Member(LINK, "way", "../../.."), Member(FILE, "way/inside", "x")]),
        check(&[Member(LINK, "sentinel", "OUT/sentinel"), Member(FILE, "sentinel", "replaces the link")]),
        check(&[Member(HARD_LINK, "shadow", "/etc/shadow")]),
        check(&[Member(HARD_LINK, "shadow", "UP/sentinel")]),
        check(&[Member(LINK, "way", "OUT"), Member(HARD_LINK, "stolen", "way/sentinel")]),
        check(&[
            Member(LINK, "way", "OUT/sentinel"),
            Member(HARD_LINK, "stolen", "way"),
            Member(FILE, "stolen", "x"),
        ]),
        check(&[Member(LINK, "way", "OUT"), Member(DIRECTORY, "way", "")]),
        check(&[Member(LINK, "way", "OUT"), Member(LINK, "way/back", "x")]),
        check(&[Member(LINK, "a", "a"), Member(FILE, "a/x", "x")]),
        check(&[Member(LINK, "proc", "/proc/self/root"), Member(FILE, "proc/x", "x")]),
    ];
    insta::assert_snapshot!(cases.concat());
}

#[test]
fn members_that_make_no_sense() {
    let cases = [
        check(&[Member(FILE, "a", "x"), Member(FILE, "a/b", "x")]),
        check(&[Member(DIRECTORY, "a", ""), Member(FILE, "a/b", "x"), Member(FILE, "a", "x")]),
        check(&[
            Member(FILE, "a/b/c", "x"),
            Member(LINK, "a/out", "OUT"),
            Member(LINK, "a", "b"),
            Member(FILE, "a", "y"),
        ]),
        check(&[Member(FILE, "./", "")]),
        check(&[Member(LINK, ".", "x")]),
        check(&[Member(LINK, "a", "")]),
        check(&[Member(HARD_LINK, "a", "b")]),
        check(&[Member(FILE, "a", "x"), Member(HARD_LINK, "a", "./a")]),
        check(&[Member(EntryType::new(b'M'), "volume", "")]),
    ];
    insta::assert_snapshot!(cases.concat());
}

#[test]
fn an_archive_that_ends_too_early_or_is_none() {
    let whole = tar(&[Member(DIRECTORY, "etc", ""), Member(FILE, "etc/passwd", &"x".repeat(2000))]);
    let squeezed = gzip(&whole);
    let mut checksum = squeezed.clone();
    let end = checksum.len() - 8;
    checksum[end] ^= 1;
    let mut bits = whole.clone();
    bits[512 + 3] ^= 1;
    let cases: [(&str, &[u8]); 13] = [
        ("whole", &whole),
        ("in the middle of a file", &whole[..1800]),
        ("in a header", &whole[..700]),
        ("behind a file, without an end", &whole[..whole.len() - 1024]),
        ("with half an end", &whole[..whole.len() - 512]),
        ("empty", b""),
        ("text", &[b'a'; 1024]),
        ("a header with a bit changed", &bits),
        ("gzip", &squeezed),
        ("gzip cut off", &squeezed[..squeezed.len() - 20]),
        ("gzip with a wrong checksum", &checksum),
        ("zstd", &[0x28, 0xb5, 0x2f, 0xfd, 0, 0]),
        ("zip", b"PK\x03\x04\x14\0"),
    ];
    let output: String = cases
        .iter()
        .map(|(name, archive)| {
            format!(
                "{name}\n    {}\n",
                TestDirectory::new()
                    .unpack(archive)
                    .replace(&"x".repeat(2000), "...")
                    .trim_end()
                    .replace('\n', "\n    ")
            )
        })
        .collect();
    insta::assert_snapshot!(output);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut writer = GzEncoder::new(Vec::new(), Compression::fast());
    writer.write_all(bytes).expect("bytes");
    writer.finish().expect("a stream")
}

#[test]
fn names_longer_than_a_header_and_attributes() {
    let mut builder = tar::Builder::new(Vec::new());
    let name = format!("{}/{}", "d".repeat(150), "f".repeat(150));
    builder.append_data(&mut header(FILE, "", 4), &name, &b"long"[..]).expect("an entry");
    builder.append_link(&mut header(LINK, "", 0), "link", "t".repeat(200)).expect("an entry");
    builder
        .append_pax_extensions([
            ("SCHILY.xattr.user.note", &b"kept"[..]),
            ("SCHILY.xattr.trusted.no", &b"left"[..]),
        ])
        .expect("records");
    builder.append_data(&mut header(FILE, "", 1), "noted", &b"x"[..]).expect("an entry");
    let place = TestDirectory::new();
    let output = place.unpack(&builder.into_inner().expect("an archive"));
    assert!(output.contains(&format!("{name} = \"long\"")), "{output}");
    assert!(output.contains(&format!("link -> {}", "t".repeat(200))), "{output}");
    let noted = place.root().join("noted");
    let mut value = [0; 16];
    match rustix::fs::getxattr(&noted, c"user.note", &mut value[..]) {
        Ok(count) => assert_eq!(&value[..count], b"kept"),
        Err(errno) => {
            assert_eq!(errno, rustix::io::Errno::NOTSUP, "only where the file system has room for none");
        }
    }
    assert_eq!(fs::metadata(&noted).expect("data").mtime(), 1_700_000_000);
}

#[test]
fn an_attribute_that_cannot_be_set_is_named() {
    if !jobc_test_skip::is_root() {
        return;
    }
    let mut builder = tar::Builder::new(Vec::new());
    builder.append_pax_extensions([("SCHILY.xattr.security.capability", &b"no"[..])]).expect("records");
    builder.append_data(&mut header(FILE, "", 1), "able", &b"x"[..]).expect("an entry");
    let told = TestDirectory::new().unpack(&builder.into_inner().expect("an archive"));
    assert!(
        told.contains("able") && told.contains("its attribute `security.capability` has an invalid value"),
        "{told}"
    );
}

#[test]
fn headers_without_end_are_given_up() {
    for kind in [b'L', b'x'] {
        let mut archive = Vec::new();
        append(&mut archive, header(EntryType::new(kind), "long", 3 << 20), &vec![b'a'; 3 << 20]);
        append(&mut archive, header(FILE, "file", 0), b"");
        archive.extend([0; 1024]);
        let output = TestDirectory::new().unpack(&archive);
        assert!(output.contains("the names and attributes of an entry take more than 1 MiB"), "{output}");
    }
}

#[test]
fn values_with_line_ends_are_whole() {
    let mut builder = tar::Builder::new(Vec::new());
    builder.append_pax_extensions([("SCHILY.xattr.user.note", &b"two\nlines"[..])]).expect("records");
    builder.append_data(&mut header(FILE, "", 1), "noted", &b"x"[..]).expect("an entry");
    let place = TestDirectory::new();
    place.unpack(&builder.into_inner().expect("an archive"));
    let mut value = [0; 16];
    match rustix::fs::getxattr(place.root().join("noted"), c"user.note", &mut value[..]) {
        Ok(count) => assert_eq!(&value[..count], b"two\nlines"),
        Err(errno) => assert_eq!(errno, rustix::io::Errno::NOTSUP),
    }
}

#[test]
fn zeros_become_holes() {
    let text = "a".repeat(100) + &"\0".repeat(1 << 20) + "b" + &"\0".repeat(300_000);
    let place = TestDirectory::new();
    place.unpack(&tar(&[Member(FILE, "holes", &text)]));
    let path = place.root().join("holes");
    assert_eq!(fs::read(&path).expect("a file"), text.as_bytes());
    let blocks = fs::metadata(&path).expect("data").blocks() * 512;
    assert!(blocks < 300_000, "{blocks} bytes of a disk");
}

#[test]
fn sparse_files_of_gnu_tar_are_whole_and_endless_ones_refused() {
    let sparse = |size: &str| {
        let mut header = header(EntryType::GNUSparse, "sparse", 512);
        let gnu = header.as_gnu_mut().expect("a header of GNU tar");
        let set = |field: &mut [u8], text: &str| field[..text.len()].copy_from_slice(text.as_bytes());
        set(&mut gnu.sparse[0].offset, "00000200000");
        set(&mut gnu.sparse[0].numbytes, "00000001000");
        set(&mut gnu.sparse[1].offset, size);
        set(&mut gnu.sparse[1].numbytes, "00000000000");
        set(&mut gnu.realsize, size);
        let mut archive = Vec::new();
        append(&mut archive, header, &[b'x'; 512]);
        archive.extend([0; 1024]);
        archive
    };
    let place = TestDirectory::new();
    place.unpack(&sparse("00000400000"));
    let content = fs::read(place.root().join("sparse")).expect("a file");
    assert_eq!(content.len(), 0o400_000);
    assert_eq!(content.iter().position(|byte| *byte == b'x'), Some(0o200_000));
    assert_eq!(content.iter().filter(|byte| **byte == b'x').count(), 512);
    // 8 PiB in base 256.
    let endless = "\u{0}\u{0}\u{0}\u{0}\u{0} \u{0}\u{0}\u{0}\u{0}\u{0}\u{0}";
    let mut archive = sparse("00000400000");
    for field in [archive[386 + 24..].as_ptr(), archive[483..].as_ptr()] {
        let at = field as usize - archive.as_ptr() as usize;
        archive[at..at + 12].copy_from_slice(endless.as_bytes());
        archive[at] = 0x80;
    }
    let mut fixed = Header::new_gnu();
    fixed.as_mut_bytes().copy_from_slice(&archive[..512]);
    fixed.set_cksum();
    archive[..512].copy_from_slice(fixed.as_bytes());
    let output = TestDirectory::new().unpack(&archive);
    assert!(output.contains("`sparse`: a file of more than 2 TiB"), "{output}");
}

#[test]
fn bits_and_owners_are_root_s_to_keep() {
    let mut archive = Vec::new();
    let mut special = header(FILE, "special", 1);
    special.set_mode(0o6755);
    special.set_uid(1234);
    special.set_gid(4321);
    append(&mut archive, special, b"x");
    let mut closed = header(DIRECTORY, "closed", 0);
    closed.set_mode(0o500);
    append(&mut archive, closed, b"");
    append(&mut archive, header(FILE, "closed/file", 1), b"x");
    let mut null = header(EntryType::Char, "dev/null", 0);
    null.set_device_major(1).expect("a number");
    null.set_device_minor(3).expect("a number");
    append(&mut archive, null, b"");
    archive.extend([0; 1024]);
    let place = TestDirectory::new();
    let file = place.0.path().join("rootfs.tar");
    fs::write(&file, &archive).expect("an archive");

    make(&file, &place.root(), Owners::CurrentUser, &AtomicBool::new(false)).expect("unpacked as a user");
    let output = tree(&place.root());
    assert!(output.contains("special = \"x\" 0755"), "{output}");
    assert!(output.contains("closed/ 0500") && output.contains("closed/file"), "{output}");
    assert!(!output.contains("device"), "{output}");
    assert_ne!(fs::metadata(place.root().join("special")).expect("data").uid(), 1234);
    remove(&place.root()).expect("removed");
    assert!(!place.root().exists());

    if !jobc_test_skip::is_root() {
        return;
    }
    make(&file, &place.root(), Owners::FromArchive, &AtomicBool::new(false)).expect("unpacked as root");
    let output = tree(&place.root());
    assert!(output.contains("special = \"x\" 6755"), "{output}");
    assert!(output.contains("dev/null device (1, 3) 0644"), "{output}");
    let data = fs::metadata(place.root().join("special")).expect("data");
    assert_eq!((data.uid(), data.gid()), (1234, 4321));
}

#[test]
fn devices_elsewhere_need_root() {
    let mut archive = Vec::new();
    let mut disk = header(EntryType::Block, "disk", 0);
    disk.set_device_major(8).expect("a number");
    disk.set_device_minor(0).expect("a number");
    append(&mut archive, disk, b"");
    archive.extend([0; 1024]);
    let place = TestDirectory::new();
    let file = place.0.path().join("rootfs.tar");
    fs::write(&file, &archive).expect("an archive");
    let error =
        make(&file, &place.root(), Owners::CurrentUser, &AtomicBool::new(false)).expect_err("not as a user");
    assert!(error.message().ends_with("`disk`: only root can make a device"), "{error}");
}

#[test]
fn what_a_killed_run_left_behind_is_removed() {
    let place = TestDirectory::new();
    let left = place.0.path().join("root.part/closed");
    fs::create_dir_all(&left).expect("directories");
    fs::write(left.join("old"), "").expect("a file");
    fs::set_permissions(&left, fs::Permissions::from_mode(0o500)).expect("closed");
    assert_eq!(place.unpack(&tar(&[Member(FILE, "new", "x")])), "new = \"x\" 0644\n");
}

#[test]
fn a_full_disk_is_reported() {
    let place = TestDirectory::new();
    let file = place.0.path().join("rootfs.tar");
    fs::write(&file, tar(&[Member(FILE, "large", &"x".repeat(1 << 20))])).expect("an archive");
    // A separate process, so that no other process sees the mount.
    let inner = "mount -t tmpfs -o size=256k none \"$1/small\" && exec \"$2\" --ignored --exact archive::tests::unpacks_into_a_small_file_system";
    fs::create_dir(place.0.path().join("small")).expect("a directory");
    let output = std::process::Command::new("unshare")
        .args(["--mount", "--map-root-user", "sh", "-c", inner, "sh"])
        .arg(place.0.path())
        .arg(std::env::current_exe().expect("this test"))
        .env("JOBC_TEST_PLACE", place.0.path())
        .output();
    match output {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            panic!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
        }
        Err(_) => jobc_test_skip::skip("unshare"),
    }
}

#[test]
#[ignore = "run by a_full_disk_is_reported in a mount namespace of its own"]
fn unpacks_into_a_small_file_system() {
    let Some(place) = std::env::var_os("JOBC_TEST_PLACE").map(PathBuf::from) else { return };
    let error = unpack(&place.join("rootfs.tar"), &place.join("small/root")).expect_err("no space");
    assert!(error.message().starts_with("no space left to unpack"), "{error}");
    assert!(error.advice().is_some());
    assert_eq!(fs::read_dir(place.join("small")).expect("a directory").count(), 0, "nothing is left");
}
