//! Shows the output and events of running jobs as they are written. Everything is read from the jobs' files, so a slow
//! reader blocks no job.

mod cause;
pub(crate) mod event_text;
pub(crate) mod job_end;
pub(crate) mod output;
pub(crate) mod printer;

use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use crate::table::escape_control;
use jobc_job::directory::Directory;
use jobc_job::event::{self, Event};
use jobc_job::logs::{LineFilter, Reader, Watch};
use jobc_job::record::Record;
use jobc_sys::id::TaskId;
use jobc_sys::readable;

use event_text::Tone;
use job_end::JobEnd;
use output::OutputStreams;
use printer::{LineFormat, Printer};

/// Maximum time to sleep: inotify reports changes of files, but not on every file system.
const MAX_SLEEP: Duration = Duration::from_secs(1);

/// Lines that are written within this time are shown together.
const BATCH_INTERVAL: Duration = Duration::from_millis(15);

/// How often events are delayed for output that is still being read.
const MAX_DELAYS: u32 = 4;

/// The parts of a job to show.
#[derive(Clone, Debug, Default)]
pub(crate) struct FollowOptions {
    /// The tasks whose lines are shown; all if absent.
    pub tasks: Option<Vec<TaskId>>,
    /// Which lines are shown.
    pub filter: LineFilter,
    /// Whether to show events of the job on stderr.
    pub show_events: bool,
    /// Whether to continue when stdout cannot be written any more.
    pub ignore_stdout_errors: bool,
}

/// Shows jobs while they run.
pub(crate) struct Follower {
    jobs: Vec<FollowedJob>,
    watch: Watch,
    printer: Printer,
    several: bool,
    /// When something of the jobs was last shown.
    last_shown: Instant,
}

struct FollowedJob {
    name: String,
    reader: Reader,
    /// The reader's tasks, and the printer's numbers of them.
    tasks: Vec<TaskId>,
    numbers: Vec<usize>,
    events: Option<event::Reader>,
    /// Events that were read and not printed: an end comes after the output before it.
    pending: Vec<Event>,
    /// How often they were left for later.
    delayed: u32,
}

impl Follower {
    /// Shows these jobs, whose records exist. Lines have prefixes if there are several tasks, or if `look` requires
    /// them.
    pub(crate) fn new(jobs: &[(Directory, Record)], shown: &FollowOptions, look: LineFormat) -> Self {
        let several = jobs.len() > 1;
        let is_shown = |task: &TaskId| shown.tasks.as_ref().is_none_or(|tasks| tasks.contains(task));
        let tasks = |record: &Record| -> Vec<(usize, TaskId)> {
            let tasks = record.tasks.iter().map(|task| task.task.clone()).enumerate();
            tasks.filter(|(_, task)| is_shown(task)).collect()
        };
        let count: usize = jobs.iter().map(|(_, record)| tasks(record).len()).sum();
        let mut printer = Printer::new(
            LineFormat { prefix: look.prefix || count > 1, ..look },
            OutputStreams::new(shown.ignore_stdout_errors),
        );
        let mut watched = vec![];
        let followed = jobs.iter().map(|(directory, record)| {
            let tasks = tasks(record);
            let name = directory.id.to_string();
            let logs: Vec<_> = tasks.iter().map(|(_, task)| directory.logs(task)).collect();
            watched.extend([directory.record.clone(), directory.record.join("logs")]);
            watched.extend(logs.iter().cloned());
            let numbers = tasks
                .iter()
                .map(|(place, task)| printer.add_task(&name, &task.to_string(), several, *place))
                .collect();
            let events = shown.show_events.then(|| event::Reader::new(directory));
            let tasks = tasks.into_iter().map(|(_, task)| task).collect();
            FollowedJob {
                name,
                reader: Reader::new(logs, shown.filter.clone()),
                tasks,
                numbers,
                events,
                pending: vec![],
                delayed: 0,
            }
        });
        let jobs = followed.collect();
        Self { jobs, watch: Watch::new(watched), printer, several, last_shown: Instant::now() }
    }

    /// Shows what is available; returns whether there may be more.
    ///
    /// # Errors
    ///
    /// Errors of the files and of stdout; `BrokenPipe` if the reader of stdout has closed it. No errors of stdout with
    /// `goes_on`.
    pub(crate) fn show(&mut self) -> io::Result<bool> {
        let mut more = false;
        for job in &mut self.jobs {
            let events = job.events.as_mut().map(event::Reader::read).transpose().map_err(read_error)?;
            job.pending.extend(events.unwrap_or_default());
            let has_events = !job.pending.is_empty();
            let name = if self.several { format!("{} ", job.name) } else { String::new() };
            let before = job.pending.iter().position(ends_output).unwrap_or(job.pending.len());
            print_events(&mut self.printer, &name, job.pending.drain(..before))?;
            let (printer, numbers) = (&mut self.printer, &job.numbers);
            let (mut written, mut lines) = (Ok(()), 0_usize);
            let read = job.reader.read(&mut |number, line| {
                lines += 1;
                written = printer.line(numbers[number], line);
                written.as_ref().map_or_else(|_| Err(io::ErrorKind::WriteZero.into()), |()| Ok(()))
            });
            written?;
            let has_more = read.map_err(read_error)?;
            if lines > 0 || has_events {
                self.last_shown = Instant::now();
            }
            more |= has_more;
            // Other tasks may write endlessly.
            job.delayed = if has_more { job.delayed + 1 } else { MAX_DELAYS };
            if job.delayed >= MAX_DELAYS {
                print_events(&mut self.printer, &name, job.pending.drain(..))?;
                job.delayed = 0;
            }
        }
        self.printer.flush()?;
        Ok(more)
    }

    /// How long nothing of the jobs was shown.
    pub(crate) fn idle_time(&self) -> Duration {
        self.last_shown.elapsed()
    }

    /// Shows what is available and what comes, until one of these file descriptors is readable or the time is over.
    /// Returns which are readable.
    ///
    /// # Errors
    ///
    /// As [`Self::show`].
    pub(crate) fn wait(&mut self, others: &[BorrowedFd<'_>], longest: Duration) -> io::Result<Vec<bool>> {
        let until = std::time::Instant::now().checked_add(longest);
        loop {
            let more = self.show()?;
            let left =
                until.map_or(MAX_SLEEP, |until| until.saturating_duration_since(std::time::Instant::now()));
            let sleep = if more { Duration::ZERO } else { left.min(MAX_SLEEP) };
            let mut ready = self.watch.wait(others, sleep)?;
            if !more && !left.is_zero() && !ready.contains(&true) {
                // So that lines are shown together.
                ready = readable::wait(others, Some(BATCH_INTERVAL))?;
            }
            if ready.contains(&true) || left.is_zero() {
                return Ok(ready);
            }
        }
    }

    /// Shows the remaining output.
    ///
    /// # Errors
    ///
    /// As [`Self::show`].
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        while self.show()? {}
        self.printer.finish()
    }

    /// Prints the end of a job on stderr. If a task decided that it failed, its last lines follow, unless they were just
    /// shown.
    pub(crate) fn end(&mut self, directory: &Directory, record: &Record) {
        let Some(end) = JobEnd::of_record(directory, record) else { return };
        self.print_remark(end.tone(), &end.headline());
        let Some(output) = end.last_output() else { return };
        let job = self.jobs.iter().find(|job| job.name == end.job());
        let number = job.and_then(|job| {
            let place = job.tasks.iter().position(|task| task == output.task())?;
            job.numbers.get(place).copied()
        });
        let is_at_hand = number.is_some_and(|number| self.printer.was_just_shown(number, output.stream()));
        if !self.printer.is_for_programs() {
            for line in output.lines(!is_at_hand) {
                // An error of stderr cannot be reported.
                let _ = self.printer.own_line("", &line);
            }
        }
        let _ = self.printer.flush();
    }

    /// Prints a note about a job on stderr.
    pub(crate) fn note(&mut self, directory: &Directory, text: &str) {
        let name = if self.several { format!("{} ", directory.id) } else { String::new() };
        self.print_remark(Tone::Progress, &format!("{name}note: {text}"));
    }

    /// Sets lines that stay below all others on a terminal. An error of the terminal is reported with the next lines of
    /// tasks.
    pub(crate) fn set_footer(&mut self, lines: Vec<String>) {
        let _ = self.printer.set_footer(lines);
    }

    /// The last line that a task has written, as far as it was shown.
    pub(crate) fn last_line(&self, job: &str, task: &TaskId) -> Option<String> {
        let job = self.jobs.iter().find(|known| known.name == job)?;
        let place = job.tasks.iter().position(|known| known == task)?;
        self.printer.last_text(*job.numbers.get(place)?)
    }

    fn print_remark(&mut self, tone: Tone, text: &str) {
        // An error of stderr cannot be reported.
        let _ = self.printer.remark(tone, &escape_control(text)).and_then(|()| self.printer.flush());
    }
}

/// Whether the output that tasks have written comes before this event.
fn ends_output(event: &Event) -> bool {
    matches!(event.event, event::Kind::Ended | event::Kind::Stopping)
}

fn print_events(printer: &mut Printer, name: &str, events: impl Iterator<Item = Event>) -> io::Result<()> {
    for (tone, line) in event_text::lines(&events.collect::<Vec<_>>()) {
        printer.remark(tone, &format!("{name}{line}"))?;
    }
    Ok(())
}

/// An error of a job's files, as text.
#[allow(clippy::needless_pass_by_value)] // as `map_err` gives it
pub(super) fn read_error(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot read the job's files: {error}"))
}
