//! A bidirectional connection, for protocols that start as HTTP: WebSocket.
//!
//! An HTTP client cannot lend its connection, so this one is made here: through the proxy, with the same TLS. After the
//! handshakes it never blocks; its caller polls.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::ClientConnection;
use ureq::{Proxy, ProxyProtocol};

use crate::tls::TlsConnector;

/// The maximum size of a proxy's response to `CONNECT`.
const MAX_PROXY_ANSWER: usize = 16 << 10;
/// Bytes read from the socket at a time.
const READ_SIZE: usize = 16 << 10;

/// A TCP connection, with TLS or without.
pub struct Duplex {
    socket: TcpStream,
    tls: Option<ClientConnection>,
    /// Bytes that the socket has not accepted yet; only without TLS.
    plain: Vec<u8>,
    has_ended: bool,
}

impl Duplex {
    /// Connects to `https://HOST[:PORT]` or `http://…`, through a proxy if there is one. Everything until the first byte
    /// may take `timeout`.
    ///
    /// # Errors
    ///
    /// The reason, as text.
    pub fn connect(
        address: &str,
        tls: &TlsConnector,
        proxy: Option<&Proxy>,
        timeout: Duration,
    ) -> Result<Self, String> {
        let deadline = Instant::now() + timeout;
        let uri: ureq::http::Uri = address.parse().map_err(|_| format!("`{address}` is not a URL"))?;
        let secure = uri.scheme_str() == Some("https");
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let mut socket = match proxy {
            None => open(host, port, deadline)?,
            Some(proxy) => through(proxy, host, port, deadline)?,
        };
        let io = |error: io::Error| describe(&error);
        socket.set_read_timeout(Some(left(deadline)?)).map_err(io)?;
        socket.set_write_timeout(Some(left(deadline)?)).map_err(io)?;
        let tls = secure.then(|| tls.start(host)).transpose()?;
        let tls = tls.map(|mut connection| {
            // Callers look at `is_flushed` before they queue more.
            connection.set_buffer_limit(None);
            while connection.is_handshaking() {
                connection.complete_io(&mut socket).map_err(io)?;
            }
            Ok::<_, String>(connection)
        });
        let tls = tls.transpose()?;
        socket.set_nodelay(true).map_err(io)?;
        socket.set_nonblocking(true).map_err(io)?;
        Ok(Self { socket, tls, plain: Vec::new(), has_ended: false })
    }

    /// Takes bytes to send; [`Self::flush`] sends them.
    ///
    /// # Errors
    ///
    /// TLS has ended.
    pub fn queue(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            tls.writer().write_all(bytes)
        } else {
            self.plain.extend_from_slice(bytes);
            Ok(())
        }
    }

    /// Whether everything was sent.
    pub fn is_flushed(&self) -> bool {
        self.plain.is_empty() && self.tls.as_ref().is_none_or(|tls| !tls.wants_write())
    }

    /// Sends what the socket takes now.
    ///
    /// # Errors
    ///
    /// The connection is broken.
    pub fn flush(&mut self) -> io::Result<()> {
        while !self.is_flushed() {
            let sent = match &mut self.tls {
                Some(tls) => tls.write_tls(&mut self.socket),
                None => self.socket.write(&self.plain).inspect(|&count| drop(self.plain.drain(..count))),
            };
            match sent {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Appends received bytes.
    ///
    /// # Errors
    ///
    /// The connection is broken.
    pub fn receive(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        let mut piece = [0; READ_SIZE];
        loop {
            let Some(tls) = &mut self.tls else {
                match self.socket.read(&mut piece) {
                    Ok(0) => self.has_ended = true,
                    Ok(count) => into.extend_from_slice(&piece[..count]),
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
                return Ok(());
            };
            let is_done = match tls.read_tls(&mut self.socket) {
                Ok(0) => {
                    self.has_ended = true;
                    true
                }
                Ok(_) => false,
                Err(error) if error.kind() == ErrorKind::Interrupted => false,
                Err(error) if error.kind() == ErrorKind::WouldBlock => true,
                Err(error) => return Err(error),
            };
            let state = tls.process_new_packets().map_err(io::Error::other)?;
            self.has_ended |= state.peer_has_closed();
            let mut left = state.plaintext_bytes_to_read();
            while left > 0 {
                let count = tls.reader().read(&mut piece)?;
                into.extend_from_slice(&piece[..count]);
                left = left.saturating_sub(count.max(1));
            }
            if is_done || into.len() >= 4 * READ_SIZE {
                return Ok(());
            }
        }
    }

    /// Whether the other side sends nothing more.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }
}

impl AsFd for Duplex {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The time until a deadline, which must not be zero for a socket.
fn left(deadline: Instant) -> Result<Duration, String> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err("timed out".to_owned()) } else { Ok(left) }
}

fn describe(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => "timed out".to_owned(),
        _ => jobc_sys::error::describe_io(error),
    }
}

fn open(host: &str, port: u16, deadline: Instant) -> Result<TcpStream, String> {
    let addresses =
        (host, port).to_socket_addrs().map_err(|error| format!("cannot find `{host}`: {error}"))?;
    let mut last = format!("`{host}` has no address");
    for address in addresses {
        match TcpStream::connect_timeout(&address, left(deadline)?) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = describe(&error),
        }
    }
    Err(last)
}

/// A tunnel through an HTTP proxy (RFC 9110, section 9.3.6).
fn through(proxy: &Proxy, host: &str, port: u16, deadline: Instant) -> Result<TcpStream, String> {
    if proxy.protocol() != ProxyProtocol::Http {
        return Err(format!(
            "cannot connect through the proxy `{}`: only `http` proxies work here",
            proxy.host()
        ));
    }
    let failed = |why: String| format!("cannot connect through the proxy `{}`: {why}", proxy.host());
    let mut socket = open(proxy.host(), proxy.port(), deadline).map_err(failed)?;
    let io = |error: io::Error| failed(describe(&error));
    socket.set_read_timeout(Some(left(deadline)?)).map_err(io)?;
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let login = proxy.username().map(|name| {
        let login = STANDARD.encode(format!("{name}:{}", proxy.password().unwrap_or_default()));
        format!("Proxy-Authorization: Basic {login}\r\n")
    });
    let login = login.unwrap_or_default();
    let request = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n{login}\r\n");
    socket.write_all(request.as_bytes()).map_err(io)?;
    let mut answer = Vec::new();
    // Byte by byte: what follows the answer belongs to TLS.
    while !answer.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        socket.read_exact(&mut byte).map_err(io)?;
        answer.push(byte[0]);
        if answer.len() > MAX_PROXY_ANSWER {
            return Err(failed("its answer is too long".to_owned()));
        }
    }
    let line = String::from_utf8_lossy(&answer);
    let line = line.lines().next().unwrap_or_default();
    match line.split(' ').nth(1) {
        Some(code) if code.starts_with('2') => Ok(socket),
        _ => Err(failed(format!("it answered `{line}`"))),
    }
}
