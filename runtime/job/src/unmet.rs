//! The needs that waiting roles wait for.

use jobc_schema::plan::{JobPlan, NeedPlan};
use jobc_schema::role::NeedState;

use crate::directory::Directory;
use crate::record::Record;
use jobc_place::task::{TaskState, TaskStatus};
use jobc_sys::error::{AtPath as _, Error, Kind, Result};

/// A sentence for each need that a waiting role of a running job waits for: ``role `worker` waits until `ps` has succeeded``.
///
/// # Errors
///
/// The job's plan cannot be read.
pub fn of_job(directory: &Directory, record: &Record) -> Result<Vec<String>> {
    if record.state.is_final() || record.tasks.iter().all(|task| task.state != TaskState::Waiting) {
        return Ok(vec![]);
    }
    let path = directory.plan_file();
    let text = std::fs::read(&path).at_path("read", &path)?;
    let plan = serde_json::from_slice(&text)
        .map_err(|error| Error::new(Kind::State, format!("cannot read `{}`: {error}", path.display())))?;
    Ok(sentences(&plan, record))
}

fn sentences(plan: &JobPlan, record: &Record) -> Vec<String> {
    let tasks =
        |role: &str| record.tasks.iter().filter(move |task| task.task.role == role).collect::<Vec<_>>();
    let is_waiting = |role: &str| tasks(role).iter().all(|task| task.state == TaskState::Waiting);
    let is_unmet = |need: &NeedPlan| {
        let others = tasks(&need.role);
        let reached = others.iter().filter(|task| has_reached(task, need.state)).count();
        reached < others.len().min(need.min as usize)
    };
    let waiting = plan.roles.iter().filter(|role| is_waiting(&role.name));
    let unmet = waiting.flat_map(|role| role.needs.iter().map(move |need| (role, need)));
    unmet
        .filter(|(_, need)| is_unmet(need))
        .map(|(role, need)| {
            let state = match need.state {
                NeedState::Started => "has started",
                NeedState::Ready => "is ready",
                NeedState::Succeeded => "has succeeded",
            };
            let sentence = format!("role `{}` waits until `{}` {state}", role.name, need.role);
            let runs = tasks(&need.role).iter().all(|task| task.state == TaskState::Running);
            if need.state == NeedState::Succeeded && runs {
                format!("{sentence}; for a server, write `needs: {{{}: started}}`, or `ready`", need.role)
            } else {
                sentence
            }
        })
        .collect()
}

fn has_reached(task: &TaskStatus, state: NeedState) -> bool {
    match state {
        NeedState::Started => task.started.is_some(),
        NeedState::Ready => task.ready.is_some(),
        NeedState::Succeeded => task.state == TaskState::Succeeded,
    }
}
