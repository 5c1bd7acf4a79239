//! Where the server listens.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use camino::Utf8PathBuf;

/// A TCP address, or the path of a Unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// An address; port 0 selects a free port.
    Address(SocketAddr),
    /// A Unix socket.
    Socket(Utf8PathBuf),
}

/// The port if none is named.
const DEFAULT_PORT: u16 = 8750;

impl Default for Listen {
    fn default() -> Self {
        Self::Address((Ipv4Addr::LOCALHOST, DEFAULT_PORT).into())
    }
}

/// A text that is not an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenError;

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("write a port such as `8750`, an address such as `127.0.0.1:8750`, or `unix:PATH`")
    }
}

impl std::error::Error for ListenError {}

impl FromStr for Listen {
    type Err = ListenError;

    fn from_str(text: &str) -> Result<Self, ListenError> {
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() { Err(ListenError) } else { Ok(Self::Socket(path.into())) };
        }
        if let Ok(port) = text.parse::<u16>() {
            return Ok(Self::Address((Ipv4Addr::LOCALHOST, port).into()));
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Address((address, DEFAULT_PORT).into()));
        }
        let text =
            text.strip_prefix("localhost").map_or_else(|| text.to_owned(), |rest| format!("127.0.0.1{rest}"));
        text.parse().map(Self::Address).map_err(|_| ListenError)
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Socket(path) => write!(f, "unix:{path}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_port_a_host_or_a_socket() {
        for (text, address) in [
            ("9000", "127.0.0.1:9000"),
            ("127.0.0.1", "127.0.0.1:8750"),
            ("localhost:80", "127.0.0.1:80"),
            ("[::1]:80", "[::1]:80"),
            ("0.0.0.0:80", "0.0.0.0:80"),
            ("unix:/run/x", "unix:/run/x"),
        ] {
            assert_eq!(text.parse::<Listen>().unwrap().to_string(), address, "{text}");
        }
        for text in ["", "unix:", "example.org:80", "70000", ":80"] {
            assert_eq!(text.parse::<Listen>(), Err(ListenError), "{text}");
        }
    }
}
