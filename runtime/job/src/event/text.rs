//! Events as text.

use std::time::Duration;

use jobc_place::exit_text;
use jobc_place::time::format_duration;
use jobc_place::verdict::Verdict;
use jobc_schema::{Bytes, Seconds};
use serde_json::Value;

use super::{Event, Kind};

/// The next attempt of a retry: `attempt 2 of the role in 4 s`.
pub fn next_attempt(event: &Event) -> Option<String> {
    let attempt = event.detail["attempt"].as_u64()?;
    let scope = event.detail["scope"].as_str().filter(|scope| *scope != "task");
    let scope = scope.map(|scope| format!(" of the {scope}")).unwrap_or_default();
    let backoff = event.detail["backoff_ms"].as_u64().map(Duration::from_millis);
    let soon = backoff.map(|backoff| format!(" in {}", format_duration(backoff))).unwrap_or_default();
    Some(format!("attempt {attempt}{scope}{soon}"))
}

/// The details of an event, as text.
pub fn describe(event: &Event) -> String {
    let detail = &event.detail;
    let text = |key: &str| detail[key].as_str().map(str::to_owned);
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
        Kind::Paused => text("waits_for").map(|what| format!("waits for {what}")).unwrap_or_default(),
        Kind::Resumed => text("turn").map(|cards| format!("its turn on {cards}")).unwrap_or_default(),
        Kind::NetworkChanged => text("why").or_else(|| text("by")).unwrap_or_default(),
        Kind::NotReady | Kind::Stopping | Kind::Stalled => text("why").unwrap_or_default(),
        Kind::Retried => listed(vec![next_attempt(event), text("why")]),
        Kind::Ended => {
            let code = number("exit_code").filter(|_| event.task.is_some());
            let code = code.and_then(|code| u8::try_from(code).ok());
            let end = exit_text::describe(code, text("signal").as_deref(), text("explanation").as_deref());
            let verdict =
                detail["verdict"]["kind"].as_str().filter(|kind| *kind != Verdict::Success.as_str());
            listed(vec![end, verdict.map(|kind| format!("verdict: {kind}"))])
        }
        Kind::GpuFault => [text("gpu"), text("what")].into_iter().flatten().collect::<Vec<_>>().join(": "),
        Kind::ClockSet => {
            let seconds = detail["seconds"].as_i64().unwrap_or_default();
            let by = Seconds(seconds.unsigned_abs());
            format!("the clock of this host was set {} by {by}", if seconds < 0 { "back" } else { "forward" })
        }
        Kind::ClaimLost => text("why").unwrap_or_else(|| "its claim was written anew".to_owned()),
        Kind::Idle => {
            let seconds = number("seconds").map(|seconds| format!("for {}", Seconds(seconds)));
            let below = number("percent").map(|percent| format!("its GPUs were used less than {percent} %"));
            let parts = [below, seconds].into_iter().flatten().collect::<Vec<_>>();
            parts.join(" ")
        }
        Kind::Notified => {
            let error = text("error").map(|error| format!("failed: {error}"));
            let to = text("to").map(|to| format!("{to}: {}", error.as_deref().unwrap_or("sent")));
            listed(vec![text("on"), to])
        }
        Kind::OomKilled => number("kills").map(oom_kills).unwrap_or_default(),
        Kind::Discarded => {
            let directory = |directory: &Value| {
                let path = directory["path"].as_str().map(str::to_owned)?;
                Some(format!("{path}: {}", measured(directory["bytes"].as_u64()?)))
            };
            listed(detail["directories"].as_array().into_iter().flatten().map(directory).collect())
        }
        Kind::Sampled => {
            let cpu = number("cpu_usec").map(Duration::from_micros);
            listed(vec![
                cpu.map(|cpu| format!("CPU {}", format_duration(cpu))),
                number("memory").map(|size| format!("memory {}", measured(size))),
                number("memory_peak").map(|size| format!("peak {}", measured(size))),
            ])
        }
        _ => describe_value(detail).unwrap_or_default(),
    }
}

/// `out of memory: the kernel killed 2 processes`.
pub fn oom_kills(count: u64) -> String {
    let processes = if count == 1 { "process" } else { "processes" };
    format!("out of memory: the kernel killed {count} {processes}")
}

/// Details without a text of their own: `volume data, path /srv/data`.
fn describe_value(detail: &Value) -> Option<String> {
    match detail {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().filter_map(describe_value).collect();
            (!items.is_empty()).then(|| items.join(", "))
        }
        Value::Object(fields) => {
            let fields = fields.iter().filter_map(|(key, value)| {
                describe_value(value).map(|value| format!("{} {value}", key.replace('_', " ")))
            });
            let fields: Vec<String> = fields.collect();
            (!fields.is_empty()).then(|| fields.join(", "))
        }
        other => Some(other.to_string()),
    }
}

/// Bytes with about three digits.
fn measured(bytes: u64) -> String {
    Bytes(bytes).measured().to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn task(kind: Kind, name: &str, attempt: u32, detail: Value) -> Event {
        Event::of_task(kind, name.parse().unwrap(), attempt, detail)
    }

    #[test]
    fn details_are_printed_in_words() {
        let details = |kind, detail| describe(&task(kind, "a-0", 1, detail));
        assert_eq!(
            details(Kind::Sampled, json!({"cpu_usec": 1_500_000, "memory": 1_048_576})),
            "CPU 1.5 s, memory 1.0 MiB"
        );
        assert_eq!(details(Kind::Mounted, json!({"mounts": ["/data", "/out"]})), "mounts /data, /out");
        let directories = json!([{"path": "/opt/x", "bytes": 2048, "files": 3}]);
        assert_eq!(details(Kind::Discarded, json!({"directories": directories})), "/opt/x: 2.0 KiB");
        assert_eq!(details(Kind::Paused, Value::Null), "");
    }
}
