//! The state of a job in a queue, as reported by Kueue.

use jobc_schema::percent::encode_segment;
use serde_json::Value;

use super::client::Client;
use super::objects::ClusterJob;
use super::state::{name, text};
use super::watch::list;
use super::why::{self, Position, Reason};

/// Workloads of a page of those that wait.
const PAGE: u64 = 1000;
/// In a longer queue, the position is not determined.
const MAX_PAGES: u64 = 20;

/// Why a job is not admitted, and its position in the queue; nothing without Kueue.
pub(crate) fn reasons(client: &Client, found: &ClusterJob) -> Vec<Reason> {
    let namespace = &client.config().namespace;
    let Some((version, workload)) = workload(client, found) else { return vec![] };
    let Some(mut reason) = why::of_workload(&workload) else { return vec![] };
    let queue = text(&workload, "/spec/queueName");
    if reason.text.starts_with("waits in the queue") && !queue.is_empty() {
        let path = format!(
            "/apis/visibility.kueue.x-k8s.io/{version}/namespaces/{namespace}/localqueues/{queue}/pendingworkloads"
        );
        if let Some(position) = position(client, &path, name(&workload)) {
            reason.text = format!("{}; {}", reason.text, position.sentence(queue));
        }
    }
    vec![reason]
}

/// The path of the Workload of a job; none without Kueue.
pub(crate) fn workload_path(client: &Client, found: &ClusterJob) -> Option<String> {
    let (version, workload) = workload(client, found)?;
    Some(format!("{}/{}", workloads(version, &client.config().namespace), name(&workload)))
}

/// The Workload of a job, and the version of Kueue's API that has it.
fn workload(client: &Client, found: &ClusterJob) -> Option<(&'static str, Value)> {
    let selector = encode_segment(&format!("kueue.x-k8s.io/job-uid={}", found.uid()));
    ["v1beta2", "v1beta1"].into_iter().find_map(|version| {
        let path = workloads(version, &client.config().namespace);
        let found = list::<Value>(client, &path, &format!("labelSelector={selector}")).ok()?;
        found.into_iter().next().map(|workload| (version, workload))
    })
}

fn workloads(version: &str, namespace: &str) -> String {
    format!("/apis/kueue.x-k8s.io/{version}/namespaces/{namespace}/workloads")
}

/// The position of a workload, which few users may ask for.
fn position(client: &Client, path: &str, workload: &str) -> Option<Position> {
    for page in 0..MAX_PAGES {
        let answer: Value = client.get(&format!("{path}?limit={PAGE}&offset={}", page * PAGE)).ok()?;
        let found = why::position(&answer, workload);
        let items = answer.get("items").and_then(Value::as_array).map_or(0, Vec::len);
        if found.is_some() || (items as u64) < PAGE {
            return found;
        }
    }
    None
}
