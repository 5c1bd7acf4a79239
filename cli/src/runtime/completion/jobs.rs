//! Jobs of this user, and their tasks.

use std::ffi::OsStr;

use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use jobc_job::directory::JobDirectories;
use jobc_job::newest;
use jobc_job::record::Record;
use jobc_job::sweep::Sweep;
use jobc_place::task::TaskStatus;
use jobc_sys::id::JobId;

use crate::completion::{beginning_with, described, words};
use crate::runtime::kept;

/// Maximum number of jobs whose records are read for their states.
const MAX_DESCRIBED: usize = 200;

/// The jobs that a command can do something with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobFilter {
    All,
    /// Those that have not ended.
    Running,
}

/// The tasks that a command can do something with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskFilter {
    /// All tasks, and roles for all of theirs.
    All,
    /// Those with a process.
    Running,
}

/// IDs and names of jobs.
pub(crate) fn jobs(filter: JobFilter) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| in_order(candidates(filter, current).unwrap_or_default()))
}

/// The same as [`jobs`], and handles of jobs on clusters.
pub(crate) fn jobs_or_handles(filter: JobFilter) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let mut found = candidates(filter, current).unwrap_or_default();
        found.extend(handles(current));
        in_order(found)
    })
}

/// IDs and names of sweeps and of jobs, and handles of jobs on clusters.
pub(crate) fn jobs_sweeps_or_handles(filter: JobFilter) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let mut found = sweeps(filter, current).unwrap_or_default();
        found.extend(candidates(filter, current).unwrap_or_default());
        found.extend(handles(current));
        in_order(found)
    })
}

/// Handles of jobs on clusters.
pub(crate) fn only_handles() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| in_order(handles(current)))
}

/// The handles that are known on this host; no cluster is asked.
fn handles(current: &OsStr) -> Vec<CompletionCandidate> {
    let found =
        kept::handles().iter().map(|handle| described(&handle.to_string(), "job on a cluster")).collect();
    beginning_with(found, current)
}

/// The tasks of the handle among some words whose output is kept here; none if there is no handle.
fn tasks_of_handle(words: &[String]) -> Option<Vec<CompletionCandidate>> {
    let handle = words.iter().skip(1).find_map(|word| word.parse::<jobc_remote::Handle>().ok())?;
    Some(kept::tasks(&handle).iter().map(|task| described(task, "task")).collect())
}

/// Tasks of the job that the words before the cursor name; without a name, of the newest job, or the newest that runs.
pub(crate) fn tasks(filter: TaskFilter) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let record = job_of_words(filter).map(|(_, record)| record);
        in_order(beginning_with(record.map(|record| of_record(&record, filter)).unwrap_or_default(), current))
    })
}

/// Jobs until one is named, and tasks of it, or of the job that a command without a name takes. A command that runs a
/// program in a task accepts one task.
pub(crate) fn job_and_tasks(jobs: JobFilter, filter: TaskFilter) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let words = words::before_cursor();
        if let Some(tasks) = tasks_of_handle(&words) {
            let has_task =
                tasks.iter().any(|task| words.iter().any(|word| task.get_value() == word.as_str()));
            let is_complete =
                filter == TaskFilter::Running && (has_task || words.iter().any(|word| word == "--"));
            return if is_complete { vec![] } else { in_order(beginning_with(tasks, current)) };
        }
        let job = job_of_words(filter);
        let names = |record: &Record, word: &String| {
            record.tasks.iter().any(|task| task.task.role == *word || task.task.to_string() == *word)
        };
        let given = words.iter().skip(1);
        let has_task = job.as_ref().is_some_and(|(_, record)| given.clone().any(|word| names(record, word)));
        if filter == TaskFilter::Running && (has_task || given.clone().any(|word| word == "--")) {
            return vec![];
        }
        let has_job = job.as_ref().is_some_and(|(id, _)| {
            words.iter().skip(1).any(|word| *word == id.to_string() || *word == id.name)
        });
        let mut found =
            if has_job || has_task { vec![] } else { candidates(jobs, current).unwrap_or_default() };
        // A command that shows all tasks of a job shows those of a sweep, too.
        if filter == TaskFilter::All && !has_job && !has_task {
            found.splice(0..0, sweeps(jobs, current).unwrap_or_default());
        }
        let tasks = job.map(|(_, record)| of_record(&record, filter)).unwrap_or_default();
        found.extend(beginning_with(tasks, current));
        if !has_job && !has_task {
            found.extend(handles(current));
        }
        in_order(found)
    })
}

fn candidates(filter: JobFilter, current: &OsStr) -> Option<Vec<CompletionCandidate>> {
    let places = JobDirectories::standard().ok()?;
    let prefix = current.to_str()?;
    let ids = places.list().ok()?;
    let mut fitting: Vec<&JobId> = ids
        .iter()
        .filter(|id| id.to_string().starts_with(prefix))
        .filter(|id| filter == JobFilter::All || places.job(id).is_supervised())
        .collect();
    if fitting.len() > MAX_DESCRIBED {
        return Some(beginning_with(plain(&fitting), current));
    }
    let mut found: Vec<(&JobId, Record)> = fitting
        .drain(..)
        .filter_map(|id| Some((id, Record::read(&places.job(id)).ok().flatten()?)))
        .collect();
    // Those that run first, then the newest.
    found.sort_by_key(|(_, record)| (record.state.is_final(), std::cmp::Reverse(record.submitted)));
    let mut out: Vec<CompletionCandidate> = Vec::new();
    for (id, record) in &found {
        let is_last = ids.iter().filter(|other| other.name == id.name).all(|other| other.run <= id.run);
        let state = record.state.as_str();
        // A name means the last run.
        if is_last {
            out.push(described(&id.name, &format!("{id}, {state}")));
        }
        out.push(described(&id.to_string(), state));
    }
    Some(beginning_with(out, current))
}

/// The sweeps, the newest of each name first; for [`JobFilter::Running`] those of which a job has not ended.
fn sweeps(filter: JobFilter, current: &OsStr) -> Option<Vec<CompletionCandidate>> {
    let places = JobDirectories::standard().ok()?;
    let prefix = current.to_str()?;
    let mut ids = places.list_sweeps().ok()?;
    ids.retain(|id| id.to_string().starts_with(prefix));
    ids.reverse();
    let mut out: Vec<CompletionCandidate> = Vec::new();
    let mut last: Option<String> = None;
    for id in ids.into_iter().take(MAX_DESCRIBED) {
        let Some(sweep) = Sweep::read(&places, &id).ok().flatten() else { continue };
        let mut jobs = sweep.combinations.iter().map(|known| &known.job);
        if filter == JobFilter::Running && !jobs.any(|job| places.job(job).is_supervised()) {
            continue;
        }
        let text = format!("sweep of {} jobs", sweep.combinations.len());
        // A name means the last run.
        if last.as_ref() != Some(&id.name) {
            out.push(described(&id.name, &format!("{id}, {text}")));
            last = Some(id.name.clone());
        }
        out.push(described(&id.to_string(), &text));
    }
    Some(beginning_with(out, current))
}

fn plain(ids: &[&JobId]) -> Vec<CompletionCandidate> {
    let mut words: Vec<String> = ids.iter().flat_map(|id| [id.name.clone(), id.to_string()]).collect();
    words.sort();
    words.dedup();
    words.into_iter().map(CompletionCandidate::new).collect()
}

/// Keeps the order of candidates, which shells sort by their text otherwise.
fn in_order(candidates: Vec<CompletionCandidate>) -> Vec<CompletionCandidate> {
    candidates.into_iter().enumerate().map(|(at, candidate)| candidate.display_order(Some(at))).collect()
}

/// The tasks of a job, and roles with several tasks.
fn of_record(record: &Record, filter: TaskFilter) -> Vec<CompletionCandidate> {
    let fits = |task: &&TaskStatus| filter == TaskFilter::All || task.state.is_alive();
    let tasks: Vec<&TaskStatus> = record.tasks.iter().filter(fits).collect();
    let mut out: Vec<CompletionCandidate> =
        tasks.iter().map(|task| described(&task.task.to_string(), task.state.as_str())).collect();
    if filter == TaskFilter::All {
        let mut roles: Vec<(&str, usize)> = Vec::new();
        for task in &tasks {
            match roles.iter_mut().find(|(role, _)| *role == task.task.role) {
                Some((_, count)) => *count += 1,
                None => roles.push((&task.task.role, 1)),
            }
        }
        let several = roles.into_iter().filter(|(_, count)| *count > 1);
        out.extend(several.map(|(role, count)| described(role, &format!("all {count} tasks"))));
    }
    out
}

/// The job that the words after the command name, or else the one that a command without a name takes.
fn job_of_words(filter: TaskFilter) -> Option<(JobId, Record)> {
    let places = JobDirectories::standard().ok()?;
    let words = words::before_cursor();
    let read = |word: &String| {
        let directory = places.find(word).ok()?;
        let record = Record::read(&directory).ok().flatten()?;
        Some((directory.id, record))
    };
    let named = words.iter().skip(1).filter(|word| !word.starts_with('-')).find_map(read);
    named.or_else(|| {
        let (directory, record) = match filter {
            TaskFilter::All => newest::newest(&places).ok()??,
            TaskFilter::Running => newest::running(&places).ok()?.into_iter().next()?,
        };
        Some((directory.id, record))
    })
}
