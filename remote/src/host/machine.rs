//! Commands on this host or on another host, by one interface.

use std::io;
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use jobc_sys::error::{Error, Kind, Result};

use super::output::{Input, Output};
use super::process;
use super::running::{Running, Streams};
use super::ssh::{Ssh, SshSettings};

/// A host on which commands run: this host, or another one by the system's ssh.
#[derive(Debug)]
pub enum Host {
    /// This host.
    Local,
    /// Another host.
    Ssh(Ssh),
}

/// Runs a command of this host to its end, with bytes to read or nothing.
pub(crate) fn run_here(command: Command, stdin: Option<&[u8]>, timeout: Duration) -> Result<Output> {
    let bytes = stdin.map(|bytes| move |output: &mut dyn io::Write| output.write_all(bytes));
    process::run(command, bytes.as_ref().map(|write| write as Input<'_>), timeout)
}

impl Host {
    /// This host.
    pub fn local() -> Self {
        Self::Local
    }

    /// Another host. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// The settings name no host.
    pub fn ssh(settings: SshSettings) -> Result<Self> {
        Ssh::new(settings).map(Self::Ssh)
    }

    /// The name in messages: `this host`, or the name of the host.
    pub fn name(&self) -> &str {
        match self {
            Self::Local => "this host",
            Self::Ssh(ssh) => ssh.name(),
        }
    }

    /// Runs a command to its end, with bytes to read or nothing. Its output is bounded (64 MiB).
    ///
    /// A command that fails is not an error: see [`Output::status`].
    ///
    /// # Errors
    ///
    /// The host cannot be reached, the command cannot start on this host, there is too much output, or it takes
    /// longer than `timeout`.
    pub fn run(&self, command: &[&str], stdin: Option<&[u8]>, timeout: Duration) -> Result<Output> {
        let bytes = stdin.map(|bytes| move |output: &mut dyn io::Write| output.write_all(bytes));
        self.run_with(command, bytes.as_ref().map(|write| write as Input<'_>), timeout)
    }

    /// As above, with a function that writes the command's input. The timeout starts anew whenever bytes move.
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

    /// Connects a local connection with a port that the host reaches, until either side ends it.
    ///
    /// # Errors
    ///
    /// ssh cannot start, or this is this host, whose ports need no such connection.
    pub fn tunnel(&self, socket: TcpStream, address: &str, port: u16) -> Result<Running> {
        match self {
            Self::Local => Err(Error::new(Kind::Unsupported, "the ports of this host are reachable")),
            Self::Ssh(ssh) => ssh.tunnel(socket, address, port),
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
}
