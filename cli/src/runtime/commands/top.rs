//! `jobc top`: resource usage of tasks in full screen; without a terminal, as `jobc stats`.

mod screen;

use std::os::fd::AsFd as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use jobc_sys::readable;
use jobc_sys::signals::{Signal, Signals};
use rustix::stdio::{stdin, stdout};
use rustix::termios::isatty;

use super::jobs::Result;
use super::stats::{self, FIRST_INTERVAL, MeasuredJobs, UsageRows};
use crate::args::FormatArg;
use crate::runtime::args::watch::StatsArgs;
pub(super) use screen::heading;
use screen::{Screen, View};

pub(crate) fn run(args: &StatsArgs) -> Result<ExitCode> {
    let is_terminal = isatty(stdin()) && isatty(stdout());
    if !is_terminal || args.no_stream || args.output_args.format == FormatArg::Json {
        return stats::run(args);
    }
    let mut measured = MeasuredJobs::open(args)?;
    let signals = Signals::block_forwarded()?;
    let mut rows = UsageRows::default();
    let mut view = View::default();
    // From here on, errors are printed after the terminal is restored.
    let _screen = Screen::enter();
    let mut next = Instant::now() + FIRST_INTERVAL;
    loop {
        let jobs = measured.measure()?;
        let shown = rows.update(stats::of_rows(&jobs));
        view.set_sample(jobs.into_iter().map(|job| (job.id, job.summary)).collect(), shown);
        loop {
            if Screen::draw(&mut view).is_err() {
                return Ok(ExitCode::SUCCESS);
            }
            let left = next.saturating_duration_since(Instant::now());
            match wait(&signals, left) {
                WakeReason::Time => break,
                WakeReason::Signal(Signal::WINCH) => {}
                WakeReason::Signal(signal) if signal.ends_by_default() => return Ok(ExitCode::SUCCESS),
                WakeReason::Signal(_) => {}
                WakeReason::Keys => match Screen::keys() {
                    None => return Ok(ExitCode::SUCCESS),
                    Some(keys) => {
                        if keys.into_iter().any(|key| view.handle_key(key)) {
                            return Ok(ExitCode::SUCCESS);
                        }
                    }
                },
            }
        }
        next = Instant::now() + measured.interval();
    }
}

enum WakeReason {
    Time,
    Keys,
    Signal(Signal),
}

fn wait(signals: &Signals, longest: Duration) -> WakeReason {
    let has_keys = readable::wait(&[signals.as_fd(), stdin()], Some(longest)).is_ok_and(|ready| ready[1]);
    match signals.next() {
        Some(signal) => WakeReason::Signal(signal),
        None if has_keys => WakeReason::Keys,
        None => WakeReason::Time,
    }
}
