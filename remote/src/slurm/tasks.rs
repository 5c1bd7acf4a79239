//! The tasks of a run with their attempts.

use super::group::{GroupEnd, GroupState};
use super::record::GroupRecord;
use super::snapshot::{RunFiles, TaskChange, TaskEvent};
use super::time;
use jobc_sys::id::TaskId;

use crate::place::{TaskCounts, TaskState, TaskStatus};

/// The attempts of a task, the oldest first: number, start with node and process, end with exit code.
pub(crate) struct Attempt<'a> {
    pub(crate) number: u32,
    pub(crate) started: u64,
    pub(crate) node: &'a str,
    pub(crate) pid: u32,
    pub(crate) ended: Option<(u64, i32)>,
}

/// The attempts that the events of a task are about.
pub(crate) fn attempts(events: &[TaskEvent]) -> Vec<Attempt<'_>> {
    let mut found: Vec<Attempt<'_>> = Vec::new();
    for event in events {
        match &event.what {
            TaskChange::Started { node, pid } => found.push(Attempt {
                number: event.attempt,
                started: event.time,
                node,
                pid: *pid,
                ended: None,
            }),
            TaskChange::Ended(code) => {
                if let Some(attempt) = found.iter_mut().rfind(|attempt| attempt.number == event.attempt) {
                    attempt.ended = Some((event.time, *code));
                }
            }
        }
    }
    found
}

/// All tasks of a run, by group, role and index. `states` are those of the groups.
pub(crate) fn statuses(files: &RunFiles, states: &[GroupState]) -> Vec<TaskStatus> {
    let groups = files.record.iter().flat_map(|record| &record.groups).zip(states);
    groups.flat_map(|(group, state)| of_group(files, group, state)).collect()
}

fn of_group(files: &RunFiles, group: &GroupRecord, state: &GroupState) -> Vec<TaskStatus> {
    let mut found = Vec::new();
    for (role, index) in group.tasks() {
        let task = TaskId::new(role, index);
        let attempts = files.tasks.get(&task.to_string()).map(|events| attempts(events)).unwrap_or_default();
        if attempts.is_empty() {
            let is_over = matches!(state, GroupState::Ended(_));
            let state = if is_over { TaskState::Stopped } else { TaskState::Pending };
            found.push(TaskStatus::new(task, state, 1));
            continue;
        }
        let last = attempts.len() - 1;
        found.extend(attempts.iter().enumerate().map(|(position, attempt)| {
            let (state, reason) = state_of(attempt, position == last, state);
            TaskStatus {
                node: Some(attempt.node.to_owned()),
                exit_code: attempt.ended.map(|(_, code)| u8::try_from(code).unwrap_or(u8::MAX)),
                started: Some(time::moment(attempt.started)),
                ended: attempt.ended.map(|(at, _)| time::moment(at)),
                reason: reason.map(str::to_owned),
                ..TaskStatus::new(task.clone(), state, attempt.number)
            }
        }));
    }
    TaskStatus::by_task(found)
}

fn state_of(attempt: &Attempt<'_>, is_last: bool, group: &GroupState) -> (TaskState, Option<&'static str>) {
    let is_stopped = matches!(group, GroupState::Ended(GroupEnd::Stopped | GroupEnd::TimedOut));
    match (attempt.ended, group) {
        (Some((_, 0)), _) => (TaskState::Succeeded, None),
        (Some((_, code)), _) if is_stopped && code > 128 => (TaskState::Stopped, None),
        // Another task failed, which ended this one.
        (Some((_, 143)), GroupState::Ended(GroupEnd::Failed { code: Some(code), .. })) if *code != 143 => {
            (TaskState::Stopped, None)
        }
        (Some(_), _) => (TaskState::Failed, None),
        (None, GroupState::Running | GroupState::Unknown) if is_last => (TaskState::Running, None),
        (None, GroupState::Pending | GroupState::Held) => (TaskState::Failed, Some("the job was requeued")),
        (None, _) if is_stopped && is_last => (TaskState::Stopped, None),
        (None, _) => (TaskState::Failed, Some("it was killed")),
    }
}

/// The numbers of tasks, by their last attempts.
pub(crate) fn counts(tasks: &[TaskStatus]) -> TaskCounts {
    let count = |state| tasks.iter().filter(|task| task.state == state).count() as u64;
    TaskCounts {
        wanted: tasks.len() as u64,
        active: count(TaskState::Running),
        succeeded: count(TaskState::Succeeded),
        failed: count(TaskState::Failed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slurm::snapshot::parse;

    fn files() -> RunFiles {
        let text = r#"x/job.json:{"version":1,"job":"x","plan":"p","user":"u","submitted":1,"grace":30,"groups":[{"name":"job","after":[],"roles":[["main",3]],"places":{}}]}
x/tasks/main-0:10 started 1 n0 5
x/tasks/main-0:11 ended 1 9
x/tasks/main-0:12 started 2 n0 6
x/tasks/main-1:10 started 1 n1 5
x/tasks/main-1:13 ended 1 0
"#;
        parse(text).remove("x").unwrap()
    }

    fn shown(state: GroupState) -> Vec<String> {
        let statuses = statuses(&files(), &[state]);
        let line =
            |status: &TaskStatus| format!("{}.{} {}", status.task, status.attempt, status.state.as_str());
        statuses.iter().map(line).collect()
    }

    #[test]
    fn attempts_have_states_of_their_own() {
        let tasks = ["main-0.2 running", "main-1.1 succeeded", "main-2.1 pending"];
        assert_eq!(shown(GroupState::Running), tasks);
        let ended = shown(GroupState::Ended(GroupEnd::Stopped));
        assert_eq!(ended, ["main-0.2 stopped", "main-1.1 succeeded", "main-2.1 stopped"]);
        let lost = shown(GroupState::Ended(GroupEnd::Failed { code: None, word: None }));
        assert_eq!(lost[0], "main-0.2 failed");
        assert_eq!(shown(GroupState::Pending)[0], "main-0.2 failed");
    }

    #[test]
    fn tasks_are_counted_by_their_last_attempt() {
        let counts = counts(&statuses(&files(), &[GroupState::Running]));
        assert_eq!(counts, TaskCounts { wanted: 3, active: 1, succeeded: 1, failed: 0 });
    }
}
