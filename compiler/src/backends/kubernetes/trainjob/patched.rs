//! A TrainJob with a runtime of the platform: the job's values, and a patch of the runtime's pods.
//!
//! Trainer takes the image, command, variables and resources of the container `node` in `trainer`, and some fields of its
//! pods in `runtimePatches`. Everything else belongs to the runtime, and is refused where the job or the target writes it.

use std::collections::BTreeSet;

use jobc_schema::Pointer;
use jobc_schema::plan::RolePlan;
use jobc_schema::target::TrainingRuntime;
use serde_json::{Map, Value, json};

use crate::diagnostic::{Diagnostic, Location, Sink, codes};

use super::super::cluster::Cluster;
use super::super::config::Configs;
use super::super::naming::TRAINJOB_CONTAINER;
use super::super::origins::Origins;
use super::super::pod;
use super::super::settings::setting_at;

/// The manager of a patch: a domain and a path, unique to each patch.
const MANAGER: &str = "jobc.dev/build";

/// The fields of a pod that a patch may have.
const POD_FIELDS: [&str; 9] = [
    "affinity",
    "imagePullSecrets",
    "nodeSelector",
    "schedulingGates",
    "securityContext",
    "serviceAccountName",
    "terminationGracePeriodSeconds",
    "tolerations",
    "volumes",
];
/// The fields of its container that a patch may have.
const CONTAINER_FIELDS: [&str; 2] = ["securityContext", "volumeMounts"];
/// The fields of its container that are in `trainer`.
const TRAINER_FIELDS: [&str; 4] = ["image", "command", "args", "env"];
/// Fields that the runtime sets itself, or that are only descriptive.
const OWN_FIELDS: [&str; 3] = ["containers", "restartPolicy", "ports"];

/// Rejects what no runtime of a platform can accept.
pub(in super::super) fn check(cluster: &Cluster<'_>, sink: &mut Sink) {
    let Some(runtime) = &cluster.settings.runtime else { return };
    if let [_, other, ..] = &cluster.job.roles[..] {
        sink.push(
            Diagnostic::error(
                codes::KUBERNETES_KIND,
                format!(
                    "the runtime `{}` runs one role, and job `{}` has {}",
                    runtime.name,
                    cluster.job.name,
                    cluster.job.roles.len()
                ),
            )
            .at_key(&other.at(), "")
            .at_place(Location::target(&setting_at(cluster.job, ["runtime"])), "")
            .note("leave `runtime` out, so that jobc writes a runtime of the job's own, which takes any number of roles"),
        );
    }
    for role in &cluster.job.roles {
        for name in role.env.keys().filter(|name| name.starts_with("PET_")) {
            sink.push(
                Diagnostic::error(
                    codes::KUBERNETES_KIND,
                    format!("Kubeflow Trainer sets `{name}` itself and refuses it in a TrainJob"),
                )
                .at_key(&role.at().keys(["env", name]), "")
                .note("leave it out"),
            );
        }
    }
}

/// The TrainJob.
pub(super) fn object(
    cluster: &Cluster<'_>,
    runtime: &TrainingRuntime,
    configs: &Configs,
    origins: &mut Origins,
    sink: &mut Sink,
) -> Value {
    let kind = if runtime.namespaced { "TrainingRuntime" } else { "ClusterTrainingRuntime" };
    origins.target(["spec", "runtimeRef"], &["runtime"]);
    let Some(role) = cluster.job.roles.first() else { return Value::Null };
    let mut in_pod = Origins::default();
    let template = pod::template(cluster, configs, role, &mut in_pod, sink);
    let template = serde_json::to_value(template).expect("a pod template is plain JSON");
    let causes = in_pod.into_list();
    let (mut trainer, mut patch) = (Map::new(), Map::new());
    trainer.insert("numNodes".to_owned(), json!(role.instances));
    origins.spec(["spec", "trainer", "numNodes"], &role.at().key("instances"));
    let container = template["spec"]["containers"][0].clone();
    let mut of_container = Map::from_iter([("name".to_owned(), json!(TRAINJOB_CONTAINER))]);
    let refuse = |key: &str, part: Pointer, sink: &mut Sink| {
        sink.push(refusal(cluster, role, runtime, key, &part, &causes));
    };
    for (key, value) in container.as_object().into_iter().flatten() {
        let key = key.as_str();
        if TRAINER_FIELDS.contains(&key) {
            let value = if key == "env" { without_reserved(value) } else { value.clone() };
            trainer.insert(key.to_owned(), value);
            let at = role.at().key(if key == "command" { "run" } else { key });
            origins.spec(["spec", "trainer", key], &at);
        } else if key == "resources" {
            trainer.insert("resourcesPerNode".to_owned(), value.clone());
            origins.spec(["spec", "trainer", "resourcesPerNode"], &role.at().key("resources"));
        } else if CONTAINER_FIELDS.contains(&key) {
            of_container.insert(key.to_owned(), value.clone());
        } else if key != "name" && !OWN_FIELDS.contains(&key) {
            refuse(key, Pointer::ROOT.keys(["containers", "0", key]), sink);
        }
    }
    for (key, value) in template["spec"].as_object().into_iter().flatten() {
        let key = key.as_str();
        if POD_FIELDS.contains(&key) {
            patch.insert(key.to_owned(), value.clone());
        } else if !OWN_FIELDS.contains(&key) {
            refuse(key, Pointer::ROOT.key(key), sink);
        }
    }
    if let Some(number) = separate_mounts(&mut patch, &mut of_container) {
        refuse("volumeMounts", Pointer::ROOT.keys(["containers", "0", "volumeMounts"]).index(number), sink);
    }
    patch.insert("containers".to_owned(), json!([of_container]));
    let pod = json!({"metadata": template["metadata"], "spec": patch});
    let job = json!({"name": cluster.part_name(&role.name), "template": {"spec": {"template": pod}}});
    let patches = json!([{"manager": MANAGER, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}}}]);
    let own = Map::from_iter([
        ("trainer".to_owned(), Value::Object(trainer)),
        ("runtimePatches".to_owned(), patches),
    ]);
    super::trainjob(cluster, kind, &runtime.name, own, origins)
}

/// Gives each mount a volume of its own: the definition of a TrainJob keys the mounts of a patch by the names of their
/// volumes. Returns the number of a further mount of an empty directory, of which a second volume would be another one.
fn separate_mounts(pod: &mut Map<String, Value>, container: &mut Map<String, Value>) -> Option<usize> {
    let mounts = container.get_mut("volumeMounts")?.as_array_mut()?;
    let volumes = pod.get_mut("volumes")?.as_array_mut()?;
    let mut names = BTreeSet::new();
    for (number, mount) in mounts.iter_mut().enumerate() {
        if names.insert(mount["name"].clone().to_string()) {
            continue;
        }
        let mut volume = volumes.iter().find(|volume| volume["name"] == mount["name"])?.clone();
        if volume.get("emptyDir").is_some() {
            return Some(number);
        }
        let free = |name: &String| volumes.iter().all(|volume| volume["name"] != json!(name));
        let of_mount = mount["name"].as_str()?.to_owned();
        let name = (2..volumes.len() + 3).map(|n| format!("{of_mount}-{n}")).find(free)?;
        volume["name"] = json!(name);
        mount["name"] = json!(name);
        volumes.push(volume);
    }
    None
}

/// The variables without those that Trainer sets from the policy of the runtime.
fn without_reserved(env: &Value) -> Value {
    let kept = |var: &&Value| !var["name"].as_str().is_some_and(|name| name.starts_with("PET_"));
    env.as_array().into_iter().flatten().filter(kept).cloned().collect()
}

fn refusal(
    cluster: &Cluster<'_>,
    role: &RolePlan,
    runtime: &TrainingRuntime,
    key: &str,
    part: &Pointer,
    causes: &[crate::backend::Origin],
) -> Diagnostic {
    use crate::backend::{FilePart, PartSource};
    let cause = causes.iter().find(|origin| origin.part == FilePart::Pointer(part.clone()));
    let found = Diagnostic::error(
        codes::KUBERNETES_KIND,
        format!("a TrainJob cannot give `{key}` to the runtime `{}`", runtime.name),
    )
    .note(
        "leave it out, or leave `runtime` of the target out, so that jobc writes a runtime of the job's own",
    );
    match cause.map(|origin| &origin.from) {
        Some(PartSource::Spec(at)) => found.at_key(at, ""),
        Some(PartSource::Target(at)) => {
            let keys: Vec<String> = at.segments().collect();
            let target = Pointer::ROOT.keys(["targets", &cluster.job.target.name]);
            found.at_place(Location::target(&target.keys(keys.iter().map(String::as_str))), "")
        }
        _ => found.at_key(&role.at(), ""),
    }
}
