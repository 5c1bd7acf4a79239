//! Staying with a container until its end: signals and the terminal are passed on.

use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::process::{Exit, Process};
use crate::terminal::Relay;
use jobc_sys::error::{Error, Result};
use jobc_sys::signals::{Disposition, Signal, Signals};

/// Actions on a signal besides forwarding it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalPolicy {
    /// Nothing, as in runc and crun. The kernel ignores every signal to the first process of a pid namespace for which
    /// it has no handler.
    Forward,
    /// The expected behavior of a foreground command: a program that does nothing about a signal ends by it, as it
    /// would outside of a container, and [`TERMINATION_SIGNAL_LIMIT`] signals that ask for the end within
    /// [`TERMINATION_SIGNAL_WINDOW`] kill it.
    Foreground,
}

/// How many signals that ask for the end are one too many.
pub const TERMINATION_SIGNAL_LIMIT: usize = 3;

/// How long a termination signal counts as the cause of the end.
pub const TERMINATION_SIGNAL_WINDOW: Duration = Duration::from_secs(5);

/// Waits for the end of a process. Signals that arrive meanwhile are forwarded to it; its terminal, if we have it, is
/// relayed.
pub fn wait(
    process: &Process,
    signals: &Signals,
    relay: Option<&mut Relay>,
    manner: SignalPolicy,
) -> Result<Exit> {
    let mut relay = relay;
    let mut passing = SignalForwarder {
        process,
        policy: manner,
        termination_signals: TerminationSignals::default(),
        ended_by: None,
    };
    loop {
        let ready = poll_events(process, signals, relay.as_deref_mut())?;
        while ready.signal
            && let Some(signal) = signals.next()
        {
            match &relay {
                Some(relay) if signal == Signal::WINCH => relay.resize(),
                _ => passing.forward(signal)?,
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

/// Forwards the output that the container wrote before its end. The reader may be slow; a terminating signal stops it.
fn drain(relay: &mut Relay, process: &Process, signals: &Signals) -> Result<()> {
    relay.finish();
    while !relay.is_done() {
        let ready = poll_events(process, signals, Some(relay))?;
        if ready.signal && signals.next().is_some_and(is_termination_signal) {
            break;
        }
        relay.finish();
    }
    Ok(())
}

/// The result of the wait.
struct PollResult {
    signal: bool,
    gone: bool,
}

/// Sleeps until something happens, and lets the relay move data.
fn poll_events(process: &Process, signals: &Signals, relay: Option<&mut Relay>) -> Result<PollResult> {
    let mut polled = Vec::with_capacity(5);
    polled.push(PollFd::new(signals, PollFlags::IN));
    // A process that is gone stays ready: after its end only the other two are waited for.
    let pidfd = process.pidfd.as_fd();
    let Some(relay) = relay else {
        polled.push(PollFd::from_borrowed_fd(pidfd, PollFlags::IN));
        sleep(&mut polled, None)?;
        return Ok(PollResult {
            signal: !polled[0].revents().is_empty(),
            gone: !polled[1].revents().is_empty(),
        });
    };
    if !relay.is_ending() {
        polled.push(PollFd::from_borrowed_fd(pidfd, PollFlags::IN));
    }
    let own = polled.len();
    let timeout = relay.reminder_timeout();
    polled.extend(relay.poll_fds());
    let over = sleep(&mut polled, timeout)?;
    let look = PollResult {
        signal: !polled[0].revents().is_empty(),
        gone: polled[1..own].iter().any(|polled| !polled.revents().is_empty()),
    };
    let ready = relay.ready(&polled[own..]);
    drop(polled);
    if over {
        relay.resend_end_of_input();
    }
    relay.step(ready);
    Ok(look)
}

/// Waits at most this many milliseconds; true if it timed out.
fn sleep(polled: &mut [PollFd<'_>], milliseconds: Option<u32>) -> Result<bool> {
    let time = milliseconds.map(|milliseconds| Timespec {
        tv_sec: i64::from(milliseconds / 1000),
        tv_nsec: i64::from(milliseconds % 1000) * 1_000_000,
    });
    match poll(polled, time.as_ref()) {
        Ok(ready) => Ok(ready == 0),
        Err(Errno::INTR) => Ok(false),
        Err(errno) => Err(Error::system("wait for the container", errno)),
    }
}

/// Signals forwarded to the container.
struct SignalForwarder<'a> {
    process: &'a Process,
    policy: SignalPolicy,
    termination_signals: TerminationSignals,
    /// The signal that ended the program, sent because the kernel ignores it for the first process of a namespace.
    ended_by: Option<Signal>,
}

impl SignalForwarder<'_> {
    fn forward(&mut self, signal: Signal) -> Result<()> {
        let mut signal = signal;
        if self.policy == SignalPolicy::Foreground {
            if self.is_ignored_by_init(signal) {
                self.ended_by.get_or_insert(signal);
                signal = Signal::KILL;
            } else if self.termination_signals.exceeds_limit(signal) {
                signal = Signal::KILL;
            }
        }
        signal.send(&self.process.pidfd).map(drop)
    }

    fn is_ignored_by_init(&self, signal: Signal) -> bool {
        signal.ends_by_default() && Disposition::of(self.process.pid, signal) == Some(Disposition::Exempt)
    }
}

/// The termination signals that were sent to a container.
#[derive(Debug, Default)]
pub struct TerminationSignals {
    /// When they came.
    received_at: Vec<Instant>,
}

impl TerminationSignals {
    /// Takes a signal into account: whether it asks for the end and is the [`TERMINATION_SIGNAL_LIMIT`]th within [`TERMINATION_SIGNAL_WINDOW`].
    pub fn exceeds_limit(&mut self, signal: Signal) -> bool {
        if !is_termination_signal(signal) {
            return false;
        }
        self.received_at.retain(|when| when.elapsed() < TERMINATION_SIGNAL_WINDOW);
        self.received_at.push(Instant::now());
        self.received_at.len() >= TERMINATION_SIGNAL_LIMIT
    }
}

fn is_termination_signal(signal: Signal) -> bool {
    [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM].contains(&signal)
}
