//! The changes of the reason why a job of this host waits, runs again or ended, by its events.

use jobc_place::change::Change;

use crate::event::{Event, Kind, describe};

/// Changes that are shown of a job with many; the last ones.
const MAX_CHANGES: usize = 100;

/// The changes, the oldest first.
pub(super) fn of_events(events: &[Event]) -> Vec<Change> {
    let mut found: Vec<Change> = vec![];
    for event in events {
        // A job that did not wait has its resources from the start.
        if event.event == Kind::Scheduled && found.is_empty() {
            continue;
        }
        let Some(text) = text(event) else { continue };
        if found.last().is_none_or(|last| last.text != text) {
            found.push(Change { time: event.time, text });
        }
    }
    let extra = found.len().saturating_sub(MAX_CHANGES);
    found.drain(..extra);
    found
}

fn text(event: &Event) -> Option<String> {
    let what = describe(event);
    let text = match event.event {
        Kind::Queued => waits(event)?,
        Kind::Scheduled => "has its resources".to_owned(),
        Kind::Stalled => format!("makes no progress: {what}"),
        Kind::NotReady => format!("not ready: {what}"),
        Kind::Retried => format!("runs again: {what}"),
        Kind::NetworkChanged => format!("the network changed: {what}"),
        Kind::OomKilled | Kind::GpuFault | Kind::ClockSet => what,
        // The reason stays the same in all turns on GPUs.
        Kind::Paused | Kind::Resumed if !what.is_empty() => return None,
        Kind::Paused => "paused".to_owned(),
        Kind::Suspended => "suspended".to_owned(),
        Kind::Resumed => "resumed".to_owned(),
        // Tasks end one by one; what they ended the job with is in its own end.
        Kind::Ended if event.task.is_none() => event.detail["explanation"].as_str()?.to_owned(),
        _ => return None,
    };
    Some(match &event.task {
        Some(task) => format!("{task}: {text}"),
        None => text,
    })
}

/// What a job of the queue waits for: ``waits: needs 2 GPUs, and 0 of 2 are free: `a.1` has 2 GPUs; place 3 of the queue``.
pub(super) fn waits(event: &Event) -> Option<String> {
    let waits_for = event.detail["waits_for"].as_str()?;
    let place = event.detail["place"].as_u64().filter(|place| *place > 1);
    let place = place.map(|place| format!("; place {place} of the queue")).unwrap_or_default();
    Some(format!("waits: {waits_for}{place}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_change_of_the_reason_is_kept_once() {
        let queued =
            |place: u64, what: &str| Event::of_job(Kind::Queued, json!({"place": place, "waits_for": what}));
        let task = || "w-0".parse().unwrap();
        let events = [
            Event::of_job(Kind::Submitted, json!({"tasks": 2})),
            queued(2, "needs 2 GPUs"),
            queued(2, "needs 2 GPUs"),
            queued(1, "needs 2 GPUs"),
            Event::of_job(Kind::Scheduled, json!({})),
            Event::of_task(Kind::Started, task(), 1, json!({"pid": 1})),
            Event::of_task(
                Kind::Retried,
                task(),
                1,
                json!({"scope": "task", "attempt": 2, "backoff_ms": 1000, "why": "exit 3"}),
            ),
            Event::of_task(Kind::Ended, task(), 2, json!({"exit_code": 3})),
            Event::of_job(Kind::Ended, json!({"exit_code": 1, "explanation": "failed: w-0: exit 3"})),
        ];
        let shown: Vec<String> = of_events(&events).into_iter().map(|change| change.text).collect();
        insta::assert_snapshot!(shown.join("\n"), @r"
        waits: needs 2 GPUs; place 2 of the queue
        waits: needs 2 GPUs
        has its resources
        w-0: runs again: attempt 2 in 1.0 s, exit 3
        failed: w-0: exit 3
        ");
    }
}
