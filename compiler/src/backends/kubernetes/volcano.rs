//! The Volcano Job of a job: a task for each role.
//!
//! Volcano's controller (pkg/controllers/job of volcano-sh/volcano) names pods `<job>-<task>-<index>` and labels them
//! with the index. Its plugin `svc` makes the Service that gives them addresses, and a NetworkPolicy, which is turned
//! off: it would block all traffic from outside of the job.

use jobc_schema::Pointer;
use jobc_schema::plan::{GangPlan, Launch, RolePlan};
use jobc_schema::role::RetryScope;
use serde_json::{Map, Value, json};

use crate::diagnostic::{Diagnostic, Location, Sink, codes};

use super::cluster::Cluster;
use super::config::Configs;
use super::jobset::in_order;
use super::origins::Origins;
use super::settings::setting_at;
use super::{metadata, pod, policy};

/// The Volcano Job of a job.
pub(super) fn job(cluster: &Cluster<'_>, configs: &Configs, origins: &mut Origins, sink: &mut Sink) -> Value {
    let mut tasks = vec![];
    for role in in_order(cluster) {
        let base = Pointer::ROOT.keys(["spec", "tasks"]).index(tasks.len());
        tasks.push(task(cluster, configs, role, &base, origins, sink));
    }
    let mut spec = Map::from_iter([
        ("schedulerName".to_owned(), json!("volcano")),
        ("minAvailable".to_owned(), json!(min_available(cluster, origins))),
        // One more than the restarts: the controller counts a failure before it compares.
        ("maxRetry".to_owned(), json!(policy::restarts(max_retry(cluster, origins)).saturating_add(1))),
        ("plugins".to_owned(), plugins(cluster, origins)),
        ("tasks".to_owned(), Value::Array(tasks)),
    ]);
    if let Some(queue) = cluster.settings.queue.as_ref().and_then(|queue| queue.volcano.as_ref()) {
        spec.insert("queue".to_owned(), json!(queue));
        origins.target(["spec", "queue"], &["queue", "volcano"]);
    }
    if let Some(class) = &cluster.settings.pod.priority_class {
        spec.insert("priorityClassName".to_owned(), json!(class));
        origins.target(["spec", "priorityClassName"], &["priority_class"]);
    }
    if let Some(ttl) = cluster.settings.ttl {
        spec.insert("ttlSecondsAfterFinished".to_owned(), json!(ttl.0));
        origins.target(["spec", "ttlSecondsAfterFinished"], &["ttl"]);
    }
    if let Some(enough) = min_success(cluster, origins) {
        spec.insert("minSuccess".to_owned(), json!(enough));
    }
    json!({
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": metadata::workload(cluster),
        "spec": spec,
    })
}

fn task(
    cluster: &Cluster<'_>,
    configs: &Configs,
    role: &RolePlan,
    base: &Pointer,
    origins: &mut Origins,
    sink: &mut Sink,
) -> Value {
    let mut own = Origins::below(base.clone());
    own.spec(["name"], &role.at());
    own.spec(["replicas"], &role.at().key("instances"));
    let mut in_pod = Origins::below(base.keys(["template", "spec"]));
    let template = pod::template(cluster, configs, role, &mut in_pod, sink);
    let mut task = Map::from_iter([
        ("name".to_owned(), json!(role.name)),
        ("replicas".to_owned(), json!(role.instances)),
        ("minAvailable".to_owned(), json!(needed(cluster, role).unwrap_or(role.instances))),
        ("policies".to_owned(), Value::Array(policies(cluster, role))),
    ]);
    if role.retry.max > 0 {
        own.spec(["policies"], &role.at().key("retry"));
    } else {
        own.fallback(["policies"], "the default of jobc: nothing is tried again");
    }
    if !role.needs.is_empty() {
        let names: Vec<&str> = role.needs.iter().map(|need| need.role.as_str()).collect();
        task.insert("dependsOn".to_owned(), json!({"name": names, "iteration": "all"}));
        own.spec(["dependsOn"], &role.at().key("needs"));
    }
    task.insert("template".to_owned(), serde_json::to_value(template).expect("a pod template is plain JSON"));
    origins.append(own);
    origins.append(in_pod);
    Value::Object(task)
}

/// How many instances of a role other roles wait for, if any.
fn needed(cluster: &Cluster<'_>, role: &RolePlan) -> Option<u32> {
    let needs = cluster.job.roles.iter().flat_map(|other| &other.needs);
    needs.filter(|need| need.role == role.name).map(|need| need.min).max()
}

/// What happens when a pod of a role ends; the first matching policy decides.
fn policies(cluster: &Cluster<'_>, role: &RolePlan) -> Vec<Value> {
    let restart = match role.retry.scope {
        RetryScope::Task => "RestartPod",
        RetryScope::Role => "RestartTask",
        RetryScope::Job => "RestartJob",
    };
    let restart = if cluster.job.roles.iter().map(|role| role.instances).sum::<u32>() == 1 {
        "RestartJob"
    } else {
        restart
    };
    // It keeps the pods that have ended, whose logs show the reason; a restart does not.
    let give_up = "TerminateJob";
    let mut found = vec![];
    if role.retry.max == 0 {
        found.push(json!({"events": ["PodFailed", "PodEvicted"], "action": give_up}));
    } else if role.retry.on_exit_codes.is_empty() {
        let never = &role.retry.never_on_exit_codes;
        found.extend(never.iter().map(|code| json!({"exitCode": code, "action": give_up})));
        found.push(json!({"events": ["PodFailed", "PodEvicted"], "action": restart}));
    } else {
        let mut codes = role.retry.on_exit_codes.clone();
        codes.sort_unstable();
        codes.dedup();
        found.extend(codes.into_iter().map(|code| json!({"exitCode": code, "action": restart})));
        found.push(json!({"event": "PodEvicted", "action": restart}));
        found.push(json!({"event": "PodFailed", "action": give_up}));
    }
    if completes_alone(cluster, role) {
        found.push(json!({"event": "TaskCompleted", "action": "CompleteJob"}));
    }
    found
}

/// The roles that decide the job's success: the others only serve.
fn deciding<'a>(cluster: &Cluster<'a>) -> Vec<&'a RolePlan> {
    cluster.job.roles.iter().filter(|role| role.launch != Launch::None).collect()
}

/// Whether the job succeeds once all pods of a role have, even if pods of others still run.
fn completes_alone(cluster: &Cluster<'_>, role: &RolePlan) -> bool {
    let deciding = deciding(cluster);
    let decides = matches!(deciding[..], [only] if only.name == role.name)
        || role.completion.min_succeeded == Some(role.instances);
    decides && cluster.job.roles.len() > 1 && role.launch == Launch::All
}

/// Rejects a job whose end Volcano cannot detect.
pub(super) fn check(cluster: &Cluster<'_>, sink: &mut Sink) {
    let deciding = deciding(cluster);
    let serving = cluster.job.roles.len() - deciding.len();
    let first = deciding.iter().find(|role| role.launch == Launch::First && role.instances > 1);
    if deciding.len() < 2 || (serving == 0 && first.is_none()) {
        return;
    }
    sink.push(
        Diagnostic::error(
            codes::KUBERNETES_KIND,
            "a Volcano Job ends when one role has ended, or when all have".to_owned(),
        )
        .at_key(&deciding[1].at(), "decides with others, while pods of other roles run on")
        .at_place(Location::target(&setting_at(cluster.job, ["kind"])), "asks for a Volcano Job")
        .note("write `kind: jobset` for the target"),
    );
}

/// How many pods must fit before any starts: all, but not those that come later.
fn min_available(cluster: &Cluster<'_>, origins: &mut Origins) -> u32 {
    if cluster.job.gang != GangPlan::Auto {
        origins.spec(["spec", "minAvailable"], &Pointer::ROOT.key("gang"));
    }
    let first = cluster.job.roles.iter().filter(|role| role.needs.is_empty());
    match cluster.job.gang {
        GangPlan::None => 1,
        GangPlan::Min(min) => min,
        GangPlan::Auto | GangPlan::Required => first.map(|role| role.instances).sum(),
    }
}

fn max_retry(cluster: &Cluster<'_>, origins: &mut Origins) -> u32 {
    let role = cluster.job.roles.iter().max_by_key(|role| role.retry.max);
    if let Some(role) = role.filter(|role| role.retry.max > 0) {
        origins.spec(["spec", "maxRetry"], &role.at().key("retry"));
    }
    role.map_or(0, |role| role.retry.max)
}

/// How many pods are enough: those of the one role that decides, of which no other pod succeeds before.
fn min_success(cluster: &Cluster<'_>, origins: &mut Origins) -> Option<u32> {
    let [role] = &deciding(cluster)[..] else { return None };
    if role.launch == Launch::First && role.instances > 1 {
        origins.spec(["spec", "minSuccess"], &Pointer::ROOT.keys(["distributed", "launch"]));
        return Some(1);
    }
    let enough = role.completion.min_succeeded.filter(|n| *n < role.instances)?;
    origins.spec(["spec", "minSuccess"], &role.at().keys(["completion", "min_succeeded"]));
    Some(enough)
}

fn plugins(cluster: &Cluster<'_>, origins: &mut Origins) -> Value {
    let own = json!(["--publish-not-ready-addresses=true", "--disable-network-policy=true"]);
    let mut plugins = Map::from_iter([("svc".to_owned(), own)]);
    for (name, arguments) in &cluster.settings.volcano_plugins {
        plugins.insert(name.clone(), json!(arguments));
        origins.target(["spec", "plugins", name], &["volcano_plugins", name]);
    }
    Value::Object(plugins)
}
