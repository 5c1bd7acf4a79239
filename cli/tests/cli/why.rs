//! `jobc why`: from a line of a written file to its cause, and from a line of a job file to its effects.

use std::fmt::Write as _;

use serde_json::Value;

use crate::directory::{Directory, HELLO};

/// The answers about lines, each below its question.
fn answers(directory: &Directory, lines: &[&str]) -> String {
    let mut out = String::new();
    for line in lines {
        let run = directory.jobc(&["why", line]);
        let _ = write!(out, "$ jobc why {line}\n{}{}[{}]\n", run.out, run.err, run.code.unwrap_or(-1));
    }
    out
}

/// The number of the first line of a file that has a text.
fn line_with(directory: &Directory, file: &str, text: &str) -> String {
    let found = directory.read(file).lines().position(|line| line.contains(text));
    format!("{file}:{}", found.unwrap_or_else(|| panic!("`{text}` is not in {file}")) + 1)
}

fn built() -> Directory {
    let directory = Directory::with_job(HELLO);
    directory.write(
        "targets.yaml",
        "version: 1\ntargets:\n  lab: {backends: [kubernetes], kubernetes: {namespace: ml}}\n  here: {backends: [oci, cgroup]}\n",
    );
    directory.jobc(&["build"]).exits(0);
    directory
}

#[test]
fn a_line_of_the_targets_file_has_effects() {
    let directory = built();
    let found = directory.jobc(&["why", "targets.yaml:3"]).exits(0);
    assert!(found.out.contains("namespace: ml"), "{}", found.out);
    assert!(!found.out.contains("/here/"), "{}", found.out);
    let other = directory.jobc(&["why", "targets.yaml:99"]);
    assert!(other.err.contains("has only 4 lines"), "{}", other.err);
}

#[test]
fn a_line_of_a_written_file_has_causes() {
    let directory = built();
    let job = "out/hello/lab/kubernetes/02-job-hello.yaml";
    let config = "out/hello/here/oci/main-0/config.json";
    let lines = [
        line_with(&directory, job, "completions:"),
        line_with(&directory, job, "namespace:"),
        line_with(&directory, job, "backoffLimit:"),
        line_with(&directory, job, "echo"),
        line_with(&directory, job, "kind:"),
        line_with(&directory, config, "echo"),
        "out/hello/here/cgroup/main-0/v2/memory.max:1".to_owned(),
        "out/hello/lab/plan.json:2".to_owned(),
        format!("{job}:9999"),
        "out/hello/lab/none:1".to_owned(),
    ];
    insta::assert_snapshot!(answers(&directory, &lines.each_ref().map(String::as_str)));
}

#[test]
fn a_line_of_a_job_file_has_effects() {
    let directory = built();
    // The number of instances is a parameter: its line causes what the field with it causes.
    insta::assert_snapshot!(answers(
        &directory,
        &["job.yaml:4", "job.yaml:7", "job.yaml:8", "job.yaml:9:5", "job.yaml:10", "job.yaml", "none.yaml:3"]
    ));
}

#[test]
fn why_prints_json_on_request() {
    let directory = built();
    let line = line_with(&directory, "out/hello/lab/kubernetes/02-job-hello.yaml", "completions:");
    let read = |line: &str| -> Value {
        serde_json::from_str(&directory.jobc(&["why", line, "--format", "json"]).exits(0).out).unwrap()
    };
    let cause = read(&line);
    assert_eq!(cause["causes"][0]["pointer"], "/spec/completions");
    assert_eq!(cause["causes"][0]["origins"][0]["spec"], "/roles/main/instances");
    assert_eq!(cause["causes"][0]["origins"][0]["params"], serde_json::json!(["count"]));
    let effects = read("job.yaml:7");
    let effects = effects["effects"].as_array().unwrap();
    assert!(
        effects
            .iter()
            .any(|effect| format!("{}:{}", effect["file"].as_str().unwrap(), effect["line"]) == line)
    );
}

#[test]
fn a_job_with_errors_shows_them() {
    let directory = Directory::with_job(&HELLO.replace("instances", "intances"));
    directory.jobc(&["why", "job.yaml:7"]).exits(1).says("unknown key `intances`");
}
