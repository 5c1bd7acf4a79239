//! Waiting until file descriptors can be read.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Waits until one of these can be read or its other side has gone, or the time is over; returns which. A signal ends the
/// wait, too.
pub fn wait(files: &[BorrowedFd<'_>], longest: Option<Duration>) -> Result<Vec<bool>, Errno> {
    let mut polled: Vec<PollFd<'_>> =
        files.iter().map(|file| PollFd::from_borrowed_fd(*file, PollFlags::IN)).collect();
    // Without a limit where it is one of centuries.
    let longest = longest.and_then(|longest| Timespec::try_from(longest).ok());
    match poll(&mut polled, longest.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(polled.iter().map(|file| !file.revents().is_empty()).collect()),
        Err(errno) => Err(errno),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd as _;

    #[test]
    fn what_can_be_read_is_said() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let (other, _kept) = rustix::pipe::pipe().unwrap();
        let both = [reader.as_fd(), other.as_fd()];
        assert_eq!(wait(&both, Some(Duration::ZERO)).unwrap(), [false, false]);
        rustix::io::write(&writer, b"x").unwrap();
        assert_eq!(wait(&both, None).unwrap(), [true, false]);
        drop(writer);
        assert_eq!(wait(&both, Some(Duration::MAX)).unwrap(), [true, false]);
    }
}
