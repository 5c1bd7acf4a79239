//! The rights that jobc needs in a namespace: as a Role, and as questions to the cluster.

mod review;

use std::fmt::Write as _;

use super::client::Client;
use super::rule::Rule;
use super::status::ApiError;
use super::uses::Uses;
use crate::place::AccessCheck;

pub(crate) use review::Rights;
use review::refused_verbs;

/// The least that submitting and following jobs needs, whatever the target.
const RULES: [Rule; 10] = [
    Rule::needed(
        &["batch", "jobset.x-k8s.io"],
        &["jobs", "jobsets"],
        &["get", "list", "watch", "create", "patch", "delete"],
        "submit, ps, wait, stop",
    ),
    Rule::needed(&[""], &["configmaps", "services"], &["create", "patch"], "submit"),
    Rule::needed(&[""], &["secrets"], &["create"], "submit of jobs with secrets"),
    Rule::needed(&[""], &["pods", "events"], &["get", "list", "watch"], "inspect, events, logs"),
    Rule::needed(&[""], &["pods/log"], &["get"], "logs"),
    Rule::optional(&[""], &["pods/exec", "pods/portforward"], &["get", "create"], "exec, copy, port-forward"),
    Rule::optional(&[""], &["pods"], &["delete"], "kill"),
    Rule::optional(&["metrics.k8s.io"], &["pods"], &["get", "list"], "top"),
    Rule::optional(
        &["kueue.x-k8s.io"],
        &["workloads", "localqueues"],
        &["get", "list"],
        "inspect of jobs in a Kueue queue",
    ),
    Rule::optional(&["kueue.x-k8s.io"], &["workloads"], &["patch"], "pause, resume of jobs in a Kueue queue"),
];

/// Rights that make checks before a submission possible; without them they are left out.
const CHECK_RULES: [Rule; 3] = [
    Rule::optional(
        &[""],
        &["secrets", "persistentvolumeclaims", "serviceaccounts"],
        &["get"],
        "checks before a submission",
    ),
    Rule::optional(&[""], &["resourcequotas", "limitranges"], &["list"], "checks before a submission"),
    Rule::optional(&[""], &["pods"], &["create"], "dry runs of pods before a submission"),
];

/// The same for objects that are in no namespace.
const CLUSTER_RULES: [Rule; 5] = [
    Rule::optional(&[""], &["namespaces"], &["get"], "checks before a submission: the namespace"),
    Rule::optional(&[""], &["nodes"], &["list"], "checks before a submission: whether a node fits"),
    Rule::optional(&[""], &["pods"], &["list"], "targets free: what pods of all namespaces use"),
    Rule::optional(
        &["scheduling.k8s.io", "node.k8s.io", "storage.k8s.io"],
        &["priorityclasses", "runtimeclasses", "storageclasses"],
        &["get", "list"],
        "checks before a submission: classes",
    ),
    Rule::optional(
        &["kueue.x-k8s.io"],
        &["clusterqueues"],
        &["get"],
        "checks before a submission: the queue",
    ),
];

/// The rules of a target: those of every target, and those for its settings.
fn rules(uses: &Uses) -> Vec<Rule> {
    RULES.into_iter().chain(uses.rules()).chain(CHECK_RULES).collect()
}

/// The Role with all rules and their purposes, and the ClusterRole for what is in no namespace, as manifests.
pub fn role(namespace: &str, uses: &Uses) -> String {
    let mut text = format!(
        "# What `jobc submit` and the commands about its jobs need in the namespace; bind it to your users.\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: jobc-user\n  namespace: {namespace}\nrules:\n"
    );
    for rule in &rules(uses) {
        write_rule(&mut text, rule, "");
    }
    let _ = write!(
        text,
        "---\n\
         # What `jobc submit` checks first and is in no namespace; bind it with a ClusterRoleBinding.\n\
         # Without it, submit says what it did not check.\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: jobc-user-{namespace}\nrules:\n"
    );
    for rule in &CLUSTER_RULES {
        let is_own = rule.resources == ["namespaces"];
        write_rule(&mut text, rule, if is_own { namespace } else { "" });
    }
    text
}

/// Adds a rule, for the object of a name or for all.
fn write_rule(text: &mut String, rule: &Rule, name: &str) {
    let list = |words: &[&str]| {
        words.iter().map(|word| if word.is_empty() { "\"\"" } else { word }).collect::<Vec<_>>().join(", ")
    };
    let _ = write!(
        text,
        "# {}{}\n- apiGroups: [{}]\n  resources: [{}]\n{}  verbs: [{}]\n",
        rule.needed_for,
        if rule.is_optional { " (optional)" } else { "" },
        list(rule.groups),
        list(rule.resources),
        if name.is_empty() { String::new() } else { format!("  resourceNames: [{name}]\n") },
        list(rule.verbs),
    );
}

/// Asks the cluster about every right.
pub(crate) fn check(client: &Client, namespace: &str) -> Result<Vec<AccessCheck>, ApiError> {
    let own = Rights::of(client, namespace)?;
    let mut checks = Vec::new();
    for rule in &rules(&client.config().uses) {
        for of in rule.pairs() {
            checks.push(access(rule, of, &own.missing(client, namespace, of, rule.verbs)?));
        }
    }
    for rule in &CLUSTER_RULES {
        // What a Role allows in a namespace, it does not allow here: each is asked for. The namespace has a name.
        let name = if rule.resources == ["namespaces"] { namespace } else { "" };
        for of in rule.pairs() {
            checks.push(access(rule, of, &refused_verbs(client, "", name, of, rule.verbs)?));
        }
    }
    Ok(checks)
}

/// Whether a rule is met for one of its resources.
fn access(rule: &Rule, (group, resource): (&str, &str), missing: &[&str]) -> AccessCheck {
    let name = if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
    let verbs = if missing.is_empty() { rule.verbs } else { missing };
    AccessCheck {
        what: format!("{} {name}", verbs.join(", ")),
        is_allowed: missing.is_empty(),
        needed_for: rule.needed_for,
        is_optional: rule.is_optional,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// The Role and the ClusterRole.
    fn roles(uses: &Uses) -> [Value; 2] {
        let text = role("ml", uses);
        let (own, cluster) = text.split_once("---\n").unwrap();
        [own, cluster].map(|text| jobc_sys::yaml::read(text).unwrap())
    }

    #[test]
    fn the_role_is_a_manifest() {
        let [role, cluster] = roles(&Uses::default());
        assert_eq!(cluster["kind"], "ClusterRole");
        assert_eq!(cluster["metadata"]["name"], "jobc-user-ml");
        assert_eq!(cluster["rules"][0]["resourceNames"], json!(["ml"]));
        assert_eq!(cluster["rules"].as_array().unwrap().len(), CLUSTER_RULES.len());
        assert_eq!(role.pointer("/metadata/namespace").unwrap(), "ml");
        let rules = role["rules"].as_array().unwrap();
        assert_eq!(rules.len(), RULES.len() + CHECK_RULES.len());
        assert_eq!(
            rules[1],
            json!({"apiGroups": [""], "resources": ["configmaps", "services"], "verbs": ["create", "patch"]})
        );
    }

    #[test]
    fn a_role_has_the_rights_of_what_the_target_uses() {
        let of = |settings: Value| {
            let uses = Uses::of(&serde_json::from_value(settings).unwrap());
            let [role, _] = roles(&uses);
            let own: Vec<Value> = role["rules"].as_array().unwrap()[RULES.len()..].to_vec();
            own[..own.len() - CHECK_RULES.len()]
                .iter()
                .map(|rule| format!("{}", rule["resources"]))
                .collect::<String>()
        };
        for (settings, resources) in [
            (json!({}), ""),
            (json!({"kind": "job"}), ""),
            (json!({"kind": "pod"}), r#"["pods"]"#),
            (json!({"kind": "trainjob"}), r#"["trainjobs"]["trainingruntimes"]"#),
            (json!({"kind": "trainjob", "runtime": {"name": "torch"}}), r#"["trainjobs"]"#),
            (json!({"kind": "volcano"}), r#"["jobs"]"#),
            (json!({"kind": "mpijob"}), r#"["mpijobs"]"#),
            (json!({"kind": "rayjob"}), r#"["rayjobs"]"#),
            (json!({"kind": "leaderworkerset"}), r#"["leaderworkersets"]"#),
            (json!({"gang": "native"}), r#"["podgroups","workloads"]"#),
            (json!({"code_claim": "team"}), r#"["pods"]["pods/exec"]"#),
        ] {
            assert_eq!(of(settings.clone()), resources, "{settings}");
        }
    }

    #[test]
    fn groups_and_resources_are_pairs() {
        for rule in RULES.iter().chain(&CHECK_RULES).chain(&CLUSTER_RULES) {
            assert!(rule.groups.len() == 1 || rule.groups.len() == rule.resources.len());
        }
    }
}
