//! The tasks of a run with their attempts.

use std::collections::BTreeMap;

use super::group::{GroupEnd, GroupState};
use super::queue::QueueRow;
use super::record::GroupRecord;
use super::snapshot::{GroupChange, RunFiles, TaskChange, TaskEvent};
use super::{group, hostlist, time};
use jobc_place::verdict::{self, Judgment};
use jobc_sys::id::TaskId;

use crate::place::{TaskCounts, TaskState, TaskStatus};

/// The exit code of a task that SIGTERM ended.
const STOPPED: i32 = 143;

/// The attempts of a task, the oldest first: number, start with node and process, end with exit code.
pub(crate) struct Attempt<'a> {
    pub(crate) number: u32,
    pub(crate) started: u64,
    pub(crate) node: &'a str,
    pub(crate) pid: u32,
    pub(crate) ended: Option<(u64, i32)>,
    pub(crate) judged: Option<&'a Judgment>,
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
                judged: None,
            }),
            TaskChange::Ended(code) => {
                if let Some(attempt) = found.iter_mut().rfind(|attempt| attempt.number == event.attempt) {
                    attempt.ended = Some((event.time, *code));
                }
            }
            TaskChange::Judged(judgment) => {
                if let Some(attempt) = found.iter_mut().rfind(|attempt| attempt.number == event.attempt) {
                    attempt.judged = Some(judgment);
                }
            }
        }
    }
    found
}

/// All tasks of a run, by group, role and index. `rows` and `states` are those of the groups.
pub(crate) fn statuses(
    files: &RunFiles,
    rows: &BTreeMap<String, QueueRow>,
    states: &[GroupState],
) -> Vec<TaskStatus> {
    let groups = files.record.iter().flat_map(|record| &record.groups).zip(states);
    let of_one = |(group, state): (&GroupRecord, &GroupState)| {
        if group.direct {
            without_supervisor(files, group, rows.get(&group.name), state)
        } else {
            of_group(files, group, state)
        }
    };
    groups.flat_map(of_one).collect()
}

/// The nodes of a group without a supervisor, one for each task, and when it started the last time.
pub(crate) fn last_start(files: &RunFiles, group: &str) -> Option<(Vec<String>, u64, u32)> {
    let events = files.events.get(group)?;
    events.iter().rev().find_map(|event| match &event.what {
        GroupChange::Started { nodes, restarts } => Some((hostlist::expand(nodes), event.time, *restarts)),
        _ => None,
    })
}

/// The tasks of a group of which only Slurm says how they are.
fn without_supervisor(
    files: &RunFiles,
    group: &GroupRecord,
    row: Option<&QueueRow>,
    state: &GroupState,
) -> Vec<TaskStatus> {
    let start = last_start(files, &group.name);
    let events = files.events.get(&group.name).map(Vec::as_slice).unwrap_or_default();
    let errors = files.errors.get(&group.name).map(Vec::as_slice).unwrap_or_default();
    let ended = Some(group::ended(events, row)).filter(|at| *at != u64::MAX);
    let is_waiting = matches!(state, GroupState::Pending | GroupState::Held);
    let status = |(role, index): (&str, u32)| {
        let start = start.as_ref().filter(|_| !is_waiting);
        let (word, exit_code) = match state {
            GroupState::Pending | GroupState::Held | GroupState::Unknown => (TaskState::Pending, None),
            GroupState::Running | GroupState::Paused => (TaskState::Running, None),
            GroupState::Ended(GroupEnd::Succeeded) => (TaskState::Succeeded, Some(0)),
            GroupState::Ended(GroupEnd::Failed { code, .. }) => end_of_task(files, group, index, *code),
            GroupState::Ended(_) => (TaskState::Stopped, None),
        };
        let is_memory = errors.iter().any(|error| error.is_memory && error.tasks.contains(&index));
        let attempt = start.map_or(1, |(_, _, restarts)| restarts + 1);
        let task = TaskId::new(role, index);
        let lines = files.last_lines.get(&task.to_string()).cloned().unwrap_or_default();
        TaskStatus {
            node: start.and_then(|(nodes, _, _)| nodes.get(index as usize).cloned()),
            exit_code: exit_code.map(|code| u8::try_from(code).unwrap_or(u8::MAX)),
            started: start.map(|(_, at, _)| time::moment(*at)),
            ended: ended.filter(|_| matches!(state, GroupState::Ended(_))).map(time::moment),
            reason: is_memory.then(|| "OUT_OF_MEMORY".to_owned()),
            ..TaskStatus::new(task, word, attempt)
        }
        .judged(if is_memory { Some("OUT_OF_MEMORY") } else { word_of(state) }, lines)
    };
    group.tasks().map(status).collect()
}

/// How a task of a step ended that failed: `srun` names those that did not succeed, and stops the others. The first one that
/// its last lines do not call a consequence is the cause.
fn end_of_task(
    files: &RunFiles,
    group: &GroupRecord,
    index: u32,
    code: Option<i32>,
) -> (TaskState, Option<i32>) {
    let errors = files.errors.get(&group.name).map(Vec::as_slice).unwrap_or_default();
    let is_consequence = |index: u32, code: i32| {
        let role = group.roles.first().map_or("", |(role, _)| role);
        let lines = files.last_lines.get(&TaskId::new(role, index).to_string());
        let code = u8::try_from(code).unwrap_or(u8::MAX);
        lines.is_some_and(|lines| verdict::is_consequence(lines, code))
    };
    let ended = || errors.iter().filter_map(|error| Some((error, error.code?)));
    let all = || ended().flat_map(|(error, code)| error.tasks.iter().map(move |task| (*task, code)));
    let first =
        all().find(|(task, code)| *code != STOPPED && !is_consequence(*task, *code)).or_else(|| all().next());
    match (errors.iter().find(|error| error.tasks.contains(&index)), first) {
        (Some(own), Some((first, _)))
            if first != index && own.code.is_none_or(|code| code > 128 || is_consequence(index, code)) =>
        {
            (TaskState::Stopped, own.code)
        }
        (Some(own), _) => (TaskState::Failed, own.code.or(code)),
        (None, None) => (TaskState::Failed, code),
        (None, Some(_)) => (TaskState::Stopped, None),
    }
}

fn of_group(files: &RunFiles, group: &GroupRecord, state: &GroupState) -> Vec<TaskStatus> {
    let mut found = Vec::new();
    let attempts_of = |task: &TaskId| files.tasks.get(&task.to_string()).map(|events| attempts(events));
    let all = || group.tasks().map(|(role, index)| TaskId::new(role, index));
    // The node judges those that end by themselves: what it does not judge was ended because of one of them.
    let has_limit = files.events.get(&group.name).is_some_and(|events| group::limit(events).is_some());
    let judged: Vec<u64> = all().filter_map(|task| judged_failure(&attempts_of(&task)?)).collect();
    for task in all() {
        let attempts = attempts_of(&task).unwrap_or_default();
        if attempts.is_empty() {
            let is_over = matches!(state, GroupState::Ended(_));
            let state = if is_over { TaskState::Stopped } else { TaskState::Pending };
            found.push(TaskStatus::new(task, state, 1));
            continue;
        }
        let last = attempts.len() - 1;
        found.extend(attempts.iter().enumerate().map(|(position, attempt)| {
            let word = word_of(state).filter(|_| position == last && attempt.ended.is_none());
            let is_cut =
                |(at, code)| code != 0 && (has_limit || judged.iter().any(|judged| *judged <= at + 1));
            let is_cut = attempt.judged.is_none() && attempt.ended.is_some_and(is_cut);
            let (state, reason) = match state_of(attempt, position == last, state) {
                (TaskState::Failed, _) if is_cut && position == last => (TaskState::Stopped, None),
                state => state,
            };
            TaskStatus {
                node: Some(attempt.node.to_owned()),
                exit_code: attempt.ended.map(|(_, code)| u8::try_from(code).unwrap_or(u8::MAX)),
                started: Some(time::moment(attempt.started)),
                ended: attempt.ended.map(|(at, _)| time::moment(at)),
                reason: reason.map(str::to_owned),
                verdict: attempt.judged.cloned(),
                ..TaskStatus::new(task.clone(), state, attempt.number)
            }
            .judged(word, vec![])
        }));
    }
    TaskStatus::by_task(found)
}

/// When the last attempt ended, if the node judged it to have failed by itself.
fn judged_failure(attempts: &[Attempt<'_>]) -> Option<u64> {
    let last = attempts.last()?;
    let (at, code) = last.ended?;
    // Of a step with several ranks the first one is judged, which another may have ended.
    (code != STOPPED && last.judged?.of_failure().is_some()).then_some(at)
}

/// Slurm's word for how a group ended, where it says more than the exit code.
fn word_of(state: &GroupState) -> Option<&str> {
    match state {
        GroupState::Ended(GroupEnd::Failed { word, .. }) => word.as_deref(),
        _ => None,
    }
}

fn state_of(attempt: &Attempt<'_>, is_last: bool, group: &GroupState) -> (TaskState, Option<&'static str>) {
    let is_stopped = matches!(group, GroupState::Ended(GroupEnd::Stopped | GroupEnd::TimedOut));
    match (attempt.ended, group) {
        (Some((_, 0)), _) => (TaskState::Succeeded, None),
        (Some((_, code)), _) if is_stopped && code > 128 => (TaskState::Stopped, None),
        // Another task failed, which ended this one.
        (Some((_, STOPPED)), GroupState::Ended(GroupEnd::Failed { code: Some(code), .. }))
            if *code != STOPPED =>
        {
            (TaskState::Stopped, None)
        }
        (Some(_), _) => (TaskState::Failed, None),
        (None, GroupState::Running | GroupState::Paused | GroupState::Unknown) if is_last => {
            (TaskState::Running, None)
        }
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
    use crate::slurm::snapshot::{TaskError, parse};

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
        let statuses = statuses(&files(), &BTreeMap::new(), &[state]);
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
    fn a_task_that_ended_because_of_another_has_not_failed() {
        let mut files = files();
        let judged = r#"x/job.json:{"version":1,"job":"x","plan":"p","user":"u","submitted":1,"grace":30,"groups":[{"name":"job","after":[],"roles":[["main",3]],"places":{}}]}
x/tasks/main-0:10 started 1 n0 5
x/tasks/main-0:13 ended 1 1
x/tasks/main-1:10 started 1 n1 5
x/tasks/main-1:13 ended 1 3
x/tasks/main-1:13 judged 1 {"kind":"user error"}
x/tasks/main-2:10 started 1 n2 5
x/tasks/main-2:11 ended 1 1
"#;
        files.tasks = parse(judged).remove("x").unwrap().tasks;
        let ended = GroupState::Ended(GroupEnd::Failed { code: Some(3), word: None });
        let states: Vec<&str> =
            statuses(&files, &BTreeMap::new(), &[ended]).iter().map(|status| status.state.as_str()).collect();
        // The last one failed before.
        assert_eq!(states, ["stopped", "failed", "failed"]);
    }

    #[test]
    fn tasks_that_slurm_alone_runs_are_judged_by_their_last_lines() {
        let text = r#"x/job.json:{"version":1,"job":"x","plan":"p","user":"u","submitted":1,"grace":30,"groups":[{"name":"job","after":[],"roles":[["main",2]],"direct":true,"places":{}}]}
x/out/job.log:srun: error: n1: task 1: Exited with exit code 86
"#;
        let mut files = parse(text).remove("x").unwrap();
        let said = "jobc: preflight failed: disk: 1 GiB free in /x, 2 GiB wanted (main-1 on n1: the node is at fault)";
        files.last_lines.insert("main-1".to_owned(), vec![said.to_owned()]);
        let ended = || GroupState::Ended(GroupEnd::Failed { code: Some(86), word: None });
        let tasks = statuses(&files, &BTreeMap::new(), &[ended()]);
        let verdict = tasks[1].verdict.as_ref().unwrap();
        assert_eq!((tasks[0].state, verdict.kind.as_str()), (TaskState::Stopped, "node"));
        assert_eq!(verdict.evidence, ["exit 86", said]);
        // The first one that Slurm names may have lost the other.
        files
            .errors
            .get_mut("job")
            .unwrap()
            .insert(0, TaskError { tasks: vec![0], code: Some(1), is_memory: false });
        files
            .last_lines
            .insert("main-0".to_owned(), vec!["ConnectionResetError: Connection reset by peer".to_owned()]);
        let tasks = statuses(&files, &BTreeMap::new(), &[ended()]);
        assert_eq!((tasks[0].state, tasks[1].state), (TaskState::Stopped, TaskState::Failed));
        // A program may have this exit code of its own.
        files.last_lines.clear();
        let tasks = statuses(&files, &BTreeMap::new(), &[ended()]);
        assert_eq!(tasks[1].verdict.as_ref().unwrap().kind.as_str(), "user error");
    }

    #[test]
    fn tasks_are_counted_by_their_last_attempt() {
        let counts = counts(&statuses(&files(), &BTreeMap::new(), &[GroupState::Running]));
        assert_eq!(counts, TaskCounts { wanted: 3, active: 1, succeeded: 1, failed: 0 });
    }
}
