//! The output, the events and the measurements of a job: once, or as they come.

use hyper::header::HeaderName;
use jobc_place::state::JobState;
use jobc_place::time::Time;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::reference::reference;
use crate::call::Call;
use crate::endpoint::{Endpoint, handler, schema};
use crate::follow::event::Id;
use crate::follow::{Follower, Format};
use crate::own::Own;
use crate::problem::Problem;
use crate::reply::{Answer, json};

/// Lines of an answer, for each task.
const DEFAULT_TAIL: u32 = 1000;
/// Milliseconds that a source of a log begins before its first follower reads what is on disk.
const OVERLAP: u64 = 2000;
/// The recorded samples that are shown, in bytes of their file.
const MAX_SAMPLES_BYTES: u64 = 4 << 20;
/// Media types of endpoints that can be followed.
const EVENTS: &[&str] = &["text/event-stream"];

/// Which lines are shown.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogQuery {
    /// Tasks or roles, with commas between [default: all].
    #[serde(default)]
    pub(crate) task: Option<String>,
    /// Only this attempt of each task.
    #[serde(default)]
    pub(crate) attempt: Option<u32>,
    /// Lines from the end of each task's output [default: 1000; of a stream all].
    #[serde(default)]
    pub(crate) tail: Option<u32>,
    /// Only lines newer than a time (RFC 3339).
    #[serde(default)]
    pub(crate) since: Option<String>,
    /// `1` for a stream of events, as with `Accept: text/event-stream`.
    #[serde(default)]
    #[schemars(range(max = 1))]
    pub(crate) follow: Option<u8>,
}

/// Whether a stream is wanted.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FollowQuery {
    /// `1` for a stream of events, as with `Accept: text/event-stream`.
    #[serde(default)]
    #[schemars(range(max = 1))]
    follow: Option<u8>,
}

/// Lines of a log.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema")]
struct LogLines {
    /// The lines, as `jobc logs --format json` prints them.
    lines: Vec<serde_json::Map<String, Value>>,
    /// What `Last-Event-ID` is for the lines after them.
    next: Option<String>,
}

/// Events.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema")]
struct JobEvents {
    /// As `jobc events --format json` prints them.
    events: Vec<serde_json::Map<String, Value>>,
}

/// Measurements.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema")]
struct Samples {
    /// Those that are recorded, and one of now of a job that runs.
    samples: Vec<serde_json::Map<String, Value>>,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/jobs/{ref}/logs", "logs", "Show or follow the output of tasks", handler!(logs))
            .query(schema::<LogQuery>)
            .answer(schema::<LogLines>)
            .media(EVENTS),
        Endpoint::get("/jobs/{ref}/events", "events", "Show or follow the events of a job", handler!(events))
            .query(schema::<FollowQuery>)
            .answer(schema::<JobEvents>)
            .media(EVENTS),
        Endpoint::get(
            "/jobs/{ref}/samples",
            "samples",
            "Show or follow the resource usage of tasks",
            handler!(samples),
        )
        .query(schema::<FollowQuery>)
        .answer(schema::<Samples>)
        .media(EVENTS),
    ]
}

/// The event that a follower has got last.
fn last_event(call: &Call) -> Option<Id> {
    let header = call.headers.get(HeaderName::from_static("last-event-id"))?;
    Id::parse(header.to_str().ok()?)
}

async fn logs(call: Call) -> Answer {
    let query: LogQuery = call.query()?;
    let name = reference(&call).await?;
    let tasks: Vec<&str> = query
        .task
        .iter()
        .flat_map(|tasks| tasks.split(','))
        .map(str::trim)
        .filter(|task| !task.is_empty())
        .collect();
    let is_word = |task: &str| {
        !task.starts_with('-') && task.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    if !tasks.iter().all(|task| is_word(task)) {
        return Err(Problem::bad_request("`task` is the name of a task or a role"));
    }
    if query.since.as_deref().is_some_and(|since| Time::parse(since).is_none()) {
        return Err(Problem::bad_request("`since` is a time such as `2026-11-21T13:31:53Z`"));
    }
    let own = |options: &[String]| {
        let own = Own::about(&call.server.workspace, "logs").word("--format=json");
        let own = query.attempt.iter().fold(own, |own, attempt| own.option("--attempt", attempt));
        let own = options.iter().fold(own, Own::word);
        tasks.iter().fold(own.words(&["--", &name]), |own, task| own.word(*task))
    };
    let after = last_event(&call);
    let since = after
        .as_ref()
        .map(|id| id.time.clone())
        .filter(|time| !time.is_empty())
        .or_else(|| query.since.clone());
    let mut options: Vec<String> = since.iter().map(|since| format!("--since={since}")).collect();
    let is_followed = query.follow == Some(1) || call.wants_events();
    let tail = query.tail.or((!is_followed && since.is_none()).then_some(DEFAULT_TAIL));
    options.extend(tail.filter(|_| after.is_none()).map(|tail| format!("--tail={tail}")));
    if !is_followed {
        let finished = own(&options).run(&call.server.limits).await?;
        if finished.code != Some(0) {
            return Err(Problem::of_command(&finished));
        }
        return lines(&finished.stdout, after.as_ref());
    }
    let stream = call.server.limits.stream(&call.actor.user)?;
    // An unknown job is an error, not an empty stream.
    let state = state_of(&call, &name).await?;
    let follower = Follower::new(stream, after);
    if state.is_some_and(JobState::is_final) {
        let backlog = call.server.backlogs.open(&own(&options), Format::Log).await?;
        return Ok(follower.with_backlog(backlog).into_response());
    }
    let begin = Time::from_millis(Time::now().millis().saturating_sub(OVERLAP)).to_string();
    let live = own(&["--follow".to_owned(), format!("--since={begin}")]);
    let key = own(&["--follow".to_owned()]).command().words.clone();
    let source = call.server.followed.open(key, &live, Format::Log)?;
    // What comes from now on is in the source, and what was before is on disk.
    let (next, _) = source.position();
    let backlog = call.server.backlogs.open(&own(&options), Format::Log).await?;
    Ok(follower.with_backlog(backlog).with_source(source, next).into_response())
}

/// The state of a job; none of a sweep. One of a cluster is not asked for twice.
async fn state_of(call: &Call, name: &str) -> Result<Option<JobState>, Problem> {
    if !name.contains('/') && crate::local_jobs::LocalJobs::is_run(name) {
        let rows = super::jobs::local_rows(call).await?;
        if let Some(row) = rows.iter().find(|row| row.id == name) {
            return Ok(Some(row.state));
        }
    }
    let found = super::job::inspect(call, name).await?;
    Ok(serde_json::from_value(found["state"].clone()).ok())
}

fn lines(text: &str, after: Option<&Id>) -> Answer {
    let mut numbered = crate::follow::event::Events::new(Format::Log);
    let mut lines: Vec<Value> = vec![];
    for line in text.lines() {
        numbered.add(line.as_bytes(), &mut vec![]);
        let is_seen = after.zip(numbered.last()).is_some_and(|(after, id)| {
            id.time < after.time || id.time == after.time && id.number <= after.number
        });
        if !is_seen && let Ok(line) = serde_json::from_str(line) {
            lines.push(line);
        }
    }
    let next = numbered.last().or(after).map(|id| format!("{}_{}", id.time, id.number));
    json(&serde_json::json!({"lines": lines, "next": next}))
}

async fn events(call: Call) -> Answer {
    let query: FollowQuery = call.query()?;
    let name = reference(&call).await?;
    let own = |options: &[&str]| {
        Own::about(&call.server.workspace, "events")
            .word("--format=json")
            .words(options)
            .words(&["--", &name])
    };
    if query.follow != Some(1) && !call.wants_events() {
        let finished = own(&[]).run(&call.server.limits).await?;
        if finished.code != Some(0) {
            return Err(Problem::of_command(&finished));
        }
        return json(&serde_json::json!({"events": objects(&finished.stdout)}));
    }
    let stream = call.server.limits.stream(&call.actor.user)?;
    state_of(&call, &name).await?;
    let own = own(&["--follow"]);
    let source = call.server.followed.open(own.command().words.clone(), &own, Format::Events)?;
    // All of them, but for those that the follower has.
    let (_, first) = source.position();
    Ok(Follower::new(stream, last_event(&call)).with_source(source, first).into_response())
}

async fn samples(call: Call) -> Answer {
    let query: FollowQuery = call.query()?;
    let name = reference(&call).await?;
    let state = state_of(&call, &name).await?;
    let has_ended = state.is_some_and(JobState::is_final);
    let recorded = recorded(&call, &name).await;
    let own = |options: &[&str]| {
        Own::about(&call.server.workspace, "stats").word("--format=json").words(options).words(&["--", &name])
    };
    if query.follow != Some(1) && !call.wants_events() {
        let mut samples = objects(&recorded);
        if !has_ended {
            // A place that cannot measure has no samples, which is no error.
            let finished = own(&["--no-stream"]).run(&call.server.limits).await?;
            samples.extend(objects(&finished.stdout));
        }
        return json(&serde_json::json!({ "samples": samples }));
    }
    let stream = call.server.limits.stream(&call.actor.user)?;
    let follower = Follower::new(stream, None).with_lines(&recorded, Format::Samples);
    if has_ended {
        return Ok(follower.into_response());
    }
    let own = own(&[]);
    let source = call.server.followed.open(own.command().words.clone(), &own, Format::Samples)?;
    let (next, _) = source.position();
    Ok(follower.with_source(source, next.saturating_sub(1)).into_response())
}

/// The samples that are recorded of a job of this host, the last ones of a long job.
async fn recorded(call: &Call, name: &str) -> String {
    let Ok(directory) = call.server.jobs.find(name) else { return String::new() };
    let read = tokio::task::spawn_blocking(move || {
        use std::io::{Read as _, Seek as _, SeekFrom};
        let mut file = std::fs::File::open(directory.samples_file())?;
        let start = file.metadata()?.len().saturating_sub(MAX_SAMPLES_BYTES);
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = vec![];
        file.take(MAX_SAMPLES_BYTES).read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        // The first line may be cut, and the last one may not be complete yet.
        let from = if start == 0 { 0 } else { text.find('\n').map_or(text.len(), |at| at + 1) };
        let to = text.rfind('\n').map_or(from, |at| at + 1).max(from);
        Ok::<_, std::io::Error>(text[from..to].to_owned())
    });
    read.await.ok().and_then(Result::ok).unwrap_or_default()
}

/// The objects of lines.
fn objects(text: &str) -> Vec<Value> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}
