//! Objects that pods name: Secrets, accounts, classes. Each has a path, and a problem if it does not exist.

use serde_json::Value;

use super::demand::PodSet;
use crate::kubernetes::state::{name, text};
use crate::place::Problem;

/// A kind of object that pods name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NamedKind {
    Secret,
    ServiceAccount,
    PriorityClass,
    RuntimeClass,
    StorageClass,
}

/// Something that a pod names, and that must exist.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Named {
    pub(crate) kind: NamedKind,
    pub(crate) name: String,
    /// The key of a Secret.
    pub(crate) key: Option<String>,
    /// The line of the job that it comes from.
    pub(crate) place: Option<String>,
}

impl NamedKind {
    /// Its name, its name in paths, and its group, which classes alone have.
    fn names(self) -> [&'static str; 3] {
        match self {
            Self::Secret => ["Secret", "secrets", ""],
            Self::ServiceAccount => ["ServiceAccount", "serviceaccounts", ""],
            Self::PriorityClass => ["PriorityClass", "priorityclasses", "scheduling.k8s.io"],
            Self::RuntimeClass => ["RuntimeClass", "runtimeclasses", "node.k8s.io"],
            Self::StorageClass => ["StorageClass", "storageclasses", "storage.k8s.io"],
        }
    }

    pub(crate) fn plural(self) -> &'static str {
        self.names()[1]
    }

    /// Whether it belongs to no namespace.
    pub(crate) fn is_class(self) -> bool {
        !self.names()[2].is_empty()
    }

    /// The path of the collection.
    pub(crate) fn collection(self, namespace: &str) -> String {
        match self.names() {
            [_, plural, ""] => format!("/api/v1/namespaces/{namespace}/{plural}"),
            [_, plural, group] => format!("/apis/{group}/v1/{plural}"),
        }
    }

    /// Classes that every cluster has.
    pub(crate) fn is_built_in(self, name: &str) -> bool {
        self == Self::PriorityClass && name.starts_with("system-")
    }
}

/// The objects that the pods of a set refer to.
pub(crate) fn named(set: &PodSet<'_>) -> Vec<Named> {
    let list =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut found = Vec::new();
    let mut add = |kind: NamedKind, name: &str, key: Option<&str>, pointer: String| {
        if !name.is_empty() {
            let place = set.manifest.origin(&format!("{}{pointer}", set.at));
            found.push(Named { kind, name: name.to_owned(), key: key.map(str::to_owned), place });
        }
    };
    let is_optional = |value: &Value| value.get("optional") == Some(&Value::Bool(true));
    for (index, volume) in list(set.spec, "volumes").iter().enumerate() {
        let at = format!("/volumes/{index}");
        if let Some(secret) = volume.get("secret").filter(|secret| !is_optional(secret)) {
            let secret_name = text(secret, "/secretName");
            add(NamedKind::Secret, secret_name, None, at.clone());
            for item in list(secret, "items") {
                add(NamedKind::Secret, secret_name, Some(text(&item, "/key")), at.clone());
            }
        }
        let class = text(volume, "/ephemeral/volumeClaimTemplate/spec/storageClassName");
        add(NamedKind::StorageClass, class, None, at);
    }
    for (index, secret) in list(set.spec, "imagePullSecrets").iter().enumerate() {
        add(NamedKind::Secret, text(secret, "/name"), None, format!("/imagePullSecrets/{index}"));
    }
    for (kind, field) in [
        (NamedKind::ServiceAccount, "serviceAccountName"),
        (NamedKind::PriorityClass, "priorityClassName"),
        (NamedKind::RuntimeClass, "runtimeClassName"),
    ] {
        add(kind, text(set.spec, &format!("/{field}")), None, format!("/{field}"));
    }
    for (index, container) in list(set.spec, "containers").iter().enumerate() {
        for (number, variable) in list(container, "env").iter().enumerate() {
            let reference = variable.pointer("/valueFrom/secretKeyRef");
            if let Some(reference) = reference.filter(|reference| !is_optional(reference)) {
                let (name, key) = (text(reference, "/name"), text(reference, "/key"));
                add(NamedKind::Secret, name, Some(key), format!("/containers/{index}/env/{number}"));
            }
        }
    }
    found
}

impl Named {
    /// The problem that it does not exist. `known` are the objects of the kind, where they could be listed.
    pub(crate) fn absent(&self, namespace: &str, known: &[Value]) -> Problem {
        let kind = self.kind.names()[0];
        let message = if self.kind.is_class() {
            format!("the cluster has no {kind} `{}`", self.name)
        } else {
            format!("there is no {kind} `{}` in the namespace `{namespace}`", self.name)
        };
        let names: Vec<String> = known.iter().map(|known| format!("`{}`", name(known))).collect();
        let help = if names.is_empty() {
            "create it, or name another in the target".to_owned()
        } else {
            format!("the cluster has {}", names.join(", "))
        };
        Problem::error(message).at(self.place.clone()).help(help)
    }

    /// The problem that a Secret lacks a key.
    pub(crate) fn lacks_key(&self, secret: &Value) -> Option<Problem> {
        let key = self.key.as_deref()?;
        let data = secret.get("data").and_then(Value::as_object);
        if data.is_some_and(|data| data.contains_key(key)) {
            return None;
        }
        let keys: Vec<String> = data.into_iter().flatten().map(|(known, _)| format!("`{known}`")).collect();
        let help = match keys.len() {
            0 => "it has no keys".to_owned(),
            _ => format!("it has {}", keys.join(", ")),
        };
        Some(
            Problem::error(format!("the Secret `{}` has no key `{key}`", self.name))
                .at(self.place.clone())
                .help(help),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::demand::pod_sets;
    use super::*;
    use crate::built::Manifest;
    use serde_json::json;

    #[test]
    fn what_pods_name_is_found_in_every_template() {
        let object = json!({"spec": {"replicatedJobs": [{"template": {"spec": {"template": {"spec": {
            "serviceAccountName": "trainer", "priorityClassName": "high", "runtimeClassName": "nvidia",
            "imagePullSecrets": [{"name": "login"}],
            "volumes": [
                {"name": "s", "secret": {"secretName": "keys", "items": [{"key": "a", "path": "a"}]}},
                {"name": "o", "secret": {"secretName": "maybe", "optional": true}},
                {"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "fast"}}}},
            ],
            "containers": [{"env": [
                {"name": "A", "value": "x"},
                {"name": "B", "valueFrom": {"secretKeyRef": {"name": "tokens", "key": "b"}}},
            ]}],
        }}}}}]}});
        let manifests = [Manifest::new("x", object)];
        let found = named(&pod_sets(&manifests)[0]);
        let shown: Vec<_> = found
            .iter()
            .map(|named| format!("{:?} {} {}", named.kind, named.name, named.key.as_deref().unwrap_or("-")))
            .collect();
        assert_eq!(
            shown,
            [
                "Secret keys -",
                "Secret keys a",
                "StorageClass fast -",
                "Secret login -",
                "ServiceAccount trainer -",
                "PriorityClass high -",
                "RuntimeClass nvidia -",
                "Secret tokens b",
            ]
        );
    }

    #[test]
    fn what_does_not_exist_names_what_does() {
        let class = Named { kind: NamedKind::PriorityClass, name: "hihg".to_owned(), key: None, place: None };
        let known = [json!({"metadata": {"name": "high"}}), json!({"metadata": {"name": "low"}})];
        let problem = class.absent("ml", &known);
        assert_eq!(problem.message, "the cluster has no PriorityClass `hihg`");
        assert_eq!(problem.help.as_deref(), Some("the cluster has `high`, `low`"));
        let secret = Named {
            kind: NamedKind::Secret,
            name: "tokens".to_owned(),
            key: Some("b".to_owned()),
            place: None,
        };
        assert_eq!(secret.lacks_key(&json!({"data": {"b": null}})), None);
        let problem = secret.lacks_key(&json!({"data": {"a": null}})).unwrap();
        assert_eq!(problem.message, "the Secret `tokens` has no key `b`");
        assert_eq!(problem.help.as_deref(), Some("it has `a`"));
    }
}
