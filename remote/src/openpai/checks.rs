//! What is asked of the server before a job is submitted.

use std::collections::BTreeMap;

use serde_json::Value;

use super::api::{Info, Resources, StorageList, User, VirtualCluster};
use super::client::Client;
use super::status::ApiError;
use super::submit;
use crate::built::Manifest;
use crate::place::{AccessCheck, Problem, Submission};
use jobc_schema::percent::encode_segment;

/// The virtual cluster of a job that names none (pai, `put` of `src/rest-server/src/models/v2/job/k8s.js`).
pub(crate) const DEFAULT: &str = "default";

type VirtualClusters = BTreeMap<String, VirtualCluster>;

/// Checks a job without creating anything.
pub(crate) fn check(client: &Client, submission: &Submission<'_>) -> jobc_sys::Result<Vec<Problem>> {
    let manifest = &submit::protocol(submission)?.manifest;
    let failed = |error: ApiError| error.into_error("check the job with OpenPAI");
    let mut problems = Vec::new();
    let wanted = Some(manifest.text("/defaults/virtualCluster")).filter(|name| !name.is_empty());
    let wanted = wanted.unwrap_or(DEFAULT);
    let mut push = |is_warning, message, pointer: &str, help: Option<String>| {
        problems.push(Problem { is_warning, message, place: manifest.origin(pointer), help });
    };
    let at = "/defaults/virtualCluster";
    let clusters = client.get::<VirtualClusters>("/api/v2/virtual-clusters").map_err(failed)?;
    let usable = usable(client).map_err(failed)?;
    if let Some(cluster) = clusters.get(wanted) {
        if let Some(usable) = usable.filter(|usable| !usable.iter().any(|name| name == wanted)) {
            let message = format!("you may not use the virtual cluster `{wanted}`");
            push(false, message, at, Some(format!("you may use {}", list(usable.iter()))));
        }
        for (what, needed, there) in shortage(demand(manifest), cluster.resources_total) {
            let message = format!(
                "the job needs {needed} {what}, and the virtual cluster `{wanted}` has {there}: it will wait"
            );
            push(true, message, at, None);
        }
    } else {
        let message = format!("there is no virtual cluster `{wanted}`");
        let help =
            format!("the virtual clusters are {}; set `openpai.virtual_cluster`", list(clusters.keys()));
        push(false, message, at, Some(help));
    }
    let storages = manifest.object.pointer("/extras/storages").and_then(Value::as_array);
    if let Some(storages) = storages.filter(|storages| !storages.is_empty())
        && let Some(known) = storages_of(client).map_err(failed)?
    {
        for (index, storage) in storages.iter().enumerate() {
            let name = storage.get("name").and_then(Value::as_str).unwrap_or_default();
            if !known.iter().any(|known| known == name) {
                let message = format!("there is no storage `{name}` that you may use");
                let help = format!("the storages are {}; set `openpai.storages`", list(known.iter()));
                push(false, message, &format!("/extras/storages/{index}"), Some(help));
            }
        }
    }
    Ok(problems)
}

/// What this user has on the cluster.
pub(crate) fn access(client: &Client) -> jobc_sys::Result<Vec<AccessCheck>> {
    let failed = |error: ApiError| error.into_error("reach OpenPAI");
    let info: Info = client.get("/api/v2/info").map_err(failed)?;
    let clusters = client.get::<VirtualClusters>("/api/v2/virtual-clusters").map_err(failed)?;
    let usable = usable(client).map_err(failed)?;
    let check = |what: String, is_allowed, needed_for, is_optional| AccessCheck {
        what,
        is_allowed,
        needed_for,
        is_optional,
    };
    let mut checks = vec![
        check(format!("OpenPAI {}", info.version), true, "everything", false),
        check(format!("token of the user `{}`", client.user()), true, "everything", false),
    ];
    let target = client.access().virtual_cluster.as_str();
    let mut names: Vec<&str> = clusters.keys().map(String::as_str).collect();
    if !clusters.contains_key(target) {
        names.push(target);
    }
    for name in names {
        let is_usable = usable.as_ref().is_none_or(|usable| usable.iter().any(|known| known == name));
        let is_allowed = is_usable && clusters.contains_key(name);
        let needed_for = if name == target { "jobs of this target" } else { "jobs that name it" };
        checks.push(check(format!("virtual cluster `{name}`"), is_allowed, needed_for, name != target));
    }
    for name in storages_of(client).map_err(failed)?.unwrap_or_default() {
        checks.push(check(format!("storage `{name}`"), true, "jobs that mount it", true));
    }
    Ok(checks)
}

/// The virtual clusters that the user may use; nothing if that cannot be found out, or if it is all of them.
fn usable(client: &Client) -> Result<Option<Vec<String>>, ApiError> {
    // Called `user` up to release 0.17, and `users` since (pai, `src/rest-server/docs/swagger.yaml`).
    let user = encode_segment(&client.user());
    for path in [format!("/api/v2/users/{user}"), format!("/api/v2/user/{user}")] {
        match client.find::<User>(&path) {
            Ok(found) => {
                let found = found.filter(|user| !user.admin);
                return Ok(found.and_then(|user| user.virtual_cluster));
            }
            // Tokens of applications may not read users.
            Err(error) if error.is(401) || error.is(403) => return Ok(None),
            Err(error) if error.is_unknown_route() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// The storages that the user may mount; nothing if the release has no list of them.
fn storages_of(client: &Client) -> Result<Option<Vec<String>>, ApiError> {
    match client.find::<StorageList>("/api/v2/storages") {
        Ok(found) => Ok(found.map(|list| list.storages.into_iter().map(|storage| storage.name).collect())),
        Err(error) if error.is(401) || error.is(403) || error.is_unknown_route() => Ok(None),
        Err(error) => Err(error),
    }
}

/// What all tasks of a job need at the same time; of a job without gang allocation, what its largest task needs.
fn demand(manifest: &Manifest) -> Resources {
    let is_gang = manifest.object.pointer("/extras/gangAllocation") != Some(&Value::Bool(false));
    let mut needed = Resources::default();
    let roles = manifest.object.get("taskRoles").and_then(Value::as_object);
    for role in roles.into_iter().flatten().map(|(_, role)| role) {
        let number = |pointer: &str| role.pointer(pointer).and_then(Value::as_f64);
        let count = if is_gang { number("/instances").unwrap_or(1.0) } else { 1.0 };
        let of = |key: &str| count * number(&format!("/resourcePerInstance/{key}")).unwrap_or(0.0);
        let add = |sum: f64, more: f64| if is_gang { sum + more } else { sum.max(more) };
        needed.cpu = add(needed.cpu, of("cpu"));
        needed.memory = add(needed.memory, of("memoryMB"));
        needed.gpu = add(needed.gpu, of("gpu"));
    }
    needed
}

/// What a virtual cluster does not have: what, how much is needed, how much there is. Totals of 0 say nothing.
fn shortage(needed: Resources, there: Resources) -> Vec<(&'static str, f64, f64)> {
    [
        ("GPUs", needed.gpu, there.gpu),
        ("CPUs", needed.cpu, there.cpu),
        ("MB of memory", needed.memory, there.memory),
    ]
    .into_iter()
    .filter(|(_, needed, total)| *total > 0.0 && needed > total)
    .collect()
}

fn list<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_gang_needs_all_of_it_at_once() {
        let job = |gang: bool| {
            let role = json!({"instances": 4, "resourcePerInstance": {"cpu": 8, "memoryMB": 1024, "gpu": 8}});
            Manifest::new(
                "x",
                json!({"extras": {"gangAllocation": gang}, "taskRoles": {"a": role, "b": role}}),
            )
        };
        let there = Resources { cpu: 0.0, memory: 1e6, gpu: 32.0 };
        assert_eq!(shortage(demand(&job(true)), there), [("GPUs", 64.0, 32.0)]);
        assert_eq!(shortage(demand(&job(false)), there), []);
    }
}
