//! The output of tasks: from their pipes into their logs.

use std::time::{Duration, Instant};

use super::Supervisor;
use super::attempt::ReadState;
use crate::lifecycle::TaskNumber;
use jobc_place::logs::Stream;

/// How long the beginning of a line waits for its end before it is shown: a prompt, a progress bar.
const PARTIAL_LINE_TIMEOUT: Duration = Duration::from_millis(300);

const STREAMS: [Stream; 2] = [Stream::Stdout, Stream::Stderr];

impl Supervisor {
    /// A task wrote something, or closed its output.
    pub(super) fn read_output(&mut self, task: TaskNumber, stream: usize) -> ReadState {
        let Some(attempt) = self.attempts.get_mut(&task) else { return ReadState::Drained };
        let (number, log) = (attempt.number, &mut self.logs[task]);
        let mut failed = None;
        let looked_at = self.prober.wants_lines(task);
        let role = self.lifecycle.tasks()[task].role;
        let metrics = self.log_metrics.has(role).then(|| std::sync::Arc::clone(&self.log_metrics));
        let mut numbers: Vec<(String, f64)> = Vec::new();
        let mut seen = |line: &[u8]| {
            if looked_at {
                self.prober.line(task, number, line);
            }
            for (name, found) in metrics.iter().flat_map(|metrics| metrics.find(role, line)) {
                match numbers.iter_mut().find(|(known, _)| known == name) {
                    Some((_, last)) => *last = found,
                    None => numbers.push((name.to_owned(), found)),
                }
            }
        };
        let mut wrote = false;
        let left = attempt.read(stream, &self.poll, &mut self.buffer, &mut |bytes| {
            wrote |= !bytes.is_empty();
            failed = log.write(number, STREAMS[stream], bytes, &mut seen).err().or(failed.take());
        });
        if wrote {
            self.note_output(task);
        }
        let Some(attempt) = self.attempts.get_mut(&task) else { return left };
        let reports = attempt.process.take_reports();
        for (name, found) in numbers {
            self.note_number(task, number, &name, found);
        }
        for report in &reports {
            self.handle_report(task, report);
        }
        if let Some(error) = failed {
            let task = &self.lifecycle.tasks()[task].id;
            self.journal.note(format!("lines of {task} are lost: {error}"));
        }
        self.partial_lines.entry(task).or_insert_with(|| Instant::now() + PARTIAL_LINE_TIMEOUT);
        left
    }

    /// Reads what an attempt has written before its end: no writer is left, so the content of the pipes is all.
    pub(super) fn drain_output(&mut self, task: TaskNumber) {
        for (stream, name) in STREAMS.into_iter().enumerate() {
            while self.read_output(task, stream) == ReadState::MayHaveMore {}
            if let Some(attempt) = self.attempts.get(&task) {
                // Said before, when lines began to be lost.
                let _ = self.logs[task].end(attempt.number, name);
            }
        }
        self.partial_lines.remove(&task);
    }

    /// When the beginning of a line is to be shown, if one is.
    pub(super) fn partial_line_deadline(&self) -> Option<Instant> {
        self.partial_lines.values().min().copied()
    }

    /// Shows the beginnings of lines that have waited.
    pub(super) fn flush_partial_lines(&mut self) {
        let now = Instant::now();
        let due: Vec<TaskNumber> =
            self.partial_lines.iter().filter(|(_, due)| **due <= now).map(|(&task, _)| task).collect();
        for task in due {
            self.partial_lines.remove(&task);
            let _ = self.logs[task].flush_partial_lines();
        }
    }
}
