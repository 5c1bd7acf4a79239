//! Why the parts are there that no field or setting asks for by itself: each line of a manifest has a reason.

use std::collections::BTreeSet;

use jobc_schema::Pointer;
use jobc_schema::plan::RolePlan;
use serde_json::Value;

use crate::backend::PartSource::{self, Default, Spec, Target};
use crate::backend::{FilePart, Origin};

use super::cluster::Cluster;
use super::config::{Configs, file_reason};
use super::metadata::{MANAGED_BY, NAME, ROLE};
use super::naming::{RAY_JOB, TRAINJOB_STEP};
use super::object::Object;

/// Adds an origin to each part of the objects that has none.
pub(super) fn complete(cluster: &Cluster<'_>, configs: &Configs, objects: &mut [Object]) {
    for object in objects {
        let known = object.origins.iter().filter_map(|origin| match &origin.part {
            FilePart::Pointer(part) => Some(part.as_str()),
            FilePart::Line(_) => None,
        });
        let known: BTreeSet<&str> = known.collect();
        let mut visit = Visit { cluster, configs, name: &object.name, known, found: vec![] };
        visit.below(&object.value, &Pointer::ROOT, &mut vec![]);
        let found = visit.found;
        object.origins.extend(found);
    }
}

struct Visit<'a> {
    cluster: &'a Cluster<'a>,
    configs: &'a Configs,
    /// The name of the object.
    name: &'a str,
    known: BTreeSet<&'a str>,
    found: Vec<Origin>,
}

impl Visit<'_> {
    fn below<'v>(&mut self, value: &'v Value, at: &Pointer, path: &mut Vec<&'v str>) {
        let mut visit = |own: &mut Self, key: &'v str, at: Pointer, value: &'v Value| {
            if own.known.contains(at.as_str()) {
                return;
            }
            path.push(key);
            match own.reason(path) {
                Some(from) => own.found.push(Origin { part: FilePart::Pointer(at), from }),
                None => own.below(value, &at, path),
            }
            path.pop();
        };
        match value {
            Value::Object(entries) => {
                for (key, value) in entries {
                    visit(self, key, at.key(key), value);
                }
            }
            Value::Array(items) => {
                for (number, value) in items.iter().enumerate() {
                    visit(self, "", at.index(number), value);
                }
            }
            _ => {}
        }
    }

    fn reason(&self, path: &[&str]) -> Option<PartSource> {
        let job = self.cluster.job;
        Some(match path {
            ["apiVersion" | "kind"] => Default("the kind of object that can express this"),
            ["metadata", "name"] => Spec(Pointer::ROOT.key("name")),
            ["metadata", "namespace"] => setting(&["namespace"]),
            [.., "labels", key] => self.label(key),
            [.., "annotations", key] => self.annotation(key),
            ["data", key] => self.file(key)?,
            [.., "containers", "", "name"] => Default("the same in every pod, for `kubectl logs -c main`"),
            [.., "imagePullSecrets"] if job.registries.is_empty() => setting(&["image_pull_secrets"]),
            [.., "imagePullSecrets"] => Spec(Pointer::ROOT.key("registries")),
            [.., "runAsGroup"] => Spec(self.role(|role| role.user.is_some())?.at().key("user")),
            _ => Default(fixed(path)?),
        })
    }

    fn label(&self, key: &str) -> PartSource {
        match key {
            MANAGED_BY => return Default("says which objects jobc wrote"),
            NAME => return Default("selects the objects of the job, as in `kubectl get -l`"),
            ROLE => return Default("tells `jobc ps` and `jobc logs` the role of a pod"),
            RAY_JOB => return Default("by which a Service finds the pods"),
            TRAINJOB_STEP => return Default("by which Kubeflow Trainer knows the role that trains"),
            _ if key.starts_with("kueue.x-k8s.io/") => return setting(&["queue"]),
            _ => {}
        }
        let settings = self.cluster.settings;
        if let Some(role) = self.role(|role| role.labels.contains_key(key)) {
            return Spec(role.at().keys(["labels", key]));
        }
        let of_role = settings.roles.iter().find(|(_, own)| own.pod.labels.contains_key(key));
        match of_role {
            Some((role, _)) => setting(&["roles", role, "labels", key]),
            None if settings.pod.labels.contains_key(key) => setting(&["labels", key]),
            None if super::kai::queue(self.cluster.job).is_some() => setting(&["queue", "kai"]),
            None => self.of_gpu(),
        }
    }

    fn annotation(&self, key: &str) -> PartSource {
        let settings = self.cluster.settings;
        let of_role = settings.roles.iter().find(|(_, own)| own.pod.annotations.contains_key(key));
        match of_role {
            Some((role, _)) => setting(&["roles", role, "annotations", key]),
            None if settings.pod.annotations.contains_key(key) => setting(&["annotations", key]),
            None if key == "kubernetes.io/description" => Spec(Pointer::ROOT.key("description")),
            None if settings.queue.is_some() => setting(&["queue"]),
            None => self.of_gpu(),
        }
    }

    /// What the target's GPU provider needs.
    fn of_gpu(&self) -> PartSource {
        match self.role(|role| role.gpus().is_some()) {
            Some(role) => Spec(role.at().keys(["resources", "gpu"])),
            None => setting(&["gpu"]),
        }
    }

    /// The reason for a file in a ConfigMap: that of the first role that has it.
    fn file(&self, key: &str) -> Option<PartSource> {
        self.cluster.job.roles.iter().find_map(|role| {
            let (map, keys) = self.configs.roles.get(&role.name)?;
            let (path, _) = keys.iter().find(|(_, own)| own == key && map == self.name)?;
            Some(file_reason(self.cluster, role, path))
        })
    }

    fn role(&self, is_it: impl Fn(&&RolePlan) -> bool) -> Option<&RolePlan> {
        self.cluster.job.roles.iter().find(is_it)
    }
}

fn setting(keys: &[&str]) -> PartSource {
    Target(Pointer::ROOT.key("kubernetes").keys(keys.iter().copied()))
}

/// What is the same in every job of a kind.
fn fixed(path: &[&str]) -> Option<&'static str> {
    Some(match path {
        ["immutable"] => "its name is the digest of what it holds",
        [.., "subdomain"] => "the Service that gives the pods their names",
        ["spec", "clusterIP"] => "the Service only gives the pods names, and has no address",
        ["spec", "publishNotReadyAddresses"] => "pods find each other before they are ready",
        ["spec", "selector"] => "the pods that the Service stands for",
        [.., "podReplacementPolicy"] => "the only value that goes with `podFailurePolicy`",
        [.., "replicas"] => "one Job, whose indexes are the instances",
        ["spec", "runtimeRef"] => "the runtime that the target names, or that comes with the job",
        ["spec", "mlPolicy"] => "the number of nodes that Kubeflow Trainer starts",
        ["spec", "trainer"] => "the role that trains, which the runtime of the platform starts",
        ["spec", "slotsPerWorker"] => "the processes of a worker, for the host file of the operator",
        ["spec", "launcherCreationPolicy"] => "the launcher waits for ready workers only if it needs them",
        ["spec", "sshAuthMountPath"] => "where the operator's keys do not hide those of the job",
        ["spec", "runPolicy", "cleanPodPolicy"] => {
            "workers end with the launcher, and failed ones keep their logs"
        }
        ["spec", "mpiReplicaSpecs", _, "restartPolicy"] => "a failed pod is not started again in place",
        ["spec", "shutdownAfterJobFinishes"] => "the cluster ends with its job",
        ["spec", "submitterPodTemplate"] => "the pod that submits the command and shows its output",
        [.., "rayStartParams"] => "KubeRay starts Ray with the resources of the pods",
        [.., "groupName" | "minReplicas" | "maxReplicas"] => "the workers are the instances of the role",
        ["spec", "schedulerName"] => "the scheduler of Volcano Jobs",
        ["spec", "minAvailable"] | ["spec", "tasks", "", "minAvailable"] => {
            "how many pods start together, without those that wait for others"
        }
        ["spec", "maxRetry"] => "one more than the retries: Volcano counts a failure before it compares",
        ["spec", "plugins", "svc"] => "gives the pods their names, before they are ready",
        ["spec", "leaderWorkerTemplate", "size"] => "the pods of a group: the leader and its workers",
        ["spec", "leaderWorkerTemplate", "restartPolicy"] => {
            "a group that lost a pod starts again as a whole"
        }
        ["spec", "startupPolicy"] => "workers need the address of a leader that runs",
        _ => return None,
    })
}
