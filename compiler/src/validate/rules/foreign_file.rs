//! Files of other tools and templates, recognized by their keys: one finding instead of one for every key.

use jobc_schema::Pointer;

use crate::diagnostic::{Diagnostic, codes};
use crate::document::{Node, Value};

use super::super::report::Report;

/// Reports a template, a targets file and files of other tools; returns whether it is one.
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
            "`jobc import` rewrites it as a job file; `jobc check`, `jobc build` and `jobc run` take it as it is",
        )
    } else if is_map("deploymentSpec") && is_map("pipelineInfo") {
        (
            "pipelineInfo",
            "a pipeline of Kubeflow Pipelines",
            "each executor becomes a role with its `image` and `run`, and the order of tasks is `needs`; `jobc init` writes a first job file",
        )
    } else if is_map("jobs") && (root.get("on").is_some() || root.get("true").is_some()) {
        (
            "jobs",
            "a workflow of GitHub Actions",
            "a step of it runs `jobc check` and `jobc build` (docs: Continuous integration); `jobc init` writes a first job file",
        )
    } else if root.get("template").is_some() && is_map("body") {
        (
            "template",
            "a template",
            "a job file names it with `uses` and sets its parameters with `with`; commands take that job file",
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
        .at_place(place, "")
        .note(instead);
    report.push(found);
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
