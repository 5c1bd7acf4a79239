//! Pods as tasks: one sentence for all tasks with the same reason.

use std::collections::BTreeMap;

use super::super::pods::Pod;
use super::reason::{Field, Reason};
use super::{container, disruption, scheduler};

/// Tasks that are named in a sentence; the rest is counted.
const MAX_NAMED: usize = 3;

/// The reasons of waiting or terminated pods, the most frequent first.
pub(crate) fn of_pods(pods: &[Pod]) -> Vec<Reason> {
    let mut groups: BTreeMap<(String, &str, Field), Vec<&Pod>> = BTreeMap::new();
    for pod in pods {
        if let Some((text, field)) = of_pod(pod) {
            groups.entry((text, pod.role(), field)).or_default().push(pod);
        }
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, pods)| std::cmp::Reverse(pods.len()));
    let reason = |((text, role, field), mut pods): ((String, &str, Field), Vec<&Pod>)| {
        pods.sort_by_key(|pod| pod.task_order());
        Reason { text: format!("{}: {text}", names(&pods)), role: Some(role.to_owned()), field }
    };
    groups.into_iter().map(reason).collect()
}

fn names(pods: &[&Pod]) -> String {
    list(&pods.iter().map(|pod| pod.task()).collect::<Vec<_>>())
}

fn list(names: &[String]) -> String {
    match names.len() {
        0..=MAX_NAMED => names.join(", "),
        count => format!("{} and {} more tasks", names[..MAX_NAMED - 1].join(", "), count - MAX_NAMED + 1),
    }
}

/// Tasks with the nodes of their pods: `train-0 on node-1, train-1 on node-2`.
pub(crate) fn names_with_nodes(pods: &[Pod]) -> String {
    let mut pods: Vec<&Pod> = pods.iter().collect();
    pods.sort_by_key(|pod| pod.task_order());
    let name = |pod: &&Pod| match &pod.spec.node_name {
        Some(node) => format!("{} on {node}", pod.task()),
        None => pod.task(),
    };
    list(&pods.iter().map(name).collect::<Vec<_>>())
}

/// The reason in a pod, and its subject; `None` if the pod has no problem.
fn of_pod(pod: &Pod) -> Option<(String, Field)> {
    if let Some(found) = disruption::of_pod(pod) {
        return Some(found);
    }
    if let Some(ended) = pod.main().and_then(|state| state.terminated.as_ref()) {
        let (text, field) = container::of_ended(ended)?;
        return Some(match pod.unhealthy_device() {
            Some((name, device)) => (format!("{text}; {device}"), Field::Resource(name.to_owned())),
            None => (text, field),
        });
    }
    if let Some((name, ended)) = pod.failed_init() {
        return container::of_init(name, ended);
    }
    let containers = pod.status.init_container_statuses.iter().chain(&pod.status.container_statuses);
    let mut waiting = containers.filter_map(|container| container.state.waiting.as_ref());
    if let Some(found) = waiting.find_map(container::of_waiting) {
        return Some(found);
    }
    if let Some((name, device)) = pod.unhealthy_device() {
        return Some((device, Field::Resource(name.to_owned())));
    }
    let unscheduled = pod.condition("PodScheduled", "False")?;
    Some(scheduler::of_unscheduled(&unscheduled.reason, &unscheduled.message))
}

#[cfg(test)]
mod tests;
