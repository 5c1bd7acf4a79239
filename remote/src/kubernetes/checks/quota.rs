//! ResourceQuotas: whether a job's request fits at all, and now.

use std::collections::BTreeMap;

use serde_json::Value;

use super::demand::{Amounts, Defaults, PodSet, amounts, of_container};
use super::quantity::show;
use crate::kubernetes::state::{items, name, text};
use crate::place::Problem;

/// A job's request.
pub(crate) struct Demand<'a> {
    pub(crate) sets: &'a [PodSet<'a>],
    pub(crate) defaults: &'a Defaults,
    /// Whether the job needs all of its pods at the same time.
    pub(crate) is_gang: bool,
    /// Objects to create by quota key, in thousandths: `count/jobs.batch`, `configmaps`.
    pub(crate) objects: &'a Amounts,
}

/// Compares a job's request with the quotas of its namespace.
pub(crate) fn check(demand: &Demand<'_>, quotas: &[Value]) -> Vec<Problem> {
    quotas.iter().flat_map(|quota| check_quota(demand, quota)).collect()
}

fn check_quota(demand: &Demand<'_>, quota: &Value) -> Vec<Problem> {
    let chosen: Option<Vec<&PodSet<'_>>> = demand
        .sets
        .iter()
        .filter_map(|set| match is_chosen(quota, set) {
            Some(false) => None,
            other => Some(other.map(|_| set)),
        })
        .collect();
    // A scope that is not known here: nothing can be said.
    let Some(chosen) = chosen else { return vec![] };
    let spec = amounts(quota.pointer("/spec/hard"));
    let hard = amounts(quota.pointer("/status/hard"));
    let hard = if hard.is_empty() { spec } else { hard };
    let used = amounts(quota.pointer("/status/used"));
    let mut problems = Vec::new();
    for (key, hard) in &hard {
        let used = used.get(key).copied().unwrap_or_default();
        if let Some(count) = demand.objects.get(key).filter(|_| quota.pointer("/spec/scopes").is_none()) {
            problems.extend(check_objects(quota, key, *count, *hard, used, demand));
            continue;
        }
        problems.extend(chosen.iter().filter_map(|set| lacks(quota, key, set, demand.defaults)));
        problems.extend(check_pods(quota, key, &chosen, demand, (*hard, used)));
    }
    problems
}

fn check_objects(
    quota: &Value,
    key: &str,
    count: i128,
    hard: i128,
    used: i128,
    demand: &Demand<'_>,
) -> Option<Problem> {
    let set = demand.sets.first()?;
    (used + count > hard).then(|| {
        Problem::error(format!(
            "the quota `{}` allows {} `{key}`, of which {} are used, and the job needs {}",
            name(quota),
            show(key, hard),
            show(key, used),
            show(key, count)
        ))
        .at(set.manifest.origin("/metadata/name"))
        .help("remove ended jobs with `jobc rm`, or have the quota raised")
    })
}

/// How much of a key of a quota one pod takes; `None` if the key is not about pods.
fn per_pod(key: &str, set: &PodSet<'_>, defaults: &Defaults) -> Option<i128> {
    let (requests, limits) = set.of_pod(defaults);
    if matches!(key, "pods" | "count/pods") {
        return Some(1000);
    }
    if let Some(resource) = key.strip_prefix("limits.") {
        return Some(limits.get(resource).copied().unwrap_or_default());
    }
    let resource = key.strip_prefix("requests.").unwrap_or(key);
    let is_plain = matches!(key, "cpu" | "memory" | "ephemeral-storage");
    // `requests.storage` is about claims.
    (is_plain || key.starts_with("requests.") && key != "requests.storage")
        .then(|| requests.get(resource).copied().unwrap_or_default())
}

fn check_pods(
    quota: &Value,
    key: &str,
    chosen: &[&PodSet<'_>],
    demand: &Demand<'_>,
    (hard, used): (i128, i128),
) -> Option<Problem> {
    let each: Vec<(&PodSet<'_>, i128)> =
        chosen.iter().filter_map(|set| Some((*set, per_pod(key, set, demand.defaults)?))).collect();
    let (largest, one) = each.iter().copied().max_by_key(|(_, amount)| *amount)?;
    let total: i128 = each.iter().map(|(set, amount)| set.count * amount).sum();
    let quota_name = name(quota);
    let resource = key.strip_prefix("requests.").or(key.strip_prefix("limits.")).unwrap_or(key);
    let problem = |is_warning, message, help: Option<&str>| Problem {
        help: help.map(str::to_owned),
        ..largest.problem_of(resource, is_warning, message)
    };
    if one > hard {
        let (one, hard) = (show(key, one), show(key, hard));
        let message =
            format!("a pod asks for {one} `{key}`, and the quota `{quota_name}` allows {hard} in all");
        return Some(problem(false, message, Some("ask for less, or have the quota raised")));
    }
    let (asked, allowed) = (show(key, total), show(key, hard));
    if total > hard {
        let message = format!(
            "the pods ask for {asked} `{key}` at once, and the quota `{quota_name}` allows {allowed}"
        );
        let help = if demand.is_gang {
            "ask for less, or have the quota raised: the job starts with all of its pods"
        } else {
            "the pods that do not fit wait for others to end"
        };
        return Some(problem(!demand.is_gang, message, Some(help)));
    }
    (total > hard - used && total > 0).then(|| {
        let used = show(key, used);
        let message = format!(
            "the pods ask for {asked} `{key}`, and of {allowed} in the quota `{quota_name}` {used} are used: the job waits"
        );
        problem(true, message, None)
    })
}

/// A resource that a quota requires every container to specify, but one does not.
fn lacks(quota: &Value, key: &str, set: &PodSet<'_>, defaults: &Defaults) -> Option<Problem> {
    let (part, resource) = match key {
        "cpu" | "memory" => ("requests", key),
        _ => key.split_once('.')?,
    };
    if !matches!((part, resource), ("requests" | "limits", "cpu" | "memory")) {
        return None;
    }
    let is_missing = set.containers().any(|(_, container)| {
        let (requests, limits) = of_container(container, defaults);
        !if part == "limits" { limits } else { requests }.contains_key(resource)
    });
    is_missing.then(|| {
        let (quota, wanted) = (name(quota), format!("{part}.{resource}"));
        let message = format!("the quota `{quota}` wants `{wanted}` of every container, and one has none");
        let help = format!("set `resources.{resource}` of the role");
        set.problem_of(resource, false, message).help(help)
    })
}

/// Whether a quota is about the pods of a set; none if that is not known.
fn is_chosen(quota: &Value, set: &PodSet<'_>) -> Option<bool> {
    let mut scopes: Vec<(&str, &str, Vec<&str>)> = Vec::new();
    for scope in items(quota, "/spec/scopes") {
        scopes.push((scope.as_str()?, "Exists", vec![]));
    }
    let expressions = items(quota, "/spec/scopeSelector/matchExpressions");
    for expression in expressions {
        let values = items(expression, "/values");
        let values = values.filter_map(Value::as_str).collect();
        scopes.push((text(expression, "/scopeName"), text(expression, "/operator"), values));
    }
    let is_terminating = set.spec.get("activeDeadlineSeconds").is_some();
    let is_best_effort = || {
        set.containers().all(|(_, container)| {
            let (requests, limits) = of_container(container, &Defaults::default());
            let none = |amounts: &BTreeMap<String, i128>| {
                !amounts.contains_key("cpu") && !amounts.contains_key("memory")
            };
            none(&requests) && none(&limits)
        })
    };
    let class = text(set.spec, "/priorityClassName");
    let mut chosen = true;
    for (scope, operator, values) in scopes {
        chosen &= match (scope, operator) {
            ("Terminating", _) => is_terminating,
            ("NotTerminating", _) => !is_terminating,
            ("BestEffort", _) => is_best_effort(),
            ("NotBestEffort", _) => !is_best_effort(),
            ("PriorityClass", "In") => values.contains(&class),
            ("PriorityClass", "NotIn") => !values.contains(&class),
            ("PriorityClass", "Exists") => !class.is_empty(),
            ("PriorityClass", "DoesNotExist") => class.is_empty(),
            _ => return None,
        };
    }
    Some(chosen)
}

#[cfg(test)]
mod tests;
