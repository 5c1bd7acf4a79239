//! xz as archives have it (the .xz file format, version 1.2): streams one behind the other, with zeros between them.

use std::io::{self, BufRead, Read};

use lzma_rust2::XzReader;

use super::budget::{MemoryBudget, Share};

/// The magic bytes of a stream (2.1.1.1).
const MAGIC: [u8; 6] = [0xfd, b'7', b'z', b'X', b'Z', 0];

/// Bytes of a stream's header (2.1.1), behind which its first block's header begins with its size (3.1.1).
const STREAM_HEADER_SIZE: usize = 12;

/// The id of the filter LZMA2. Its only property is the dictionary size (5.3.1).
const LZMA2: u8 = 0x21;

/// Memory of a decoder besides its dictionary, in KiB: the reader counts it too.
const DECODER_KIB: u64 = 256;

/// The content of all streams of an input.
pub(super) struct Streams<'a, R: BufRead> {
    stream: Option<XzReader<Peeked<R>>>,
    /// For the dictionary of `stream`.
    share: Option<Share<'a>>,
    budget: &'a MemoryBudget,
    ended: bool,
}

impl<'a, R: BufRead> Streams<'a, R> {
    /// Begins with the first stream.
    ///
    /// # Errors
    ///
    /// It is truncated, or its dictionary takes more memory than there is.
    pub(super) fn new(input: R, budget: &'a MemoryBudget) -> io::Result<Self> {
        let mut streams = Self { stream: None, share: None, budget, ended: false };
        streams.begin(input)?;
        Ok(streams)
    }

    fn begin(&mut self, mut input: R) -> io::Result<()> {
        let (header, dictionary) = header(&mut input)?;
        if dictionary > self.budget.total() {
            return Err(dictionary_too_large(self.budget.total()));
        }
        // The share goes before a larger one is waited for.
        drop(self.share.take());
        self.share = Some(self.budget.take(dictionary));
        let most = u32::try_from(dictionary.div_ceil(1 << 10) + DECODER_KIB).unwrap_or(u32::MAX);
        let input = Peeked { header, consumed: 0, input };
        self.stream = Some(XzReader::new_mem_limit(input, false, most));
        Ok(())
    }

    /// Continues with the next stream, behind zeros that fill up to four bytes (2.2); returns whether there is one.
    fn next(&mut self) -> io::Result<bool> {
        let Some(stream) = self.stream.take() else { return Ok(false) };
        let mut input = stream.into_inner().into_rest();
        let mut zeros = 0u64;
        loop {
            let there = input.fill_buf()?;
            let count = there.iter().take_while(|byte| **byte == 0).count();
            let (ended, found) = (there.is_empty(), count < there.len());
            input.consume(count);
            zeros += count as u64;
            if !ended && !found {
                continue;
            }
            if !zeros.is_multiple_of(4) {
                return Err(damaged("bytes behind the end of a stream"));
            }
            if found {
                self.begin(input)?;
            }
            return Ok(found);
        }
    }
}

impl<R: BufRead> Read for Streams<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !buffer.is_empty() && !self.ended {
            if let Some(stream) = &mut self.stream {
                match stream.read(buffer) {
                    Ok(0) => {}
                    Err(error) if error.kind() == io::ErrorKind::OutOfMemory => {
                        return Err(dictionary_too_large(self.budget.total()));
                    }
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(incomplete()),
                    Err(error) if is_of_decoder(&error) => return Err(damaged(&error.to_string())),
                    other => return other,
                }
            }
            self.ended = !self.next()?;
        }
        Ok(0)
    }
}

/// The header of a stream and of its first block, and the size of that block's dictionary in bytes; 0 if the stream has
/// no block, or one that its reader refuses.
fn header(input: &mut impl Read) -> io::Result<(Vec<u8>, u64)> {
    let mut header = vec![0; STREAM_HEADER_SIZE + 1];
    let truncated = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => incomplete(),
        _ => error,
    };
    input.read_exact(&mut header).map_err(truncated)?;
    if !header.starts_with(&MAGIC) {
        return Err(damaged("bytes behind the end of a stream"));
    }
    let size = usize::from(header[STREAM_HEADER_SIZE]);
    if size == 0 {
        // An index follows.
        return Ok((header, 0));
    }
    header.resize(STREAM_HEADER_SIZE + (size + 1) * 4, 0);
    input.read_exact(&mut header[STREAM_HEADER_SIZE + 1..]).map_err(truncated)?;
    let dictionary = dictionary(&header[STREAM_HEADER_SIZE + 1..]).unwrap_or(0);
    Ok((header, dictionary))
}

/// The size of the dictionary that a block's header names behind its own size (3.1).
fn dictionary(mut block: &[u8]) -> Option<u64> {
    let flags = number_of_bytes(&mut block, 1)?;
    for _ in 0..(flags >> 6 & 1) + (flags >> 7 & 1) {
        variable_number(&mut block)?;
    }
    for _ in 0..=flags & 3 {
        let (filter, size) = (variable_number(&mut block)?, variable_number(&mut block)?);
        let (properties, rest) = block.split_at_checked(usize::try_from(size).ok()?)?;
        block = rest;
        if filter == u64::from(LZMA2) {
            let bits = u32::from(*properties.first()?);
            return Some(match bits {
                0..=39 => u64::from(2 | bits & 1) << (bits / 2 + 11),
                _ => u64::from(u32::MAX),
            });
        }
    }
    None
}

fn number_of_bytes(block: &mut &[u8], count: usize) -> Option<u64> {
    let (bytes, rest) = block.split_at_checked(count)?;
    *block = rest;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// A number of seven bits a byte, the lowest first (1.2).
fn variable_number(block: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for place in 0..9 {
        let byte = number_of_bytes(block, 1)?;
        number |= (byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// An input of which some bytes were read before.
struct Peeked<R> {
    header: Vec<u8>,
    consumed: usize,
    input: R,
}

impl<R> Peeked<R> {
    /// The input, once the header was read.
    fn into_rest(self) -> R {
        self.input
    }
}

impl<R: Read> Read for Peeked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let header = &self.header[self.consumed..];
        if header.is_empty() {
            return self.input.read(buffer);
        }
        let count = header.len().min(buffer.len());
        buffer[..count].copy_from_slice(&header[..count]);
        self.consumed += count;
        Ok(count)
    }
}

/// Whether an error says that the data is wrong, and not that it cannot be read.
fn is_of_decoder(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, Unsupported};
    error.raw_os_error().is_none() && matches!(error.kind(), InvalidData | InvalidInput | Unsupported)
}

fn dictionary_too_large(most: u64) -> io::Error {
    let words = format!(
        "its xz dictionary is larger than {} MiB, the most that is supported; compress it again with `xz -9` or less",
        most >> 20
    );
    io::Error::new(io::ErrorKind::Unsupported, words)
}

fn incomplete() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "incomplete xz stream")
}

fn damaged(why: &str) -> io::Error {
    // The kind of error that damaged gzip is too.
    io::Error::new(io::ErrorKind::InvalidInput, format!("corrupt xz stream: {why}"))
}

#[cfg(test)]
mod tests;
