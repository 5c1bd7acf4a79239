//! The MPIJob of a job: a launcher and its workers, kubeflow.org/v2beta1.
//!
//! jobc's own ssh connects them, as everywhere else. The keys that the operator makes are mounted where nothing reads
//! them: in `~/.ssh` they would be read-only.

use jobc_schema::Pointer;
use jobc_schema::plan::{Launch, RolePlan};
use serde_json::{Map, Value, json};

use crate::diagnostic::{Diagnostic, Location, Sink, codes};

use super::cluster::Cluster;
use super::config::Configs;
use super::job::suspended;
use super::origins::Origins;
use super::settings::setting_at;
use super::{metadata, pod, policy};

/// Where the operator mounts its keys.
const OPERATOR_KEYS: &str = "/etc/jobc/mpi-operator-ssh";

/// The launcher and the workers, if the job has them.
pub(super) fn parts<'a>(cluster: &Cluster<'a>) -> Option<(&'a RolePlan, &'a RolePlan)> {
    let [first, second] = &cluster.job.roles[..] else { return None };
    let (launcher, worker) = if first.launch == Launch::None { (second, first) } else { (first, second) };
    let fits = launcher.launch == Launch::All && launcher.instances == 1 && worker.launch == Launch::None;
    fits.then_some((launcher, worker))
}

/// Rejects a job with parts that an MPIJob does not have.
pub(super) fn check(cluster: &Cluster<'_>, sink: &mut Sink) {
    let setting = Location::target(&setting_at(cluster.job, ["kind"]));
    let Some((launcher, _)) = parts(cluster) else {
        sink.push(
            Diagnostic::error(
                codes::KUBERNETES_KIND,
                format!("an MPIJob is one launcher and workers, which job `{}` does not have", cluster.job.name),
            )
            .at_key(&Pointer::ROOT.key("roles"), "")
            .at_place(setting, "asks for an MPIJob")
            .note("write a role of one instance that runs `mpirun` and one for the workers, with `distributed: {framework: mpi, roles: {ROLE: launcher, ROLE: worker}}`")
            .note("or write `kind: jobset` for the target"),
        );
        return;
    };
    if launcher.gpus().is_some() {
        sink.push(
            Diagnostic::error(
                codes::KUBERNETES_KIND,
                format!("the MPI Operator hides GPUs from the launcher `{}`", launcher.name),
            )
            .at_key(&launcher.at().keys(["resources", "gpu"]), "")
            .note("leave `gpu` out of the launcher, or write `kind: jobset` for the target"),
        );
    }
}

/// The MPIJob of a job.
pub(super) fn job(
    cluster: &Cluster<'_>,
    configs: &Configs,
    origins: &mut Origins,
    sink: &mut Sink,
) -> Option<Value> {
    let (launcher, worker) = parts(cluster)?;
    let mut replicas = Map::new();
    for (part, role) in [("Launcher", launcher), ("Worker", worker)] {
        let base = Pointer::ROOT.keys(["spec", "mpiReplicaSpecs", part]);
        let mut own = Origins::below(base.clone());
        own.spec(["replicas"], &role.at().key("instances"));
        let mut in_pod = Origins::below(base.keys(["template", "spec"]));
        let template = pod::template(cluster, configs, role, &mut in_pod, sink);
        origins.append(own);
        origins.append(in_pod);
        let mut template = serde_json::to_value(template).ok()?;
        // The operator warns about it if it also sets the other one.
        template["spec"].as_object_mut()?.remove("restartPolicy");
        let spec = json!({"replicas": role.instances, "restartPolicy": "Never", "template": template});
        replicas.insert(part.to_owned(), spec);
    }
    let distributed = cluster.job.distributed.as_ref();
    let member = distributed.and_then(|d| d.members.iter().find(|member| member.role == worker.name));
    let waits = launcher.needs.iter().any(|need| need.role == worker.name);
    if waits {
        origins.spec(["spec", "launcherCreationPolicy"], &launcher.at().key("needs"));
    }
    Some(json!({
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": metadata::workload(cluster),
        "spec": {
            "slotsPerWorker": member.map_or(1, |member| member.processes),
            "launcherCreationPolicy": if waits { "WaitForWorkersReady" } else { "AtStartup" },
            "sshAuthMountPath": OPERATOR_KEYS,
            "runPolicy": run_policy(cluster, launcher, origins),
            "mpiReplicaSpecs": replicas,
        },
    }))
}

fn run_policy(cluster: &Cluster<'_>, launcher: &RolePlan, origins: &mut Origins) -> Value {
    let mut policy = Map::from_iter([
        // Pods that still run after the launcher has ended are removed; the logs of the launcher and of failed workers
        // stay.
        ("cleanPodPolicy".to_owned(), json!("Running")),
        ("backoffLimit".to_owned(), json!(policy::restarts(launcher.retry.max))),
    ]);
    if launcher.retry.max > 0 {
        origins.spec(["spec", "runPolicy", "backoffLimit"], &launcher.at().key("retry"));
    } else {
        origins
            .fallback(["spec", "runPolicy", "backoffLimit"], "the default of jobc: nothing is tried again");
    }
    if let Some((seconds, at)) = cluster.deadline() {
        policy.insert("activeDeadlineSeconds".to_owned(), json!(seconds));
        origins.spec(["spec", "runPolicy", "activeDeadlineSeconds"], &at);
    }
    if let Some(ttl) = cluster.settings.ttl {
        policy.insert("ttlSecondsAfterFinished".to_owned(), json!(ttl.0));
        origins.target(["spec", "runPolicy", "ttlSecondsAfterFinished"], &["ttl"]);
    }
    if suspended(cluster, &mut Origins::default()).is_some() {
        policy.insert("suspend".to_owned(), json!(true));
        origins.target(["spec", "runPolicy", "suspend"], &["suspend"]);
    }
    if let Some(queue) = cluster.settings.queue.as_ref().and_then(|queue| queue.volcano.as_ref()) {
        let all: u32 = cluster.job.roles.iter().map(|role| role.instances).sum();
        let mut scheduling = json!({"queue": queue, "minAvailable": all});
        if let Some(class) = &cluster.settings.pod.priority_class {
            scheduling["priorityClass"] = json!(class);
        }
        policy.insert("schedulingPolicy".to_owned(), scheduling);
        origins.target(["spec", "runPolicy", "schedulingPolicy"], &["queue", "volcano"]);
    }
    Value::Object(policy)
}
