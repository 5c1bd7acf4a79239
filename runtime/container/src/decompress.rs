//! The compression of archives and layers, detected from their first bytes, not from a name or media type.

mod budget;
pub mod read_ahead;
mod zstd;

use std::io::{self, BufRead, Read};
use std::sync::atomic::{AtomicBool, Ordering};

use flate2::bufread::MultiGzDecoder;

/// The bytes of a file, decompressed where they are compressed by gzip (RFC 1952) or zstd (RFC 8878); all members or
/// frames of it, one behind the other.
///
/// # Errors
///
/// They cannot be read, or are compressed by something else. What is damaged is an error where it is read.
pub fn decompressing_reader<'a>(mut file: impl BufRead + Send + 'a) -> io::Result<Box<dyn Read + Send + 'a>> {
    let other = |by: &str, program: &str| {
        let words =
            format!("it is compressed with {by}; run `{program}` on it, or compress it with gzip or zstd");
        Err(io::Error::new(io::ErrorKind::Unsupported, words))
    };
    match file.fill_buf()? {
        [0x1f, 0x8b, ..] => Ok(Box::new(MultiGzDecoder::new(file))),
        // A frame, or a skippable frame.
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
            Ok(Box::new(zstd::Frames::new(file, &zstd::WINDOW_BUDGET)))
        }
        [0xfd, b'7', b'z', b'X', b'Z', ..] => other("xz", "unxz"),
        [b'B', b'Z', b'h', ..] => other("bzip2", "bunzip2"),
        [b'P', b'K', 3, 4, ..] => {
            let words = "it is a zip archive; make a tar archive of its content";
            Err(io::Error::new(io::ErrorKind::Unsupported, words))
        }
        _ => Ok(Box::new(file)),
    }
}

/// A content of at most so many bytes, which ends with an error soon after it is canceled.
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
