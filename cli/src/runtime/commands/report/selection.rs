//! Which tasks are shown where a job has too many for a page.

use std::collections::BTreeMap;

use jobc_job::record::{Record, TaskRecord, TaskState};
use jobc_job::time::Time;
use jobc_sys::id::TaskId;

/// Tasks of a job, in the order of the plan.
#[derive(Debug)]
pub(super) struct Selection<'a> {
    pub tasks: Vec<&'a TaskRecord>,
    /// The number of tasks that are not among them.
    pub left_out: usize,
}

/// At most `most` tasks: first the one that decided the end, then failed ones, those with several attempts, those that
/// run, and those that took the longest.
pub(super) fn select(record: &Record, most: usize, now: Time) -> Selection<'_> {
    let all = &record.tasks;
    let left_out = all.len().saturating_sub(most);
    if left_out == 0 {
        return Selection { tasks: all.iter().collect(), left_out };
    }
    let decided = record.end.as_ref().and_then(|end| end.task.as_ref());
    let importance = |task: &TaskRecord| {
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

/// The roles in the order of the plan, each with its tasks.
pub(super) fn by_role(record: &Record) -> Vec<(&str, Vec<&TaskRecord>)> {
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let mut roles: Vec<(&str, Vec<&TaskRecord>)> = vec![];
    for task in &record.tasks {
        let place = *places.entry(&task.task.role).or_insert_with(|| {
            roles.push((&task.task.role, vec![]));
            roles.len() - 1
        });
        roles[place].1.push(task);
    }
    roles
}

/// A sentence about the tasks that are not shown; empty if there are none.
pub(super) fn left_out(record: &Record, count: usize) -> String {
    if count == 0 {
        return String::new();
    }
    let id = super::html::escape(&record.id.to_string());
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
