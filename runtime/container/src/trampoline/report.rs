//! Whether the trampoline has become the user's program.

use std::os::fd::{AsFd, RawFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};

use super::MEMFD_NAME;
use super::birth::born;
use super::failure::Failure;

/// How long to wait without a report before the process itself is checked.
const CHECK_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

const NO_TIME: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// The reports of a process that is to become the user's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrampolineReport {
    /// It has.
    Started,
    /// It cannot.
    Failed(Failure),
    /// It has made the process that becomes the program, with this number.
    Born(u32),
    /// It has loaded a filter with this listener file descriptor, and waits until that is taken.
    Listener(RawFd),
}

/// Waits until the process has executed the user's program, reports why it could not, or has a listener to be taken.
///
/// `report` is the reading end of the trampoline's pipe; usually its end-of-file means that the program runs. But where
/// the process is a further one in a container, another process there can hold the writing end open by way of /proc. So
/// without a report, the kernel is asked what the process executes.
///
/// # Errors
///
/// The kernel's error number where the pipe cannot be read.
pub fn wait(report: impl AsFd, pid: u32) -> Result<TrampolineReport, Errno> {
    let mut is_over = false;
    loop {
        let timeout = if is_over { NO_TIME } else { CHECK_INTERVAL };
        let ready = retry_on_intr(|| poll(&mut [PollFd::new(&report, PollFlags::IN)], Some(&timeout)))?;
        if ready > 0 {
            let mut bytes = [0; Failure::SIZE];
            return match retry_on_intr(|| rustix::io::read(&report, &mut bytes)) {
                Ok(read) if read < bytes.len() => Ok(TrampolineReport::Started),
                Ok(_) => Ok(decode(bytes)),
                Err(Errno::AGAIN) => continue,
                Err(errno) => Err(errno),
            };
        }
        if is_over {
            return Ok(TrampolineReport::Started);
        }
        // Everything it reported before its end was seen is available then.
        is_over = !is_before_exec(pid);
    }
}

fn decode(bytes: [u8; Failure::SIZE]) -> TrampolineReport {
    if let Some(pid) = born(bytes) {
        return TrampolineReport::Born(pid);
    }
    Failure::listener(bytes).map_or(TrampolineReport::Failed(Failure::of(bytes)), TrampolineReport::Listener)
}

/// Whether a process is still to become the user's program; one that has ended is not.
fn is_before_exec(pid: u32) -> bool {
    let executable = |process: &str| rustix::fs::readlink(format!("/proc/{process}/exe"), Vec::new());
    match executable(&pid.to_string()) {
        // This program until the trampoline, and the trampoline's image until the user's program.
        Ok(path) => {
            path.to_bytes() == [b"/memfd:", MEMFD_NAME.to_bytes(), b" (deleted)"].concat()
                || executable("self") == Ok(path)
        }
        // No other process may inspect a process that is still being set up (PR_SET_DUMPABLE).
        Err(Errno::ACCESS | Errno::PERM) => true,
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use rustix::pipe::pipe;

    use super::*;

    #[test]
    fn the_end_of_the_pipe_is_the_programs_start() {
        let (report, writer) = pipe().unwrap();
        drop(writer);
        assert_eq!(wait(&report, std::process::id()), Ok(TrampolineReport::Started));
    }

    #[test]
    fn four_bytes_are_a_failure() {
        let (report, writer) = pipe().unwrap();
        rustix::io::write(&writer, &2_u32.to_ne_bytes()).unwrap();
        assert_eq!(
            wait(&report, std::process::id()),
            Ok(TrampolineReport::Failed(Failure::Exec(Errno::NOENT)))
        );
    }

    #[test]
    fn a_process_id_is_not_a_failure() {
        let (report, writer) = pipe().unwrap();
        let number = 0x3f_ffff;
        rustix::io::write(&writer, &(super::super::birth::BORN | number).to_ne_bytes()).unwrap();
        assert_eq!(wait(&report, std::process::id()), Ok(TrampolineReport::Born(number)));
    }

    #[test]
    fn a_listener_is_not_a_failure() {
        let (report, writer) = pipe().unwrap();
        rustix::io::write(&writer, &(Failure::LISTENER | 7).to_ne_bytes()).unwrap();
        assert_eq!(wait(&report, std::process::id()), Ok(TrampolineReport::Listener(7)));
    }

    #[test]
    fn an_inherited_write_end_does_not_block_the_reader() {
        let (report, _kept) = pipe().unwrap();
        let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let report_read = wait(&report, other.id());
        other.kill().unwrap();
        other.wait().unwrap();
        assert_eq!(report_read, Ok(TrampolineReport::Started));
    }
}
