//! The content of a report.

use std::collections::BTreeMap;

use jobc_job::directory::Directory;
use jobc_job::event::{self, Event, Kind};
use jobc_job::logs::{LineFilter, Reader};
use jobc_job::metric_choice::{JobMetrics, MetricChoice};
use jobc_job::metric_history::MetricHistory;
use jobc_job::metrics::{self, Sample};
use jobc_job::origin::Origin;
use jobc_job::record::Record;
use jobc_place::job::JobDetail;
use jobc_place::logs::{Line, Stream};
use jobc_place::output::history::JobUsage;
use jobc_place::task::{Attempt, TaskStatus};
use jobc_place::time::Time;
use jobc_schema::plan::JobPlan;
use jobc_sys::id::TaskId;

use super::selection;
use crate::runtime::args::metric::MetricArgs;
use crate::runtime::commands::searched::Searched;
use crate::runtime::commands::sweep::choices;
use crate::runtime::local_time::Zone;

/// Number of last lines that are shown of each task.
pub(super) const TAIL_LINES: u64 = 40;

/// Maximum number of tasks whose last lines are shown.
pub(super) const MAX_LOGS: usize = 200;

/// Maximum bytes of logs that are searched for values of metrics.
pub(super) const MAX_HISTORY_BYTES: u64 = 1 << 30;

/// All data about a job.
#[derive(Debug)]
pub(super) struct ReportData {
    /// The job's id, or its handle.
    pub title: String,
    pub job: JobDetail,
    /// Events as their place shows them, of a job that does not run on this host.
    pub reported: Option<Vec<jobc_place::event::Event>>,
    pub events: Vec<Event>,
    pub origin: Option<Origin>,
    pub plan: Option<JobPlan>,
    /// The text of the job file.
    pub job_file: Option<String>,
    /// When attempts were created, and ready.
    attempt_events: BTreeMap<(TaskId, u32), AttemptEvents>,
    /// By task, in the order of sampling.
    pub samples: BTreeMap<TaskId, Vec<Sample>>,
    /// What it used on this host.
    pub usage: JobUsage,
    pub tails: BTreeMap<TaskId, Vec<LogLine>>,
    /// The names of its metrics.
    pub metrics: Vec<String>,
    /// Their values over time.
    pub histories: Vec<MetricHistory>,
    /// When the content was collected.
    pub now: Time,
    /// The zone in which times are shown.
    pub zone: Zone,
}

/// What the events report of an attempt.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AttemptEvents {
    pub created: Option<Time>,
    pub ready: Option<Time>,
}

/// A line that a task printed.
#[derive(Clone, Debug)]
pub(super) struct LogLine {
    pub time: String,
    pub stream: Stream,
    pub text: Vec<u8>,
    /// Whether it continues in the next line of the log.
    pub continues: bool,
}

/// The names of the metrics of a job, and their values over time.
fn histories(directory: &Directory, job: &JobDetail) -> (Vec<String>, Vec<MetricHistory>) {
    let choices = choices(&MetricArgs::default(), std::iter::once(job));
    let (of_job, mut bytes_left) = (JobMetrics::new(directory, job), MAX_HISTORY_BYTES);
    if choices.is_empty() {
        return of_job.detected(&mut bytes_left);
    }
    let titles = choices.iter().map(MetricChoice::title).collect();
    (titles, of_job.histories(&choices, &mut bytes_left))
}

impl LogLine {
    pub(super) fn of(line: &Line<'_>) -> Self {
        let (time, stream, text) = (line.time.to_owned(), line.stream, line.text.to_owned());
        Self { time, stream, text, continues: !line.ends }
    }
}

impl ReportData {
    /// Reads the files of a job. Unreadable files are left out, since an incomplete report is better than none.
    pub(super) fn gather(title: String, searched: &Searched) -> Self {
        let (directory, job) = (&searched.directory, searched.detail.clone());
        let events = event::Reader::new(directory).read().unwrap_or_default();
        let mut seen: BTreeMap<(TaskId, u32), AttemptEvents> = BTreeMap::new();
        for event in &events {
            let Some(key) = event.task.clone().zip(event.attempt) else { continue };
            match event.event {
                Kind::Created => seen.entry(key).or_default().created = Some(event.time),
                Kind::Ready => seen.entry(key).or_default().ready = Some(event.time),
                _ => {}
            }
        }
        let mut samples: BTreeMap<TaskId, Vec<Sample>> = BTreeMap::new();
        for sample in metrics::read(directory) {
            samples.entry(sample.task.clone()).or_default().push(sample);
        }
        let now = Time::now();
        let shown = selection::select(&job, MAX_LOGS, now);
        let tasks: Vec<TaskId> = shown.tasks.iter().map(|task| task.task.clone()).collect();
        let logs = tasks.iter().map(|task| directory.logs(task));
        let mut reader = Reader::new(logs, LineFilter::default().tail(Some(TAIL_LINES)));
        let mut tails: BTreeMap<TaskId, Vec<LogLine>> = BTreeMap::new();
        let mut each = |number: usize, line: &Line<'_>| {
            tails.entry(tasks[number].clone()).or_default().push(LogLine::of(line));
            Ok(())
        };
        while reader.read(&mut each).unwrap_or(false) {}
        let plan = std::fs::read(directory.plan_file()).ok();
        let record = Record::read(directory).ok().flatten();
        let usage = record.map(|record| jobc_job::history::usage(directory, &record, now));
        let (metrics, histories) = histories(directory, &job);
        Self {
            title,
            reported: None,
            events,
            origin: Origin::read(directory),
            plan: plan.and_then(|text| serde_json::from_slice(&text).ok()),
            job_file: std::fs::read_to_string(directory.job_file()).ok(),
            attempt_events: seen,
            samples,
            usage: usage.unwrap_or_default(),
            tails,
            metrics,
            histories,
            now,
            zone: Zone::local(),
            job,
        }
    }

    /// When the timeline begins.
    pub(super) fn begin(&self) -> Time {
        self.job.summary.submitted.unwrap_or(self.now)
    }

    /// When it ends.
    pub(super) fn end(&self) -> Time {
        let last = self.events.iter().map(|event| event.time).max();
        match self.job.summary.ended {
            Some(ended) => ended.max(last.unwrap_or(ended)),
            None => self.now,
        }
    }

    /// The attempts of a task, in order, each with what the events report of it.
    pub(super) fn attempts(&self, task: &TaskStatus) -> impl Iterator<Item = (Attempt, AttemptEvents)> {
        task.attempts().map(|attempt| {
            let key = (task.task.clone(), attempt.attempt);
            let mut seen = self.attempt_events.get(&key).copied().unwrap_or_default();
            if attempt.attempt == task.attempt {
                seen.ready = task.ready;
            }
            (attempt, seen)
        })
    }
}
