//! Events of jobs, as `jobc events` prints them.

use serde::Deserialize;
use serde_json::Value;

use crate::place::Event;

#[derive(Deserialize)]
struct Line {
    time: String,
    event: String,
    #[serde(default)]
    task: Option<String>,
    #[serde(default)]
    attempt: Option<u32>,
    #[serde(default)]
    detail: Value,
}

/// Reads a line; none for measurements, which come too often.
pub(super) fn read(line: &str) -> Option<Event> {
    let line: Line = serde_json::from_str(line).ok()?;
    if line.event == "sampled" {
        return None;
    }
    let number = |key: &str| line.detail.get(key).and_then(Value::as_i64);
    let failed = number("exit_code").is_some_and(|code| code != 0);
    let object = match (&line.task, line.attempt) {
        (Some(task), Some(attempt)) if attempt > 1 => format!("task/{task} (attempt {attempt})"),
        (Some(task), _) => format!("task/{task}"),
        (None, _) => "job".to_owned(),
    };
    Some(Event {
        time: line.time,
        object,
        is_warning: failed || ["note", "retrying", "lost", "failed"].contains(&line.event.as_str()),
        reason: line.event,
        message: text(&line.detail),
        count: 1,
    })
}

/// The detail of an event as text: `container: a.1.main-0, pid: 17`.
fn text(detail: &Value) -> String {
    match detail {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, value)| !value.is_null());
            fields
                .map(|(key, value)| format!("{}: {}", key.replace('_', " "), text(value)))
                .collect::<Vec<_>>()
                .join(", ")
        }
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(" "),
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, object: &str, is_warning: bool, message: &str) {
        let event = read(line).unwrap();
        assert_eq!(
            (event.object.as_str(), event.is_warning, event.message.as_str()),
            (object, is_warning, message)
        );
    }

    #[test]
    fn an_event_has_its_object_and_words() {
        check(
            r#"{"time":"t","event":"ended","task":"main-1","attempt":2,"detail":{"exit_code":1,"explanation":null}}"#,
            "task/main-1 (attempt 2)",
            true,
            "exit code: 1",
        );
        check(r#"{"time":"t","event":"submitted","detail":{"tasks":2}}"#, "job", false, "tasks: 2");
        check(
            r#"{"time":"t","event":"network-ready","detail":{"published":["a","b"]}}"#,
            "job",
            false,
            "published: a b",
        );
        assert!(read(r#"{"time":"t","event":"sampled","task":"a-0","detail":{}}"#).is_none());
        assert!(read("not JSON").is_none());
    }
}
