//! Variables of a container.

use std::collections::BTreeMap;

use crate::document::Node;
use crate::openpai::converted;
use crate::source::Span;

use super::super::container::variable;
use super::super::keyed::only;
use super::super::nodes::string;
use super::super::values::{text_at, text_in};
use super::context::{Known, Use, expanded};
use super::reader::Pod;
use super::resources::quantity;

/// The maximum length of a variable, as the kernel has it.
const MAX_VALUE: usize = 131_072;

/// Variables by which jobc tells MPI of its host file.
const OF_MPI: [&str; 6] = [
    "OMPI_MCA_orte_",
    "OMPI_MCA_plm_rsh_args",
    "OMPI_ALLOW_RUN_AS_ROOT",
    "PRTE_MCA_prte_",
    "HYDRA_HOST_FILE",
    "I_MPI_HYDRA_HOST_FILE",
];

/// What `fieldRef` names, with the expression that has it.
const FIELDS: &[(&str, &str)] = &[
    ("metadata.annotations['batch.kubernetes.io/job-completion-index']", "${{ instance.index }}"),
    ("metadata.labels['batch.kubernetes.io/job-completion-index']", "${{ instance.index }}"),
    ("metadata.labels['leaderworkerset.sigs.k8s.io/worker-index']", "${{ instance.index }}"),
    ("metadata.labels['apps.kubernetes.io/pod-index']", "${{ instance.index }}"),
    ("metadata.labels['job-name']", "${{ job.name }}"),
    ("metadata.labels['batch.kubernetes.io/job-name']", "${{ job.name }}"),
    ("metadata.labels['jobset.sigs.k8s.io/jobset-name']", "${{ job.name }}"),
    ("metadata.annotations['jobset.sigs.k8s.io/jobset-name']", "${{ job.name }}"),
    ("metadata.labels['jobset.sigs.k8s.io/replicatedjob-name']", "${{ role.name }}"),
    ("metadata.annotations['jobset.sigs.k8s.io/replicatedjob-name']", "${{ role.name }}"),
    ("metadata.name", "${{ role.name }}-${{ instance.index }}"),
];

/// The variables that a container sets, for `$(NAME)`.
#[derive(Debug, Default)]
pub(super) struct Variables(BTreeMap<String, Known>);

impl Variables {
    /// The variables of a container, each with those before it.
    pub(super) fn of(container: &Node, pod: &Pod<'_, '_, '_>) -> Self {
        let mut variables = Self::default();
        for item in container.get("env").map_or(&[][..], Node::items) {
            let Some(name) = text_at(item, "name") else { continue };
            let value = if item.get("valueFrom").is_some() {
                config(item, pod)
                    .or_else(|| field(item).map(str::to_owned))
                    .map_or(Known::Later, Known::Value)
            } else {
                let text = text_at(item, "value").unwrap_or_default();
                match expanded(&text, Use::Word, &|name| variables.get(name)) {
                    // Each could hold the one before it twice.
                    Ok(text) if text.len() > MAX_VALUE => Known::Later,
                    Ok(text) => Known::Value(pod.context.text(&text, Use::Word)),
                    Err(_) => Known::Later,
                }
            };
            variables.0.insert(name, value);
        }
        variables
    }

    /// What is known of a variable.
    pub(super) fn get(&self, name: &str) -> Option<Known> {
        self.0.get(name).cloned()
    }
}

/// The text of a key of a ConfigMap in the same file.
fn config(item: &Node, pod: &Pod<'_, '_, '_>) -> Option<String> {
    let of = |key: &str| text_in(item, &["valueFrom", "configMapKeyRef", key]);
    pod.context.objects.config(&of("name")?, &of("key")?, "env")
}

/// The expression for the field that a variable names.
fn field(item: &Node) -> Option<&'static str> {
    expression(&text_in(item, &["valueFrom", "fieldRef", "fieldPath"])?)
}

/// The expression for a field of the pod.
pub(super) fn expression(path: &str) -> Option<&'static str> {
    let path = path.replace('"', "'");
    FIELDS.iter().find(|(name, _)| *name == path).map(|(_, expression)| *expression)
}

/// Reads `env`.
pub(super) fn read(pod: &mut Pod<'_, '_, '_>, node: &Node, variables: &Variables) {
    let values = node.items().iter().filter_map(|item| text_at(item, "value"));
    let has_hostfile = values.into_iter().any(|value| value == "/etc/jobc/hostfile");
    let has_rendezvous = super::distributed::has_rendezvous(node);
    for item in node.items() {
        let part = item.span;
        let name = text_at(item, "name").unwrap_or_default();
        let is_of_mpi = has_hostfile && OF_MPI.iter().any(|prefix| name.starts_with(prefix));
        if name.starts_with("JOBC_") || is_of_mpi {
            pod.role.draft.note(part, "jobc sets it");
            continue;
        }
        if has_rendezvous && name.starts_with("PET_") || name == "TF_CONFIG" {
            pod.role.draft.note(part, "jobc sets it for `distributed`");
            continue;
        }
        if let Some(source) = item.get("valueFrom") {
            from(pod, &name, item, source, part);
            continue;
        }
        for entry in item.entries().iter().filter(|entry| !["name", "value"].contains(&entry.key.as_str())) {
            pod.role.draft.invalid(
                entry.key_span,
                format!("unknown field `{}` of a variable", entry.key),
                "",
            );
        }
        match variables.get(&name) {
            Some(Known::Value(value)) => variable(&mut pod.role, &name, Some(&value), part),
            _ => pod.role.draft.changed(
                part,
                format!("`{name}` is not set: its value contains one that is known when the task runs"),
                "write it in `run`: `export NAME=…`",
            ),
        }
    }
}

/// A variable whose value is elsewhere.
fn from(pod: &mut Pod<'_, '_, '_>, name: &str, item: &Node, source: &Node, part: Span) {
    let Some(entry) = source.entries().first() else {
        return pod.role.draft.invalid(part, format!("`valueFrom` of `{name}` is empty"), "");
    };
    let keys: &[&str] = match entry.key.as_str() {
        "fieldRef" => &["apiVersion", "fieldPath"],
        "resourceFieldRef" => &["containerName", "divisor", "resource"],
        _ => &["key", "name", "optional"],
    };
    only(&entry.value, keys, &format!("`{}`", entry.key), pod.role.draft);
    let of = |key: &str| text_at(&entry.value, key).unwrap_or_default();
    let is_optional = is_optional(Some(&entry.value));
    match entry.key.as_str() {
        "secretKeyRef" => {
            let reference = secret(pod, &of("name"), &of("key"), part);
            pod.role.field(&["env", name], part, string(part, reference));
        }
        "configMapKeyRef" => match config(item, pod) {
            Some(text) => {
                let text = pod.context.text(&text, Use::Word);
                variable(&mut pod.role, name, Some(&text), part);
            }
            None if is_optional => pod.role.draft.note(part, "optional, and not in the file"),
            None => pod.role.draft.lacks(
                part,
                format!("the ConfigMap `{}` is not in the file", of("name")),
                format!("`{name}` has a value from it: {}", fetched("ConfigMap", &of("name"))),
            ),
        },
        "fieldRef" => match field(item) {
            Some(expression) => pod.role.field(&["env", name], part, string(part, expression)),
            None => pod.role.draft.changed(
                part,
                format!("`{name}` is not set: `{}` of the pod is not known to a job", of("fieldPath")),
                "`export NAME=$(hostname -i)` in `run` has the address, `${{ hosts.ROLE[0] }}` is that of an instance",
            ),
        },
        "resourceFieldRef" => match amount(pod, &entry.value) {
            Some(value) => variable(&mut pod.role, name, Some(&value), part),
            None => pod.role.draft.changed(
                part,
                format!("`{name}` is not set: the container has no `{}`", of("resource")),
                "write the number",
            ),
        },
        _ => pod.role.draft.refuse(part, format!("`{}` as the value of a variable", entry.key), "write the value"),
    }
}

fn is_optional(reference: Option<&Node>) -> bool {
    reference.and_then(|node| node.get("optional")).is_some_and(|optional| optional.to_json() == true)
}

/// What to do about an object that is not in the file.
pub(super) fn fetched(kind: &str, name: &str) -> String {
    let kind = kind.to_lowercase();
    format!("add it behind a line `---` (`kubectl get {kind} {name} -o yaml`), or write them in the job file")
}

/// An amount of the container: `limits.cpu`, in the unit of the reference.
pub(super) fn amount(pod: &Pod<'_, '_, '_>, reference: &Node) -> Option<String> {
    let resource = text_at(reference, "resource")?;
    let container = text_at(reference, "containerName");
    let of_pod = pod.spec.get("containers").map_or(&[][..], Node::items).iter();
    let mut named = of_pod.filter(|item| container.is_none() || text_at(item, "name") == container);
    let (kind, name) = resource.split_once('.')?;
    let resources = named.next()?.get("resources")?;
    // What is not requested is the limit.
    let kinds = if kind == "requests" { vec!["requests", "limits"] } else { vec!["limits"] };
    let text = kinds.into_iter().find_map(|kind| text_in(resources, &[kind, name]))?;
    let divisor =
        text_at(reference, "divisor").and_then(|text| quantity(&text)).filter(|number| *number > 0.0);
    let value = quantity(&text)? / divisor.unwrap_or(1.0);
    (value < 1e18).then(|| format!("{:.0}", value.ceil()))
}

/// Declares the secret in an object of the cluster, and returns the reference to it.
pub(super) fn secret(pod: &mut Pod<'_, '_, '_>, object: &str, key: &str, part: Span) -> String {
    let name = declared(pod, object, key, part);
    format!("${{{{ secrets.{name} }}}}")
}

/// Declares the secret in an object of the cluster, and returns its name.
pub(super) fn declared(pod: &mut Pod<'_, '_, '_>, object: &str, key: &str, part: Span) -> String {
    pod.context.objects.get("Secret", object, "secrets");
    let plain = |text: &str| -> String {
        let lower = text.to_ascii_lowercase();
        lower.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
    };
    // `.` and `-` occur in names of files; the object tells apart keys of the same name.
    let short = plain(key).trim_matches('_').to_owned();
    let long = plain(&format!("{object}_{key}"));
    let is_free = |name: &str, pod: &Pod<'_, '_, '_>| {
        pod.role.draft.get(&["secrets", name, "store"]).is_none_or(|store| {
            store.get("name").and_then(Node::as_str) == Some(object)
                && store.get("key").and_then(Node::as_str) == Some(key)
        })
    };
    let fits = short.starts_with(|c: char| c.is_ascii_alphabetic()) && short.len() < 60;
    let name = if fits && is_free(&short, pod) { short } else { long };
    let name = if name.starts_with(|c: char| c.is_ascii_digit()) { format!("s_{name}") } else { name };
    let name: String = name.chars().take(63).collect();
    pod.role.draft.set(&["secrets", &name, "store", "name"], part, string(part, object));
    pod.role.draft.set(&["secrets", &name, "store", "key"], part, string(part, key));
    name
}

/// Reads `envFrom`: all keys of an object.
pub(super) fn read_from(pod: &mut Pod<'_, '_, '_>, node: &Node) {
    for item in node.items() {
        let part = item.span;
        let prefix = text_at(item, "prefix").unwrap_or_default();
        let (kind, key) = if item.get("secretRef").is_some() {
            ("Secret", "secretRef")
        } else {
            ("ConfigMap", "configMapRef")
        };
        let Some(name) = text_in(item, &[key, "name"]) else {
            pod.role.draft.invalid(part, "neither `configMapRef` nor `secretRef`", "");
            continue;
        };
        let Some(keys) = pod.context.objects.keys(kind, &name, "env") else {
            if is_optional(item.get(key)) {
                pod.role.draft.note(part, "optional, and not in the file");
            } else {
                pod.role.draft.lacks(
                    part,
                    format!("the {kind} `{name}` is not in the file"),
                    format!("its keys are variables: {}", fetched(kind, &name)),
                );
            }
            continue;
        };
        for key in keys {
            let variable_name = format!("{prefix}{key}");
            if kind == "Secret" {
                let reference = secret(pod, &name, &key, part);
                pod.role.field(&["env", &variable_name], part, string(part, reference));
            } else {
                let text = pod.context.objects.config(&name, &key, "env").unwrap_or_default();
                let text = pod.context.text(&text, Use::Word);
                variable(&mut pod.role, &variable_name, Some(&text), part);
            }
        }
        pod.role.draft.account.field(part, format!("roles.{}.env", pod.role.name));
    }
}

/// A name of a port as jobc has it.
pub(super) fn label(text: &str) -> Option<String> {
    converted(text, crate::openpai::MAX_LABEL, true)
}
