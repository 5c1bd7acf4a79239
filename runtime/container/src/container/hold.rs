//! Where a created container waits for its start: two fifos in its folder.
//!
//! Its first process reads a byte from `start` and then becomes its program; what goes wrong from there on it writes to
//! `outcome`, which the kernel closes when the program begins. Both are plain files of the state folder, so that the
//! command that starts the container need not be the one that made it, and nobody waits in between.

use std::os::fd::{AsFd as _, OwnedFd, RawFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::listener::{self, Agent};
use crate::trampoline::TAKEN;
use crate::trampoline::outcome::{self, Heard};
use jobc_sys::error::{Error, Kind, Result};

const START: &str = "start";
const OUTCOME: &str = "outcome";

/// Makes the fifos in a container's folder: the one to read the start from, and the one to write the outcome to.
///
/// Both are open for reading and writing, so that neither ends while the container holds it.
pub fn make(folder: &OwnedFd) -> Result<(OwnedFd, OwnedFd)> {
    let make = |name: &str| {
        rustix::fs::mknodat(folder, name, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        rustix::fs::openat(folder, name, OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
    };
    let make =
        |name: &str| make(name).map_err(|errno| Error::machine(format!("make the fifo `{name}`"), errno));
    Ok((make(START)?, make(OUTCOME)?))
}

/// Whether a container that lives still waits at the fifo in its folder.
pub fn is_waiting(folder: &Path) -> bool {
    rustix::fs::lstat(folder.join(START)).is_ok()
}

/// Lets the container go, and waits until its program runs. `agent` gets the listener of its filter.
///
/// # Errors
///
/// Why the program could not be executed, or that nobody waits here.
pub fn release(folder: &Path, program: &str, pid: u32, agent: Option<&Agent>) -> Result<()> {
    let machine = |what: &str| {
        let what = format!("{what} `{}`", folder.join(START).display());
        move |errno: Errno| Error::machine(what, errno)
    };
    let open = |name: &str, access: OFlags| {
        let flags = access | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::open(folder.join(name), flags, Mode::empty())
    };
    let report = open(OUTCOME, OFlags::RDONLY).map_err(machine("open the fifo beside"))?;
    let start = match open(START, OFlags::WRONLY) {
        Ok(start) => start,
        // Nobody has the other side open: an earlier command was killed after it had let the container go.
        Err(Errno::NXIO) => {
            let _ = rustix::fs::unlink(folder.join(START));
            return Err(Error::new(Kind::State, "the container was started before"));
        }
        Err(errno) => return Err(machine("open the fifo")(errno)),
    };
    rustix::io::write(&start, b"1").map_err(machine("write to the fifo"))?;
    // Its absence is how everybody knows that the container was started.
    rustix::fs::unlink(folder.join(START)).map_err(machine("remove the fifo"))?;
    let mut heard = outcome::wait(&report, pid).map_err(machine("read the fifo beside"))?;
    if let (Heard::Listener(listener), Some(agent)) = (heard, agent) {
        let handed = hand_over(agent, pid, listener);
        // At any other byte it ends.
        let reply = if handed.is_ok() { TAKEN } else { b'0' };
        rustix::io::write(&start, &[reply]).map_err(machine("write to the fifo"))?;
        handed?;
        heard = outcome::wait(&report, pid).map_err(machine("read the fifo beside"))?;
    }
    let _ = rustix::fs::unlink(folder.join(OUTCOME));
    match heard {
        Heard::Failed(failure) => Err(failure.error(program)),
        Heard::Listener(_) => Err(listener::unexpected()),
        Heard::Runs => Ok(()),
    }
}

fn hand_over(agent: &Agent, pid: u32, listener: RawFd) -> Result<()> {
    let number =
        Pid::from_raw(pid.cast_signed()).ok_or_else(|| Error::new(Kind::State, "the container has ended"))?;
    let process = pidfd_open(number, PidfdFlags::empty())
        .map_err(|errno| Error::machine(format!("open process {pid}"), errno))?;
    agent.hand_over(pid, process.as_fd(), listener)
}
