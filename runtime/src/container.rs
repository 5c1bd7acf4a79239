//! A container's life: created, running, stopped, deleted.

use std::os::fd::OwnedFd;

/// How a container is started, beside what its bundle says.
///
/// `prepare` reads all of it ahead: descriptors in here are given to the container's first process as they are.
#[derive(Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // each is a switch of the command line
pub struct Options {
    /// The container's name; its control group is `/jobc/<id>` where config.json names none.
    pub id: String,
    /// Go on where a limit cannot be enforced, and record it.
    pub allow_unenforced: bool,
    /// Make no control group at all; then every limit of config.json is one that cannot be enforced.
    pub without_cgroup: bool,
    /// The first process reads one byte here before it executes the program; the end of the file means: end.
    ///
    /// `spawn` does not wait for it.
    pub hold: Option<OwnedFd>,
    /// Where the first process writes why the program could not be executed: the writing end, closed by a successful
    /// exec. Without it `spawn` makes a pipe of its own and waits for the outcome.
    pub report: Option<OwnedFd>,
    /// A connected Unix socket that gets the master of the container's pseudo-terminal (`SCM_RIGHTS`).
    ///
    /// Needed where config.json asks for a terminal; the name sent with it is `/dev/ptmx`.
    pub console: Option<OwnedFd>,
    /// How many descriptors from 3 on stay open in the container.
    pub preserve_fds: u32,
    /// Kill the container when the thread that started it ends (`PR_SET_PDEATHSIG`).
    pub end_with_parent: bool,
    /// Stay in the caller's session keyring (keyrings(7)).
    pub keep_keyring: bool,
}
