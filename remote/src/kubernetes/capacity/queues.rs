//! Kueue's queues and the quotas of a namespace.

use serde_json::Value;

use super::super::checks::quantity;
use super::super::state::{name, text};
use super::is_gpu;
use crate::place::{Amount, Capacity};

/// The name of the ClusterQueue of a LocalQueue.
pub(super) fn cluster_queue(queue: &Value) -> &str {
    text(queue, "/spec/clusterQueue")
}

/// A LocalQueue with its ClusterQueue; without it, its quota is not known. What other queues of its cohort may lend is
/// not counted.
pub(super) fn of_queue(queue: &Value, cluster: Option<&Value>) -> Capacity {
    let waiting = |object: &Value| object.pointer("/status/pendingWorkloads").and_then(Value::as_u64);
    let is_stopped = [Some(queue), cluster]
        .into_iter()
        .flatten()
        .any(|object| matches!(text(object, "/spec/stopPolicy"), "Hold" | "HoldAndDrain"));
    let amount = |is_meant: fn(&str) -> bool| {
        let cluster = cluster?;
        let quota = sum(cluster.pointer("/spec/resourceGroups"), "/flavors", "nominalQuota", is_meant)?;
        let used =
            flavors(cluster.pointer("/status/flavorsReservation"), "total", is_meant).unwrap_or_default();
        Some(Amount { free: Some(quota.saturating_sub(used) / 1000), total: quota / 1000 })
    };
    Capacity {
        name: format!("queue {}", name(queue)),
        nodes: None,
        gpus: amount(is_gpu),
        cpus: amount(|resource| resource == "cpu"),
        // All that share the quota wait before it.
        waiting: cluster.and_then(waiting).or_else(|| waiting(queue)),
        note: is_stopped.then(|| "stopped".to_owned()),
    }
}

/// A ResourceQuota; none if it limits neither GPUs nor processors.
pub(super) fn of_quota(quota: &Value) -> Option<Capacity> {
    let amount = |is_meant: fn(&str) -> bool| {
        let of = |at: &str| amounts(quota.pointer(at), is_meant);
        let hard = of("/status/hard")?;
        let used = of("/status/used").unwrap_or_default();
        Some(Amount { free: Some(hard.saturating_sub(used) / 1000), total: hard / 1000 })
    };
    let requested = |resource: &str| resource.strip_prefix("requests.").is_some_and(is_gpu);
    let (gpus, cpus) = (amount(requested), amount(|resource| matches!(resource, "cpu" | "requests.cpu")));
    (gpus.is_some() || cpus.is_some()).then(|| Capacity {
        name: format!("quota {}", name(quota)),
        gpus,
        cpus,
        ..Capacity::default()
    })
}

/// The amounts in a map of resources; none if there is none of that kind.
fn amounts(map: Option<&Value>, is_meant: fn(&str) -> bool) -> Option<u64> {
    let own = map?.as_object()?.iter().filter(|(resource, _)| is_meant(resource));
    total(own.map(|(_, amount)| amount))
}

/// The amounts of the flavors in groups.
fn sum(groups: Option<&Value>, at: &str, key: &str, is_meant: fn(&str) -> bool) -> Option<u64> {
    let groups = groups?.as_array()?.iter();
    groups.filter_map(|group| flavors(group.pointer(at), key, is_meant)).reduce(|sum, amount| sum + amount)
}

/// The amounts of flavors.
fn flavors(flavors: Option<&Value>, key: &str, is_meant: fn(&str) -> bool) -> Option<u64> {
    let resources =
        flavors?.as_array()?.iter().filter_map(|flavor| flavor.get("resources")?.as_array()).flatten();
    total(
        resources
            .filter(|resource| is_meant(text(resource, "/name")))
            .filter_map(|resource| resource.get(key)),
    )
}

/// A sum in thousandths; none of nothing.
fn total<'a>(amounts: impl Iterator<Item = &'a Value>) -> Option<u64> {
    let amounts = amounts.filter_map(quantity::of).filter_map(|millis| u64::try_from(millis).ok());
    amounts.reduce(|sum, amount| sum + amount)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_queue_has_what_its_quota_leaves() {
        let queue = json!({"metadata": {"name": "gpu"}, "spec": {"clusterQueue": "all"}, "status": {"pendingWorkloads": 1}});
        let flavor = |name: &str, gpus: u64| {
            json!({"name": name, "resources": [
                {"name": "nvidia.com/gpu", "nominalQuota": gpus.to_string()}, {"name": "memory", "nominalQuota": "1Ti"},
            ]})
        };
        let used =
            json!([{"name": "a", "resources": [{"name": "nvidia.com/gpu", "total": "10", "borrowed": "2"}]}]);
        let cluster = json!({
            "spec": {"resourceGroups": [{"flavors": [flavor("a", 8), flavor("b", 8)]}], "stopPolicy": "Hold"},
            "status": {"flavorsReservation": used, "pendingWorkloads": 7},
        });
        assert_eq!(cluster_queue(&queue), "all");
        let found = of_queue(&queue, Some(&cluster));
        assert_eq!(found.gpus, Some(Amount { free: Some(6), total: 16 }));
        assert_eq!((found.cpus, found.waiting, found.note.as_deref()), (None, Some(7), Some("stopped")));
        let unread = of_queue(&queue, None);
        assert_eq!((unread.gpus, unread.waiting), (None, Some(1)));
    }

    #[test]
    fn a_quota_of_other_things_is_left_out() {
        let quota = |hard: Value, used: Value| json!({"metadata": {"name": "q"}, "status": {"hard": hard, "used": used}});
        let found = of_quota(&quota(
            json!({"requests.nvidia.com/gpu": "8", "requests.cpu": "100"}),
            json!({"requests.nvidia.com/gpu": "3"}),
        ));
        let found = found.unwrap();
        assert_eq!(found.gpus, Some(Amount { free: Some(5), total: 8 }));
        assert_eq!(found.cpus, Some(Amount { free: Some(100), total: 100 }));
        assert_eq!(of_quota(&quota(json!({"pods": "8"}), json!({}))), None);
    }
}
