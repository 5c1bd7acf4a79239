//! Files of other tools and templates, recognized by their keys: one finding instead of one for every key.

use jobc_schema::Pointer;

use crate::diagnostic::{Diagnostic, Safety, codes};
use crate::document::{Node, Value};

use super::super::report::Report;

/// Reports a template, a targets file, a Kubernetes manifest or a Compose file; returns whether it is one.
pub(in super::super) fn report_foreign(report: &mut Report<'_>) -> bool {
    let root = &report.document.root;
    // A file with `version: 1` and `roles` is meant as a job, whatever else it contains.
    if root.get("roles").is_some() {
        return false;
    }
    let is_map = |key: &str| matches!(root.get(key).map(|node| &node.value), Some(Value::Mapping(_)));
    let (key, what, instead) = if is_text(root, "apiVersion") && is_text(root, "kind") {
        (
            "apiVersion",
            "a Kubernetes manifest",
            "jobc reads job files and writes manifests; `jobc init` writes a first job file",
        )
    } else if root.get("template").is_some() && is_map("body") {
        (
            "template",
            "a template",
            "a job file names it with `uses` and sets its parameters with `with`; commands take that job file",
        )
    } else if is_map("services") && is_services(root) {
        (
            "services",
            "a Compose file",
            "each service becomes a role: `jobc check --unsafe-fixes` renames `services` to `roles` and translates most keys of Compose in them; review the result",
        )
    } else if is_targets_file(root) {
        (
            "targets",
            "a targets file",
            "commands take a job file, and read the `targets.yaml` next to it or above; `--targets FILE` names another",
        )
    } else {
        return false;
    };
    let place = report.key(&Pointer::ROOT.key(key));
    let found = Diagnostic::error(codes::FOREIGN_FILE, format!("the file is {what}, not a job file"))
        .at_place(place.clone(), "")
        .note(instead);
    report.push(if key == "services" {
        found.fix("rename it to `roles`", place, "roles", Safety::Unsafe)
    } else {
        found
    });
    true
}

/// Whether a file with this content is a targets file.
pub(in super::super) fn is_targets_file(root: &Node) -> bool {
    let is_map = |key: &str| matches!(root.get(key).map(|node| &node.value), Some(Value::Mapping(_)));
    is_map("targets") && root.get("roles").is_none() && root.get("name").is_none()
}

fn is_text(root: &Node, key: &str) -> bool {
    root.get(key).is_some_and(|node| node.as_str().is_some())
}

/// Whether every entry of `services` is a map with keys of Compose.
fn is_services(root: &Node) -> bool {
    let services = root.get("services").map_or(&[][..], Node::entries);
    !services.is_empty()
        && services.iter().all(|service| {
            ["image", "build", "command", "extends"].iter().any(|key| service.value.get(key).is_some())
        })
}
