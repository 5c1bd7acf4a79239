//! A hook's process in this one's namespaces.

use std::io::{Seek as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use oci_spec::runtime::Hook;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, OFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, Signal};

use super::program::Program;
use super::{HookContext, Stage, timeout};
use jobc_schema::plural;
use jobc_sys::error::{Error, Kind, Result};

/// How much of what a hook wrote is kept for its error, in bytes and in lines.
const MAX_OUTPUT_BYTES: usize = 8 * 1024;
const MAX_OUTPUT_LINES: usize = 10;

/// A hook that is ready to run.
#[derive(Debug)]
pub(super) struct RuntimeHook<'a> {
    stage: Stage,
    path: &'a PathBuf,
    arguments: &'a [String],
    /// Nothing where config.json has no `env`.
    environment: Option<Vec<(&'a str, &'a str)>>,
    timeout: Duration,
    program: Program,
}

/// How a hook's run ended.
enum HookEnd {
    Exited(ExitStatus),
    TimedOut,
    Canceled,
}

impl<'a> RuntimeHook<'a> {
    pub(super) fn of(stage: Stage, hook: &'a Hook) -> Result<Self> {
        let variable =
            |(index, item): (usize, &'a String)| match item.split_once('=') {
                Some((name, value)) if !name.is_empty() => Ok((name, value)),
                _ => Err(Error::new(Kind::Config, format!("`{item}` is not NAME=VALUE"))
                    .at(format!("/env/{index}"))),
            };
        let variables =
            hook.env().as_ref().map(|list| list.iter().enumerate().map(variable).collect::<Result<_>>());
        Ok(Self {
            stage,
            path: hook.path(),
            arguments: hook.args().as_deref().unwrap_or_default(),
            environment: variables.transpose()?,
            timeout: timeout(hook)?,
            program: Program::open(hook.path())?,
        })
    }

    /// Runs it and waits for it to exit. After the timeout, its process group is killed.
    pub(super) fn carry_out(&self, given: HookContext<'_>) -> Result<()> {
        let (reader, writer) =
            pipe_with(PipeFlags::CLOEXEC).map_err(|errno| Error::system("make a pipe for a hook", errno))?;
        rustix::fs::fcntl_setfl(&reader, OFlags::NONBLOCK)
            .map_err(|errno| Error::system("make a pipe for a hook", errno))?;
        let mut child = self.start(given, writer)?;
        let mut words = OutputTail { reader: Some(reader), kept: Vec::new() };
        let end = wait(&mut child, &mut words, self.timeout, given)
            .map_err(|error| self.error(&format!("was lost: {error}")));
        if !matches!(end, Ok(HookEnd::Exited(_))) {
            let _ = rustix::process::kill_process_group(Pid::from_child(&child), Signal::KILL);
            let _ = child.wait();
        }
        words.read(1 << 16);
        let failed = match end? {
            HookEnd::Exited(status) if status.success() => return Ok(()),
            HookEnd::Exited(status) => match (status.code(), status.signal()) {
                (Some(code), _) => self.error(&format!("ended with exit code {code}")),
                (None, signal) => self.error(&format!("was ended by signal {}", signal.unwrap_or_default())),
            },
            HookEnd::TimedOut => self
                .error(&format!("was killed after {}", plural(self.timeout.as_secs(), "second")))
                .help("set a longer `timeout`"),
            HookEnd::Canceled => self.error("was killed: the start was canceled"),
        };
        Err(Error { what: failed.what.clone() + &words.last_lines(), ..failed })
    }

    fn start(&self, given: HookContext<'_>, output: OwnedFd) -> Result<Child> {
        // A file, not a pipe: a hook need not read its state, and a long one must not make anyone wait.
        let mut state: std::fs::File = rustix::fs::memfd_create(c"jobc-state", MemfdFlags::CLOEXEC)
            .map_err(|errno| Error::system("make a file in memory for a hook's state", errno))?
            .into();
        let ready = state.write_all(given.state).and_then(|()| state.rewind());
        let copied = ready.and_then(|()| output.try_clone());
        let errors = copied.map_err(|error| self.error(&format!("cannot get its state: {error}")))?;
        let mut command = Command::new(self.program.executable());
        match self.arguments {
            [] => command.arg0(self.path),
            [name, arguments @ ..] => command.arg0(name).args(arguments),
        };
        if self.environment.is_some() || !given.inherits_environment {
            command.env_clear();
        }
        command
            .envs(self.environment.iter().flatten().copied())
            .current_dir(given.bundle)
            .process_group(0)
            .stdin(state)
            .stdout(output)
            .stderr(Stdio::from(errors));
        command.spawn().map_err(|error| {
            let why =
                Errno::from_io_error(&error).map_or_else(|| error.to_string(), jobc_sys::error::describe);
            let failed = self.error(&format!("cannot be executed: {why}"));
            if error.kind() == std::io::ErrorKind::NotFound {
                failed.help("a script's interpreter and the bundle directory must exist")
            } else {
                failed
            }
        })
    }

    fn error(&self, what: &str) -> Error {
        Error::new(Kind::Hook, format!("the {} hook `{}` {what}", self.stage, self.path.display()))
    }
}

/// Waits for the hook's end, for the end of its time, or for the giving up of the start, and reads what it writes.
fn wait(
    child: &mut Child,
    words: &mut OutputTail,
    time_out: Duration,
    given: HookContext<'_>,
) -> std::io::Result<HookEnd> {
    let started = Instant::now();
    let pidfd = rustix::process::pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    loop {
        let mut polled = vec![PollFd::new(&pidfd, PollFlags::IN)];
        polled.extend(given.cancel_fd.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
        polled.extend(words.reader.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
        let left = time_out.saturating_sub(started.elapsed());
        if left.is_zero() {
            return Ok(HookEnd::TimedOut);
        }
        let left = Timespec::try_from(left).ok();
        match poll(&mut polled, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let ready: Vec<bool> = polled.iter().map(|fd| !fd.revents().is_empty()).collect();
        words.read(MAX_OUTPUT_BYTES);
        match ready[..] {
            [true, ..] => return Ok(HookEnd::Exited(child.wait()?)),
            [_, true, ..] if given.cancel_fd.is_some() => return Ok(HookEnd::Canceled),
            _ => {}
        }
    }
}

/// The output of a hook (stdout and stderr), of which the end is kept.
struct OutputTail {
    /// Gone once every writer is.
    reader: Option<OwnedFd>,
    kept: Vec<u8>,
}

impl OutputTail {
    /// Reads what is there now, up to about `limit` bytes: what a hook leaves behind may go on writing.
    fn read(&mut self, limit: usize) {
        let mut buffer = [0; 4096];
        let mut total = 0;
        while let Some(reader) = &self.reader
            && total < limit
        {
            match rustix::io::read(reader.as_fd(), &mut buffer) {
                Ok(0) => self.reader = None,
                Ok(count) => {
                    total += count;
                    self.kept.extend_from_slice(&buffer[..count]);
                    let surplus = self.kept.len().saturating_sub(MAX_OUTPUT_BYTES);
                    self.kept.drain(..surplus);
                }
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
    }

    /// The last lines, to follow a message; no control characters, which a terminal would obey.
    fn last_lines(&self) -> String {
        let text = String::from_utf8_lossy(&self.kept);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let from = lines.len().saturating_sub(MAX_OUTPUT_LINES);
        let shown = lines[from..]
            .iter()
            .map(|line| format!("\n  {}", line.replace(char::is_control, " ").trim_end()));
        let shown: String = shown.collect();
        if shown.is_empty() { shown } else { format!("; it wrote:{shown}") }
    }
}
