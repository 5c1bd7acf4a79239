//! The rights of a user, as the cluster reviews them: all at once, or each where the list is not complete.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::kubernetes::client::Client;
use crate::kubernetes::status::ApiError;

/// The rights of this user in a namespace, by one review.
#[derive(Debug, Default)]
pub(crate) struct Rights {
    rules: Vec<AllowedRule>,
    /// Whether the rules are all; authorizers other than RBAC may not be able to list theirs.
    is_complete: bool,
}

/// What a rule allows.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AllowedRule {
    verbs: Vec<String>,
    api_groups: Vec<String>,
    resources: Vec<String>,
    resource_names: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RulesReview {
    status: RulesStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RulesStatus {
    resource_rules: Vec<AllowedRule>,
    incomplete: bool,
}

impl Rights {
    /// Asks the cluster once.
    pub(crate) fn of(client: &Client, namespace: &str) -> Result<Self, ApiError> {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectRulesReview",
            "spec": {"namespace": namespace},
        });
        match client.create("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", &review) {
            Ok(answer) => Ok(Self::read(&answer)),
            // Then each right is asked for.
            Err(error) if error.is(403) || error.is(404) => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    fn read(answer: &Value) -> Self {
        let status = RulesReview::deserialize(answer).unwrap_or_default().status;
        Self { rules: status.resource_rules, is_complete: !status.incomplete }
    }

    /// The verbs that this user does not have for a resource. What an incomplete list does not have is asked for.
    pub(crate) fn missing(
        &self,
        client: &Client,
        namespace: &str,
        (group, resource): (&str, &str),
        verbs: &[&'static str],
    ) -> Result<Vec<&'static str>, ApiError> {
        let unlisted: Vec<&'static str> =
            verbs.iter().copied().filter(|verb| !self.allows((group, resource), verb)).collect();
        if self.is_complete || unlisted.is_empty() {
            return Ok(unlisted);
        }
        refused_verbs(client, namespace, "", (group, resource), &unlisted)
    }

    fn allows(&self, (group, resource): (&str, &str), verb: &str) -> bool {
        let has = |list: &[String], wanted: &str| list.iter().any(|word| word == "*" || word == wanted);
        // `*/log` is that part of every resource.
        let part = resource.split_once('/').map(|(_, part)| format!("*/{part}"));
        self.rules.iter().any(|rule| {
            rule.resource_names.is_empty()
                && has(&rule.verbs, verb)
                && has(&rule.api_groups, group)
                && (has(&rule.resources, resource)
                    || part.as_ref().is_some_and(|part| rule.resources.contains(part)))
        })
    }
}

/// The verbs that a cluster refuses this user for a resource of a namespace, or of the cluster if there is none.
pub(super) fn refused_verbs(
    client: &Client,
    namespace: &str,
    name: &str,
    (group, resource): (&str, &str),
    verbs: &[&'static str],
) -> Result<Vec<&'static str>, ApiError> {
    let mut missing = Vec::new();
    for verb in verbs {
        let (resource, part) = resource.split_once('/').unwrap_or((resource, ""));
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {
                "namespace": namespace, "verb": verb, "group": group, "resource": resource, "subresource": part,
                "name": name,
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
    fn rights_are_those_of_the_listed_rules() {
        let rules = json!([
            {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "*/log"]},
            {"verbs": ["*"], "apiGroups": ["batch"], "resources": ["*"]},
            {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["one"]},
        ]);
        let rights = Rights::read(
            &json!({"status": {"resourceRules": rules, "nonResourceRules": [], "incomplete": false}}),
        );
        assert!(rights.is_complete);
        for (group, resource, verb, expected) in [
            ("", "pods", "get", true),
            ("", "pods", "create", false),
            ("", "pods/log", "get", true),
            ("", "pods/exec", "get", false),
            ("batch", "jobs", "delete", true),
            ("batch", "jobs/status", "get", true),
            ("batch.volcano.sh", "jobs", "get", false),
            ("", "secrets", "get", false),
        ] {
            assert_eq!(rights.allows((group, resource), verb), expected, "{verb} {resource}.{group}");
        }
        assert!(!Rights::read(&json!({"status": {"incomplete": true}})).is_complete);
        assert!(!Rights::default().is_complete);
    }
}
