//! The input and the output of a command.

use std::io;

/// The output of a command, and its exit status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Its exit code; 128 and the signal's number if a signal ended it.
    pub status: i32,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
}

impl Output {
    /// Standard output as text; bytes that are not UTF-8 are replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// The line that says why a command failed: the first of standard error that names a cause, or else the last one that
    /// is not empty, or that of standard output. After a cause `tar` prints only that there was one.
    pub fn reason(&self) -> String {
        let last = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
        };
        let errors = String::from_utf8_lossy(&self.stderr);
        let is_cause = |line: &&str| CAUSES.iter().any(|cause| line.contains(cause));
        let cause = errors.lines().map(str::trim).find(is_cause).map(str::to_owned);
        cause.or_else(|| last(&self.stderr)).or_else(|| last(&self.stdout)).unwrap_or_default()
    }

    /// Advice for a cause outside of jobc.
    pub(crate) fn advice(&self) -> Option<&'static str> {
        let errors = String::from_utf8_lossy(&self.stderr);
        let is_full = FULL.iter().any(|cause| errors.contains(cause));
        is_full.then_some("make room there, or set `directory` of the target to another file system")
    }
}

/// The C library's messages for a full disk or quota.
const FULL: [&str; 2] = ["No space left on device", "Disk quota exceeded"];
/// Other causes that `tar` and `sh` print before their last line.
const CAUSES: [&str; 4] =
    ["No space left on device", "Disk quota exceeded", "Read-only file system", "Permission denied"];

/// Writes the input of a command.
pub(crate) type Input<'a> = &'a (dyn Fn(&mut dyn io::Write) -> io::Result<()> + Sync);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_of_a_failure_is_reported() {
        let output = |stderr: &str| Output {
            status: 2,
            stdout: b"out\n".to_vec(),
            stderr: stderr.as_bytes().to_vec(),
        };
        let full = "tar: ab: Cannot write: No space left on device\ntar: Exiting with failure status due to previous errors\n";
        assert_eq!(output(full).reason(), "tar: ab: Cannot write: No space left on device");
        assert!(output(full).advice().is_some());
        assert_eq!(output("first\nsecond\n\n").reason(), "second");
        assert_eq!((output("").reason().as_str(), output("").advice()), ("out", None));
    }
}
