//! The LeaderWorkerSet of a job that serves: groups of a leader and its workers, one unless the target says `replicas`.
//!
//! Group 0 has one leader, `<job>-0`, and workers `<job>-0-<i>` from 1; other groups have their numbers there. A job of one role is a group of equal pods, of
//! which the first is the leader; in a job of two roles the first role is the leader, and the second one the workers.

use jobc_schema::Pointer;
use jobc_schema::distributed::Framework;
use jobc_schema::plan::{FileContent, Reference, RolePlan, Text};
use jobc_schema::role::{NeedState, RetryScope};
use serde_json::{Map, Value, json};

use crate::diagnostic::{Diagnostic, Location, Sink, codes};

use super::cluster::Cluster;
use super::config::Configs;
use super::naming::has_number;
use super::origins::Origins;
use super::settings::setting_at;
use super::{metadata, pod, rayjob};

/// Rejects a job that is not such a group.
pub(super) fn check(cluster: &Cluster<'_>, sink: &mut Sink) {
    let setting = Location::target(&setting_at(cluster.job, ["kind"]));
    let refuse = |at: Pointer, message: String, note: &str, sink: &mut Sink| {
        sink.push(
            Diagnostic::error(codes::KUBERNETES_KIND, message)
                .at_key(&at, "")
                .at_place(setting.clone(), "asks for a LeaderWorkerSet")
                .note(note),
        );
    };
    match &cluster.job.roles[..] {
        [leader, _] if leader.instances != 1 => refuse(
            leader.at().key("instances"),
            format!(
                "the leader of a LeaderWorkerSet is one instance, and role `{}` has {}",
                leader.name, leader.instances
            ),
            "write the role with one instance first, or `kind: jobset` for the target",
            sink,
        ),
        // Ray tells its workers apart.
        [_, worker] if worker.instances != 1 && is_ray(cluster) => {
            let numbers = rayjob::texts(worker).into_iter().filter(|(_, text)| has_number(text));
            for (place, _) in numbers {
                refuse(
                    place,
                    format!("the workers of role `{}` have no numbers in a LeaderWorkerSet", worker.name),
                    "let Ray tell them apart, or write `kind: jobset` for the target",
                    sink,
                );
            }
        }
        [_, worker] if worker.instances != 1 => refuse(
            worker.at().key("instances"),
            format!(
                "the {} workers of role `{}` would not know their numbers",
                worker.instances, worker.name
            ),
            "write leader and workers as one role, whose instance 0 is the leader, or `kind: jobset` for the target",
            sink,
        ),
        [_] | [_, _] => {}
        roles => refuse(
            Pointer::ROOT.key("roles"),
            format!(
                "a LeaderWorkerSet is a leader and its workers, and job `{}` has {} roles",
                cluster.job.name,
                roles.len()
            ),
            "write `kind: jobset` for the target",
            sink,
        ),
    }
    let of_group = |text: &Text| {
        text.references().any(|r| matches!(r, Reference::Host { .. } | Reference::Hosts { .. }))
    };
    for role in cluster.job.roles.iter().filter(|_| cluster.groups() > 1) {
        for file in &role.files {
            if matches!(&file.content, FileContent::Text(text) if of_group(text)) {
                refuse(
                    role.at().keys(["files", &file.path]),
                    format!("the file `{}` has addresses, which differ between the groups", file.path),
                    "write it in `setup`, where the variables have those of the group, or leave `replicas` out of the target",
                    sink,
                );
            }
        }
    }
    if cluster.job.roles.iter().any(|role| role.retry.max == 0) {
        sink.push(
            Diagnostic::info(
                codes::KUBERNETES_KIND,
                format!(
                    "job `{}` serves until it is deleted: what ends, with any exit code, is started again",
                    cluster.job.name
                ),
            )
            .at_place(Location::target(&setting_at(cluster.job, ["kind"])), "asks for a LeaderWorkerSet"),
        );
    }
}

fn is_ray(cluster: &Cluster<'_>) -> bool {
    cluster.job.distributed.as_ref().is_some_and(|distributed| distributed.framework == Framework::Ray)
}

/// The LeaderWorkerSet of a job.
pub(super) fn set(
    cluster: &Cluster<'_>,
    configs: &Configs,
    origins: &mut Origins,
    sink: &mut Sink,
) -> Option<Value> {
    let at = Pointer::ROOT.keys(["spec", "leaderWorkerTemplate"]);
    let mut template = |role: &RolePlan, key: &str, origins: &mut Origins| {
        let mut in_pod = Origins::below(at.keys([key, "spec"]));
        let found = pod::template(cluster, configs, role, &mut in_pod, sink);
        origins.append(in_pod);
        serde_json::to_value(found).ok()
    };
    let (leader, worker) = match &cluster.job.roles[..] {
        [one] => (None, one),
        [leader, worker] => (Some(leader), worker),
        _ => return None,
    };
    let size = leader.map_or(0, |leader| leader.instances) + worker.instances;
    origins.spec(["spec", "leaderWorkerTemplate", "size"], &worker.at().key("instances"));
    let together =
        cluster.job.roles.iter().all(|role| role.retry.max == 0 || role.retry.scope != RetryScope::Task);
    let restart = if together { "RecreateGroupOnPodRestart" } else { "None" };
    let mut group =
        Map::from_iter([("size".to_owned(), json!(size)), ("restartPolicy".to_owned(), json!(restart))]);
    if let Some(role) = cluster.job.roles.iter().find(|role| role.retry.max > 0) {
        origins.spec(["spec", "leaderWorkerTemplate", "restartPolicy"], &role.at().key("retry"));
    }
    if let Some(leader) = leader {
        group.insert("leaderTemplate".to_owned(), template(leader, "leaderTemplate", origins)?);
    }
    group.insert("workerTemplate".to_owned(), template(worker, "workerTemplate", origins)?);
    if cluster.settings.replicas.is_some() {
        origins.target(["spec", "replicas"], &["replicas"]);
    }
    let waits = worker.needs.iter().any(|need| need.state == NeedState::Ready);
    if waits {
        origins.spec(["spec", "startupPolicy"], &worker.at().key("needs"));
    }
    Some(json!({
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": metadata::workload(cluster),
        "spec": {
            "replicas": cluster.groups(),
            "startupPolicy": if waits { "LeaderReady" } else { "LeaderCreated" },
            "leaderWorkerTemplate": group,
        },
    }))
}
