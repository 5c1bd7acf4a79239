//! The compression of archives and layers, detected from their first bytes, not from a name or media type.

mod budget;
pub mod read_ahead;
mod xz;
mod zstd;

use std::io::{self, BufRead, Read};
use std::sync::atomic::{AtomicBool, Ordering};

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;

/// The compression of an archive or a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// gzip (RFC 1952).
    Gzip,
    /// zstd (RFC 8878).
    Zstd,
    /// xz (the .xz file format), which no media type of layers names.
    Xz,
    /// bzip2, which no media type of layers names.
    Bzip2,
}

impl Format {
    /// The format of data by its first six bytes; `None` if it is not compressed.
    pub fn of(beginning: &[u8]) -> Option<Self> {
        match beginning {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            // A frame, or a skippable frame.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Zstd),
            [0xfd, b'7', b'z', b'X', b'Z', ..] => Some(Self::Xz),
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some(Self::Bzip2),
            _ => None,
        }
    }
}

/// The bytes of a file, decompressed if they are compressed: all its members, frames or streams, one after the other.
///
/// # Errors
///
/// The file cannot be read, or is a zip archive. Damaged data is an error when it is read.
pub fn decompressing_reader<'a>(mut file: impl BufRead + Send + 'a) -> io::Result<Box<dyn Read + Send + 'a>> {
    let beginning = file.fill_buf()?;
    match Format::of(beginning) {
        Some(Format::Gzip) => Ok(Box::new(MultiGzDecoder::new(file))),
        Some(Format::Zstd) => Ok(Box::new(zstd::Frames::new(file, &budget::WINDOWS))),
        Some(Format::Xz) => Ok(Box::new(xz::Streams::new(file, &budget::WINDOWS)?)),
        Some(Format::Bzip2) => Ok(Box::new(MultiBzDecoder::new(file))),
        None if beginning.starts_with(b"PK\x03\x04") => {
            let words = "it is a zip archive; make a tar archive of its content";
            Err(io::Error::new(io::ErrorKind::Unsupported, words))
        }
        None => Ok(Box::new(file)),
    }
}

/// Content of at most this many bytes; fails soon after it is canceled.
#[derive(Debug)]
pub struct LimitedReader<'a, R> {
    inner: R,
    remaining: u64,
    canceled: &'a AtomicBool,
}

impl<'a, R> LimitedReader<'a, R> {
    /// Bounds a content to `most` bytes.
    pub fn new(inner: R, most: u64, stopped: &'a AtomicBool) -> Self {
        Self { inner, remaining: most, canceled: stopped }
    }
}

impl<R: Read> Read for LimitedReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.canceled.load(Ordering::Relaxed) {
            return Err(io::Error::other("canceled"));
        }
        let count = self.inner.read(buffer)?;
        self.remaining = self.remaining.checked_sub(count as u64).ok_or_else(|| {
            io::Error::new(io::ErrorKind::FileTooLarge, "its decompressed size is above the limit")
        })?;
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
