//! Progress of images: bars on a terminal, lines in a pipe, objects for programs.
//!
//! Bars are drawn below the printed lines and redrawn in place; permanent lines are printed above them.

mod bars;

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use jobc_image::Progress;
use jobc_sys::parallel::lock;
use serde_json::json;

use crate::args::FormatArg;
use crate::runtime::quantity::bytes;
use crate::table::escape_control;
use crate::terminal;
use bars::Item;

/// Minimum interval between two drawings of the bars.
const REDRAW_INTERVAL: Duration = Duration::from_millis(80);
/// Minimum interval between two objects about the same blob.
const REPORT_INTERVAL: Duration = Duration::from_millis(250);

/// Shows progress; shared by the worker threads.
pub(crate) struct Meter {
    style: ProgressStyle,
    state: Mutex<State>,
}

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProgressStyle {
    Nothing,
    Bars { columns: usize },
    Lines,
    Json,
}

struct State {
    items: Vec<Item>,
    /// Lines of bars that are on the terminal.
    drawn: usize,
    last: Option<Instant>,
}

impl Meter {
    /// Shows progress in the given format; for text, depending on stderr.
    pub(crate) fn new(format: FormatArg, quiet: bool) -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let look = match (format, terminal::columns_of_stderr()) {
            (FormatArg::Json, _) => ProgressStyle::Json,
            _ if quiet => ProgressStyle::Nothing,
            (_, Some(columns)) if io::stderr().is_terminal() && !dumb => ProgressStyle::Bars { columns },
            _ => ProgressStyle::Lines,
        };
        Self::styled(look)
    }

    /// Shows progress as lines, whatever stderr is.
    pub(crate) fn lines() -> Self {
        Self::styled(ProgressStyle::Lines)
    }

    fn styled(style: ProgressStyle) -> Self {
        Self { style, state: Mutex::new(State { items: Vec::new(), drawn: 0, last: None }) }
    }

    /// Shows a progress event.
    pub(crate) fn report(&self, progress: &Progress) {
        if self.style == ProgressStyle::Nothing {
            return;
        }
        let mut state = lock(&self.state);
        let Some((what, digest, done, total, known)) = amount(progress) else {
            self.line(&mut state, progress);
            return;
        };
        let item = state.update(what, &digest, done, total, known);
        let (ended, due) =
            (item.ended(), item.last_reported.is_none_or(|at| at.elapsed() >= REPORT_INTERVAL));
        let first_end = ended && !std::mem::replace(&mut item.end_reported, ended);
        match self.style {
            ProgressStyle::Json if first_end || due && !ended => {
                item.last_reported = Some(Instant::now());
                let object =
                    json!({"event": what, "digest": digest, "done": done, "total": total, "known": known});
                terminal::print(&format!("{object}\n"));
            }
            ProgressStyle::Lines if first_end => {
                let size = bytes(done);
                let how = if known { "is here" } else { bars::end_word(what) };
                terminal::eprint(&format!("{}{how} ({size})\n", bars::label(what, &digest)));
            }
            ProgressStyle::Bars { columns }
                if first_end || state.last.is_none_or(|last| last.elapsed() >= REDRAW_INTERVAL) =>
            {
                state.draw(columns);
            }
            _ => {}
        }
    }

    /// Prints a permanent line.
    fn line(&self, state: &mut State, progress: &Progress) {
        let (object, text) = match progress {
            Progress::Step { number, of, stage, text, cached } => (
                json!({"event": "step", "stage": stage, "number": number, "of": of, "text": text, "cached": cached}),
                format!(
                    "[{} {number}/{of}] {}{}",
                    escape_control(stage),
                    escape_control(text),
                    if *cached { " (cached)" } else { "" }
                ),
            ),
            Progress::Output { stage, number, line } => {
                let line = String::from_utf8_lossy(line);
                (
                    json!({"event": "output", "stage": stage, "number": number, "text": line}),
                    format!("[{} {number}] {}", escape_control(stage), escape_control(&line)),
                )
            }
            Progress::Note(text) => (json!({"event": "note", "text": text}), escape_control(text)),
            _ => return,
        };
        if self.style == ProgressStyle::Json {
            terminal::print(&format!("{object}\n"));
            return;
        }
        state.erase();
        terminal::eprint(&format!("{text}\n"));
        if let ProgressStyle::Bars { columns } = self.style {
            state.draw(columns);
        }
    }

    /// Removes the bars: the next output is printed in their place.
    pub(crate) fn clear(&self) {
        let mut state = lock(&self.state);
        state.erase();
        state.items.clear();
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.clear();
    }
}

impl State {
    fn update(
        &mut self,
        what: &'static str,
        digest: &str,
        done: u64,
        total: Option<u64>,
        known: bool,
    ) -> &mut Item {
        let place = self.items.iter().position(|item| item.what == what && item.digest == digest);
        let place = place.unwrap_or_else(|| {
            self.items.push(Item::new(what, digest));
            self.items.len() - 1
        });
        let item = &mut self.items[place];
        (item.done, item.total, item.known) = (done, total, known);
        item
    }

    fn draw(&mut self, columns: usize) {
        let lines = bars::lines(&self.items, columns);
        let mut text = self.clear_sequence();
        for line in &lines {
            text.push_str(line);
            text.push('\n');
        }
        self.drawn = lines.len();
        self.last = Some(Instant::now());
        write(&text);
    }

    fn erase(&mut self) {
        if self.drawn > 0 {
            write(&self.clear_sequence());
            self.drawn = 0;
        }
    }

    /// Moves to the first bar and clears from there on.
    fn clear_sequence(&self) -> String {
        if self.drawn == 0 { String::new() } else { format!("\x1b[{}A\x1b[J", self.drawn) }
    }
}

/// Bypasses the filter of colors: these are cursor movements, which a terminal without colors has as well.
fn write(text: &str) {
    let mut out = io::stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// The amount of an event: its kind, its digest, the progress, and whether the blob was already in the store.
fn amount(progress: &Progress) -> Option<(&'static str, String, u64, Option<u64>, bool)> {
    match progress {
        Progress::Blob { digest, done, total, known } => {
            Some(("blob", digest.to_string(), *done, *total, *known))
        }
        Progress::Layer { digest, done, total, known } => {
            Some(("layer", digest.to_string(), *done, Some(*total), *known))
        }
        Progress::Source { done, total } => Some(("source", String::new(), *done, *total, false)),
        _ => None,
    }
}
