//! `gang: native` of the target: Kubernetes' own scheduler starts all pods of the job together.
//!
//! Kubernetes 1.35 has a Workload with groups of pods, and later releases an object for each group, which need no Workload
//! (scheduling.k8s.io of kubernetes/api). The feature gate `GenericWorkload` is off by default in all of them.

use jobc_schema::Pointer;
use jobc_schema::plan::GangPlan;
use serde_json::{Map, Value, json};

use crate::backend::{FilePart, Origin, PartSource};
use crate::diagnostic::{Diagnostic, Location, Sink, codes};

use super::cluster::Cluster;
use super::kinds::{PodGang, Setting};
use super::metadata;
use super::object::Object;
use super::places::pods;
use super::release::{Release, format_release};
use super::settings::setting_at;

/// The name of the only group of a Workload.
const GROUP: &str = "all";
/// The first release with groups of pods.
const FIRST: Release = (1, 35);
/// The first release with `scheduling.k8s.io/v1beta1`.
const BETA: Release = (1, 37);

/// Whether the target and the job ask for it.
fn is_wanted(cluster: &Cluster<'_>) -> bool {
    cluster.settings.gang.is_some() && cluster.job.gang != GangPlan::None
}

/// Rejects it if the kind or its release has no field for it.
pub(super) fn check(cluster: &Cluster<'_>, sink: &mut Sink) {
    let kubernetes = cluster.releases.kubernetes;
    let kind = cluster.kind();
    if !is_wanted(cluster) || kind.gang_field(kubernetes, cluster.settings).is_some() {
        return;
    }
    let name = kind.name;
    let (message, note) = if kubernetes < FIRST {
        (
            format!(
                "`gang: native` needs Kubernetes {}, and the target has {}",
                format_release(FIRST),
                format_release(kubernetes)
            ),
            "write `queue: {kueue: NAME}` instead, or `release` if the cluster is newer".to_owned(),
        )
    } else {
        let with = match (&kind.product, kind.release(cluster.settings)) {
            (Some(product), Some(release)) => format!(" of {} {}", product.name, format_release(release)),
            _ => String::new(),
        };
        let instead = match kind.gang.last() {
            Some(known) if known.field == PodGang::PodGroup => {
                let key = kind.product.as_ref().and_then(|product| product.key).unwrap_or("release");
                format!(
                    "write `{key}: \"{}\"` if the cluster has it, or `queue: {{kueue: NAME}}` instead",
                    format_release(known.product.0)
                )
            }
            _ if kind.takes(Setting::Volcano) => {
                "write `queue: {volcano: NAME}` or `queue: {kueue: NAME}` instead".to_owned()
            }
            _ => "leave `gang` out of the target".to_owned(),
        };
        (
            format!("a {name}{with} has no field for the gangs of Kubernetes {}", format_release(kubernetes)),
            instead,
        )
    };
    sink.push(
        Diagnostic::error(codes::KUBERNETES_SETTING, message)
            .at_place(Location::target(&setting_at(cluster.job, ["gang"])), "")
            .note(note),
    );
}

/// Adds the object of the gang before the job's own, and its name to all pods.
pub(super) fn apply(cluster: &Cluster<'_>, objects: &mut Vec<Object>) {
    let kubernetes = cluster.releases.kubernetes;
    let field = cluster.kind().gang_field(kubernetes, cluster.settings).filter(|_| is_wanted(cluster));
    let Some(field) = field else { return };
    let name = &cluster.job.name;
    let (key, value) = match field {
        PodGang::Workload => ("workloadRef", json!({"name": name, "podGroup": GROUP})),
        PodGang::PodGroup => ("schedulingGroup", json!({"podGroupName": name})),
    };
    let from = || PartSource::Target(Pointer::ROOT.keys(["kubernetes", "gang"]));
    let mut first = objects.len();
    for (number, object) in objects.iter_mut().enumerate() {
        let found: Vec<Pointer> = pods(cluster, object).into_iter().map(|(at, ..)| at).collect();
        // The pod that submits to Ray is created only once the cluster runs.
        for at in found.into_iter().filter(|at| !at.as_str().contains("/submitterPodTemplate/")) {
            first = first.min(number);
            if let Some(Value::Object(spec)) = object.value.pointer_mut(at.as_str()) {
                spec.insert(key.to_owned(), value.clone());
                object.origins.push(Origin { part: FilePart::Pointer(at.key(key)), from: from() });
            }
        }
    }
    let (kind, version, spec) = group(cluster, field);
    let group = json!({
        "apiVersion": format!("scheduling.k8s.io/{version}"),
        "kind": kind,
        "metadata": metadata::object(cluster, name),
        "spec": spec,
    });
    let origins = vec![Origin { part: FilePart::Pointer(Pointer::ROOT.key("spec")), from: from() }];
    objects.insert(first, Object { kind, name: name.clone(), value: group, origins });
}

fn group(cluster: &Cluster<'_>, field: PodGang) -> (&'static str, &'static str, Map<String, Value>) {
    let gang = json!({"gang": {"minCount": min_count(cluster)}});
    match field {
        PodGang::Workload => {
            let groups = json!([{"name": GROUP, "policy": gang}]);
            ("Workload", "v1alpha1", Map::from_iter([("podGroups".to_owned(), groups)]))
        }
        PodGang::PodGroup => {
            let version = if cluster.releases.kubernetes >= BETA { "v1beta1" } else { "v1alpha2" };
            ("PodGroup", version, Map::from_iter([("schedulingPolicy".to_owned(), gang)]))
        }
    }
}

/// How many pods must fit before any starts: all that run at once, but not those that come later.
fn min_count(cluster: &Cluster<'_>) -> u32 {
    if let GangPlan::Min(min) = cluster.job.gang {
        return min;
    }
    let first = cluster.job.roles.iter().filter(|role| role.needs.is_empty());
    first.map(jobc_schema::plan::RolePlan::at_once).sum()
}
