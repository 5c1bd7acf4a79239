//! Archives, opened for reading.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use super::errors::unreadable;
use jobc_container::decompress::decompressing_reader;
use jobc_sys::error::{Error, Kind, Result};

/// The bytes of an archive, decompressed.
pub(super) fn open(source: &Path) -> Result<Box<dyn Read + Send>> {
    let file = File::open(source).map_err(|error| {
        Error::new(Kind::Config, format!("cannot open `{}`", source.display())).because(error)
    })?;
    decompressing_reader(BufReader::with_capacity(1 << 18, file)).map_err(|error| unreadable(source, &error))
}
