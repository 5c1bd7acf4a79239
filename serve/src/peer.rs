//! The other end of a connection.

use std::fmt;
use std::net::SocketAddr;
use std::os::fd::AsFd;

/// Who is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// A TCP address.
    Address(SocketAddr),
    /// A user of this host, at a Unix socket.
    User(u32),
}

impl Peer {
    /// The user at the other end of a Unix socket, as the kernel says it.
    pub(crate) fn of_socket(socket: impl AsFd) -> std::io::Result<Self> {
        let credentials = rustix::net::sockopt::socket_peercred(socket)?;
        Ok(Self::User(credentials.uid.as_raw()))
    }

    /// The user, at a Unix socket.
    pub(crate) fn uid(self) -> Option<u32> {
        match self {
            Self::User(uid) => Some(uid),
            Self::Address(_) => None,
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.ip().fmt(f),
            Self::User(uid) => write!(f, "uid {uid}"),
        }
    }
}
