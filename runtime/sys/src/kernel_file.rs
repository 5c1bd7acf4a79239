//! Small files that the kernel generates on reading: below /proc and /sys.
//!
//! They report no size, so the standard library needs five or six calls. One `read` is enough if the whole file fits:
//! the kernel then returns all of it (seq_file.rst, "The iterator interface").

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::buffer::spare_capacity;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Reads a file of the kernel's that is smaller than the buffer.
///
/// # Errors
///
/// The kernel's, and `EFBIG` where the buffer is full.
pub fn read(path: impl AsRef<Path>, buffer: &mut [u8]) -> Result<&[u8], Errno> {
    let file = rustix::fs::open(path.as_ref(), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let size = rustix::io::retry_on_intr(|| rustix::io::read(&file, &mut *buffer))?;
    if size == buffer.len() { Err(Errno::FBIG) } else { Ok(&buffer[..size]) }
}

/// Reads a file of the kernel's as text, whatever its size.
///
/// # Errors
///
/// The kernel's, and `EILSEQ` where the file is not UTF-8.
pub fn text(path: impl AsRef<Path>) -> Result<String, Errno> {
    let file = rustix::fs::open(path.as_ref(), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut bytes = Vec::with_capacity(4096);
    // A long file comes in parts, each of whole lines.
    while rustix::io::retry_on_intr(|| rustix::io::read(&file, spare_capacity(&mut bytes)))? > 0 {
        bytes.reserve(1024);
    }
    String::from_utf8(bytes).map_err(|_| Errno::ILSEQ)
}

/// A path in a line of the kernel, with spaces, tabs, newlines and backslashes as octal numbers: `\040`.
pub fn unescape(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some(at) = rest.iter().position(|&byte| byte == b'\\') {
        let digits = rest.get(at + 1..at + 4).and_then(|digits| std::str::from_utf8(digits).ok());
        let octal = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.extend_from_slice(&rest[..at]);
        bytes.push(octal.unwrap_or(b'\\'));
        rest = &rest[at + if octal.is_some() { 4 } else { 1 }..];
    }
    bytes.extend_from_slice(rest);
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_as_it_is_written() {
        for (field, path) in [
            ("/srv/data", "/srv/data"),
            ("/srv/my\\040files\\134", "/srv/my files\\"),
            ("\\011a\\012", "\ta\n"),
            // Not the kernel's way, and kept as it is.
            ("/a\\04", "/a\\04"),
            ("/a\\999b\\", "/a\\999b\\"),
        ] {
            assert_eq!(unescape(field.as_bytes()), Path::new(path), "{field}");
        }
    }

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
        assert_eq!(names(text("/proc/self/status").unwrap().as_bytes()), names(&whole));
        assert_eq!(text("/proc/self/nothing"), Err(Errno::NOENT));
    }

    #[test]
    fn a_long_file_is_read_whole() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let long = "a line of it\n".repeat(10_000);
        std::fs::write(file.path(), &long).unwrap();
        assert_eq!(text(file.path()), Ok(long));
        std::fs::write(file.path(), b"\xff").unwrap();
        assert_eq!(text(file.path()), Err(Errno::ILSEQ));
    }
}
