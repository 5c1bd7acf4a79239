//! The events of a run: those of its Slurm jobs, and those in the records of jobc on the nodes.

use super::snapshot::{GroupChange, TaskChange};
use super::state::Run;
use super::{group, time, why};
use crate::place::Event;

/// The events, the oldest first. `journal` are lines of the events that jobc on the nodes wrote, which say more of the tasks
/// that it runs.
pub(crate) fn of_run(run: &Run, journal: &str) -> Vec<Event> {
    let journal: Vec<Event> = journal.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let mut found: Vec<(u64, Event)> = Vec::new();
    let mut push = |at: u64, object: &str, is_warning: bool, event: &str, message: String| {
        let event = Event {
            time: time::rfc3339(at),
            task: object.strip_prefix("task/").map(str::to_owned),
            object: object.to_owned(),
            is_warning,
            event: event.to_owned(),
            message,
            ..Event::default()
        };
        found.push((at, event));
    };
    for (group, id) in &run.files.jobs {
        push(run.record.submitted, group, false, "Submitted", format!("Slurm job {id}"));
    }
    for (object, events) in &run.files.events {
        for event in events {
            match &event.what {
                GroupChange::Started { restarts: 0, nodes } => {
                    push(event.time, object, false, "Started", format!("on {nodes}"));
                }
                GroupChange::Started { restarts, nodes } => {
                    push(
                        event.time,
                        object,
                        false,
                        "Restarted",
                        format!("on {nodes}, start {}", restarts + 1),
                    );
                }
                GroupChange::Limit { why } => push(event.time, object, true, "TIMEOUT", why.clone()),
                GroupChange::Requeued { code } => {
                    push(event.time, object, true, "Requeued", format!("after exit code {code}"));
                }
                GroupChange::Ended { code, reason } => {
                    let why = reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
                    push(event.time, object, *code != 0, "Ended", format!("with exit code {code}{why}"));
                }
                GroupChange::Verdict { state, code } if ["COMPLETED", "FAILED"].contains(&state.as_str()) => {
                    let code = group::exit_code(code).unwrap_or(0);
                    push(event.time, object, code != 0, "Ended", format!("with exit code {code}"));
                }
                GroupChange::Verdict { state, .. } => {
                    push(event.time, object, state != "COMPLETED", state, why::end(state));
                }
            }
        }
    }
    let has_journal = |task: &String| journal.iter().any(|event| event.task.as_ref() == Some(task));
    for (task, events) in run.files.tasks.iter().filter(|(task, _)| !has_journal(task)) {
        for event in events {
            let object = format!("task/{task}");
            match &event.what {
                TaskChange::Started { node, .. } => {
                    let message = format!("attempt {} on {node}", event.attempt);
                    push(event.time, &object, false, "Started", message);
                }
                TaskChange::Ended(code) => {
                    let message = format!("attempt {} with exit code {code}", event.attempt);
                    push(event.time, &object, *code != 0, "Ended", message);
                }
                TaskChange::Judged(judgment) => {
                    if let Some(verdict) = judgment.of_failure() {
                        let message = format!("attempt {}: {verdict}", event.attempt);
                        push(event.time, &object, true, "Judged", message);
                    }
                }
            }
        }
    }
    if let Some(at) = run.files.stopped {
        push(at, "job", false, "Stopped", "by its user".to_owned());
    }
    found.extend(journal.into_iter().filter_map(|event| Some((time::parse(&event.time).ok()?, event))));
    // Those of the same second stay in the order above: a job is submitted, then starts, then its tasks do.
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, event)| event).collect()
}
