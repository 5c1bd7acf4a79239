//! Requests to the kernel's network configuration: netlink(7), rtnetlink(7).
//!
//! Requests are collected and sent many at once, since a syscall for each would take most of the set-up time of a
//! network with a hundred tasks. The kernel answers each with an error number, and every request carries a text with
//! its purpose. [`Netlink::query`] is for a single request that is answered with more than that.

use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType};

use crate::error::{Error, Result};

/// Wants an answer (`NLM_F_REQUEST | NLM_F_ACK`).
const REQUEST_ACK: u16 = 0x1 | 0x4;
/// Creates what does not exist, and fails if it exists (`NLM_F_CREATE | NLM_F_EXCL`).
pub const NEW: u16 = 0x400 | 0x200;
/// Adds to a list (`NLM_F_CREATE | NLM_F_APPEND`).
pub const APPEND: u16 = 0x400 | 0x800;
/// Lists everything (`NLM_F_DUMP`).
pub const DUMP: u16 = 0x300;
/// The kind of an answer with an error number (`NLMSG_ERROR`).
const ERROR: u16 = 2;
/// The kind of the message at the end of a list (`NLMSG_DONE`).
const DONE: u16 = 3;
/// The largest message that the kernel puts together for a list.
const LIST_PART: usize = 32 << 10;
/// The bit of an attribute that holds others (`NLA_F_NESTED`).
const NESTED: u16 = 0x8000;
/// The size of the header before a message's content (struct nlmsghdr).
const HEADER: usize = 16;
/// Maximum requests sent before responses are read: more responses would overflow the socket's buffer.
const BATCH_SIZE: usize = 64;
/// Timeout for the kernel, which normally answers before the request's syscall returns.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// Requests that are sent together.
#[derive(Debug, Default)]
pub struct Batch {
    requests: Vec<Request>,
}

#[derive(Debug)]
struct Request {
    /// Text that follows "cannot"; `None` for a message without a response.
    what: Option<String>,
    bytes: Vec<u8>,
}

/// A message from the kernel.
#[derive(Debug, PartialEq, Eq)]
pub struct Message {
    /// Its number in linux/rtnetlink.h.
    pub kind: u16,
    /// What follows its header: the fixed part and the attributes.
    pub content: Vec<u8>,
}

impl Message {
    /// The number and value of each attribute behind a fixed part of some bytes.
    pub fn attributes(&self, fixed: usize) -> Vec<(u16, &[u8])> {
        let mut rest = self.content.get(fixed.next_multiple_of(4)..).unwrap_or_default();
        let mut found = Vec::new();
        while let [a, b, c, d, ..] = *rest {
            let length = usize::from(u16::from_ne_bytes([a, b])).clamp(4, rest.len());
            // The upper two bits are flags (`NLA_F_NESTED`, `NLA_F_NET_BYTEORDER`).
            found.push((u16::from_ne_bytes([c, d]) & 0x3fff, &rest[4..length]));
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        found
    }

    /// The number of four bytes in the fixed part.
    pub fn number(&self, at: usize) -> u32 {
        word(&self.content, at)
    }
}

/// The attributes of a message, or of an attribute that holds others.
#[derive(Debug)]
pub struct Attributes<'a>(&'a mut Vec<u8>);

impl Batch {
    /// Adds a request: its purpose, its number, flags besides [`REQUEST_ACK`], the fixed part and the attributes.
    pub fn request(
        &mut self,
        what: impl Into<String>,
        kind: u16,
        flags: u16,
        fixed: &[u8],
        attributes: impl FnOnce(&mut Attributes<'_>),
    ) {
        self.add(Some(what.into()), kind, REQUEST_ACK | flags, fixed, attributes);
    }

    /// Adds a message that is not answered.
    pub fn notify(&mut self, kind: u16, fixed: &[u8]) {
        self.add(None, kind, 0x1, fixed, |_| {});
    }

    fn add(
        &mut self,
        what: Option<String>,
        kind: u16,
        flags: u16,
        fixed: &[u8],
        attributes: impl FnOnce(&mut Attributes<'_>),
    ) {
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes[8..12].copy_from_slice(&number(self.requests.len()).to_ne_bytes());
        bytes.extend_from_slice(fixed);
        pad(&mut bytes);
        attributes(&mut Attributes(&mut bytes));
        let length = number(bytes.len());
        bytes[..4].copy_from_slice(&length.to_ne_bytes());
        self.requests.push(Request { what, bytes });
    }
}

impl Attributes<'_> {
    /// Adds an attribute of bytes.
    pub fn bytes(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        self.add(kind, |into| into.0.extend_from_slice(value));
        self
    }

    /// Adds a number in the host's order of bytes.
    pub fn number(&mut self, kind: u16, value: u32) -> &mut Self {
        self.bytes(kind, &value.to_ne_bytes())
    }

    /// Adds a number in the network's order of bytes, as netfilter has them.
    pub fn big_endian(&mut self, kind: u16, value: u32) -> &mut Self {
        self.bytes(kind, &value.to_be_bytes())
    }

    /// Adds a text, with the NUL byte that ends it.
    pub fn text(&mut self, kind: u16, value: &CStr) -> &mut Self {
        self.bytes(kind, value.to_bytes_with_nul())
    }

    /// Adds an attribute that holds others.
    pub fn nested(&mut self, kind: u16, inner: impl FnOnce(&mut Attributes<'_>)) -> &mut Self {
        self.add(kind | NESTED, inner);
        self
    }

    /// Adds bytes without a header: the fixed part of a structure before its attributes.
    pub fn fixed(&mut self, value: &[u8]) -> &mut Self {
        self.0.extend_from_slice(value);
        self
    }

    fn add(&mut self, kind: u16, inner: impl FnOnce(&mut Attributes<'_>)) {
        let start = self.0.len();
        self.0.extend_from_slice(&[0, 0]);
        self.0.extend_from_slice(&kind.to_ne_bytes());
        inner(&mut Attributes(self.0));
        // The length counts the header, and not what pads the attribute to four bytes.
        let length = u16::try_from(self.0.len() - start).unwrap_or(u16::MAX);
        self.0[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        pad(self.0);
    }
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

fn number(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// A socket of the network namespace in which it was created, even if its creator changes its namespace later.
#[derive(Debug)]
pub struct Netlink {
    socket: OwnedFd,
}

impl Netlink {
    /// A socket for interfaces, addresses and routes.
    pub fn route() -> Result<Self> {
        Self::open(None)
    }

    /// A socket for netfilter.
    pub fn netfilter() -> Result<Self> {
        Self::open(Some(rustix::net::netlink::NETFILTER))
    }

    fn open(protocol: Option<Protocol>) -> Result<Self> {
        let open = || {
            let flags = SocketFlags::CLOEXEC;
            let socket = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?;
            set_socket_timeout(&socket, Timeout::Recv, Some(REPLY_TIMEOUT))?;
            Ok(Self { socket })
        };
        open().map_err(|errno: Errno| Error::system("send a netlink request", errno))
    }

    /// Sends the requests and waits until all are answered.
    ///
    /// # Errors
    ///
    /// The kernel's error for the first rejected request.
    pub fn send(&self, batch: &Batch) -> Result<()> {
        for (round, requests) in batch.requests.chunks(BATCH_SIZE).enumerate() {
            let first = round * BATCH_SIZE;
            let bytes: Vec<u8> = requests.iter().flat_map(|request| request.bytes.iter().copied()).collect();
            let expected = requests.iter().filter(|request| request.what.is_some()).count();
            let talk = |errno| Error::system("send a netlink request", errno);
            rustix::net::sendto(&self.socket, &bytes, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))
                .map_err(talk)?;
            let mut answered = 0;
            let mut buffer = [0_u8; 16384];
            while answered < expected {
                let (got, _) = rustix::io::retry_on_intr(|| {
                    rustix::net::recv(&self.socket, &mut buffer[..], RecvFlags::empty())
                })
                .map_err(talk)?;
                for (sequence, errno) in answers(&buffer[..got]) {
                    let index = (sequence as usize).wrapping_sub(first);
                    if let Some(errno) = errno {
                        let what = requests.get(index).and_then(|request| request.what.as_deref());
                        return Err(Error::system(what.unwrap_or("configure the network"), errno));
                    }
                    answered += 1;
                }
            }
        }
        Ok(())
    }
}

impl Netlink {
    /// Sends one request, and returns the messages that answer it; with [`DUMP`] those of a whole list.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub fn query(
        &self,
        kind: u16,
        flags: u16,
        fixed: &[u8],
        attributes: impl FnOnce(&mut Attributes<'_>),
    ) -> std::result::Result<Vec<Message>, Errno> {
        let mut batch = Batch::default();
        batch.request("", kind, flags, fixed, attributes);
        let bytes = &batch.requests[0].bytes;
        rustix::net::sendto(&self.socket, bytes, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        let mut found = Vec::new();
        let mut buffer = vec![0_u8; LIST_PART];
        loop {
            let (got, _) = rustix::io::retry_on_intr(|| {
                rustix::net::recv(&self.socket, &mut buffer[..], RecvFlags::empty())
            })?;
            for message in messages(&buffer[..got]) {
                match message.kind {
                    ERROR | DONE => {
                        let error = message.number(0).cast_signed();
                        return if error < 0 { Err(Errno::from_raw_os_error(-error)) } else { Ok(found) };
                    }
                    _ => found.push(message),
                }
            }
        }
    }
}

/// The messages in a buffer.
fn messages(mut bytes: &[u8]) -> Vec<Message> {
    let mut messages = Vec::new();
    while bytes.len() >= HEADER {
        let length = (word(bytes, 0) as usize).clamp(HEADER, bytes.len());
        let kind = u16::from_ne_bytes([bytes[4], bytes[5]]);
        messages.push(Message { kind, content: bytes[HEADER..length].to_vec() });
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    messages
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

/// The responses in a buffer: the request's number, and the error if there was one.
fn answers(mut bytes: &[u8]) -> Vec<(u32, Option<Errno>)> {
    let mut answers = Vec::new();
    while bytes.len() >= HEADER {
        let length = (word(bytes, 0) as usize).clamp(HEADER, bytes.len());
        let kind = u16::from_ne_bytes([bytes[4], bytes[5]]);
        if kind == ERROR && length >= HEADER + 4 {
            let error = word(bytes, HEADER).cast_signed();
            answers.push((word(bytes, 8), (error != 0).then(|| Errno::from_raw_os_error(-error))));
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    answers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_laid_out_as_the_kernel_reads_it() {
        let mut batch = Batch::default();
        batch.request("x", 16, NEW, &[1, 2, 3], |attributes| {
            attributes.text(3, c"br0").nested(18, |inner| {
                inner.bytes(1, b"ab");
            });
        });
        let expected: &[&[u8]] = &[
            &40_u32.to_ne_bytes(),
            &16_u16.to_ne_bytes(),
            &0x605_u16.to_ne_bytes(),
            &[0; 8],
            &[1, 2, 3, 0],
            &[8, 0, 3, 0],
            b"br0\0",
            &[12, 0, 18, 0x80],
            &[6, 0, 1, 0],
            &[b'a', b'b', 0, 0],
        ];
        assert_eq!(batch.requests[0].bytes, expected.concat());
    }

    #[test]
    fn the_loopback_interface_is_found_by_name_and_in_the_list() {
        // `RTM_GETLINK` and `IFLA_IFNAME`.
        const GET: u16 = 18;
        const NAME: u16 = 3;
        let netlink = Netlink::route().unwrap();
        let named = |name: &CStr| {
            netlink.query(GET, 0, &[0; 16], |attributes| {
                attributes.text(NAME, name);
            })
        };
        let one = named(c"lo").unwrap();
        let name = |message: &Message| {
            let attributes = message.attributes(16);
            attributes.iter().find(|(kind, _)| *kind == NAME).map(|(_, value)| value.to_vec())
        };
        assert_eq!(one.iter().map(name).collect::<Vec<_>>(), [Some(b"lo\0".to_vec())]);
        let all = netlink.query(GET, DUMP, &[0; 16], |_| {}).unwrap();
        assert!(all.iter().any(|message| message.number(4) == one[0].number(4)));
        assert_eq!(named(c"not-there"), Err(Errno::NODEV));
    }

    #[test]
    fn an_answer_names_its_request() {
        let message = |sequence: u32, error: i32| {
            let header = [36_u32.to_ne_bytes(), [2, 0, 0, 0], sequence.to_ne_bytes(), [0; 4]].concat();
            [header, error.to_ne_bytes().to_vec(), vec![0; 16]].concat()
        };
        let both = [message(0, 0), message(7, -17)].concat();
        assert_eq!(answers(&both), [(0, None), (7, Some(Errno::EXIST))]);
        assert_eq!(answers(&both[..30]), [(0, None)]);
    }
}
