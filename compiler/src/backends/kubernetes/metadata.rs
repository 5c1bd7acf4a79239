//! Names, labels and annotations of objects and pods.

use std::collections::BTreeMap;

use jobc_schema::plan::RolePlan;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::backend::command::is_member;

use super::cluster::Cluster;
use super::gpu::PodRequest;
use super::kai;
use super::naming::RAY_JOB;
use super::settings::RoleSettings;
use super::shape::Shape;

/// The label with the job's name; one of the labels Kubernetes recommends.
pub(super) const NAME: &str = "app.kubernetes.io/name";
/// The label with the tool that wrote an object.
pub(super) const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The label of a pod with its role.
pub(super) const ROLE: &str = "jobc.dev/role";
/// The annotation for people; a well-known one of Kubernetes.
const DESCRIPTION: &str = "kubernetes.io/description";
/// The label that puts a job into a Kueue queue.
const QUEUE: &str = "kueue.x-k8s.io/queue-name";
/// The annotation that puts a pod of Volcano's scheduler into a queue.
const VOLCANO_QUEUE: &str = "scheduling.volcano.sh/queue-name";
/// The label with a Kueue workload priority class.
const PRIORITY: &str = "kueue.x-k8s.io/priority-class";

/// The metadata of an object that goes with the job.
pub(super) fn object(cluster: &Cluster<'_>, name: &str) -> ObjectMeta {
    let mut labels = base(cluster);
    labels.extend(cluster.settings.pod.labels.clone());
    let annotations: BTreeMap<String, String> =
        cluster.settings.pod.annotations.clone().into_iter().collect();
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: cluster.settings.namespace.clone(),
        labels: Some(labels),
        annotations: (!annotations.is_empty()).then_some(annotations),
        ..ObjectMeta::default()
    }
}

/// The metadata of the Job or JobSet itself, with its queue and description.
pub(super) fn workload(cluster: &Cluster<'_>) -> ObjectMeta {
    let mut metadata = object(cluster, &cluster.job.name);
    let labels = metadata.labels.get_or_insert_with(BTreeMap::new);
    if let Some(queue) = &cluster.settings.queue
        && let Some(name) = &queue.kueue
    {
        labels.insert(QUEUE.to_owned(), name.clone());
        labels.extend(queue.priority.clone().map(|priority| (PRIORITY.to_owned(), priority)));
    }
    if let Some((key, number)) = kai::annotation(cluster) {
        metadata.annotations.get_or_insert_with(BTreeMap::new).entry(key).or_insert(number);
    }
    if let Some(text) = &cluster.job.description {
        metadata
            .annotations
            .get_or_insert_with(BTreeMap::new)
            .entry(DESCRIPTION.to_owned())
            .or_insert_with(|| text.clone());
    }
    metadata
}

/// The metadata of a role's pods: labels of the job, of the target, then of the role.
///
/// Labels and annotations for GPUs have lower precedence than those of the user.
pub(super) fn pod(
    cluster: &Cluster<'_>,
    role: &RolePlan,
    given: Option<&PodRequest>,
    settings: &RoleSettings,
) -> ObjectMeta {
    let mut labels = base(cluster);
    // The controller makes the pods.
    labels.remove(MANAGED_BY);
    labels.insert(ROLE.to_owned(), role.name.clone());
    let mut annotations = BTreeMap::new();
    if let Some(given) = given {
        labels.extend(given.labels.iter().cloned());
        annotations.extend(given.annotations.iter().cloned());
        let queue = cluster.settings.queue.as_ref().and_then(|queue| queue.volcano.clone());
        if let (Some("volcano"), Some(queue)) = (given.scheduler, queue) {
            annotations.insert(VOLCANO_QUEUE.to_owned(), queue);
        }
    }
    // A role without GPUs belongs to the group, too.
    if let Some(queue) = kai::queue(cluster.job) {
        labels.insert(kai::QUEUE.to_owned(), queue.to_owned());
    }
    if cluster.shape == Shape::RayJob {
        labels.insert(RAY_JOB.to_owned(), cluster.job.name.clone());
    }
    annotations.extend(topology(cluster));
    labels.extend(settings.pod.labels.clone());
    labels.extend(role.labels.clone());
    annotations.extend(settings.pod.annotations.clone());
    ObjectMeta {
        labels: Some(labels),
        annotations: (!annotations.is_empty()).then_some(annotations),
        ..ObjectMeta::default()
    }
}

/// How close together Kueue must place the pods of a role. A group has the pods of two roles, one of which is a single
/// pod, in one domain: the head of a cluster and its workers.
fn topology(cluster: &Cluster<'_>) -> Vec<(String, String)> {
    let Some(topology) = cluster.settings.queue.as_ref().and_then(|queue| queue.topology.as_ref()) else {
        return vec![];
    };
    let annotation = |key: &str, value: &str| (format!("kueue.x-k8s.io/podset-{key}"), value.to_owned());
    let (key, level) = match (&topology.required, &topology.preferred) {
        (Some(level), _) => ("required-topology", level),
        (None, Some(level)) => ("preferred-topology", level),
        (None, None) => return vec![],
    };
    let mut found = vec![annotation(key, level)];
    let is_group = cluster.job.roles.len() == 2
        && cluster.job.roles.iter().any(|role| role.instances == 1)
        && cluster.job.roles.iter().all(|role| is_member(cluster.job, role));
    if is_group {
        found.push(annotation("group-name", &cluster.job.name));
    }
    found
}

fn base(cluster: &Cluster<'_>) -> BTreeMap<String, String> {
    [(NAME, cluster.job.name.as_str()), (MANAGED_BY, "jobc")]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}
