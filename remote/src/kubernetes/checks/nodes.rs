//! Nodes: whether any has the labels that the pods want, tolerable taints, and enough of each resource.
//!
//! All of it is a warning: an autoscaler can add nodes.

use serde_json::Value;

use super::demand::{Defaults, PodSet, amounts};
use super::quantity::show;
use crate::kubernetes::state::{items, text};
use crate::place::Problem;

/// The label selector for the nodes of pods: their `nodeSelector`, and the required affinity where there is one term.
pub(crate) fn selector(spec: &Value) -> String {
    let labels = spec.get("nodeSelector").and_then(Value::as_object).into_iter().flatten();
    let mut parts: Vec<String> =
        labels.filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?))).collect();
    let terms = spec
        .pointer("/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms")
        .and_then(Value::as_array);
    // Terms are alternatives, which a selector cannot express.
    if let Some([term]) = terms.map(Vec::as_slice) {
        for expression in items(term, "/matchExpressions") {
            let key = text(expression, "/key");
            let values = items(expression, "/values");
            let values = values.filter_map(Value::as_str).collect::<Vec<_>>().join(",");
            match text(expression, "/operator") {
                "In" => parts.push(format!("{key} in ({values})")),
                "NotIn" => parts.push(format!("{key} notin ({values})")),
                "Exists" => parts.push(key.to_owned()),
                "DoesNotExist" => parts.push(format!("!{key}")),
                // A selector cannot express `Gt` and `Lt`: more nodes than needed are read.
                _ => {}
            }
        }
    }
    parts.join(",")
}

/// Compares pods with the nodes that their selector chose.
pub(crate) fn check(
    set: &PodSet<'_>,
    defaults: &Defaults,
    selector: &str,
    nodes: &[Value],
) -> Option<Problem> {
    let help = "unless an autoscaler adds one, the pods wait";
    if nodes.is_empty() {
        let field =
            if set.spec.get("nodeSelector").is_some() { "nodeSelector" } else { "affinity/nodeAffinity" };
        let place = set.manifest.origin(&format!("{}/{field}", set.at));
        let message = if selector.is_empty() {
            "the cluster has no node".to_owned()
        } else {
            format!("no node of the cluster has the labels `{selector}`")
        };
        return Some(Problem::warning(message).at(place).help(help));
    }
    let (requests, _) = set.of_pod(defaults);
    for (resource, asked) in requests.iter().filter(|(_, asked)| **asked > 0) {
        let of = |node: &Value| {
            amounts(node.pointer("/status/allocatable")).get(resource).copied().unwrap_or_default()
        };
        let most = nodes.iter().map(of).max().unwrap_or_default();
        if most < *asked {
            let message = if most == 0 {
                format!("no node that the pods may run on has `{resource}`")
            } else {
                format!(
                    "a pod asks for {} `{resource}`, and the largest node that it may run on has {}",
                    show(resource, *asked),
                    show(resource, most)
                )
            };
            return Some(set.problem_of(resource, true, message).help(help));
        }
    }
    if nodes.iter().all(|node| untolerated(set.spec, node).is_some()) {
        let why = nodes.iter().find_map(|node| untolerated(set.spec, node)).unwrap_or_default();
        let place = set.manifest.origin(&format!("{}/tolerations", set.at));
        let message =
            format!("the pods do not tolerate a taint of every node that they may run on, such as `{why}`");
        let help = "add it to `kubernetes.tolerations` of the target";
        return Some(Problem::warning(message).at(place).help(help));
    }
    None
}

/// A taint of a node that keeps pods away.
fn untolerated(spec: &Value, node: &Value) -> Option<String> {
    let tolerations = || items(spec, "/tolerations");
    let taints = items(node, "/spec/taints");
    let mut taints = taints.filter(|taint| matches!(text(taint, "/effect"), "NoSchedule" | "NoExecute"));
    let is_tolerated = |taint: &Value| {
        tolerations().any(|toleration| {
            let same = |field: &str| text(toleration, field) == text(taint, field);
            let key = text(toleration, "/key");
            let exists = text(toleration, "/operator") == "Exists";
            (key.is_empty() && exists || key == text(taint, "/key"))
                && (exists || same("/value"))
                && (text(toleration, "/effect").is_empty() || same("/effect"))
        })
    };
    let taint = taints.find(|taint| !is_tolerated(taint))?;
    let value = text(taint, "/value");
    let value = if value.is_empty() { String::new() } else { format!("={value}") };
    Some(format!("{}{value}:{}", text(taint, "/key"), text(taint, "/effect")))
}

#[cfg(test)]
mod tests {
    use super::super::demand::pod_sets;
    use super::*;
    use crate::built::Manifest;
    use serde_json::json;

    fn message(pod: &Value, nodes: &[Value]) -> Option<String> {
        let manifests = [Manifest::new("job", json!({"spec": {"template": {"spec": pod}}}))];
        let sets = pod_sets(&manifests);
        let selector = selector(sets[0].spec);
        check(&sets[0], &Defaults::default(), &selector, nodes).map(|problem| problem.message)
    }

    fn pod(gpus: u32, more: &Value) -> Value {
        let mut pod = json!({"containers": [{"resources": {"limits": {"nvidia.com/gpu": gpus}}}]});
        for (key, value) in more.as_object().into_iter().flatten() {
            pod[key] = value.clone();
        }
        pod
    }

    fn node(gpus: u32) -> Value {
        json!({"status": {"allocatable": {"nvidia.com/gpu": gpus.to_string()}}})
    }

    #[test]
    fn pods_choose_nodes_by_labels() {
        let requirement = json!([
            {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["A", "B"]},
            {"key": "spot", "operator": "DoesNotExist"},
            {"key": "memory", "operator": "Gt", "values": ["40"]},
        ]);
        let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            {"nodeSelectorTerms": [{"matchExpressions": requirement}]}}});
        let spec = pod(1, &json!({"nodeSelector": {"pool": "gpu"}, "affinity": affinity}));
        assert_eq!(selector(&spec), "pool=gpu,nvidia.com/gpu.product in (A,B),!spot");
        assert_eq!(
            message(&spec, &[]).unwrap(),
            "no node of the cluster has the labels `pool=gpu,nvidia.com/gpu.product in (A,B),!spot`"
        );
    }

    #[test]
    fn the_largest_node_decides() {
        assert_eq!(message(&pod(8, &json!({})), &[node(4), node(8)]), None);
        assert_eq!(
            message(&pod(16, &json!({})), &[node(4), node(8)]).unwrap(),
            "a pod asks for 16 `nvidia.com/gpu`, and the largest node that it may run on has 8"
        );
        assert_eq!(
            message(&pod(1, &json!({})), &[json!({})]).unwrap(),
            "no node that the pods may run on has `nvidia.com/gpu`"
        );
    }

    #[test]
    fn a_taint_of_every_node_must_be_tolerated() {
        let mut tainted = node(8);
        tainted["spec"] = json!({"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]});
        assert!(message(&pod(1, &json!({})), &[tainted.clone()]).unwrap().contains("`gpu=yes:NoSchedule`"));
        assert_eq!(message(&pod(1, &json!({})), &[tainted.clone(), node(8)]), None);
        let tolerations = json!({"tolerations": [{"key": "gpu", "operator": "Exists"}]});
        assert_eq!(message(&pod(1, &tolerations), &[tainted]), None);
    }
}
