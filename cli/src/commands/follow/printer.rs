//! Lines of tasks, for people and for programs.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use jobc_job::logs::{Line, Stream};
use serde::Serialize;

use super::output::{Outputs, To};

/// The format of lines.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Look {
    /// Each line begins with its task.
    pub prefix: bool,
    /// Each line has its time.
    pub timestamps: bool,
    /// Each line is a JSON object.
    pub json: bool,
}

/// Prints lines of tasks: their stdout to our stdout, the rest to our stderr.
///
/// Without prefixes, the bytes of a task are unchanged. With prefixes, lines are shown whole, up to a maximum length.
/// On a terminal, a line whose end does not arrive is shown anyway, and continued in place unless a line of another
/// task came in between.
pub(crate) struct Printer {
    names: Vec<Name>,
    width: usize,
    look: Look,
    outputs: Outputs,
    /// Lines whose ends have not arrived.
    held: BTreeMap<(usize, bool), Held>,
    /// The tasks whose lines are partly printed on stdout and stderr.
    half: [Option<(usize, Stream)>; 2],
}

/// The prefix of a task's lines.
#[derive(Debug)]
struct Name {
    job: String,
    task: String,
    shown: String,
    color: &'static str,
}

/// A line whose end has not arrived.
struct Held {
    since: Instant,
    time: String,
    stream: Stream,
    attempt: u32,
    text: Vec<u8>,
}

/// How long to wait for the end of a line on a terminal.
const PATIENCE: Duration = Duration::from_secs(1);

/// Maximum length of a line that is buffered.
const LONGEST: usize = 64 << 10;

/// Distinguishable on dark and light backgrounds; red is for errors.
const COLORS: [&str; 10] = [
    "\x1b[36m", "\x1b[33m", "\x1b[32m", "\x1b[35m", "\x1b[34m", "\x1b[96m", "\x1b[93m", "\x1b[92m",
    "\x1b[95m", "\x1b[94m",
];
const RED: &str = "\x1b[31m";
const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// A line for programs.
#[derive(Serialize)]
struct Object<'a> {
    time: &'a str,
    job: &'a str,
    task: &'a str,
    attempt: u32,
    stream: Stream,
    text: Cow<'a, str>,
    /// Whether the line ends here; otherwise it continues in the next object.
    ends: bool,
}

impl Printer {
    pub(crate) fn new(look: Look, outputs: Outputs) -> Self {
        Self { names: vec![], width: 0, look, outputs, held: BTreeMap::new(), half: [None; 2] }
    }

    /// Adds a task. Its position in the job selects its color. Returns the number for its lines.
    pub(crate) fn add(&mut self, job: &str, task: &str, several_jobs: bool, place: usize) -> usize {
        let shown = if several_jobs { format!("{job} {task}") } else { task.to_owned() };
        self.width = self.width.max(shown.len());
        let color = COLORS[place % COLORS.len()];
        self.names.push(Name { job: job.to_owned(), task: task.to_owned(), shown, color });
        self.names.len() - 1
    }

    /// Prints a line of a task, or buffers it until its end has arrived.
    pub(crate) fn line(&mut self, number: usize, line: &Line<'_>) -> io::Result<()> {
        let key = (number, line.stream == Stream::Stderr);
        let whole = line.ends && !self.held.contains_key(&key);
        if whole || line.stream == Stream::Jobc || !self.look.prefix && !self.look.json {
            return self.print(number, line);
        }
        let held = self.held.entry(key).or_insert_with(|| Held {
            since: Instant::now(),
            time: line.time.to_owned(),
            stream: line.stream,
            attempt: line.attempt,
            text: vec![],
        });
        held.text.extend_from_slice(line.text);
        if line.ends || held.text.len() >= LONGEST { self.release(key, line.ends) } else { Ok(()) }
    }

    fn release(&mut self, key: (usize, bool), ends: bool) -> io::Result<()> {
        let Some(Held { time, stream, attempt, text, .. }) = self.held.remove(&key) else { return Ok(()) };
        self.print(key.0, &Line { time: &time, stream, ends, attempt, text: &text })
    }

    /// Flushes everything; on a terminal also lines that have waited for their ends.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let is_terminal = |errors| self.outputs.is_terminal(if errors { To::Errors } else { To::Output });
        let waited = self.held.iter().filter(|((_, errors), held)| {
            is_terminal(*errors) && !self.look.json && held.since.elapsed() >= PATIENCE
        });
        for key in waited.map(|(key, _)| *key).collect::<Vec<_>>() {
            self.release(key, false)?;
        }
        self.outputs.flush()
    }

    /// Also prints lines without an end, and flushes everything.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        while let Some(key) = self.held.keys().next().copied() {
            self.release(key, true)?;
        }
        self.outputs.flush()
    }

    fn print(&mut self, number: usize, line: &Line<'_>) -> io::Result<()> {
        if self.look.json {
            return self.object(number, line);
        }
        let to = if line.stream == Stream::Stdout { To::Output } else { To::Errors };
        if line.stream == Stream::Jobc {
            return self.remark(&format!(
                "{}: {}",
                self.names[number].task,
                String::from_utf8_lossy(line.text)
            ));
        }
        let goes_on = self.half[to as usize] == Some((number, line.stream));
        if !goes_on && self.look.prefix {
            self.end_half_lines(to)?;
        }
        let head = self.head(number, line, to);
        let redraws = self.look.prefix && self.outputs.is_terminal(to);
        let colored = self.outputs.is_colored(to);
        let out = self.outputs.to(to)?;
        if !goes_on {
            out.extend_from_slice(&head);
        }
        let text = if redraws { line.text.strip_suffix(b"\r").unwrap_or(line.text) } else { line.text };
        if redraws && text.contains(&b'\r') {
            // A progress bar returns to the start of the line, which is after the name.
            for (index, piece) in text.split(|&byte| byte == b'\r').enumerate() {
                if index > 0 {
                    out.push(b'\r');
                    out.extend_from_slice(&head);
                }
                out.extend_from_slice(piece);
            }
        } else {
            out.extend_from_slice(text);
        }
        if line.ends {
            if colored && text.contains(&b'\x1b') {
                out.extend_from_slice(PLAIN.as_bytes());
            }
            out.push(b'\n');
        }
        self.half[to as usize] = (!line.ends).then_some((number, line.stream));
        Ok(())
    }

    /// Prints a line of our own on stderr, after `jobc: `.
    pub(crate) fn remark(&mut self, text: &str) -> io::Result<()> {
        self.end_half_lines(To::Errors)?;
        let (dim, plain) = if self.outputs.is_colored(To::Errors) { (DIM, PLAIN) } else { ("", "") };
        let out = self.outputs.to(To::Errors)?;
        out.extend_from_slice(format!("{dim}jobc: {text}{plain}\n").as_bytes());
        Ok(())
    }

    /// The prefix of a line: `worker-3  | `.
    fn head(&self, number: usize, line: &Line<'_>, to: To) -> Vec<u8> {
        let mut head = String::new();
        let name = &self.names[number];
        let colored = self.outputs.is_colored(to);
        if self.look.prefix {
            let width = self.width;
            head += &match (colored, line.stream) {
                (false, _) => format!("{:width$} | ", name.shown),
                (true, Stream::Stderr) => {
                    format!("{}{:width$}{PLAIN} {RED}|{PLAIN} ", name.color, name.shown)
                }
                (true, _) => format!("{}{:width$} |{PLAIN} ", name.color, name.shown),
            };
        }
        if self.look.timestamps {
            let (dim, plain) = if colored { (DIM, PLAIN) } else { ("", "") };
            head += &format!("{dim}{}{plain} ", line.time);
        }
        head.into_bytes()
    }

    /// Ends a partly printed line before a new one: on the same output, or on the same terminal.
    fn end_half_lines(&mut self, to: To) -> io::Result<()> {
        for other in [To::Output, To::Errors] {
            let shared = other == to || self.outputs.is_terminal(other) && self.outputs.is_terminal(to);
            if shared && self.half[other as usize].take().is_some() {
                self.outputs.to(other)?.push(b'\n');
            }
        }
        Ok(())
    }

    fn object(&mut self, number: usize, line: &Line<'_>) -> io::Result<()> {
        let Name { job, task, .. } = &self.names[number];
        let Line { time, stream, ends, attempt, .. } = *line;
        let object =
            Object { time, job, task, attempt, stream, text: String::from_utf8_lossy(line.text), ends };
        let out = self.outputs.to(To::Output)?;
        serde_json::to_writer(&mut *out, &object)?;
        out.push(b'\n');
        Ok(())
    }
}

#[cfg(test)]
mod tests;
