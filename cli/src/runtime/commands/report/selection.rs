//! Which tasks are shown where a job has too many for a page.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use jobc_place::job::JobDetail;
use jobc_place::task::{TaskState, TaskStatus};
use jobc_place::time::Time;
use jobc_schema::Scalar;
use jobc_sys::id::TaskId;

/// Tasks of a job, in the order of the plan.
#[derive(Debug)]
pub(super) struct Selection<'a> {
    pub tasks: Vec<&'a TaskStatus>,
    /// The number of tasks that are not among them.
    pub left_out: usize,
}

/// At most `most` tasks: first the one that decided the end, then failed ones, those with several attempts, those that
/// run, and those that took the longest.
pub(super) fn select(job: &JobDetail, most: usize, now: Time) -> Selection<'_> {
    let all = &job.tasks;
    let left_out = all.len().saturating_sub(most);
    if left_out == 0 {
        return Selection { tasks: all.iter().collect(), left_out };
    }
    let decided = job.summary.end.as_ref().and_then(|end| end.task.as_ref());
    let importance = |task: &TaskStatus| {
        let class = match () {
            () if decided == Some(&task.task) => 0,
            () if task.state == TaskState::Failed => 1,
            () if task.attempt > 1 => 2,
            () if task.state.is_alive() => 3,
            () => 4,
        };
        let took = task.started.map(|started| task.ended.unwrap_or(now).since(started));
        (class, std::cmp::Reverse(took))
    };
    let mut places: Vec<usize> = (0..all.len()).collect();
    places.sort_by_cached_key(|&place| importance(&all[place]));
    places.truncate(most);
    places.sort_unstable();
    Selection { tasks: places.into_iter().map(|place| &all[place]).collect(), left_out }
}

/// The role of a task as the job file names it: the groups of a matrix are one role.
pub(super) fn role_of<'a>(job: &'a JobDetail, task: &'a TaskId) -> &'a str {
    job.combinations.get(&task.role).map_or(&task.role, |combination| &combination.role)
}

/// The name of a task among those of its role: for a group of a matrix its values, as in `lr=0.1, seed=2`.
pub(super) fn label(job: &JobDetail, task: &TaskId) -> String {
    let Some(combination) = job.combinations.get(&task.role) else { return task.to_string() };
    let values = values(&combination.values);
    let is_one_of_several = task.index > 0 || job.task(&TaskId::new(&task.role, 1)).is_some();
    if is_one_of_several { format!("{values}, task {}", task.index) } else { values }
}

/// The name of a task among all: for a group of a matrix its role and values, as in `train lr=0.1, seed=2`.
pub(super) fn name(job: &JobDetail, task: &TaskId) -> String {
    let label = label(job, task);
    if job.combinations.contains_key(&task.role) { format!("{} {label}", role_of(job, task)) } else { label }
}

/// The values of axes: `lr=0.1, seed=2`.
pub(super) fn values(values: &IndexMap<String, Scalar>) -> String {
    values.iter().map(|(axis, value)| format!("{axis}={value}")).collect::<Vec<_>>().join(", ")
}

/// The roles in the order of the plan, each with its tasks.
pub(super) fn by_role(job: &JobDetail) -> Vec<(&str, Vec<&TaskStatus>)> {
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let mut roles: Vec<(&str, Vec<&TaskStatus>)> = vec![];
    for task in &job.tasks {
        let role = role_of(job, &task.task);
        let place = *places.entry(role).or_insert_with(|| {
            roles.push((role, vec![]));
            roles.len() - 1
        });
        roles[place].1.push(task);
    }
    roles
}

/// A sentence about the tasks that are not shown; empty if there are none.
pub(super) fn left_out(job: &JobDetail, count: usize) -> String {
    if count == 0 {
        return String::new();
    }
    let id = super::html::escape(&job.summary.name);
    let more = if count == 1 { "1 more is".to_owned() } else { format!("{count} more are") };
    format!(
        "<p class=\"none\">These are the tasks that failed, were retried, still run, or took longest. {more} listed by \
         <code>jobc ps {id}</code>.</p>\n"
    )
}

/// Whether a task is among these.
pub(super) fn has(selection: &Selection<'_>, task: &TaskId) -> bool {
    selection.tasks.iter().any(|known| known.task == *task)
}
