//! A running attempt of a task: its process and its output.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::message::PendingTask;
use super::poll::{EventSource, Poll};
use super::task_process::TaskProcess;
use crate::lifecycle::TaskNumber;
use jobc_container::container::Container;
use jobc_container::process::Exit;
use jobc_sys::error::{Error, Result};

/// Whether there is more to read of a stream now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadState {
    /// There may be.
    MayHaveMore,
    /// There is not.
    Drained,
}

/// An attempt of a task while it runs.
#[derive(Debug)]
pub(super) struct Attempt {
    /// The attempt, from 1.
    pub(super) number: u32,
    /// What runs it.
    pub(super) process: Box<dyn TaskProcess>,
    /// Its standard output and error, until they end.
    output: [Option<OwnedFd>; 2],
}

impl Attempt {
    /// Takes a created attempt in, and waits for its end and its output from now on.
    pub(super) fn new(task: TaskNumber, number: u32, held: PendingTask, poll: &Poll) -> Result<Self> {
        let PendingTask { process, output, .. } = held;
        poll.add(process.pidfd(), EventSource::Process(task))?;
        let output = output.map_or([None, None], |[out, error]| [Some(out), Some(error)]);
        for (stream, fd) in output.iter().enumerate() {
            if let Some(fd) = fd {
                poll.add(fd, EventSource::Output(task, stream))?;
            }
        }
        Ok(Self { number, process, output })
    }

    /// Reads its output, a bounded amount at a time so that other tasks are served.
    pub(super) fn read(
        &mut self,
        stream: usize,
        poll: &Poll,
        buffer: &mut [u8],
        seen: &mut dyn FnMut(&[u8]),
    ) -> ReadState {
        const MAX_READS: usize = 4;
        for _ in 0..MAX_READS {
            let Some(fd) = &self.output[stream] else { return ReadState::Drained };
            match rustix::io::read(fd, &mut *buffer) {
                Ok(count) if count > 0 => seen(&self.process.own_output(stream, &buffer[..count])),
                Err(Errno::AGAIN) => return ReadState::Drained,
                Err(Errno::INTR) => {}
                Ok(_) | Err(_) => {
                    poll.remove(fd);
                    self.output[stream] = None;
                    return ReadState::Drained;
                }
            }
        }
        ReadState::MayHaveMore
    }

    /// Takes in the end of its first process; with it ended everything else of it.
    pub(super) fn reap(self, poll: &Poll) -> Result<(Exit, Option<Box<Container>>)> {
        self.leave(poll);
        self.process.reap()
    }

    /// Takes in that its program could not be executed: its process is gone.
    pub(super) fn into_container(self, poll: &Poll) -> Option<Box<Container>> {
        self.leave(poll);
        self.process.into_container()
    }

    fn leave(&self, poll: &Poll) {
        poll.remove(self.process.pidfd());
        for fd in self.output.iter().flatten() {
            poll.remove(fd);
        }
    }
}

/// The end of a task whose start failed before its program ran.
pub(super) fn code_of(error: &Error) -> u8 {
    error.exit_code()
}
