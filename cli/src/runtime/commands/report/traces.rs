//! A job as OpenTelemetry spans, in the JSON encoding of OTLP (opentelemetry-proto, trace.proto).
//!
//! IDs are digests of the job's, so that the same run has the same trace each time.

use std::collections::BTreeMap;

use jobc_place::event::Event;
use jobc_place::job::JobDetail;
use jobc_place::state::JobState;
use jobc_place::task::{Attempt, TaskStatus};
use jobc_place::time::Time;
use jobc_schema::digest::Digest;
use serde_json::{Value, json};

/// `SPAN_KIND_INTERNAL`.
const INTERNAL: u32 = 1;

/// `STATUS_CODE_OK` and `STATUS_CODE_ERROR`.
const OK: u32 = 1;
const ERROR: u32 = 2;

/// A span before it has an ID.
struct Span {
    name: String,
    /// What its ID is made of, unique in the job.
    key: String,
    start: Time,
    end: Time,
    attributes: Vec<Value>,
    events: Vec<Value>,
    status: Status,
}

/// How a span ended.
enum Status {
    /// It has not ended, or its end is unknown.
    Unset,
    Ok,
    Error(String),
}

/// `ResourceSpans`: the spans of one job.
pub(super) fn resource_spans(id: &str, job: &JobDetail, events: &[Event], now: Time) -> Value {
    let summary = &job.summary;
    let start = summary.submitted.unwrap_or(now);
    let end = summary.ended.unwrap_or(now);
    let trace = Digest::of(format!("{id} {start}").as_bytes()).hex()[..32].to_owned();
    let mut by_attempt: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut of_job = vec![];
    for event in events.iter().filter(|event| event.event != "sampled") {
        let Some(shown) = span_event(event) else { continue };
        match (&event.task, event.attempt) {
            (Some(task), Some(attempt)) => {
                by_attempt.entry(format!("{task}/{attempt}")).or_default().push(shown);
            }
            _ => of_job.push(shown),
        }
    }
    let status = match summary.state {
        JobState::Succeeded => Status::Ok,
        state if state.is_final() => Status::Error(summary.end_text()),
        _ => Status::Unset,
    };
    let root = Span {
        name: summary.job.clone(),
        key: "job".to_owned(),
        start,
        end,
        attributes: vec![text("jobc.job", id), text("jobc.state", summary.state.as_str())],
        events: of_job,
        status,
    };
    let attempts = job.tasks.iter().flat_map(|task| attempts(task, end));
    let attempts = attempts.map(|mut span| {
        span.events = by_attempt.remove(&span.key).unwrap_or_default();
        span
    });
    let mut spans = vec![span(&trace, None, root)];
    let parent = spans[0]["spanId"].as_str().unwrap_or_default().to_owned();
    let below = phases(events, start, summary.started, end).into_iter().chain(attempts);
    spans.extend(below.collect::<Vec<_>>().into_iter().map(|one| span(&trace, Some(&parent), one)));
    let resource = [text("service.name", &summary.job), text("service.version", env!("CARGO_PKG_VERSION"))];
    json!({
        "resource": {"attributes": resource},
        "scopeSpans": [{"scope": {"name": "jobc", "version": env!("CARGO_PKG_VERSION")}, "spans": spans}],
    })
}

/// The times before the first task: waiting for resources, and fetching what the job needs.
fn phases(events: &[Event], submitted: Time, started: Option<Time>, end: Time) -> Vec<Span> {
    let scheduled = events.iter().find(|event| event.event == "scheduled");
    let scheduled = scheduled.and_then(|event| Time::parse(&event.time));
    let phase = |name: &str, from: Time, to: Time| Span {
        name: name.to_owned(),
        key: name.to_owned(),
        start: from,
        end: to,
        attributes: vec![],
        events: vec![],
        status: Status::Unset,
    };
    let mut found = vec![phase("queued", submitted, scheduled.or(started).unwrap_or(end))];
    found.extend(scheduled.map(|at| phase("preparing", at, started.unwrap_or(end))));
    found
}

/// The attempts of a task that were started.
fn attempts(task: &TaskStatus, job_end: Time) -> Vec<Span> {
    let name = task.task.to_string();
    let of = |attempt: Attempt| {
        let mut attributes = vec![
            text("jobc.task", &name),
            text("jobc.role", &task.task.role),
            integer("jobc.instance", task.task.index.into()),
            integer("jobc.attempt", attempt.attempt.into()),
        ];
        attributes.extend(attempt.exit_code.map(|code| integer("process.exit.code", code.into())));
        attributes.extend(task.node.iter().map(|node| text("host.name", node)));
        let status = match attempt.exit_code {
            None => Status::Unset,
            Some(0) => Status::Ok,
            Some(code) => Status::Error(attempt.reason.unwrap_or_else(|| format!("exit code {code}"))),
        };
        Some(Span {
            name: name.clone(),
            key: format!("{name}/{}", attempt.attempt),
            start: attempt.started?,
            end: attempt.ended.unwrap_or(job_end),
            attributes,
            events: vec![],
            status,
        })
    };
    task.attempts().filter_map(of).collect()
}

fn span(trace: &str, parent: Option<&str>, span: Span) -> Value {
    let digest = Digest::of(format!("{trace} {}", span.key).as_bytes());
    let mut value = json!({
        "traceId": trace,
        "spanId": &digest.hex()[..16],
        "name": span.name,
        "kind": INTERNAL,
        "startTimeUnixNano": nanoseconds(span.start),
        "endTimeUnixNano": nanoseconds(span.end.max(span.start)),
        "attributes": span.attributes,
        "events": span.events,
    });
    if let Some(parent) = parent {
        value["parentSpanId"] = json!(parent);
    }
    match span.status {
        Status::Error(message) => value["status"] = json!({"code": ERROR, "message": message}),
        Status::Ok => value["status"] = json!({"code": OK}),
        Status::Unset => {}
    }
    value
}

fn span_event(event: &Event) -> Option<Value> {
    let time = Time::parse(&event.time)?;
    let message = (!event.message.is_empty()).then(|| text("message", &event.message));
    let attributes: Vec<Value> = message.into_iter().collect();
    Some(json!({"timeUnixNano": nanoseconds(time), "name": event.event, "attributes": attributes}))
}

/// The JSON encoding of protobuf writes 64-bit numbers as strings.
fn nanoseconds(time: Time) -> String {
    (u128::from(time.millis()) * 1_000_000).to_string()
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

fn integer(key: &str, value: u64) -> Value {
    json!({"key": key, "value": {"intValue": value.to_string()}})
}

#[cfg(test)]
mod tests {
    use super::*;
    use jobc_place::job::JobSummary;

    #[test]
    fn attempts_are_spans_below_their_job() {
        let at = |millis| Some(Time::from_millis(millis));
        let mut task: TaskStatus =
            serde_json::from_value(json!({"task": "w-0", "state": "succeeded", "attempt": 2})).unwrap();
        (task.started, task.ended, task.exit_code) = (at(4000), at(6000), Some(0));
        let reason = Some("out of memory".to_owned());
        task.earlier = vec![Attempt {
            attempt: 1,
            started: at(2000),
            ended: at(3000),
            exit_code: Some(137),
            signal: None,
            reason,
            verdict: None,
            energy: None,
        }];
        let mut summary = JobSummary::new("train.1", "train", JobState::Succeeded);
        (summary.submitted, summary.started, summary.ended) = (at(1000), at(2000), at(6000));
        let event = |time: &str, event: &str, task: Option<&str>| Event {
            time: time.to_owned(),
            event: event.to_owned(),
            task: task.map(str::to_owned),
            attempt: task.map(|_| 2),
            ..Event::default()
        };
        let events = [
            event("1970-01-01T00:00:01.500Z", "scheduled", None),
            event("1970-01-01T00:00:04.500Z", "ready", Some("w-0")),
            event("1970-01-01T00:00:05.000Z", "sampled", Some("w-0")),
        ];
        let all = resource_spans("train.1", &JobDetail::new(summary, vec![task]), &events, Time::default());
        let spans = all["scopeSpans"][0]["spans"].as_array().unwrap();
        let shown: Vec<String> = spans
            .iter()
            .map(|span| {
                let text =
                    |key: &str| span[key].as_str().unwrap_or("-").trim_end_matches("000000").to_owned();
                let events: Vec<&str> = span["events"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|one| one["name"].as_str().unwrap())
                    .collect();
                let (start, end) = (text("startTimeUnixNano"), text("endTimeUnixNano"));
                let is_below = span["parentSpanId"] == spans[0]["spanId"];
                format!("{} {start} {end} {is_below} {} {events:?}", text("name"), span["status"])
            })
            .collect();
        insta::assert_snapshot!(shown.join("\n"), @r#"
        train 1000 6000 false {"code":1} ["scheduled"]
        queued 1000 1500 true null []
        preparing 1500 2000 true null []
        w-0 2000 3000 true {"code":2,"message":"out of memory"} []
        w-0 4000 6000 true {"code":1} ["ready"]
        "#);
        let ids: std::collections::BTreeSet<&str> =
            spans.iter().map(|span| span["spanId"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), spans.len());
        assert!(ids.iter().all(|id| id.len() == 16) && spans[0]["traceId"].as_str().unwrap().len() == 32);
    }
}
