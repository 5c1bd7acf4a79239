//! The requests of a job's pods, with the defaults of the namespace.

use std::collections::BTreeMap;

use jobc_schema::pointer;
use serde_json::Value;

use super::quantity;
use crate::built::{Manifest, pod_specs};
use crate::kubernetes::state::items;
use crate::place::Problem;

/// Amounts by resource, in thousandths.
pub(crate) type Amounts = BTreeMap<String, i128>;

/// The pods of one template.
#[derive(Clone, Debug)]
pub(crate) struct PodSet<'a> {
    pub(crate) manifest: &'a Manifest,
    /// The JSON Pointer of the spec of its pods.
    pub(crate) at: String,
    pub(crate) spec: &'a Value,
    /// How many pods exist at the same time.
    pub(crate) count: i128,
}

/// The defaults of a namespace for containers without requests (LimitRange).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Defaults {
    pub(crate) limits: Amounts,
    pub(crate) requests: Amounts,
}

/// The pods of a job's objects.
pub(crate) fn pod_sets(manifests: &[Manifest]) -> Vec<PodSet<'_>> {
    let mut sets = Vec::new();
    for manifest in manifests {
        for (at, spec) in pod_specs(&manifest.object) {
            let count = count(&manifest.object, &at);
            sets.push(PodSet { manifest, at, spec, count });
        }
    }
    sets
}

/// The pods at the same time: the product of `parallelism` and `replicas` on the way to the template.
fn count(object: &Value, at: &str) -> i128 {
    let number = |value: &Value, key: &str| value.get(key).and_then(Value::as_i64).map(i128::from);
    let (mut product, mut value) = (1, object);
    for key in at.split('/').skip(1) {
        let key = pointer::unescape(key);
        let completions = number(value, "completions").unwrap_or(i128::MAX);
        product *= match number(value, "parallelism") {
            Some(parallel) => parallel.min(completions),
            None => number(value, "replicas").unwrap_or(1),
        };
        let next = match value {
            Value::Array(list) => key.parse::<usize>().ok().and_then(|index| list.get(index)),
            other => other.get(&key),
        };
        let Some(next) = next else { return product };
        value = next;
    }
    product
}

impl Defaults {
    /// The defaults of the LimitRanges of a namespace.
    pub(crate) fn of(ranges: &[Value]) -> Self {
        let mut defaults = Self::default();
        for item in ranges.iter().flat_map(limit_items) {
            if item.get("type").and_then(Value::as_str) == Some("Container") {
                add_missing(&mut defaults.limits, &amounts(item.get("default")));
                add_missing(&mut defaults.requests, &amounts(item.get("defaultRequest")));
            }
        }
        defaults
    }
}

/// The items of a LimitRange.
pub(crate) fn limit_items(range: &Value) -> impl Iterator<Item = &Value> {
    items(range, "/spec/limits")
}

/// A map of quantities.
pub(crate) fn amounts(value: Option<&Value>) -> Amounts {
    let entries = value.and_then(Value::as_object).into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), quantity::of(value)?))).collect()
}

fn add_missing(to: &mut Amounts, from: &Amounts) {
    for (key, amount) in from {
        to.entry(key.clone()).or_insert(*amount);
    }
}

/// The requests and limits of a container, after defaults: as the API server, requests follow limits first.
pub(crate) fn of_container(container: &Value, defaults: &Defaults) -> (Amounts, Amounts) {
    let mut limits = amounts(container.pointer("/resources/limits"));
    let mut requests = amounts(container.pointer("/resources/requests"));
    add_missing(&mut requests, &limits);
    add_missing(&mut requests, &defaults.requests);
    add_missing(&mut limits, &defaults.limits);
    (requests, limits)
}

impl<'a> PodSet<'a> {
    /// The containers, with their JSON Pointers.
    pub(crate) fn containers(&self) -> impl Iterator<Item = (String, &'a Value)> {
        let numbered = items(self.spec, "/containers").enumerate();
        let at = self.at.clone();
        numbered.map(move |(index, container)| (format!("{at}/containers/{index}"), container))
    }

    /// The requests and limits of a pod: the sum of its containers, or those of an init container if larger.
    pub(crate) fn of_pod(&self, defaults: &Defaults) -> (Amounts, Amounts) {
        let (mut requests, mut limits) = (Amounts::new(), Amounts::new());
        for (_, container) in self.containers() {
            let (asked, limited) = of_container(container, defaults);
            for (total, part) in [(&mut requests, asked), (&mut limits, limited)] {
                for (key, amount) in part {
                    *total.entry(key).or_default() += amount;
                }
            }
        }
        for container in items(self.spec, "/initContainers") {
            let (asked, limited) = of_container(container, defaults);
            for (total, part) in [(&mut requests, asked), (&mut limits, limited)] {
                for (key, amount) in part {
                    let total = total.entry(key).or_default();
                    *total = amount.max(*total);
                }
            }
        }
        (requests, limits)
    }

    /// A problem at the line that asks for a resource.
    pub(crate) fn problem_of(&self, resource: &str, is_warning: bool, message: String) -> Problem {
        let key = pointer::escape(resource);
        let at = self.containers().map(|(at, _)| at).find_map(|at| {
            let has = |part: &str| self.manifest.object.pointer(&format!("{at}/resources/{part}/{key}"));
            ["limits", "requests"]
                .into_iter()
                .find(|part| has(part).is_some())
                .map(|part| format!("{at}/resources/{part}/{key}"))
        });
        let place = self.manifest.origin(&at.unwrap_or_else(|| self.at.clone()));
        Problem::new(is_warning, message).at(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pods_are_counted_through_all_levels() {
        let spec = json!({"containers": [{"resources": {"limits": {"cpu": "2", "nvidia.com/gpu": 8}}}]});
        let job = Manifest::new(
            "a",
            json!({"spec": {"parallelism": 8, "completions": 4, "template": {"spec": spec}}}),
        );
        let set = Manifest::new(
            "b",
            json!({"spec": {"replicatedJobs": [
                {"replicas": 2, "template": {"spec": {"parallelism": 3, "completions": 3, "template": {"spec": spec}}}},
                {"template": {"spec": {"template": {"spec": spec}}}},
            ]}}),
        );
        let manifests = [job, set];
        let counts: Vec<i128> = pod_sets(&manifests).iter().map(|set| set.count).collect();
        assert_eq!(counts, [4, 6, 1]);
        let (requests, _) = pod_sets(&manifests)[0].of_pod(&Defaults::default());
        assert_eq!(requests["nvidia.com/gpu"], 8000);
    }

    #[test]
    fn defaults_of_the_namespace_fill_what_is_not_asked_for() {
        let ranges = [json!({"spec": {"limits": [
            {"type": "Container", "default": {"cpu": "1", "memory": "1Gi"}, "defaultRequest": {"cpu": "100m"}},
            {"type": "Pod", "max": {"cpu": "4"}},
        ]}})];
        let defaults = Defaults::of(&ranges);
        let (requests, limits) =
            of_container(&json!({"resources": {"limits": {"memory": "2Gi"}}}), &defaults);
        assert_eq!(requests["memory"], limits["memory"]);
        assert_eq!((requests["cpu"], limits["cpu"]), (100, 1000));
    }
}
