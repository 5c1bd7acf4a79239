//! The files of a run as a tar archive (POSIX ustar, with GNU's long names).

use std::fmt::Write as _;

const BLOCK: usize = 512;
/// The longest name that a header has.
const NAME_LENGTH: usize = 100;

/// An archive while it is made.
#[derive(Default)]
pub(crate) struct Archive(Vec<u8>);

impl Archive {
    /// Adds a file.
    pub(crate) fn file(&mut self, path: &str, mode: u32, bytes: &[u8]) {
        self.entry(path, mode, b'0', "", bytes);
    }

    /// Adds a directory.
    pub(crate) fn directory(&mut self, path: &str, mode: u32) {
        self.entry(&format!("{path}/"), mode, b'5', "", &[]);
    }

    /// Adds a symbolic link.
    pub(crate) fn link(&mut self, path: &str, target: &str) {
        self.entry(path, 0o777, b'2', target, &[]);
    }

    /// The bytes of the archive.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 2 * BLOCK, 0);
        self.0
    }

    fn entry(&mut self, path: &str, mode: u32, kind: u8, target: &str, bytes: &[u8]) {
        for (text, kind) in [(path, b'L'), (target, b'K')] {
            if text.len() > NAME_LENGTH {
                let with_end = [text.as_bytes(), b"\0"].concat();
                self.add("././@LongLink", 0o644, kind, "", &with_end);
            }
        }
        self.add(path, mode, kind, target, bytes);
    }

    fn add(&mut self, path: &str, mode: u32, kind: u8, target: &str, bytes: &[u8]) {
        let mut header = [0_u8; BLOCK];
        let mut put = |at: usize, length: usize, text: &[u8]| {
            let length = length.min(text.len());
            header[at..at + length].copy_from_slice(&text[..length]);
        };
        put(0, NAME_LENGTH, path.as_bytes());
        put(100, 8, format!("{mode:07o}\0").as_bytes());
        put(108, 8, b"0000000\0");
        put(116, 8, b"0000000\0");
        put(124, 12, format!("{:011o}\0", bytes.len()).as_bytes());
        put(136, 12, b"00000000000\0");
        put(148, 8, b"        ");
        put(156, 1, &[kind]);
        put(157, NAME_LENGTH, target.as_bytes());
        put(257, 8, b"ustar\x0000");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        let mut text = String::new();
        let _ = write!(text, "{sum:06o}\0 ");
        header[148..156].copy_from_slice(text.as_bytes());
        self.0.extend_from_slice(&header);
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(BLOCK), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::{Command, Stdio};

    #[test]
    fn tar_unpacks_what_is_packed() {
        let long = format!("run/{}/x", "a".repeat(150));
        let mut archive = Archive::default();
        archive.directory("run/secrets", 0o700);
        archive.file("run/script", 0o755, b"#!/bin/sh\n");
        archive.file(&long, 0o644, &[7; 1000]);
        archive.link("run/files", &format!("/{}", "b".repeat(120)));
        let directory = tempfile::tempdir().unwrap();
        let mut tar = Command::new("tar")
            .args(["-xpf", "-", "-C"])
            .arg(directory.path())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        tar.stdin.take().unwrap().write_all(&archive.finish()).unwrap();
        assert!(tar.wait().unwrap().success());
        let at = |path: &str| directory.path().join(path);
        assert_eq!(fs::read(at("run/script")).unwrap(), b"#!/bin/sh\n");
        assert_eq!(fs::metadata(at("run/script")).unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(fs::metadata(at("run/secrets")).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::read(at(&long)).unwrap(), [7; 1000]);
        assert_eq!(fs::read_link(at("run/files")).unwrap().to_str().unwrap().len(), 121);
    }
}
