//! Another OCI runtime, for the same bundle.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use jobc_runtime::allocate::Allocation;
use jobc_runtime::error::{Error, Kind, Result};
use jobc_runtime::root::Root;
use jobc_runtime::signals::{Sender, Signals};
use jobc_runtime::state::Id;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags};

/// A runtime by its name or path.
#[derive(Debug)]
pub(super) struct Runtime {
    name: OsString,
}

/// Where runtimes come from.
const PACKAGES: &[(&str, &str)] = &[
    ("runc", "install the package `runc`"),
    ("crun", "install the package `crun`"),
    ("youki", "take it from its releases; Debian 12 has no package of it"),
    ("nvidia-container-runtime", "install the package `nvidia-container-toolkit` from NVIDIA's repository"),
];

impl Runtime {
    /// A runtime that could run a bundle with this allocation.
    pub(super) fn new(name: &OsStr, allocation: &Allocation) -> Result<Self> {
        if matches!(allocation.root, Root::Overlay { .. }) {
            return Err(Error::new(
                Kind::Unsupported,
                "another runtime cannot lay a writable layer over the machine's files",
            )
            .help("give `--root` a folder or an archive, or leave `--oci-runtime` out"));
        }
        Ok(Self { name: name.to_owned() })
    }

    /// The command line, for people.
    pub(super) fn shown(&self, bundle: &Path, id: &Id) -> String {
        format!("{} run --bundle {} {id}", self.name.to_string_lossy(), bundle.display())
    }

    /// Runs the bundle and returns the runtime's exit code.
    ///
    /// It is in our process group, so what the terminal sends reaches it without us; the rest is passed on.
    pub(super) fn run(&self, bundle: &Path, id: &Id, signals: &Signals) -> Result<u8> {
        let mut command = Command::new(&self.name);
        command.arg("run").arg("--bundle").arg(bundle).arg(id.as_ref());
        let mut child = command.stdin(Stdio::inherit()).spawn().map_err(|error| self.missing(&error))?;
        let machine = |errno| Error::machine(format!("wait for `{}`", self.name.to_string_lossy()), errno);
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pidfd = pid
            .ok_or(rustix::io::Errno::SRCH)
            .and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()))
            .map_err(machine)?;
        loop {
            let mut polled = [PollFd::new(signals, PollFlags::IN), PollFd::new(&pidfd, PollFlags::IN)];
            match poll(&mut polled, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(machine(errno)),
            }
            let gone = !polled[1].revents().is_empty();
            while let Some((signal, sender)) = signals.next_with_sender() {
                if sender == Sender::Process {
                    signal.send(&pidfd)?;
                }
            }
            if gone {
                break;
            }
        }
        let status = child.wait().map_err(|error| self.missing(&error))?;
        let signal = status.signal().and_then(|signal| u8::try_from(128 + signal).ok());
        Ok(status.code().and_then(|code| u8::try_from(code).ok()).or(signal).unwrap_or(jobc_oci::OWN_FAILURE))
    }

    fn missing(&self, error: &std::io::Error) -> Error {
        let name = self.name.to_string_lossy();
        let errno = rustix::io::Errno::from_io_error(error).unwrap_or(rustix::io::Errno::IO);
        let failed = Error::machine(format!("execute the runtime `{name}`"), errno);
        if error.kind() != ErrorKind::NotFound {
            return failed;
        }
        let package = PACKAGES.iter().find(|(known, _)| *known == name).map(|(_, help)| *help);
        failed.help(
            package.unwrap_or("give a runtime's name or path: runc, crun, youki, nvidia-container-runtime"),
        )
    }
}
