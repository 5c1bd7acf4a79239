//! A machine on which commands run: this host, or another one by the system's ssh.
//!
//! Commands are words, never shell text. On another machine they pass through the user's login shell and a POSIX shell
//! ([`quote`], [`script`]); what profiles and banners print around their output is cut off by marks ([`marks`]).

mod control;
mod marks;
mod problems;
mod process;
mod quote;
mod running;
mod script;
mod send;
mod ssh;
mod store;
mod tree;

use std::io;
use std::time::Duration;

use jobc_sys::error::Result;

pub use running::{Running, Stream, Streams};
pub use send::{FileSource, SendFile, Sent};
pub use ssh::{Ssh, SshSettings};
pub use tree::{Tree, TreeEntry, TreeKind};

/// A machine on which commands run: this host, or another one by the system's ssh.
#[derive(Debug)]
pub enum Host {
    /// This host.
    Local,
    /// Another machine.
    Ssh(Ssh),
}

/// What a command printed, and its exit status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Its exit code; 128 and the signal's number if a signal ended it.
    pub status: i32,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
}

impl Output {
    /// Standard output as text; bytes that are not UTF-8 are replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// The last line of standard error that is not empty, or else of standard output.
    pub fn last_line(&self) -> String {
        let last = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
        };
        last(&self.stderr).or_else(|| last(&self.stdout)).unwrap_or_default()
    }
}

/// Writes what a command reads.
pub(crate) type Input<'a> = &'a (dyn Fn(&mut dyn io::Write) -> io::Result<()> + Sync);

impl Host {
    /// This host.
    pub fn local() -> Self {
        Self::Local
    }

    /// Another machine. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// The settings name no machine.
    pub fn ssh(settings: SshSettings) -> Result<Self> {
        Ssh::new(settings).map(Self::Ssh)
    }

    /// The name in messages: `this host`, or the name of the machine.
    pub fn name(&self) -> &str {
        match self {
            Self::Local => "this host",
            Self::Ssh(ssh) => ssh.name(),
        }
    }

    /// Runs a command to its end, with bytes to read or nothing. Its output is bounded (64 MiB).
    ///
    /// A command that fails is no error: see [`Output::status`].
    ///
    /// # Errors
    ///
    /// The machine cannot be reached, the command cannot start on this host, there is too much output, or it takes
    /// longer than `timeout`.
    pub fn run(&self, command: &[&str], stdin: Option<&[u8]>, timeout: Duration) -> Result<Output> {
        let bytes = stdin.map(|bytes| move |output: &mut dyn io::Write| output.write_all(bytes));
        self.run_with(command, bytes.as_ref().map(|write| write as Input<'_>), timeout)
    }

    /// The same with a function that writes what the command reads. The timeout starts anew whenever bytes move.
    pub(crate) fn run_with(
        &self,
        command: &[&str],
        stdin: Option<Input<'_>>,
        timeout: Duration,
    ) -> Result<Output> {
        match self {
            Self::Local => process::run(process::local(command)?, stdin, timeout),
            Self::Ssh(ssh) => ssh.run(command, stdin, timeout),
        }
    }

    /// Starts a command whose streams are used while it runs.
    ///
    /// With `terminal` the command gets a terminal; then standard input should be the user's terminal, which ssh puts
    /// into raw mode and whose size it passes on. A command that reads nothing gets SIGTERM when this process or the
    /// connection ends.
    ///
    /// # Errors
    ///
    /// The program, or ssh, cannot start.
    pub fn start(&self, command: &[&str], streams: Streams, terminal: bool) -> Result<Running> {
        match self {
            Self::Local => Running::local(process::local(command)?, streams),
            Self::Ssh(ssh) => ssh.start(command, streams, terminal),
        }
    }

    /// Sends files that a directory on the machine does not have yet. Each is kept under its digest, as
    /// `STORE/sha256/HEX`; one that is there is whole.
    ///
    /// One question finds out what is missing; one tar archive brings it. `store` is a path on the machine; a relative
    /// one begins in the home directory there.
    ///
    /// # Errors
    ///
    /// A file cannot be read or changes meanwhile, the machine cannot be reached, or its disk is full.
    pub fn send(&self, store: &str, files: &[SendFile]) -> Result<Sent> {
        send::send(self, store, files)
    }

    /// Sends a directory: missing files by [`Self::send`], then the directory itself, made of hard links to the store's
    /// files, or copies where there cannot be links. It gets its name when it is complete; if that is there already,
    /// nothing happens.
    ///
    /// # Errors
    ///
    /// As for [`Self::send`].
    pub fn send_tree(&self, store: &str, directory: &str, tree: &Tree) -> Result<Sent> {
        tree::send(self, store, directory, tree)
    }
}
