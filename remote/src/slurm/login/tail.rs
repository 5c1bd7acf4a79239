//! Where lines of a file begin, found from its end.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// How much is read at first.
const BLOCK: u64 = 64 << 10;

/// Where the last lines of a file of this size begin. Of records a line may be in parts, of which the last has an `F`.
pub(super) fn last_lines(file: &File, size: u64, count: u64, is_record: bool) -> io::Result<u64> {
    let mut block = BLOCK;
    loop {
        let start = size.saturating_sub(block);
        let bytes = read(file, start, size)?;
        if let Some(at) = begin(&bytes, count, is_record, start == 0) {
            return Ok(start + at as u64);
        }
        block *= 4;
    }
}

/// The same in the end of a file, unless its beginning is needed.
fn begin(bytes: &[u8], count: u64, is_record: bool, is_whole: bool) -> Option<usize> {
    let (mut at, mut lines) = (bytes.len(), 0);
    while at > 0 {
        let start = bytes[..at - 1].iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        if start == 0 && !is_whole {
            return None;
        }
        let line = &bytes[start..at];
        let ends = !is_record || at == bytes.len() || line.split(|byte| *byte == b' ').nth(2) == Some(b"F");
        lines += u64::from(ends);
        if lines > count {
            return Some(at);
        }
        at = start;
    }
    is_whole.then_some(0)
}

/// A part of a file, or what is left of it.
pub(super) fn read(file: &File, start: u64, end: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(end.saturating_sub(start)).unwrap_or_default()];
    let mut length = 0;
    while length < bytes.len() {
        match file.read_at(&mut bytes[length..], start + length as u64) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> (File, u64) {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(text.as_bytes(), 0).unwrap();
        (file, text.len() as u64)
    }

    #[test]
    fn the_last_lines_are_those_of_tail() {
        for (text, count, left) in [
            ("a\nb\nc\n", 2, "b\nc\n"),
            ("a\nb\nc", 2, "b\nc"),
            ("a\nb\n", 0, ""),
            ("a\n", 9, "a\n"),
            ("\n\n\n", 1, "\n"),
            ("", 3, ""),
        ] {
            let (file, size) = file(text);
            let at = last_lines(&file, size, count, false).unwrap();
            assert_eq!(&text[usize::try_from(at).unwrap()..], left, "{text:?} {count}");
        }
        let long = "x".repeat(100_000);
        let (file, size) = file(&format!("{long}\n{long}\n{long}\n"));
        assert_eq!(last_lines(&file, size, 2, false).unwrap(), 100_001);
    }

    #[test]
    fn a_line_of_a_record_may_be_in_parts() {
        let text = "1 out F 1 a\n2 out P 1 b\n3 out F 1 c\n";
        let (file, size) = file(text);
        assert_eq!(last_lines(&file, size, 1, true).unwrap(), 12);
        assert_eq!(last_lines(&file, size, 2, true).unwrap(), 0);
    }
}
