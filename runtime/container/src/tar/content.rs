//! The content of a file of an archive, as its reader sees it: with zeros where a sparse file has holes.

use std::io::{self, BufRead, Read};

use super::entry::Entry;
use super::read::Reader;

/// The content of the present entry of an archive.
#[derive(Debug)]
pub struct Content<'a, R> {
    reader: &'a mut Reader<R>,
    /// Offsets and lengths of the data that was not read, the last first.
    pieces: Vec<(u64, u64)>,
    at: u64,
    size: u64,
}

impl<'a, R: BufRead> Content<'a, R> {
    /// The content of the entry that the reader has returned last.
    pub fn new(reader: &'a mut Reader<R>, entry: &Entry) -> Self {
        let mut pieces = entry.sparse.clone().unwrap_or_else(|| vec![(0, entry.size)]);
        pieces.reverse();
        Self { reader, pieces, at: 0, size: entry.size }
    }
}

impl<R: BufRead> Read for Content<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.pieces.pop_if(|(offset, length)| *offset + *length <= self.at).is_some() {}
        let (end, is_data) = match self.pieces.last() {
            Some((offset, length)) if *offset <= self.at => (offset + length, true),
            Some((offset, _)) => (*offset, false),
            None => (self.size, false),
        };
        let mut count = usize::try_from(end - self.at).unwrap_or(usize::MAX).min(buffer.len());
        if is_data && count > 0 {
            let data = self.reader.data()?;
            if data.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            count = count.min(data.len());
            buffer[..count].copy_from_slice(&data[..count]);
            self.reader.consume(count);
        } else {
            buffer[..count].fill(0);
        }
        self.at += count as u64;
        Ok(count)
    }
}
