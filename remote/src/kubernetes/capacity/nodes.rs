//! Nodes in groups by their GPUs, with what their pods request.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::checks::quantity;
use super::super::state::{items, name, text};
use super::is_gpu;
use crate::place::{Amount, Capacity};

/// The labels with the product of a node's GPUs, of the feature discovery of their vendors.
const PRODUCTS: [&str; 3] = ["nvidia.com/gpu.product", "amd.com/gpu.product-name", "gpu.intel.com/product"];

/// GPUs and thousandths of a processor.
#[derive(Clone, Copy, Default)]
struct Resources {
    gpus: u64,
    cpu_millis: u64,
}

impl Resources {
    /// Of an object that maps resources to quantities.
    fn of(amounts: Option<&Value>) -> Self {
        let mut found = Self::default();
        for (resource, amount) in amounts.and_then(Value::as_object).into_iter().flatten() {
            let millis =
                quantity::of(amount).and_then(|millis| u64::try_from(millis).ok()).unwrap_or_default();
            if is_gpu(resource) {
                found.gpus += millis / 1000;
            } else if resource == "cpu" {
                found.cpu_millis += millis;
            }
        }
        found
    }

    fn add(&mut self, other: Self) {
        self.gpus += other.gpus;
        self.cpu_millis += other.cpu_millis;
    }
}

/// A group of nodes; without the pods of the cluster, what is free is not known.
pub(super) fn of(nodes: &[Value], pods: Option<&[Value]>) -> Vec<Capacity> {
    let mut used: BTreeMap<&str, Resources> = BTreeMap::new();
    for pod in pods.unwrap_or_default() {
        let containers = items(pod, "/spec/containers");
        let own = used.entry(text(pod, "/spec/nodeName")).or_default();
        for container in containers {
            own.add(Resources::of(container.pointer("/resources/requests")));
        }
    }
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    for node in nodes {
        let has = Resources::of(node.pointer("/status/allocatable"));
        let used = used.get(name(node)).copied().unwrap_or_default();
        groups.entry(group_of(node, has)).or_default().add(has, used, is_usable(node));
    }
    groups.into_iter().map(|(name, group)| group.capacity(name, pods.is_some())).collect()
}

/// `nodes NVIDIA-A100-SXM4-80GB`, or `nodes without GPUs`.
fn group_of(node: &Value, has: Resources) -> String {
    let label = |key: &&str| node.pointer("/metadata/labels")?.get(*key)?.as_str();
    match PRODUCTS.iter().find_map(label) {
        _ if has.gpus == 0 => "nodes without GPUs".to_owned(),
        Some(product) => format!("nodes {product}"),
        None => "nodes with GPUs".to_owned(),
    }
}

/// Whether new pods can be placed there.
fn is_usable(node: &Value) -> bool {
    let mut ready = items(node, "/status/conditions").filter(|found| text(found, "/type") == "Ready");
    node.pointer("/spec/unschedulable") != Some(&Value::Bool(true))
        && ready.next().is_none_or(|ready| text(ready, "/status") == "True")
}

#[derive(Default)]
struct Group {
    nodes: u64,
    free_nodes: u64,
    unusable: u64,
    has: Resources,
    free: Resources,
}

impl Group {
    fn add(&mut self, has: Resources, used: Resources, is_usable: bool) {
        self.nodes += 1;
        self.has.add(has);
        if !is_usable {
            self.unusable += 1;
            return;
        }
        self.free.add(Resources {
            gpus: has.gpus.saturating_sub(used.gpus),
            cpu_millis: has.cpu_millis.saturating_sub(used.cpu_millis),
        });
        // Every node has pods of the cluster itself, which use processors.
        self.free_nodes +=
            u64::from(if has.gpus > 0 { used.gpus == 0 } else { used.cpu_millis * 2 < has.cpu_millis });
    }

    fn capacity(self, name: String, is_known: bool) -> Capacity {
        let amount = |free: u64, total: u64| Some(Amount { free: is_known.then_some(free), total });
        let gpus = if self.has.gpus > 0 { amount(self.free.gpus, self.has.gpus) } else { None };
        let note = (self.unusable > 0).then(|| format!("{} cordoned or not ready", self.unusable));
        Capacity {
            name,
            nodes: amount(self.free_nodes, self.nodes),
            gpus,
            cpus: amount(self.free.cpu_millis / 1000, self.has.cpu_millis / 1000),
            waiting: None,
            note,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node(name: &str, product: &str, gpus: u64) -> Value {
        let mut node = json!({"metadata": {"name": name, "labels": {}}, "status": {"allocatable": {"cpu": "64", "memory": "1Ti"}}});
        if gpus > 0 {
            node["metadata"]["labels"]["nvidia.com/gpu.product"] = product.into();
            node["status"]["allocatable"]["nvidia.com/gpu"] = gpus.to_string().into();
        }
        node
    }

    fn pod(node: &str, gpus: u64) -> Value {
        json!({"spec": {"nodeName": node, "containers": [
            {"resources": {"requests": {"cpu": "500m", "nvidia.com/gpu": gpus}}}, {"resources": {}},
        ]}})
    }

    #[test]
    fn nodes_of_a_product_are_one_row() {
        let mut cordoned = node("c", "H100", 8);
        cordoned["spec"] = json!({"unschedulable": true});
        let nodes = [node("a", "H100", 8), node("b", "H100", 8), cordoned, node("d", "", 0)];
        let found = of(&nodes, Some(&[pod("a", 2), pod("a", 1), pod("d", 0)]));
        let amount = |free, total| Some(Amount { free: Some(free), total });
        assert_eq!(found[0].name, "nodes H100");
        assert_eq!((found[0].nodes, found[0].gpus), (amount(1, 3), amount(13, 24)));
        assert_eq!(
            (found[0].cpus, found[0].note.as_deref()),
            (amount(127, 192), Some("1 cordoned or not ready"))
        );
        assert_eq!(
            (found[1].name.as_str(), found[1].nodes, found[1].gpus),
            ("nodes without GPUs", amount(1, 1), None)
        );
        let unknown = of(&nodes, None);
        assert_eq!(unknown[0].gpus, Some(Amount { free: None, total: 24 }));
    }
}
