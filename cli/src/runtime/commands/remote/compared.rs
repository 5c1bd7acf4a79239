//! The jobs of a sweep on a cluster side by side: the values that the place kept with each, and the numbers in the last
//! lines of its output.
//!
//! The lines are put where the record of a job on this host would have them, so that what reads metrics there reads them
//! here. Those of a job that has ended are searched once.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use indexmap::IndexMap;
use jobc_job::directory::Directory;
use jobc_job::logs::{Line, LineFilter, Reader};
use jobc_job::record::Record;
use jobc_job::sweep::SweepCombination;
use jobc_job::time::Time;
use jobc_job::user_metrics::{LogMetrics, MetricNumber, MetricValue};
use jobc_remote::place::{JobSummary, LogItem, LogRequest};
use jobc_remote::{Handle, RemotePlace, outline};
use jobc_schema::plan::JobPlan;
use jobc_sys::id::{JobId, TaskId};
use jobc_sys::write_atomic::Durability;

use super::report::{record_of, task_of_output};
use crate::runtime::args::metric::MetricArgs;
use crate::runtime::commands::found::for_each;
use crate::runtime::commands::job_list::{state_text, time};
use crate::runtime::commands::sweep::{ComparedJob, Comparison};
use crate::runtime::kept::{self, KeptOutput};

/// Last lines of each task in which the last value of a metric is searched.
const FEW_LINES: u64 = 200;
/// The same for the values over time.
pub(super) const MANY_LINES: u64 = 5_000;
/// Tasks of each role whose output is requested: numbers of the whole job are those of the first.
const MAX_TASKS: u32 = 8;

/// A job with its last output.
pub(super) struct Member {
    pub directory: Directory,
    pub record: Record,
    plan: Option<JobPlan>,
}

/// Compares the jobs of a sweep. So many last lines are requested of each task; without a number, only what the job or
/// `args` name is searched.
pub(super) fn compare(
    place: &dyn RemotePlace,
    handle: &Handle,
    jobs: &[JobSummary],
    args: &MetricArgs,
    lines: Option<u64>,
) -> Comparison {
    let lines = lines.or_else(|| (!args.metric.is_empty()).then_some(FEW_LINES));
    let found: Mutex<Vec<(usize, ComparedJob)>> = Mutex::default();
    let numbered: Vec<(usize, &JobSummary)> = jobs.iter().enumerate().collect();
    let _ = for_each(&numbered, &|(index, job)| {
        let own = Handle { name: job.name.clone(), ..handle.clone() };
        let member = member(place, &own, job, lines);
        let number = job.job.rsplit_once('-').and_then(|(_, number)| number.parse().ok());
        let values = member.plan.map(|plan| plan.matrix).unwrap_or_default();
        let id = JobId { name: job.name.clone(), run: 1 };
        let row = ComparedJob {
            combination: SweepCombination::new(number.unwrap_or_default(), &values, id),
            name: own.to_string(),
            state: state_text(job),
            job: Some((member.directory, member.record)),
            metrics: vec![],
        };
        found.lock().unwrap_or_else(PoisonError::into_inner).push((*index, row));
        Ok(())
    });
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by_key(|(index, _)| *index);
    Comparison::of(handle.to_string(), found.into_iter().map(|(_, row)| row).collect(), args)
}

/// A job with its last output. A place without output, or that does not answer, is passed over: then the output that was kept
/// is searched.
pub(super) fn member(
    place: &dyn RemotePlace,
    handle: &Handle,
    job: &JobSummary,
    lines: Option<u64>,
) -> Member {
    let plan = outline::read(job);
    let last = kept::last(handle);
    let has_metrics =
        plan.as_ref().is_some_and(|plan| plan.roles.iter().any(|role| !role.metrics.is_empty()));
    let known = || Record::read(&last).ok().flatten().filter(|record| !record.is_damaged);
    if lines.is_none()
        && let Some(record) = known().filter(|_| job.state.is_final() || !has_metrics)
    {
        let record = Record { metrics: record.metrics, tasks: record.tasks, ..record_of(handle, job) };
        return Member { directory: last, record, plan };
    }
    let lines = lines.or(has_metrics.then_some(FEW_LINES));
    let is_there = lines.is_some_and(|lines| fetch(place, (handle, job), plan.as_ref(), lines, &last.record));
    let directory = if is_there { last.clone() } else { kept::whole(handle) };
    let mut record = record_of(handle, job);
    record.tasks = tasks(&directory).into_iter().map(task_of_output).collect();
    if let Some(plan) = &plan {
        search(&directory, plan, &mut record);
        let text = serde_json::to_vec(plan).unwrap_or_default();
        let _ = std::fs::write(directory.plan_file(), text);
    }
    if is_there && job.state.is_final() {
        let _ = record.write(&last, Durability::Rename);
    }
    Member { directory, record, plan }
}

/// Puts the last lines of tasks into a directory; returns whether there are any.
fn fetch(
    place: &dyn RemotePlace,
    (handle, job): (&Handle, &JobSummary),
    plan: Option<&JobPlan>,
    lines: u64,
    last: &Path,
) -> bool {
    let Some(mut kept) = KeptOutput::begin(last) else { return false };
    let of_role = |role: &jobc_schema::plan::RolePlan| {
        let name = role.name.clone();
        (0..role.instances.min(MAX_TASKS)).map(move |index| format!("{name}-{index}"))
    };
    let roles = plan.map(|plan| &plan.roles[..]).unwrap_or_default();
    let is_large = roles.iter().any(|role| role.instances > MAX_TASKS);
    let tasks = if is_large { roles.iter().flat_map(of_role).collect() } else { vec![] };
    let request = LogRequest { tail: Some(lines), tasks, is_search: true, ..LogRequest::default() };
    let begun =
        job.started.as_ref().or(job.submitted.as_ref()).map_or("1970-01-01T00:00:00Z", String::as_str);
    let mut has_lines = false;
    let _ = place.logs(&handle.name, &request, &mut |item| {
        if let LogItem::Line { task, attempt, time, text } = item {
            // Slurm does not know when a line was written.
            let time = if time.is_empty() { begun } else { time };
            kept.add(task, attempt, time, text);
            has_lines = true;
        }
        ControlFlow::Continue(())
    });
    kept.flush();
    has_lines
}

/// The tasks with output in a directory.
fn tasks(directory: &Directory) -> Vec<TaskId> {
    let entries = std::fs::read_dir(directory.record.join("logs")).into_iter().flatten().flatten();
    let mut tasks: Vec<TaskId> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    tasks.sort();
    tasks
}

/// Finds the last value of each metric that the job declares.
fn search(directory: &Directory, plan: &JobPlan, record: &mut Record) {
    let Ok(metrics) = LogMetrics::of(plan) else { return };
    let tasks: Vec<TaskId> = record.tasks.iter().map(|task| task.task.clone()).collect();
    let role = |task: &TaskId| plan.roles.iter().position(|role| role.name == task.role);
    let roles: Vec<Option<usize>> = tasks.iter().map(role).collect();
    let mut found: IndexMap<(usize, String), MetricValue> = IndexMap::new();
    let mut reader = Reader::new(tasks.iter().map(|task| directory.logs(task)), LineFilter::default());
    let mut each = |number: usize, line: &Line<'_>| {
        let Some(role) = roles[number] else { return Ok(()) };
        for (name, value) in metrics.find(role, line.text) {
            let better = plan.roles[role].metrics.get(name).and_then(|metric| metric.better);
            let value = MetricValue {
                name: name.to_owned(),
                value: MetricNumber(value),
                better,
                task: tasks[number].clone(),
                attempt: line.attempt,
                time: time(line.time).unwrap_or_else(Time::now),
            };
            found.insert((role, name.to_owned()), value);
        }
        Ok(())
    };
    while reader.read(&mut each).unwrap_or(false) {}
    found.into_values().for_each(|value| record.set_metric(value));
}
