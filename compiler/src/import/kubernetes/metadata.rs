//! `metadata` of objects and of pods.

use crate::document::{Entry, Node};

use super::super::draft::Draft;
use super::super::nodes::string;
use super::super::values::scalar;
use super::rows::{Fields, Row, field, note};
use super::settings::Settings;

pub(super) const WRITTEN: &str = "written by the cluster";

/// The fields of `metadata`.
pub(super) const METADATA: &[Row] = &[
    field("annotations", "`kubernetes.annotations` of a target; those of Kueue `kubernetes.queue`"),
    note("creationTimestamp", WRITTEN),
    note("deletionGracePeriodSeconds", WRITTEN),
    note("deletionTimestamp", WRITTEN),
    note("finalizers", WRITTEN),
    field("generateName", "`name`"),
    note("generation", WRITTEN),
    field(
        "labels",
        "`labels` of the role for pods, else `kubernetes.labels` of a target; those of queues `kubernetes.queue`",
    ),
    note("managedFields", WRITTEN),
    field("name", "`name`"),
    field("namespace", "`kubernetes.namespace` of a target"),
    note("ownerReferences", WRITTEN),
    note("resourceVersion", WRITTEN),
    note("selfLink", WRITTEN),
    note("uid", WRITTEN),
];

/// Labels and annotations that are settings of a target of their own.
const SETTINGS: &[(&str, &[&str])] = &[
    ("kueue.x-k8s.io/queue-name", &["queue", "kueue"]),
    ("kueue.x-k8s.io/priority-class", &["queue", "priority"]),
    ("kueue.x-k8s.io/podset-required-topology", &["queue", "topology", "required"]),
    ("kueue.x-k8s.io/podset-preferred-topology", &["queue", "topology", "preferred"]),
    ("scheduling.volcano.sh/queue-name", &["queue", "volcano"]),
    ("kai.scheduler/queue", &["queue", "kai"]),
    ("runai/queue", &["queue", "kai"]),
];

/// Whose metadata it is.
#[derive(Clone, Copy)]
pub(super) enum Of<'r> {
    /// That of the object.
    Object,
    /// That of the pods of a role; the object has its own.
    Pods(&'r str),
    /// That of a Pod, which is the object.
    Both(&'r str),
}

/// Reads `metadata`; `name` is the name of the job.
pub(super) fn read(node: &Node, of: Of<'_>, settings: &mut Settings, draft: &mut Draft<'_>) {
    let labels = node.get("labels");
    let is_ours = labels.and_then(|all| all.get("app.kubernetes.io/managed-by")).and_then(Node::as_str)
        == Some("jobc")
        || labels.is_some_and(|all| all.get("jobc.dev/role").is_some());
    let fields = Fields { of: "metadata", tables: &[("", METADATA)], elsewhere: &[] };
    fields.read(node, draft, &mut |draft, row, entry| match (row.path, of) {
        ("name" | "generateName", Of::Pods(_)) => {
            draft.note(entry.key_span, "an instance is called ROLE-INDEX");
        }
        ("name" | "generateName", _) => draft.account.field(entry.key_span, "name"),
        ("namespace", Of::Pods(_)) => draft.note(entry.key_span, "that of the job"),
        ("namespace", _) => settings.job(&["namespace"], entry.key_span, entry.value.clone()),
        ("labels", of) => {
            for label in entry.value.entries() {
                labelled(label, of, is_ours, settings, draft);
            }
        }
        _ => {
            for annotation in entry.value.entries() {
                annotated(annotation, of, settings, draft);
            }
        }
    });
}

fn labelled(label: &Entry, of: Of<'_>, is_ours: bool, settings: &mut Settings, draft: &mut Draft<'_>) {
    let part = label.key_span;
    let value = string(label.value.span, scalar(&label.value).unwrap_or_default());
    if let Some((_, path)) = SETTINGS.iter().find(|(name, _)| *name == label.key) {
        return settings.job(path, part, value);
    }
    let is_written = ["app.kubernetes.io/managed-by", "app.kubernetes.io/name", "jobc.dev/role"];
    if label.key.starts_with("trainer.kubeflow.org/") {
        return draft.note(part, "jobc writes it");
    }
    if is_ours && is_written.contains(&label.key.as_str()) {
        return draft.note(part, "jobc writes it");
    }
    match of {
        Of::Object => settings.job(&["labels", &label.key], part, value),
        Of::Pods(role) | Of::Both(role) => draft.field(&["roles", role, "labels", &label.key], part, value),
    }
}

fn annotated(annotation: &Entry, of: Of<'_>, settings: &mut Settings, draft: &mut Draft<'_>) {
    let part = annotation.key_span;
    let text = scalar(&annotation.value).unwrap_or_default();
    let value = string(annotation.value.span, &text);
    if let Some((_, path)) = SETTINGS.iter().find(|(name, _)| *name == annotation.key) {
        return settings.job(path, part, value);
    }
    match (annotation.key.as_str(), of) {
        ("kubernetes.io/description", Of::Object | Of::Both(_)) if !text.contains('\n') => {
            draft.field(&["description"], part, value);
        }
        ("kubectl.kubernetes.io/last-applied-configuration", _) => draft.note(part, WRITTEN),
        (key, Of::Object) => settings.job(&["annotations", key], part, value),
        (key, Of::Pods(role) | Of::Both(role)) => settings.role(role, &["annotations", key], part, value),
    }
}
