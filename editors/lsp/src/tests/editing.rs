//! Tokens, highlights, links, selection ranges, symbols of all files, pulled diagnostics, and renames of files.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Fixture, snapshot};
use crate::client::Settings;
use crate::dispatch;
use crate::tokens::TYPES;

fn ask(fixture: &Fixture, method: &str, params: Value) -> Value {
    let answer = dispatch::answer(&fixture.session, method, params);
    answer.unwrap_or_else(|failure| panic!("{method}: {}", failure.message))
}

const JOB: &str = "version: 1
name: x
x-jobc-allow: [J0311]
params: {lr: 0.1}
image: {from: python:3.12-slim, python: {requirements: reqs/base.txt}, copy: [{from: ./train.py, to: /a}]}
roles:
  prepare:
    run: echo ${{ params.lr | upper }}
  train:
    needs: [prepare]
    uses: ./parts/role.yaml
    resources: {ports: {http: 80}}
    run: |
      wget ${{ hosts.prepare[0] }} $JOBC_HOSTS_PREPARE $JOBC_PORT_HTTP $JOBC_HOSTS_PREPARED
";

const FILES: &str = "==== [reqs/base.txt]\na==1\n==== [train.py]\nx\n==== [parts/role.yaml]\ntemplate: 1\nkind: role\nbody: {}\n";

fn fixture() -> Fixture {
    Fixture::new(&format!("==== job.yaml\n{JOB}{FILES}"))
}

fn document(fixture: &Fixture) -> Value {
    json!({"textDocument": {"uri": fixture.uri}})
}

#[test]
fn names_and_expressions_are_tokens() {
    let fixture = fixture();
    let tokens = ask(&fixture, "textDocument/semanticTokens/full", document(&fixture));
    let numbers: Vec<usize> = tokens["data"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|n| usize::try_from(n.as_u64().expect("a number")).expect("small"))
        .collect();
    let lines: Vec<&str> = JOB.lines().collect();
    let (mut line, mut column) = (0, 0);
    let mut out = String::new();
    for token in numbers.chunks(5) {
        column = if token[0] == 0 { column + token[1] } else { token[1] };
        line += token[0];
        let declares = if token[4] == 1 { ", declaration" } else { "" };
        let _ =
            writeln!(out, "{line} {} {}{declares}", &lines[line][column..column + token[2]], TYPES[token[3]]);
    }
    snapshot("tests", "tokens", JOB, &out);
    let range = json!({"start": {"line": 3, "character": 0}, "end": {"line": 3, "character": 99}});
    let some = json!({"textDocument": {"uri": fixture.uri}, "range": range});
    let part = ask(&fixture, "textDocument/semanticTokens/range", some);
    assert_eq!(part["data"].as_array().expect("a list").len(), 5, "one token on the line");
}

#[test]
fn the_places_of_a_name_are_highlighted() {
    let fixture = fixture();
    let at = json!({"textDocument": {"uri": fixture.uri}, "position": {"line": 6, "character": 4}});
    let found = ask(&fixture, "textDocument/documentHighlight", at);
    let places: Vec<(u64, u64)> = found
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| (it["range"]["start"]["line"].as_u64().unwrap(), it["kind"].as_u64().unwrap()))
        .collect();
    assert_eq!(places, [(6, 3), (9, 2), (13, 2)]);
}

#[test]
fn files_templates_and_codes_are_links() {
    let fixture = fixture();
    let found = ask(&fixture, "textDocument/documentLink", document(&fixture));
    let targets: Vec<&str> =
        found.as_array().expect("a list").iter().filter_map(|it| it["target"].as_str()).collect();
    assert_eq!(
        targets,
        [
            "https://example.com/codes/J0311.html",
            "file:///w/reqs/base.txt",
            "file:///w/train.py",
            "file:///w/parts/role.yaml"
        ]
    );
}

#[test]
fn a_selection_expands_from_a_value_to_the_file() {
    let fixture = fixture();
    let positions = json!([{"line": 9, "character": 13}]);
    let found = ask(
        &fixture,
        "textDocument/selectionRange",
        json!({"textDocument": {"uri": fixture.uri}, "positions": positions}),
    );
    let open = fixture.session.documents.get(&fixture.uri).expect("it is open");
    let mut texts = vec![];
    let mut at = &found[0];
    while at.is_object() {
        let range = serde_json::from_value(at["range"].clone()).expect("a range");
        texts.push(open.text.as_str()[open.text.bytes(range)].to_owned());
        at = &at["parent"];
    }
    assert_eq!(texts[..3], ["prepare", "[prepare]", "needs: [prepare]"]);
    assert_eq!(texts.last().map(String::as_str), Some(JOB));
    assert!(texts.is_sorted_by_key(String::len), "{texts:#?}");
}

#[test]
fn symbols_of_all_open_files_are_found_by_their_letters() {
    let fixture = Fixture::new(&format!("==== a.job.yaml\n{JOB}==== b.job.yaml\n{JOB}{FILES}"));
    let names = |query: &str| -> Vec<String> {
        let found = ask(&fixture, "workspace/symbol", json!({"query": query}));
        let all = found.as_array().expect("a list").iter();
        all.map(|it| format!("{} {}", it["location"]["uri"].as_str().unwrap(), it["name"].as_str().unwrap()))
            .collect()
    };
    assert_eq!(names("TrN"), ["file:///w/a.job.yaml train", "file:///w/b.job.yaml train"]);
    assert_eq!(names("").len(), 6, "two roles and a parameter in each");
    assert_eq!(names("nothing"), Vec::<String>::new());
}

#[test]
fn diagnostics_can_be_requested() {
    let job = JOB.replace("needs:", "need:").replace("    uses: ./parts/role.yaml\n", "");
    let fixture = Fixture::new(&format!("==== job.yaml\n{job}{FILES}"));
    let found = ask(&fixture, "textDocument/diagnostic", document(&fixture));
    assert_eq!(found["kind"], "full");
    assert!(found["items"].as_array().expect("a list").iter().any(|it| it["code"] == "J0101"), "{found}");
}

#[test]
fn without_a_targets_file_only_the_default_target_has_findings() {
    // Kubernetes and OpenPAI refuse `ulimits`, and a host has no secret store.
    let head = "version: 1\nname: x\nimage: python:3.12-slim\n";
    let role = "roles:\n  a:\n    run: x\n    resources: {cpu: 1, memory: 1GiB, ulimits: {nofile: 10}}\n";
    let found = |text: &str, target: &str| {
        let fixture = Fixture::with(text, Settings { target: target.to_owned(), ..Settings::default() });
        let found = ask(&fixture, "textDocument/diagnostic", document(&fixture));
        let all = found["items"].as_array().expect("a list").clone();
        all.into_iter().map(|it| format!("{} {}", it["code"], it["severity"])).collect::<Vec<_>>()
    };
    let job = format!("{head}{role}");
    assert_eq!(found(&job, ""), Vec::<String>::new());
    let refused = found(&job, "openpai");
    assert!(refused.contains(&r#""J0401" 1"#.to_owned()), "{refused:?}");
    let stored = format!(
        "{head}secrets: {{token: {{store: {{name: s, key: k}}}}}}\n{role}    env: {{TOKEN: \"${{{{ secrets.token }}}}\"}}\n"
    );
    assert_eq!(found(&stored, ""), [r#""J0404" 3"#]);
}

#[test]
fn paths_of_a_renamed_file_are_updated_in_jobs() {
    let fixture = fixture();
    let renamed = |old: &str, new: &str| {
        let files = json!([{"oldUri": format!("file:///w/{old}"), "newUri": format!("file:///w/{new}")}]);
        let edit = ask(&fixture, "workspace/willRenameFiles", json!({"files": files}));
        let edits = edit["changes"]["file:///w/job.yaml"].as_array().cloned().unwrap_or_default();
        let text = |edit: &Value| edit["newText"].as_str().unwrap().to_owned();
        edits.iter().map(text).collect::<Vec<_>>()
    };
    assert_eq!(renamed("train.py", "src/main.py"), ["./src/main.py"]);
    assert_eq!(renamed("reqs", "requirements"), ["requirements/base.txt"]);
    assert_eq!(renamed("parts/role.yaml", "../role.yaml"), ["../role.yaml"]);
    assert_eq!(
        renamed("job.yaml", "jobs/job.yaml"),
        ["../reqs/base.txt", "../train.py", "../parts/role.yaml"]
    );
    assert_eq!(renamed("other.py", "x.py"), Vec::<String>::new());
}

#[test]
fn a_rename_changes_the_variables_that_scripts_read() {
    let fixture = fixture();
    let rename = |line: u32, character: u32, new: &str| {
        let position = json!({"line": line, "character": character});
        let params = json!({"textDocument": {"uri": fixture.uri}, "position": position, "newName": new});
        let edit = ask(&fixture, "textDocument/rename", params);
        let edits =
            serde_json::from_value::<Vec<lsp_types::TextEdit>>(edit["changes"][&fixture.uri.0].clone());
        let text = fixture.edited(&fixture.uri, &edits.expect("edits"));
        (text.lines().last().unwrap_or_default().trim().to_owned(), fixture.session.take_warnings())
    };
    let (script, warnings) = rename(6, 4, "fetch-all");
    assert_eq!(
        script,
        "wget ${{ hosts.fetch-all[0] }} $JOBC_HOSTS_FETCH_ALL $JOBC_PORT_HTTP $JOBC_HOSTS_PREPARED"
    );
    assert!(warnings[0].starts_with("`JOBC_HOSTS_PREPARE` is now `JOBC_HOSTS_FETCH_ALL`"), "{warnings:?}");
    let (script, warnings) = rename(11, 25, "web");
    assert!(script.contains("$JOBC_PORT_WEB"), "{script}");
    assert_eq!(warnings.len(), 1);
    assert_eq!(rename(3, 9, "rate").1, Vec::<String>::new(), "no variable has the name of a parameter");
}

#[test]
fn edits_have_the_version_for_clients_that_compare_it() {
    let mut fixture = fixture();
    fixture.session.client.versioned_edits = true;
    let position = json!({"line": 3, "character": 9});
    let params = json!({"textDocument": {"uri": fixture.uri}, "position": position, "newName": "rate"});
    let edit = ask(&fixture, "textDocument/rename", params);
    let changes = &edit["documentChanges"][0];
    assert_eq!(changes["textDocument"], json!({"uri": fixture.uri, "version": 1}));
    assert_eq!(changes["edits"].as_array().map(Vec::len), Some(2));
    assert!(edit.get("changes").is_none());
}
