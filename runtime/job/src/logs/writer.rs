//! Writing one task's log.

use std::collections::VecDeque;
use std::io::{self, BufRead as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::last_state::states;
use super::limits::Limits;
use super::line::LinePrefix;
use super::part::{self, Part};
use super::redact::{MIN_SECRET_BYTES, REPLACEMENT, Redactor};
use jobc_place::logs::Stream;
use jobc_sys::error::{describe, errno_of};

/// How long to wait after a failed write before the next is tried.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Buffered lines are written at this size, or at the end of a [`Writer::write`].
const FLUSH_BYTES: usize = 64 << 10;

/// The memory for lines on their way that a writer keeps between two writes, in bytes.
const MAX_IDLE_BUFFER_BYTES: usize = 8 << 10;

/// Writes one task's log.
///
/// It holds the incomplete line of each stream, up to [`Limits::line_bytes`] and the longest secret, and nothing else
/// of the output. A failing write never stops anything: lines are lost and counted, the next try is a second later, and
/// a line of the stream `jobc` then has their number.
#[derive(Debug)]
pub struct Writer {
    directory: PathBuf,
    limits: Limits,
    redactor: Arc<Redactor>,
    /// Of standard output and standard error.
    partial_lines: [PartialLine; 2],
    /// Buffered lines for the part.
    out: Vec<u8>,
    part: Option<Part>,
    /// The numbers of the existing parts.
    parts: Option<VecDeque<u64>>,
    failure: Option<WriteFailure>,
}

/// A line whose end has not been read yet.
#[derive(Debug, Default)]
struct PartialLine {
    attempt: u32,
    raw: Vec<u8>,
    /// How much of it is in the log as a piece.
    written: usize,
    /// How much of it was seen: the states of a progress bar that others have followed.
    seen: usize,
    /// Where the last redacted value ends that is in the log.
    covered: usize,
    /// A piece of it is in the log, and the end is not.
    begun: bool,
}

/// Writes fail.
#[derive(Debug)]
struct WriteFailure {
    why: Errno,
    lines: u64,
    retry: Instant,
}

impl Writer {
    /// A writer of the log in a directory. Files are created with the first line.
    pub fn open(directory: &Path, limits: Limits, masks: Arc<Redactor>) -> Self {
        Self {
            directory: directory.to_owned(),
            limits,
            redactor: masks,
            partial_lines: <[PartialLine; 2]>::default(),
            out: Vec::new(),
            part: None,
            parts: None,
            failure: None,
        }
    }

    /// Takes what was read from a task's standard output or error.
    ///
    /// `seen` is called with each complete line, without its end and not redacted; with each state of a progress bar,
    /// which a carriage return ends; with each piece of a line longer than [`Limits::line_bytes`].
    ///
    /// # Errors
    ///
    /// Why lines are lost, for the first failure in a row. The next call continues normally.
    pub fn write(
        &mut self,
        attempt: u32,
        stream: Stream,
        bytes: &[u8],
        seen: &mut dyn FnMut(&[u8]),
    ) -> io::Result<()> {
        let head = LinePrefix::now(stream, attempt);
        // Taken out of `self` meanwhile, so that both can be written to.
        let mut line = self.take_partial_line(stream);
        line.attempt = attempt;
        let mut result = Ok(());
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = match self.limits.line_bytes.saturating_sub(line.raw.len()) {
                // Only the beginning of a secret, which is bounded.
                0 => self.limits.line_bytes,
                room => room,
            };
            let mut ahead = &rest[..rest.len().min(room + 1)];
            let length = ahead.skip_until(b'\n').unwrap_or(0);
            let (piece, ends) = match rest[..length].split_last() {
                Some((b'\n', piece)) => (piece, true),
                _ => (&rest[..length.min(room)], false),
            };
            rest = &rest[piece.len() + usize::from(ends)..];
            let kept = if ends && line.raw.is_empty() {
                states(piece).for_each(&mut *seen);
                line.begun = false;
                self.push(&head, true, |masks, out| masks.redact_range(piece, 0..piece.len(), &mut 0, out))
            } else {
                line.raw.extend_from_slice(piece);
                self.continue_line(&mut line, &head, ends, seen)
            };
            result = result.and(kept);
        }
        *self.partial_line(stream) = line;
        result.and(self.finish())
    }

    /// Writes a line that continues: all of it at its end, or its fixed part when it has become too long.
    fn continue_line(
        &mut self,
        line: &mut PartialLine,
        head: &LinePrefix,
        ends: bool,
        seen: &mut dyn FnMut(&[u8]),
    ) -> io::Result<()> {
        let open = &line.raw[line.seen..];
        if ends {
            states(open).filter(|state| line.seen == 0 || !state.is_empty()).for_each(seen);
            let result = self.push_piece(line, head, line.raw.len(), true);
            line.raw.clear();
            (line.written, line.covered, line.seen) = (0, 0, 0);
            return result;
        }
        if let Some(at) = open.iter().rposition(|&byte| byte == b'\r') {
            states(&open[..=at]).for_each(&mut *seen);
            line.seen += at + 1;
        }
        if line.raw.len() < self.limits.line_bytes {
            return Ok(());
        }
        let decided = self.redactor.decided_length(&line.raw);
        // The state of a progress bar that is being drawn is kept whole.
        let cut = if (1..=decided).contains(&line.seen) { line.seen } else { decided };
        let result = if cut > line.written { self.push_piece(line, head, cut, false) } else { Ok(()) };
        if cut > line.seen {
            seen(&line.raw[line.seen..cut]);
        }
        line.raw.drain(..cut);
        line.seen = line.seen.saturating_sub(cut);
        line.written = line.written.saturating_sub(cut);
        line.covered = line.covered.saturating_sub(cut);
        result
    }

    /// Writes the beginnings of lines whose ends have not come, such as a prompt or a progress bar; to be called once
    /// in a while.
    ///
    /// # Errors
    ///
    /// As [`Self::write`].
    pub fn flush_partial_lines(&mut self) -> io::Result<()> {
        let mut result = Ok(());
        for stream in [Stream::Stdout, Stream::Stderr] {
            let mut line = self.take_partial_line(stream);
            let cut = self.redactor.decided_length(&line.raw);
            if cut > line.written {
                let head = LinePrefix::now(stream, line.attempt);
                result = result.and(self.push_piece(&mut line, &head, cut, false));
            }
            *self.partial_line(stream) = line;
        }
        result.and(self.finish())
    }

    /// A stream of an attempt has ended: what has no end of line gets one.
    ///
    /// # Errors
    ///
    /// As [`Self::write`].
    pub fn end(&mut self, attempt: u32, stream: Stream) -> io::Result<()> {
        let mut line = self.take_partial_line(stream);
        if line.raw.is_empty() && !line.begun {
            return Ok(());
        }
        // A task that is killed half-way through a secret has shown most of it.
        let text = &line.raw;
        let cut = Some(self.redactor.decided_length(text)).filter(|cut| text.len() - cut >= MIN_SECRET_BYTES);
        let (shown, covered) = (line.written..cut.unwrap_or(text.len()), &mut line.covered);
        let result = self.push(&LinePrefix::now(stream, attempt), true, |masks, out| {
            masks.redact_range(text, shown.clone(), covered, out);
            if cut.is_some() && *covered <= shown.end {
                out.extend_from_slice(REPLACEMENT);
            }
        });
        result.and(self.finish())
    }

    /// How many lines are lost since writes began to fail; 0 if they do not fail.
    pub fn lost(&self) -> u64 {
        self.failure.as_ref().map_or(0, |trouble| trouble.lines)
    }

    fn partial_line(&mut self, stream: Stream) -> &mut PartialLine {
        &mut self.partial_lines[usize::from(stream == Stream::Stderr)]
    }

    fn take_partial_line(&mut self, stream: Stream) -> PartialLine {
        std::mem::take(self.partial_line(stream))
    }

    /// Queues an incomplete line, from where it is written to so far.
    fn push_piece(
        &mut self,
        line: &mut PartialLine,
        head: &LinePrefix,
        to: usize,
        ends: bool,
    ) -> io::Result<()> {
        let (text, shown, covered) = (&line.raw, line.written..to, &mut line.covered);
        let result = self.push(head, ends, |masks, out| masks.redact_range(text, shown, covered, out));
        (line.written, line.begun) = (to, !ends);
        result
    }

    /// Queues a line, or a piece of one, for the part that has room for it.
    fn push(
        &mut self,
        head: &LinePrefix,
        ends: bool,
        text: impl FnOnce(&Redactor, &mut Vec<u8>),
    ) -> io::Result<()> {
        let before = self.out.len();
        head.write_to(ends, &mut self.out);
        text(&self.redactor, &mut self.out);
        self.out.push(b'\n');
        let size = self.part.as_ref().map_or(0, |part| part.size);
        let mut result = Ok(());
        if size + self.out.len() as u64 > self.limits.part_bytes && size + before as u64 > 0 {
            let line = self.out.split_off(before);
            result = self.flush();
            self.part = None;
            self.out.extend_from_slice(&line);
        }
        if self.out.len() >= FLUSH_BYTES { result.and(self.flush()) } else { result }
    }

    /// Hands over what is on its way, and gives back the memory for it: most tasks are quiet most of the time.
    fn finish(&mut self) -> io::Result<()> {
        let result = self.flush();
        if self.out.capacity() > MAX_IDLE_BUFFER_BYTES {
            self.out = Vec::new();
        }
        result
    }

    /// Writes the buffered lines, or drops them.
    fn flush(&mut self) -> io::Result<()> {
        if self.out.is_empty() {
            return Ok(());
        }
        let result = match &self.failure {
            Some(trouble) if Instant::now() < trouble.retry => Err((trouble.why, 0)),
            _ => self.append(),
        };
        let Err((why, written)) = result else {
            self.out.clear();
            return Ok(());
        };
        let lines = self.out[written..].iter().filter(|&&byte| byte == b'\n').count() as u64;
        self.out.clear();
        let Some(trouble) = &mut self.failure else {
            self.failure = Some(WriteFailure { why, lines, retry: Instant::now() + RETRY_INTERVAL });
            return Err(why.into());
        };
        trouble.lines += lines;
        let now = Instant::now();
        if now >= trouble.retry {
            (trouble.why, trouble.retry) = (why, now + RETRY_INTERVAL);
        }
        Ok(())
    }

    /// Appends the buffered lines; on failure, returns how many of their bytes stay.
    fn append(&mut self) -> Result<(), (Errno, usize)> {
        let number = |error: io::Error| errno_of(&error);
        let mut part = match self.part.take() {
            Some(part) => part,
            None => self.next_part().map_err(|error| (number(error), 0))?,
        };
        let mut written = 0;
        let mut result = Ok(());
        if let Some(trouble) = &self.failure {
            result = part.append(&trouble.remark(), &mut written);
            written = 0;
        }
        if result.is_ok() {
            self.failure = None;
            result = part.append(&self.out, &mut written);
        }
        self.part = Some(part);
        result.map_err(|error| (number(error), written))
    }

    /// Starts a part, and removes the oldest if there are too many.
    fn next_part(&mut self) -> io::Result<Part> {
        let parts = self.parts.get_or_insert_with(|| part::list(&self.directory).into());
        let number = parts.back().map_or(1, |last| last + 1);
        let part = Part::create(&self.directory, number)?;
        parts.push_back(number);
        while parts.len() > self.limits.parts.max(1) {
            if let Some(oldest) = parts.pop_front() {
                let _ = std::fs::remove_file(part::path(&self.directory, oldest));
            }
        }
        Ok(part)
    }
}

impl WriteFailure {
    /// The log's remark when it works again.
    fn remark(&self) -> Vec<u8> {
        let count = if self.lines == 1 {
            "1 line".to_owned()
        } else {
            format!("{} lines", format_grouped(self.lines))
        };
        let mut line = Vec::new();
        LinePrefix::now(Stream::Jobc, 0).write_to(true, &mut line);
        line.extend_from_slice(format!("{count} lost: {}\n", describe(self.why)).as_bytes());
        line
    }
}

/// A number with separators: `1,234`.
pub(super) fn format_grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests;
