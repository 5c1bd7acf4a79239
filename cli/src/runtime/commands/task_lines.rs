//! The output of tasks of any place, as lines under the names of their tasks.

use std::collections::BTreeMap;
use std::sync::Mutex;

use jobc_place::logs::{Line, LogItem, Stream};
use jobc_sys::parallel::lock;

use super::follow::output::{OutputStreams, or_exit};
use super::follow::printer::{LineFormat, Printer};
use crate::runtime::kept::KeptOutput;

/// The output of several jobs.
pub(crate) struct JobLines {
    printer: Mutex<Printer>,
    /// Whether lines name their job too.
    several: bool,
    /// Whether the beginning of an attempt is a line; for programs each line has its attempt.
    shows_attempts: bool,
}

/// The output of a job among others.
pub(crate) struct TaskLines<'a> {
    lines: &'a JobLines,
    job: String,
    /// The printer's number of each task, and the attempt of its last line, to show where the next attempt begins.
    tasks: BTreeMap<String, (usize, Option<u32>)>,
    /// Where a copy is kept.
    kept: Option<KeptOutput>,
    has_shown: bool,
}

impl JobLines {
    pub(crate) fn new(format: LineFormat, several: bool) -> Self {
        let printer = Mutex::new(Printer::new(format, OutputStreams::new(false)));
        Self { printer, several, shows_attempts: !format.json }
    }

    /// The lines of a job. Those of known tasks are aligned, and their places in the job select their colors.
    pub(crate) fn of_job(&self, job: &str, tasks: impl Iterator<Item = (usize, String)>) -> TaskLines<'_> {
        let mut lines = TaskLines {
            lines: self,
            job: job.to_owned(),
            tasks: BTreeMap::new(),
            kept: None,
            has_shown: false,
        };
        for (place, task) in tasks {
            lines.add(&task, place);
        }
        lines
    }

    /// Also shows lines without an end.
    pub(crate) fn finish(&self) {
        or_exit(lock(&self.printer).finish());
    }
}

impl TaskLines<'_> {
    /// Keeps a copy of each line.
    pub(crate) fn keep(&mut self, kept: Option<KeptOutput>) {
        self.kept = kept;
    }

    /// Whether a line was shown.
    pub(crate) fn has_shown(&self) -> bool {
        self.has_shown
    }

    pub(crate) fn show(&mut self, item: &LogItem<'_>) {
        match item {
            LogItem::Line { task, line } => {
                self.has_shown = true;
                let (number, last) = self.task(task);
                let number = *number;
                let before = last.replace(line.attempt);
                let is_next = before.is_some_and(|before| before != line.attempt);
                if (is_next || before.is_none() && line.attempt > 1)
                    && self.lines.shows_attempts
                    && line.stream != Stream::Jobc
                {
                    self.remark(number, &format!("attempt {}", line.attempt), line.time);
                }
                if let Some(kept) = &mut self.kept {
                    kept.add(task, line.attempt, line.time, line.text);
                }
                or_exit(lock(&self.lines.printer).line(number, line));
            }
            LogItem::Remark { task, text } => {
                self.has_shown = true;
                let number = self.task(task).0;
                self.remark(number, text, "");
            }
            LogItem::Idle => {
                if let Some(kept) = &mut self.kept {
                    kept.flush();
                }
                or_exit(lock(&self.lines.printer).flush());
            }
        }
    }

    fn remark(&self, number: usize, text: &str, time: &str) {
        let line = Line { time, stream: Stream::Jobc, ends: true, attempt: 1, text: text.as_bytes() };
        or_exit(lock(&self.lines.printer).line(number, &line));
    }

    fn task(&mut self, task: &str) -> &mut (usize, Option<u32>) {
        if !self.tasks.contains_key(task) {
            self.add(task, self.tasks.len());
        }
        self.tasks.get_mut(task).expect("it was just inserted")
    }

    fn add(&mut self, task: &str, place: usize) {
        let number = lock(&self.lines.printer).add_task(&self.job, task, self.lines.several, place);
        self.tasks.insert(task.to_owned(), (number, None));
    }

    pub(crate) fn finish(&mut self) {
        if let Some(kept) = &mut self.kept {
            kept.flush();
        }
        or_exit(lock(&self.lines.printer).flush());
    }
}
