//! `jobc top`: resource usage of tasks in full screen; without a terminal, as `jobc stats`.

mod screen;

use std::os::fd::AsFd as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use jobc_sys::signals::{Signal, Signals};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::stdio::{stdin, stdout};
use rustix::termios::isatty;

use super::jobs::Result;
use super::stats::{self, LookedAt, Rows};
use crate::args::FormatArg;
use crate::args::watch::StatsArgs;
use screen::{Key, Screen, View};

/// Interval of samples.
const PAUSE: Duration = Duration::from_secs(1);

/// Time until the second sample, the first with CPU time.
const SOON: Duration = Duration::from_millis(250);

pub(crate) fn run(args: &StatsArgs) -> Result<ExitCode> {
    let is_terminal = isatty(stdin()) && isatty(stdout());
    if !is_terminal || args.no_stream || args.shown.format == FormatArg::Json {
        return stats::run(args);
    }
    let mut looked_at = LookedAt::open(args)?;
    let signals = Signals::take()?;
    let mut rows = Rows::default();
    let mut view = View::default();
    // From here on, errors are printed after the terminal is restored.
    let _screen = Screen::enter();
    let mut next = Instant::now() + SOON;
    loop {
        let jobs = looked_at.look()?;
        let records = jobs.iter().map(|(record, _)| record.clone()).collect();
        view.take(records, rows.take(jobs));
        loop {
            if Screen::draw(&mut view).is_err() {
                return Ok(ExitCode::SUCCESS);
            }
            let left = next.saturating_duration_since(Instant::now());
            match wait(&signals, left) {
                Woken::Time => break,
                Woken::Signal(Signal::WINCH) => {}
                Woken::Signal(signal) if signal.ends_by_default() => return Ok(ExitCode::SUCCESS),
                Woken::Signal(_) => {}
                Woken::Keys => match Screen::keys() {
                    None => return Ok(ExitCode::SUCCESS),
                    Some(keys) if keys.contains(&Key::Quit) => return Ok(ExitCode::SUCCESS),
                    Some(keys) => keys.into_iter().for_each(|key| view.press(key)),
                },
            }
        }
        next = Instant::now() + PAUSE;
    }
}

enum Woken {
    Time,
    Keys,
    Signal(Signal),
}

fn wait(signals: &Signals, longest: Duration) -> Woken {
    let mut polled = [
        PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(stdin(), PollFlags::IN),
    ];
    let time = Timespec::try_from(longest).unwrap_or_default();
    if poll(&mut polled, Some(&time)).is_ok_and(|ready| ready == 0) {
        return Woken::Time;
    }
    match signals.next() {
        Some(signal) => Woken::Signal(signal),
        None if !polled[1].revents().is_empty() => Woken::Keys,
        None => Woken::Time,
    }
}
