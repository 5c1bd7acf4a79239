//! Plans for the tests of backends that need no pass before them.

use std::fmt::Write as _;

use jobc_schema::plan::JobPlan;
use serde_json::{Value, json};

use crate::backend::{Backend, Content, Context, File, Losses};
use crate::diagnostic::Sink;
use crate::files::MemoryFiles;

/// A plan of one job from what a test changes in it; roles are given as a map and filled with defaults.
pub(crate) fn job(changes: &Value) -> JobPlan {
    let mut job = json!({
        "name": "demo",
        "target": {"name": "local", "built_in": true, "settings": {"backends": ["oci", "cgroup"]}},
        "images": {"main": {"source": {"kind": "reference"}, "reference": "busybox:1.35", "declared_at": "/image"}},
        "roles": {"main": {}},
        "stages": [],
        "gang": "auto",
        "network": "auto",
        "totals": {"instances": 0, "cpu_millis": 0, "memory_bytes": 0, "gpus": 0, "gpu_slices": 0}
    });
    merge(&mut job, changes);
    let Value::Object(roles) = job["roles"].take() else { panic!("roles are a map") };
    let fill = |(name, changes): (String, Value)| {
        let mut role = json!({
            "name": name,
            "instances": 1,
            "image": "main",
            "command": {"script": {"shell": ["/bin/sh", "-eu", "-c"], "script": "true"}},
            "resources": {},
            "completion": {"min_failed": 1},
            "retry": {"max": 0, "scope": "task"},
            "grace_period_seconds": 30,
            "security": {}
        });
        // A new command replaces the old one.
        if changes.get("command").is_some() {
            role["command"] = json!({});
        }
        merge(&mut role, &changes);
        role
    };
    // The default role is removed if a test defines its own.
    let named = changes.get("roles").and_then(Value::as_object).is_some();
    let own = |name: &String| !named || changes["roles"].get(name).is_some();
    job["roles"] = roles.into_iter().filter(|(name, _)| own(name)).map(fill).collect();
    serde_json::from_value(job).expect("a test's plan is a plan")
}

fn merge(into: &mut Value, changes: &Value) {
    match (into, changes) {
        (Value::Object(into), Value::Object(changes)) => {
            for (key, value) in changes {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, changes) => *into = changes.clone(),
    }
}

/// The files a backend writes for a job, and what it reports, one finding a line.
pub(crate) fn lower(backend: &dyn Backend, job: &JobPlan) -> (Vec<File>, String) {
    lower_among(backend, job, &[])
}

/// As [`lower`], for one of the jobs of a matrix.
pub(crate) fn lower_among(backend: &dyn Backend, job: &JobPlan, all_jobs: &[JobPlan]) -> (Vec<File>, String) {
    let files = MemoryFiles::default()
        .with("src", "packed")
        .with("medium", &"x".repeat(200_000))
        .with("large", &"x".repeat(5 << 20));
    let context = Context {
        files: &files,
        to_job: "../../..".into(),
        gpu_injection: None,
        losses: Losses::Refuse,
        plugins: None,
        all_jobs,
    };
    let mut sink = Sink::new();
    let written = backend.lower(job, &context, &mut sink);
    let mut report = String::new();
    for finding in sink.diagnostics() {
        let _ = writeln!(report, "{:?} {}: {}", finding.severity, finding.code, finding.message);
        for label in &finding.labels {
            let _ = writeln!(report, "  at {:?} {}", label.place, label.text);
        }
        for note in &finding.notes {
            let _ = writeln!(report, "  note: {note}");
        }
    }
    (written, report)
}

/// The text of a file.
pub(crate) fn text(file: &File) -> String {
    match &file.content {
        Content::Text(text) => text.clone(),
        Content::Json(value) => crate::snapshot::json(value),
        Content::Yaml(value) => crate::emit::to_yaml(value),
        Content::Bytes(bytes) => format!("{} bytes\n", bytes.len()),
        other @ Content::Dockerfile(_) => panic!("{}: {other:?}", file.path),
    }
}
