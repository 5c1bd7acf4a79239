//! The first steps of a process, which the startup code of the standard library would otherwise do.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};

use jobc_sys::signals;

/// Checks that the first three file descriptors are open, and that writing to a reader that went away is an error.
///
/// A file descriptor that is closed is opened to /dev/null: the next file that is opened would have its number, and
/// what is printed would go into that file. If even this fails, the process ends.
pub fn open_standard_streams() {
    let opened = count_closed().and_then(|closed| {
        (0..closed).try_for_each(|_| {
            // The lowest free number is given, so each goes where one is missing, and stays for the process's life.
            rustix::fs::open(c"/dev/null", OFlags::RDWR, Mode::empty()).map(std::mem::forget)
        })
    });
    if opened.and_then(|()| signals::ignore_broken_pipes()).is_err() {
        std::process::abort();
    }
}

/// How many of the first three file descriptors are closed (poll(2), `POLLNVAL`).
fn count_closed() -> rustix::io::Result<usize> {
    let streams = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
    let mut polled = streams.map(|stream| PollFd::from_borrowed_fd(stream, PollFlags::empty()));
    rustix::io::retry_on_intr(|| poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })))?;
    Ok(polled.iter().filter(|stream| stream.revents().contains(PollFlags::NVAL)).count())
}
