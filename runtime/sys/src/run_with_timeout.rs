//! Runs a program for a while: its words if it ends in time, its end if not.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::readable;
use rustix::process::{Pid, Signal, kill_process_group, pidfd_open};

/// The maximum output of a program, in bytes; the rest is discarded.
const MAX_OUTPUT_SIZE: usize = 1024 * 1024;

/// A program's output, standard output and standard error together, and its exit status.
#[derive(Debug)]
pub struct ProgramOutput {
    /// The words, up to 1 MiB of them.
    pub text: String,
    /// The end.
    pub status: ExitStatus,
}

/// Starts a program with empty standard input, in its own process group, and waits until it ends.
///
/// After `timeout` the whole group is killed and the error is `TimedOut`. A process that does not exit even then, for
/// example because it is blocked in a broken driver, is left behind.
pub fn run(command: &mut Command, timeout: Duration) -> io::Result<ProgramOutput> {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let start = Instant::now();
    let errors = write.try_clone()?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::from(write))
        .stderr(Stdio::from(errors))
        .process_group(0)
        .spawn()?;
    // The command holds the pipe's writing ends until they are replaced; with them open the pipe would never end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let text = read_output(&child, &read, start + timeout);
    if text.is_err()
        && let Ok(pid) = i32::try_from(child.id())
        && let Some(pid) = Pid::from_raw(pid)
    {
        let _ = kill_process_group(pid, Signal::KILL);
    }
    let text = text?;
    let status = child.wait()?;
    Ok(ProgramOutput { text: String::from_utf8_lossy(&text).into_owned(), status })
}

/// Reads until the program has ended, even if other processes hold the pipe.
fn read_output(child: &Child, pipe: &OwnedFd, end: Instant) -> io::Result<Vec<u8>> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::other("the process has no PID"))?;
    let process = pidfd_open(pid, rustix::process::PidfdFlags::empty())?;
    let mut text = vec![];
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let ready = readable::wait(&[pipe.as_fd(), process.as_fd()], Some(left))?;
        if !ready.contains(&true) && left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if ready[0] {
            let mut buffer = [0; 4096];
            let length = rustix::io::read(pipe, &mut buffer)?;
            if length > 0 {
                let room = MAX_OUTPUT_SIZE.saturating_sub(text.len());
                text.extend_from_slice(&buffer[..length.min(room)]);
                continue;
            }
            // Closed: only the program's end remains.
            let left = end.saturating_duration_since(Instant::now());
            let has_ended = readable::wait(&[process.as_fd()], Some(left))?[0];
            return if has_ended { Ok(text) } else { Err(io::ErrorKind::TimedOut.into()) };
        }
        if ready[1] {
            return Ok(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, timeout: Duration) -> io::Result<ProgramOutput> {
        run(Command::new("/bin/sh").args(["-c", script]), timeout)
    }

    #[test]
    fn output_and_end_of_a_program_are_read() {
        let output = sh("echo out; echo err >&2; exit 3", Duration::from_secs(10)).unwrap();
        assert_eq!(output.text, "out\nerr\n");
        assert_eq!(output.status.code(), Some(3));
    }

    #[test]
    fn one_that_hangs_is_ended_with_its_children() {
        let start = Instant::now();
        let directory = tempfile::tempdir().unwrap();
        let pid = directory.path().join("pid");
        let script = format!("sleep 60 & echo $! >{}; wait", pid.display());
        let error = sh(&script, Duration::from_millis(300)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(start.elapsed() < Duration::from_secs(20));
        let pid = std::fs::read_to_string(pid).unwrap();
        let gone = || {
            let process = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
            process.map_or(true, |process| process.contains(") Z"))
        };
        for _ in 0..100 {
            if gone() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("the sleeping child {pid} is still there");
    }

    #[test]
    fn one_whose_child_keeps_the_pipe_is_not_waited_for() {
        let start = Instant::now();
        let output = sh("sleep 5 & echo done", Duration::from_mins(1)).unwrap();
        assert_eq!(output.text, "done\n");
        assert!(start.elapsed() < Duration::from_secs(4));
    }

    #[test]
    fn long_output_is_cut() {
        let output = sh("yes | head -c 2000000", Duration::from_mins(1)).unwrap();
        assert_eq!(output.text.len(), MAX_OUTPUT_SIZE);
    }
}
