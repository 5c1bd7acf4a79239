//! What archives are compressed by, told apart by how they begin.

use std::io::{self, BufRead, Read};

use flate2::bufread::MultiGzDecoder;

/// The bytes of a file, decompressed where they are compressed by something known here.
///
/// # Errors
///
/// They cannot be read, or are compressed by something else.
pub fn decompressed<'a>(mut file: impl BufRead + Send + 'a) -> io::Result<Box<dyn Read + Send + 'a>> {
    let other = |by: &str, program: &str| {
        let words =
            format!("it is compressed by {by}; run `{program}` on it, or compress it by gzip or zstd");
        Err(io::Error::new(io::ErrorKind::Unsupported, words))
    };
    match file.fill_buf()? {
        [0x1f, 0x8b, ..] => Ok(Box::new(MultiGzDecoder::new(file))),
        [0xfd, b'7', b'z', b'X', b'Z', ..] => other("xz", "unxz"),
        [b'B', b'Z', b'h', ..] => other("bzip2", "bunzip2"),
        [b'P', b'K', 3, 4, ..] => {
            let words = "it is a zip archive; make a tar archive of what is in it";
            Err(io::Error::new(io::ErrorKind::Unsupported, words))
        }
        _ => Ok(Box::new(file)),
    }
}
