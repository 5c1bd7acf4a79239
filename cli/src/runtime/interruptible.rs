//! Runs work in a thread, while this one receives signals.

use std::os::fd::AsFd as _;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jobc_container::process::Exit;
use jobc_sys::error::{Error, Result};
use jobc_sys::readable;
use jobc_sys::signals::{Signal, Signals};
use rustix::pipe::{PipeFlags, pipe_with};

/// How long work goes on that was asked to stop.
const STOP_TIMEOUT: Duration = Duration::from_millis(700);

/// Runs the work in a thread, and calls `on_signal` for every signal that would end a program.
pub(crate) fn run<T: Send>(
    signals: &Signals,
    work: impl FnOnce() -> T + Send,
    mut on_signal: impl FnMut(Signal),
) -> Result<T> {
    run_until(signals, work, |signal| {
        on_signal(signal);
        None
    })
}

/// Runs the work in a thread. A signal that would end a program sets `stopped`, and is returned with the result; a second
/// one ends this program, and so does work that does not stop in time: it may wait for a disk.
///
/// So the work must be such that nothing incomplete counts as complete when its process is killed.
pub(crate) fn run_stoppable<T: Send>(
    signals: &Signals,
    stopped: &AtomicBool,
    work: impl FnOnce() -> T + Send,
) -> Result<(T, Option<Signal>)> {
    let mut ended_by = None;
    let result = run_until(signals, work, |signal| {
        if ended_by.replace(signal).is_some() {
            exit_by_signal(signal);
        }
        stopped.store(true, Ordering::Relaxed);
        Some(STOP_TIMEOUT)
    })?;
    Ok((result, ended_by))
}

/// The same for work without which this program has nothing to do: after a signal, it ends.
pub(crate) fn run_or_exit<T: Send>(
    signals: &Signals,
    stopped: &AtomicBool,
    work: impl FnOnce() -> T + Send,
) -> Result<T> {
    let (result, signal) = run_stoppable(signals, stopped, work)?;
    signal.map_or(Ok(result), |signal| exit_by_signal(signal))
}

/// Runs the work in a thread. `on_signal` returns how long the work may go on; then this program ends.
fn run_until<T: Send>(
    signals: &Signals,
    work: impl FnOnce() -> T + Send,
    mut on_signal: impl FnMut(Signal) -> Option<Duration>,
) -> Result<T> {
    let (done, working) =
        pipe_with(PipeFlags::CLOEXEC).map_err(|errno| Error::system("make a pipe", errno))?;
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            let result = work();
            drop(working);
            result
        });
        let mut deadline: Option<(Instant, Signal)> = None;
        loop {
            let rest = deadline.map(|(deadline, _)| deadline.saturating_duration_since(Instant::now()));
            let ready = readable::wait(&[signals.as_fd(), done.as_fd()], rest);
            if ready.map_err(|errno| Error::system("wait for a thread", errno))?[1] {
                return thread.join().map_err(|panic| std::panic::resume_unwind(panic));
            }
            if let Some((_, signal)) = deadline.filter(|(deadline, _)| *deadline <= Instant::now()) {
                exit_by_signal(signal);
            }
            while let Some(signal) = signals.next() {
                if signal.ends_by_default()
                    && let Some(rest) = on_signal(signal)
                {
                    deadline = Some((Instant::now() + rest, signal));
                }
            }
        }
    })
}

/// Ends this program as a signal would have.
pub(crate) fn exit_by_signal(signal: Signal) -> ! {
    std::process::exit(Exit::Signal(signal.number()).code().into())
}

/// The exit code of a program that a signal ended.
pub(crate) fn exit_code(signal: Signal) -> ExitCode {
    ExitCode::from(Exit::Signal(signal.number()).code())
}
