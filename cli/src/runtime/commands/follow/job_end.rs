//! How a job ended, for a user who waited for it: the reason, the last lines of the task that decided it, and the command
//! that shows the rest.

use jobc_job::directory::Directory;
use jobc_job::logs::{LineFilter, Reader};
use jobc_job::record::Record;
use jobc_place::job::{End, JobSummary};
use jobc_place::logs::Stream;
use jobc_place::state::JobState;
use jobc_place::task::TaskStatus;
use jobc_sys::id::TaskId;

use super::cause;
use super::event_text::Tone;
use crate::table::{escape_control, truncate};
use crate::terminal;

/// Maximum number of lines of output that are repeated.
const MAX_LINES: u64 = 10;

/// Maximum width of such a line, in columns.
const MAX_COLUMNS: usize = 400;

/// The end of a job.
pub(crate) struct JobEnd<'a> {
    directory: &'a Directory,
    state: JobState,
    tasks: &'a [TaskStatus],
    end: &'a End,
}

/// The last output of the task that decided the end of a job.
pub(crate) struct LastOutput {
    job: String,
    task: TaskId,
    stream: Stream,
    lines: Vec<String>,
    /// Whether its log has the whole output; the oldest parts of a long one are removed.
    is_whole: bool,
    /// What they say about the cause, or the verdict.
    cause: Option<String>,
}

impl<'a> JobEnd<'a> {
    /// The end that a record has.
    pub(crate) fn of_record(directory: &'a Directory, record: &'a Record) -> Option<Self> {
        let end = record.end.as_ref()?;
        Some(Self { directory, state: record.state, tasks: &record.tasks, end })
    }

    /// The end of a job with these tasks.
    pub(crate) fn new(
        directory: &'a Directory,
        job: &'a JobSummary,
        tasks: &'a [TaskStatus],
    ) -> Option<Self> {
        job.end.as_ref().map(|end| Self { directory, state: job.state, tasks, end })
    }

    /// The job's ID.
    pub(crate) fn job(&self) -> String {
        self.directory.id.to_string()
    }

    /// A job that was stopped on request has not failed.
    pub(crate) fn tone(&self) -> Tone {
        match self.state {
            JobState::Succeeded | JobState::Stopped => Tone::Progress,
            _ => Tone::Failure,
        }
    }

    /// `train.3: failed: worker-1: exit 3`.
    ///
    /// A program that could not be executed wrote nothing: what is known about the cause is added here.
    pub(crate) fn headline(&self) -> String {
        let explanation = &self.end.explanation;
        let cause = cause::of(std::iter::once(explanation.as_str()));
        let cause = cause.map(|cause| format!("; {cause}")).unwrap_or_default();
        let killed = self.tasks.iter().filter(|task| task.has_unseen_oom_kills());
        let killed: Vec<String> = killed.map(|task| task.task.to_string()).collect();
        let killed = match &killed[..] {
            [] => String::new(),
            [first] => format!("; out of memory: the kernel killed processes of {first}"),
            [first, others @ ..] => {
                format!("; out of memory: the kernel killed processes of {first} and {} others", others.len())
            }
        };
        format!("{}: {explanation}{cause}{killed}", self.directory.id)
    }

    /// The last lines on stderr of the task that decided that the job failed; on stdout if it wrote nothing to stderr.
    /// Nothing without such a task, or if it wrote nothing at all.
    pub(crate) fn last_output(&self) -> Option<LastOutput> {
        if self.tone() != Tone::Failure {
            return None;
        }
        let decided = self.end.task.as_ref()?;
        let task = self.tasks.iter().find(|task| task.task == *decided)?;
        let verdict = task.verdict.as_ref().and_then(|verdict| {
            verdict.next.as_ref().map(|next| escape_control(&format!("{}; {next}", verdict.kind)))
        });
        [Stream::Stderr, Stream::Stdout].into_iter().find_map(|stream| {
            let filter = LineFilter::default();
            let filter = filter.tail(Some(MAX_LINES)).attempt(Some(task.attempt)).stream(Some(stream));
            let lines = read_lines(Reader::new([self.directory.logs(&task.task)], filter));
            let task = task.task.clone();
            let is_whole = jobc_job::logs::is_whole(&self.directory.logs(&task));
            let cause = cause::of(lines.iter().map(String::as_str)).or_else(|| verdict.clone());
            (!lines.is_empty()).then(|| LastOutput { job: self.job(), task, stream, lines, is_whole, cause })
        })
    }

    /// The end on our stderr, with the last output of the task that decided it.
    pub(crate) fn print(&self, headline: bool) {
        let style = terminal::style();
        let (red, plain) =
            if style.color && self.tone() == Tone::Failure { ("\x1b[31m", "\x1b[0m") } else { ("", "") };
        let mut text = String::new();
        if headline {
            text += &format!("{red}jobc: {}{plain}\n", escape_control(&self.headline()));
        }
        for line in self.last_output().iter().flat_map(|output| output.lines(true)) {
            text += &format!("{line}\n");
        }
        terminal::eprint(&text);
    }
}

impl LastOutput {
    pub(crate) fn task(&self) -> &TaskId {
        &self.task
    }

    pub(crate) fn stream(&self) -> Stream {
        self.stream
    }

    /// What is printed: the lines, unless they were just shown, and the command that shows all of them.
    pub(crate) fn lines(&self, repeat: bool) -> Vec<String> {
        let Self { job, task, stream, lines, is_whole, cause } = self;
        let mut out = Vec::new();
        if repeat {
            out.push(format!("jobc: the last lines of {task} on {}:", stream.as_str()));
            out.extend(lines.iter().map(|line| format!("  {line}")));
        }
        out.extend(cause.as_ref().map(|cause| format!("jobc: {task}: {cause}")));
        let kept = if *is_whole { "all" } else { "the end" };
        out.push(format!("jobc: {kept} of its output: `jobc logs {job} {task}`"));
        out
    }
}

/// The lines of a log, put together from their pieces. Unreadable files are left out: the end is reported anyway.
fn read_lines(mut reader: Reader) -> Vec<String> {
    let (mut lines, mut open) = (Vec::new(), Vec::new());
    let mut each = |_: usize, line: &jobc_place::logs::Line<'_>| {
        if line.stream != Stream::Jobc {
            open.extend_from_slice(line.text);
            if line.ends {
                lines.push(std::mem::take(&mut open));
            }
        }
        Ok(())
    };
    while reader.read(&mut each).unwrap_or(false) {}
    lines.extend(Some(open).filter(|open| !open.is_empty()));
    let shown = |line: &Vec<u8>| {
        let text = String::from_utf8_lossy(line).replace('\t', "    ");
        // Of a progress bar, the last state.
        let text = text.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default();
        truncate(&escape_control(&without_colors(text)), MAX_COLUMNS)
    };
    lines.iter().map(shown).collect()
}

/// A text without the escape sequences of colors (ECMA-48, SGR).
fn without_colors(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        out += before;
        let end = after.find(|c: char| !matches!(c, '0'..='9' | ';' | ':'));
        match end.map(|end| after.split_at(end)) {
            Some((_, after)) if after.starts_with('m') => rest = &after[1..],
            _ => {
                out += "\u{1b}[";
                rest = after;
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_color_escapes_are_removed() {
        assert_eq!(
            without_colors("\u{1b}[1;31mError\u{1b}[0m: \u{1b}[2Jx\u{1b}["),
            "Error: \u{1b}[2Jx\u{1b}["
        );
    }
}
