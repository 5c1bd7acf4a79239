//! The messages between a supervisor and the process that holds its job's network: JSON, one per message, over a socket
//! pair that keeps message boundaries.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::address::Addresses;
use super::publish::Forward;
use jobc_sys::error::{Error, Result};

/// The first message: what to make.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SetupRequest {
    /// How many tasks there are.
    pub(super) tasks: usize,
    /// The addresses of the network; without them each task is alone.
    pub(super) addresses: Option<Addresses>,
    /// The uplink.
    pub(super) uplink: UplinkRequest,
    /// The new user namespace to create it in, if any, and whether setgroups(2) is denied there.
    pub(super) users: Option<UserNamespace>,
    /// Ports for the host's network.
    pub(super) forwards: Vec<Forward>,
    /// Whether tasks share an IPC namespace.
    pub(super) shares_ipc: bool,
}

/// What an uplink needs.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct UplinkRequest {
    /// An empty file on which the bridge's namespace is mounted for it.
    pub(super) place: PathBuf,
    /// Whether it leads to services on the loopback addresses of the host.
    pub(super) leads_to_host: bool,
}

/// A new user namespace.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct UserNamespace {
    /// Whether setgroups(2) is denied in it.
    pub(super) groups_denied: bool,
}

/// A later message: what is wanted of a task, by its number.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum TaskRequest {
    /// A socket that reaches it.
    Socket(usize),
    /// A new network namespace for its next attempt.
    Renew(usize),
}

/// A message of the process.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum HelperMessage {
    /// It is in its user namespace, whose maps are to be written; an empty answer lets it go on.
    MapIds {},
    /// The network is created.
    Made(NetworkSetup),
    /// A socket comes with the message.
    Socket {},
    /// A task has a new namespace: a file descriptor of the process.
    Renewed { namespace: i32 },
    /// It could not be done.
    Failed(Error),
}

/// The network that was created.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct NetworkSetup {
    /// The tasks' network namespaces: file descriptors of the process.
    pub(super) namespaces: Vec<i32>,
    /// The ports of the host that were taken, one for each of [`SetupRequest::forwards`].
    pub(super) ports: Vec<u16>,
    /// The name server, if there is an uplink.
    pub(super) resolver: Option<Ipv4Addr>,
    /// The reason for the missing uplink.
    pub(super) no_uplink: Option<String>,
    /// The shared IPC namespace: a file descriptor of the process.
    pub(super) ipc: Option<i32>,
}

/// Room for the longest message, which is an order: a thousand published ports.
pub(super) const MAX_SETUP_BYTES: usize = 1 << 18;

/// Room for a message about one task.
pub(super) const MAX_MESSAGE_BYTES: usize = 1 << 12;

/// Both ends of a conversation.
pub(super) fn pair() -> Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC;
    rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
        .map_err(|errno| Error::system("create a socket pair", errno))
}

/// Sends a message, with a file descriptor.
pub(super) fn send(
    socket: impl AsFd,
    message: &impl Serialize,
    descriptor: Option<BorrowedFd<'_>>,
) -> std::result::Result<(), Errno> {
    let bytes = serde_json::to_vec(message).map_err(|_| Errno::INVAL)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let descriptors: Vec<BorrowedFd<'_>> = descriptor.into_iter().collect();
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(Errno::NOBUFS);
    }
    rustix::io::retry_on_intr(|| {
        rustix::net::sendmsg(&socket, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL)
    })
    .map(drop)
}

/// Receives a message of at most that many bytes with its file descriptor; `None` if the peer closed the connection.
pub(super) fn receive<T: DeserializeOwned>(
    socket: impl AsFd,
    room: usize,
) -> std::result::Result<Option<(T, Option<OwnedFd>)>, Errno> {
    let mut bytes = vec![0; room];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let got = rustix::io::retry_on_intr(|| {
        let mut into = [IoSliceMut::new(&mut bytes)];
        rustix::net::recvmsg(&socket, &mut into, &mut ancillary, RecvFlags::CMSG_CLOEXEC)
    });
    let got = match got {
        Ok(got) => got.bytes,
        Err(Errno::CONNRESET) => 0,
        Err(errno) => return Err(errno),
    };
    if got == 0 {
        return Ok(None);
    }
    let descriptor = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    let message = serde_json::from_slice(&bytes[..got]).map_err(|_| Errno::BADMSG)?;
    Ok(Some((message, descriptor)))
}
