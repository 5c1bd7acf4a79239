//! Places, and what this host has.

use camino::Utf8Path;
use serde_json::{Map, Value, json as value};

use crate::call::Call;
use crate::endpoint::{Endpoint, handler, schema};
use crate::own::{Own, document};
use crate::problem::Problem;
use crate::reply::{Answer, json};
use crate::routes::compile::{Scratch, with_targets_file};

pub(super) fn endpoints() -> Vec<Endpoint> {
    let object = schema::<Map<String, Value>>;
    let list = schema::<Vec<Map<String, Value>>>;
    vec![
        Endpoint::get("/places", "places", "List the places that run jobs", handler!(places)).answer(object),
        Endpoint::get(
            "/places/{name}",
            "place",
            "Show what a place has free, and whether it can be used",
            handler!(place),
        )
        .answer(object),
        Endpoint::get("/gpus", "gpus", "List the GPUs of this host and who has them", handler!(gpus))
            .answer(object),
        Endpoint::get("/images", "images", "List the images of this host", handler!(images)).answer(list),
        Endpoint::get("/templates", "templates", "List what a job can begin from", handler!(templates))
            .answer(object),
        Endpoint::get("/templates/{name}", "template", "Show what a job begins with", handler!(template))
            .answer(object),
        Endpoint::get("/doctor", "doctor", "Check what this host supports", handler!(doctor)).answer(object),
    ]
}

fn own(call: &Call, words: &[&str]) -> Own {
    Own::about(&call.server.workspace, words[0]).words(&words[1..]).word("--format=json")
}

async fn places(call: Call) -> Answer {
    let targets = with_targets_file(own(&call, &["targets", "ls"]), &call.server)
        .json(&call.server.limits, &[])
        .await?;
    let mut places: Vec<Value> = targets.as_array().into_iter().flatten().map(described).collect();
    if !places.iter().any(|place| place["name"] == "local") {
        places.push(described(&value!({"name": "local", "backends": ["oci"], "description": null})));
    }
    // This host first.
    places.sort_by_key(|place| place["name"] != "local");
    json(&value!({ "places": places }))
}

/// A target with what it is, and whether jobs can be started there.
fn described(target: &Value) -> Value {
    let has =
        |backend: &str| target["backends"].as_array().into_iter().flatten().any(|known| known == backend);
    let mut place = target.clone();
    let (kind, why) = match () {
        () if target["name"] == "local" => ("local", None),
        () if has("kubernetes") => ("kubernetes", None),
        () if has("slurm") => ("slurm", None),
        () if target["ssh"].is_string() || target["machine"].is_string() => ("machine", None),
        () if has("openpai") => (
            "openpai",
            Some("download `openpai/job.yaml` from the build, and submit it in OpenPAI's web portal"),
        ),
        () => ("build", Some("files are built for it, and it has no place that runs them")),
    };
    place["kind"] = kind.into();
    place["can_submit"] = why.is_none().into();
    if let Some(why) = why {
        place["why"] = why.into();
    }
    place
}

/// A name of the path as a word of a command.
fn name(call: &Call) -> Result<String, Problem> {
    let name = call.part("name");
    let is_word = !name.starts_with('-') && !name.is_empty() && name.len() < 200;
    if is_word && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c)) {
        return Ok(name.to_owned());
    }
    Err(Problem::not_found("unknown name"))
}

async fn place(call: Call) -> Answer {
    let name = name(&call)?;
    if name == "local" {
        let gpus = own(&call, &["gpu", "ls"]).json(&call.server.limits, &[]).await?;
        return json(&value!({"name": "local", "gpus": gpus}));
    }
    let ask = |word: &str| with_targets_file(own(&call, &["targets", word, &name]), &call.server);
    let finished = ask("check").run(&call.server.limits).await?;
    let check = document(&finished, &[1])?;
    // A cluster may permit to submit and not to look.
    let free = ask("free").json(&call.server.limits, &[]).await.ok();
    json(&value!({"name": name, "check": check, "free": free}))
}

async fn gpus(call: Call) -> Answer {
    let mut gpus = own(&call, &["gpu", "ls"]).json(&call.server.limits, &[]).await?;
    let leases = own(&call, &["gpu", "leases"]).json(&call.server.limits, &[]).await?;
    gpus["waiting"] = leases["waiting"].clone();
    json(&gpus)
}

async fn images(call: Call) -> Answer {
    json(&own(&call, &["image", "ls"]).json(&call.server.limits, &[]).await?)
}

async fn templates(call: Call) -> Answer {
    let finished = Own::about(&call.server.workspace, "init").word("--list").run(&call.server.limits).await?;
    if finished.code != Some(0) {
        return Err(Problem::of_command(&finished));
    }
    let templates = finished.stdout.lines().filter_map(|line| {
        let (name, description) = line.split_once("  ")?;
        let kind = if name.starts_with("std/") { "template" } else { "example" };
        Some(value!({"name": name, "description": description.trim(), "kind": kind}))
    });
    json(&value!({"templates": templates.collect::<Vec<_>>()}))
}

/// The files that begin a job of a template, and its parameters.
async fn template(call: Call) -> Answer {
    let name = name(&call)?;
    let scratch = Scratch::new(&call.server)?;
    let own = Own::about(&call.server.workspace, "init")
        .word("--force")
        .option("--example", &name)
        .word(scratch.path().as_str());
    let finished = own.run(&call.server.limits).await?;
    if finished.code != Some(0) {
        let problem = Problem::of_command(&finished);
        return Err(Problem::not_found(problem.detail.clone()));
    }
    let directory = scratch.path().to_owned();
    let files = tokio::task::spawn_blocking(move || files(&directory, &directory)).await;
    let mut files = files.map_err(|_| Problem::of_host("the files cannot be read"))??;
    let job = files.iter().position(|file| file["path"] == "job.yaml").map(|at| files.remove(at));
    let text = job.map(|job| job["text"].clone()).unwrap_or_default();
    // A targets file is the user's own.
    files.retain(|file| file["path"] != "targets.yaml");
    let shown =
        self::own(&call, &["std", "show", &name]).json(&call.server.limits, &[]).await.unwrap_or_default();
    let params =
        if shown["params"].is_array() { shown["params"].clone() } else { params_of(&call, &scratch).await };
    json(&value!({
        "name": name,
        "description": shown["description"],
        "notes": shown["notes"],
        "text": text,
        "files": files,
        "params": params,
    }))
}

/// The parameters of a job file with their values.
async fn params_of(call: &Call, scratch: &Scratch) -> Value {
    let base = call.server.workspace.own_directory(scratch.path().to_owned());
    let plan = Own::compile(&base, "plan")
        .words(&["--format=json", "job.yaml"])
        .json(&call.server.limits, &[])
        .await;
    let plan = plan.unwrap_or_default();
    let params = plan["jobs"][0]["params"].as_object().into_iter().flatten();
    params
        .map(|(name, param)| value!({"name": name, "default": param.get("value").unwrap_or(param)}))
        .collect()
}

/// The files below a directory.
fn files(top: &Utf8Path, directory: &Utf8Path) -> std::io::Result<Vec<Value>> {
    let mut found = vec![];
    for entry in directory.read_dir_utf8()? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.extend(files(top, entry.path())?);
        } else {
            let path = entry.path().strip_prefix(top).unwrap_or(entry.path()).as_str();
            found.push(value!({"path": path, "text": std::fs::read_to_string(entry.path())?}));
        }
    }
    Ok(found)
}

async fn doctor(call: Call) -> Answer {
    let finished = own(&call, &["doctor"]).run(&call.server.limits).await?;
    json(&document(&finished, &[1])?)
}
