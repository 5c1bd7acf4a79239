//! Ports on loopback here, for ports of tasks.

use std::net::{Ipv4Addr, TcpListener};

use jobc_sys::error::{Error, Kind, Result};

/// A socket for the connections to a port of a task: at the local port that was asked for, otherwise at the same number,
/// or at a free one if that is taken.
pub(crate) fn listen(local: Option<u16>, port: u16) -> Result<TcpListener> {
    let bind = |local: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, local));
    let bound = match local {
        Some(local) => bind(local),
        None => bind(port).or_else(|_| bind(0)),
    };
    let listener = bound.and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
    listener.map_err(|error| {
        Error::new(Kind::System, format!("cannot listen on 127.0.0.1:{}", local.unwrap_or(port)))
            .because(error)
            .help("name another local port, as in `8081:TASK:PORT`")
    })
}
