//! Sparse files: where their data is, and copies that keep their holes (lseek(2), `SEEK_DATA`).

use std::fs::File;
use std::io::{self, Read as _, Write as _};

use rustix::fs::{SeekFrom, Stat, seek};
use rustix::io::Errno;

/// How much is copied between two checks whether to go on.
const COPY_SIZE: u64 = 32 << 20;

/// Whether a file has holes, or may have.
pub fn has_holes(status: &Stat) -> bool {
    let blocks = u64::try_from(status.st_blocks).unwrap_or_default();
    blocks.saturating_mul(512) < u64::try_from(status.st_size).unwrap_or_default()
}

/// The next run of data from a place on: its begin and its end, both `size` if there is none.
///
/// # Errors
///
/// lseek(2) fails.
pub fn next_data_range(file: &File, at: u64, size: u64) -> io::Result<(u64, u64)> {
    let begin = match seek(file, SeekFrom::Data(at)) {
        Err(Errno::NXIO) => return Ok((size, size)),
        // A file system without holes.
        Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok((at, size)),
        other => other?.min(size),
    };
    if begin == size {
        return Ok((size, size));
    }
    Ok((begin, seek(file, SeekFrom::Hole(begin))?.min(size)))
}

/// Copies the content of a file to an empty one: as shared blocks where the file system can, else by the kernel, holes
/// left out. `proceed` is called between pieces, and its error ends the copy.
///
/// # Errors
///
/// A file cannot be read or written, or that of `proceed`.
pub fn copy_content(
    from: &File,
    to: &File,
    status: &Stat,
    proceed: &dyn Fn() -> io::Result<()>,
) -> io::Result<()> {
    if status.st_size == 0 || rustix::fs::ioctl_ficlone(to, from).is_ok() {
        return Ok(());
    }
    let size = u64::try_from(status.st_size).unwrap_or_default();
    let sparse = has_holes(status);
    let mut at = 0;
    while at < size {
        let (begin, end) = if sparse { next_data_range(from, at, size)? } else { (at, size) };
        let mut piece = begin;
        while piece < end {
            proceed()?;
            let next = end.min(piece + COPY_SIZE);
            copy_range(from, to, piece, next)?;
            piece = next;
        }
        at = end;
    }
    to.set_len(size)
}

fn copy_range(mut from: &File, mut to: &File, begin: u64, end: u64) -> io::Result<()> {
    let (mut input, mut output) = (begin, begin);
    while input < end {
        let rest = usize::try_from(end - input).unwrap_or(usize::MAX);
        match rustix::fs::copy_file_range(from, Some(&mut input), to, Some(&mut output), rest) {
            // It was truncated meanwhile, which its status shows.
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                seek(from, SeekFrom::Start(input))?;
                seek(to, SeekFrom::Start(input))?;
                let mut buffer = vec![0; 1 << 17];
                let mut rest = end - input;
                while rest > 0 {
                    let most = usize::try_from(rest).unwrap_or(usize::MAX).min(buffer.len());
                    match from.read(&mut buffer[..most])? {
                        0 => return Ok(()),
                        count => {
                            to.write_all(&buffer[..count])?;
                            rest -= count as u64;
                        }
                    }
                }
                return Ok(());
            }
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileExt as _, MetadataExt as _};

    use super::*;

    #[test]
    fn holes_stay_holes_and_the_content_is_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("from"), directory.path().join("to"));
        let file = File::create(&from).unwrap();
        file.write_all_at(b"middle", 3 << 20).unwrap();
        file.set_len(8 << 20).unwrap();
        let file = File::open(&from).unwrap();
        let copy = File::create(&to).unwrap();
        let status = rustix::fs::fstat(&file).unwrap();
        assert!(has_holes(&status));
        copy_content(&file, &copy, &status, &|| Ok(())).unwrap();
        assert_eq!(std::fs::read(&from).unwrap(), std::fs::read(&to).unwrap());
        assert!(copy.metadata().unwrap().blocks() * 512 < 1 << 20);
    }

    #[test]
    fn ranges_of_data_are_found() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all_at(&[1; 4096], 1 << 20).unwrap();
        file.set_len(3 << 20).unwrap();
        file.flush().unwrap();
        let size = 3 << 20;
        let (begin, end) = next_data_range(&file, 0, size).unwrap();
        assert!(begin > 0 && begin <= 1 << 20 && end >= (1 << 20) + 4096 && end < size, "{begin} {end}");
        assert_eq!(next_data_range(&file, end, size).unwrap(), (size, size));
        file.set_len(1 << 10).unwrap();
        assert_eq!(next_data_range(&file, 1 << 20, size).unwrap(), (size, size));
    }

    #[test]
    fn a_copy_can_be_ended() {
        let (from, to) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        from.write_all_at(&[7; 4096], 0).unwrap();
        let status = rustix::fs::fstat(&from).unwrap();
        let ended = copy_content(&from, &to, &status, &|| Err(io::Error::other("canceled")));
        // A file system that shares blocks copies nothing.
        assert!(ended.is_err() || rustix::fs::ioctl_ficlone(&to, &from).is_ok());
    }
}
