//! The typed job: which numbers keep their text, and which keys are dropped.

use jobc_schema::Job;

use crate::diagnostic::{DocumentId, Sink};

use super::{describe, read, role};

fn job(text: &str) -> Job {
    let (_, document) = read("job.yaml", text);
    let mut sink = Sink::new();
    assert!(crate::validate::validate(&document, &mut sink), "{:#?}", sink.diagnostics());
    let job = crate::validate::job(&document, &mut sink);
    assert!(!sink.has_errors(), "{:#?}", sink.diagnostics());
    job.expect("a job without errors")
}

#[test]
fn numbers_keep_their_text_where_it_matters() {
    let job = job(
        "version: 1\nname: x\nimage: {from: busybox, args: {V: 1.10}, env: {W: 2.20}}\nparams: {lr: 1e-3, n: {default: 1.0, choices: [1.0, 2.50]}}\nmatrix: {lr: [0.10, 1e3]}\nenv: {A: 3.10, B: 0x10, C: ~}\nroles: {a: {run: x, env: {D: 1.50}, instances: 2.0}}\n",
    );
    let env = |key: &str| job.env[key].0.as_ref().map(|scalar| scalar.text.clone());
    assert_eq!(env("A").as_deref(), Some("3.10"));
    assert_eq!(env("B").as_deref(), Some("0x10"));
    assert_eq!(env("C"), None);
    let role = &job.roles["a"];
    assert_eq!(role.env["D"].0.as_ref().unwrap().text, "1.50");
    assert_eq!(role.instances, Some(2));
    let matrix = format!("{:?}", job.matrix);
    assert!(matrix.contains("\"0.10\"") && matrix.contains("\"1e3\""), "{matrix}");
    let params = format!("{:?}", job.params);
    assert!(
        params.contains("\"1e-3\"") && params.contains("\"2.50\"") && params.contains("\"1.0\""),
        "{params}"
    );
    let image = format!("{:?}", job.image);
    assert!(image.contains("\"1.10\"") && image.contains("\"2.20\""), "{image}");
}

#[test]
fn user_defined_keys_at_the_top_level_are_dropped() {
    let schema = job(
        "$schema: https://example.com/schemas/job.v1.schema.json\nversion: 1\nname: x\nroles: {a: {run: x}}\n",
    );
    assert_eq!(schema.roles.len(), 1);
    let job = job("version: 1\nname: x\nx-anchors: {a: [1, ~, true]}\nroles: {a: {run: x}}\n");
    assert_eq!(job.roles.len(), 1);
}

#[test]
fn an_error_of_conversion_has_a_place() {
    // An expression that was not substituted is valid in the schema but not for the types.
    let (sources, document) = read("job.yaml", &role("run: x\ninstances: ${{ params.n }}"));
    let mut sink = Sink::new();
    assert!(crate::validate::validate(&document, &mut sink));
    assert_eq!(crate::validate::job(&document, &mut sink), None);
    sink.locate(DocumentId::Job, &document, &sources);
    let mut out = String::new();
    for diagnostic in &sink.finish() {
        describe(&mut out, &sources, diagnostic);
    }
    insta::assert_snapshot!(out);
}

#[test]
fn the_example_of_the_specification_is_a_job() {
    let job = job(include_str!("example.yaml"));
    assert_eq!(job.roles.len(), 2);
}
