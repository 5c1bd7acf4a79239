//! `jobc` on the host: this program, copied there once per version, or an installed one.

use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use jobc_schema::target::SshTarget;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::parallel::lock;

use super::answers::succeeded;
use super::scripts::{NO_PROGRAM, RUN};
use crate::host::{Host, Output, Program, Running, SshSettings, Streams};

/// How long a short command may take.
pub(super) const TIMEOUT: Duration = Duration::from_mins(2);
/// How long the start of a job may take without output: it pulls images.
pub(super) const START_TIMEOUT: Duration = Duration::from_hours(6);

/// How to reach a host, and the program to run there.
#[derive(Clone, Debug)]
pub struct Access {
    /// The settings of the target.
    pub ssh: SshTarget,
    /// This program, which is copied there.
    pub program: Program,
}

/// A host with `jobc`.
pub(super) struct Connection {
    pub(super) host: Host,
    /// The directory of the target, below the home directory or absolute.
    pub(super) directory: String,
    access: Access,
    /// The path of `jobc` there, or its name.
    path: OnceLock<String>,
    installing: Mutex<()>,
}

impl Connection {
    /// Nothing is sent yet.
    pub(super) fn new(access: Access) -> Result<Self> {
        let settings = SshSettings {
            host: access.ssh.host.clone(),
            jump: access.ssh.jump.clone(),
            login_profile: false,
        };
        let directory = match access.ssh.directory.trim_end_matches('/') {
            "" => "/".to_owned(),
            directory => directory.strip_prefix("~/").unwrap_or(directory).to_owned(),
        };
        let (path, installing) = (OnceLock::new(), Mutex::new(()));
        Ok(Self { host: Host::ssh(settings)?, directory, access, path, installing })
    }

    /// As above for this host, for tests.
    #[cfg(test)]
    pub(super) fn local(directory: &str, program: &str) -> Self {
        let ssh = SshTarget { jobc: program.to_owned(), ..SshTarget::default() };
        let access = Access { ssh, program: Program::default() };
        let (path, installing) = (OnceLock::new(), Mutex::new(()));
        Self { host: Host::local(), directory: directory.to_owned(), access, path, installing }
    }

    /// The host in messages.
    pub(super) fn name(&self) -> &str {
        self.host.name()
    }

    /// The files by digest.
    pub(super) fn store(&self) -> String {
        format!("{}/store", self.directory)
    }

    /// The directory of a run.
    pub(super) fn run_directory(&self, run: &str) -> String {
        format!("{}/jobs/{run}", self.directory)
    }

    fn is_copied(&self) -> bool {
        self.access.ssh.jobc == SshTarget::AUTO
    }

    /// The path of `jobc` there, or its name; it may not be there yet.
    pub(super) fn program(&self) -> Result<&str> {
        if let Some(path) = self.path.get() {
            return Ok(path);
        }
        let path = if self.is_copied() {
            format!("{}/bin/{}", self.directory, self.access.program.file_name()?)
        } else {
            let path = &self.access.ssh.jobc;
            path.strip_prefix("~/").unwrap_or(path).to_owned()
        };
        Ok(self.path.get_or_init(|| path))
    }

    /// Runs `jobc` with words.
    pub(super) fn jobc(&self, words: &[&str]) -> Result<Output> {
        let program = self.program()?.to_owned();
        let command: Vec<&str> = [RUN, "sh", &program].into_iter().chain(words.iter().copied()).collect();
        self.script(&command, None, TIMEOUT)
    }

    /// Runs a script, with its name and arguments; a script that lacks `jobc` runs again after that is installed.
    pub(super) fn script(&self, words: &[&str], stdin: Option<&[u8]>, timeout: Duration) -> Result<Output> {
        let command: Vec<&str> = ["sh", "-c"].into_iter().chain(words.iter().copied()).collect();
        let output = self.host.run(&command, stdin, timeout)?;
        if output.status != NO_PROGRAM {
            return Ok(output);
        }
        self.install()?;
        self.host.run(&command, stdin, timeout)
    }

    /// Starts `jobc` with words; its streams are used while it runs.
    pub(super) fn start(&self, words: &[&str], streams: Streams, terminal: bool) -> Result<Running> {
        let program = self.program()?.to_owned();
        let command: Vec<&str> =
            ["sh", "-c", RUN, "sh", &program].into_iter().chain(words.iter().copied()).collect();
        self.host.start(&command, streams, terminal)
    }

    /// Copies this program to the host.
    pub(super) fn install(&self) -> Result<()> {
        let _one = lock(&self.installing);
        let name = self.name();
        if !self.is_copied() {
            let message = format!("`{}` is not on `{name}`", self.access.ssh.jobc);
            return Err(Error::new(Kind::Config, message)
                .help("install jobc there, or leave out `ssh.jobc`, which copies this program"));
        }
        let program = self.program()?;
        self.access.program.install(&self.host, &self.store(), program, "ssh.jobc")
    }

    /// Runs `jobc`, which must succeed.
    pub(super) fn jobc_succeeds(&self, words: &[&str]) -> Result<Output> {
        succeeded(self.name(), self.jobc(words)?)
    }
}
