//! Jobs with the files that their numbers are searched in.
//!
//! Of a job of this host these are its own. The last lines of one of a cluster are put where a record of this host would
//! have them, so that what reads metrics there reads them here. Those of a job that has ended are searched once.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use indexmap::IndexMap;
use jobc_job::directory::{Directory, JobDirectories};
use jobc_job::logs::{LineFilter, Reader};
use jobc_job::sweep::SweepCombination;
use jobc_job::user_metrics::LogMetrics;
use jobc_place::job::{JobDetail, JobSummary};
use jobc_place::job_ref::Handle;
use jobc_place::logs::{Line, LogItem, LogRequest};
use jobc_place::metric::{MetricNumber, MetricValue};
use jobc_place::task::{TaskState, TaskStatus};
use jobc_place::time::Time;
use jobc_place::{Place, outline};
use jobc_schema::plan::JobPlan;
use jobc_sys::id::{JobId, TaskId};
use jobc_sys::parallel::lock;
use serde::{Deserialize, Serialize};

use super::found::{NamedJobs, for_each};
use super::job_list::state_text;
use super::jobs::Result;
use super::sweep::{ComparedJob, Comparison, local};
use crate::runtime::args::metric::MetricArgs;
use crate::runtime::kept::{self, KeptOutput};

/// Last lines of each task in which the last value of a metric is searched.
const FEW_LINES: u64 = 200;
/// The same for the values over time.
pub(super) const MANY_LINES: u64 = 5_000;
/// Tasks of each role whose output is requested: numbers of the whole job are those of the first.
const MAX_TASKS: u32 = 8;

/// A job with its files.
pub(crate) struct Searched {
    pub directory: Directory,
    pub detail: JobDetail,
    pub plan: Option<JobPlan>,
}

/// What was found in the last lines of a job that has ended.
#[derive(Default, Serialize, Deserialize)]
struct FoundNumbers {
    tasks: Vec<TaskId>,
    metrics: Vec<MetricValue>,
}

impl Searched {
    /// A job with what is there already.
    pub(crate) fn of_detail(found: &NamedJobs, detail: JobDetail) -> Self {
        let directory = match found.handle_of(&detail.summary) {
            Some(handle) => kept::whole(&handle),
            None => own(&detail.summary),
        };
        Self { directory, detail, plan: None }
    }
}

/// The files of a job of this host.
fn own(job: &JobSummary) -> Directory {
    let found = JobDirectories::standard().and_then(|directories| directories.find(&job.name));
    found.unwrap_or_else(|_| Directory {
        id: JobId { name: job.name.clone(), run: 1 },
        state: PathBuf::new(),
        record: PathBuf::from("/dev/null"),
    })
}

/// A job with the numbers in its last output. So many last lines are requested of each task; without a number, only what
/// the job declares is searched.
pub(crate) fn with_numbers(found: &NamedJobs, detail: JobDetail, lines: Option<u64>) -> Searched {
    match found.handle_of(&detail.summary) {
        Some(handle) => {
            let Searched { directory, detail: last, plan } =
                member(&*found.place, &handle, &detail.summary, lines.or(Some(FEW_LINES)));
            Searched { directory, detail: JobDetail { metrics: last.metrics, ..detail }, plan }
        }
        None => Searched::of_detail(found, detail),
    }
}

/// The jobs of a sweep side by side.
pub(crate) fn compare(found: &NamedJobs, args: &MetricArgs, lines: Option<u64>) -> Result<Comparison> {
    if let Some(comparison) = local(found, args)? {
        return Ok(comparison);
    }
    let lines = lines.or_else(|| (!args.metric.is_empty()).then_some(FEW_LINES));
    let rows: Mutex<Vec<(usize, ComparedJob)>> = Mutex::default();
    let numbered: Vec<(usize, &JobSummary)> = found.members.jobs().iter().enumerate().collect();
    let _ = for_each(&numbered, &|(index, job)| {
        let Some(handle) = found.handle_of(job) else { return Ok(()) };
        let member = member(&*found.place, &handle, job, lines);
        let number = job.job.rsplit_once('-').and_then(|(_, number)| number.parse().ok());
        let values = member.plan.map(|plan| plan.matrix).unwrap_or_default();
        let id = JobId { name: job.name.clone(), run: 1 };
        let row = ComparedJob {
            combination: SweepCombination::new(number.unwrap_or_default(), &values, id),
            name: handle.to_string(),
            state: state_text(job),
            job: Some((member.directory, member.detail)),
            metrics: vec![],
        };
        lock(&rows).push((*index, row));
        Ok(())
    });
    let mut rows = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    rows.sort_by_key(|(index, _)| *index);
    Ok(Comparison::of(found.id(), rows.into_iter().map(|(_, row)| row).collect(), args))
}

/// A job with its last output. A place without output, or that does not answer, is passed over: then the output that was kept
/// is searched.
fn member(place: &dyn Place, handle: &Handle, job: &JobSummary, lines: Option<u64>) -> Searched {
    let plan = outline::read(job);
    let last = kept::last(handle);
    let has_metrics =
        plan.as_ref().is_some_and(|plan| plan.roles.iter().any(|role| !role.metrics.is_empty()));
    let described = |tasks: &[TaskId], metrics| {
        let tasks = tasks.iter().map(|task| TaskStatus::new(task.clone(), TaskState::Pending, 1)).collect();
        JobDetail { metrics, ..JobDetail::new(job.clone(), tasks) }
    };
    if lines.is_none()
        && let Some(numbers) = known(&last).filter(|_| job.state.is_final() || !has_metrics)
    {
        return Searched { directory: last, detail: described(&numbers.tasks, numbers.metrics), plan };
    }
    let lines = lines.or(has_metrics.then_some(FEW_LINES));
    let is_there = lines.is_some_and(|lines| fetch(place, (handle, job), plan.as_ref(), lines, &last.record));
    let directory = if is_there { last.clone() } else { kept::whole(handle) };
    let tasks = tasks(&directory);
    let mut metrics = vec![];
    if let Some(plan) = &plan {
        metrics = search(&directory, plan, &tasks);
        let text = serde_json::to_vec(plan).unwrap_or_default();
        let _ = std::fs::write(directory.plan_file(), text);
    }
    let detail = described(&tasks, metrics.clone());
    if is_there && job.state.is_final() {
        let text = serde_json::to_vec(&FoundNumbers { tasks, metrics }).unwrap_or_default();
        let _ = std::fs::write(numbers_file(&last), text);
    }
    Searched { directory, detail, plan }
}

/// The file with what was found, beside the lines.
fn numbers_file(last: &Directory) -> PathBuf {
    last.record.join("numbers.json")
}

fn known(last: &Directory) -> Option<FoundNumbers> {
    serde_json::from_slice(&std::fs::read(numbers_file(last)).ok()?).ok()
}

/// Puts the last lines of tasks into a directory; returns whether there are any.
fn fetch(
    place: &dyn Place,
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
    let begun = job.started.or(job.submitted).unwrap_or_default().to_string();
    let mut has_lines = false;
    let _ = place.logs(&handle.name, &request, &mut |item| {
        if let LogItem::Line { task, line } = item {
            // Slurm does not know when a line was written.
            let time = if line.time.is_empty() { &begun } else { line.time };
            kept.add(task, line.attempt, time, line.text);
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
fn search(directory: &Directory, plan: &JobPlan, tasks: &[TaskId]) -> Vec<MetricValue> {
    let Ok(metrics) = LogMetrics::of(plan) else { return vec![] };
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
                time: Time::parse(line.time).unwrap_or_else(Time::now),
                first: None,
            };
            found.insert((role, name.to_owned()), value);
        }
        Ok(())
    };
    while reader.read(&mut each).unwrap_or(false) {}
    found.into_values().collect()
}

/// The last lines of each task: those that the place had last, otherwise those that were kept.
pub(super) fn last_lines<T>(
    found: &NamedJobs,
    searched: &Searched,
    count: u64,
    of_line: fn(&Line<'_>) -> T,
) -> BTreeMap<TaskId, Vec<T>> {
    let mut lines: BTreeMap<TaskId, Vec<T>> = BTreeMap::new();
    let whole = found.handle_of(&searched.detail.summary).map(|handle| kept::whole(&handle));
    for directory in std::iter::once(&searched.directory).chain(&whole) {
        let tasks = searched.detail.tasks.iter().map(|task| task.task.clone());
        let tasks: Vec<TaskId> = tasks.filter(|task| !lines.contains_key(task)).collect();
        let logs = tasks.iter().map(|task| directory.logs(task));
        let mut reader = Reader::new(logs, LineFilter::default().tail(Some(count)));
        let mut each = |number: usize, line: &Line<'_>| {
            lines.entry(tasks[number].clone()).or_default().push(of_line(line));
            Ok(())
        };
        while reader.read(&mut each).unwrap_or(false) {}
    }
    lines
}
