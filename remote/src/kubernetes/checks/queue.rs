//! Kueue queues: whether a queue exists, admits the namespace, and could ever admit the job.

use serde_json::Value;

use super::demand::{Amounts, Defaults, PodSet};
use super::quantity::{of, show};
use crate::kubernetes::state::{QUEUE, items, name, text};
use crate::place::Problem;

/// The facts known about a job's queue.
#[derive(Default)]
pub(crate) struct QueueFacts<'a> {
    /// The LocalQueue.
    pub(crate) local: Option<&'a Value>,
    /// Its ClusterQueue; none if it may not be read.
    pub(crate) cluster: Option<&'a Value>,
    /// Whether the ClusterQueue does not exist.
    pub(crate) is_cluster_absent: bool,
    /// The LocalQueues of the namespace.
    pub(crate) known: &'a [Value],
    /// The namespace; none if it may not be read.
    pub(crate) namespace: Option<&'a Value>,
}

/// The name of the queue of an object.
pub(crate) fn queue_of(object: &Value) -> Option<&str> {
    object.pointer("/metadata/labels")?.get(QUEUE)?.as_str()
}

/// Compares a job with its queue.
pub(crate) fn check(
    queue: &str,
    sets: &[PodSet<'_>],
    defaults: &Defaults,
    facts: &QueueFacts<'_>,
) -> Vec<Problem> {
    let Some(manifest) = sets.iter().map(|set| set.manifest).find(|m| queue_of(&m.object) == Some(queue))
    else {
        return vec![];
    };
    let place = manifest.origin("/metadata/labels/kueue.x-k8s.io~1queue-name");
    let problem = |is_warning, message: String, help: Option<String>| Problem {
        help,
        ..Problem::new(is_warning, message).at(place.clone())
    };
    let Some(local) = facts.local else {
        let names: Vec<String> = facts.known.iter().map(|known| format!("`{}`", name(known))).collect();
        let help = if names.is_empty() {
            "the namespace has no queue; ask an administrator for a LocalQueue".to_owned()
        } else {
            format!("the namespace has {}", names.join(", "))
        };
        return vec![problem(
            false,
            format!("there is no Kueue queue `{queue}` in the namespace"),
            Some(help),
        )];
    };
    let mut problems = Vec::new();
    let held = |object: &Value| matches!(text(object, "/spec/stopPolicy"), "Hold" | "HoldAndDrain");
    if held(local) {
        let message = format!("the queue `{queue}` is stopped: the job waits until it is resumed");
        problems.push(problem(true, message, None));
    }
    let behind = text(local, "/spec/clusterQueue");
    if facts.is_cluster_absent {
        let message =
            format!("the queue `{queue}` leads to the ClusterQueue `{behind}`, which does not exist");
        problems.push(problem(false, message, None));
    }
    let Some(cluster) = facts.cluster else { return problems };
    if held(cluster) {
        let message = format!("the ClusterQueue `{behind}` is stopped: the job waits until it is resumed");
        problems.push(problem(true, message, None));
    }
    if let Some(namespace) = facts.namespace
        && !admits(cluster, namespace)
    {
        let message =
            format!("the ClusterQueue `{behind}` does not admit jobs of the namespace `{}`", name(namespace));
        problems.push(problem(false, message, Some("use another queue".to_owned())));
    }
    let own: Vec<&PodSet<'_>> = sets.iter().filter(|set| std::ptr::eq(set.manifest, manifest)).collect();
    problems.extend(check_amounts(behind, &own, defaults, cluster));
    problems
}

/// Whether the namespace selector of a ClusterQueue chooses a namespace: none chooses nothing, an empty one everything.
fn admits(cluster: &Value, namespace: &Value) -> bool {
    let Some(selector) = cluster.pointer("/spec/namespaceSelector").filter(|selector| !selector.is_null())
    else {
        return false;
    };
    let label =
        |key: &str| namespace.pointer("/metadata/labels").and_then(|labels| labels.get(key)?.as_str());
    let wanted = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let mut chosen = wanted.into_iter().all(|(key, value)| label(key) == value.as_str());
    for expression in items(selector, "/matchExpressions") {
        let found = label(text(expression, "/key"));
        let values = || items(expression, "/values");
        let is_among = || found.is_some_and(|found| values().any(|value| value.as_str() == Some(found)));
        chosen &= match text(expression, "/operator") {
            "In" => is_among(),
            "NotIn" => !is_among(),
            "Exists" => found.is_some(),
            "DoesNotExist" => found.is_none(),
            _ => true,
        };
    }
    chosen
}

/// A resource of a flavor: the maximum that the queue may use; `None` if it is unlimited.
struct FlavorQuota<'a> {
    flavor: &'a str,
    capacity: Option<i128>,
}

/// The flavors that a ClusterQueue has for a resource.
fn flavors<'a>(cluster: &'a Value, resource: &str) -> Vec<FlavorQuota<'a>> {
    let in_cohort =
        !text(cluster, "/spec/cohortName").is_empty() || !text(cluster, "/spec/cohort").is_empty();
    let groups = items(cluster, "/spec/resourceGroups");
    let mut found = Vec::new();
    for flavor in groups.flat_map(|group| items(group, "/flavors")) {
        for quota in items(flavor, "/resources").filter(|quota| text(quota, "/name") == resource) {
            let nominal = quota.get("nominalQuota").and_then(of).unwrap_or_default();
            let capacity = match quota.get("borrowingLimit").and_then(of) {
                Some(limit) if in_cohort => Some(nominal + limit),
                _ if in_cohort => None,
                _ => Some(nominal),
            };
            found.push(FlavorQuota { flavor: text(flavor, "/name"), capacity });
        }
    }
    found
}

/// The part of a job that can never be admitted: Kueue reserves the quota of all pods of a job together.
fn check_amounts(queue: &str, sets: &[&PodSet<'_>], defaults: &Defaults, cluster: &Value) -> Vec<Problem> {
    let mut totals = Amounts::new();
    let mut parts: Vec<(&PodSet<'_>, Amounts)> = Vec::new();
    for set in sets {
        let (requests, _) = set.of_pod(defaults);
        let amounts: Amounts = requests.into_iter().map(|(key, amount)| (key, amount * set.count)).collect();
        for (key, amount) in &amounts {
            *totals.entry(key.clone()).or_default() += amount;
        }
        parts.push((set, amounts));
    }
    let mut problems = Vec::new();
    for (resource, total) in totals.iter().filter(|(_, total)| **total > 0) {
        let largest =
            parts.iter().max_by_key(|(_, amounts)| amounts.get(resource).copied().unwrap_or_default());
        let Some((set, most)) =
            largest.map(|(set, amounts)| (*set, amounts.get(resource).copied().unwrap_or_default()))
        else {
            continue;
        };
        let flavors = flavors(cluster, resource);
        if flavors.is_empty() {
            let message = format!(
                "the ClusterQueue `{queue}` has no `{resource}`, which the job asks for: it is never admitted"
            );
            problems.push(set.problem_of(resource, false, message));
            continue;
        }
        if flavors.iter().any(|flavor| flavor.capacity.is_none()) {
            continue;
        }
        let capacity = |flavor: &FlavorQuota<'_>| flavor.capacity.unwrap_or_default();
        let sum: i128 = flavors.iter().map(capacity).sum();
        // The pods of one template get one flavor.
        let best = flavors.iter().max_by_key(|flavor| capacity(flavor));
        let message = if *total > sum {
            format!(
                "the job asks for {} `{resource}` at once, and the ClusterQueue `{queue}` allows {}: it is never admitted",
                show(resource, *total),
                show(resource, sum)
            )
        } else if let Some(best) = best.filter(|best| most > capacity(best)) {
            format!(
                "the pods of a role ask for {} `{resource}`, and the largest flavor of the ClusterQueue `{queue}`, `{}`, allows {}: the job is never admitted",
                show(resource, most),
                best.flavor,
                show(resource, capacity(best))
            )
        } else {
            continue;
        };
        let help = Some("ask for less, or use another queue".to_owned());
        problems.push(Problem { help, ..set.problem_of(resource, false, message) });
    }
    problems
}

#[cfg(test)]
mod tests;
