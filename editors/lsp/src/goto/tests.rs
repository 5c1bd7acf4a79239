//! Definition, references and rename.

use lsp_types::Location;

use super::{definition, references, rename as renamed};
use crate::tests::{Fixture, snapshot};

/// Each place as `file:line:column text`.
fn places(fixture: &Fixture, locations: &[Location]) -> String {
    let line = |location: &Location| {
        let name = location.uri.0.trim_start_matches("file:///w/");
        let open = fixture.session.documents.get(&location.uri);
        let text = open.map(|open| open.text.as_str()[open.text.bytes(location.range)].to_owned());
        let (line, column) = (location.range.start.line, location.range.start.character);
        format!("{name}:{line}:{column} {}", text.unwrap_or_else(|| "(not open)".to_owned()))
    };
    let mut lines: Vec<String> = locations.iter().map(line).collect();
    lines.sort();
    lines.join("\n")
}

fn check(name: &str, text: &str) {
    let fixture = Fixture::new(text);
    let at = fixture.position();
    let definition = places(&fixture, &definition(&fixture.session, &fixture.uri, at));
    let references = places(&fixture, &references(&fixture.session, &fixture.uri, at, true));
    snapshot("goto", name, text, &format!("definition:\n{definition}\nreferences:\n{references}"));
}

fn rename(name: &str, text: &str, new: &str) {
    let fixture = Fixture::new(text);
    let result = match renamed(&fixture.session, &fixture.uri, fixture.position(), new) {
        Err(why) => format!("refused: {why}"),
        Ok(edit) => fixture.edited(&fixture.uri, &edit.changes.expect("changes")[&fixture.uri]),
    };
    snapshot("goto", name, &format!("{}\n-> {new}", text.trim_end()), &result);
}

const JOB: &str = "version: 1
name: x
params: {lr: 0.1, \"steps\": 9}
secrets: {key: {env: KEY}, 'other': {env: O}}
images: {tools: python:3.12-slim}
data: {set: {source: /d, mount: /data, secret: key}}
outputs: {model: {source: ./m, mount: /m}}
matrix: {seed: [1, 2]}
roles:
  prepare:
    image: {use: tools}
    run: |
      echo ${{ params.lr }} ${{ params[\"steps\"] }}
        ${{ params.lr * 2 }} ${{ data.set.mount }}
  train:
    needs: {prepare: succeeded}
    image: {from: a:1, args: {V: 1}, run: [\"x ${{ args.V }}\"], secrets: [key]}
    data: [set]
    outputs: [model]
    env: {K: \"${{ secrets.key }}\"}
    resources: {ports: {http: 80}}
    ready: {http: {port: http}}
    run: x ${{ ports.http }} ${{ hosts.prepare[0] }} ${{ outputs.model.mount }} ${{ matrix.seed }}
distributed: {framework: mpi, roles: [train], launch: train}
";

fn at(words: &str) -> String {
    let (before, after) = JOB.split_once(words).expect("the job has these words");
    format!("{before}$0{words}{after}")
}

#[test]
fn definition_and_references() {
    check("param", &at("lr }}"));
    check("param_in_brackets", &at("steps\\\"] }}".trim_matches('\\').replace('\\', "").as_str()));
    check("secret", &at("key}}"));
    check("named_image", &at("tools}\n    run"));
    check("data", &at("set.mount"));
    check("output", &at("model]"));
    check("axis", &at("seed }}"));
    check("role", &at("prepare: succeeded"));
    check("role_in_distributed", &at("train], launch"));
    check("port", &at("http}}"));
    let other = JOB.replace("echo", "echo ${{ ports.train.http }}");
    check("port_of_another_role", &other.replace("ports.train.http", "ports.train.$0http"));
    check("role_of_a_port", &other.replace("ports.train.http", "ports.$0train.http"));
    check("argument", &at("V }}"));
    check("no_name", &at("succeeded"));
}

#[test]
fn axes_of_a_role_are_separate() {
    let job = "version: 1
name: x
image: a:1
matrix: {seed: [1, 2]}
roles:
  one: {matrix: {lr: [1]}, run: \"x ${{ matrix.lr }} ${{ matrix.seed }}\"}
  two: {matrix: {axes: {lr: [2]}}, run: \"y ${{ matrix.lr }} ${{ matrix.seed }}\", needs: [one]}
";
    check("axis_of_a_role", &job.replacen("matrix.lr", "matrix.$0lr", 1));
    check("axis_of_the_job", &job.replacen("matrix.seed", "matrix.$0seed", 1));
    rename("rename_axis_of_a_role", &job.replace("axes: {lr", "axes: {$0lr"), "rate");
}

#[test]
fn names_of_targets_files() {
    let job = JOB.replace("data: [set]", "data: [$0set]");
    let targets = "==== targets.yaml\nversion: 1\ndefault: [lab]\ntargets:\n  lab:\n    backends: [kubernetes]\n    kubernetes: {storage: {set: {pvc: s}}, roles: {train: {priority_class: p}}}\n";
    check("data_in_targets", &format!("==== job.yaml\n{job}{targets}"));
    check("target", &targets.replace("[lab]", "[l$0ab]"));
    check("role_from_targets", &format!("==== job.yaml\n{JOB}{}", targets.replace("train:", "tra$0in:")));
    check(
        "closed_targets",
        &format!("==== job.yaml\n{job}{}", targets.replace("targets.yaml", "[targets.yaml]")),
    );
}

#[test]
fn files_and_templates() {
    let files = "==== [Dockerfile]\nFROM a\n==== [t.yaml]\ntemplate: 1\n==== [parts/template.yaml]\ntemplate: 1\n==== [reqs.txt]\na==1\n";
    let check = |name, text: &str| check(name, &format!("==== job.yaml\n{text}{files}"));
    check("dockerfile", "version: 1\nname: x\nimage: {dockerfile: $0Dockerfile}\nroles: {a: {run: x}}\n");
    check("template_directory", "version: 1\nname: x\nimage: a:1\nroles: {a: {uses: ./$0parts}}\n");
    check("template", "version: 1\nname: x\nimage: a:1\nroles: {a: {uses: ./$0t.yaml}}\n");
    check(
        "requirements",
        "version: 1\nname: x\nimage: {from: a:1, python: {requirements: $0reqs.txt}}\nroles: {a: {run: x}}\n",
    );
    check("no_such_file", "version: 1\nname: x\nimage: {dockerfile: $0Dockerfile2}\nroles: {a: {run: x}}\n");
    check("built_in_template", "version: 1\nname: x\nuses: std/$0torchrun\nwith: {script: a}\n");
}

#[test]
fn renames() {
    rename("rename_param", &at("lr: 0.1"), "rate");
    rename("rename_quoted", &at("\"steps\": 9").replace("$0\"", "\"$0"), "n");
    rename("rename_secret", &at("key}}"), "api-key");
    rename("rename_role", &at("prepare:\n"), "fetch");
    rename("rename_port", &at("http: 80"), "web");
    rename("rename_to_a_bad_name", &at("prepare:\n"), "Fetch It");
    rename("rename_to_a_taken_name", &at("prepare:\n"), "train");
    rename("rename_data_to_an_output", &at("set: {source"), "model");
    rename("rename_of_nothing", &at("succeeded"), "ready");
    rename("rename_of_what_is_not_declared", &at("lr }}").replace("{lr: 0.1, ", "{"), "rate");
    rename("rename_of_an_escaped_name", &JOB.replace("{lr: 0.1", "{$0\"l\\x72\": 0.1"), "rate");
}

#[test]
fn nothing_is_renamed_in_a_file_with_syntax_errors() {
    let mut fixture = Fixture::new(&at("lr: 0.1"));
    fixture.becomes(&at("lr: 0.1").replace("roles:\n", "roles: {\n"));
    let why =
        renamed(&fixture.session, &fixture.uri, fixture.position(), "rate").expect_err("it does not parse");
    assert_eq!(why, "the file has a syntax error; fix it first");
}
