//! `jobc logs` of a job on a cluster.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::process::ExitCode;

use jobc_job::logs::{Line, Stream};
use jobc_remote::Handle;
use jobc_remote::place::{LogItem, LogRequest};

use super::handle::{failure, handle};
use super::target::TargetTable;
use crate::args::FormatArg;
use crate::runtime::args::watch::LogsArgs;
use crate::runtime::commands::follow::output::{OutputStreams, or_exit};
use crate::runtime::commands::follow::printer::{LineFormat, Printer};
use crate::runtime::commands::jobs::Result;
use crate::runtime::kept::KeptOutput;

pub(super) fn run(args: &LogsArgs) -> Result<ExitCode> {
    let handle = handle(&args.words[0])?;
    let place = TargetTable::read(None)?.place(&handle.target)?;
    let request = LogRequest {
        follow: args.follow,
        tail: args.tail,
        since: args.since.map(|time| time.to_string()),
        attempt: args.attempt,
        tasks: args.words[1..].to_vec(),
    };
    let format =
        LineFormat { prefix: true, timestamps: args.timestamps, json: args.lines.format == FormatArg::Json };
    let mut lines = TaskLines::new(&handle.to_string(), format);
    // Only output from the beginning can be kept without gaps.
    if request.tail.is_none() && request.since.is_none() {
        let run = place.find(&handle.name).map(|job| Handle { name: job.name, ..handle.clone() });
        lines.keep(run.ok().as_ref().and_then(KeptOutput::open));
    }
    place
        .logs(&handle.name, &request, &mut |item| {
            lines.show(&item);
            ControlFlow::Continue(())
        })
        .map_err(failure)?;
    lines.finish();
    Ok(ExitCode::SUCCESS)
}

/// Prints lines under the names of their tasks.
pub(super) struct TaskLines {
    printer: Printer,
    job: String,
    numbers: BTreeMap<String, usize>,
    /// The task and attempt of the last line, to show where the next attempt begins.
    attempts: BTreeMap<String, u32>,
    /// Where a copy is kept.
    kept: Option<KeptOutput>,
}

impl TaskLines {
    pub(super) fn new(job: &str, format: LineFormat) -> Self {
        let printer = Printer::new(format, OutputStreams::new(false));
        Self { printer, job: job.to_owned(), numbers: BTreeMap::new(), attempts: BTreeMap::new(), kept: None }
    }

    /// Keeps a copy of each line.
    pub(super) fn keep(&mut self, kept: Option<KeptOutput>) {
        self.kept = kept;
    }

    /// Whether a line was shown.
    pub(super) fn has_shown(&self) -> bool {
        !self.numbers.is_empty()
    }

    pub(super) fn show(&mut self, item: &LogItem<'_>) {
        match item {
            LogItem::Line { task, attempt, time, text } => {
                let number = self.number(task);
                let before = self.attempts.insert((*task).to_owned(), *attempt);
                if before.is_some_and(|before| before != *attempt) || before.is_none() && *attempt > 1 {
                    self.remark(number, &format!("attempt {attempt}"), time);
                }
                let line = Line { time, stream: Stream::Stdout, ends: true, attempt: *attempt, text };
                if let Some(kept) = &mut self.kept {
                    kept.add(task, *attempt, time, text);
                }
                or_exit(self.printer.line(number, &line));
            }
            LogItem::Remark { task, text } => {
                let number = self.number(task);
                self.remark(number, text, "");
            }
            LogItem::Idle => {
                if let Some(kept) = &mut self.kept {
                    kept.flush();
                }
                or_exit(self.printer.flush());
            }
        }
    }

    fn remark(&mut self, number: usize, text: &str, time: &str) {
        let line = Line { time, stream: Stream::Jobc, ends: true, attempt: 1, text: text.as_bytes() };
        or_exit(self.printer.line(number, &line));
    }

    fn number(&mut self, task: &str) -> usize {
        if let Some(number) = self.numbers.get(task) {
            return *number;
        }
        let number = self.printer.add_task(&self.job, task, false, self.numbers.len());
        self.numbers.insert(task.to_owned(), number);
        number
    }

    pub(super) fn finish(&mut self) {
        if let Some(kept) = &mut self.kept {
            kept.flush();
        }
        or_exit(self.printer.finish());
    }
}
