//! The TrainJob of a job: with a TrainingRuntime made around the job's own JobSet, or with a runtime of the platform.

mod patched;

use jobc_schema::Pointer;
use serde_json::{Map, Value, json};

use crate::diagnostic::Sink;

use super::cluster::Cluster;
use super::config::Configs;
use super::job::suspended;
use super::object::Object;
use super::origins::Origins;
use super::{jobset, metadata, naming};

pub(super) use patched::check;

/// The version of both kinds.
const API_VERSION: &str = "trainer.kubeflow.org/v1alpha1";
/// The annotation of a runtime with its queue of Volcano.
const VOLCANO_QUEUE: &str = "scheduling.volcano.sh/queue-name";

/// The runtime, if the job has its own, and the TrainJob.
pub(super) fn objects(
    cluster: &Cluster<'_>,
    configs: &Configs,
    mut origins: Origins,
    sink: &mut Sink,
) -> Vec<Object> {
    let name = cluster.job.name.clone();
    if let Some(runtime) = &cluster.settings.runtime {
        let value = patched::object(cluster, runtime, configs, &mut origins, sink);
        return vec![Object { kind: "TrainJob", name, value, origins: origins.into_list() }];
    }
    let mut of_runtime = Origins::default();
    let runtime = runtime(cluster, configs, &mut of_runtime, sink);
    let value = trainjob(cluster, "TrainingRuntime", &name, Map::new(), &mut origins);
    vec![
        Object {
            kind: "TrainingRuntime",
            name: name.clone(),
            value: runtime,
            origins: of_runtime.into_list(),
        },
        Object { kind: "TrainJob", name, value, origins: origins.into_list() },
    ]
}

/// A TrainJob with the fields that are the same for every runtime.
fn trainjob(
    cluster: &Cluster<'_>,
    runtime_kind: &str,
    runtime: &str,
    own: Map<String, Value>,
    origins: &mut Origins,
) -> Value {
    let reference = json!({"apiGroup": "trainer.kubeflow.org", "kind": runtime_kind, "name": runtime});
    let mut spec = Map::from_iter([("runtimeRef".to_owned(), reference)]);
    if let Some(suspend) = suspended(cluster, origins) {
        spec.insert("suspend".to_owned(), json!(suspend));
    }
    if let Some((seconds, at)) = cluster.deadline() {
        spec.insert("activeDeadlineSeconds".to_owned(), json!(seconds));
        origins.spec(["spec", "activeDeadlineSeconds"], &at);
    }
    spec.extend(own);
    json!({"apiVersion": API_VERSION, "kind": "TrainJob", "metadata": metadata::workload(cluster), "spec": spec})
}

/// The runtime made around the JobSet of the job.
fn runtime(cluster: &Cluster<'_>, configs: &Configs, origins: &mut Origins, sink: &mut Sink) -> Value {
    let at = Pointer::ROOT.keys(["spec", "template", "spec"]);
    let set = jobset::spec(cluster, configs, &at, origins, sink).into_value();
    let nodes = naming::trainer(cluster.job);
    if let Some(role) = nodes {
        origins.spec(["spec", "mlPolicy", "numNodes"], &role.at().key("instances"));
    }
    let mut template = Map::from_iter([("spec".to_owned(), set)]);
    let mut spec = Map::from_iter([(
        "mlPolicy".to_owned(),
        json!({"numNodes": nodes.map_or(1, |role| role.instances)}),
    )]);
    if let Some(queue) = cluster.settings.queue.as_ref().and_then(|queue| queue.volcano.as_ref()) {
        spec.insert("podGroupPolicy".to_owned(), json!({"volcano": {}}));
        origins.target(["spec", "podGroupPolicy"], &["queue", "volcano"]);
        template.insert("metadata".to_owned(), json!({"annotations": {VOLCANO_QUEUE: queue}}));
    }
    spec.insert("template".to_owned(), Value::Object(template));
    json!({
        "apiVersion": API_VERSION,
        "kind": "TrainingRuntime",
        "metadata": metadata::object(cluster, &cluster.job.name),
        "spec": spec,
    })
}
