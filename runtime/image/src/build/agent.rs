//! `RUN --mount=type=ssh`: a socket for the command, whose requests are forwarded to the user's SSH agent.
//!
//! The command gets signatures and nothing else: requests that would add, remove or lock keys are answered with a
//! failure, as BuildKit does it. The protocol is draft-ietf-sshm-ssh-agent: a length of four bytes, a type, a content.

use std::io::{self, Read, Write};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use jobc_sys::error::{Error, Kind, Result, describe_io};

/// The list of keys, and a signature.
const SSH_AGENTC_REQUEST_IDENTITIES: u8 = 11;
const SSH_AGENTC_SIGN_REQUEST: u8 = 13;
/// The failure message, with its length.
const SSH_AGENT_FAILURE: [u8; 5] = [0, 0, 0, 1, 5];

/// The longest message, as in OpenSSH's agent.
const MAX_MESSAGE_BYTES: usize = 256 << 10;
/// How many connections a command may have at a time.
const MAX_CONNECTIONS: usize = 64;
/// How long the agent may take to answer: it may ask the user.
const AGENT_TIMEOUT: Duration = Duration::from_mins(2);
/// How often it is checked whether the command has ended.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A socket that forwards to an agent. Dropping it closes and removes it.
pub(super) struct AgentSocket {
    path: PathBuf,
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl AgentSocket {
    /// Listens at `name` in a directory, for the agent that listens at `agent`.
    pub(super) fn listen(
        directory: &Path,
        name: &str,
        agent: &Path,
        mode: u32,
        owner: (u32, u32),
    ) -> Result<Self> {
        let path = directory.join(name);
        let failed = |error: io::Error| {
            Error::new(Kind::System, format!("cannot listen at `{}`", path.display())).because(error)
        };
        // Connecting shows whether there is an agent.
        connect(agent)?;
        let open = std::fs::File::open(directory).map_err(failed)?;
        // A socket's path is limited to 107 bytes (unix(7)); the store's may be longer.
        let listener =
            UnixListener::bind(format!("/proc/self/fd/{}/{name}", open.as_raw_fd())).map_err(failed)?;
        let (uid, gid) = owner;
        let mode = if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(uid), Some(gid)).map_err(failed)?;
            mode
        } else if owner == (0, 0) {
            mode
        } else {
            // It cannot be given away. Only this user and the command can reach the directory.
            mode | 0o666
        };
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let stopped = Arc::new(AtomicBool::new(false));
        let (seen, agent) = (Arc::clone(&stopped), agent.to_owned());
        let thread = std::thread::spawn(move || serve(&listener, &agent, &seen));
        Ok(Self { path, stopped, thread: Some(thread) })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for AgentSocket {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A connection to the user's agent.
fn connect(agent: &Path) -> Result<UnixStream> {
    let connect = || {
        let stream = UnixStream::connect(agent)?;
        stream.set_read_timeout(Some(AGENT_TIMEOUT))?;
        stream.set_write_timeout(Some(AGENT_TIMEOUT))?;
        Ok(stream)
    };
    connect().map_err(|error: io::Error| {
        let message =
            format!("cannot connect to the SSH agent at `{}`: {}", agent.display(), describe_io(&error));
        Error::new(Kind::Config, message)
            .help("start one with `ssh-agent`, and name its socket: `--ssh default=SOCKET`")
    })
}

fn serve(listener: &UnixListener, agent: &Path, stopped: &Arc<AtomicBool>) {
    let connections = Arc::new(AtomicUsize::new(0));
    while !stopped.load(Ordering::Relaxed) {
        let Ok((stream, _)) = listener.accept() else {
            std::thread::sleep(STOP_POLL_INTERVAL);
            continue;
        };
        if connections.fetch_add(1, Ordering::Relaxed) >= MAX_CONNECTIONS {
            connections.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (agent, stopped, connections) = (agent.to_owned(), Arc::clone(stopped), Arc::clone(&connections));
        std::thread::spawn(move || {
            let _ = relay(stream, &agent, &stopped);
            connections.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

/// Passes the messages of one connection on, until it is closed or the command has ended.
fn relay(mut command: UnixStream, agent: &Path, stopped: &AtomicBool) -> io::Result<()> {
    command.set_nonblocking(false)?;
    command.set_read_timeout(Some(STOP_POLL_INTERVAL))?;
    command.set_write_timeout(Some(AGENT_TIMEOUT))?;
    let mut agent = connect(agent).map_err(|error| io::Error::other(error.message()))?;
    loop {
        let mut command_reader = Interruptible { stream: &command, stopped };
        let request = read_message(&mut command_reader)?;
        let response = match request.get(4) {
            Some(&(SSH_AGENTC_REQUEST_IDENTITIES | SSH_AGENTC_SIGN_REQUEST)) => {
                agent.write_all(&request)?;
                read_message(&mut agent)?
            }
            _ => SSH_AGENT_FAILURE.to_vec(),
        };
        command.write_all(&response)?;
    }
}

/// A message with its length.
fn read_message(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut message = vec![0; 4];
    from.read_exact(&mut message)?;
    let length = u32::from_be_bytes([message[0], message[1], message[2], message[3]]) as usize;
    if length == 0 || length > MAX_MESSAGE_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    message.resize(4 + length, 0);
    from.read_exact(&mut message[4..])?;
    Ok(message)
}

/// A stream with a read timeout, read until something comes or the command has ended.
struct Interruptible<'a> {
    stream: &'a UnixStream,
    stopped: &'a AtomicBool,
}

impl Read for Interruptible<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match (&mut &*self.stream).read(buffer) {
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    if self.stopped.load(Ordering::Relaxed) {
                        return Ok(0);
                    }
                }
                other => return other,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An agent that answers each request with its own bytes, its type changed.
    fn agent(path: &Path) -> JoinHandle<usize> {
        let listener = UnixListener::bind(path).unwrap();
        std::thread::spawn(move || {
            let mut answered = 0;
            // The first connection only looks whether there is an agent.
            for _ in 0..2 {
                let (mut stream, _) = listener.accept().unwrap();
                while let Ok(mut message) = read_message(&mut stream) {
                    message[4] += 1;
                    stream.write_all(&message).unwrap();
                    answered += 1;
                }
            }
            answered
        })
    }

    #[test]
    fn a_command_gets_signatures_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let real = directory.path().join("real");
        let agent = agent(&real);
        let socket = AgentSocket::listen(directory.path(), "forwarded", &real, 0o600, (0, 0)).unwrap();
        let mut stream = UnixStream::connect(socket.path()).unwrap();
        let mut ask = |kind: u8, content: &[u8]| {
            let length = u32::try_from(content.len() + 1).unwrap();
            stream.write_all(&length.to_be_bytes()).unwrap();
            stream.write_all(&[kind]).unwrap();
            stream.write_all(content).unwrap();
            read_message(&mut stream).unwrap()[4..].to_vec()
        };
        assert_eq!(ask(SSH_AGENTC_REQUEST_IDENTITIES, b""), [12]);
        assert_eq!(ask(SSH_AGENTC_SIGN_REQUEST, b"data"), b"\x0edata");
        // Add a key, remove all, lock, an extension.
        for kind in [17, 19, 22, 27] {
            assert_eq!(ask(kind, b"x"), [5], "{kind}");
        }
        drop(stream);
        let path = socket.path().to_owned();
        drop(socket);
        assert!(!path.exists());
        assert_eq!(agent.join().unwrap(), 2);
    }

    #[test]
    fn a_message_is_bounded_and_an_absent_agent_an_error() {
        let mut large: &[u8] = &[0x7f, 0xff, 0xff, 0xff, 11];
        assert_eq!(read_message(&mut large).unwrap_err().kind(), io::ErrorKind::InvalidData);
        let directory = tempfile::tempdir().unwrap();
        let absent =
            AgentSocket::listen(directory.path(), "x", &directory.path().join("none"), 0o600, (0, 0));
        assert!(absent.is_err_and(|error| error.message().contains("cannot connect to the SSH agent")));
    }
}
