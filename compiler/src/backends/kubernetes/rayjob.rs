//! The RayJob of a job with `framework: ray`: ray.io/v1.
//!
//! KubeRay starts Ray in the pods of the head and the workers, and a pod of its own submits the driver and shows its
//! output. The names of the pods are KubeRay's, so no variable can say them.

use jobc_schema::Pointer;
use jobc_schema::distributed::{Framework, MemberPart};
use jobc_schema::plan::{CommandPlan, EnvPlan, FileContent, Reference, RolePlan, Text};
use serde_json::{Map, Value, json};

use crate::backend::address::render;
use crate::backend::command::argv;
use crate::diagnostic::{Diagnostic, Location, Sink, codes};

use super::address::{Expander, PodAddress};
use super::cluster::Cluster;
use super::config::Configs;
use super::job::suspended;
use super::metadata::{self, ROLE};
use super::naming::{RAY_JOB, has_number};
use super::origins::Origins;
use super::pod;
use super::policy;
use super::quantity;
use super::settings::setting_at;
use jobc_schema::shell::quote;

/// The maximum length of the name of a RayJob.
const MAX_NAME_LENGTH: usize = 47;
/// The role of the pod that submits the driver, in the label.
const SUBMITTER: &str = "driver";

/// The head and the workers, if the job is a Ray cluster.
fn parts<'a>(cluster: &Cluster<'a>) -> Option<(&'a RolePlan, Vec<&'a RolePlan>)> {
    let distributed = cluster.job.distributed.as_ref()?;
    if distributed.framework != Framework::Ray {
        return None;
    }
    let head = distributed.members.iter().find(|member| member.part == MemberPart::Head)?;
    let members = |name: &str| distributed.members.iter().any(|member| member.role == name);
    let workers: Vec<&RolePlan> = cluster.job.roles.iter().filter(|role| role.name != head.role).collect();
    let all_members = workers.iter().all(|role| members(&role.name));
    let head = cluster.role(&head.role).filter(|head| head.instances == 1 && all_members)?;
    Some((head, workers))
}

/// Rejects a job that is not a Ray cluster, and references to the pods of one.
pub(super) fn check(cluster: &Cluster<'_>, sink: &mut Sink) {
    let setting = Location::target(&setting_at(cluster.job, ["kind"]));
    let Some((head, _)) = parts(cluster) else {
        sink.push(
            Diagnostic::error(
                codes::KUBERNETES_KIND,
                format!("a RayJob is a head and workers of `framework: ray`, which job `{}` is not", cluster.job.name),
            )
            .at_key(&Pointer::ROOT.key("roles"), "")
            .at_place(setting, "asks for a RayJob")
            .note("write `distributed: {framework: ray, roles: [head, worker]}` with no other roles, or `kind: jobset` for the target"),
        );
        return;
    };
    if user_setup(head).is_some() {
        sink.push(
            Diagnostic::error(
                codes::KUBERNETES_KIND,
                format!("KubeRay starts Ray itself, before `setup` of the head `{}` could run", head.name),
            )
            .at_key(&head.at().key("setup"), "")
            .note("put it into the image, or write `kind: jobset` for the target"),
        );
    }
    for role in &cluster.job.roles {
        for (place, text) in texts(role) {
            let names_pods = |r: &Reference| matches!(r, Reference::Host { .. } | Reference::Hosts { .. });
            let why = if text.references().any(names_pods) {
                "the names of its pods are KubeRay's and not known beforehand; let Ray find them"
            } else if role.instances > 1 && has_number(text) {
                "the workers of a RayJob have no numbers; let Ray tell them apart"
            } else {
                continue;
            };
            sink.push(
                Diagnostic::error(
                    codes::KUBERNETES_KIND,
                    format!("a RayJob cannot express this of role `{}`", role.name),
                )
                .at_key(&place, "")
                .note(format!("{why}, or write `kind: jobset` for the target")),
            );
        }
    }
}

/// What the user wrote of a role that may refer to instances.
pub(super) fn texts(role: &RolePlan) -> Vec<(Pointer, &Text)> {
    let at = role.at();
    let mut found: Vec<(Pointer, &Text)> = vec![];
    for (name, value) in &role.env {
        if let EnvPlan::Text(text) = value {
            found.push((at.keys(["env", name]), text));
        }
    }
    for file in &role.files {
        if let FileContent::Text(text) = &file.content {
            found.push((at.keys(["files", &file.path]), text));
        }
    }
    // The command of a worker is `ray start`, which KubeRay writes.
    if let CommandPlan::Argv { argv, .. } = &role.command {
        found.extend(argv.iter().map(|text| (at.key("run"), text)));
    }
    found
}

/// The prefix of the command with which jobc starts Ray.
fn user_setup(head: &RolePlan) -> Option<&Text> {
    let setup = match &head.command {
        CommandPlan::Argv { setup, .. } | CommandPlan::Script { setup, .. } => setup.as_ref()?,
        CommandPlan::Image {} | CommandPlan::Args(_) => return None,
    };
    let starts_ray =
        setup.pieces().first().is_some_and(|piece| matches!(piece, jobc_schema::plan::Piece::Literal(text) if text.starts_with("env -u RAY_ADDRESS ray start")));
    (!starts_ray).then_some(setup)
}

/// A name that KubeRay refuses.
pub(super) fn check_name(cluster: &Cluster<'_>, role: &RolePlan, sink: &mut Sink) {
    let name = &cluster.job.name;
    if name.len() <= MAX_NAME_LENGTH || cluster.job.roles.first().is_none_or(|first| first.name != role.name)
    {
        return;
    }
    sink.push(
        Diagnostic::error(
            codes::KUBERNETES_NAME,
            format!("the name `{name}` has {} characters, and KubeRay takes {MAX_NAME_LENGTH}", name.len()),
        )
        .at(&Pointer::ROOT.key("name"), "")
        .note(format!("shorten it by {}", name.len() - MAX_NAME_LENGTH)),
    );
}

/// The RayJob of a job.
pub(super) fn job(
    cluster: &Cluster<'_>,
    configs: &Configs,
    origins: &mut Origins,
    sink: &mut Sink,
) -> Option<Value> {
    let (head, workers) = parts(cluster)?;
    let at = Pointer::ROOT.keys(["spec", "rayClusterSpec"]);
    let head_at = at.key("headGroupSpec");
    let head_template = template(cluster, configs, head, &head_at, origins, sink)?;
    let mut groups = vec![];
    for role in workers {
        let at = at.key("workerGroupSpecs").index(groups.len());
        let mut own = Origins::below(at.clone());
        own.spec(["replicas"], &role.at().key("instances"));
        origins.append(own);
        let n = role.instances;
        groups.push(json!({
            "groupName": role.name, "replicas": n, "minReplicas": n, "maxReplicas": n, "rayStartParams": {},
            "template": template(cluster, configs, role, &at, origins, sink)?,
        }));
    }
    origins.spec(["spec", "entrypoint"], &head.at().key("run"));
    let mut spec = Map::from_iter([
        ("entrypoint".to_owned(), json!(entrypoint(cluster, head))),
        ("shutdownAfterJobFinishes".to_owned(), json!(true)),
        ("submitterPodTemplate".to_owned(), submitter(cluster, &head_template)),
    ]);
    let mut ray = json!({"headGroupSpec": {"rayStartParams": {}, "template": head_template}});
    if !groups.is_empty() {
        ray["workerGroupSpecs"] = Value::Array(groups);
    }
    spec.insert("rayClusterSpec".to_owned(), ray);
    let retries = cluster.job.roles.iter().max_by_key(|role| role.retry.max);
    spec.insert("backoffLimit".to_owned(), json!(policy::restarts(retries.map_or(0, |role| role.retry.max))));
    match retries.filter(|role| role.retry.max > 0) {
        Some(role) => origins.spec(["spec", "backoffLimit"], &role.at().key("retry")),
        None => origins.fallback(["spec", "backoffLimit"], "the default of jobc: nothing is tried again"),
    }
    if let Some((seconds, at)) = cluster.deadline() {
        spec.insert("activeDeadlineSeconds".to_owned(), json!(seconds));
        origins.spec(["spec", "activeDeadlineSeconds"], &at);
    }
    if let Some(ttl) = cluster.settings.ttl {
        spec.insert("ttlSecondsAfterFinished".to_owned(), json!(ttl.0));
        origins.target(["spec", "ttlSecondsAfterFinished"], &["ttl"]);
    }
    if let Some(suspend) = suspended(cluster, origins) {
        spec.insert("suspend".to_owned(), json!(suspend));
    }
    let metadata = metadata::workload(cluster);
    Some(json!({"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": metadata, "spec": spec}))
}

/// The pod of a role, whose command KubeRay writes.
fn template(
    cluster: &Cluster<'_>,
    configs: &Configs,
    role: &RolePlan,
    at: &Pointer,
    origins: &mut Origins,
    sink: &mut Sink,
) -> Option<Value> {
    let mut in_pod = Origins::below(at.keys(["template", "spec"]));
    let mut template = serde_json::to_value(pod::template(cluster, configs, role, &mut in_pod, sink)).ok()?;
    let container = template["spec"]["containers"][0].as_object_mut()?;
    container.remove("command");
    container.remove("args");
    let command = [at.keys(["template", "spec", "containers", "0", "command"])];
    origins.append(in_pod.without(&command));
    Some(template)
}

/// The driver's command as one line of a shell.
fn entrypoint(cluster: &Cluster<'_>, head: &RolePlan) -> String {
    let at = PodAddress { cluster, role: head, by: Expander::Shell };
    let own = match &head.command {
        CommandPlan::Argv { argv, .. } => Some(argv.clone()),
        CommandPlan::Script { shell, script, .. } => {
            Some(shell.iter().map(Text::literal).chain([script.clone()]).collect())
        }
        CommandPlan::Image {} | CommandPlan::Args(_) => argv(cluster.job, head),
    };
    let words = own.iter().flatten().map(|text| quote(&render(text, &at)));
    words.collect::<Vec<_>>().join(" ")
}

/// CPUs of the pod that submits the driver, in thousandths, as KubeRay's own requests them.
pub(super) const SUBMITTER_CPU_MILLIS: u64 = 500;
/// Its memory in bytes.
pub(super) const SUBMITTER_MEMORY_BYTES: u64 = 200 << 20;

/// The pod that submits the driver and shows its output: the image of the head, and what the target gives all pods.
fn submitter(cluster: &Cluster<'_>, head: &Value) -> Value {
    let container = &head["spec"]["containers"][0];
    let (cpu, memory) = (format!("{SUBMITTER_CPU_MILLIS}m"), quantity::bytes(SUBMITTER_MEMORY_BYTES));
    let amounts = json!({"cpu": cpu, "memory": memory});
    let mut metadata = json!({"labels": head["metadata"]["labels"]});
    metadata["labels"][ROLE] = json!(SUBMITTER);
    metadata["labels"][RAY_JOB] = json!(cluster.job.name);
    if !cluster.settings.pod.annotations.is_empty() {
        metadata["annotations"] = json!(cluster.settings.pod.annotations);
    }
    let mut own = Map::from_iter([
        ("name".to_owned(), container["name"].clone()),
        ("image".to_owned(), container["image"].clone()),
        ("resources".to_owned(), json!({"requests": amounts, "limits": amounts})),
    ]);
    own.insert("securityContext".to_owned(), container["securityContext"].clone());
    let mut spec = Map::from_iter([
        ("restartPolicy".to_owned(), json!("Never")),
        ("containers".to_owned(), json!([own])),
    ]);
    for key in [
        "imagePullSecrets",
        "serviceAccountName",
        "schedulerName",
        "priorityClassName",
        "nodeSelector",
        "tolerations",
    ] {
        if !head["spec"][key].is_null() {
            spec.insert(key.to_owned(), head["spec"][key].clone());
        }
    }
    json!({"metadata": metadata, "spec": spec})
}
