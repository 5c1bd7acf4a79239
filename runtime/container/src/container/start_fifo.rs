//! Where a created container waits for its start: two fifos in its directory.
//!
//! Its first process reads a byte from `start` and then becomes its program; what goes wrong from there on it writes to
//! `outcome`, which the kernel closes when the program begins. Both are plain files of the state directory, so that the
//! command that starts the container need not be the one that made it, and no process waits in between.

use std::os::fd::{AsFd as _, OwnedFd, RawFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::listener::{self, Agent};
use crate::trampoline::LISTENER_TAKEN;
use crate::trampoline::report::{self, TrampolineReport};
use jobc_sys::error::{Error, Kind, Result};

const START_FIFO: &str = "start";
const OUTCOME_FIFO: &str = "outcome";

/// Makes the fifos in a container's directory: the one to read the start from, and the one to write the outcome to.
///
/// Both are open for reading and writing, so that neither ends while the container holds it.
pub fn create(directory: &OwnedFd) -> Result<(OwnedFd, OwnedFd)> {
    let make = |name: &str| {
        rustix::fs::mknodat(directory, name, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        rustix::fs::openat(directory, name, OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
    };
    let make =
        |name: &str| make(name).map_err(|errno| Error::system(format!("make the fifo `{name}`"), errno));
    Ok((make(START_FIFO)?, make(OUTCOME_FIFO)?))
}

/// Whether a container that lives still waits at the fifo in its directory.
pub fn is_waiting(directory: &Path) -> bool {
    rustix::fs::lstat(directory.join(START_FIFO)).is_ok()
}

/// Lets the container go, and waits until its program runs. `agent` gets the listener of its filter.
///
/// # Errors
///
/// The program could not be executed, or no container waits here.
pub fn release(directory: &Path, program: &str, pid: u32, agent: Option<&Agent>) -> Result<()> {
    let machine = |what: &str| {
        let what = format!("{what} `{}`", directory.join(START_FIFO).display());
        move |errno: Errno| Error::system(what, errno)
    };
    let open = |name: &str, access: OFlags| {
        let flags = access | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::open(directory.join(name), flags, Mode::empty())
    };
    let report = open(OUTCOME_FIFO, OFlags::RDONLY).map_err(machine("open the outcome fifo next to"))?;
    let start = match open(START_FIFO, OFlags::WRONLY) {
        Ok(start) => start,
        // No process has the other side open: an earlier command was killed after it had released the container.
        Err(Errno::NXIO) => {
            let _ = rustix::fs::unlink(directory.join(START_FIFO));
            return Err(Error::new(Kind::State, "the container was already started"));
        }
        Err(errno) => return Err(machine("open the fifo")(errno)),
    };
    rustix::io::write(&start, b"1").map_err(machine("write to the fifo"))?;
    // Its absence marks the container as started.
    rustix::fs::unlink(directory.join(START_FIFO)).map_err(machine("remove the fifo"))?;
    let mut received = report::wait(&report, pid).map_err(machine("read the outcome fifo next to"))?;
    if let (TrampolineReport::Listener(listener), Some(agent)) = (received, agent) {
        let handed = hand_over(agent, pid, listener);
        // At any other byte it ends.
        let reply = if handed.is_ok() { LISTENER_TAKEN } else { b'0' };
        rustix::io::write(&start, &[reply]).map_err(machine("write to the fifo"))?;
        handed?;
        received = report::wait(&report, pid).map_err(machine("read the outcome fifo next to"))?;
    }
    let _ = rustix::fs::unlink(directory.join(OUTCOME_FIFO));
    match received {
        TrampolineReport::Failed(failure) => Err(failure.error(program)),
        TrampolineReport::Born(_) => Err(machine("read the outcome fifo next to")(Errno::PROTO)),
        TrampolineReport::Listener(_) => Err(listener::unexpected_listener()),
        TrampolineReport::Started => Ok(()),
    }
}

fn hand_over(agent: &Agent, pid: u32, listener: RawFd) -> Result<()> {
    let number =
        Pid::from_raw(pid.cast_signed()).ok_or_else(|| Error::new(Kind::State, "the container has ended"))?;
    let process = pidfd_open(number, PidfdFlags::empty())
        .map_err(|errno| Error::system(format!("open process {pid}"), errno))?;
    agent.hand_over(pid, process.as_fd(), listener)
}
