//! What is free on a cluster: nodes by their GPUs, Kueue's queues of the namespace, and its quotas.

mod nodes;
mod queues;

use jobc_sys::error::{Error, Kind, Result};
use serde_json::Value;

use super::client::Client;
use super::status::ApiError;
use super::watch::list;
use crate::place::Capacity;

/// What is free, as far as this user may read it.
pub(crate) fn of_cluster(client: &Client) -> Result<Vec<Capacity>> {
    let namespace = &client.config().namespace;
    let mut denied = Vec::new();
    let mut read = |resource: &'static str, path: &str, query: &str| match list::<Value>(client, path, query)
    {
        Ok(items) => Ok(Some(items)),
        Err(error) if error.is(404) => Ok(Some(Vec::new())),
        Err(error) if error.is(403) => {
            denied.push(format!("`{resource}`"));
            Ok(None)
        }
        Err(error) => Err(error.into_error(&format!("list {resource}"))),
    };
    let mut found = Vec::new();
    if let Some(nodes) = read("nodes", "/api/v1/nodes", "")? {
        // Of all namespaces: their pods share the nodes.
        let pods = read("pods of all namespaces", "/api/v1/pods", RUNNING_PODS)?;
        found.extend(nodes::of(&nodes, pods.as_deref()));
    }
    let version = "/apis/kueue.x-k8s.io/v1beta2";
    let queues = read("localqueues", &format!("{version}/namespaces/{namespace}/localqueues"), "")?;
    for queue in queues.iter().flatten() {
        let path = format!("{version}/clusterqueues/{}", queues::cluster_queue(queue));
        let cluster = match client.find::<Value>(&path) {
            Err(error) if error.is(403) => None,
            cluster => cluster.map_err(|error: ApiError| error.into_error("read ClusterQueues"))?,
        };
        found.push(queues::of_queue(queue, cluster.as_ref()));
    }
    let quotas = read("resourcequotas", &format!("/api/v1/namespaces/{namespace}/resourcequotas"), "")?;
    found.extend(quotas.iter().flatten().filter_map(queues::of_quota));
    if !denied.is_empty() {
        client.notice(&format!(
            "not shown, because you lack the rights: {}; `jobc targets role` prints them",
            denied.join(", ")
        ));
    }
    if found.is_empty() && !denied.is_empty() {
        return Err(Error::new(Kind::Unsupported, "you may not read what is free on the cluster"));
    }
    Ok(found)
}

/// Pods that hold resources.
const RUNNING_PODS: &str = "fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed";

/// Whether a resource is GPUs, or slices of them.
fn is_gpu(resource: &str) -> bool {
    let Some((_, name)) = resource.rsplit_once('/') else { return false };
    ["gpu", "mig-", "npu", "tpu"].iter().any(|word| name.contains(word)) && !name.contains("gpumem")
}
