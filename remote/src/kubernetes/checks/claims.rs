//! PersistentVolumeClaims: bound, and usable by as many nodes as the job has pods.

use std::collections::BTreeMap;

use serde_json::Value;

use super::demand::PodSet;
use crate::kubernetes::state::{items, text};
use crate::place::Problem;

/// How a job uses a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClaimUse {
    /// The number of simultaneous pods.
    pub(crate) pods: i128,
    /// Whether a container mounts it for writing.
    pub(crate) writes: bool,
    /// The line of the job that it comes from.
    pub(crate) place: Option<String>,
}

/// The claims that pods use, by name.
pub(crate) fn uses(sets: &[PodSet<'_>]) -> BTreeMap<String, ClaimUse> {
    let mut found: BTreeMap<String, ClaimUse> = BTreeMap::new();
    for set in sets {
        for (index, volume) in items(set.spec, "/volumes").enumerate() {
            let claim = text(volume, "/persistentVolumeClaim/claimName");
            if claim.is_empty() {
                continue;
            }
            let is_read_only = |value: &Value| value.get("readOnly") == Some(&Value::Bool(true));
            let mounts = set.containers().flat_map(|(_, container)| items(container, "/volumeMounts"));
            let mut mounts = mounts.filter(|mount| text(mount, "/name") == text(volume, "/name"));
            let writes =
                !volume.get("persistentVolumeClaim").is_some_and(is_read_only) && !mounts.all(is_read_only);
            let place = set.manifest.origin(&format!("{}/volumes/{index}", set.at));
            let known = found.entry(claim.to_owned()).or_insert(ClaimUse { pods: 0, writes: false, place });
            known.pods += set.count;
            known.writes |= writes;
        }
    }
    found
}

/// The problem with an existing claim.
pub(crate) fn check(name: &str, claim: &Value, used: &ClaimUse, waits_for_pod: bool) -> Vec<Problem> {
    let problem = |is_warning, message: String, help: &str| {
        Problem::new(is_warning, message).at(used.place.clone()).help(help)
    };
    let mut problems = Vec::new();
    if claim.pointer("/metadata/deletionTimestamp").is_some() {
        let message = format!("the PersistentVolumeClaim `{name}` is being deleted");
        problems.push(problem(false, message, "create it again, or use another"));
    }
    match text(claim, "/status/phase") {
        "Lost" => {
            let message = format!("the PersistentVolumeClaim `{name}` has lost its volume");
            problems.push(problem(false, message, "restore the volume, or use another claim"));
        }
        "Pending" if !waits_for_pod => {
            let message =
                format!("the PersistentVolumeClaim `{name}` is not bound to a volume: the pods wait for it");
            let help = format!("`kubectl describe pvc {name}` says why");
            problems.push(problem(true, message, &help));
        }
        _ => {}
    }
    let modes: Vec<&str> = claim
        .pointer("/status/accessModes")
        .or(claim.pointer("/spec/accessModes"))
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let has = |mode: &str| modes.contains(&mode);
    let shown = modes.join(", ");
    if has("ReadWriteOncePod") && modes.len() == 1 && used.pods > 1 {
        let message = format!(
            "the PersistentVolumeClaim `{name}` can be mounted by one pod (`{shown}`), and {} mount it",
            used.pods
        );
        problems.push(problem(false, message, "use a claim with the access mode `ReadWriteMany`"));
    } else if has("ReadWriteOnce") && !has("ReadWriteMany") && !has("ReadOnlyMany") && used.pods > 1 {
        let message = format!(
            "the PersistentVolumeClaim `{name}` can be mounted on one node (`{shown}`), and {} pods mount it",
            used.pods
        );
        let help = "pods on other nodes do not start; use a claim with the access mode `ReadWriteMany`";
        problems.push(problem(true, message, help));
    }
    if used.writes && !modes.is_empty() && modes.iter().all(|mode| *mode == "ReadOnlyMany") {
        let message = format!(
            "the PersistentVolumeClaim `{name}` is read-only (`{shown}`), and the job mounts it for writing"
        );
        problems.push(problem(true, message, "mount it with `read_only: true`"));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::super::demand::pod_sets;
    use super::*;
    use crate::built::Manifest;
    use serde_json::json;

    fn claim(phase: &str, modes: &[&str]) -> Value {
        json!({"spec": {"accessModes": modes}, "status": {"phase": phase}})
    }

    fn messages(claim: &Value, pods: i128, writes: bool) -> Vec<(bool, String)> {
        let used = ClaimUse { pods, writes, place: None };
        check("data", claim, &used, false).into_iter().map(|p| (p.is_warning, p.message)).collect()
    }

    #[test]
    fn claims_are_bound_and_fit_the_pods() {
        let message = |text: &str| format!("the PersistentVolumeClaim `data` {text}");
        for (claim, pods, expected) in [
            (claim("Bound", &["ReadWriteMany"]), 8, None),
            (claim("Bound", &["ReadWriteOnce"]), 1, None),
            (
                claim("Pending", &["ReadWriteMany"]),
                1,
                Some((true, "is not bound to a volume: the pods wait for it")),
            ),
            (claim("Lost", &["ReadWriteMany"]), 1, Some((false, "has lost its volume"))),
            (
                claim("Bound", &["ReadWriteOnce"]),
                2,
                Some((true, "can be mounted on one node (`ReadWriteOnce`), and 2 pods mount it")),
            ),
            (
                claim("Bound", &["ReadWriteOncePod"]),
                2,
                Some((false, "can be mounted by one pod (`ReadWriteOncePod`), and 2 mount it")),
            ),
            (
                claim("Bound", &["ReadOnlyMany"]),
                2,
                Some((true, "is read-only (`ReadOnlyMany`), and the job mounts it for writing")),
            ),
        ] {
            let expected: Vec<_> =
                expected.into_iter().map(|(warning, text)| (warning, message(text))).collect();
            assert_eq!(messages(&claim, pods, true), expected);
        }
        assert!(messages(&claim("Bound", &["ReadOnlyMany"]), 2, false).is_empty());
    }

    #[test]
    fn uses_of_a_claim_are_added() {
        let volumes = json!([{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]);
        let mount = |read_only: bool| json!([{"volumeMounts": [{"name": "d", "readOnly": read_only}]}]);
        let template = |read_only| json!({"spec": {"volumes": volumes, "containers": mount(read_only)}});
        let manifests = [Manifest::new(
            "set",
            json!({"spec": {"replicatedJobs": [
                {"replicas": 3, "template": {"spec": {"template": template(true)}}},
                {"replicas": 1, "template": {"spec": {"template": template(false)}}},
            ]}}),
        )];
        assert_eq!(uses(&pod_sets(&manifests))["data"], ClaimUse { pods: 4, writes: true, place: None });
        assert!(!uses(&pod_sets(&manifests)[..1])["data"].writes);
    }
}
