//! The agent that gets a filter's listener and decides syscalls instead of the kernel (seccomp_unotify(2)).
//!
//! The agent's socket is connected ahead and never given to a process of the container, which could speak there in the
//! host's name: the listener is taken from the process by pidfd_getfd(2), and sent on with the container's state
//! (`SCM_RIGHTS`). Source: the OCI runtime specification, "The Container Process State".

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;

use oci_spec::runtime::Spec;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags,
    SocketType,
};
use rustix::process::{PidfdGetfdFlags, pidfd_getfd};
use serde_json::{Value, json};

use crate::oci_state::{OCI_VERSION, State};
use crate::seccomp::{AGENT_POINTER, agent_path};
use jobc_sys::error::{Error, Kind, Result};

/// An agent, and the message for it.
#[derive(Debug)]
pub struct Agent {
    socket: OwnedFd,
    /// The container process state, without the PID of the process.
    message: Value,
}

/// The place of the agent's socket, where the profile of a container has calls decided by one.
pub fn agent_socket(spec: &Spec) -> Result<Option<&Path>> {
    let Some(profile) = spec.linux().as_ref().and_then(|linux| linux.seccomp().as_ref()) else {
        return Ok(None);
    };
    let Some(path) = agent_path(profile) else { return Ok(None) };
    Ok(crate::seccomp::compile(profile)?.notifies().then_some(path))
}

/// Checks that there is a socket for an agent that is spoken to later.
pub fn check_socket(path: &Path) -> Result<()> {
    let kind = rustix::fs::stat(path).map(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode));
    match kind {
        Ok(rustix::fs::FileType::Socket) => Ok(()),
        Ok(_) => Err(unreachable(path, Errno::NOTSOCK)),
        Err(errno) => Err(unreachable(path, errno)),
    }
}

/// A second listener, or a listener without a filter for it: a process of the container wrote the report.
pub(crate) fn unexpected_listener() -> Error {
    Error::new(Kind::System, "the start of the program reported an unexpected seccomp listener")
}

fn unreachable(path: &Path, errno: Errno) -> Error {
    Error::system(format!("connect to the agent's socket `{}`", path.display()), errno)
        .at(AGENT_POINTER)
        .help("start the agent first: it must listen on this Unix stream socket")
}

impl Agent {
    /// Connects to the agent of a container in that state.
    ///
    /// # Errors
    ///
    /// No process listens there.
    pub fn connect(path: &Path, spec: &Spec, state: &State<'_>) -> Result<Self> {
        let connect = || {
            let flags = SocketFlags::CLOEXEC;
            let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
            rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
            Ok(socket)
        };
        let socket = connect().map_err(|errno| unreachable(path, errno))?;
        let profile = spec.linux().as_ref().and_then(|linux| linux.seccomp().as_ref());
        let metadata = profile.and_then(|profile| profile.listener_metadata().as_deref());
        let mut message = json!({"ociVersion": OCI_VERSION, "fds": ["seccompFd"], "state": state});
        if let Some(metadata) = metadata.filter(|metadata| !metadata.is_empty()) {
            message["metadata"] = metadata.into();
        }
        Ok(Self { socket, message })
    }

    /// Takes a listener from a process and sends it to the agent. If the state has no process yet, it is the
    /// container's first.
    ///
    /// # Errors
    ///
    /// The kernel refuses it, or the agent has ended.
    pub fn hand_over(&self, pid: u32, pidfd: BorrowedFd<'_>, listener: RawFd) -> Result<()> {
        let listener = pidfd_getfd(pidfd, listener, PidfdGetfdFlags::empty()).map_err(|errno| {
            let error = Error::system("get the seccomp listener", errno).at("/linux/seccomp");
            match errno {
                Errno::PERM => error.help("an unprivileged user needs `noNewPrivileges` for it"),
                Errno::NOSYS => error.help("it needs Linux 5.6 or newer"),
                _ => error,
            }
        })?;
        // Its number can come from another process of the container.
        let kind = rustix::fs::readlink(format!("/proc/self/fd/{}", listener.as_raw_fd()), Vec::new());
        if kind.is_ok_and(|kind| kind.to_bytes() != b"anon_inode:seccomp notify") {
            return Err(unexpected_listener());
        }
        self.send(self.text(pid).as_bytes(), listener.as_fd())
            .map_err(|errno| Error::system("send the seccomp listener to the agent", errno).at(AGENT_POINTER))
    }

    /// The container process state, in which the process has a number.
    fn text(&self, pid: u32) -> String {
        let mut message = self.message.clone();
        message["pid"] = pid.into();
        if message["state"]["pid"] == 0 {
            message["state"]["pid"] = pid.into();
        }
        message.to_string()
    }

    /// Sends bytes, the file descriptor with the first of them.
    fn send(&self, bytes: &[u8], descriptor: BorrowedFd<'_>) -> std::result::Result<(), Errno> {
        let descriptors = [descriptor];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        let mut rest = bytes;
        while !rest.is_empty() {
            let parts = [IoSlice::new(rest)];
            let sent = rustix::net::sendmsg(&self.socket, &parts, &mut ancillary, SendFlags::NOSIGNAL);
            match sent {
                Err(Errno::INTR) => continue,
                sent => rest = &rest[sent?..],
            }
            ancillary.clear();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
