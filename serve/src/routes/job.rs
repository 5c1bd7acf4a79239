//! `/jobs/{ref}`: one job, and what is done to it.

use hyper::header::HeaderValue;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json as value};

use super::reference::reference;
use crate::call::Call;
use crate::endpoint::{Endpoint, handler, schema};
use crate::guard::POLICY_OF_REPORTS;
use crate::own::{Own, document};
use crate::problem::Problem;
use crate::reply::{Answer, json, nothing, typed};

/// How a job is removed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RemoveQuery {
    /// Whether a running job is killed first.
    #[serde(default)]
    force: Option<bool>,
}

/// How tasks are killed.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Kill {
    /// The signal, by name or number [default: KILL].
    signal: Option<String>,
    /// Tasks or roles [default: all].
    tasks: Vec<String>,
}

/// Why a job waits or ended.
#[derive(Serialize, JsonSchema)]
struct Reasons {
    /// One sentence each.
    reasons: Vec<Reason>,
}

/// Why a job waits or ended.
#[derive(Serialize, JsonSchema)]
struct Reason {
    /// The job.
    job: String,
    /// The sentence.
    text: String,
}

/// The job file that a job was made of.
#[derive(Serialize, JsonSchema)]
struct Source {
    /// Its text.
    text: String,
    /// The base directory of relative paths in it.
    directory: Option<String>,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let done = schema::<Map<String, Value>>;
    vec![
        Endpoint::get("/jobs/{ref}", "show_job", "Show a job or a sweep", handler!(show)).answer(done),
        Endpoint::get(
            "/sweeps/{ref}",
            "show_sweep",
            "Show the jobs of a sweep with their metrics",
            handler!(sweep),
        )
        .answer(done),
        Endpoint::change("DELETE", "/jobs/{ref}", "remove", "Remove a job that has ended", handler!(remove))
            .query(schema::<RemoveQuery>)
            .status(204),
        Endpoint::change("POST", "/jobs/{ref}/stop", "stop", "Stop a job", handler!(stop)).answer(done),
        Endpoint::change("POST", "/jobs/{ref}/kill", "kill", "Send a signal to tasks", handler!(kill))
            .body(schema::<Kill>)
            .answer(done),
        Endpoint::change("POST", "/jobs/{ref}/pause", "pause", "Freeze the tasks of a job", handler!(pause))
            .answer(done),
        Endpoint::change("POST", "/jobs/{ref}/resume", "resume", "Let a job go on", handler!(resume))
            .answer(done),
        Endpoint::get("/jobs/{ref}/reasons", "reasons", "Show why a job waits or ended", handler!(reasons))
            .answer(schema::<Reasons>),
        Endpoint::get("/jobs/{ref}/source", "source", "Show the job file of a job", handler!(source))
            .answer(schema::<Source>),
        Endpoint::get(
            "/jobs/{ref}/report",
            "report",
            "Show the report of a job or a sweep",
            handler!(report),
        )
        .media(&["text/html"]),
    ]
}

async fn show(call: Call) -> Answer {
    let name = reference(&call).await?;
    json(&inspect(&call, &name).await?)
}

async fn sweep(call: Call) -> Answer {
    let name = reference(&call).await?;
    json(&jobs_of_sweep(&call, &name).await?)
}

/// The jobs of a sweep with their metrics, and which values of those are better.
async fn jobs_of_sweep(call: &Call, name: &str) -> Result<Value, Problem> {
    let jobs = Own::about(&call.server.workspace, "ps")
        .words(&["--format=json", "--", name])
        .json(&call.server.limits, &[])
        .await?;
    let ids = jobs.as_array().into_iter().flatten().filter_map(|job| job["id"].as_str());
    // Its jobs have the same metrics; some may be removed.
    let better = ids.map(|id| better(call, id)).find(|better| !better.is_empty()).unwrap_or_default();
    Ok(value!({"sweep": name, "jobs": jobs, "better": better}))
}

/// `lower` or `higher` for the metrics of a job of this host that say so.
fn better(call: &Call, id: &str) -> Map<String, Value> {
    let text = call.server.jobs.find(id).ok().and_then(|directory| std::fs::read(directory.plan_file()).ok());
    let plan: Value = text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    let roles = plan["roles"].as_array().into_iter().flatten();
    let metrics = roles.filter_map(|role| role["metrics"].as_object()).flatten();
    let ways = metrics.map(|(name, metric)| (name.clone(), metric["better"].clone()));
    ways.filter(|(_, better)| better.is_string()).collect()
}

/// A job as `jobc inspect` shows it; a sweep as `jobc ps` does.
///
/// # Errors
/// The job is unknown.
pub(crate) async fn inspect(call: &Call, name: &str) -> Result<Value, Problem> {
    let finished = Own::about(&call.server.workspace, "inspect")
        .words(&["--format=json", name])
        .run(&call.server.limits)
        .await?;
    match document(&finished, &[]) {
        Err(problem) if problem.detail.contains("is a sweep") => jobs_of_sweep(call, name).await,
        found => found,
    }
}

/// Runs a command that does something to the job, and answers with what it printed.
async fn change(call: &Call, word: &str, options: &[&str], tasks: &[String]) -> Answer {
    let name = reference(call).await?;
    call.note(|notes| notes.about.clone_from(&name));
    let own =
        Own::about(&call.server.workspace, word).word("--format=json").words(options).words(&["--", &name]);
    let finished = tasks.iter().fold(own, Own::word).run(&call.server.limits).await?;
    if finished.code != Some(0) {
        return Err(Problem::of_command(&finished));
    }
    let first = finished.stdout.lines().next().and_then(|line| serde_json::from_str::<Value>(line).ok());
    json(&first.unwrap_or_else(|| value!({"id": name})))
}

async fn remove(call: Call) -> Answer {
    let query: RemoveQuery = call.query()?;
    change(&call, "rm", if query.force == Some(true) { &["--force"] } else { &[] }, &[]).await?;
    Ok(nothing())
}

async fn stop(call: Call) -> Answer {
    change(&call, "stop", &["--no-wait"], &[]).await
}

async fn kill(mut call: Call) -> Answer {
    let kill = match call.headers.get(hyper::header::CONTENT_TYPE) {
        Some(_) => call.json::<Kill>().await?,
        None => Kill::default(),
    };
    let signal = kill.signal.map(|signal| format!("--signal={signal}"));
    let options: Vec<&str> = signal.iter().map(String::as_str).collect();
    change(&call, "kill", &options, &kill.tasks).await
}

async fn pause(call: Call) -> Answer {
    change(&call, "pause", &[], &[]).await
}

async fn resume(call: Call) -> Answer {
    change(&call, "resume", &[], &[]).await
}

async fn reasons(call: Call) -> Answer {
    let name = reference(&call).await?;
    let finished =
        Own::about(&call.server.workspace, "why").words(&["--", &name]).run(&call.server.limits).await?;
    if finished.code != Some(0) {
        return Err(Problem::of_command(&finished));
    }
    let reasons = finished.stdout.lines().filter_map(|line| line.split_once(": "));
    let reasons = reasons.map(|(job, text)| Reason { job: job.to_owned(), text: text.to_owned() });
    json(&Reasons { reasons: reasons.collect() })
}

async fn source(call: Call) -> Answer {
    let name = reference(&call).await?;
    let (text, directory) = job_file(&call, &name)?;
    json(&Source { text, directory })
}

/// The job file of a job of this host, with the base directory of its paths.
///
/// # Errors
/// The record has none.
pub(crate) fn job_file(call: &Call, name: &str) -> Result<(String, Option<String>), Problem> {
    if name.contains('/') {
        return Err(Problem::not_found(format!("the target of `{name}` keeps no job file")));
    }
    let directory = call.server.jobs.find(name)?;
    let text = std::fs::read_to_string(directory.job_file()).map_err(|_| {
        Problem::not_found(format!("`{name}` was not made of a job file, or it was not kept"))
    })?;
    let record = jobc_job::record::Record::require(&directory)?;
    Ok((text, record.directory.to_str().map(str::to_owned)))
}

async fn report(call: Call) -> Answer {
    let name = reference(&call).await?;
    let finished = Own::about(&call.server.workspace, "report")
        .words(&["--output=-", "--", &name])
        .run(&call.server.limits)
        .await?;
    if finished.code != Some(0) {
        return Err(Problem::of_command(&finished));
    }
    let mut response = typed("text/html; charset=utf-8", finished.stdout);
    // In a frame of the page, without scripts.
    let headers = response.headers_mut();
    headers.insert(hyper::header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY_OF_REPORTS));
    headers.insert(hyper::header::X_FRAME_OPTIONS, HeaderValue::from_static("SAMEORIGIN"));
    Ok(response)
}
