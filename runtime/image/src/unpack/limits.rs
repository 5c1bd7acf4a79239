//! Limits of an unpacked layer, so that a few bytes cannot fill a disk.

use jobc_sys::error::{Error, Kind, Result};

/// Limits on one unpacked layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of its archive once it is decompressed.
    pub bytes: u64,
    /// Entries: each takes an inode.
    pub entries: u64,
}

impl Default for Limits {
    /// Ten times the largest images that are in use: 100 GiB and ten million files.
    fn default() -> Self {
        Self { bytes: 100 << 30, entries: 10_000_000 }
    }
}

impl Limits {
    /// The variable that raises or lowers [`Self::bytes`].
    pub const VARIABLE: &'static str = "JOBC_LAYER_LIMIT";

    /// The default limits, or the bytes in `JOBC_LAYER_LIMIT`.
    pub fn of_environment() -> Result<Self> {
        let Some(text) = std::env::var_os(Self::VARIABLE) else { return Ok(Self::default()) };
        let bytes = text.to_str().and_then(|text| text.parse().ok()).filter(|bytes| *bytes > 0);
        let bytes = bytes.ok_or_else(|| {
            let message = format!("`{}={}` is not a number of bytes", Self::VARIABLE, text.to_string_lossy());
            Error::new(Kind::Config, message).help("write a decimal number, such as 200000000000")
        })?;
        Ok(Self { bytes, ..Self::default() })
    }
}
