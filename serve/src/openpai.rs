//! OpenPAI's own shapes of its REST server, as far as its clients use them to submit, read and stop jobs of this host.
//!
//! A job there is a name of a user, `ada~train`; here it is the newest run of that name.

use axum::response::{IntoResponse as _, Response};
use hyper::StatusCode;
use jobc_place::state::JobState;
use jobc_place::time::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json as value};

use crate::call::Call;
use crate::endpoint::{Endpoint, handler, schema};
use crate::own::{Own, document};
use crate::problem::Problem;
use crate::reply::{Answer, json, typed};
use crate::routes::{Scratch, Submit, inspect, job_file, local_rows, start};

/// The path of its API.
pub(crate) const BASE: &str = "/api/v2";

/// The target that jobs are built for.
const TARGETS: &str = "version: 1\ntargets:\n  openpai:\n    backends: [openpai]\n";
/// Jobs of a list, unless a limit is asked for, and the most that can be.
const DEFAULT_JOBS: usize = 5000;
const MAX_JOBS: usize = 50_000;

/// An error in OpenPAI's form.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Refusal {
    /// OpenPAI's word for it, such as `NoJobError`.
    code: String,
    /// What is wrong.
    message: String,
}

/// Which jobs are listed. What else its clients ask for is passed over.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ListQuery {
    /// Users, with commas between [default: all].
    username: Option<String>,
    /// Virtual clusters, with commas between: all jobs are in `default` [default: all].
    vc: Option<String>,
    /// States in upper case, with commas between [default: all].
    state: Option<String>,
    /// A part of the name of the job or of the user.
    keyword: Option<String>,
    /// How many are left out.
    offset: usize,
    /// How many [default: 5000].
    limit: Option<usize>,
    /// `submissionTime,ASC` for the oldest first.
    order: Option<String>,
    /// `true` for an object with `totalCount` and the jobs as `data`.
    #[serde(rename = "withTotalCount")]
    with_total_count: Option<String>,
}

pub(crate) fn endpoints() -> Vec<Endpoint> {
    let object = schema::<Map<String, Value>>;
    vec![
        Endpoint::get("/jobs", "openpai_list", "List jobs, as OpenPAI does", handler!(list))
            .query(schema::<ListQuery>),
        Endpoint {
            action: Some("submit"),
            ..Endpoint::change("POST", "/jobs", "openpai_submit", "Start an OpenPAI job", handler!(submit))
                .answer(object)
                .status(202)
        },
        Endpoint::get("/jobs/{name}", "openpai_show", "Show a job, as OpenPAI does", handler!(show))
            .answer(object),
        Endpoint::get(
            "/jobs/{name}/attempts/{attempt}",
            "openpai_attempt",
            "Show the last attempt of a job, as OpenPAI does",
            handler!(show),
        )
        .answer(object),
        Endpoint::get(
            "/jobs/{name}/config",
            "openpai_config",
            "Show a job as an OpenPAI job",
            handler!(config),
        )
        .media(&["text/yaml"]),
        Endpoint {
            action: Some("stop"),
            ..Endpoint::change(
                "PUT",
                "/jobs/{name}/executionType",
                "openpai_stop",
                "Stop a job, as OpenPAI does",
                handler!(stop),
            )
            .answer(object)
            .status(202)
        },
    ]
}

fn refused(status: StatusCode, code: &str, message: impl Into<String>) -> Response {
    let refusal = Refusal { code: code.to_owned(), message: message.into() };
    let mut response = typed("application/json", serde_json::to_vec(&refusal).unwrap_or_default());
    *response.status_mut() = status;
    response
}

fn no_job(name: &str) -> Response {
    let message = format!("Job {} is not found.", name.escape_debug());
    refused(StatusCode::NOT_FOUND, "NoJobError", message)
}

/// The name here of a job there, which may have upper case letters and `_`.
fn local_name(name: &str) -> String {
    name.to_lowercase().replace('_', "-")
}

/// The newest run of the job that a path names, if the caller may see it.
async fn find(call: &Call) -> Result<Result<String, Response>, Problem> {
    let name = call.part("name");
    let Some((user, job)) = name.split_once('~') else { return Ok(Err(no_job(name))) };
    let job = local_name(job);
    let rows = local_rows(call).await?;
    let is_it = |id: &str| id.rsplit_once('.').is_some_and(|(name, _)| name == job);
    let found = rows.iter().map(|row| &row.id).find(|id| is_it(id) && is_for(call, user, id));
    Ok(found.cloned().ok_or_else(|| no_job(name)))
}

/// Whether a job is of a user, and the caller may see it.
fn is_for(call: &Call, user: &str, id: &str) -> bool {
    let owner = call.server.owners.is_of(user, id) || user == call.server.user && call.actor.is_operator;
    owner && (call.actor.is_operator || call.server.owners.is_of(&call.actor.user, id))
}

async fn submit(mut call: Call) -> Answer {
    let yaml =
        String::from_utf8(call.bytes().await?).map_err(|_| Problem::bad_request("the body is not UTF-8"))?;
    let base = call.server.workspace.directory(None)?;
    let finished = Own::compile(&base, "import")
        .words(&["--format=json", "-"])
        .stdin(yaml)
        .run(&call.server.limits)
        .await?;
    if finished.code != Some(0) {
        let problem = Problem::of_command(&finished);
        return Ok(refused(StatusCode::BAD_REQUEST, "InvalidParametersError", problem.detail.clone()));
    }
    let text = finished.stdout;
    let name =
        text.lines().find_map(|line| line.strip_prefix("name: ")).unwrap_or_default().trim().to_owned();
    let is_taken = |id: &str| id.rsplit_once('.').is_some_and(|(known, _)| known == name);
    if local_rows(&call).await?.iter().any(|row| is_taken(&row.id)) {
        return Ok(refused(
            StatusCode::CONFLICT,
            "ConflictJobError",
            format!("Job name {name} already exists."),
        ));
    }
    let job = Submit {
        text,
        _name: None,
        upload: None,
        directory: None,
        place: None,
        set: std::collections::BTreeMap::new(),
        queue: None,
        dry_run: false,
    };
    match start(&call, &base, &job, None, None).await {
        Ok(_) => {
            let user = &call.actor.user;
            let message = format!("Update job {user}~{name} successfully.");
            Ok(with_status(StatusCode::ACCEPTED, json(&value!({ "message": message }))?))
        }
        Err(problem) => {
            Ok(refused(StatusCode::BAD_REQUEST, "InvalidParametersError", problem.detail.clone()))
        }
    }
}

fn with_status(status: StatusCode, response: Response) -> Response {
    (status, response).into_response()
}

async fn list(call: Call) -> Answer {
    let query: ListQuery = call.query()?;
    let rows = local_rows(&call).await?;
    let is_in = |words: &Option<String>, word: &str| {
        words.as_ref().is_none_or(|words| words.split(',').any(|wanted| wanted == word))
    };
    let has_keyword = |job: &Value| {
        let keyword = query.keyword.as_deref().unwrap_or_default();
        ["name", "username"].iter().any(|name| job[name].as_str().is_some_and(|text| text.contains(keyword)))
    };
    let mut jobs: Vec<Value> = rows
        .iter()
        .filter(|row| call.actor.is_operator || call.server.owners.is_of(&call.actor.user, &row.id))
        .filter(|row| is_in(&query.state, state_word(row.state)) && is_in(&query.vc, "default"))
        .filter_map(|row| Some(summary(&call, &serde_json::from_str(&row.json).ok()?)))
        .filter(|job| is_in(&query.username, job["username"].as_str().unwrap_or_default()))
        .filter(has_keyword)
        .collect();
    if query.order.as_deref() == Some("submissionTime,ASC") {
        jobs.reverse();
    }
    let total = jobs.len();
    let limit = query.limit.unwrap_or(DEFAULT_JOBS).min(MAX_JOBS);
    let shown: Vec<Value> = jobs.into_iter().skip(query.offset).take(limit).collect();
    match query.with_total_count.as_deref() {
        Some("true") => json(&value!({"totalCount": total, "data": shown})),
        _ => json(&shown),
    }
}

/// A job of a list, from what `jobc ps` prints.
fn summary(call: &Call, job: &Value) -> Value {
    let state = serde_json::from_value(job["state"].clone()).unwrap_or(JobState::Pending);
    let count =
        job["tasks"].as_object().map_or(0, |tasks| tasks.values().filter_map(Value::as_u64).sum::<u64>());
    let owner = call.server.owners.of_job(job["id"].as_str().unwrap_or_default());
    let sub_state = match state {
        _ if state.is_final() => "Completed",
        JobState::Running | JobState::Paused | JobState::Stopping => "AttemptRunning",
        _ => "AttemptPreparing",
    };
    value!({
        "name": job["job"],
        "username": owner.unwrap_or_else(|| call.server.user.clone()),
        "state": state_word(state),
        "subState": sub_state,
        "executionType": if matches!(state, JobState::Stopped | JobState::Stopping) { "STOP" } else { "START" },
        "tags": [],
        "retries": 0,
        "retryDetails": {"user": 0, "platform": 0, "resource": 0},
        "retryDelayTime": null,
        "submissionTime": millis(&job["submitted"]),
        "createdTime": millis(&job["submitted"]),
        "launchedTime": millis(&job["started"]),
        "completedTime": millis(&job["ended"]),
        "appExitCode": job["end"]["exit_code"],
        "virtualCluster": "default",
        "totalGpuNumber": job["gpus"].as_u64().unwrap_or_default(),
        "totalTaskNumber": count,
        "debugId": job["id"],
    })
}

async fn show(call: Call) -> Answer {
    let id = match find(&call).await? {
        Ok(id) => id,
        Err(response) => return Ok(response),
    };
    let job = inspect(&call, &id).await?;
    let last = job["attempt"].as_u64().unwrap_or(1).saturating_sub(1);
    // Attempts are counted from 0 there, and only the last one is kept here.
    if !call.part("attempt").is_empty() && call.part("attempt") != last.to_string() {
        return Ok(no_job(call.part("name")));
    }
    let mut roles = Map::new();
    for task in job["tasks"].as_array().into_iter().flatten() {
        let name = task["task"].as_str().unwrap_or_default();
        let (role, index) = name.rsplit_once('-').unwrap_or((name, "0"));
        let known = roles
            .entry(role)
            .or_insert_with(|| value!({"taskRoleStatus": {"name": role}, "taskStatuses": []}));
        if let Some(statuses) = known["taskStatuses"].as_array_mut() {
            statuses.push(value!({
                "taskIndex": index.parse::<u32>().unwrap_or_default(),
                "taskState": task_word(task["state"].as_str().unwrap_or_default()),
                "attemptId": task["attempt"].as_u64().unwrap_or(1).saturating_sub(1),
                "containerId": task["container"],
                "containerIp": task["address"],
                "containerPorts": task["ports"].as_object().cloned().unwrap_or_default(),
                "containerGpus": gpus_of(task),
                "containerLog": format!("/api/v1/jobs/{id}/logs?task={name}"),
                "containerExitCode": task["exit_code"],
            }));
        }
    }
    let mut status = summary(&call, &job);
    status["totalTaskNumber"] = value!(job["tasks"].as_array().map_or(0, Vec::len));
    status["totalTaskRoleNumber"] = value!(roles.len());
    status["retries"] = value!(last);
    status["attemptId"] = value!(last);
    status["attemptState"] = status["state"].clone();
    status["appId"] = value!(id);
    status["appCreatedTime"] = status["submissionTime"].clone();
    status["appLaunchedTime"] = value!(millis(&job["started"]));
    status["appCompletedTime"] = value!(millis(&job["ended"]));
    status["appExitDiagnostics"] = job["end"]["explanation"].clone();
    json(&value!({"name": job["job"], "jobStatus": status, "taskRoles": roles}))
}

async fn config(call: Call) -> Answer {
    let id = match find(&call).await? {
        Ok(id) => id,
        Err(response) => return Ok(response),
    };
    let missing =
        || refused(StatusCode::NOT_FOUND, "NoJobConfigError", format!("Config of job {id} is not found."));
    let Ok((text, _)) = job_file(&call, &id) else { return Ok(missing()) };
    let mut base = call.server.workspace.directory(None)?;
    let scratch = Scratch::new(&call.server)?;
    let targets = scratch.path().join("targets.yaml");
    std::fs::write(&targets, TARGETS)?;
    base.permitted.push(scratch.path().to_owned());
    let own =
        Own::compile(&base, "build").words(&["--format=json", "--allow-lossy"]).option("--targets", &targets);
    let own = own.option("--output", scratch.path().join("out")).word("-").stdin(text);
    let finished = own.run(&call.server.limits).await?;
    if let Err(problem) = document(&finished, &[]).map(drop)
        && finished.code != Some(0)
    {
        return Ok(refused(StatusCode::NOT_FOUND, "NoJobConfigError", problem.detail.clone()));
    }
    let Ok(mut targets) = scratch.path().join("out").read_dir_utf8() else { return Ok(missing()) };
    let file =
        targets.find_map(|target| std::fs::read_to_string(target.ok()?.path().join("openpai/job.yaml")).ok());
    Ok(file.map_or_else(missing, |file| typed("text/yaml", file)))
}

async fn stop(mut call: Call) -> Answer {
    let body: Value = call.json().await?;
    if body["value"] != "STOP" {
        let message = "only STOP is supported: submit the job again to start it";
        return Ok(refused(StatusCode::BAD_REQUEST, "InvalidParametersError", message));
    }
    let id = match find(&call).await? {
        Ok(id) => id,
        Err(response) => return Ok(response),
    };
    call.note(|notes| notes.about.clone_from(&id));
    let finished = Own::about(&call.server.workspace, "stop")
        .words(&["--no-wait", "--", &id])
        .run(&call.server.limits)
        .await?;
    if finished.code != Some(0) {
        return Err(Problem::of_command(&finished));
    }
    let message = format!("Execute job {} successfully.", call.part("name"));
    Ok(with_status(StatusCode::ACCEPTED, json(&value!({ "message": message }))?))
}

/// The GPUs of a task, with commas between.
fn gpus_of(task: &Value) -> Option<String> {
    let gpus: Vec<&str> = task["gpus"].as_array()?.iter().filter_map(Value::as_str).collect();
    (!gpus.is_empty()).then(|| gpus.join(","))
}

fn millis(time: &Value) -> Option<u64> {
    time.as_str().and_then(Time::parse).map(Time::millis)
}

/// Its word for the state of a job.
fn state_word(state: JobState) -> &'static str {
    match state {
        JobState::Queued | JobState::Suspended | JobState::Pending | JobState::Preparing => "WAITING",
        JobState::Running | JobState::Paused => "RUNNING",
        JobState::Stopping => "STOPPING",
        JobState::Stopped => "STOPPED",
        JobState::Succeeded => "SUCCEEDED",
        JobState::Failed | JobState::TimedOut | JobState::Lost => "FAILED",
    }
}

/// Its word for the state of a task.
fn task_word(state: &str) -> &'static str {
    match state {
        "running" | "ready" | "paused" => "RUNNING",
        "succeeded" => "SUCCEEDED",
        "stopped" => "STOPPED",
        "failed" | "timed-out" | "lost" => "FAILED",
        _ => "WAITING",
    }
}
