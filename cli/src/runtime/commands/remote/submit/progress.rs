//! The progress of a submission of many jobs: a line on a terminal that is redrawn, and lines now and then in a pipe.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::terminal;
use jobc_sys::parallel::lock;

/// Minimum interval between two drawings on a terminal.
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);
/// Interval between two lines in a pipe.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// The progress of the jobs, on stderr.
pub(super) struct Progress {
    /// The past participle in the progress line: `submitted`.
    done: &'static str,
    total: usize,
    is_terminal: bool,
    state: Mutex<State>,
}

struct State {
    count: usize,
    last: Instant,
    is_drawn: bool,
}

impl Progress {
    /// The progress of this many jobs; not shown for one job.
    pub(super) fn new(done: &'static str, total: usize) -> Self {
        let state = State { count: 0, last: Instant::now(), is_drawn: false };
        Self { done, total, is_terminal: std::io::stderr().is_terminal(), state: Mutex::new(state) }
    }

    /// Counts a job.
    pub(super) fn advance(&self) {
        let mut state = lock(&self.state);
        state.count += 1;
        let interval = if self.is_terminal { REDRAW_INTERVAL } else { LINE_INTERVAL };
        if self.total > 1 && state.last.elapsed() >= interval {
            state.last = Instant::now();
            let line = self.line(state.count);
            if self.is_terminal {
                state.is_drawn = true;
                write(&format!("\r\x1b[K{line}"));
            } else {
                terminal::eprint(&format!("{line}\n"));
            }
        }
    }

    /// Prints text instead of the line, which comes again with the next job.
    pub(super) fn print(&self, text: &str) {
        self.around(|| terminal::eprint(text));
    }

    /// Lets something else print instead of the line.
    pub(super) fn around(&self, print: impl FnOnce()) {
        let mut state = lock(&self.state);
        state.erase();
        print();
    }

    /// Prints a remark of the program.
    pub(super) fn note(&self, text: &str) {
        self.print(&format!("jobc: {text}\n"));
    }

    /// Removes the line. Returns whether all jobs are done.
    pub(super) fn finish(&self) -> bool {
        let mut state = lock(&self.state);
        state.erase();
        state.count == self.total
    }

    fn line(&self, count: usize) -> String {
        format!("jobc: {} {count} of {}", self.done, self.total)
    }
}

impl State {
    fn erase(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            write("\r\x1b[K");
        }
    }
}

/// Bypasses the filter of colors: these are cursor movements.
fn write(text: &str) {
    let mut out = std::io::stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
