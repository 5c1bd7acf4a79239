//! Starting jobs, here or at targets, and starting one again with changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::Utf8PathBuf;
use hyper::StatusCode;
use hyper::header::{HeaderValue, LOCATION};
use jobc_job::record::Record;
use jobc_process::Finished;
use jobc_schema::percent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::compile::{base, compare, with_targets_file, with_values};
use super::reference::reference;
use crate::call::Call;
use crate::endpoint::{Endpoint, handler, schema};
use crate::local_jobs::LocalJobs;
use crate::own::Own;
use crate::owners::Started;
use crate::problem::{Problem, diagnostics};
use crate::random;
use crate::reply::{Answer, json};
use crate::server::Server;
use crate::workspace::Base;

/// The path of the API.
pub(crate) const BASE: &str = "/api/v1";

/// The header that makes a request count once.
const KEY_HEADER: &str = "idempotency-key";
/// The longest key.
const MAX_KEY: usize = 200;

/// A job to start.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Submit {
    /// The job file.
    pub(crate) text: String,
    /// What the caller calls it.
    #[serde(default, rename = "name")]
    pub(crate) _name: Option<String>,
    /// The upload that relative paths in it are below.
    #[serde(default)]
    pub(crate) upload: Option<String>,
    /// The directory that relative paths in it are below [default: the first one that is open].
    #[serde(default)]
    pub(crate) directory: Option<String>,
    /// `local`, or the name of a target [default: local].
    #[serde(default)]
    pub(crate) place: Option<String>,
    /// Values of parameters.
    #[serde(default)]
    pub(crate) set: BTreeMap<String, Value>,
    /// Whether to wait for free resources of this host instead of failing [default: true].
    #[serde(default)]
    pub(crate) queue: Option<bool>,
    /// Only check the job with the place: nothing is built, sent or started.
    #[serde(default)]
    pub(crate) dry_run: bool,
}

/// A job to start again.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Rerun {
    /// The job file [default: that of the job].
    text: Option<String>,
    /// `local`, or the name of a target [default: local].
    place: Option<String>,
    /// Values of parameters, besides those that the job had.
    set: BTreeMap<String, Value>,
    /// Whether to start it; otherwise only the difference is shown.
    confirm: bool,
}

/// What was started.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Submitted {
    /// The job or the sweep, as paths take it.
    #[serde(rename = "ref")]
    pub(crate) name: Option<String>,
    /// All of them: one, or the jobs of a sweep at a target.
    pub(crate) refs: Vec<String>,
    /// Whether it is new; the same job is submitted to a target once.
    pub(crate) created: bool,
    /// `local`, or the target.
    pub(crate) place: String,
    /// Findings other than errors, as `jobc check --format json` prints them.
    pub(crate) warnings: Vec<Map<String, Value>>,
    /// Remarks of the command.
    pub(crate) notes: Vec<String>,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::change("POST", "/jobs", "submit", "Start a job", handler!(submit))
            .body(schema::<Submit>)
            .answer(schema::<Submitted>)
            .status(201),
        Endpoint::change(
            "POST",
            "/jobs/{ref}/rerun",
            "rerun",
            "Start a job again, with changes",
            handler!(rerun),
        )
        .body(schema::<Rerun>)
        .answer(schema::<Map<String, Value>>)
        .status(201),
    ]
}

async fn submit(mut call: Call) -> Answer {
    let bytes = call.bytes_of_json().await?;
    let job: Submit = Call::parse(&bytes)?;
    let key = key(&call, &bytes)?;
    // Two requests with one key at the same time: the second waits, and finds what the first has started.
    let shared = Arc::clone(&call.server);
    let _turn = if key.is_some() { Some(shared.submitting.lock().await) } else { None };
    if let Some(known) = started_before(&call, key.as_ref(), job.place.as_deref())? {
        return created(&known, StatusCode::OK);
    }
    let base = base(&call.server, job.upload.as_deref(), job.directory.as_deref()).await?;
    let submitted = start(&call, &base, &job, key, None).await?;
    created(&submitted, if job.dry_run { StatusCode::OK } else { StatusCode::CREATED })
}

fn created(submitted: &Submitted, status: StatusCode) -> Answer {
    let mut response = json(submitted)?;
    *response.status_mut() = status;
    if let Some(name) = &submitted.name
        && let Ok(location) = HeaderValue::from_str(&format!("{BASE}/jobs/{}", percent::encode_segment(name)))
    {
        response.headers_mut().insert(LOCATION, location);
    }
    Ok(response)
}

/// What a request with the same key has started. One that was refused has started nothing, and may be sent again.
///
/// # Errors
/// The key was used for another request.
fn started_before(
    call: &Call,
    key: Option<&[String; 2]>,
    place: Option<&str>,
) -> Result<Option<Submitted>, Problem> {
    match key.and_then(|key| call.server.owners.of_key(&call.actor.user, key)) {
        Some(Started::Otherwise) => {
            let detail = "the key was used for another request";
            Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail).hint("take a new key for each job"))
        }
        Some(Started::Jobs(refs)) => {
            let (name, place) = (refs.first().cloned(), place.unwrap_or("local").to_owned());
            let (warnings, notes) = (vec![], vec![]);
            Ok(Some(Submitted { name, refs, created: false, place, warnings, notes }))
        }
        None => Ok(None),
    }
}

/// The digests of the idempotency key of a request and of its body.
fn key(call: &Call, body: &[u8]) -> Result<Option<[String; 2]>, Problem> {
    let Some(key) = call.headers.get(KEY_HEADER) else { return Ok(None) };
    let key = key.to_str().ok().filter(|key| (1..=MAX_KEY).contains(&key.len()));
    let key =
        key.ok_or_else(|| Problem::bad_request(format!("`Idempotency-Key` has 1 to {MAX_KEY} characters")))?;
    let request = format!("{} {}", call.uri.path(), String::from_utf8_lossy(body));
    Ok(Some([random::digest(key), random::digest(&request)]))
}

/// Starts a job, and notes what was started. `of` is the job of this host that runs again: of a sweep, it alone.
///
/// # Errors
/// The place refuses it.
pub(crate) async fn start(
    call: &Call,
    base: &Base,
    job: &Submit,
    key: Option<[String; 2]>,
    of: Option<&str>,
) -> Result<Submitted, Problem> {
    let server = &call.server;
    let place = job.place.as_deref().unwrap_or("local");
    let is_local = place == "local";
    call.note(|notes| notes.about = format!("to {place}"));
    let own = Own::start(base, if is_local { "run" } else { "submit" }).word("--format=json");
    let own = match (is_local, job.dry_run) {
        (_, true) => own.word("--dry-run"),
        (true, false) => own.word("--detach"),
        (false, false) => own,
    };
    let own = if is_local && job.queue != Some(false) { own.word("--queue") } else { own };
    let own = if is_local { own } else { own.option("--target", place) };
    let own = of.filter(|_| is_local).into_iter().fold(own, |own, of| own.option("--retry-of", of));
    let own = with_targets_file(with_values(own, &job.set)?, server).word("-").stdin(job.text.as_str());
    let finished = own.run(&server.limits).await?;
    let mut submitted = submitted(&finished, place, !job.dry_run);
    // Some jobs of a sweep may have been started before another one was refused.
    call.note(|notes| {
        notes.started.clone_from(&submitted.refs);
        notes.key = key.filter(|_| finished.code == Some(0));
    });
    if finished.code != Some(0) {
        return Err(Problem::of_command(&finished));
    }
    if job.dry_run {
        submitted.created = false;
    }
    Ok(submitted)
}

/// What the output of a command says: IDs of this host, or objects with handles.
fn submitted(finished: &Finished, place: &str, is_started: bool) -> Submitted {
    let is_local = place == "local";
    let mut refs = vec![];
    let mut is_new = is_local && is_started;
    for line in finished.stdout.lines().filter(|line| !line.trim().is_empty()) {
        if is_local && is_started {
            refs.push(line.trim().to_owned());
        } else if let Ok(Value::Object(run)) = serde_json::from_str(line)
            && let Some(handle) = run.get("handle").and_then(Value::as_str)
        {
            refs.push(handle.to_owned());
            is_new |= run.get("created") == Some(&Value::Bool(true));
        }
    }
    let notes = finished.stderr.lines().filter_map(|line| line.strip_prefix("jobc: "));
    // The difference of a job that runs again is shown before it is started.
    let notes = notes.filter(|note| !note.starts_with("changes since ")).map(str::to_owned);
    Submitted {
        name: refs.first().cloned(),
        refs,
        created: is_new,
        place: place.to_owned(),
        warnings: diagnostics(&finished.stderr),
        notes: notes.collect(),
    }
}

async fn rerun(mut call: Call) -> Answer {
    let bytes = call.bytes_of_json().await?;
    let rerun: Rerun = Call::parse(&bytes)?;
    let name = reference(&call).await?;
    let key = key(&call, &bytes)?.filter(|_| rerun.confirm);
    let shared = Arc::clone(&call.server);
    let _turn = if key.is_some() { Some(shared.submitting.lock().await) } else { None };
    if let Some(known) = started_before(&call, key.as_ref(), rerun.place.as_deref())? {
        return created(&known, StatusCode::OK);
    }
    let (old, directory) = super::job::job_file(&call, &name)?;
    let base = base_of(&call.server, directory)?;
    let mut set = values_of(&call.server, &name);
    set.extend(rerun.set);
    let new = rerun.text.unwrap_or_else(|| old.clone());
    if !rerun.confirm {
        call.note(|notes| notes.about = format!("{name}, difference only"));
        let diff = compare(&call.server, base, &old, &new, &[]).await?;
        return json(&serde_json::json!({"diff": diff, "set": set, "diagnostics": []}));
    }
    let job = Submit {
        text: new,
        _name: None,
        upload: None,
        directory: None,
        place: rerun.place,
        set,
        queue: None,
        dry_run: false,
    };
    let of = Some(name.as_str()).filter(|name| LocalJobs::is_run(name));
    let record = Record::require(&call.server.jobs.find(&name)?)?;
    if record.sweep.is_some() && !record.state.is_final() {
        let detail = format!("`{name}` has not ended, and its next run takes its place in the sweep");
        return Err(Problem::new(StatusCode::CONFLICT, detail).hint("wait for its end, or stop it first"));
    }
    created(&start(&call, &base, &job, key, of).await?, StatusCode::CREATED)
}

/// The base directory of a job, if it is open or the server's own.
fn base_of(server: &Arc<Server>, directory: Option<String>) -> Result<Base, Problem> {
    let directory = directory.ok_or_else(|| Problem::not_found("the directory of the job is not known"))?;
    let own = server.uploads.trees();
    let real = Utf8PathBuf::from(&directory).canonicalize_utf8().ok();
    match real.filter(|real| real.starts_with(own) && real != own) {
        Some(tree) => Ok(server.workspace.own_directory(tree)),
        None => server.workspace.directory(Some(&directory)),
    }
}

/// The values of parameters that a job of this host was started with.
fn values_of(server: &Server, name: &str) -> BTreeMap<String, Value> {
    let text = server.jobs.find(name).ok().and_then(|directory| std::fs::read(directory.origin_file()).ok());
    let origin: Value = text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    let command: Vec<&str> =
        origin["command"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut values = BTreeMap::new();
    let mut words = command.into_iter();
    while let Some(word) = words.next() {
        let pair = match word.strip_prefix("--set") {
            Some("") => words.next(),
            Some(rest) => rest.strip_prefix('='),
            None => None,
        };
        if let Some((name, value)) = pair.and_then(|pair| pair.split_once('=')) {
            values.insert(name.to_owned(), Value::String(value.to_owned()));
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_handles_are_what_was_started() {
        let finished = |stdout: &str| Finished {
            code: Some(0),
            stdout: stdout.to_owned(),
            stderr: "jobc: a note\nerror: x\n".to_owned(),
        };
        let here = submitted(&finished("train.3\n"), "local", true);
        assert_eq!((here.name.as_deref(), here.created), (Some("train.3"), true));
        assert_eq!(here.notes, ["a note"]);
        let text =
            "{\"handle\": \"lab/a-1\", \"created\": false}\n{\"handle\": \"lab/a-2\", \"created\": true}\n";
        let there = submitted(&finished(text), "lab", true);
        assert_eq!((there.refs, there.created), (vec!["lab/a-1".to_owned(), "lab/a-2".to_owned()], true));
    }
}
