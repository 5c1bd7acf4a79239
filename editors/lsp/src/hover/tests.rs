//! Hover texts.

use lsp_types::Contents;

use super::hover;
use crate::client::Settings;
use crate::tests::{Fixture, snapshot};

fn check(name: &str, text: &str) {
    // The schema's texts have their own test; these are the texts that only jobc provides.
    shown(name, text, &Fixture::with(text, Settings { schema_features: false, ..Settings::default() }));
}

fn shown(name: &str, text: &str, fixture: &Fixture) {
    let details = match hover(&fixture.session, &fixture.uri, fixture.position()) {
        None => "(nothing)".to_owned(),
        Some(hover) => {
            let Contents::MarkupContent(markdown) = hover.contents else { panic!("not markdown") };
            let range = hover.range.expect("a range");
            format!(
                "{}:{} to {}:{}\n{}",
                range.start.line, range.start.character, range.end.line, range.end.character, markdown.value
            )
        }
    };
    snapshot("hover", name, text, &details);
}

const JOB: &str = "version: 1
name: gpt
params:
  lr: {default: 0.1, description: learning rate}
secrets:
  wandb: {env: WANDB}
image: pytorch/pytorch:2.4.0-cuda12.4-cudnn9-runtime
data:
  corpus: {source: /d, mount: /data}
roles:
  prepare:
    run: x
  train:
    needs: [prepare]
    instances: 4
    resources:
      cpu: 500m
      memory: 512GiB
      gpu: {count: 8, memory: 80GiB}
      ports: {http: 8080}
    env: {KEY: \"${{ secrets.wandb }}\"}
    run: python ${{ params.lr }} ${{ hosts.prepare[0] }} ${{ ports.http }} ${{ data.corpus.mount }}
    timeout: 2h
distributed: {framework: torchrun, roles: [train]}
";

/// Puts the cursor before the last of the words.
fn at(words: &str) -> String {
    let (before, after) = JOB.rsplit_once(words).expect("the job has these words");
    format!("{before}$0{words}{after}")
}

#[test]
fn values_in_the_plan() {
    check("bytes", &at("512GiB"));
    check("cpus", &at("500m"));
    check("gpus", &at("{count: 8"));
    check("instances", &at("4\n"));
    check("port", &at("http: 8080"));
    check("seconds", &at("2h"));
    check("role", &at("train:\n"));
    check(
        "job_name",
        "==== [targets.yaml]\nversion: 1\ntargets: {lab: {backends: [kubernetes]}, pai: {backends: [openpai]}}\n\
         ==== job.yaml\nversion: 1\nname: $0gpt\nimage: a:1\nroles: {train: {run: x, resources: {cpu: 1, memory: 1GiB, gpu: 0}}}\n",
    );
    check("image", &at("pytorch/pytorch"));
    check("distributed", &at("torchrun"));
    check("stage", &at("needs:"));
    check("nothing", &at("python "));
}

#[test]
fn used_names() {
    check("param_used", &at("lr }}"));
    check("role_used", &at("prepare]\n"));
    check("host_used", &at("prepare[0]"));
    check("port_used", &at("http }}"));
    check("data_used", &at("corpus.mount"));
    check("secret_used", &at("wandb }}"));
}

#[test]
fn a_matrix_lists_its_jobs() {
    check(
        "matrix",
        "version: 1\nname: x\nimage: a:1\nmatrix:\n  $0lr: [1, 2]\nroles: {a: {run: \"x ${{ matrix.lr }}\"}}\n",
    );
}

#[test]
fn a_matrix_of_a_role_lists_its_groups_of_tasks() {
    let job = |role: &str, axis: &str, used: &str| {
        format!(
            "version: 1\nname: x\nimage: a:1\nroles:\n  {role}a: {{matrix: {{{axis}lr: [1, 2]}}, instances: 2, run: \"x ${{{{ matrix.{used}lr }}}}\"}}\n  b: {{needs: [a], run: y}}\n"
        )
    };
    check("matrix_of_role", &job("", "$0", ""));
    check("role_with_matrix", &job("$0", "", ""));
    check("axis_of_role_used", &job("", "", "$0"));
}

#[test]
fn texts_of_the_schema() {
    let check = |name, text: &str| shown(name, text, &Fixture::new(text));
    check("key_with_documentation", &at("memory: 512GiB"));
    check("word_with_documentation", &at("torchrun"));
    check(
        "key_of_targets",
        "==== targets.yaml\nversion: 1\ntargets:\n  lab:\n    $0backends: [kubernetes]\n",
    );
}

#[test]
fn the_last_plan_is_used_while_a_value_is_invalid() {
    let mut fixture = Fixture::with(JOB, Settings { schema_features: false, ..Settings::default() });
    let wrong = at("512GiB").replace("2h", "2");
    fixture.becomes(&wrong);
    shown("last_plan", &wrong, &fixture);
}

#[test]
fn templates_and_their_parameters() {
    let job = |with: &str| format!("version: 1\nname: x\nuses: std/torchrun\nwith: {{{with}}}\n");
    check("template_parameter", &job("script: a, $0nodes: 2"));
    check("template_parameter_value", &job("script: $0a"));
    check("template_parameter_unknown", &job("$0prot: 2"));
    check("template_built_in", "version: 1\nname: x\nroles: {board: {uses: std/$0tensorboard}}\n");
    check("template_unlocked", "version: 1\nname: x\nuses: git+https://h/$0r@v1\n");
}
