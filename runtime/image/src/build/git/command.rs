//! Runs `git` so that the repository does not decide what else is run.
//!
//! It runs no hooks, asks no questions, and follows no protocol but those of its [`Limits`], submodules' included (git(1),
//! `GIT_ALLOW_PROTOCOL`). It is stopped when its caller is, after a time, and when it has written too much.

use std::io::Read;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::super::access::without_password;
use super::environment::{self, Settings};
use super::failure::Failure;
use jobc_sys::error::{Error, Kind, Result, describe_io};

/// How often it is checked whether it has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum bytes kept of its output.
const MAX_OUTPUT_BYTES: u64 = 4 << 20;

/// Settings of every command: no hooks, no background processes, no symlinks that are checked out as files.
const SETTINGS: [&str; 8] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.protectNTFS=true",
    "core.protectHFS=true",
    "gc.auto=0",
    "maintenance.auto=false",
    "http.lowSpeedLimit=1000",
    "http.lowSpeedTime=60",
];

/// The permissions of a command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The protocols that it follows, with `:` between them.
    pub(super) protocols: &'static str,
    /// How long one command may take.
    pub(super) timeout: Duration,
    /// Maximum bytes of a repository with its submodules.
    pub(super) max_bytes: u64,
    /// Maximum files of it.
    pub(super) max_entries: u64,
}

/// The limits of build contexts.
pub(super) const OF_BUILDS: Limits = Limits {
    protocols: "https:ssh",
    timeout: Duration::from_mins(30),
    max_bytes: 32 << 30,
    max_entries: 5_000_000,
};

/// `git`, in a directory.
pub(super) struct Git<'a> {
    /// The repository, for messages.
    pub(super) url: &'a str,
    /// Where it runs, which is its home too.
    pub(super) directory: &'a Path,
    /// The settings that it uses.
    pub(super) settings: Settings<'a>,
    /// Whether the build is canceled.
    pub(super) stopped: &'a AtomicBool,
    /// Its limits.
    pub(super) limits: Limits,
}

impl Git<'_> {
    /// Runs a command, and returns the text that it wrote.
    pub(super) fn run(&self, words: &[&str]) -> Result<String> {
        Ok(String::from_utf8_lossy(&self.run_bytes(words)?).into_owned())
    }

    /// Runs a command, and returns its output, at most 4 MiB.
    pub(super) fn run_bytes(&self, words: &[&str]) -> Result<Vec<u8>> {
        self.attempt(words)?.map_err(|failure| failure.error(self.settings))
    }

    /// Runs a command; a failure of git itself is returned as such.
    pub(super) fn attempt(&self, words: &[&str]) -> Result<std::result::Result<Vec<u8>, Failure>> {
        let mut child = self.command(words).spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                Error::new(Kind::Unsupported, "`git` is not installed").help(self.settings.install_help())
            }
            _ => Error::new(Kind::System, format!("cannot run `git`: {}", describe_io(&error))),
        })?;
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        std::thread::scope(|scope| {
            let output = scope.spawn(move || read(output));
            let errors = scope.spawn(move || read(errors));
            let ended = self.wait(&mut child);
            let join = |bytes: std::thread::ScopedJoinHandle<'_, Vec<u8>>| bytes.join().unwrap_or_default();
            let (output, errors) = (join(output), join(errors));
            let failure = || Failure::new(words, self.url, &String::from_utf8_lossy(&errors));
            Ok(if ended? { Ok(output) } else { Err(failure()) })
        })
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("git");
        for setting in SETTINGS {
            command.arg("-c").arg(setting);
        }
        environment::set(&mut command, self.settings, self.directory);
        command
            .args(words)
            .current_dir(self.directory)
            .env("GIT_ALLOW_PROTOCOL", self.limits.protocols)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // So that its children end with it.
            .process_group(0);
        command
    }

    /// Waits for the end; returns whether it succeeded.
    fn wait(&self, child: &mut Child) -> Result<bool> {
        let began = Instant::now();
        let mut next_check = Duration::from_secs(1);
        loop {
            let ended = child
                .try_wait()
                .map_err(|error| Error::new(Kind::System, "cannot wait for `git`").because(error))?;
            if let Some(status) = ended {
                return Ok(status.success());
            }
            let elapsed = began.elapsed();
            let why = if self.stopped.load(Ordering::Relaxed) {
                Some(Error::new(Kind::State, "the build was canceled"))
            } else if elapsed > self.limits.timeout {
                let timeout = humantime::format_duration(self.limits.timeout);
                Some(Error::new(
                    Kind::State,
                    format!("`git` for `{}` timed out after {timeout}", self.shown()),
                ))
            } else if elapsed > next_check {
                let size = Size::of(self.directory, self.limits);
                // Looking takes a small part of the time.
                next_check = elapsed + began.elapsed().saturating_sub(elapsed) * 10 + Duration::from_secs(1);
                size.is_above(self.limits).then(|| {
                    let Limits { max_bytes, max_entries, .. } = self.limits;
                    let (mebibytes, shown) = (max_bytes >> 20, self.shown());
                    Error::new(
                        Kind::State,
                        format!(
                            "the repository `{shown}` has more than {mebibytes} MiB or {max_entries} files"
                        ),
                    )
                })
            } else {
                None
            };
            if let Some(error) = why {
                kill_group(child);
                return Err(error);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    fn shown(&self) -> String {
        without_password(self.url)
    }
}

/// Ends git with its children.
fn kill_group(child: &mut Child) {
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
    let _ = child.wait();
}

fn read(from: Option<impl Read>) -> Vec<u8> {
    let mut kept = Vec::new();
    if let Some(mut from) = from {
        let _ = from.by_ref().take(MAX_OUTPUT_BYTES).read_to_end(&mut kept);
        let _ = std::io::copy(&mut from, &mut std::io::sink());
    }
    kept
}

/// The files and bytes of a directory, counted up to the limits.
#[derive(Default)]
struct Size {
    bytes: u64,
    entries: u64,
}

impl Size {
    fn of(directory: &Path, limits: Limits) -> Self {
        let mut size = Self::default();
        let mut directories = vec![directory.to_owned()];
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
                size.entries += 1;
                // Files may go while they are counted.
                let Ok(data) = entry.metadata() else { continue };
                if data.is_dir() {
                    directories.push(entry.path());
                } else {
                    size.bytes += data.len();
                }
                if size.is_above(limits) {
                    return size;
                }
            }
        }
        size
    }

    fn is_above(&self, limits: Limits) -> bool {
        self.bytes > limits.max_bytes || self.entries > limits.max_entries
    }
}
