//! Staying with a container until its end: signals and the terminal are passed on.

use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::process::{Exit, Process};
use crate::terminal::Relay;
use jobc_sys::error::{Error, Result};
use jobc_sys::signals::{Disposition, Signal, Signals};

/// What is done about a signal beyond passing it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Nothing, as runc and crun do. The kernel then spares the first process of a pid namespace every signal that it
    /// has no handler for.
    PassOn,
    /// What people expect of a command in the foreground: a program that does nothing about a signal ends by it, as
    /// it would outside of a container, and [`INSISTENCE`] signals that ask for the end within [`IMPATIENCE`] kill it.
    AsCommand,
}

/// How many signals that ask for the end are one too many.
pub const INSISTENCE: usize = 3;

/// How long a termination signal counts as the cause of the end.
pub const IMPATIENCE: Duration = Duration::from_secs(5);

/// Waits for the end of a process. Signals that come meanwhile go to it; its terminal, where we have it, is relayed.
pub fn wait(process: &Process, signals: &Signals, relay: Option<&mut Relay>, manner: Manner) -> Result<Exit> {
    let mut relay = relay;
    let mut passing = Passing { process, manner, insistence: Insistence::default(), ended_by: None };
    loop {
        let ready = look(process, signals, relay.as_deref_mut())?;
        while ready.signal
            && let Some(signal) = signals.next()
        {
            match &relay {
                Some(relay) if signal == Signal::WINCH => relay.resize(),
                _ => passing.pass(signal)?,
            }
        }
        if ready.gone {
            break;
        }
    }
    let exit = process.wait()?;
    if let Some(relay) = relay {
        drain(relay, process, signals)?;
    }
    Ok(match (exit, passing.ended_by) {
        (Exit::Signal(9), Some(signal)) => Exit::Signal(signal.number()),
        _ => exit,
    })
}

/// Passes on what the container wrote before its end. Whoever reads may take their time; a signal that asks for the end
/// cuts it short.
fn drain(relay: &mut Relay, process: &Process, signals: &Signals) -> Result<()> {
    relay.end();
    while !relay.is_done() {
        let ready = look(process, signals, Some(relay))?;
        if ready.signal && signals.next().is_some_and(asks_for_the_end) {
            break;
        }
        relay.end();
    }
    Ok(())
}

/// What there was to see.
struct Look {
    signal: bool,
    gone: bool,
}

/// Sleeps until something happens, and lets the relay move what it can.
fn look(process: &Process, signals: &Signals, relay: Option<&mut Relay>) -> Result<Look> {
    let mut polled = Vec::with_capacity(5);
    polled.push(PollFd::new(signals, PollFlags::IN));
    // A process that is gone stays ready: after its end only the other two are waited for.
    let pidfd = process.pidfd.as_fd();
    let Some(relay) = relay else {
        polled.push(PollFd::from_borrowed_fd(pidfd, PollFlags::IN));
        sleep(&mut polled, None)?;
        return Ok(Look { signal: !polled[0].revents().is_empty(), gone: !polled[1].revents().is_empty() });
    };
    if !relay.is_ending() {
        polled.push(PollFd::from_borrowed_fd(pidfd, PollFlags::IN));
    }
    let own = polled.len();
    let patience = relay.patience();
    polled.extend(relay.interests());
    let over = sleep(&mut polled, patience)?;
    let look = Look {
        signal: !polled[0].revents().is_empty(),
        gone: polled[1..own].iter().any(|polled| !polled.revents().is_empty()),
    };
    let ready = relay.ready(&polled[own..]);
    drop(polled);
    if over {
        relay.remind();
    }
    relay.step(ready);
    Ok(look)
}

/// Waits, for at most so many milliseconds; true when the time is over.
fn sleep(polled: &mut [PollFd<'_>], milliseconds: Option<u32>) -> Result<bool> {
    let time = milliseconds.map(|milliseconds| Timespec {
        tv_sec: i64::from(milliseconds / 1000),
        tv_nsec: i64::from(milliseconds % 1000) * 1_000_000,
    });
    match poll(polled, time.as_ref()) {
        Ok(ready) => Ok(ready == 0),
        Err(Errno::INTR) => Ok(false),
        Err(errno) => Err(Error::machine("wait for the container", errno)),
    }
}

/// Signals on their way to the container.
struct Passing<'a> {
    process: &'a Process,
    manner: Manner,
    insistence: Insistence,
    /// The signal that ended the program, sent because the kernel ignores it for the first process of a namespace.
    ended_by: Option<Signal>,
}

impl Passing<'_> {
    fn pass(&mut self, signal: Signal) -> Result<()> {
        let mut signal = signal;
        if self.manner == Manner::AsCommand {
            if self.would_be_spared(signal) {
                self.ended_by.get_or_insert(signal);
                signal = Signal::KILL;
            } else if self.insistence.is_too_much(signal) {
                signal = Signal::KILL;
            }
        }
        signal.send(&self.process.pidfd).map(drop)
    }

    fn would_be_spared(&self, signal: Signal) -> bool {
        signal.ends_by_default() && Disposition::of(self.process.pid, signal) == Some(Disposition::Spared)
    }
}

/// The termination signals that were sent to a container.
#[derive(Debug, Default)]
pub struct Insistence {
    /// When they came.
    asked: Vec<Instant>,
}

impl Insistence {
    /// Takes a signal into account: whether it asks for the end and is the [`INSISTENCE`]th within [`IMPATIENCE`].
    pub fn is_too_much(&mut self, signal: Signal) -> bool {
        if !asks_for_the_end(signal) {
            return false;
        }
        self.asked.retain(|when| when.elapsed() < IMPATIENCE);
        self.asked.push(Instant::now());
        self.asked.len() >= INSISTENCE
    }
}

fn asks_for_the_end(signal: Signal) -> bool {
    [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM].contains(&signal)
}
