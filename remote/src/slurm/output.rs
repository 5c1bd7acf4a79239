//! The output of a run, read again and again as it grows.

use std::collections::BTreeMap;

use jobc_sys::error::Result;

use super::access::Access;
use super::shell;

const LOGS: &str = include_str!("logs.sh");
/// Bytes read of a file at a time.
const MAX_PIECE: u64 = 4 << 20;

/// New output of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    /// Its path in the directory of the run: `logs/train-0.log`, `logs/train-0.2.log`, `out/job.log`.
    pub(crate) file: &'a str,
    pub(crate) offset: u64,
    pub(crate) bytes: &'a [u8],
}

/// Which existing output is shown.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct First {
    /// This many lines from the end of each file.
    pub(crate) tail: Option<u64>,
    /// Output written after this time, in seconds since 1970.
    pub(crate) since: Option<u64>,
}

/// The read positions in the files of a run.
#[derive(Default)]
pub(crate) struct Output {
    /// How much of each file was read.
    offsets: BTreeMap<String, u64>,
    /// The beginning of a line whose end was not written yet.
    partial: BTreeMap<String, Vec<u8>>,
    is_begun: bool,
}

impl Output {
    /// Reads new output. `line` gets the file and each line without its end. Returns the state of the run, and whether
    /// there was new output.
    pub(crate) fn poll(
        &mut self,
        access: &Access,
        run: &str,
        first: First,
        line: &mut dyn FnMut(&str, &[u8]),
    ) -> Result<(String, bool)> {
        let text = |limit: Option<u64>| limit.map(|limit| limit.to_string()).unwrap_or_default();
        // A file with nothing that is new enough is not shown, so its beginning is looked for again.
        let (tail, since) = (text(first.tail.filter(|_| !self.is_begun)), text(first.since));
        self.is_begun = true;
        let max = MAX_PIECE.to_string();
        let offsets: Vec<String> = self.offsets.values().map(u64::to_string).collect();
        let mut words = vec![run, &max, &tail, &since];
        words.extend(self.offsets.keys().zip(&offsets).flat_map(|(file, offset)| [file.as_str(), offset]));
        let output = shell::run(access, LOGS, &words, None)?;
        shell::check("read the output of the job", &output)?;
        let (files, pieces) = split(&output.stdout);
        let has_new = !pieces.is_empty();
        for piece in &pieces {
            self.show(piece, line);
        }
        Ok((String::from_utf8_lossy(files).into_owned(), has_new))
    }

    /// Shows incomplete lines when no more output will come.
    pub(crate) fn finish(&mut self, line: &mut dyn FnMut(&str, &[u8])) {
        for (file, partial) in std::mem::take(&mut self.partial) {
            if !partial.is_empty() {
                line(&file, &partial);
            }
        }
    }

    fn show(&mut self, piece: &Piece<'_>, line: &mut dyn FnMut(&str, &[u8])) {
        let end = piece.offset + piece.bytes.len() as u64;
        self.offsets.insert(piece.file.to_owned(), end);
        let partial = self.partial.entry(piece.file.to_owned()).or_default();
        for part in piece.bytes.split_inclusive(|byte| *byte == b'\n') {
            partial.extend_from_slice(part);
            if let Some(text) = partial.strip_suffix(b"\n") {
                line(piece.file, text.strip_suffix(b"\r").unwrap_or(text));
                partial.clear();
            }
        }
    }
}

/// The part about the run, and the pieces after it.
fn split(bytes: &[u8]) -> (&[u8], Vec<Piece<'_>>) {
    let Some(at) = bytes.windows(2).position(|pair| pair == b"\x1e\n") else { return (bytes, vec![]) };
    let (files, mut rest) = (&bytes[..at], &bytes[at + 2..]);
    let mut pieces = Vec::new();
    while let Some(piece) = first_piece(rest) {
        let (piece, after) = piece;
        pieces.push(piece);
        rest = after;
    }
    (files, pieces)
}

fn first_piece(bytes: &[u8]) -> Option<(Piece<'_>, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let mut words = std::str::from_utf8(&bytes[..end]).ok()?.split(' ');
    let file = words.next()?;
    let offset: u64 = words.next()?.parse().ok()?;
    let length: usize = words.next()?.parse().ok()?;
    let rest = &bytes[end + 1..];
    // A file that was truncated meanwhile is shorter; then nothing is known about the rest.
    let bytes = rest.get(..length).unwrap_or(rest);
    Some((Piece { file, offset, bytes }, &rest[bytes.len()..]))
}

/// The task of a file that has the time and the attempt in each line.
pub(crate) fn task_of_record(file: &str) -> Option<&str> {
    let mut parts = file.strip_prefix("records/")?.split('/');
    (parts.nth(1) == Some("logs")).then(|| parts.next())?
}

/// The task and attempt of a file; none for the output of a batch script.
pub(crate) fn task_of(file: &str) -> Option<(&str, u32)> {
    let name = file.strip_prefix("logs/")?.strip_suffix(".log")?;
    match name.split_once('.') {
        Some((task, attempt)) => Some((task, attempt.parse().ok()?)),
        None => Some((name, 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_framed_by_their_length() {
        let bytes = b"x/submitted:1\n\x1e\nlogs/a-0.log 0 5\none\ntlogs/a-0.2.log 7 3\nwo\n";
        let (files, pieces) = split(bytes);
        assert_eq!(files, b"x/submitted:1\n");
        assert_eq!(
            pieces,
            [
                Piece { file: "logs/a-0.log", offset: 0, bytes: b"one\nt" },
                Piece { file: "logs/a-0.2.log", offset: 7, bytes: b"wo\n" },
            ]
        );
        assert_eq!(split(b"x").1, []);
    }

    #[test]
    fn complete_lines_are_shown_once() {
        let mut output = Output::default();
        let mut lines = Vec::new();
        let mut line =
            |file: &str, text: &[u8]| lines.push(format!("{file} {}", String::from_utf8_lossy(text)));
        for (offset, bytes) in [(0, "one\r\ntw"), (7, "o\n"), (9, "end")] {
            output.show(&Piece { file: "f", offset, bytes: bytes.as_bytes() }, &mut line);
        }
        assert_eq!(output.offsets["f"], 12);
        output.finish(&mut line);
        assert_eq!(lines, ["f one", "f two", "f end"]);
    }

    #[test]
    fn files_belong_to_attempts() {
        assert_eq!(task_of("logs/train-m1-0.log"), Some(("train-m1-0", 1)));
        assert_eq!(task_of("logs/train-0.12.log"), Some(("train-0", 12)));
        assert_eq!(task_of("out/job.log"), None);
        assert_eq!(task_of_record("records/job.2/logs/train-0/000001.log"), Some("train-0"));
        assert_eq!(task_of_record("logs/train-0.log"), None);
    }
}
