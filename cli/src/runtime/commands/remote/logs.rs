//! `jobc logs` of a job on a cluster.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use jobc_job::logs::{Line, LineFilter, Reader, Stream};
use jobc_remote::Handle;
use jobc_remote::place::{LogItem, LogRequest};
use jobc_sys::error::Kind;

use super::handle::{failure, handle};
use super::jobs::one;
use crate::args::FormatArg;
use crate::runtime::args::watch::LogsArgs;
use crate::runtime::commands::follow::output::{OutputStreams, or_exit};
use crate::runtime::commands::follow::printer::{LineFormat, Printer};
use crate::runtime::commands::jobs::Result;
use crate::runtime::commands::target_table::TargetTable;
use crate::runtime::kept::{self, KeptOutput};
use crate::runtime::message::container_warning;
use crate::terminal;

pub(super) fn run(args: &LogsArgs) -> Result<ExitCode> {
    let handle = handle(&args.words[0])?;
    let place = TargetTable::read(None)?.place(&handle.target)?;
    let request = LogRequest {
        follow: args.follow,
        tail: args.tail,
        since: args.since.map(|time| time.to_string()),
        attempt: args.attempt,
        tasks: args.words[1..].to_vec(),
        is_search: false,
    };
    let format =
        LineFormat { prefix: true, timestamps: args.timestamps, json: args.lines.format == FormatArg::Json };
    let mut lines = TaskLines::new(&handle.to_string(), format);
    let found = one(&*place, &handle);
    let run = found
        .as_ref()
        .map_or_else(|_| handle.clone(), |job| Handle { name: job.name.clone(), ..handle.clone() });
    // Only output from the beginning can be kept without gaps.
    if found.is_ok() && request.tail.is_none() && request.since.is_none() {
        lines.keep(KeptOutput::open(&run));
    }
    // Slurm's files can be read while Slurm itself does not answer.
    let missing = found.err().filter(|error| matches!(error.kind, Kind::NotFound | Kind::Config));
    let read = missing.map_or_else(
        || {
            place.logs(&handle.name, &request, &mut |item| {
                lines.show(&item);
                ControlFlow::Continue(())
            })
        },
        Err,
    );
    let is_gone = read.as_ref().map_or_else(|error| error.kind == Kind::NotFound, |()| !lines.has_shown());
    if !(is_gone && show_kept(&run, args, &mut lines)) {
        read.map_err(failure)?;
    }
    lines.finish();
    Ok(ExitCode::SUCCESS)
}

/// Shows the output that was kept on this host of a job that the place has no output of. Returns whether there is some.
fn show_kept(run: &Handle, args: &LogsArgs, lines: &mut TaskLines) -> bool {
    let words = &args.words[1..];
    let is_chosen = |task: &str| {
        let role = task.rsplit_once('-').map_or(task, |(role, _)| role);
        words.is_empty() || words.iter().any(|word| word == task || word == role)
    };
    let (tasks, directories): (Vec<String>, Vec<PathBuf>) =
        kept::logs(run).into_iter().filter(|(task, _)| is_chosen(task)).unzip();
    if tasks.is_empty() {
        return false;
    }
    lines.keep(None);
    let text = format!("`{}` has no output of `{run}` any more; this was kept on this host", run.target);
    terminal::eprint(&container_warning(&text));
    let choice = LineFilter::default().tail(args.tail).since(args.since).attempt(args.attempt);
    let mut reader = Reader::new(directories, choice);
    let mut each = |number: usize, line: &Line<'_>| {
        let (task, attempt, time, text) = (&tasks[number], line.attempt, line.time, line.text);
        lines.show(&LogItem::Line { task, attempt, time, text });
        Ok(())
    };
    while reader.read(&mut each).unwrap_or(false) {}
    true
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
