//! The Unix socket over which a pseudo-terminal's master is handed on.
//!
//! One message with the descriptor (`SCM_RIGHTS`) and a name, as conmon and containerd's shims expect of
//! `--console-socket`. Source: runc's docs/terminals.md, "Detached".

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketAddrUnix, SocketFlags,
    SocketType,
};

use crate::error::{Error, Kind, Result};

/// Connects to a socket that waits for a master.
pub fn connect(path: &Path) -> Result<OwnedFd> {
    let connect = || {
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
        Ok(socket)
    };
    connect().map_err(|errno: Errno| {
        Error::machine(format!("connect to the console socket `{}`", path.display()), errno)
            .help("`--console-socket` takes a Unix stream socket that somebody listens at")
    })
}

/// Both ends of a socket of our own: the one that receives and the one that sends.
pub fn pair() -> Result<(OwnedFd, OwnedFd)> {
    rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .map_err(|errno| Error::machine("make a pair of sockets", errno))
}

/// Receives a master.
///
/// The sender's side must be closed but in the container's process, so that its death ends the wait.
pub fn receive(socket: impl AsFd) -> Result<OwnedFd> {
    let mut name = [0_u8; 256];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    rustix::io::retry_on_intr(|| {
        rustix::net::recvmsg(
            &socket,
            &mut [IoSliceMut::new(&mut name)],
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC,
        )
    })
    .map_err(|errno| Error::machine("receive the container's terminal", errno))?;
    let descriptor = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    descriptor.ok_or_else(|| Error::new(Kind::Machine, "the container's process sent no terminal"))
}
