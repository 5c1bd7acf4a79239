//! Small files that the kernel makes up when they are read: below /proc and /sys.
//!
//! They have no size to go by, so the standard library feels its way with five or six calls. One `read` is enough where
//! the whole of it fits: the kernel then gives all there is (seq_file.rst, "The iterator interface").

use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Reads a file of the kernel's that is smaller than the buffer.
///
/// # Errors
///
/// The kernel's, and `EFBIG` where the buffer is full.
pub(crate) fn read(path: impl AsRef<Path>, buffer: &mut [u8]) -> Result<&[u8], Errno> {
    let file = rustix::fs::open(path.as_ref(), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let size = rustix::io::retry_on_intr(|| rustix::io::read(&file, &mut *buffer))?;
    if size == buffer.len() { Err(Errno::FBIG) } else { Ok(&buffer[..size]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_whole_or_not_at_all() {
        let whole = std::fs::read("/proc/self/status").unwrap();
        let mut buffer = [0; 8192];
        let read = read("/proc/self/status", &mut buffer).unwrap();
        // The numbers in it change from one look to the next, their names do not.
        let names = |bytes: &[u8]| -> Vec<String> {
            let text = String::from_utf8_lossy(bytes).into_owned();
            text.lines().filter_map(|line| Some(line.split_once(':')?.0.to_owned())).collect()
        };
        assert_eq!(names(read), names(&whole));
        assert_eq!(super::read("/proc/self/status", &mut [0; 64]), Err(Errno::FBIG));
        assert_eq!(super::read("/proc/self/nothing", &mut [0; 64]), Err(Errno::NOENT));
    }
}
