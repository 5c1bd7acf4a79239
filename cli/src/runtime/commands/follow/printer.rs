//! Lines of tasks, for people and for programs.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use jobc_job::logs::states;
use jobc_place::logs::{Line, Stream};
use jobc_place::output::LogLine;

use super::event_text::Tone;
use super::output::{OutputStream, OutputStreams};

/// The format of lines.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LineFormat {
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
    labels: Vec<TaskLabel>,
    width: usize,
    line_format: LineFormat,
    outputs: OutputStreams,
    /// Lines whose ends have not arrived.
    partial_lines: BTreeMap<(usize, bool), PartialLine>,
    /// The tasks whose lines are partly printed on stdout and stderr.
    open_lines: [Option<(usize, Stream)>; 2],
    /// The number of lines of tasks that were printed.
    printed: u64,
    /// For tasks and whether it is their stderr, `printed` at their last line.
    last_lines: BTreeMap<(usize, bool), u64>,
    /// The beginning of each task's last line.
    last_texts: BTreeMap<usize, Vec<u8>>,
}

/// The prefix of a task's lines.
#[derive(Debug)]
struct TaskLabel {
    job: String,
    task: String,
    text: String,
    color: &'static str,
}

/// A line whose end has not arrived.
struct PartialLine {
    since: Instant,
    time: String,
    stream: Stream,
    attempt: u32,
    text: Vec<u8>,
}

/// How long to wait for the end of a line on a terminal.
const PARTIAL_LINE_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum length of a line that is buffered.
const MAX_LINE_BYTES: usize = 64 << 10;

/// How much of a task's last line is kept.
const MAX_LAST_TEXT_BYTES: usize = 400;

/// The number of later lines after which a line is assumed to be off the screen.
const LINES_AT_HAND: u64 = 5;

/// Colors that are distinguishable on dark and light backgrounds; red is for errors.
const COLORS: [&str; 10] = [
    "\x1b[36m", "\x1b[33m", "\x1b[32m", "\x1b[35m", "\x1b[34m", "\x1b[96m", "\x1b[93m", "\x1b[92m",
    "\x1b[95m", "\x1b[94m",
];
const RED: &str = "\x1b[31m";
const DIM: &str = "\x1b[2m";
const RESET: &str = "\x1b[0m";

impl Printer {
    pub(crate) fn new(look: LineFormat, outputs: OutputStreams) -> Self {
        Self {
            labels: vec![],
            width: 0,
            line_format: look,
            outputs,
            partial_lines: BTreeMap::new(),
            open_lines: [None; 2],
            printed: 0,
            last_lines: BTreeMap::new(),
            last_texts: BTreeMap::new(),
        }
    }

    /// Adds a task. Its position in the job selects its color. Returns the number for its lines.
    pub(crate) fn add_task(&mut self, job: &str, task: &str, several_jobs: bool, place: usize) -> usize {
        let shown = if several_jobs { format!("{job} {task}") } else { task.to_owned() };
        self.width = self.width.max(shown.len());
        let color = COLORS[place % COLORS.len()];
        self.labels.push(TaskLabel { job: job.to_owned(), task: task.to_owned(), text: shown, color });
        self.labels.len() - 1
    }

    /// Prints a line of a task, or buffers it until its end has arrived.
    pub(crate) fn line(&mut self, number: usize, line: &Line<'_>) -> io::Result<()> {
        let key = (number, line.stream == Stream::Stderr);
        let whole = line.ends && !self.partial_lines.contains_key(&key);
        if whole || line.stream == Stream::Jobc || !self.line_format.prefix && !self.line_format.json {
            return self.print(number, line);
        }
        let held = self.partial_lines.entry(key).or_insert_with(|| PartialLine {
            since: Instant::now(),
            time: line.time.to_owned(),
            stream: line.stream,
            attempt: line.attempt,
            text: vec![],
        });
        held.text.extend_from_slice(line.text);
        if line.ends || held.text.len() >= MAX_LINE_BYTES {
            return self.flush_partial_line(key, line.ends);
        }
        // For programs, each state of a progress bar is a line; a return may still belong to the end of one.
        let last = held.text.len().saturating_sub(1);
        let last = held.text[..last].iter().rposition(|&byte| byte == b'\r');
        if let Some(last) = last.filter(|_| self.line_format.json) {
            let rest = held.text.split_off(last + 1);
            let text = std::mem::replace(&mut held.text, rest);
            let (time, stream, attempt) = (held.time.clone(), held.stream, held.attempt);
            line.time.clone_into(&mut held.time);
            return self.json_line(number, &Line { time: &time, stream, ends: true, attempt, text: &text });
        }
        Ok(())
    }

    fn flush_partial_line(&mut self, key: (usize, bool), ends: bool) -> io::Result<()> {
        let Some(PartialLine { time, stream, attempt, text, .. }) = self.partial_lines.remove(&key) else {
            return Ok(());
        };
        self.print(key.0, &Line { time: &time, stream, ends, attempt, text: &text })
    }

    /// Flushes everything; on a terminal also lines that have waited for their ends.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let is_terminal = |errors| {
            self.outputs.is_terminal(if errors { OutputStream::Stderr } else { OutputStream::Stdout })
        };
        let waited = self.partial_lines.iter().filter(|((_, errors), held)| {
            is_terminal(*errors) && !self.line_format.json && held.since.elapsed() >= PARTIAL_LINE_TIMEOUT
        });
        for key in waited.map(|(key, _)| *key).collect::<Vec<_>>() {
            self.flush_partial_line(key, false)?;
        }
        self.outputs.flush()
    }

    /// Also prints lines without an end, and flushes everything.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        while let Some(key) = self.partial_lines.keys().next().copied() {
            self.flush_partial_line(key, true)?;
        }
        self.outputs.flush()
    }

    fn print(&mut self, number: usize, line: &Line<'_>) -> io::Result<()> {
        if self.line_format.json {
            return self.json_line(number, line);
        }
        let to = if line.stream == Stream::Stdout { OutputStream::Stdout } else { OutputStream::Stderr };
        if line.stream == Stream::Jobc {
            let text = String::from_utf8_lossy(line.text);
            return self.remark(Tone::Progress, &format!("{}: {text}", self.labels[number].task));
        }
        self.printed += 1;
        self.last_lines.insert((number, to == OutputStream::Stderr), self.printed);
        self.note_text(number, line.text);
        let goes_on = self.open_lines[to as usize] == Some((number, line.stream));
        if !goes_on && self.line_format.prefix {
            self.end_open_lines(to)?;
        }
        let head = self.prefix(number, line, to);
        let redraws = self.line_format.prefix && self.outputs.is_terminal(to);
        let colored = self.outputs.is_colored(to);
        let out = self.outputs.select(to)?;
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
                out.extend_from_slice(RESET.as_bytes());
            }
            out.push(b'\n');
        }
        self.open_lines[to as usize] = (!line.ends).then_some((number, line.stream));
        Ok(())
    }

    /// Prints a line of our own on stderr, after `jobc: `; a failure in red.
    pub(crate) fn remark(&mut self, tone: Tone, text: &str) -> io::Result<()> {
        let text = format!("jobc: {text}");
        self.own_line(if tone == Tone::Failure { RED } else { DIM }, &text)
    }

    /// Prints a line on stderr as it is.
    pub(crate) fn own_line(&mut self, color: &str, text: &str) -> io::Result<()> {
        self.end_open_lines(OutputStream::Stderr)?;
        let is_colored = self.outputs.is_colored(OutputStream::Stderr) && !color.is_empty();
        let (color, plain) = if is_colored { (color, RESET) } else { ("", "") };
        let out = self.outputs.select(OutputStream::Stderr)?;
        out.extend_from_slice(format!("{color}{text}{plain}\n").as_bytes());
        Ok(())
    }

    /// Whether lines are JSON objects.
    pub(crate) fn is_for_programs(&self) -> bool {
        self.line_format.json
    }

    /// Whether a task's last line of a stream was among the last few lines that were printed.
    pub(crate) fn was_just_shown(&self, number: usize, stream: Stream) -> bool {
        let last = self.last_lines.get(&(number, stream == Stream::Stderr));
        last.is_some_and(|last| self.printed - last < LINES_AT_HAND)
    }

    /// Keeps the beginning of a task's last line that is not blank; of a progress bar, what is drawn last.
    fn note_text(&mut self, number: usize, text: &[u8]) {
        let drawn = text.split(|&byte| byte == b'\r').rfind(|piece| !piece.trim_ascii().is_empty());
        if let Some(drawn) = drawn.filter(|_| self.outputs.is_terminal(OutputStream::Stderr)) {
            let kept = self.last_texts.entry(number).or_default();
            kept.clear();
            kept.extend_from_slice(&drawn[..drawn.len().min(MAX_LAST_TEXT_BYTES)]);
        }
    }

    /// The beginning of a task's last line, without colors.
    pub(crate) fn last_text(&self, number: usize) -> Option<String> {
        let text = String::from_utf8_lossy(self.last_texts.get(&number)?);
        Some(anstream::adapter::strip_str(text.trim()).to_string())
    }

    /// Sets lines that stay below all others on a terminal.
    pub(crate) fn set_footer(&mut self, lines: Vec<String>) -> io::Result<()> {
        self.outputs.set_footer(lines)
    }

    /// The prefix of a line: `worker-3  | `.
    fn prefix(&self, number: usize, line: &Line<'_>, to: OutputStream) -> Vec<u8> {
        let mut head = String::new();
        let name = &self.labels[number];
        let colored = self.outputs.is_colored(to);
        if self.line_format.prefix {
            let width = self.width;
            head += &match (colored, line.stream) {
                (false, _) => format!("{:width$} | ", name.text),
                (true, Stream::Stderr) => {
                    format!("{}{:width$}{RESET} {RED}|{RESET} ", name.color, name.text)
                }
                (true, _) => format!("{}{:width$} |{RESET} ", name.color, name.text),
            };
        }
        if self.line_format.timestamps {
            let (dim, plain) = if colored { (DIM, RESET) } else { ("", "") };
            head += &format!("{dim}{}{plain} ", line.time);
        }
        head.into_bytes()
    }

    /// Ends a partly printed line before a new one: on the same output, or on the same terminal.
    fn end_open_lines(&mut self, to: OutputStream) -> io::Result<()> {
        for other in [OutputStream::Stdout, OutputStream::Stderr] {
            let shared = other == to || self.outputs.is_terminal(other) && self.outputs.is_terminal(to);
            if shared && self.open_lines[other as usize].take().is_some() {
                self.outputs.select(other)?.push(b'\n');
            }
        }
        Ok(())
    }

    fn json_line(&mut self, number: usize, line: &Line<'_>) -> io::Result<()> {
        let TaskLabel { job, task, .. } = &self.labels[number];
        let Line { time, stream, ends, attempt, .. } = *line;
        let out = self.outputs.select(OutputStream::Stdout)?;
        let mut states = states(line.text).peekable();
        while let Some(state) = states.next() {
            let line = LogLine {
                time: time.into(),
                job: job.into(),
                task: task.into(),
                attempt,
                stream,
                text: String::from_utf8_lossy(state),
                ends: ends || states.peek().is_some(),
            };
            serde_json::to_writer(&mut *out, &line)?;
            out.push(b'\n');
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
