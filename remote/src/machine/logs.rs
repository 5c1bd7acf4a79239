//! Output of tasks, as `jobc logs` prints it.

use std::ops::ControlFlow;

use jobc_place::logs;
use jobc_place::output::LogLine;
use jobc_sys::error::Result;

use super::follow;
use super::program::Connection;
use crate::place::{LogItem, LogOutput, LogRequest};

/// Shows the output of a job's tasks.
pub(super) fn logs(
    connection: &Connection,
    id: &str,
    request: &LogRequest,
    output: LogOutput<'_>,
) -> Result<()> {
    let words = words(id, request);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    follow::lines(connection, &words, &mut |line| {
        let Some(line) = line else { return output(LogItem::Idle) };
        let Ok(line) = serde_json::from_slice::<LogLine<'_>>(line) else { return ControlFlow::Continue(()) };
        let LogLine { time, task, attempt, text, stream, .. } = line;
        let line = logs::Line { time: &time, stream, ends: true, attempt, text: text.as_bytes() };
        output(LogItem::Line { task: &task, line })
    })
}

fn words(id: &str, request: &LogRequest) -> Vec<String> {
    let mut words = vec!["logs".to_owned(), "--format".to_owned(), "json".to_owned()];
    if request.follow {
        words.push("--follow".to_owned());
    }
    let numbers = [
        ("--tail", request.tail.map(|number| number.to_string())),
        ("--attempt", request.attempt.map(|number| number.to_string())),
        ("--since", request.since.clone()),
    ];
    for (option, value) in numbers {
        words.extend(value.map(|value| format!("{option}={value}")));
    }
    words.push(id.to_owned());
    words.extend(request.tasks.iter().cloned());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_a_command() {
        let request = LogRequest {
            follow: true,
            tail: Some(5),
            since: Some("2026-01-01T00:00:00Z".to_owned()),
            attempt: None,
            tasks: vec!["main-0".to_owned()],
            is_search: false,
        };
        assert_eq!(
            words("a.1", &request).join(" "),
            "logs --format json --follow --tail=5 --since=2026-01-01T00:00:00Z a.1 main-0"
        );
    }
}
