//! The relay between the container's pseudo-terminal and our standard input and output.
//!
//! Nothing here waits: a full pipe, a stopped terminal or a container that does not read holds up its own direction
//! only, and signals go on being passed on.

use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::pty::OpenptFlags;
use rustix::stdio::{stdin, stdout};
use rustix::termios::{SpecialCodeIndex, Winsize, isatty, tcgetattr, tcgetwinsize, tcsetwinsize};

use super::RawMode;
use jobc_sys::error::{Error, Result};

/// Relays bytes between our standard input and output and a container's terminal, in both directions.
#[derive(Debug)]
pub struct Relay {
    /// Closed when our output no longer has a reader, which hangs up the container's terminal.
    master: Option<OwnedFd>,
    /// The container's side, held so that the master does not end while a program has closed its terminal and may open
    /// `/dev/console` again.
    peer: Option<OwnedFd>,
    /// Where the user's bytes come from, until they end.
    input: Option<Endpoint>,
    /// Where the container's bytes go.
    output: Endpoint,
    to_container: Buffer,
    to_user: Buffer,
    /// Whether the container is gone.
    ending: bool,
    /// Held for as long as we relay.
    #[allow(dead_code)] // dropping it is its use
    raw_mode: Option<RawMode>,
}

/// One of our sides.
#[derive(Debug)]
struct Endpoint {
    descriptor: OwnedFd,
    /// Whether it makes its reader or writer wait: a file, which never does for long, or a socket. It is written in
    /// pieces that fit where `poll` reports space.
    is_blocking: bool,
}

/// The number of bytes that a pipe accepts without blocking when `poll` reports it as writable (`PIPE_BUF`, pipe(7)).
const CHUNK_SIZE: usize = 4096;

impl Relay {
    /// Begins to relay between a container's terminal and our standard input and output: the terminal gets the size of
    /// ours, and ours becomes raw.
    pub fn new(master: OwnedFd) -> Result<Self> {
        let own = |fd: BorrowedFd<'_>| {
            rustix::io::fcntl_dupfd_cloexec(fd, 3)
                .map_err(|errno| Error::system("duplicate a file descriptor", errno))
        };
        let mut relay = Self::between(master, own(stdin())?, own(stdout())?)?;
        relay.resize();
        relay.raw_mode = RawMode::enter();
        Ok(relay)
    }

    fn between(master: OwnedFd, input: OwnedFd, output: OwnedFd) -> Result<Self> {
        let flags = rustix::fs::fcntl_getfl(&master)
            .map_err(|errno| Error::system("read a terminal's flags", errno))?;
        rustix::fs::fcntl_setfl(&master, flags | OFlags::NONBLOCK)
            .map_err(|errno| Error::system("set a terminal's flags", errno))?;
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        Ok(Self {
            peer: rustix::pty::ioctl_tiocgptpeer(&master, flags).ok(),
            master: Some(master),
            input: Some(Endpoint::new(input, OFlags::RDONLY)),
            output: Endpoint::new(output, OFlags::WRONLY),
            to_container: Buffer::default(),
            to_user: Buffer::default(),
            ending: false,
            raw_mode: None,
        })
    }

    /// Sets the size of the container's terminal to ours; the kernel notifies its programs.
    pub fn resize(&self) {
        if let (Some(size), Some(master)) = (window_size(), &self.master) {
            let _ = tcsetwinsize(master, size);
        }
    }

    /// The events to wait for now.
    pub fn poll_fds(&self) -> Vec<PollFd<'_>> {
        let mut interests = Vec::with_capacity(3);
        if let Some(master) = &self.master {
            let mut events = PollFlags::empty();
            events.set(PollFlags::IN, self.to_user.has_room());
            events.set(PollFlags::OUT, !self.to_container.is_empty());
            if !events.is_empty() {
                interests.push(PollFd::new(master, events));
            }
            if self.to_container.has_room()
                && let Some(input) = &self.input
            {
                interests.push(PollFd::new(&input.descriptor, PollFlags::IN));
            }
        }
        if !self.to_user.is_empty() {
            interests.push(PollFd::new(&self.output.descriptor, PollFlags::OUT));
        }
        interests
    }

    /// Moves data without blocking; `ready` has the events for [`poll_fds`](Self::poll_fds).
    pub fn step(&mut self, ready: Ready) {
        if ready.input {
            self.read_input();
        }
        self.write_container();
        self.read_container();
        if ready.output || !self.output.is_blocking {
            self.write_output();
        }
    }

    /// After the container's end: reads the rest of its output. Bytes that the user's side does not accept immediately
    /// stay; see [`is_done`](Self::is_done).
    pub fn finish(&mut self) {
        self.ending = true;
        self.peer = None;
        self.input = None;
        self.to_container.clear();
        self.step(Ready::default());
        if self.to_user.has_room() {
            self.master = None;
        }
    }

    /// Whether [`finish`](Self::finish) was called.
    pub fn is_ending(&self) -> bool {
        self.ending
    }

    /// Whether everything the container wrote has been passed on.
    pub fn is_done(&self) -> bool {
        self.master.is_none() && self.to_user.is_empty()
    }

    fn read_input(&mut self) {
        let Some(input) = &self.input else { return };
        match rustix::io::read(&input.descriptor, self.to_container.room()) {
            Ok(0) | Err(Errno::IO) => self.end_input(),
            Ok(count) => self.to_container.commit(count),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.end_input(),
        }
    }

    /// Our input has ended: the container's programs read an end, as from a terminal whose user presses Ctrl-D. After
    /// an unfinished line it takes two, the first of which only hands the line over.
    fn end_input(&mut self) {
        self.input = None;
        let unfinished = self.to_container.last.is_some_and(|byte| byte != b'\n' && byte != b'\r');
        let end = self.end_key();
        self.to_container.push(&[end, end][usize::from(!unfinished)..]);
    }

    /// The key for the end of the input, as the container's terminal is set.
    fn end_key(&self) -> u8 {
        const CTRL_D: u8 = 4;
        let settings = self.master.as_ref().and_then(|master| tcgetattr(master).ok());
        settings.map_or(CTRL_D, |settings| settings.special_codes[SpecialCodeIndex::VEOF])
    }

    /// How long to wait before [`resend_end_of_input`](Self::resend_end_of_input), in milliseconds; nothing if not needed.
    pub fn reminder_timeout(&self) -> Option<u32> {
        (self.input.is_none() && self.master.is_some() && !self.ending).then_some(200)
    }

    /// The end of an input lasts, and a key is read once: it is written again after it was read. A shell that
    /// sets its terminal anew at its start even drops it.
    pub fn resend_end_of_input(&mut self) {
        let Some(peer) = &self.peer else { return };
        let mut waiting = [PollFd::new(peer, PollFlags::IN)];
        let nothing = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        let unread = rustix::event::poll(&mut waiting, Some(&nothing)) != Ok(0);
        if self.to_container.is_empty() && !unread {
            let end = self.end_key();
            self.to_container.push(&[end]);
            self.write_container();
        }
    }

    fn write_container(&mut self) {
        let Some(master) = &self.master else { return };
        while !self.to_container.is_empty() {
            match rustix::io::write(master, self.to_container.content()) {
                Ok(count) => self.to_container.consume(count),
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }

    fn read_container(&mut self) {
        let Some(master) = &self.master else { return };
        while self.to_user.has_room() {
            match rustix::io::read(master, self.to_user.room()) {
                Ok(0) => return,
                Ok(count) => self.to_user.commit(count),
                Err(Errno::INTR) => {}
                // AGAIN: no data now. IO: the other side is closed, which `finish` waits for.
                Err(_) => return,
            }
        }
    }

    fn write_output(&mut self) {
        while !self.to_user.is_empty() {
            let content = self.to_user.content();
            let piece =
                if self.output.is_blocking { &content[..content.len().min(CHUNK_SIZE)] } else { content };
            match rustix::io::write(&self.output.descriptor, piece) {
                Ok(count) => self.to_user.consume(count),
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return,
                Err(_) => {
                    // No reader is left: the container's programs get a hangup, as from a closed terminal.
                    self.to_user.clear();
                    self.peer = None;
                    self.master = None;
                }
            }
            if self.output.is_blocking {
                return;
            }
        }
    }
}

/// The size of our own terminal; nothing where we have none, or it does not know.
pub(crate) fn window_size() -> Option<Winsize> {
    let sides = [stdin(), stdout(), rustix::stdio::stderr()];
    sides.into_iter().find_map(|fd| tcgetwinsize(fd).ok()).filter(|size| size.ws_row > 0)
}

/// The sides that `poll` found ready.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ready {
    /// Standard input has something, or has ended.
    pub input: bool,
    /// Standard output takes something.
    pub output: bool,
}

impl Relay {
    /// Which of our sides are ready, by what `poll` left in [`poll_fds`](Self::poll_fds).
    pub fn ready(&self, polled: &[PollFd<'_>]) -> Ready {
        let ready = |side: &Endpoint| {
            let number = side.descriptor.as_raw_fd();
            polled.iter().any(|polled| polled.as_fd().as_raw_fd() == number && !polled.revents().is_empty())
        };
        Ready { input: self.input.as_ref().is_some_and(ready), output: ready(&self.output) }
    }
}

impl Endpoint {
    fn new(descriptor: OwnedFd, access: OFlags) -> Self {
        match reopen(&descriptor, access) {
            Some(descriptor) => Self { descriptor, is_blocking: false },
            None => Self { descriptor, is_blocking: true },
        }
    }
}

/// Opens a terminal or a pipe again: non-blocking mode belongs to the open file, which other programs share with us, so
/// it must not be changed there. A regular file would start from its beginning, and a socket cannot be opened by name.
fn reopen(fd: &OwnedFd, access: OFlags) -> Option<OwnedFd> {
    let kind = FileType::from_raw_mode(rustix::fs::fstat(fd).ok()?.st_mode);
    if !isatty(fd) && kind != FileType::Fifo {
        return None;
    }
    let flags = access | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::open(format!("/proc/self/fd/{}", fd.as_raw_fd()), flags, Mode::empty()).ok()
}

/// Buffered bytes of one direction.
#[derive(Debug)]
struct Buffer {
    bytes: Box<[u8; 4 * CHUNK_SIZE]>,
    start: usize,
    end: usize,
    /// The last byte that came in.
    last: Option<u8>,
}

impl Default for Buffer {
    fn default() -> Self {
        Self { bytes: Box::new([0; 4 * CHUNK_SIZE]), start: 0, end: 0, last: None }
    }
}

impl Buffer {
    fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Two bytes are kept free for the end of the input.
    fn has_room(&self) -> bool {
        self.end - self.start + 2 < self.bytes.len()
    }

    fn room(&mut self) -> &mut [u8] {
        self.bytes.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let limit = self.bytes.len() - 2;
        &mut self.bytes[self.end..limit]
    }

    fn commit(&mut self, count: usize) {
        self.end += count;
        self.last = self.content().last().copied();
    }

    fn push(&mut self, bytes: &[u8]) {
        self.room();
        self.bytes[self.end..self.end + bytes.len()].copy_from_slice(bytes);
        self.end += bytes.len();
    }

    fn content(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    fn consume(&mut self, count: usize) {
        self.start += count;
        if self.is_empty() {
            (self.start, self.end) = (0, 0);
        }
    }

    fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }
}

#[cfg(test)]
mod tests;
