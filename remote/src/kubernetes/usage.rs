//! The resource usage of a job's tasks, from the metrics API (`metrics.k8s.io`).

mod gpus;

use std::collections::BTreeMap;

use jobc_sys::error::{Error, Kind, Result};
use serde::Deserialize;
use serde_json::Value;

use super::client::Client;
use super::objects::{ClusterJob, pods};
use super::pods::{Pod, is_own};
use super::watch::list;
use jobc_place::time::Time;

use crate::place::TaskUsage;

/// The measured use of a pod.
#[derive(Deserialize)]
struct PodMetrics {
    metadata: Name,
    #[serde(default)]
    timestamp: String,
    #[serde(default)]
    containers: Vec<ContainerMetrics>,
}

#[derive(Deserialize)]
struct Name {
    name: String,
}

#[derive(Deserialize)]
struct ContainerMetrics {
    name: String,
    #[serde(default)]
    usage: Amounts,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Amounts {
    cpu: Option<String>,
    memory: Option<String>,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

impl Amounts {
    /// Whether they have GPUs of NVIDIA, by the names that its device plug-in and other providers give them.
    fn has_gpus(&self) -> bool {
        self.others.keys().any(|name| name.starts_with("nvidia.com/") || name.contains("gpu"))
    }
}

/// The parts of a pod needed to find its limits.
#[derive(Deserialize)]
struct PodLimits {
    metadata: Name,
    spec: Spec,
}

#[derive(Deserialize)]
struct Spec {
    #[serde(default)]
    containers: Vec<Container>,
}

#[derive(Deserialize)]
struct Container {
    #[serde(default)]
    name: String,
    #[serde(default)]
    resources: Resources,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Resources {
    limits: Amounts,
}

/// The use of each running task, by role and index.
pub(crate) fn of_job(client: &Client, found: &ClusterJob) -> Result<Vec<TaskUsage>> {
    let namespace = &client.config().namespace;
    let path = format!("/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods");
    let metrics: Vec<PodMetrics> = list(client, &path, &found.pods_query()).map_err(|error| {
        if error.is(404) || error.is(503) {
            Error::new(
                Kind::Unsupported,
                "the cluster does not measure pods: it does not serve `metrics.k8s.io`",
            )
            .help("an administrator can install metrics-server")
        } else {
            error.into_error("read the metrics of the job's pods")
        }
    })?;
    let pods_path = format!("/api/v1/namespaces/{namespace}/pods");
    let limits: Vec<PodLimits> = list(client, &pods_path, &found.pods_query())
        .map_err(|error| error.into_error("list the pods of the job"))?;
    let limits = limits_by_pod(limits);
    let pods = running(pods(client, found)?);
    let mut usage = join(&pods, metrics, &limits);
    let has_gpus = |pod: &&Pod| limits.get(&pod.metadata.name).is_some_and(Amounts::has_gpus);
    gpus::add(client, &pods.iter().filter(has_gpus).collect::<Vec<_>>(), &mut usage);
    Ok(usage)
}

fn limits_by_pod(limits: Vec<PodLimits>) -> BTreeMap<String, Amounts> {
    let own = |pod: PodLimits| {
        let main = pod.spec.containers.into_iter().find(|container| is_own(&container.name))?;
        Some((pod.metadata.name, main.resources.limits))
    };
    limits.into_iter().filter_map(own).collect()
}

/// The pods that run, in the order of their tasks.
fn running(pods: Vec<Pod>) -> Vec<Pod> {
    let mut running: Vec<Pod> = pods.into_iter().filter(Pod::is_running).collect();
    running.sort_by_key(Pod::task_order);
    running
}

fn join(pods: &[Pod], metrics: Vec<PodMetrics>, limits: &BTreeMap<String, Amounts>) -> Vec<TaskUsage> {
    let mut metrics: BTreeMap<String, PodMetrics> =
        metrics.into_iter().map(|pod| (pod.metadata.name.clone(), pod)).collect();
    let usage = |pod: &Pod| {
        let name = &pod.metadata.name;
        let measured = metrics.remove(name)?;
        let main = measured.containers.iter().find(|container| is_own(&container.name))?;
        let limit = limits.get(name);
        let of_limit = |pick: fn(&Amounts) -> Option<&String>| limit.and_then(pick);
        let time = Time::parse(&measured.timestamp).unwrap_or_default();
        Some(TaskUsage {
            cpu_millis: main.usage.cpu.as_deref().and_then(millis),
            memory: main.usage.memory.as_deref().and_then(bytes),
            cpu_limit_millis: of_limit(|limits| limits.cpu.as_ref()).and_then(|text| millis(text)),
            memory_limit: of_limit(|limits| limits.memory.as_ref()).and_then(|text| bytes(text)),
            ..TaskUsage::new(time, pod.task().parse().ok()?, 1, pod.state())
        })
    };
    pods.iter().filter_map(usage).collect()
}

/// A quantity of processors in thousandths, rounded up: `250m`, `1`, `1500000n`.
fn millis(text: &str) -> Option<u64> {
    let nanos = scaled(text, 1_000_000_000)?;
    u64::try_from(nanos.div_ceil(1_000_000)).ok()
}

/// A quantity of bytes: `131072Ki`, `1G`, `1e9`.
fn bytes(text: &str) -> Option<u64> {
    u64::try_from(scaled(text, 1)?).ok()
}

/// A quantity of the Kubernetes API in parts of `unit`.
fn scaled(text: &str, unit: u128) -> Option<u128> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let places = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let (times, parts): (u128, u128) = match suffix {
        "" => (1, 1),
        "n" => (1, 1_000_000_000),
        "u" => (1, 1_000_000),
        "m" => (1, 1_000),
        "k" => (1_000, 1),
        "M" => (1_000_000, 1),
        "G" => (1_000_000_000, 1),
        "T" => (1_000_000_000_000, 1),
        "Ki" => (1 << 10, 1),
        "Mi" => (1 << 20, 1),
        "Gi" => (1 << 30, 1),
        "Ti" => (1 << 40, 1),
        exponent => (10_u128.checked_pow(exponent.trim_start_matches(['e', 'E']).parse().ok()?)?, 1),
    };
    digits.checked_mul(times)?.checked_mul(unit)?.checked_div(places * parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::TaskState;
    use serde_json::json;

    #[test]
    fn quantities_of_the_api() {
        for (text, expected) in
            [("250m", 250), ("1", 1000), ("1.5", 1500), ("1500000n", 2), ("12u", 1), ("0", 0)]
        {
            assert_eq!(millis(text), Some(expected), "{text}");
        }
        for (text, expected) in [
            ("131072Ki", 134_217_728),
            ("1Gi", 1 << 30),
            ("1G", 1_000_000_000),
            ("2e3", 2000),
            ("100m", 0),
            ("5", 5),
        ] {
            assert_eq!(bytes(text), Some(expected), "{text}");
        }
        for text in ["", "x", "1x", "99999999999999999999999999999999999999999"] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }

    #[test]
    fn the_task_itself_is_measured_not_its_sidecars() {
        let pods = serde_json::from_value(json!([
            {"metadata": {"name": "p", "uid": "u", "labels": {"jobc.dev/role": "train", "batch.kubernetes.io/job-completion-index": "3"}},
             "status": {"phase": "Running", "containerStatuses": [{"name": "main", "state": {"running": {}}}]}},
            {"metadata": {"name": "ended", "uid": "v"}, "status": {"phase": "Succeeded"}},
        ]));
        let metrics = serde_json::from_value(json!([
            {"metadata": {"name": "p"}, "timestamp": "t", "containers": [
                {"name": "side", "usage": {"cpu": "9", "memory": "9"}}, {"name": "main", "usage": {"cpu": "100m", "memory": "1Mi"}},
            ]},
            {"metadata": {"name": "ended"}, "containers": []},
        ]));
        let limits = serde_json::from_value(json!([
            {"metadata": {"name": "p"}, "spec": {"containers": [
                {"name": "main", "resources": {"limits": {"cpu": "2", "nvidia.com/gpu": "1"}}},
            ]}},
        ]));
        let limits = limits_by_pod(limits.unwrap());
        assert!(limits["p"].has_gpus() && !Amounts::default().has_gpus());
        let usage = join(&running(pods.unwrap()), metrics.unwrap(), &limits);
        let [task] = &usage[..] else { panic!("{usage:?}") };
        assert_eq!((task.task.to_string().as_str(), task.state), ("train-3", TaskState::Running));
        assert_eq!((task.cpu_millis, task.cpu_limit_millis), (Some(100), Some(2000)));
        assert_eq!((task.memory, task.memory_limit), (Some(1 << 20), None));
    }
}
