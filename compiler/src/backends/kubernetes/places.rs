//! Where the pods of an object are.

use jobc_schema::Pointer;
use jobc_schema::plan::RolePlan;
use serde_json::Value;

use super::cluster::Cluster;
use super::mpijob;
use super::object::Object;

/// The pod specs of an object, each with its place and its role.
pub(super) fn pods<'o, 'c>(
    cluster: &Cluster<'c>,
    object: &'o Object,
) -> Vec<(Pointer, &'o Value, Option<&'c RolePlan>)> {
    let spec = Pointer::ROOT.key("spec");
    let alone = cluster.job.roles.first();
    let last = cluster.job.roles.last();
    let places: Vec<(Pointer, Option<&'c RolePlan>)> = match object.kind {
        "Job" if object.value["apiVersion"] == "batch/v1" => vec![(spec.keys(["template", "spec"]), alone)],
        "Job" => listed(cluster, object, &spec.key("tasks"), "name", &["template", "spec"]),
        "Pod" | "SharePod" => vec![(spec, alone)],
        "JobSet" => of_jobset(cluster, object, &spec),
        "TrainingRuntime" => of_jobset(cluster, object, &spec.keys(["template", "spec"])),
        "MPIJob" => {
            let (launcher, worker) = mpijob::parts(cluster).unzip();
            let at = |part: &str| spec.keys(["mpiReplicaSpecs", part, "template", "spec"]);
            vec![(at("Launcher"), launcher), (at("Worker"), worker)]
        }
        "RayJob" => {
            let ray = spec.key("rayClusterSpec");
            let mut found = vec![(ray.keys(["headGroupSpec", "template", "spec"]), alone)];
            found.extend(listed(
                cluster,
                object,
                &ray.key("workerGroupSpecs"),
                "groupName",
                &["template", "spec"],
            ));
            found.push((spec.keys(["submitterPodTemplate", "spec"]), alone));
            found
        }
        "LeaderWorkerSet" => {
            let at = |key: &str| spec.keys(["leaderWorkerTemplate", key, "spec"]);
            vec![(at("leaderTemplate"), alone), (at("workerTemplate"), last)]
        }
        _ => vec![],
    };
    let found = |(place, role): (Pointer, Option<&'c RolePlan>)| {
        object.value.pointer(place.as_str()).map(|spec| (place, spec, role))
    };
    places.into_iter().filter_map(found).collect()
}

fn of_jobset<'c>(
    cluster: &Cluster<'c>,
    object: &Object,
    at: &Pointer,
) -> Vec<(Pointer, Option<&'c RolePlan>)> {
    listed(cluster, object, &at.key("replicatedJobs"), "name", &["template", "spec", "template", "spec"])
}

/// The pods of a list, each of the role that its item names.
fn listed<'c>(
    cluster: &Cluster<'c>,
    object: &Object,
    list: &Pointer,
    name: &str,
    below: &[&str],
) -> Vec<(Pointer, Option<&'c RolePlan>)> {
    let items = object.value.pointer(list.as_str()).and_then(Value::as_array).map_or(0, Vec::len);
    let place = |i: usize| {
        let item = list.index(i);
        let name = object.value.pointer(item.key(name).as_str()).and_then(Value::as_str);
        (item.keys(below.iter().copied()), name.and_then(|name| cluster.role(name)))
    };
    (0..items).map(place).collect()
}
