//! Lines of tasks, as people and programs read them.

use std::borrow::Cow;
use std::io;

use jobc_runtime::logs::{Line, Stream};
use serde::Serialize;

use super::output::{Outputs, To};

/// How lines look.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Look {
    /// Each line says whose it is.
    pub prefix: bool,
    /// Each line says when it was printed.
    pub timestamps: bool,
    /// Each line is a JSON object.
    pub json: bool,
}

/// Prints lines of tasks: what tasks print to standard output on ours, the rest on standard error.
///
/// Without prefixes a task's bytes come out as they are. With them a line that is shown before its end is continued
/// where it stands, unless another task's came in between.
pub(crate) struct Printer {
    names: Vec<Name>,
    width: usize,
    look: Look,
    outputs: Outputs,
    /// Whose line stands half printed on standard output and standard error.
    half: [Option<(usize, Stream)>; 2],
}

/// What a task's lines begin with.
#[derive(Debug)]
struct Name {
    job: String,
    task: String,
    shown: String,
    colour: &'static str,
}

/// Told apart on dark and on light; red is for errors.
const COLOURS: [&str; 10] = [
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
    /// Whether the line ends here; otherwise more of it follows.
    ends: bool,
}

impl Printer {
    pub(crate) fn new(look: Look, outputs: Outputs) -> Self {
        Self { names: vec![], width: 0, look, outputs, half: [None; 2] }
    }

    /// Makes a task known, by its place in its job, which decides its colour; returns the number for its lines.
    pub(crate) fn add(&mut self, job: &str, task: &str, several_jobs: bool, place: usize) -> usize {
        let shown = if several_jobs { format!("{job} {task}") } else { task.to_owned() };
        self.width = self.width.max(shown.len());
        let colour = COLOURS[place % COLOURS.len()];
        self.names.push(Name { job: job.to_owned(), task: task.to_owned(), shown, colour });
        self.names.len() - 1
    }

    /// Prints a line of a task.
    pub(crate) fn line(&mut self, number: usize, line: &Line<'_>) -> io::Result<()> {
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
        let coloured = self.outputs.is_coloured(to);
        let out = self.outputs.to(to)?;
        if !goes_on {
            out.extend_from_slice(&head);
        }
        let text = if redraws { line.text.strip_suffix(b"\r").unwrap_or(line.text) } else { line.text };
        if redraws && text.contains(&b'\r') {
            // A progress bar goes back to the beginning of the line, which is behind the name.
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
            if coloured && text.contains(&b'\x1b') {
                out.extend_from_slice(PLAIN.as_bytes());
            }
            out.push(b'\n');
        }
        self.half[to as usize] = (!line.ends).then_some((number, line.stream));
        Ok(())
    }

    /// Prints a line of our own on standard error, behind `jobc: `.
    pub(crate) fn remark(&mut self, text: &str) -> io::Result<()> {
        self.end_half_lines(To::Errors)?;
        let (dim, plain) = if self.outputs.is_coloured(To::Errors) { (DIM, PLAIN) } else { ("", "") };
        let out = self.outputs.to(To::Errors)?;
        out.extend_from_slice(format!("{dim}jobc: {text}{plain}\n").as_bytes());
        Ok(())
    }

    /// Hands everything on to whoever reads it.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.outputs.flush()
    }

    /// What stands before a line: `worker-3  | `.
    fn head(&self, number: usize, line: &Line<'_>, to: To) -> Vec<u8> {
        let mut head = String::new();
        let name = &self.names[number];
        let coloured = self.outputs.is_coloured(to);
        if self.look.prefix {
            let width = self.width;
            head += &match (coloured, line.stream) {
                (false, _) => format!("{:width$} | ", name.shown),
                (true, Stream::Stderr) => {
                    format!("{}{:width$}{PLAIN} {RED}|{PLAIN} ", name.colour, name.shown)
                }
                (true, _) => format!("{}{:width$} |{PLAIN} ", name.colour, name.shown),
            };
        }
        if self.look.timestamps {
            let (dim, plain) = if coloured { (DIM, PLAIN) } else { ("", "") };
            head += &format!("{dim}{}{plain} ", line.time);
        }
        head.into_bytes()
    }

    /// Ends what stands half printed where a new line begins: on the same output, and on the same terminal.
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
