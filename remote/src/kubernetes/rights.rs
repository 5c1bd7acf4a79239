//! The rights that jobc needs in a namespace: as a Role, and as questions to the cluster.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::client::Client;
use super::rule::Rule;
use super::status::ApiError;
use super::uses::Uses;
use crate::place::AccessCheck;

/// The least that submitting and following jobs needs, whatever the target.
const RULES: [Rule; 8] = [
    Rule {
        groups: &["batch", "jobset.x-k8s.io"],
        resources: &["jobs", "jobsets"],
        verbs: &["get", "list", "watch", "create", "patch", "delete"],
        needed_for: "submit, ps, wait, stop",
        is_optional: false,
    },
    Rule {
        groups: &[""],
        resources: &["configmaps", "services"],
        verbs: &["create", "patch"],
        needed_for: "submit",
        is_optional: false,
    },
    Rule {
        groups: &[""],
        resources: &["secrets"],
        verbs: &["create"],
        needed_for: "submit of jobs with secrets",
        is_optional: false,
    },
    Rule {
        groups: &[""],
        resources: &["pods", "events"],
        verbs: &["get", "list", "watch"],
        needed_for: "inspect, events, logs",
        is_optional: false,
    },
    Rule { groups: &[""], resources: &["pods/log"], verbs: &["get"], needed_for: "logs", is_optional: false },
    Rule {
        groups: &[""],
        resources: &["pods/exec", "pods/portforward"],
        // Over WebSocket, Kubernetes asks for `get`, and since 1.35 for `create` too.
        verbs: &["get", "create"],
        needed_for: "exec, copy, port-forward",
        is_optional: true,
    },
    Rule {
        groups: &["metrics.k8s.io"],
        resources: &["pods"],
        verbs: &["get", "list"],
        needed_for: "top",
        is_optional: true,
    },
    Rule {
        groups: &["kueue.x-k8s.io"],
        resources: &["workloads", "localqueues"],
        verbs: &["get", "list"],
        needed_for: "inspect of jobs in a Kueue queue",
        is_optional: true,
    },
];

/// Rights that make checks before a submission possible; without them they are left out.
const CHECK_RULES: [Rule; 2] = [
    Rule {
        groups: &[""],
        resources: &["secrets", "persistentvolumeclaims", "serviceaccounts"],
        verbs: &["get"],
        needed_for: "checks before a submission",
        is_optional: true,
    },
    Rule {
        groups: &[""],
        resources: &["resourcequotas", "limitranges"],
        verbs: &["list"],
        needed_for: "checks before a submission",
        is_optional: true,
    },
];

/// The rules of a target: those of every target, and those for its settings.
fn rules(uses: &Uses) -> Vec<Rule> {
    RULES.into_iter().chain(uses.rules()).chain(CHECK_RULES).collect()
}

/// The Role with all rules and their purposes, as a manifest.
pub fn role(namespace: &str, uses: &Uses) -> String {
    let mut text = format!(
        "# What `jobc submit` and the commands about its jobs need in the namespace; bind it to your users.\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: jobc-user\n  namespace: {namespace}\nrules:\n"
    );
    for rule in &rules(uses) {
        let list = |words: &[&str]| {
            words
                .iter()
                .map(|word| if word.is_empty() { "\"\"" } else { word })
                .collect::<Vec<_>>()
                .join(", ")
        };
        let optional = if rule.is_optional { " (optional)" } else { "" };
        let _ = write!(
            text,
            "# {}{optional}\n- apiGroups: [{}]\n  resources: [{}]\n  verbs: [{}]\n",
            rule.needed_for,
            list(rule.groups),
            list(rule.resources),
            list(rule.verbs),
        );
    }
    text
}

/// Asks the cluster about every right.
pub(crate) fn check(client: &Client, namespace: &str) -> Result<Vec<AccessCheck>, ApiError> {
    let mut checks = Vec::new();
    for rule in &rules(&client.config().uses) {
        for (position, resource) in rule.resources.iter().enumerate() {
            // Groups and resources are pairs where there are several groups.
            let group = if rule.groups.len() > 1 { rule.groups[position] } else { rule.groups[0] };
            let missing = missing_verbs(client, namespace, (group, resource), rule.verbs)?;
            let name = if group.is_empty() { (*resource).to_owned() } else { format!("{resource}.{group}") };
            let verbs = if missing.is_empty() { rule.verbs } else { &missing[..] };
            checks.push(AccessCheck {
                what: format!("{} {name}", verbs.join(", ")),
                is_allowed: missing.is_empty(),
                needed_for: rule.needed_for,
                is_optional: rule.is_optional,
            });
        }
    }
    Ok(checks)
}

/// The verbs that this user does not have for a resource.
pub(crate) fn missing_verbs<'a>(
    client: &Client,
    namespace: &str,
    (group, resource): (&str, &str),
    verbs: &[&'a str],
) -> Result<Vec<&'a str>, ApiError> {
    let mut missing = Vec::new();
    for verb in verbs {
        let (resource, part) = resource.split_once('/').unwrap_or((resource, ""));
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {
                "namespace": namespace, "verb": verb, "group": group, "resource": resource, "subresource": part,
            }},
        });
        let answer = client.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review)?;
        if answer.pointer("/status/allowed") != Some(&Value::Bool(true)) {
            missing.push(*verb);
        }
    }
    Ok(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_role_is_a_manifest() {
        let role = jobc_sys::yaml::read(&role("ml", &Uses::default())).unwrap();
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
            let role = jobc_sys::yaml::read(&role("ml", &uses)).unwrap();
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
        ] {
            assert_eq!(of(settings.clone()), resources, "{settings}");
        }
    }

    #[test]
    fn groups_and_resources_are_pairs() {
        for rule in RULES.iter().chain(&CHECK_RULES) {
            assert!(rule.groups.len() == 1 || rule.groups.len() == rule.resources.len());
        }
    }
}
