//! A pod that no Job makes: KubeShare 1 takes a `SharePod`, whose `spec` is that of a pod.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde_json::{Value, json};

use crate::diagnostic::Sink;
use crate::stdlib::providers::ObjectKind;

use super::cluster::Cluster;
use super::config::Configs;
use super::origins::Origins;
use super::{metadata, pod};

/// The object, with the labels and annotations of the pod on the object itself, where the provider's controller reads
/// them.
pub(super) fn object(
    cluster: &Cluster<'_>,
    configs: &Configs,
    kind: &ObjectKind,
    origins: &mut Origins,
    sink: &mut Sink,
) -> Option<Value> {
    let [role] = &cluster.job.roles[..] else { return None };
    let mut own = Origins::below(jobc_schema::Pointer::ROOT.key("spec"));
    let PodTemplateSpec { metadata: pod, spec } = pod::template(cluster, configs, role, &mut own, sink);
    origins.append(own);
    let mut spec = spec?;
    if let Some(seconds) = cluster.job.timeout_seconds.and_then(|seconds| i64::try_from(seconds).ok()) {
        spec.active_deadline_seconds =
            Some(spec.active_deadline_seconds.map_or(seconds, |own| own.min(seconds)));
    }
    let mut metadata = metadata::workload(cluster);
    let pod = pod?;
    metadata.labels.get_or_insert_default().extend(pod.labels.unwrap_or_default());
    metadata.annotations.get_or_insert_default().extend(pod.annotations.unwrap_or_default());
    Some(json!({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}))
}
