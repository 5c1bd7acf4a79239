//! What Kueue says about a job in a queue.

use serde_json::Value;

use super::client::{Client, encode};
use super::objects::ClusterJob;
use super::state::{name, text};
use super::watch::list;
use super::why;

/// Why a job is not admitted, and its position in the queue; nothing without Kueue.
pub(crate) fn reasons(client: &Client, found: &ClusterJob) -> Vec<String> {
    let namespace = &client.config().namespace;
    let selector = encode(&format!("kueue.x-k8s.io/job-uid={}", found.uid()));
    for version in ["v1beta2", "v1beta1"] {
        let path = format!("/apis/kueue.x-k8s.io/{version}/namespaces/{namespace}/workloads");
        let Ok(workloads) = list::<Value>(client, &path, &format!("labelSelector={selector}")) else {
            continue;
        };
        let Some(workload) = workloads.first() else { return vec![] };
        let mut reasons: Vec<String> = why::of_workload(workload).into_iter().collect();
        let queue = text(workload, "/spec/queueName");
        if reasons.first().is_some_and(|reason| reason.starts_with("waits in the queue")) && !queue.is_empty()
        {
            let path = format!(
                "/apis/visibility.kueue.x-k8s.io/{version}/namespaces/{namespace}/localqueues/{queue}/pendingworkloads?limit=1000"
            );
            let answer = client.get::<Value>(&path).ok();
            let place = answer.and_then(|answer| why::position(&answer, name(workload)));
            reasons.extend(place.map(|place| format!("it is {place} `{queue}`")));
        }
        return reasons;
    }
    vec![]
}
