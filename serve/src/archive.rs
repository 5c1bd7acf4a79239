//! Archives in the tar format (POSIX ustar), of regular files.

use std::io;
use std::path::PathBuf;

/// Bytes of a block.
const BLOCK: usize = 512;
/// The largest archive.
const MAX_BYTES: usize = 64 << 20;

/// An archive of files, by their names in it. Files that do not fit are left out, and the last one says so.
///
/// # Errors
/// A file cannot be read.
pub(crate) fn of(files: &[(String, PathBuf)]) -> io::Result<Vec<u8>> {
    let mut archive = vec![];
    let mut left_out = vec![];
    for (name, path) in files {
        let bytes = std::fs::read(path)?;
        match header(name, bytes.len()) {
            Some(header) if archive.len() + bytes.len() + 2 * BLOCK < MAX_BYTES => {
                add(&mut archive, &header, &bytes);
            }
            _ => left_out.push(format!("{name}\n")),
        }
    }
    if !left_out.is_empty() {
        let text = left_out.concat();
        if let Some(header) = header("LEFT-OUT.txt", text.len()) {
            add(&mut archive, &header, text.as_bytes());
        }
    }
    archive.resize(archive.len() + 2 * BLOCK, 0);
    Ok(archive)
}

fn add(archive: &mut Vec<u8>, header: &[u8; BLOCK], bytes: &[u8]) {
    archive.extend_from_slice(header);
    archive.extend_from_slice(bytes);
    archive.resize(archive.len().next_multiple_of(BLOCK), 0);
}

/// The header of a file; none if its name is too long for the format.
fn header(name: &str, size: usize) -> Option<[u8; BLOCK]> {
    let (prefix, name) = split(name)?;
    let mut header = [0; BLOCK];
    let mut put = |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, name);
    put(100, "0000644\0");
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{size:011o}\0"));
    put(136, "00000000000\0");
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\0");
    put(263, "00");
    put(345, prefix);
    let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Some(header)
}

/// The directory and the rest of a name, in the fields of 155 and 100 bytes.
fn split(name: &str) -> Option<(&str, &str)> {
    if name.len() <= 100 {
        return Some(("", name));
    }
    let cuts = name.match_indices('/').map(|(at, _)| at);
    cuts.map(|at| (&name[..at], &name[at + 1..]))
        .find(|(prefix, rest)| prefix.len() <= 155 && rest.len() <= 100)
}
