//! What a command reads, and what it printed.

use std::io;

/// What a command printed, and its exit status.
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

    /// The last line of standard error that is not empty, or else of standard output.
    pub fn last_line(&self) -> String {
        let last = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
        };
        last(&self.stderr).or_else(|| last(&self.stdout)).unwrap_or_default()
    }
}

/// Writes what a command reads.
pub(crate) type Input<'a> = &'a (dyn Fn(&mut dyn io::Write) -> io::Result<()> + Sync);
