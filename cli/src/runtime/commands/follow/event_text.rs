//! The events of a job, as text.

use jobc_job::event::{Event, Kind, describe, next_attempt};
use jobc_sys::id::TaskId;

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
    let details = escape_control(&describe(event));
    let is_set = |key: &str| event.detail[key] == true;
    let text = match event.event {
        Kind::Queued => format!("waiting: {details}"),
        Kind::DataReady => format!("data ready: {details}"),
        Kind::Started if event.attempt > Some(1) => format!(" started, attempt {}", event.attempt?),
        Kind::Started => " started".to_owned(),
        Kind::Ready => " ready".to_owned(),
        Kind::NotReady => format!(" is {details}"),
        Kind::Stalled => return Some((Tone::Failure, format!(" makes no progress: {details}"))),
        // Its end has the reason.
        Kind::Retried => format!(" is retried: {}", escape_control(&next_attempt(event)?)),
        // A permanent change is also a note in the record, which is printed as well.
        Kind::NetworkChanged if event.detail["uplink"] == "lost" => {
            format!("the uplink of the job network is lost: {details}")
        }
        Kind::NetworkChanged if event.detail["uplink"] == "restored" => {
            format!("the uplink of the job network is restored: {details}")
        }
        // Turns on GPUs are not shown one by one: only that it waits for the first.
        Kind::Paused if is_set("first") => details,
        Kind::Paused | Kind::Resumed if !details.is_empty() => return None,
        Kind::Paused => "paused".to_owned(),
        Kind::Suspended => "suspended".to_owned(),
        Kind::Resumed => "resumed".to_owned(),
        Kind::Stopping => return Some(stopping_line(event, &details)),
        // The end of the job is printed last, from its record.
        Kind::Ended if event.task.is_none() => return None,
        Kind::Ended if is_set("stopped") && event.detail["signal"] == "SIGKILL" => " killed".to_owned(),
        Kind::Ended if is_set("stopped") => " stopped".to_owned(),
        Kind::Ended if details == "exit 0" => " ended".to_owned(),
        // The end of the job follows, or that of its other tasks, with the same reason.
        Kind::Ended if is_set("ends_job") => return None,
        Kind::Ended | Kind::OomKilled | Kind::GpuFault => {
            return Some((Tone::Failure, format!(": {details}")));
        }
        _ => return None,
    };
    Some((Tone::Progress, text))
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

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
}
