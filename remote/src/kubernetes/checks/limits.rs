//! LimitRanges: what a namespace allows a container, a pod and a claim.

use serde_json::Value;

use super::demand::{Amounts, Defaults, PodSet, amounts, limit_items, of_container};
use super::quantity::{of, show};
use crate::kubernetes::state::{name, text};
use crate::place::Problem;

/// Compares the pods of a job with the limits of its namespace.
pub(crate) fn check(sets: &[PodSet<'_>], ranges: &[Value]) -> Vec<Problem> {
    let defaults = Defaults::of(ranges);
    let mut problems = Vec::new();
    for (range, item) in ranges.iter().flat_map(|range| limit_items(range).map(move |item| (range, item))) {
        for set in sets {
            let rule = Rule { range: name(range), item, set };
            match text(item, "/type") {
                "Container" => {
                    for (_, container) in set.containers() {
                        let (requests, limits) = of_container(container, &defaults);
                        rule.check("a container", &requests, &limits, &mut problems);
                    }
                }
                "Pod" => {
                    let (requests, limits) = set.of_pod(&defaults);
                    rule.check("a pod", &requests, &limits, &mut problems);
                }
                _ => {}
            }
        }
    }
    problems.extend(sets.iter().flat_map(|set| below_request(set, &defaults)));
    problems
}

/// An item of a LimitRange, applied to the pods of a set.
struct Rule<'a> {
    range: &'a str,
    item: &'a Value,
    set: &'a PodSet<'a>,
}

impl Rule<'_> {
    fn check(&self, what: &str, requests: &Amounts, limits: &Amounts, problems: &mut Vec<Problem>) {
        let range = self.range;
        let mut push = |resource: &str, message: String| {
            problems.push(self.set.problem_of(resource, false, message));
        };
        for (resource, max) in &amounts(self.item.get("max")) {
            let allowed = show(resource, *max);
            let limit = limits.get(resource).or(requests.get(resource));
            match limit {
                Some(limit) if limit > max => push(
                    resource,
                    format!(
                        "{what} uses up to {} `{resource}`, and the limit range `{range}` allows {allowed}",
                        show(resource, *limit)
                    ),
                ),
                None => push(
                    resource,
                    format!(
                        "{what} has no limit of `{resource}`, and the limit range `{range}` allows {allowed}"
                    ),
                ),
                Some(_) => {}
            }
        }
        for (resource, min) in &amounts(self.item.get("min")) {
            if let Some(request) = requests.get(resource).filter(|request| *request < min) {
                let (request, min) = (show(resource, *request), show(resource, *min));
                push(
                    resource,
                    format!(
                        "{what} asks for {request} `{resource}`, and the limit range `{range}` wants at least {min}"
                    ),
                );
            }
        }
        let ratios = self.item.get("maxLimitRequestRatio").and_then(Value::as_object);
        for (resource, ratio) in ratios.into_iter().flatten() {
            let (Some(ratio), Some(limit), Some(request)) =
                (of(ratio), limits.get(resource), requests.get(resource).filter(|request| **request > 0))
            else {
                continue;
            };
            if limit.saturating_mul(1000) > request.saturating_mul(ratio) {
                push(
                    resource,
                    format!(
                        "{what} uses up to {} `{resource}` and asks for {}: the limit range `{range}` allows {} times as much",
                        show(resource, *limit),
                        show(resource, *request),
                        show("", ratio)
                    ),
                );
            }
        }
    }
}

/// Containers that ask for more than the limit that the namespace gives them: the API server refuses such pods.
fn below_request(set: &PodSet<'_>, defaults: &Defaults) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (_, container) in set.containers() {
        let (requests, limits) = of_container(container, defaults);
        for (resource, request) in &requests {
            let own = container.pointer("/resources/limits").and_then(|limits| limits.get(resource));
            let Some(limit) = limits.get(resource).filter(|limit| own.is_none() && *limit < request) else {
                continue;
            };
            let message = format!(
                "a container asks for {} `{resource}` without a limit, and the namespace limits it to {} then",
                show(resource, *request),
                show(resource, *limit)
            );
            problems.push(set.problem_of(resource, false, message));
        }
    }
    problems
}

/// Compares claims that a job creates with the limits of its namespace.
pub(crate) fn check_claim(claim: &Value, ranges: &[Value]) -> Option<String> {
    let size = of(claim.pointer("/spec/resources/requests/storage")?)?;
    let items = ranges.iter().flat_map(|range| limit_items(range).map(move |item| (range, item)));
    let mut items = items.filter(|(_, item)| text(item, "/type") == "PersistentVolumeClaim");
    items.find_map(|(range, item)| {
        let bound = |key: &str| item.get(key).and_then(|map| of(map.get("storage")?));
        let shown = |amount| show("storage", amount);
        let (range, size_text) = (name(range), shown(size));
        let above = bound("max").filter(|max| size > *max).map(|max| {
            format!("it asks for {size_text}, and the limit range `{range}` allows {}", shown(max))
        });
        above.or_else(|| {
            bound("min").filter(|min| size < *min).map(|min| {
                format!(
                    "it asks for {size_text}, and the limit range `{range}` wants at least {}",
                    shown(min)
                )
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::demand::pod_sets;
    use super::*;
    use crate::built::Manifest;
    use serde_json::json;

    fn messages(resources: &Value, item: &Value) -> Vec<String> {
        let spec = json!({"containers": [{"resources": resources}]});
        let manifests = [Manifest::new("job", json!({"spec": {"template": {"spec": spec}}}))];
        let range = json!({"metadata": {"name": "r"}, "spec": {"limits": [item]}});
        check(&pod_sets(&manifests), &[range]).into_iter().map(|problem| problem.message).collect()
    }

    #[test]
    fn containers_and_pods_stay_in_the_range() {
        let max = json!({"type": "Container", "max": {"memory": "4Gi"}, "min": {"cpu": "100m"}});
        let resources = json!({"limits": {"memory": "8Gi"}, "requests": {"cpu": "50m"}});
        assert_eq!(
            messages(&resources, &max),
            [
                "a container uses up to 8Gi `memory`, and the limit range `r` allows 4Gi",
                "a container asks for 50m `cpu`, and the limit range `r` wants at least 100m",
            ]
        );
        assert_eq!(
            messages(&json!({"requests": {"cpu": 1}}), &max),
            ["a container has no limit of `memory`, and the limit range `r` allows 4Gi"]
        );
        let pod = json!({"type": "Pod", "max": {"nvidia.com/gpu": 4}});
        assert_eq!(
            messages(&json!({"limits": {"nvidia.com/gpu": 8}}), &pod),
            ["a pod uses up to 8 `nvidia.com/gpu`, and the limit range `r` allows 4"]
        );
        assert!(messages(&json!({"limits": {"nvidia.com/gpu": 4}}), &pod).is_empty());
    }

    #[test]
    fn ratios_and_defaults_count() {
        let ratio = json!({"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}});
        let resources = json!({"limits": {"cpu": 8}, "requests": {"cpu": 2}});
        assert_eq!(
            messages(&resources, &ratio),
            ["a container uses up to 8 `cpu` and asks for 2: the limit range `r` allows 2 times as much"]
        );
        assert!(messages(&json!({"limits": {"cpu": 4}, "requests": {"cpu": 2}}), &ratio).is_empty());
        let default = json!({"type": "Container", "default": {"memory": "1Gi"}});
        assert_eq!(
            messages(&json!({"requests": {"memory": "2Gi"}}), &default),
            ["a container asks for 2Gi `memory` without a limit, and the namespace limits it to 1Gi then"]
        );
    }

    #[test]
    fn claims_stay_in_the_range() {
        let item =
            json!({"type": "PersistentVolumeClaim", "max": {"storage": "10Gi"}, "min": {"storage": "1Gi"}});
        let range = [json!({"metadata": {"name": "r"}, "spec": {"limits": [item]}})];
        let claim = |size: &str| json!({"spec": {"resources": {"requests": {"storage": size}}}});
        assert_eq!(check_claim(&claim("5Gi"), &range), None);
        assert_eq!(
            check_claim(&claim("20Gi"), &range).unwrap(),
            "it asks for 20Gi, and the limit range `r` allows 10Gi"
        );
        assert!(check_claim(&claim("1Mi"), &range).unwrap().ends_with("wants at least 1Gi"));
    }
}
