//! The output of a run, read again and again as it grows.

use std::collections::BTreeMap;

use jobc_sys::error::Result;

use super::access::Access;
use super::login::{NewOutput, Piece};
use super::snapshot::RunFiles;

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
    /// Reads new output, at first this many lines from the end of each file. `line` gets the file and each line without its end. Returns the state of the run, and whether
    /// there was new output.
    pub(crate) fn poll(
        &mut self,
        access: &Access,
        run: &str,
        tail: Option<u64>,
        line: &mut dyn FnMut(&str, &[u8]),
    ) -> Result<(RunFiles, bool)> {
        let question = NewOutput {
            run: run.to_owned(),
            tail: tail.filter(|_| !self.is_begun),
            shown: self.offsets.clone(),
        };
        self.is_begun = true;
        let (files, pieces) = access.ask("read the output of the job", question)?;
        for piece in &pieces {
            self.show(piece, line);
        }
        Ok((files, !pieces.is_empty()))
    }

    /// Shows incomplete lines when no more output will come.
    pub(crate) fn finish(&mut self, line: &mut dyn FnMut(&str, &[u8])) {
        for (file, partial) in std::mem::take(&mut self.partial) {
            if !partial.is_empty() {
                line(&file, &partial);
            }
        }
    }

    fn show(&mut self, piece: &Piece, line: &mut dyn FnMut(&str, &[u8])) {
        let end = piece.offset + piece.bytes.0.len() as u64;
        self.offsets.insert(piece.file.clone(), end);
        let partial = self.partial.entry(piece.file.clone()).or_default();
        for part in piece.bytes.0.split_inclusive(|byte| *byte == b'\n') {
            partial.extend_from_slice(part);
            if let Some(text) = partial.strip_suffix(b"\n") {
                line(&piece.file, text.strip_suffix(b"\r").unwrap_or(text));
                partial.clear();
            }
        }
    }
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
    use crate::slurm::login::Bytes;

    #[test]
    fn complete_lines_are_shown_once() {
        let mut output = Output::default();
        let mut lines = Vec::new();
        let mut line =
            |file: &str, text: &[u8]| lines.push(format!("{file} {}", String::from_utf8_lossy(text)));
        for (offset, bytes) in [(0, "one\r\ntw"), (7, "o\n"), (9, "end")] {
            let bytes = Bytes(bytes.as_bytes().to_vec());
            output.show(&Piece { file: "f".to_owned(), offset, bytes }, &mut line);
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
