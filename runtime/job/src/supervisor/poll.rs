//! The epoll set of the supervisor's event loop; its entries identify their sources.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;

use crate::lifecycle::TaskNumber;
use jobc_sys::error::{Error, Result};

/// The source that became ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventSource {
    /// A signal to the supervisor.
    Signal,
    /// A message of a thread.
    Message,
    /// A command that connects.
    Listener,
    /// A connected command: its number.
    Client(u32),
    /// A task's first process has ended.
    Process(TaskNumber),
    /// A task wrote to its standard output (0) or error (1), or closed it.
    Output(TaskNumber, usize),
    /// A turn on a GPU is given up.
    Turn,
}

impl EventSource {
    fn to_data(self) -> u64 {
        let (kind, number) = match self {
            Self::Signal => (0, 0),
            Self::Message => (1, 0),
            Self::Listener => (2, 0),
            Self::Client(number) => (3, number as usize),
            Self::Process(task) => (4, task),
            Self::Output(task, stream) => (5 + stream as u64, task),
            Self::Turn => (7, 0),
        };
        kind << 56 | number as u64
    }

    fn of_data(data: u64) -> Option<Self> {
        let number = usize::try_from(data & 0x00ff_ffff_ffff_ffff).ok()?;
        Some(match data >> 56 {
            0 => Self::Signal,
            1 => Self::Message,
            2 => Self::Listener,
            3 => Self::Client(u32::try_from(number).ok()?),
            4 => Self::Process(number),
            5 => Self::Output(number, 0),
            6 => Self::Output(number, 1),
            7 => Self::Turn,
            _ => return None,
        })
    }
}

/// The epoll set.
#[derive(Debug)]
pub(super) struct Poll {
    epoll: OwnedFd,
}

impl Poll {
    /// An empty set.
    pub(super) fn new() -> Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC);
        Ok(Self { epoll: epoll.map_err(|errno| Error::system("create an epoll instance", errno))? })
    }

    /// Adds a file descriptor that becomes readable.
    pub(super) fn add(&self, fd: impl AsFd, ready: EventSource) -> Result<()> {
        epoll::add(&self.epoll, fd, EventData::new_u64(ready.to_data()), EventFlags::IN)
            .map_err(|errno| Error::system("wait for a file descriptor", errno))
    }

    /// Removes a file descriptor before it is closed: a copy of it elsewhere would keep it in the set.
    pub(super) fn remove(&self, fd: impl AsFd) {
        let _ = epoll::delete(&self.epoll, fd);
    }

    /// Sleeps until something is ready or the timeout expires.
    pub(super) fn wait(&self, time: Option<Duration>) -> Result<Vec<EventSource>> {
        let time = time.map(|time| Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(time.subsec_nanos()),
        });
        let mut events = Vec::with_capacity(256);
        match epoll::wait(&self.epoll, spare_capacity(&mut events), time.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(Error::system("wait for tasks", errno)),
        }
        Ok(events.iter().filter_map(|event| EventSource::of_data(event.data.u64())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_becomes_ready_is_reported_by_its_number() {
        for ready in [
            EventSource::Signal,
            EventSource::Message,
            EventSource::Listener,
            EventSource::Client(7),
            EventSource::Process(9_999),
            EventSource::Output(9_999, 0),
            EventSource::Output(0, 1),
            EventSource::Turn,
        ] {
            assert_eq!(EventSource::of_data(ready.to_data()), Some(ready));
        }
    }
}
