//! `jobc report` of a job on a cluster: the same page as for jobs on this host, from the data of the cluster and the
//! kept output.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use jobc_job::logs::{LineFilter, Reader};
use jobc_job::record::{Attempt, Claim, End, Record, TaskRecord, TaskState};
use jobc_job::time::Time;
use jobc_remote::Handle;
use jobc_remote::Place;
use jobc_remote::place::{Event, JobDetail, LogItem, LogRequest, TaskStatus};
use jobc_sys::id::{JobId, TaskId};

use super::handle::failure;
use crate::runtime::args::watch::ReportArgs;
use crate::runtime::commands::job_list::time;
use crate::runtime::commands::jobs::Result;
use crate::runtime::commands::report::{self, ClusterReport, ReportedEvent};
use crate::runtime::commands::target_table::TargetTable;
use crate::runtime::kept;

/// The last lines of each task.
const TAIL_LINES: u64 = 40;
/// Tasks whose output is requested from the cluster.
const MAX_TASKS: usize = 50;

/// Writes the page.
pub(super) fn run(args: &ReportArgs, handle: &Handle) -> Result<ExitCode> {
    let place = TargetTable::read(None)?.place(&handle.target)?;
    let detail = place.inspect(&handle.name).map_err(failure)?;
    let handle = Handle { name: detail.summary.name.clone(), ..handle.clone() };
    // Data without read permission is left out: an incomplete report is better than none.
    let events = place.events(&handle.name).unwrap_or_default();
    let record = record(&handle, &detail);
    let tails = tails(&*place, &handle, &record);
    let events = events.into_iter().filter_map(reported).collect();
    let name = format!("{}-{}.html", handle.target, handle.name);
    let path = args.output.clone().unwrap_or_else(|| PathBuf::from(name));
    report::write_cluster_report(&path, ClusterReport { title: handle.to_string(), record, events, tails })
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
    let job = &detail.summary;
    let moment = |text: &Option<String>| text.as_deref().and_then(time);
    let submitted = moment(&job.submitted).unwrap_or_else(Time::now);
    let end = job.state.is_final().then(|| End {
        explanation: job.end_text(),
        exit_code: job.state.exit_code(),
        task: None,
    });
    let started = moment(&job.started);
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
        started,
        ended: moment(&job.ended),
        attempt: 1,
        network: "none".to_owned(),
        claim: Claim::default(),
        notes: detail.reasons.clone(),
        sweep: None,
        combinations: indexmap::IndexMap::new(),
        metrics: vec![],
        tasks: tasks(&detail.task_list),
        end,
        is_damaged: false,
    }
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

/// The last lines of each task: kept here, or from the cluster.
fn tails(place: &dyn Place, handle: &Handle, record: &Record) -> BTreeMap<TaskId, Vec<(String, Vec<u8>)>> {
    let mut tails: BTreeMap<TaskId, Vec<(String, Vec<u8>)>> = BTreeMap::new();
    let (tasks, directories): (Vec<TaskId>, Vec<PathBuf>) = kept::logs(handle)
        .into_iter()
        .filter_map(|(task, directory)| Some((task.parse::<TaskId>().ok()?, directory)))
        .unzip();
    let mut reader = Reader::new(directories, LineFilter::default().tail(Some(TAIL_LINES)));
    let mut each = |number: usize, line: &jobc_job::logs::Line<'_>| {
        tails.entry(tasks[number].clone()).or_default().push((line.time.to_owned(), line.text.to_owned()));
        Ok(())
    };
    while reader.read(&mut each).unwrap_or(false) {}
    let missing = record.tasks.iter().map(|task| &task.task).filter(|task| !tails.contains_key(*task));
    let missing: Vec<String> = missing.take(MAX_TASKS).map(ToString::to_string).collect();
    if missing.is_empty() {
        return tails;
    }
    let request = LogRequest { tail: Some(TAIL_LINES), tasks: missing, ..LogRequest::default() };
    // A task without output, or whose pod is gone, has none.
    let _ = place.logs(&handle.name, &request, &mut |item| {
        if let LogItem::Line { task, time, text, .. } = item
            && let Ok(task) = task.parse::<TaskId>()
        {
            tails.entry(task).or_default().push((time.to_owned(), text.to_owned()));
        }
        ControlFlow::Continue(())
    });
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
