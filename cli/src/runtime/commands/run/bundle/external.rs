//! Runs the bundle with another OCI runtime.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use jobc_container::container::wait::TerminationSignals;
use jobc_container::root::Root;
use jobc_container::state::Id;
use jobc_doctor::LocalHost;
use jobc_doctor::runtimes::how_to_get;
use jobc_job::allocate::Allocation;
use jobc_schema::shell;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::readable;
use jobc_sys::run_with_timeout;
use jobc_sys::signals::{Sender, Signal, Signals};
use rustix::process::{Pid, PidfdFlags};

/// A runtime by its name or path, and where it keeps the state of its containers.
#[derive(Debug)]
pub(super) struct ExternalRuntime {
    name: OsString,
    /// A directory that is removed with the container's, for runtimes with `--root`. An unprivileged user cannot write
    /// to their default, such as `/run/runc`.
    root: Option<PathBuf>,
}

/// Runtimes whose `--root DIR`, before the command, is their state directory.
const WITH_ROOT: &[&str] = &["runc", "crun", "youki", "nvidia-container-runtime", "runsc", "jobc-oci"];

/// Timeout for a runtime to kill or delete a container.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);

impl ExternalRuntime {
    /// A runtime that can run a bundle with this allocation. `directory` is the container's.
    pub(super) fn new(name: &OsStr, allocation: &Allocation, directory: &Path) -> Result<Self> {
        if matches!(allocation.root, Root::Overlay { .. }) {
            return Err(Error::new(
                Kind::Unsupported,
                "another runtime cannot mount a writable layer over the host's files",
            )
            .help("give `--root` a directory or an archive, or leave `--oci-runtime` out"));
        }
        let knows_root =
            Path::new(name).file_name().is_some_and(|file| WITH_ROOT.iter().any(|known| file == *known));
        Ok(Self { name: name.to_owned(), root: knows_root.then(|| directory.join("runtime")) })
    }

    /// A command line of the runtime.
    fn command(&self, command: &str) -> Command {
        let mut line = Command::new(&self.name);
        if let Some(root) = &self.root {
            line.arg("--root").arg(root);
        }
        line.arg(command);
        line
    }

    fn run_command(&self, bundle: &Path, id: &Id) -> Command {
        let mut line = self.command("run");
        line.arg("--bundle").arg(bundle).arg(id.as_ref());
        line
    }

    /// The command line, for people.
    pub(super) fn command_line(&self, bundle: &Path, id: &Id) -> String {
        let line = self.run_command(bundle, id);
        let words = std::iter::once(line.get_program()).chain(line.get_args());
        let words: Vec<_> = words.map(std::ffi::OsStr::to_string_lossy).collect();
        shell::join(words.iter().map(|word| &**word))
    }

    /// Runs the bundle and returns the runtime's exit code. Nothing of the container is left.
    ///
    /// The runtime is in our process group, so it gets the signals of the terminal directly. Other signals are
    /// forwarded. If that has no effect, repeated signals kill the container.
    pub(super) fn run(&self, bundle: &Path, id: &Id, signals: &Signals) -> Result<u8> {
        let mut command = self.run_command(bundle, id);
        let mut child =
            command.stdin(Stdio::inherit()).spawn().map_err(|error| self.execute_error(&error))?;
        let waited = self.forward_signals(&child, id, signals);
        if waited.is_err() {
            // Otherwise its exit would go unnoticed.
            let _ = child.kill();
        }
        let status = child.wait().map_err(|error| self.execute_error(&error))?;
        if self.root.as_ref().is_some_and(|root| root.join(id.as_ref()).exists()) {
            // A killed runtime has not deleted the container.
            let _ = run_with_timeout::run(
                self.command("delete").arg("--force").arg(id.as_ref()),
                COMMAND_TIMEOUT,
            );
        }
        waited?;
        let signal = status.signal().and_then(|signal| u8::try_from(128 + signal).ok());
        Ok(status
            .code()
            .and_then(|code| u8::try_from(code).ok())
            .or(signal)
            .unwrap_or(jobc_oci::RUNTIME_FAILURE_EXIT_CODE))
    }

    /// Waits for the end of the runtime and forwards signals.
    fn forward_signals(&self, child: &Child, id: &Id, signals: &Signals) -> Result<()> {
        let machine = |errno| Error::system(format!("wait for `{}`", self.name.to_string_lossy()), errno);
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pidfd = pid
            .ok_or(rustix::io::Errno::SRCH)
            .and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()))
            .map_err(machine)?;
        let mut insistence = TerminationSignals::default();
        loop {
            let gone = readable::wait(&[signals.as_fd(), pidfd.as_fd()], None).map_err(machine)?[1];
            while let Some((signal, sender)) = signals.next_with_sender() {
                if insistence.exceeds_limit(signal) {
                    self.kill(id, &pidfd)?;
                } else if sender == Sender::Process {
                    signal.send(&pidfd)?;
                }
            }
            if gone {
                return Ok(());
            }
        }
    }

    /// Asks the runtime to kill the container, after which the runtime ends. If that fails, the runtime itself is
    /// killed.
    fn kill(&self, id: &Id, runtime: &OwnedFd) -> Result<()> {
        let killed =
            run_with_timeout::run(self.command("kill").arg(id.as_ref()).arg("KILL"), COMMAND_TIMEOUT);
        if !killed.is_ok_and(|killed| killed.status.success()) {
            Signal::KILL.send(runtime)?;
        }
        Ok(())
    }

    fn execute_error(&self, error: &std::io::Error) -> Error {
        let name = self.name.to_string_lossy();
        let failed = Error::io(format!("execute the runtime `{name}`"), error);
        if error.kind() != ErrorKind::NotFound {
            return failed;
        }
        failed.help(how_to_get(&LocalHost::here(), &name).unwrap_or_else(|| {
            "name a runtime, or its path: runc, crun, youki, nvidia-container-runtime".to_owned()
        }))
    }
}
