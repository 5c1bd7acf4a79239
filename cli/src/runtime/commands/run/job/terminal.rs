//! Passes our terminal to one task of a job until that task ends.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use jobc_container::terminal::{Relay, socket};
use jobc_job::record::Record;
use jobc_sys::error::{Error, Result};
use jobc_sys::id::TaskId;
use jobc_sys::signals::{Signal, Signals};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::attach::{RunningJob, StopRequest};

/// How often to check whether the task has ended, in milliseconds.
const POLL_INTERVAL_MS: u32 = 250;

/// Both ends of the socket that transfers the master of the terminal: ours, and the supervisor's.
pub(super) fn socket_pair() -> Result<(OwnedFd, OwnedFd)> {
    let pair = UnixStream::pair();
    let (ours, theirs) = pair.map_err(|error| Error::io("make a socket for the terminal", &error))?;
    Ok((ours.into(), theirs.into()))
}

/// Our standard input, for the task that reads it itself.
pub(super) fn own_stdin() -> Result<OwnedFd> {
    let stdin = rustix::stdio::stdin().try_clone_to_owned();
    stdin.map_err(|error| Error::io("pass the standard input on", &error))
}

/// Relays between our terminal and the task's, from its start to its end, or to that of the job.
pub(super) fn attach_terminal(
    socket: &OwnedFd,
    task: &TaskId,
    jobs: &mut [RunningJob],
    signals: &Signals,
    stop_request: &mut StopRequest,
) -> Result<()> {
    let mut relay: Option<Relay> = None;
    loop {
        let [job] = &*jobs else { return Ok(()) };
        let mut polled = vec![PollFd::new(signals, PollFlags::IN)];
        polled.push(PollFd::from_borrowed_fd(job.pidfd(), PollFlags::IN));
        let timeout = relay.as_ref().and_then(Relay::reminder_timeout);
        match &relay {
            Some(relay) => polled.extend(relay.poll_fds()),
            None => polled.push(PollFd::new(socket, PollFlags::IN)),
        }
        let over =
            sleep(&mut polled, timeout.map_or(POLL_INTERVAL_MS, |timeout| timeout.min(POLL_INTERVAL_MS)))?;
        let is_ready = |place: usize| polled.get(place).is_some_and(|polled| !polled.revents().is_empty());
        let (signal, ended, sent) = (is_ready(0), is_ready(1), is_ready(2));
        let ready = relay.as_ref().map(|relay| relay.ready(&polled[2..]));
        drop(polled);
        match relay.as_mut().zip(ready) {
            Some((relay, ready)) => {
                if over && timeout.is_some() {
                    relay.resend_end_of_input();
                }
                relay.step(ready);
            }
            // The end of the file means that the task will not start.
            None if sent => match socket::receive(socket) {
                Ok(master) => relay = Some(Relay::new(master)?),
                Err(_) => return Ok(()),
            },
            None => {}
        }
        if signal {
            while let Some(signal) = signals.next() {
                match &relay {
                    Some(relay) if signal == Signal::WINCH => relay.resize(),
                    _ => stop_request.forward(signal, jobs),
                }
            }
        }
        if ended || over && has_ended(task, jobs)? {
            break;
        }
    }
    let Some(mut relay) = relay else { return Ok(()) };
    relay.finish();
    while !relay.is_done() {
        let mut polled = relay.poll_fds();
        sleep(&mut polled, POLL_INTERVAL_MS)?;
        let ready = relay.ready(&polled);
        drop(polled);
        relay.step(ready);
        relay.finish();
    }
    Ok(())
}

/// Whether the attempt of the task that has the terminal is over.
fn has_ended(task: &TaskId, jobs: &[RunningJob]) -> Result<bool> {
    let [job] = jobs else { return Ok(true) };
    let record = Record::read(&job.directory)?;
    let task = record.as_ref().and_then(|record| record.task(task));
    Ok(task.is_none_or(|task| task.state.is_final() || !task.earlier.is_empty()))
}

/// Waits for at most this many milliseconds; returns true after a timeout.
fn sleep(polled: &mut [PollFd<'_>], milliseconds: u32) -> Result<bool> {
    let time = Timespec {
        tv_sec: i64::from(milliseconds / 1000),
        tv_nsec: i64::from(milliseconds % 1000) * 1_000_000,
    };
    match poll(polled, Some(&time)) {
        Ok(ready) => Ok(ready == 0),
        Err(Errno::INTR) => Ok(false),
        Err(errno) => Err(Error::system("wait for a task's terminal", errno)),
    }
}
