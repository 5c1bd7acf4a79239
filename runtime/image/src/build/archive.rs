//! Archives that `ADD` unpacks: detected by their first block, regardless of their names.

use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use jobc_container::archive::extract;
use jobc_container::archive::tree::{Owners, Tree};
use jobc_container::decompress::{Format, decompressing_reader};

/// Maximum entries of an archive.
const MAX_ENTRIES: u64 = 10_000_000;

/// Unpacks an archive to an empty directory; returns whether the file is one.
pub(super) fn unpack(mut file: File, directory: &Path, stopped: &AtomicBool) -> io::Result<bool> {
    let mut beginning = Vec::new();
    (&mut file).take(6).read_to_end(&mut beginning)?;
    file.rewind()?;
    let zip = beginning.starts_with(b"PK\x03\x04");
    let compressed = Format::of(&beginning).is_some();
    if zip || !compressed && !is_archive(&mut file)? {
        return Ok(false);
    }
    let open = |file: File| decompressing_reader(BufReader::with_capacity(1 << 16, file));
    let begins_with_archive = |file: File| open(file).and_then(|mut content| is_archive(&mut content));
    if compressed && !begins_with_archive(file.try_clone()?).unwrap_or(false) {
        return Ok(false);
    }
    file.rewind()?;
    let mut tree = Tree::new(directory, owners())?;
    extract(&mut tree, BufReader::with_capacity(1 << 16, open(file)?), MAX_ENTRIES, stopped)?;
    tree.finish()?;
    Ok(true)
}

/// The owners of an archive's files: its ids, if this process can map other ids.
fn owners() -> Owners {
    if !rustix::process::geteuid().is_root() {
        return Owners::CurrentUser;
    }
    if !jobc_sys::host::in_user_namespace() {
        return Owners::FromArchive;
    }
    // `inside outside length`, a line for each run of ids.
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let one = map.lines().count() == 1 && map.split_whitespace().last() == Some("1");
    if one { Owners::CurrentUser } else { Owners::Mapped }
}

/// Whether data begins with a tar header: its checksum is right (tar(5)).
fn is_archive(input: &mut dyn io::Read) -> io::Result<bool> {
    let mut header = Vec::new();
    input.take(512).read_to_end(&mut header)?;
    if header.len() < 512 || header.iter().all(|byte| *byte == 0) {
        return Ok(false);
    }
    let text = String::from_utf8_lossy(&header[148..156]).into_owned();
    let checksum = u32::from_str_radix(text.trim_matches(['\0', ' ']), 8);
    header[148..156].fill(b' ');
    Ok(checksum == Ok(header.iter().map(|byte| u32::from(*byte)).sum()))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use super::*;

    fn unpacked(bytes: &[u8]) -> io::Result<bool> {
        let directory = tempfile::tempdir().expect("a directory");
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(bytes).and_then(|()| file.rewind()).expect("written");
        let is_archive = unpack(file, directory.path(), &AtomicBool::new(false))?;
        assert_eq!(directory.path().join("a").is_file(), is_archive);
        Ok(is_archive)
    }

    #[test]
    fn archives_are_unpacked_however_they_are_compressed() {
        let mut builder = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(4);
        builder.append_data(&mut header, "a", &b"text"[..]).expect("appended");
        let archive = builder.into_inner().expect("an archive");
        assert!(unpacked(&archive).expect("plain"));
        assert!(!unpacked(b"text").expect("no archive"));
        for program in ["gzip", "zstd", "xz", "bzip2"] {
            let pack = |content: &[u8]| {
                let child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
                let mut child = child.ok()?;
                child.stdin.take().expect("a pipe").write_all(content).expect("written");
                Some(child.wait_with_output().expect("an end").stdout)
            };
            let (Some(packed), Some(text)) = (pack(&archive), pack(b"text")) else {
                jobc_test_skip::skip(program);
                continue;
            };
            assert!(unpacked(&packed).expect(program), "{program}");
            assert!(!unpacked(&text).expect(program), "{program}: what is no archive is copied");
        }
    }
}
