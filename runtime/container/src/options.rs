//! How a container is started, in addition to its bundle.

use std::os::fd::OwnedFd;

use crate::scope::ScopeOwner;
use crate::secret::SecretEnvironment;

/// How a container is started, in addition to its bundle.
///
/// `prepare` reads all of it: these file descriptors are passed to the container's first process unchanged.
#[derive(Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // each is a switch of the command line
pub struct Options {
    /// The container's name; its cgroup is `/jobc/<id>` where config.json names none.
    pub id: String,
    /// Go on where a limit cannot be enforced, and record it.
    pub allow_unenforced: bool,
    /// Create no cgroup at all; then no limit of config.json can be enforced.
    pub without_cgroup: bool,
    /// Create no cgroup, and take the limits of this process's as those of the container; weaker ones are recorded.
    pub inherit_cgroup: bool,
    /// Have systemd make the cgroup, as a unit; config.json's path then names that ([`crate::systemd`]).
    pub systemd_cgroup: bool,
    /// The reason for a scope of this user's systemd, if limits have no other place ([`crate::scope`]).
    pub scope: Option<ScopeOwner>,
    /// Create a group in every cgroup v1 hierarchy, as runc does: callers such as podman expect them. A container
    /// without its own cgroup namespace always gets them.
    pub every_hierarchy: bool,
    /// Make no cgroup v1 group only to count disk I/O: the count is not needed.
    pub skip_io_accounting: bool,
    /// The first process reads one byte here before it executes the program; the end of the file means: end.
    ///
    /// `spawn` does not wait for it.
    pub hold: Option<OwnedFd>,
    /// Where the first process writes why the program could not be executed: the writing end, closed by a successful
    /// exec. Without it, `spawn` creates a pipe and waits for the outcome.
    pub report: Option<OwnedFd>,
    /// A connected Unix socket that gets the master of the container's pseudo-terminal (`SCM_RIGHTS`).
    ///
    /// Needed where config.json asks for a terminal; the name sent with it is `/dev/ptmx`.
    pub console: Option<OwnedFd>,
    /// A connected Unix socket that gets the directory in which the root's writable layers are (`SCM_RIGHTS`), of a root
    /// whose layers are in memory ([`Root::written`](crate::root::Root::written)).
    pub layers: Option<OwnedFd>,
    /// The container's file descriptors 0, 1 and 2; by default ours. A terminal takes precedence.
    pub streams: Option<[OwnedFd; 3]>,
    /// Give regular files that are standard streams to the program's user, as runc and crun do: else pipes alone.
    pub give_files: bool,
    /// How many files may be open, soft and hard (`RLIMIT_NOFILE`), where ours is not what config.json's author knows.
    pub open_files: Option<(u64, u64)>,
    /// Rows and columns of the user's own terminal, which count before config.json's `consoleSize`.
    pub window_size: Option<(u16, u16)>,
    /// How many file descriptors from 3 on stay open in the container.
    pub preserve_fds: u32,
    /// Kill the container when the thread that started it ends (`PR_SET_PDEATHSIG`).
    pub end_with_parent: bool,
    /// This process removes the container at its end: what is left if it is killed may be replaced.
    pub removed_by_creator: bool,
    /// Run the program below an init ([`crate::trampoline::init`]), which is the first process of the container.
    pub init: bool,
    /// Pass the environment of this process to hooks on the host that have no `env`.
    pub hooks_inherit_environment: bool,
    /// Stay in the caller's session keyring (keyrings(7)).
    pub keep_keyring: bool,
    /// Variables of the first process that are in no file.
    pub secret_environment: SecretEnvironment,
}
