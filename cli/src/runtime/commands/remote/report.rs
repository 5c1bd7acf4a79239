//! `jobc report` of a job on a cluster: the same page as for jobs on this host, from the data of the cluster and the
//! kept output.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use jobc_job::directory::Directory;
use jobc_job::logs::{Line, LineFilter, Reader};
use jobc_job::record::{Attempt, Claim, End, Record, TaskRecord, TaskState};
use jobc_job::time::Time;
use jobc_remote::place::{Event, JobDetail, JobSummary, Members, TaskStatus};
use jobc_remote::{Handle, RemotePlace};
use jobc_sys::error::{Error, Kind};
use jobc_sys::id::{JobId, TaskId};

use super::compared;
use super::handle::failure;
use crate::runtime::args::watch::ReportArgs;
use crate::runtime::commands::job_list::time;
use crate::runtime::commands::jobs::{Failure, Result};
use crate::runtime::commands::report::{self, ClusterReport, ReportedEvent};
use crate::runtime::commands::target_table::TargetTable;
use crate::runtime::kept;

/// The last lines of each task.
const TAIL_LINES: u64 = 40;

/// Writes the page.
pub(super) fn run(args: &ReportArgs, handle: &Handle) -> Result<ExitCode> {
    let place = TargetTable::read(None)?.place(&handle.target)?;
    let path = |name: &str| {
        args.output.clone().unwrap_or_else(|| PathBuf::from(format!("{}-{name}.html", handle.target)))
    };
    match place.members(&handle.name).map_err(failure)? {
        Members::Job(job) if !args.jobs && args.metrics.metric.is_empty() => {
            let handle = Handle { name: job.name.clone(), ..handle.clone() };
            one(&*place, &handle, &path(&handle.name))
        }
        Members::Job(_) => {
            let option = if args.jobs { "--jobs" } else { "--metric" };
            let error = format!("`{option}` is for the jobs of a sweep, and `{handle}` is one job");
            Err(Failure::usage_error(Error::new(Kind::Config, error).help(format!("leave `{option}` out"))))
        }
        Members::Sweep { jobs, .. } => sweep(args, &*place, handle, &jobs, &path(&handle.name)),
    }
}

/// Writes the page of a job.
fn one(place: &dyn RemotePlace, handle: &Handle, path: &Path) -> Result<ExitCode> {
    let detail = place.inspect(&handle.name).map_err(failure)?;
    // Data without read permission is left out: an incomplete report is better than none.
    let events = place.events(&handle.name).unwrap_or_default();
    let member = compared::member(place, handle, &detail.summary, Some(compared::MANY_LINES));
    let record = Record { metrics: member.record.metrics, ..record(handle, &detail) };
    let tails = tails(handle, &member.directory, &record);
    let events = events.into_iter().filter_map(reported).collect();
    let (title, directory) = (handle.to_string(), member.directory);
    report::write_cluster_report(path, ClusterReport { title, record, directory, events, tails })
}

/// Writes the page of a sweep, with `--jobs` after those of its jobs.
fn sweep(
    args: &ReportArgs,
    place: &dyn RemotePlace,
    handle: &Handle,
    jobs: &[JobSummary],
    path: &Path,
) -> Result<ExitCode> {
    let is_stdout = path == Path::new("-");
    if args.jobs && is_stdout {
        let error = Error::new(Kind::Config, "`--jobs` writes files, and `-o -` writes to stdout");
        return Err(Failure::usage_error(error.help("name a file with `-o`")));
    }
    // `lab/grid-0-x` is in `lab-grid-0-x.html`.
    let file = |job: &str| format!("{}.html", job.replacen('/', "-", 1));
    for job in jobs.iter().filter(|_| args.jobs) {
        let own = Handle { name: job.name.clone(), ..handle.clone() };
        one(place, &own, &path.with_file_name(file(&own.to_string())))?;
    }
    let comparison = compared::compare(place, handle, jobs, &args.metrics, Some(compared::MANY_LINES));
    let there = |job: &str| Some(file(job)).filter(|name| !is_stdout && path.with_file_name(name).exists());
    report::write_cluster_sweep(path, &comparison, &handle.target, &there)
}

fn reported(event: Event) -> Option<ReportedEvent> {
    Some(ReportedEvent {
        time: time(&event.time)?,
        object: event.object,
        reason: event.reason,
        message: event.message,
    })
}

/// The record of a job, as one on this host would have it.
fn record(handle: &Handle, detail: &JobDetail) -> Record {
    Record {
        notes: detail.reasons.clone(),
        tasks: tasks(&detail.task_list),
        ..record_of(handle, &detail.summary)
    }
}

/// The record of a job whose tasks are not known.
pub(super) fn record_of(handle: &Handle, job: &JobSummary) -> Record {
    let moment = |text: &Option<String>| text.as_deref().and_then(time);
    let submitted = moment(&job.submitted).unwrap_or_else(Time::now);
    let end = job.state.is_final().then(|| End {
        explanation: job.end_text(),
        exit_code: job.state.exit_code(),
        task: None,
    });
    Record {
        version: 1,
        id: JobId { name: job.name.clone(), run: 1 },
        description: None,
        source: PathBuf::new(),
        directory: PathBuf::new(),
        target: handle.target.clone(),
        owner: 0,
        state: job.state,
        supervisor: None,
        scope: None,
        submitted,
        started: moment(&job.started),
        ended: moment(&job.ended),
        attempt: 1,
        network: "none".to_owned(),
        claim: Claim::default(),
        notes: vec![],
        sweep: None,
        combinations: indexmap::IndexMap::new(),
        metrics: vec![],
        tasks: vec![],
        end,
        is_damaged: false,
    }
}

/// A task of which only the output is known.
pub(super) fn task_of_output(task: TaskId) -> TaskRecord {
    let status = TaskStatus {
        task: task.to_string(),
        attempt: 1,
        state: "pending",
        pod: None,
        node: None,
        exit_code: None,
        started: None,
        ended: None,
        reason: None,
    };
    record_of_attempt(task, &status)
}

/// One record for each task: the last attempt, with the earlier ones.
fn tasks(statuses: &[TaskStatus]) -> Vec<TaskRecord> {
    let mut found: Vec<TaskRecord> = Vec::new();
    for status in statuses {
        let Ok(task) = status.task.parse::<TaskId>() else { continue };
        let attempt = record_of_attempt(task, status);
        match found.last_mut().filter(|last| last.task == attempt.task) {
            Some(last) => {
                let before = std::mem::replace(last, attempt);
                last.earlier = before.earlier;
                last.earlier.push(Attempt {
                    attempt: before.attempt,
                    started: before.started,
                    ended: before.ended,
                    exit_code: before.exit_code,
                    signal: None,
                    reason: before.reason,
                });
            }
            None => found.push(attempt),
        }
    }
    found
}

fn record_of_attempt(task: TaskId, status: &TaskStatus) -> TaskRecord {
    let state = match status.state {
        "succeeded" => TaskState::Succeeded,
        "failed" => TaskState::Failed,
        "running" => TaskState::Running,
        "stopping" => TaskState::Stopping,
        "starting" => TaskState::Creating,
        _ => TaskState::Waiting,
    };
    let moment = |text: &Option<String>| text.as_deref().and_then(time);
    TaskRecord {
        task,
        state,
        attempt: status.attempt,
        container: None,
        process: None,
        address: status.node.clone(),
        ports: indexmap::IndexMap::new(),
        gpus: vec![],
        limits: BTreeMap::new(),
        unenforced: vec![],
        started: moment(&status.started),
        ready: None,
        ended: moment(&status.ended),
        exit_code: status.exit_code.and_then(|code| u8::try_from(code).ok()),
        signal: None,
        reason: status.reason.clone(),
        oom_kills: 0,
        earlier: vec![],
    }
}

/// The last lines of each task: those that the cluster had now, otherwise those that were kept here.
fn tails(handle: &Handle, last: &Directory, record: &Record) -> BTreeMap<TaskId, Vec<(String, Vec<u8>)>> {
    let mut tails: BTreeMap<TaskId, Vec<(String, Vec<u8>)>> = BTreeMap::new();
    for directory in [last, &kept::whole(handle)] {
        let tasks = record.tasks.iter().map(|task| task.task.clone());
        let tasks: Vec<TaskId> = tasks.filter(|task| !tails.contains_key(task)).collect();
        let logs = tasks.iter().map(|task| directory.logs(task));
        let mut reader = Reader::new(logs, LineFilter::default().tail(Some(TAIL_LINES)));
        let mut each = |number: usize, line: &Line<'_>| {
            let tail = tails.entry(tasks[number].clone()).or_default();
            tail.push((line.time.to_owned(), line.text.to_owned()));
            Ok(())
        };
        while reader.read(&mut each).unwrap_or(false) {}
    }
    tails
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_of_a_task_share_one_record() {
        let status = |task: &str, attempt, state, code| TaskStatus {
            task: task.to_owned(),
            attempt,
            state,
            pod: None,
            node: None,
            exit_code: code,
            reason: None,
            started: Some("2026-01-01T00:00:00Z".to_owned()),
            ended: None,
        };
        let list = [
            status("train-0", 1, "failed", Some(1)),
            status("train-0", 2, "failed", Some(137)),
            status("train-0", 3, "running", None),
            status("train-1", 1, "pending", None),
        ];
        let found = tasks(&list);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].attempt, found[0].state), (3, TaskState::Running));
        let earlier: Vec<_> = found[0].earlier.iter().map(|one| (one.attempt, one.exit_code)).collect();
        assert_eq!(earlier, [(1, Some(1)), (2, Some(137))]);
        assert!(found[0].started.is_some());
    }
}
