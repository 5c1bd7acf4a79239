//! The events of a job, as text.

use std::time::Duration;

use jobc_job::event::{Event, Kind};
use jobc_job::exit_text;
use jobc_sys::id::TaskId;
use serde_json::Value;

use super::super::jobs::format_duration;
use crate::runtime::quantity::bytes;
use crate::table::escape_control;

/// The lines for a user who waits for a job. Tasks of a role with the same event at the same time share a line.
pub(crate) fn lines(events: &[Event]) -> Vec<(Tone, String)> {
    let mut lines: Vec<EventLine> = vec![];
    for event in events {
        let Some((tone, text)) = event_line(event) else { continue };
        let role = event.task.as_ref().map(|task| task.role.clone());
        let instance = event.task.as_ref().map(|task| task.index);
        match lines.last_mut() {
            Some(last) if role.is_some() && last.role == role && last.text == text => {
                last.instances.extend(instance);
            }
            _ => lines.push(EventLine { role, instances: instance.into_iter().collect(), text, tone }),
        }
    }
    lines.iter().map(|line| (line.tone, line.line())).collect()
}

/// Whether a line reports a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Progress,
    Failure,
}

/// An event of one task, of several tasks of a role, or of the job.
struct EventLine {
    role: Option<String>,
    instances: Vec<u32>,
    /// The text after the tasks: ` started`, `: exit 3`.
    text: String,
    tone: Tone,
}

impl EventLine {
    /// `worker-0 to worker-7 started`.
    fn line(&self) -> String {
        let Self { role: Some(role), instances, text, .. } = self else { return self.text.clone() };
        let in_order = instances.windows(2).all(|two| two[1] == two[0] + 1);
        let name = |index: &u32| TaskId::new(role, *index).to_string();
        let who = match &instances[..] {
            [first, _, .., last] if in_order => format!("{} to {}", name(first), name(last)),
            _ if instances.len() > 4 => format!("{} of {role}", instances.len()),
            _ => instances.iter().map(name).collect::<Vec<_>>().join(", "),
        };
        format!("{who}{text}")
    }
}

/// The text of an event for a user who waits for the job; none for most events.
fn event_line(event: &Event) -> Option<(Tone, String)> {
    let details = describe_details(event);
    let is_set = |key: &str| event.detail[key] == true;
    let text = match event.event {
        Kind::Queued => format!("waiting: {details}"),
        Kind::DataReady => format!("data ready: {details}"),
        Kind::Started if event.attempt > Some(1) => format!(" started, attempt {}", event.attempt?),
        Kind::Started => " started".to_owned(),
        Kind::Ready => " ready".to_owned(),
        Kind::NotReady => format!(" is {details}"),
        // Its end has the reason.
        Kind::Retried => format!(" is retried: {}", next_attempt(event)?),
        // A permanent change is also a note in the record, which is printed as well.
        Kind::NetworkChanged if uplink_state(event) == "lost" => {
            format!("the uplink of the job network is lost: {details}")
        }
        Kind::NetworkChanged if uplink_state(event) == "restored" => {
            format!("the uplink of the job network is restored: {details}")
        }
        Kind::Paused => "paused".to_owned(),
        Kind::Resumed => "resumed".to_owned(),
        Kind::Stopping => return Some(stopping_line(event, &details)),
        // The end of the job is printed last, from its record.
        Kind::Ended if event.task.is_none() => return None,
        Kind::Ended if is_set("stopped") && event.detail["signal"] == "SIGKILL" => " killed".to_owned(),
        Kind::Ended if is_set("stopped") => " stopped".to_owned(),
        Kind::Ended if details == "exit 0" => " ended".to_owned(),
        // The end of the job follows, or that of its other tasks, with the same reason.
        Kind::Ended if is_set("ends_job") => return None,
        Kind::Ended | Kind::OomKilled => return Some((Tone::Failure, format!(": {details}"))),
        _ => return None,
    };
    Some((Tone::Progress, text))
}

/// The state of the uplink in an event. Older records have it as `way_out`.
fn uplink_state(event: &Event) -> &Value {
    event.detail.get("uplink").unwrap_or(&event.detail["way_out"])
}

/// The beginning of the end of a job whose tasks still run: `a-0: exit 3; stopping the other tasks`.
fn stopping_line(event: &Event, why: &str) -> (Tone, String) {
    let (state, cause) = why.split_once(": ").unwrap_or((why, ""));
    match (event.detail["task"].is_string(), state) {
        (true, "succeeded") => (Tone::Progress, format!("{cause}; stopping the other tasks")),
        (true, _) => (Tone::Failure, format!("{cause}; stopping the other tasks")),
        (false, "stopped" | "killed") => (Tone::Progress, "stopping the tasks".to_owned()),
        (false, "could not go on") => (Tone::Failure, format!("stopping the tasks: {why}")),
        // How many tasks there were is in the end of the job.
        (false, state) => (Tone::Failure, format!("stopping the tasks: {state}")),
    }
}

/// `attempt 2 of the role in 4 s`.
fn next_attempt(event: &Event) -> Option<String> {
    let attempt = event.detail["attempt"].as_u64()?;
    let scope = event.detail["scope"].as_str().filter(|scope| *scope != "task");
    let scope = scope.map(|scope| format!(" of the {}", escape_control(scope))).unwrap_or_default();
    let backoff = event.detail["backoff_ms"].as_u64().map(Duration::from_millis);
    let soon = backoff.map(|backoff| format!(" in {}", format_duration(backoff))).unwrap_or_default();
    Some(format!("attempt {attempt}{scope}{soon}"))
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
        Kind::Retried => listed(vec![next_attempt(event), text("why")]),
        Kind::Ended => {
            let code = number("exit_code").filter(|_| event.task.is_some());
            let code = code.and_then(|code| u8::try_from(code).ok());
            exit_text::describe(code, text("signal").as_deref(), text("explanation").as_deref())
                .unwrap_or_default()
        }
        Kind::OomKilled => number("kills").map(oom_kills).unwrap_or_default(),
        Kind::Discarded => {
            let directory = |directory: &Value| {
                let path = directory["path"].as_str().map(escape_control)?;
                Some(format!("{path}: {}", bytes(directory["bytes"].as_u64()?)))
            };
            listed(detail["directories"].as_array().into_iter().flatten().map(directory).collect())
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

/// `out of memory: the kernel killed 2 processes`.
pub(crate) fn oom_kills(count: u64) -> String {
    let processes = if count == 1 { "process" } else { "processes" };
    format!("out of memory: the kernel killed {count} {processes}")
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
        let ended = |name: &str, detail| task(Kind::Ended, name, 1, detail);
        events.push(ended(
            "worker-3",
            json!({"exit_code": 137, "signal": "SIGKILL",
            "explanation": "out of memory: used 2 GiB of 2 GiB"}),
        ));
        events.push(task(
            Kind::Retried,
            "worker-3",
            1,
            json!({"scope": "role", "attempt": 2, "backoff_ms": 2000, "why": "out of memory: used 2 GiB of 2 GiB"}),
        ));
        events.push(task(Kind::OomKilled, "worker-4", 1, json!({"kills": 2})));
        events.push(task(Kind::Started, "worker-3", 2, json!({"pid": 1})));
        events.push(ended("worker-1", json!({"exit_code": 0, "explanation": null})));
        events.push(ended("worker-5", json!({"exit_code": 0, "explanation": null})));
        events.push(ended("worker-6", json!({"exit_code": 141, "explanation": null})));
        events.push(ended("worker-7", json!({"exit_code": 141, "explanation": null})));
        events.push(ended("ps-0", json!({"exit_code": 139, "signal": "SIGSEGV", "ends_job": true})));
        let why = "failed: ps-0: killed by SIGSEGV (segmentation fault)";
        events.push(Event::of_job(Kind::Stopping, json!({"why": why, "task": "ps-0"})));
        events.push(ended("worker-0", json!({"exit_code": 143, "signal": "SIGTERM", "stopped": true})));
        events.push(ended("worker-2", json!({"exit_code": 137, "signal": "SIGKILL", "stopped": true})));
        let shown: Vec<String> = lines(&events)
            .into_iter()
            .map(|(tone, line)| if tone == Tone::Failure { format!("! {line}") } else { line })
            .collect();
        assert_eq!(
            shown,
            [
                "waiting: 2 GPUs of 2 in use, place 1",
                "worker-0 to worker-7 started",
                "ps-0 started",
                "ps-0 ready",
                "! worker-3: out of memory: used 2 GiB of 2 GiB",
                "worker-3 is retried: attempt 2 of the role in 2.0 s",
                "! worker-4: out of memory: the kernel killed 2 processes",
                "worker-3 started, attempt 2",
                "worker-1, worker-5 ended",
                "! worker-6, worker-7: exit 141: a reader of the pipe closed (SIGPIPE)",
                "! ps-0: killed by SIGSEGV (segmentation fault); stopping the other tasks",
                "worker-0 stopped",
                "worker-2 killed",
            ]
        );
    }

    #[test]
    fn the_reason_to_stop_is_printed_once() {
        let line = |detail| lines(&[Event::of_job(Kind::Stopping, detail)]).remove(0);
        assert_eq!(
            line(json!({"why": "stopped: 2 tasks were still running"})),
            (Tone::Progress, "stopping the tasks".to_owned())
        );
        assert_eq!(
            line(json!({"why": "timed out after 5s: 1 task was still running"})),
            (Tone::Failure, "stopping the tasks: timed out after 5s".to_owned())
        );
        assert_eq!(
            line(json!({"why": "succeeded: client-0 succeeded", "task": "client-0"})),
            (Tone::Progress, "client-0 succeeded; stopping the other tasks".to_owned())
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
        let directories = json!([{"path": "/opt/x", "bytes": 2048, "files": 3}]);
        assert_eq!(details(Kind::Discarded, json!({"directories": directories})), "/opt/x: 2.0 KiB");
        assert_eq!(details(Kind::NotReady, json!({"why": "\u{1b}[2J"})), "\\u{1b}[2J");
        assert_eq!(details(Kind::Paused, Value::Null), "");
    }
}
