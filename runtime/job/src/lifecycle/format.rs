//! Events as text.

use std::time::Duration;

use jobc_schema::Seconds;
use jobc_schema::role::NeedState;

use super::role::{Need, Role};
use super::task::Task;
use jobc_container::process::Exit;
use jobc_place::exit_text;

/// `90s`, `12h`.
pub(super) fn duration(duration: Duration) -> String {
    Seconds(duration.as_secs()).to_string()
}

/// How a task's last attempt ended: `out of memory: used 2 GiB of 2 GiB`.
pub(super) fn attempt_end(task: &Task) -> String {
    let signal = task.exit.and_then(Exit::signal).map(exit_text::signal_name);
    exit_text::describe(task.exit.map(Exit::code), signal.as_deref(), task.reason.as_deref())
        .unwrap_or_else(|| "it did not run".to_owned())
}

/// The end of a job by the failures of a role. The usual threshold is not named: the first failure ends the job.
pub(super) fn failed(role: &Role, min: u32, task: &Task) -> String {
    let last = self::task(task);
    match (min, role.elastic_min) {
        (1, _) => format!("failed: {last}"),
        (min, Some(least)) if min == role.instances.saturating_sub(least) + 1 => {
            format!(
                "failed: fewer than {least} of {} `{}` tasks are left ({last})",
                role.instances, role.name
            )
        }
        _ => format!("failed: `{}` reached min_failed {min} ({last})", role.name),
    }
}

/// The end of a job by the successes of a role.
pub(super) fn succeeded(role: &Role, min: u32, task: &Task) -> String {
    match min {
        _ if role.instances == 1 => format!("succeeded: {} succeeded", task.id),
        min if min == role.instances => format!("succeeded: all {min} `{}` tasks succeeded", role.name),
        min if role.elastic_min == Some(min) => {
            format!("succeeded: {min} of {} `{}` tasks succeeded", role.instances, role.name)
        }
        min => format!("succeeded: `{}` reached min_succeeded {min}", role.name),
    }
}

/// A task with how it ended: `worker-3, attempt 2: exit 1`.
pub(super) fn task(task: &Task) -> String {
    let attempt = if task.attempt > 1 { format!(", attempt {}", task.attempt) } else { String::new() };
    format!("{}{attempt}: {}", task.id, attempt_end(task))
}

/// `3 tasks were still running`.
pub(super) fn still_running(tasks: usize) -> String {
    match tasks {
        0 => "no task was running".to_owned(),
        1 => "1 task was still running".to_owned(),
        _ => format!("{tasks} tasks were still running"),
    }
}

/// The end of a job that no threshold ended.
pub(super) fn all_ended(tasks: usize, failed: usize) -> String {
    match (tasks, failed) {
        (1, 0) => "succeeded: its task succeeded".to_owned(),
        (_, 0) => format!("succeeded: all {tasks} tasks succeeded"),
        (1, _) => "succeeded: its task ended, and was allowed to fail".to_owned(),
        (_, 1) => format!("succeeded: all {tasks} tasks ended, and the one that failed was allowed to"),
        _ => format!("succeeded: all {tasks} tasks ended, and the {failed} that failed were allowed to"),
    }
}

/// A role's need that cannot be met: ``it needs 2 of 4 `train` tasks to have succeeded, and 3 failed``.
pub(super) fn need(role: &str, instances: usize, need: Need, missed: usize) -> String {
    let (to, short) = match need.state {
        NeedState::Started => ("to have started", "never ran"),
        NeedState::Ready => ("to be ready", "never became ready"),
        NeedState::Succeeded => ("to have succeeded", "failed"),
    };
    let who = match (need.min, instances) {
        (_, 1) => return format!("it needs `{role}` {to}, and it {short}"),
        (min, all) if min == all => format!("all {all}"),
        (min, all) => format!("{min} of {all}"),
    };
    format!("it needs {who} `{role}` tasks {to}, and {missed} {short}")
}
