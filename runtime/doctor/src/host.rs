//! The checks' view of the host: files, programs, tests in a separate process, and jobs.

mod trial;

use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::fs::Access;
use serde::Serialize;

use jobc_container::cgroup::{Controller, Layout};
use jobc_container::probe;
use jobc_container::scope::{Scope, ScopeOwner};
use jobc_gpu as gpu;
use jobc_gpu::Inventory;
use jobc_sys::program_path;
use jobc_sys::run_with_timeout;
use jobc_sys::syscall::available::{Syscall, available};

/// How long a program or a try may take.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(3);

/// A user without a login, with the rights of any unprivileged user.
pub(super) const NOBODY_UID: u32 = 65534;

/// The host as the checks see it.
pub trait Host: Send + Sync + 'static {
    /// The current user.
    fn user(&self) -> User;
    /// An environment variable that is not empty.
    fn variable(&self, name: &str) -> Option<String>;
    /// A file's text; nothing if it does not exist or may not be read.
    fn read(&self, path: &str) -> Option<String>;
    /// The names in a directory, sorted; none if it does not exist.
    fn names(&self, directory: &str) -> Vec<String>;
    /// The target of a path.
    fn entry(&self, path: &str) -> Option<Entry>;
    /// Where a program is, on `PATH` or in the directories for administration.
    fn program(&self, name: &str) -> Option<String>;
    /// The first line of a program's output, or why it is missing.
    fn run_program(&self, program: &str, arguments: &[&str]) -> Result<String, String>;
    /// Runs steps of [`jobc_container::probe`] in a separate process: their output, or which step failed and why.
    fn probe(&self, steps: &str, as_whom: RunAs) -> Result<String, String>;
    /// Whether this user's containers need a user namespace: [`jobc_sys::host::needs_user_namespace`].
    fn needs_user_namespace(&self) -> bool;
    /// Runs a job file by `jobc run` to its end, and removes what is left of the job.
    fn run_job(&self, job: &str) -> Result<(), Refusal>;
    /// The controllers that a scope of this user's systemd would have, or why a scope is not available.
    fn scope(&self) -> Result<Vec<Controller>, Refusal>;
    /// Whether the kernel has a syscall.
    fn has_syscall(&self, call: Syscall) -> bool;
    /// The host whose files describe the GPU drivers.
    fn driver_host(&self) -> Box<dyn Host>;
    /// The GPUs.
    fn gpus(&self) -> Inventory;
}

/// Why something is not available, and how to get it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The reason.
    pub why: String,
    /// Advice, if any.
    pub fix: Option<String>,
}

/// The user who runs a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunAs {
    /// The user who runs this process.
    CurrentUser,
    /// An unprivileged user, which root can become.
    Nobody,
}

/// The current user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct User {
    /// The effective user id.
    pub uid: u32,
    /// The effective group id.
    pub gid: u32,
    /// The name in /etc/passwd.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl User {
    /// Whether it is root.
    pub fn is_root(&self) -> bool {
        self.uid == 0
    }
}

/// The target of a path, with links followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Whether it is a directory.
    pub is_directory: bool,
    /// Whether this user may read and write it.
    pub access: Access,
    /// Whether running it gives more rights: the set-user-id bit with root as owner, or file capabilities.
    pub elevates_privileges: bool,
}

impl Entry {
    /// Whether this user may write it.
    pub fn may_write(&self) -> bool {
        self.access.contains(Access::WRITE_OK)
    }

    /// Whether this user may read and write it.
    pub fn may_open(&self) -> bool {
        self.access.contains(Access::READ_OK | Access::WRITE_OK)
    }
}

/// The host this program runs on.
#[derive(Debug)]
pub struct LocalHost {
    files: gpu::Host,
}

impl LocalHost {
    /// This host. Its probes are run by this program, whose first function calls [`jobc_container::probe::main`].
    pub fn here() -> Self {
        Self { files: gpu::Host::at("/") }
    }
}

impl Host for LocalHost {
    fn user(&self) -> User {
        let uid = rustix::process::geteuid().as_raw();
        let gid = rustix::process::getegid().as_raw();
        let name = self.read("/etc/passwd").and_then(|passwd| jobc_sys::accounts::name_of(&passwd, uid));
        User { uid, gid, name }
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok().filter(|value| !value.is_empty())
    }

    fn read(&self, path: &str) -> Option<String> {
        self.files.read(path)
    }

    fn names(&self, directory: &str) -> Vec<String> {
        self.files.names(directory)
    }

    fn entry(&self, path: &str) -> Option<Entry> {
        let path = self.files.path(path);
        let status = std::fs::metadata(&path).ok()?;
        let set_uid = status.mode() & 0o4000 != 0 && status.uid() == 0;
        Some(Entry {
            is_directory: status.is_dir(),
            access: [Access::READ_OK, Access::WRITE_OK]
                .into_iter()
                .filter(|access| rustix::fs::access(&path, *access).is_ok())
                .collect(),
            elevates_privileges: set_uid
                || rustix::fs::getxattr(&path, "security.capability", &mut [0_u8; 64]).is_ok(),
        })
    }

    fn program(&self, name: &str) -> Option<String> {
        let administration = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
        let found =
            program_path::find_in(program_path::directories().into_iter().chain(administration), name);
        found?.into_os_string().into_string().ok()
    }

    fn run_program(&self, program: &str, arguments: &[&str]) -> Result<String, String> {
        let output = run_with_timeout::run(Command::new(program).args(arguments), PROBE_TIMEOUT)
            .map_err(|error| reason(&error))?;
        if !output.status.success() {
            return Err(format!("ended with {}", output.status));
        }
        output.text.lines().next().map(str::to_owned).ok_or_else(|| "no output".to_owned())
    }

    fn probe(&self, steps: &str, as_whom: RunAs) -> Result<String, String> {
        let mut command = probe::command();
        command.arg(steps).env_clear().current_dir(Path::new("/"));
        if as_whom == RunAs::Nobody {
            command.uid(NOBODY_UID).gid(NOBODY_UID);
        }
        let output = run_with_timeout::run(&mut command, PROBE_TIMEOUT).map_err(|error| reason(&error))?;
        if output.status.success() {
            return Ok(output.text);
        }
        let why = output.text.trim();
        Err(if why.is_empty() { format!("the test ended with {}", output.status) } else { why.to_owned() })
    }

    fn needs_user_namespace(&self) -> bool {
        jobc_sys::host::needs_user_namespace()
    }

    fn run_job(&self, job: &str) -> Result<(), Refusal> {
        trial::run(job)
    }

    fn scope(&self) -> Result<Vec<Controller>, Refusal> {
        let scope = Scope::find_with_timeout(&ScopeOwner::Container("doctor".to_owned()), PROBE_TIMEOUT)
            .map_err(|error| Refusal { why: error.message(), fix: error.advice() })?;
        let layout = Layout::detect().unwrap_or_default();
        Ok(layout.unified.map(|tree| scope.group.controllers(&tree)).unwrap_or_default())
    }

    fn has_syscall(&self, call: Syscall) -> bool {
        available(call)
    }

    fn driver_host(&self) -> Box<dyn Host> {
        Box::new(Self { files: gpu::Host::here() })
    }

    fn gpus(&self) -> Inventory {
        Inventory::discover(&gpu::Host::here())
    }
}

fn reason(error: &std::io::Error) -> String {
    match (error.kind(), rustix::io::Errno::from_io_error(error)) {
        (std::io::ErrorKind::TimedOut, _) => format!("timed out after {} s", PROBE_TIMEOUT.as_secs()),
        (_, Some(errno)) => jobc_sys::error::describe(errno),
        _ => error.to_string(),
    }
}
