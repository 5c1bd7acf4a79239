//! What is hashed of a file: its bytes, or for a large one its blocks that are not zeros, so that holes take no time.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::Stat;

use jobc_schema::digest::Hasher;
use jobc_sys::sparse::next_data_range;

/// From this size on a file is hashed by blocks, wherever it has holes: another file system may store it without.
const MIN_LARGE: u64 = 64 << 20;
/// The size of the blocks.
const BLOCK_SIZE: u64 = 1 << 16;

/// Hashes the content of a file until `stopped` has become true.
pub(super) fn content(
    file: &mut File,
    status: &Stat,
    hasher: &mut Hasher,
    stopped: &AtomicBool,
) -> io::Result<()> {
    let size = u64::try_from(status.st_size).unwrap_or_default();
    let mut buffer = vec![0; 1 << 16];
    if size < MIN_LARGE {
        hasher.update(&[0]);
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(()),
                count => hasher.update(&buffer[..count]),
            }
        }
    }
    hasher.update(&[1]);
    hasher.update(&size.to_le_bytes());
    let mut at = 0;
    while at < size {
        let (begin, end) = next_data_range(file, at, size)?;
        if begin == end {
            break;
        }
        at = begin / BLOCK_SIZE * BLOCK_SIZE;
        file.seek(SeekFrom::Start(at))?;
        while at < end {
            if stopped.load(Ordering::Relaxed) {
                return Err(io::Error::other("canceled"));
            }
            let count = read_block(file, &mut buffer)?;
            if buffer[..count].iter().any(|byte| *byte != 0) {
                hasher.update(&at.to_le_bytes());
                hasher.update(&buffer[..count]);
            }
            at += BLOCK_SIZE;
        }
    }
    Ok(())
}

/// Reads a whole block, or what is left of the file.
fn read_block(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut count = 0;
    while count < buffer.len() {
        match file.read(&mut buffer[count..])? {
            0 => break,
            more => count += more,
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use super::*;

    fn digest(make: impl Fn(&File)) -> String {
        let mut file = tempfile::tempfile().unwrap();
        make(&file);
        let status = rustix::fs::fstat(&file).unwrap();
        let mut hasher = Hasher::default();
        content(&mut file, &status, &mut hasher, &AtomicBool::new(false)).unwrap();
        hasher.finish().to_string()
    }

    #[test]
    fn a_file_has_the_same_digest_with_and_without_holes() {
        let size = MIN_LARGE + 12_345;
        let sparse = |at: u64, byte: u8| {
            move |file: &File| {
                file.set_len(size).unwrap();
                file.write_all_at(&[byte; 3], at).unwrap();
            }
        };
        let full = |file: &File| {
            for at in 0..=size / BLOCK_SIZE {
                let count = usize::try_from((size - at * BLOCK_SIZE).min(BLOCK_SIZE)).unwrap();
                file.write_all_at(&vec![0; count], at * BLOCK_SIZE).unwrap();
            }
            file.write_all_at(&[7; 3], 5_000_000).unwrap();
        };
        let expected = digest(sparse(5_000_000, 7));
        assert_eq!(digest(full), expected);
        for (at, byte) in [(5_000_001, 7), (5_000_000, 8), (5_000_000 + BLOCK_SIZE, 7), (size - 3, 7)] {
            assert_ne!(digest(sparse(at, byte)), expected, "{byte} at {at}");
        }
        assert_ne!(
            digest(|file| file.set_len(MIN_LARGE).unwrap()),
            digest(|file| file.set_len(MIN_LARGE + 1).unwrap())
        );
    }

    #[test]
    fn holes_take_no_time() {
        let begun = std::time::Instant::now();
        digest(|file| file.set_len(8 << 40).unwrap());
        assert!(begun.elapsed() < std::time::Duration::from_secs(10));
    }
}
