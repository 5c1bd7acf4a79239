//! Snapshots of job files with their plans and findings.

mod errors;
mod frameworks;
mod pages;
mod plans;
mod provided;
mod size;

use jobc_schema::plan::{JobPlan, TargetPlan};
use serde_json::Value;

use super::resolve;
use crate::diagnostic::render::{Format, TextStyle, render};
use crate::diagnostic::{Diagnostic, DocumentId, Sink};
use crate::expand::{Overrides, expand};
use crate::files::MemoryFiles;
use crate::lock::Lock;
use crate::parse::parse;
use crate::snapshot;
use crate::source::{Source, Sources};
use crate::validate;

/// Files that the jobs of these tests refer to.
fn files() -> MemoryFiles {
    MemoryFiles::default()
        .with("requirements.txt", "torch==2.4.0\n")
        .with("src/train.py", "pass\n")
        .with("app.conf", "debug = false\n")
        .with("Dockerfile", "FROM python:3.12-slim\n")
}

/// Runs the passes up to this one.
fn plans(text: &str) -> (Sources, Vec<JobPlan>, Vec<Diagnostic>) {
    let mut sources = Sources::new();
    let id = sources.add(Source::new("job.yaml", text));
    let mut sink = Sink::new();
    let mut plans = Vec::new();
    if let Some(document) = parse(&sources, id, &mut sink) {
        if validate::validate(&document, &mut sink) {
            let unset = |_: &str| None;
            let overrides = Overrides { environment: Some(&unset), ..Overrides::default() };
            for variant in expand(&document, &sources, &overrides, &mut sink) {
                if !validate::validate(&variant.document, &mut sink) {
                    continue;
                }
                let Some(job) = validate::job(&variant.document, &mut sink) else { continue };
                plans.extend(resolve(
                    &job,
                    &variant,
                    &TargetPlan::default(),
                    &files(),
                    &Lock::default(),
                    &mut sink,
                ));
            }
        }
        sink.locate(DocumentId::Job, &document, &sources);
    }
    (sources, plans, sink.finish())
}

/// Prints the file and its plans as JSON, without the target and what is also in the plan of the smallest job; or the
/// file and its findings.
fn check(text: &str) -> String {
    let smallest = plan("version: 1\nname: hello\nimage: a:1\nroles: {main: {run: x}}\n");
    check_against(text, Some(&serde_json::to_value(smallest).unwrap()))
}

/// As [`check`], without what is also in the plan `base`. Its only role is compared with each role of the job.
fn check_against(text: &str, base: Option<&Value>) -> String {
    let (sources, plans, found) = plans(text);
    let mut out = format!("{}\n=>\n", text.trim_start());
    if !found.is_empty() {
        return out + &render(Format::Text, &sources, &found, &TextStyle::default());
    }
    for plan in plans {
        let mut json = serde_json::to_value(&plan).unwrap();
        json.as_object_mut().unwrap().shift_remove("target");
        if let Some(mut base) = base.cloned() {
            let mut role = base["roles"][0].clone();
            let named = |other: &Value| {
                role["name"] = other["name"].clone();
                role.clone()
            };
            base["roles"] = json["roles"].as_array().unwrap().iter().map(named).collect();
            base.as_object_mut().unwrap().shift_remove("target");
            json = snapshot::difference(&json, &base).unwrap_or_default();
        }
        out.push_str(&snapshot::json(&json));
        out.push('\n');
    }
    out
}

/// The only plan of a file without findings.
fn plan(text: &str) -> JobPlan {
    let (sources, mut plans, found) = plans(text);
    assert_eq!(render(Format::Text, &sources, &found, &TextStyle::default()), "");
    plans.remove(0)
}
