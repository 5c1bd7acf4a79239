//! zstd as archives have it: frames one behind the other, some of which are only passed over.

use std::error::Error;
use std::io::{self, BufRead, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// Bytes that are decompressed at a time.
const AT_A_TIME: usize = 1 << 17;

/// The content of all frames of an input.
///
/// A frame's window is at most 100 MiB, ruzstd's own bound: 8 MiB are usual, and those made with `--ultra` may have more.
pub(super) struct Frames<R> {
    input: R,
    decoder: FrameDecoder,
    /// Whether the decoder is within a frame.
    open: bool,
}

impl<R: BufRead> Frames<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, decoder: FrameDecoder::new(), open: false }
    }

    /// Goes on to the next frame, and says whether there is one.
    fn next(&mut self) -> io::Result<bool> {
        loop {
            if self.input.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.decoder.reset(&mut self.input) {
                Ok(()) => {
                    self.open = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let skipped = io::copy(&mut (&mut self.input).take(length.into()), &mut io::sink())?;
                    if skipped != u64::from(length) {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(damaged(&error)),
            }
        }
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.open && !self.next()? {
                return Ok(0);
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let enough = BlockDecodingStrategy::UptoBytes(AT_A_TIME);
                self.decoder.decode_blocks(&mut self.input, enough).map_err(|error| damaged(&error))?;
            }
            let count = self.decoder.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            if self.decoder.is_finished() && self.decoder.can_collect() == 0 {
                let (written, counted) =
                    (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum());
                if written.is_some() && written != counted {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "a zstd frame has a wrong checksum",
                    ));
                }
                self.open = false;
            }
        }
    }
}

fn damaged(error: &FrameDecoderError) -> io::Error {
    let mut at: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = at {
        if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof)
        {
            return io::Error::new(io::ErrorKind::UnexpectedEof, "incomplete zstd frame");
        }
        at = error.source();
    }
    // The kind of error that damaged gzip is too.
    io::Error::new(io::ErrorKind::InvalidInput, format!("corrupt zstd frame: {error}"))
}
