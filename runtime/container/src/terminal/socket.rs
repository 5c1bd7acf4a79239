//! The Unix socket over which a pseudo-terminal's master is handed on.
//!
//! One message with the file descriptor (`SCM_RIGHTS`) and a name, as conmon and containerd's shims expect of
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

use crate::options::Options;
use jobc_sys::error::{Error, Kind, Result};

/// Connects to a socket that waits for a master.
pub fn connect(path: &Path) -> Result<OwnedFd> {
    let connect = || {
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
        Ok(socket)
    };
    connect().map_err(|errno: Errno| {
        Error::system(format!("connect to the console socket `{}`", path.display()), errno)
            .help("`--console-socket` needs a Unix stream socket with a listener")
    })
}

/// Chooses who gets the other side of a requested terminal: the caller's socket, or, if `ours`, a socket whose
/// receiving end is returned. The sending end goes to the options.
pub(crate) fn connect_terminal(
    wanted: bool,
    path: Option<&Path>,
    ours: bool,
    options: &mut Options,
) -> Result<Option<OwnedFd>> {
    match path {
        Some(_) if !wanted => {
            Err(Error::new(Kind::Config, "a console socket is given, but `terminal` is not true")
                .at("/process/terminal")
                .help("set it to true, or omit `--console-socket`"))
        }
        Some(path) => {
            options.console = Some(connect(path)?);
            Ok(None)
        }
        None if wanted && ours => {
            let (receiving, sending) = pair()?;
            options.console = Some(sending);
            // Before the program starts, which may check it immediately.
            options.window_size = super::relay::window_size().map(|size| (size.ws_row, size.ws_col));
            Ok(Some(receiving))
        }
        None => Ok(None),
    }
}

/// Both ends of a socket of our own: the one that receives and the one that sends.
fn pair() -> Result<(OwnedFd, OwnedFd)> {
    rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .map_err(|errno| Error::system("make a pair of sockets", errno))
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
    .map_err(|errno| Error::system("receive the container's terminal", errno))?;
    let descriptor = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    descriptor.ok_or_else(|| Error::new(Kind::System, "the container's process sent no terminal"))
}
