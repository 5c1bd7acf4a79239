//! Reading a part from its end.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use super::line::parse;
use jobc_place::logs::Line;

/// How much is read at once.
const BLOCK: u64 = 64 << 10;

/// A part, read from its end.
#[derive(Debug)]
pub(super) struct BackwardReader<'a> {
    file: &'a File,
    /// Where in the part `bytes` begin.
    at: u64,
    bytes: Vec<u8>,
}

impl<'a> BackwardReader<'a> {
    pub(super) fn new(file: &'a File) -> io::Result<Self> {
        Ok(Self { file, at: file.metadata()?.len(), bytes: vec![] })
    }

    /// The start of the last `left` wanted lines; subtracts those that were found from `left`. Pieces belong to their
    /// line.
    pub(super) fn last(&mut self, left: &mut u64, wants: impl Fn(&Line<'_>) -> bool) -> io::Result<u64> {
        let mut beginning = self.at;
        if self.bytes.is_empty() && !self.read_block()? {
            return Ok(0);
        }
        // A line that is being written is shown when it is complete.
        while !self.bytes.ends_with(b"\n") {
            let whole = self.bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
            self.bytes.truncate(whole);
            if whole == 0 && !self.read_block()? {
                return Ok(0);
            }
        }
        beginning = beginning.min(self.at + self.bytes.len() as u64);
        loop {
            let Some((_, before)) = self.bytes.split_last() else {
                if self.read_block()? {
                    continue;
                }
                return Ok(0);
            };
            let start = match before.iter().rposition(|&byte| byte == b'\n') {
                Some(end) => end + 1,
                None if self.read_block()? => continue,
                None => 0,
            };
            let line = parse(&self.bytes[start..self.bytes.len() - 1]);
            if line.is_some_and(|line| line.ends && wants(&line)) {
                if *left == 0 {
                    return Ok(beginning);
                }
                *left -= 1;
            }
            beginning = self.at + start as u64;
            self.bytes.truncate(start);
        }
    }

    /// Reads the block before the buffered one; false at the beginning.
    fn read_block(&mut self) -> io::Result<bool> {
        let from = self.at.saturating_sub(BLOCK);
        let mut block = vec![0; usize::try_from(self.at - from).unwrap_or(0)];
        self.file.read_exact_at(&mut block, from)?;
        let read = !block.is_empty();
        block.append(&mut self.bytes);
        (self.bytes, self.at) = (block, from);
        Ok(read)
    }
}
