//! Pods as tasks and attempts. Only what is needed of a pod is kept: a job may have 10,000.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use jobc_place::time::Time;
use jobc_place::verdict::NodeFault;

use crate::place::{TaskState, TaskStatus};

/// The container of the task; others are the cluster's, such as sidecars.
pub(crate) const MAIN: &str = "main";

/// The container of the task that trains in a TrainJob.
const TRAINER: &str = "node";

/// Whether a container is that of the task.
pub(crate) fn is_own(container: &str) -> bool {
    matches!(container, MAIN | TRAINER)
}

/// The parts of a pod that are read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Pod {
    pub(crate) metadata: Metadata,
    pub(crate) spec: Spec,
    pub(crate) status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Metadata {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) creation_timestamp: String,
    deletion_timestamp: Option<String>,
    deletion_grace_period_seconds: Option<u64>,
    labels: Labels,
    annotations: Annotations,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Labels {
    #[serde(rename = "jobc.dev/role")]
    role: Option<String>,
    #[serde(rename = "jobset.sigs.k8s.io/replicatedjob-name")]
    replicated_job: Option<String>,
    #[serde(rename = "batch.kubernetes.io/job-completion-index")]
    index: Option<String>,
    #[serde(rename = "volcano.sh/task-index")]
    volcano_index: Option<String>,
    #[serde(rename = "training.kubeflow.org/replica-index")]
    mpi_index: Option<String>,
    #[serde(rename = "leaderworkerset.sigs.k8s.io/worker-index")]
    worker_index: Option<String>,
    #[serde(rename = "leaderworkerset.sigs.k8s.io/group-index")]
    group: Option<String>,
    #[serde(rename = "ray.io/group")]
    ray_group: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Annotations {
    #[serde(rename = "batch.kubernetes.io/job-completion-index")]
    index: Option<String>,
    #[serde(rename = "leaderworkerset.sigs.k8s.io/size")]
    group_size: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Spec {
    pub(crate) node_name: Option<String>,
    termination_grace_period_seconds: Option<u64>,
    pub(super) containers: Vec<ContainerSpec>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ContainerSpec {
    pub(super) name: String,
    pub(super) ports: Vec<ContainerPort>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ContainerPort {
    pub(super) name: String,
    pub(super) container_port: u16,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Status {
    pub(crate) phase: String,
    pub(crate) reason: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) container_statuses: Vec<Container>,
    pub(crate) init_container_statuses: Vec<Container>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Condition {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) status: String,
    pub(crate) reason: String,
    pub(crate) message: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Container {
    pub(crate) name: String,
    pub(crate) state: ContainerState,
    /// The devices of a container and their health, from Kubernetes 1.31 on.
    allocated_resources_status: Vec<AllocatedResource>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct AllocatedResource {
    name: String,
    resources: Vec<DeviceHealth>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct DeviceHealth {
    #[serde(rename = "resourceID")]
    id: String,
    health: String,
    message: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ContainerState {
    pub(crate) waiting: Option<Waiting>,
    pub(crate) running: Option<Running>,
    pub(crate) terminated: Option<Terminated>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Waiting {
    pub(crate) reason: String,
    pub(crate) message: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Running {
    pub(crate) started_at: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Terminated {
    pub(crate) exit_code: i64,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) started_at: Option<String>,
    pub(crate) finished_at: Option<String>,
}

impl Pod {
    /// The role of the task.
    pub(crate) fn role(&self) -> &str {
        let labels = &self.metadata.labels;
        labels.role.as_deref().or(labels.replicated_job.as_deref()).unwrap_or("task")
    }

    /// The task, `train-0`.
    pub(crate) fn task(&self) -> String {
        format!("{}-{}", self.role(), self.index())
    }

    /// The index of the task in its role; 0 in a job of one instance. Groups of a LeaderWorkerSet, whose pods have the same
    /// indexes, are numbered through.
    fn index(&self) -> u64 {
        let metadata = &self.metadata;
        let labels = &metadata.labels;
        let of_kind =
            labels.volcano_index.as_ref().or(labels.mpi_index.as_ref()).or(labels.worker_index.as_ref());
        let index = labels.index.as_ref().or(of_kind).or(metadata.annotations.index.as_ref());
        let number =
            |text: Option<&String>| text.and_then(|text| text.parse::<u64>().ok()).unwrap_or_default();
        let before =
            number(labels.group.as_ref()).saturating_mul(number(metadata.annotations.group_size.as_ref()));
        number(index).saturating_add(before)
    }

    /// The sort key of tasks.
    pub(crate) fn task_order(&self) -> (String, u64) {
        (self.role().to_owned(), self.index())
    }

    /// The task's own container.
    fn own(&self) -> Option<&Container> {
        let statuses = &self.status.container_statuses;
        let named = |name: &str| statuses.iter().find(|status| status.name == name);
        named(MAIN).or_else(|| named(TRAINER)).or(statuses.first())
    }

    /// The name of the task's own container.
    pub(crate) fn container(&self) -> &str {
        self.own().map_or(MAIN, |container| &container.name)
    }

    /// The state of the task's own container.
    pub(crate) fn main(&self) -> Option<&ContainerState> {
        self.own().map(|container| &container.state)
    }

    /// A device of it that the node reports as unhealthy: its resource, and ``GPU-1 (`nvidia.com/gpu`) is unhealthy``.
    pub(crate) fn unhealthy_device(&self) -> Option<(&str, String)> {
        let devices = self.own()?.allocated_resources_status.iter();
        let mut devices =
            devices.flat_map(|resource| resource.resources.iter().map(move |one| (resource, one)));
        let (resource, device) = devices.find(|(_, device)| device.health == "Unhealthy")?;
        let message = device.message.trim().trim_end_matches('.');
        let message = if message.is_empty() { String::new() } else { format!(": {message}") };
        Some((&resource.name, format!("{} (`{}`) is unhealthy{message}", device.id, resource.name)))
    }

    /// The init container that has failed, and how.
    pub(crate) fn failed_init(&self) -> Option<(&str, &Terminated)> {
        let mut ended =
            self.status.init_container_statuses.iter().filter_map(|container| {
                Some((container.name.as_str(), container.state.terminated.as_ref()?))
            });
        ended.find(|(_, ended)| ended.exit_code != 0)
    }

    /// Whether its output can be read.
    pub(crate) fn has_started(&self) -> bool {
        self.main().is_some_and(|state| state.running.is_some() || state.terminated.is_some())
    }

    /// Whether nothing more will be written.
    pub(crate) fn has_ended(&self) -> bool {
        self.main().is_some_and(|state| state.terminated.is_some())
            || matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }

    /// A condition that is true, or is not.
    pub(crate) fn condition(&self, kind: &str, status: &str) -> Option<&Condition> {
        self.status.conditions.iter().find(|condition| condition.kind == kind && condition.status == status)
    }

    /// The time between SIGTERM and SIGKILL when it is deleted.
    pub(crate) fn grace(&self) -> Duration {
        let of_deletion = self.metadata.deletion_grace_period_seconds;
        // Kubernetes' own default.
        Duration::from_secs(of_deletion.or(self.spec.termination_grace_period_seconds).unwrap_or(30))
    }

    /// Whether a command can run in it.
    pub(crate) fn is_running(&self) -> bool {
        self.state() == TaskState::Running
    }

    /// The state of its task.
    pub(crate) fn state(&self) -> TaskState {
        match self.status.phase.as_str() {
            "Succeeded" => TaskState::Succeeded,
            "Failed" => TaskState::Failed,
            _ if self.metadata.deletion_timestamp.is_some() => TaskState::Stopping,
            _ if self.main().is_some_and(|state| state.running.is_some()) => TaskState::Running,
            _ if self.spec.node_name.is_some() => TaskState::Creating,
            _ => TaskState::Pending,
        }
    }
}

/// Numbers the workers of Ray clusters, which have no numbers, in the order of their creation.
pub(crate) fn number_workers_of_ray(pods: &mut [Pod]) {
    let mut order: Vec<(String, String, usize)> = Vec::new();
    for (position, pod) in pods.iter().enumerate() {
        if pod.metadata.labels.ray_group.is_some() && pod.metadata.labels.index.is_none() {
            order.push((pod.metadata.creation_timestamp.clone(), pod.metadata.name.clone(), position));
        }
    }
    order.sort();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (_, _, position) in order {
        let count = counts.entry(pods[position].role().to_owned()).or_default();
        pods[position].metadata.labels.index = Some(count.to_string());
        *count += 1;
    }
}

/// Numbers the attempts of tasks: pods of the same task in the order of their creation, from 1. By pod uid.
pub(crate) fn attempts(pods: &[Pod]) -> BTreeMap<&str, u32> {
    let mut order: Vec<&Pod> = pods.iter().collect();
    order.sort_by(|a, b| {
        let key = |pod: &Pod| (pod.metadata.creation_timestamp.clone(), pod.metadata.name.clone());
        key(a).cmp(&key(b))
    });
    let mut counts: BTreeMap<(&str, u64), u32> = BTreeMap::new();
    let mut numbers = BTreeMap::new();
    for pod in order {
        let count = counts.entry((pod.role(), pod.index())).or_default();
        *count += 1;
        numbers.insert(pod.metadata.uid.as_str(), *count);
    }
    numbers
}

/// The tasks of pods, by role and index.
pub(crate) fn tasks(pods: &[Pod]) -> Vec<TaskStatus> {
    let attempts = attempts(pods);
    let mut order: Vec<&Pod> = pods.iter().collect();
    order.sort_by_key(|pod| (pod.role(), pod.index(), attempts[pod.metadata.uid.as_str()]));
    let status = |pod: &Pod| {
        let main = pod.main();
        let failed_init = || pod.failed_init().map(|(_, ended)| ended);
        let ended = main.and_then(|state| state.terminated.as_ref()).or_else(failed_init);
        let waiting = main.and_then(|state| state.waiting.as_ref());
        let reason = pod
            .status
            .reason
            .clone()
            .or_else(|| pod.condition("DisruptionTarget", "True").map(|condition| condition.reason.clone()))
            .or_else(|| ended.map(|ended| ended.reason.clone()))
            .or_else(|| waiting.map(|waiting| waiting.reason.clone()))
            .or_else(|| pod.condition("PodScheduled", "False").map(|condition| condition.reason.clone()));
        let started = ended
            .and_then(|ended| ended.started_at.as_deref())
            .or_else(|| main.and_then(|state| state.running.as_ref()?.started_at.as_deref()));
        let attempt = attempts[pod.metadata.uid.as_str()];
        let status = TaskStatus {
            object: Some(format!("pod/{}", pod.metadata.name)),
            node: pod.spec.node_name.clone(),
            exit_code: ended.map(|ended| u8::try_from(ended.exit_code).unwrap_or(u8::MAX)),
            started: started.and_then(Time::parse),
            ended: ended.and_then(|ended| Time::parse(ended.finished_at.as_deref()?)),
            // What the code says already.
            reason: reason.filter(|reason| !["", "Completed", "Error"].contains(&reason.as_str())),
            ..TaskStatus::new(pod.task().parse().ok()?, pod.state(), attempt)
        };
        let word = status.reason.clone();
        let next = || "have the node drained, or its device plugin checked".to_owned();
        let fault = pod.unhealthy_device().map(|(_, what)| NodeFault { what, next: next() });
        // A failed check says there whose fault it is; the container's own lines are in its log alone.
        let lines = ended.map(|ended| ended.message.lines().map(str::to_owned).collect());
        Some(status.judged_with(word.as_deref(), lines.unwrap_or_default(), fault))
    };
    TaskStatus::by_task(order.into_iter().filter_map(status))
}

#[cfg(test)]
mod tests {
    use super::*;
    use jobc_place::verdict::Verdict;
    use serde_json::{Value, json};

    fn pod(name: &str, index: Option<&str>, created: &str, status: &Value) -> Pod {
        let mut labels = json!({"jobc.dev/role": "train", "jobset.sigs.k8s.io/replicatedjob-name": "x"});
        if let Some(index) = index {
            labels["batch.kubernetes.io/job-completion-index"] = index.into();
        }
        let metadata = json!({"name": name, "uid": name, "creationTimestamp": created, "labels": labels});
        serde_json::from_value(json!({"metadata": metadata, "status": status})).unwrap()
    }

    #[test]
    fn a_task_on_an_unhealthy_device_is_not_to_blame() {
        let verdict = |health: &str| {
            let status = json!({"phase": "Failed", "containerStatuses": [{"name": "main",
                "state": {"terminated": {"exitCode": 1, "reason": "Error"}},
                "allocatedResourcesStatus": [{"name": "nvidia.com/gpu", "resources": [{"resourceID": "GPU-7", "health": health}]}]}]});
            tasks(&[pod("a", Some("0"), "1", &status)]).remove(0).verdict.unwrap()
        };
        assert_eq!(verdict("Healthy").kind, Verdict::UserError);
        let judged = verdict("Unhealthy");
        assert_eq!(judged.kind, Verdict::Node);
        assert_eq!(judged.evidence, ["exit 1", "GPU-7 (`nvidia.com/gpu`) is unhealthy"]);
        assert!(judged.next.is_some_and(|next| next.contains("drained")));
    }

    #[test]
    fn a_failed_check_before_the_command_is_judged_by_what_it_says() {
        let said = "jobc: preflight: data: /data/x can be read\njobc: preflight failed: gpus: 7 of 8 are visible (train-0 on node-7: the node is at fault)\n";
        let ended = json!({"exitCode": 86, "reason": "Error", "message": said});
        let pods = [pod(
            "x",
            Some("0"),
            "2026-01-01T00:00:00Z",
            &json!({
                "phase": "Failed",
                "initContainerStatuses": [{"name": "jobc-preflight", "state": {"terminated": ended}}],
                "containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "PodInitializing"}}}],
            }),
        )];
        let tasks = tasks(&pods);
        let verdict = tasks[0].verdict.as_ref().unwrap();
        assert_eq!((tasks[0].exit_code, verdict.kind.as_str()), (Some(86), "node"));
        assert!(verdict.evidence.concat().contains("7 of 8 are visible (train-0 on node-7"), "{verdict:?}");
    }

    #[test]
    fn pods_of_every_kind_have_a_task_and_a_container() {
        let of = |labels: Value, container: &str| {
            let metadata = json!({"name": "x", "uid": "x", "labels": labels});
            let status = json!({"containerStatuses": [{"name": "istio-proxy", "state": {}}, {"name": container, "state": {}}]});
            let pod: Pod = serde_json::from_value(json!({"metadata": metadata, "status": status})).unwrap();
            format!("{} {}", pod.task(), pod.container())
        };
        for (index, expected) in [
            ("batch.kubernetes.io/job-completion-index", "train-3 main"),
            ("volcano.sh/task-index", "train-3 main"),
            ("training.kubeflow.org/replica-index", "train-3 main"),
            ("leaderworkerset.sigs.k8s.io/worker-index", "train-3 main"),
        ] {
            assert_eq!(of(json!({"jobc.dev/role": "train", index: "3"}), "main"), expected, "{index}");
        }
        assert_eq!(of(json!({"jobset.sigs.k8s.io/replicatedjob-name": "node"}), "node"), "node-0 node");
    }

    #[test]
    fn tasks_of_every_group_have_names_of_their_own() {
        let of = |group: &str, worker: &str| -> Pod {
            let labels = json!({"jobc.dev/role": "serve", "leaderworkerset.sigs.k8s.io/group-index": group,
                                "leaderworkerset.sigs.k8s.io/worker-index": worker});
            let annotations = json!({"leaderworkerset.sigs.k8s.io/size": "2"});
            let metadata = json!({"name": format!("{group}-{worker}"), "uid": format!("{group}-{worker}"), "labels": labels, "annotations": annotations});
            serde_json::from_value(json!({"metadata": metadata})).unwrap()
        };
        let pods = [of("1", "1"), of("0", "0"), of("10", "1"), of("1", "0"), of("0", "1")];
        let named: Vec<(String, u32)> =
            tasks(&pods).into_iter().map(|task| (task.task.to_string(), task.attempt)).collect();
        let expected = ["serve-0", "serve-1", "serve-2", "serve-3", "serve-21"];
        assert_eq!(named, expected.map(|task| (task.to_owned(), 1)));
    }

    #[test]
    fn workers_of_ray_are_numbered_by_their_age() {
        let worker = |name: &str, created: &str| -> Pod {
            let labels = json!({"jobc.dev/role": "worker", "ray.io/group": "worker"});
            let metadata = json!({"name": name, "uid": name, "creationTimestamp": created, "labels": labels});
            serde_json::from_value(json!({"metadata": metadata})).unwrap()
        };
        let mut pods = [
            worker("b", "2026-01-01T00:00:02Z"),
            worker("c", "2026-01-01T00:00:01Z"),
            worker("a", "2026-01-01T00:00:02Z"),
        ];
        number_workers_of_ray(&mut pods);
        assert_eq!(pods.map(|pod| pod.task()), ["worker-2", "worker-0", "worker-1"]);
    }

    #[test]
    fn attempts_are_pods_of_a_task_in_order() {
        let failed = json!({"phase": "Failed", "containerStatuses": [
            {"name": "sidecar", "state": {"running": {}}},
            {"name": "main", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}},
        ]});
        let pods = [
            pod("c", Some("10"), "2026-01-01T00:00:00Z", &json!({"phase": "Running"})),
            pod("b", Some("0"), "2026-01-01T00:00:05Z", &json!({"phase": "Pending"})),
            pod("a", Some("0"), "2026-01-01T00:00:01Z", &failed),
        ];
        let shown: Vec<_> = tasks(&pods)
            .into_iter()
            .map(|task| {
                let earlier: Vec<_> = task.earlier.iter().map(|one| (one.attempt, one.end_text())).collect();
                format!("{} {} {} {earlier:?}", task.task, task.attempt, task.state.as_str())
            })
            .collect();
        assert_eq!(shown, [r#"train-0 2 pending [(1, Some("OOMKilled"))]"#, "train-10 1 pending []",]);
        assert!(!pods[1].has_started() && pods[2].has_started() && pods[2].has_ended());
    }
}
