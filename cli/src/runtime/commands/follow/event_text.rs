//! The events of a job, as text.

use std::time::Duration;

use jobc_job::event::{Event, Kind};
use jobc_sys::id::TaskId;
use serde_json::Value;

use super::super::jobs::format_duration;
use crate::runtime::quantity::bytes;
use crate::table::escape_control;

/// The lines for a user who waits for a job. Tasks of a role with the same event at the same time share a line.
pub(crate) fn lines(events: &[Event]) -> Vec<String> {
    let mut lines: Vec<EventLine> = vec![];
    for event in events {
        let Some(words) = event_line(event) else { continue };
        let role = event.task.as_ref().map(|task| task.role.clone());
        let instance = event.task.as_ref().map(|task| task.index);
        match lines.last_mut() {
            Some(last) if role.is_some() && last.role == role && last.text == words => {
                last.instances.extend(instance);
            }
            _ => lines.push(EventLine { role, instances: instance.into_iter().collect(), text: words }),
        }
    }
    lines.iter().map(EventLine::line).collect()
}

/// An event of one task, of several tasks of a role, or of the job.
struct EventLine {
    role: Option<String>,
    instances: Vec<u32>,
    text: String,
}

impl EventLine {
    /// `worker-0 to worker-7 started`.
    fn line(&self) -> String {
        let Self { role: Some(role), instances, text: words } = self else { return self.text.clone() };
        let in_order = instances.windows(2).all(|two| two[1] == two[0] + 1);
        let name = |index: &u32| TaskId::new(role, *index).to_string();
        let who = match &instances[..] {
            [first, _, .., last] if in_order => format!("{} to {}", name(first), name(last)),
            _ if instances.len() > 4 => format!("{} of {role}", instances.len()),
            _ => instances.iter().map(name).collect::<Vec<_>>().join(", "),
        };
        format!("{who} {words}")
    }
}

/// The text of an event for a user who waits for the job; none for most events.
fn event_line(event: &Event) -> Option<String> {
    let words = describe_details(event);
    let of_task = event.task.is_some();
    Some(match event.event {
        Kind::Queued => format!("waiting: {words}"),
        Kind::DataReady => format!("data ready: {words}"),
        Kind::Started if event.attempt > Some(1) => format!("started, attempt {}", event.attempt?),
        Kind::Started => "started".to_owned(),
        Kind::Ready => "ready".to_owned(),
        Kind::NotReady => format!("is {words}"),
        Kind::Retried => format!("is retried: {words}"),
        // A permanent change is also a note in the record, which is printed as well.
        Kind::NetworkChanged if event.detail["way_out"] == "lost" => {
            format!("the uplink of the job network is lost: {words}")
        }
        Kind::NetworkChanged if event.detail["way_out"] == "restored" => {
            format!("the uplink of the job network is restored: {words}")
        }
        Kind::Paused => "paused".to_owned(),
        Kind::Resumed => "resumed".to_owned(),
        Kind::Stopping => format!("ending: {words}"),
        Kind::Ended if of_task && words == "exit 0" => "ended".to_owned(),
        Kind::Ended if of_task => format!("ended: {words}"),
        // The end of the job is printed last, from its record.
        _ => return None,
    })
}

/// The details of an event, as text.
pub(crate) fn describe_details(event: &Event) -> String {
    let detail = &event.detail;
    let text = |key: &str| detail[key].as_str().map(escape_control);
    let number = |key: &str| detail[key].as_u64();
    let listed = |parts: Vec<Option<String>>| parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    match event.event {
        Kind::Submitted => number("tasks").map(|tasks| format!("tasks: {tasks}")).unwrap_or_default(),
        Kind::Queued => {
            let place = number("place").map(|place| format!("place {place}"));
            listed(vec![text("waits_for").or_else(|| describe_value(&detail["waits_for"])), place])
        }
        Kind::Created | Kind::Started => {
            number("pid").map(|pid| format!("process {pid}")).unwrap_or_default()
        }
        Kind::Ready => {
            let after = number("after_ms").map(Duration::from_millis);
            after.map(|after| format!("after {}", format_duration(after))).unwrap_or_default()
        }
        Kind::NetworkChanged => text("why").or_else(|| text("by")).unwrap_or_default(),
        Kind::NotReady | Kind::Stopping => text("why").unwrap_or_default(),
        Kind::Retried => {
            let attempt = number("attempt").map(|attempt| format!("attempt {attempt}"));
            let backoff = number("backoff_ms").map(Duration::from_millis);
            let soon = backoff.map(|backoff| format!(" in {}", format_duration(backoff))).unwrap_or_default();
            let scope = text("scope").filter(|scope| scope != "task").map(|scope| format!(" of the {scope}"));
            let attempt = attempt.map(|attempt| format!("{attempt}{}{soon}", scope.unwrap_or_default()));
            listed(vec![attempt, text("why")])
        }
        Kind::Ended => {
            let code = number("exit_code").filter(|_| event.task.is_some());
            listed(vec![code.map(|code| format!("exit {code}")), text("explanation")])
        }
        Kind::Sampled => {
            let cpu = number("cpu_usec").map(Duration::from_micros);
            listed(vec![
                cpu.map(|cpu| format!("CPU {}", format_duration(cpu))),
                number("memory").map(|size| format!("memory {}", bytes(size))),
                number("memory_peak").map(|size| format!("peak {}", bytes(size))),
            ])
        }
        _ => describe_value(detail).unwrap_or_default(),
    }
}

/// Details without a text of their own: `volume data, path /srv/data`.
fn describe_value(detail: &Value) -> Option<String> {
    match detail {
        Value::Null => None,
        Value::String(text) => Some(escape_control(text)),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().filter_map(describe_value).collect();
            (!items.is_empty()).then(|| items.join(", "))
        }
        Value::Object(fields) => {
            let fields = fields.iter().filter_map(|(key, value)| {
                describe_value(value)
                    .map(|value| format!("{} {value}", escape_control(key).replace('_', " ")))
            });
            let fields: Vec<String> = fields.collect();
            (!fields.is_empty()).then(|| fields.join(", "))
        }
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn task(kind: Kind, name: &str, attempt: u32, detail: Value) -> Event {
        Event::of_task(kind, name.parse().unwrap(), attempt, detail)
    }

    #[test]
    fn a_job_is_summarized_in_few_lines() {
        let started = |name: &str| task(Kind::Started, name, 1, json!({"pid": 1}));
        let mut events = vec![Event::of_job(Kind::Submitted, json!({"tasks": 9}))];
        events.push(Event::of_job(Kind::Queued, json!({"waits_for": "2 GPUs of 2 in use", "place": 1})));
        events.extend((0..8).map(|index| started(&format!("worker-{index}"))));
        events.push(started("ps-0"));
        events.push(task(Kind::Ready, "ps-0", 1, json!({"after_ms": 1234})));
        events.push(task(
            Kind::Ended,
            "worker-3",
            1,
            json!({"exit_code": 137, "explanation": "memory limit 2 GiB reached"}),
        ));
        events.push(task(
            Kind::Retried,
            "worker-3",
            1,
            json!({"scope": "role", "attempt": 2, "backoff_ms": 2000, "why": "exit 137"}),
        ));
        events.push(task(Kind::Started, "worker-3", 2, json!({"pid": 1})));
        events.push(task(Kind::Ended, "worker-1", 1, json!({"exit_code": 0, "explanation": null})));
        events.push(task(Kind::Ended, "worker-5", 1, json!({"exit_code": 0, "explanation": null})));
        events.push(Event::of_job(Kind::Stopping, json!({"why": "interrupted"})));
        assert_eq!(
            lines(&events),
            [
                "waiting: 2 GPUs of 2 in use, place 1",
                "worker-0 to worker-7 started",
                "ps-0 started",
                "ps-0 ready",
                "worker-3 ended: exit 137, memory limit 2 GiB reached",
                "worker-3 is retried: attempt 2 of the role in 2.0 s, exit 137",
                "worker-3 started, attempt 2",
                "worker-1, worker-5 ended",
                "ending: interrupted"
            ]
        );
    }

    #[test]
    fn details_are_printed_in_words() {
        let details = |kind, detail| describe_details(&task(kind, "a-0", 1, detail));
        assert_eq!(
            details(Kind::Sampled, json!({"cpu_usec": 1_500_000, "memory": 1_048_576})),
            "CPU 1.5 s, memory 1.0 MiB"
        );
        assert_eq!(details(Kind::Mounted, json!({"mounts": ["/data", "/out"]})), "mounts /data, /out");
        assert_eq!(details(Kind::NotReady, json!({"why": "\u{1b}[2J"})), "\\u{1b}[2J");
        assert_eq!(details(Kind::Paused, Value::Null), "");
    }
}
