//! A process by its number and the time it began, so that a recycled number is not taken for it.

use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::kernel_file;

/// A process that was seen alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Process {
    /// Its number in our own process namespace.
    pub pid: u32,
    /// When it began, in clock ticks since the host did (proc_pid_stat(5), field 22).
    pub start_time: u64,
}

/// The fields of a process in `/proc/PID/stat`.
struct Stat {
    zombie: bool,
    start_time: u64,
}

impl Process {
    /// The process with that PID; `None` if there is none, or only its exit code is left.
    pub fn of(pid: u32) -> Option<Self> {
        stat(pid).filter(|stat| !stat.zombie).map(|stat| Self { pid, start_time: stat.start_time })
    }

    /// A child that we have not reaped, whether or not it still runs.
    pub fn of_child(pid: u32) -> Option<Self> {
        stat(pid).map(|stat| Self { pid, start_time: stat.start_time })
    }

    /// Whether it still runs; a zombie does not.
    pub fn is_alive(self) -> bool {
        Self::of(self.pid) == Some(self)
    }

    /// A file descriptor of it, or nothing where it is gone (pidfd_open(2)).
    ///
    /// The file descriptor comes first and the look second: a number that was recycled in between shows another start
    /// time.
    pub fn open(self) -> Result<Option<OwnedFd>> {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else { return Ok(None) };
        match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => Ok(Some(pidfd).filter(|_| self.is_alive())),
            Err(Errno::SRCH) => Ok(None),
            Err(errno) => Err(Error::system(format!("open process {}", self.pid), errno)),
        }
    }

    /// Waits at most this many milliseconds until it has ended; false if it timed out.
    pub fn wait(self, milliseconds: u32) -> Result<bool> {
        let Some(pidfd) = self.open()? else { return Ok(true) };
        let mut waited = [PollFd::new(&pidfd, PollFlags::IN)];
        let time = Timespec {
            tv_sec: i64::from(milliseconds / 1000),
            tv_nsec: i64::from(milliseconds % 1000) * 1_000_000,
        };
        loop {
            match rustix::event::poll(&mut waited, Some(&time)) {
                Ok(ready) => return Ok(ready > 0),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Error::system("wait for a process", errno)),
            }
        }
    }
}

fn stat(pid: u32) -> Option<Stat> {
    // Fifty-two numbers and a name of at most 64 bytes (proc_pid_stat(5)).
    parse(kernel_file::read(format!("/proc/{pid}/stat"), &mut [0; 2048]).ok()?)
}

/// Reads a line of `/proc/PID/stat`. The second field is the program's name in parentheses and may hold anything,
/// parentheses and spaces included; after its last one the fields are plain, the third first.
fn parse(line: &[u8]) -> Option<Stat> {
    let end = line.iter().rposition(|&byte| byte == b')')?;
    let mut fields = std::str::from_utf8(&line[end + 1..]).ok()?.split_ascii_whitespace();
    let state = fields.next()?;
    let start_time = fields.nth(22 - 4)?.parse().ok()?;
    Some(Stat { zombie: matches!(state, "Z" | "X" | "x"), start_time })
}

#[cfg(test)]
mod tests;
