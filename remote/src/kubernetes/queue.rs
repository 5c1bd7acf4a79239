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
    let selector = encode_segment(&format!("kueue.x-k8s.io/job-uid={}", found.uid()));
    for version in ["v1beta2", "v1beta1"] {
        let path = format!("/apis/kueue.x-k8s.io/{version}/namespaces/{namespace}/workloads");
        let Ok(workloads) = list::<Value>(client, &path, &format!("labelSelector={selector}")) else {
            continue;
        };
        let Some(workload) = workloads.first() else { return vec![] };
        let Some(mut reason) = why::of_workload(workload) else { return vec![] };
        let queue = text(workload, "/spec/queueName");
        if reason.text.starts_with("waits in the queue") && !queue.is_empty() {
            let path = format!(
                "/apis/visibility.kueue.x-k8s.io/{version}/namespaces/{namespace}/localqueues/{queue}/pendingworkloads"
            );
            if let Some(position) = position(client, &path, name(workload)) {
                reason.text = format!("{}; {}", reason.text, position.sentence(queue));
            }
        }
        return vec![reason];
    }
    vec![]
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
