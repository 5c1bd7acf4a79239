//! A pod without a Job: a Pod, or for KubeShare 1 a `SharePod`, whose `spec` is that of a pod.

use jobc_schema::plan::RolePlan;
use k8s_openapi::api::core::v1::{PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use crate::diagnostic::Sink;
use crate::stdlib::providers::ObjectKind;

use super::cluster::Cluster;
use super::config::Configs;
use super::origins::Origins;
use super::{metadata, pod};

/// The object of a GPU provider.
pub(super) fn object(
    cluster: &Cluster<'_>,
    configs: &Configs,
    kind: &ObjectKind,
    origins: &mut Origins,
    sink: &mut Sink,
) -> Option<Value> {
    let [role] = &cluster.job.roles[..] else { return None };
    let (metadata, spec) = parts(cluster, configs, role, origins, sink)?;
    Some(json!({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}))
}

/// The Pod of a job of one task.
pub(super) fn pod(
    cluster: &Cluster<'_>,
    configs: &Configs,
    role: &RolePlan,
    origins: &mut Origins,
    sink: &mut Sink,
) -> Option<Value> {
    let (metadata, spec) = parts(cluster, configs, role, origins, sink)?;
    Some(json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}))
}

/// Metadata and spec, with the labels and annotations of the pod on the object itself, where a provider's controller
/// reads them.
fn parts(
    cluster: &Cluster<'_>,
    configs: &Configs,
    role: &RolePlan,
    origins: &mut Origins,
    sink: &mut Sink,
) -> Option<(ObjectMeta, PodSpec)> {
    let mut own = Origins::below(jobc_schema::Pointer::ROOT.key("spec"));
    let PodTemplateSpec { metadata: pod, spec } = pod::template(cluster, configs, role, &mut own, sink);
    origins.append(own);
    let mut spec = spec?;
    if let Some((seconds, at)) = cluster.deadline() {
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        spec.active_deadline_seconds =
            Some(spec.active_deadline_seconds.map_or(seconds, |own| own.min(seconds)));
        origins.spec(["spec", "activeDeadlineSeconds"], &at);
    }
    let mut metadata = metadata::workload(cluster);
    let pod = pod?;
    metadata.labels.get_or_insert_default().extend(pod.labels.unwrap_or_default());
    let annotations = pod.annotations.unwrap_or_default();
    if !annotations.is_empty() {
        metadata.annotations.get_or_insert_default().extend(annotations);
    }
    Some((metadata, spec))
}
