//! Tests of the Kubernetes backend, by what they are about.

mod acceptance;
mod command;
mod gpu;
mod jobset;
mod kinds;
mod policy;
mod preflight;
mod scale;
mod support;
mod target;

use std::fmt::Write as _;

use jobc_schema::plan::JobPlan;
use serde_json::{Value, json};

use super::KubernetesBackend;
use crate::backend::Content;
use crate::backends::fixture;
use crate::snapshot;

/// A plan for a target with these Kubernetes settings.
fn plan(kubernetes: Value, changes: &Value) -> JobPlan {
    let mut all =
        json!({"target": {"name": "lab", "built_in": false, "settings": {"backends": ["kubernetes"]}}});
    all["target"]["settings"]["kubernetes"] = kubernetes;
    let Value::Object(changes) = changes else { panic!("changes are a map") };
    all.as_object_mut().unwrap().extend(changes.clone());
    fixture::job(&all)
}

/// What the test asks for, what is reported, and every file; of a pod what that of the smallest job does not have.
fn shown(kubernetes: Value, changes: &Value) -> String {
    let smallest = at(json!({}), &json!({}), "/spec/template");
    shown_against(kubernetes, changes, &|_| Some(smallest.clone()))
}

/// As [`shown`], with the whole of a pod where `base` has none for its role.
fn shown_against(kubernetes: Value, changes: &Value, base: &dyn Fn(&str) -> Option<Value>) -> String {
    let mut text = format!("# ==== kubernetes settings\n{}", crate::emit::to_yaml(&kubernetes));
    let (files, report) = fixture::lower(&KubernetesBackend, &plan(kubernetes, changes));
    let _ = write!(text, "# ==== plan\n{}", crate::emit::to_yaml(changes));
    if !report.is_empty() {
        let _ = write!(text, "# ==== findings\n{report}");
    }
    for mut file in files {
        if let Content::Yaml(value) = &mut file.content {
            snapshot::shorten_pods(value, base);
        }
        let _ = write!(text, "# ==== {} {:o}\n{}", file.path, file.mode, fixture::text(&file));
    }
    text
}

/// The value at a JSON Pointer of the last manifest, which is the job itself.
fn at(kubernetes: Value, changes: &Value, pointer: &str) -> Value {
    let (files, report) = fixture::lower(&KubernetesBackend, &plan(kubernetes, changes));
    assert_eq!(report, "", "{changes}");
    let mut manifests = files.iter().filter_map(|file| match &file.content {
        Content::Yaml(value) => Some(value),
        _ => None,
    });
    manifests.next_back().and_then(|value| value.pointer(pointer)).cloned().unwrap_or(Value::Null)
}
