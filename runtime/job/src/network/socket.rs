//! Sockets of the calling thread's network namespace, connected with a timeout.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use jobc_sys::error::{Error, Result};

/// An IPv4 stream socket of the namespace that this thread is in; it does not block.
pub(super) fn socket() -> Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)
        .map_err(|errno| Error::system("create a socket", errno))
}

/// Connects such a socket.
pub(super) fn connect(
    socket: &OwnedFd,
    place: &SocketAddr,
    within: Duration,
) -> std::result::Result<(), Errno> {
    match rustix::net::connect(socket, place) {
        Err(Errno::INPROGRESS | Errno::INTR) => {}
        other => return other,
    }
    is_ready(socket, PollFlags::OUT, within)?;
    rustix::net::sockopt::socket_error(socket)?
}

/// Connects such a socket, which blocks from then on.
pub(crate) fn connect_blocking(
    socket: &OwnedFd,
    place: &SocketAddr,
    within: Duration,
) -> std::result::Result<(), Errno> {
    connect(socket, place, within)?;
    let flags = rustix::fs::fcntl_getfl(socket)? - rustix::fs::OFlags::NONBLOCK;
    rustix::fs::fcntl_setfl(socket, flags)
}

/// Waits until a file descriptor is ready, up to a timeout.
pub(super) fn is_ready(fd: &OwnedFd, wanted: PollFlags, within: Duration) -> std::result::Result<(), Errno> {
    let until = Instant::now() + within;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = rustix::event::Timespec::try_from(left).map_err(|_| Errno::INVAL)?;
        match rustix::event::poll(&mut [PollFd::new(fd, wanted)], Some(&left)) {
            Ok(0) => return Err(Errno::TIMEDOUT),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}
