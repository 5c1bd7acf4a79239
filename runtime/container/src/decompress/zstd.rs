//! zstd as archives have it (RFC 8878): frames one behind the other, some of which are only passed over.

use std::io::{self, BufRead, Read};

use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, get_error_name};

use super::budget::{MemoryBudget, Share};

/// The magic number of a frame with content (RFC 8878, 3.1.1).
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The largest window that the library is to take, as a power of two. Of a larger one than the budget only so much is
/// used as the frame has content, and that is counted here: many small archives are made with a large window.
const MAX_WINDOW_LOG: u32 = 31;

/// The content of all frames of an input.
pub(super) struct Frames<'a, R> {
    input: R,
    context: DCtx<'static>,
    /// For the window of `context`, which keeps it from frame to frame.
    share: Option<Share<'a>>,
    budget: &'a MemoryBudget,
    frame: Option<Frame>,
}

/// A frame that is being read.
struct Frame {
    /// The part of its header that had to be read before, and how much of that the library has consumed.
    header: Vec<u8>,
    consumed: usize,
    window: u64,
    /// Bytes of its content so far.
    content: u64,
}

impl<'a, R: BufRead> Frames<'a, R> {
    pub(super) fn new(input: R, budget: &'a MemoryBudget) -> Self {
        Self { input, context: DCtx::create(), share: None, budget, frame: None }
    }

    /// Continues with the next frame, and returns whether there is one.
    fn next(&mut self) -> io::Result<bool> {
        if self.input.fill_buf()?.is_empty() {
            return Ok(false);
        }
        let (header, window) = header(&mut self.input).map_err(incomplete)?;
        if self.share.as_ref().is_none_or(|share| share.bytes() < window.min(self.budget.total())) {
            // The memory goes before the share in it, and that before a larger one is waited for.
            self.context = DCtx::create();
            self.context.set_parameter(DParameter::WindowLogMax(MAX_WINDOW_LOG)).map_err(damaged)?;
            drop(self.share.take());
            self.share = Some(self.budget.take(window));
        }
        self.frame = Some(Frame { header, consumed: 0, window, content: 0 });
        Ok(true)
    }
}

impl<R: BufRead> Read for Frames<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if buffer.is_empty() || self.frame.is_none() && !self.next()? {
                return Ok(0);
            }
            let Some(frame) = &mut self.frame else { continue };
            let from_header = frame.consumed < frame.header.len();
            let there = if from_header { &frame.header[frame.consumed..] } else { self.input.fill_buf()? };
            let ended = there.is_empty();
            let (mut from, mut to) = (InBuffer::around(there), OutBuffer::around(&mut *buffer));
            let more = self.context.decompress_stream(&mut to, &mut from).map_err(damaged)?;
            let (used, count) = (from.pos(), to.pos());
            if from_header {
                frame.consumed += used;
            } else {
                self.input.consume(used);
            }
            frame.content += count as u64;
            if frame.content > self.budget.total() && frame.window > self.budget.total() {
                return Err(window_too_large(frame.window, self.budget.total()));
            }
            if more == 0 {
                self.frame = None;
            } else if ended && count == 0 {
                return Err(incomplete(io::ErrorKind::UnexpectedEof.into()));
            }
            if count > 0 {
                return Ok(count);
            }
        }
    }
}

/// The beginning of a frame, up to the window size, and that size in bytes (RFC 8878, 3.1.1.1).
///
/// For anything but a frame with content: the first four bytes, and 0.
fn header(input: &mut impl Read) -> io::Result<(Vec<u8>, u64)> {
    let mut header = vec![0; 4];
    input.read_exact(&mut header)?;
    if header != MAGIC {
        return Ok((header, 0));
    }
    let mut more = |count: usize| {
        let from = header.len();
        header.resize(from + count, 0);
        input.read_exact(&mut header[from..]).map(|()| header[from..].to_vec())
    };
    let described = more(1)?[0];
    let in_one_piece = described & 0x20 != 0;
    let window = if in_one_piece {
        let dictionary = [0, 1, 2, 4][usize::from(described & 3)];
        more(dictionary)?;
        // The window is the content; its size is a field of this many bytes.
        let written = more(1 << (described >> 6))?;
        let size = written.iter().rev().fold(0, |size, byte| size << 8 | u64::from(*byte));
        if written.len() == 2 { size + 256 } else { size }
    } else {
        let (exponent, mantissa) = {
            let byte = more(1)?[0];
            (byte >> 3, u64::from(byte & 7))
        };
        let base = 1u64 << (10 + exponent);
        base + base / 8 * mantissa
    };
    Ok((header, window))
}

fn window_too_large(window: u64, most: u64) -> io::Error {
    let words = format!(
        "its zstd window is {} MiB, but at most {} MiB are supported; compress it again without `--long` \
         and `--ultra`",
        window.div_ceil(1 << 20),
        most >> 20
    );
    io::Error::new(io::ErrorKind::Unsupported, words)
}

fn incomplete(error: io::Error) -> io::Error {
    if error.kind() != io::ErrorKind::UnexpectedEof {
        return error;
    }
    io::Error::new(io::ErrorKind::UnexpectedEof, "incomplete zstd frame")
}

fn damaged(code: usize) -> io::Error {
    // The kind of error that damaged gzip is too.
    io::Error::new(io::ErrorKind::InvalidInput, format!("corrupt zstd frame: {}", get_error_name(code)))
}

#[cfg(test)]
mod tests;
