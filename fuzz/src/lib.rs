//! What several of the programs in `targets/` share.

pub mod compile;

use std::io::Read as _;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use jobc_container::decompress::{LimitedReader, decompressing_reader};

/// A directory in memory for what a program writes; `fuzz/run` sets `TMPDIR` and removes it.
pub fn scratch() -> PathBuf {
    std::env::temp_dir()
}

/// Reads at most 64 MiB of a content that begins with `magic`, in pieces.
///
/// # Panics
///
/// More is read than the limit.
pub fn decompress(magic: &[u8], bytes: &[u8]) {
    const MOST: u64 = 64 << 20;
    let whole = [magic, bytes].concat();
    let canceled = AtomicBool::new(false);
    let Ok(content) = decompressing_reader(&whole[..]) else { return };
    let (mut content, mut piece, mut total) = (LimitedReader::new(content, MOST, &canceled), [0; 1 << 16], 0);
    while let Ok(count @ 1..) = content.read(&mut piece) {
        total += count as u64;
    }
    assert!(total <= MOST, "{total} bytes are above the limit");
}
