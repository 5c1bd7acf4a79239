//! Fixes, symbols, folding, hints, lenses, and the requests of jobc.

use lsp_types::CodeActionParams;
use serde_json::{Value, json};

use super::{Fixture, snapshot};
use crate::client::Settings;
use crate::{actions, dispatch, hints, outline};

fn fixes(name: &str, text: &str, only: Option<&[&str]>) {
    let fixture = Fixture::new(text);
    let document = json!({"uri": fixture.uri});
    let params = json!({"textDocument": document, "range": fixture.range, "context": {"diagnostics": [], "only": only}});
    let params: CodeActionParams = serde_json::from_value(params).expect("parameters");
    let mut out = String::new();
    for action in actions::actions(&fixture.session, &params) {
        let preferred = if action.is_preferred == Some(true) { ", preferred" } else { "" };
        out += &format!("==== {} ({}{preferred})\n", action.title, action.kind.expect("a kind"));
        let changes = action.edit.expect("an edit").changes.expect("changes");
        for (uri, edits) in &changes {
            out += &fixture.edited(uri, edits);
        }
    }
    snapshot("tests", name, text, &out);
}

const JOB: &str = "version: 1
name: gpt
image: python:3.12-slim
roles:
  # prepares
  # everything
  prepare:
    run: |
      a
      b
  train:
    instances: 2
    resources: {cpu: 2, memory: 4GiB, gpu: 1}
    env:
      A: b
    needs: [prepare]
    run: x
";

#[test]
fn quick_fixes_are_those_of_the_compiler() {
    fixes("fix_a_key", &JOB.replace("    env:", "    $0enf:"), None);
    fixes("fix_a_word", &format!("{JOB}network: ho$0ts\n"), None);
    fixes("fix_elsewhere", &JOB.replace("env:", "enf:").replace("name: gpt", "name: $0gpt"), None);
    fixes("fix_all", &JOB.replace("    env:", "    enf:").replace("needs", "need"), Some(&["source.fixAll"]));
    fixes("fix_nothing_of_that_kind", &JOB.replace("    env:", "    $0enf:"), Some(&["refactor"]));
    fixes("fix_in_targets", "==== targets.yaml\nversion: 1\ntargets:\n  lab: {$0backend: [oci]}\n", None);
}

#[test]
fn symbols_and_folds() {
    let fixture = Fixture::new(JOB);
    let tree = fixture.session.tree(&fixture.uri).expect("it parses");
    let mut out = String::new();
    for symbol in outline::symbols(tree) {
        let line = |it: &lsp_types::DocumentSymbol| {
            format!(
                "{:?} {} {}-{} {}\n",
                it.kind,
                it.name,
                it.range.start.line,
                it.range.end.line,
                it.detail.as_deref().unwrap_or_default()
            )
        };
        out += &line(&symbol);
        out.extend(symbol.children.iter().flatten().map(|child| format!("  {}", line(child))));
    }
    for fold in outline::folds(tree) {
        out += &format!("fold {}-{} {:?}\n", fold.start_line, fold.end_line, fold.kind);
    }
    snapshot("tests", "symbols_and_folds", JOB, &out);
    let flat = outline::flat(outline::symbols(tree), &fixture.uri);
    let roles: Vec<_> = flat
        .iter()
        .filter(|it| it.base_symbol_information.container_name.as_deref() == Some("roles"))
        .collect();
    assert_eq!(roles.len(), 2);
}

#[test]
fn totals_are_after_the_roles_name() {
    let fixture = Fixture::new(JOB);
    let job = fixture.session.job(&fixture.uri).expect("it is known");
    let whole = lsp_types::Range {
        start: lsp_types::Position::default(),
        end: lsp_types::Position { line: 99, character: 0 },
    };
    let hints = hints::inlay(job, whole);
    let label = |hint: &lsp_types::InlayHint| match &hint.label {
        lsp_types::Label::String(text) => {
            format!("{}:{} {text}", hint.position.line, hint.position.character)
        }
        lsp_types::Label::InlayHintLabelPartList(parts) => panic!("{parts:?}"),
    };
    assert_eq!(hints.iter().map(label).collect::<Vec<_>>(), ["10:8 2 instances: 2 GPUs, 4 CPUs, 8GiB"]);
    let none = lsp_types::Range { end: lsp_types::Position { line: 3, character: 0 }, ..whole };
    assert_eq!(hints::inlay(job, none), vec![]);
}

#[test]
fn lenses_are_above_a_job_and_have_its_uri() {
    let mut fixture = Fixture::new(&format!("# modeline\n{JOB}"));
    fixture.session.client.settings.code_lens = true;
    let lenses = ask(&fixture, "textDocument/codeLens", json!({"textDocument": {"uri": fixture.uri}}))
        .expect("lenses");
    let lenses = lenses.as_array().expect("a list");
    let commands: Vec<&str> = lenses.iter().filter_map(|lens| lens["command"]["command"].as_str()).collect();
    assert_eq!(commands, ["jobc.build", "jobc.run", "jobc.showPlan"]);
    for lens in lenses {
        assert_eq!(lens["command"]["arguments"], json!([fixture.uri]));
        assert_eq!(lens["range"]["start"]["line"], 1);
    }
    let targets = Fixture::new("==== targets.yaml\nversion: 1\ntargets: {a: {backends: [oci]}}\n");
    let none = ask(&targets, "textDocument/codeLens", json!({"textDocument": {"uri": targets.uri}}));
    assert_eq!(none, Ok(json!([])), "a targets file is not built");
}

#[test]
fn lenses_count_the_lines_that_a_role_causes() {
    let mut fixture = Fixture::new(JOB);
    fixture.session.client.settings.why_lens = true;
    let document = json!({"uri": fixture.uri});
    let lenses = ask(&fixture, "textDocument/codeLens", json!({"textDocument": document})).expect("lenses");
    let lenses = lenses.as_array().expect("a list");
    assert!(!lenses.is_empty());
    for lens in lenses {
        let command = &lens["command"];
        assert_eq!(command["command"], "jobc.why");
        assert_eq!(command["arguments"], json!([fixture.uri, lens["range"]["start"]["line"]]));
        let title = command["title"].as_str().expect("a title");
        assert!(title.contains(" file") && title.contains(" line"), "{title}");
    }
}

#[test]
fn why_links_the_job_and_built_files() {
    let fixture = Fixture::new(JOB);
    let line = JOB.lines().position(|line| line.contains("cpu:")).expect("a line");
    let answer = ask(&fixture, "jobc/why", json!({"uri": fixture.uri, "line": line})).expect("an answer");
    let lines = answer["lines"].as_array().expect("a list");
    assert!(!lines.is_empty(), "{answer}");
    for built in lines {
        let file = json!({"job": built["job"], "target": built["target"], "path": built["path"]});
        let back =
            ask(&fixture, "jobc/why", json!({"uri": fixture.uri, "line": built["line"], "file": file}));
        let back = back.expect("an answer");
        let causes = back["causes"].as_array().expect("a list");
        assert!(causes.iter().any(|cause| cause["line"] == line), "{built}: {back}");
    }
    let none = ask(&fixture, "jobc/why", json!({"uri": fixture.uri, "line": 9999})).expect("an answer");
    assert_eq!(none, json!({"fields": [], "lines": [], "causes": []}));
    let file = json!({"job": "gpt", "target": "local", "path": "missing.yaml"});
    let error = ask(&fixture, "jobc/why", json!({"uri": fixture.uri, "line": 0, "file": file}));
    assert!(error.is_err(), "{error:?}");
}

#[test]
fn why_has_the_last_line_of_a_script() {
    let fixture = Fixture::new(JOB);
    let first = JOB.lines().position(|line| line.contains("run: |")).expect("a line");
    let answer =
        ask(&fixture, "jobc/why", json!({"uri": fixture.uri, "line": first + 1})).expect("an answer");
    assert_eq!(answer["fields"], json!(["roles.prepare.run"]), "a line inside the script");
    let lines = answer["lines"].as_array().expect("a list");
    let reach =
        |built: &Value| built["last"].as_u64().expect("a line") - built["line"].as_u64().expect("a line");
    assert!(lines.iter().any(|built| reach(built) > 0), "no script of two lines: {answer}");
    for built in lines {
        let file = json!({"job": built["job"], "target": built["target"], "path": built["path"]});
        let back =
            ask(&fixture, "jobc/why", json!({"uri": fixture.uri, "line": built["last"], "file": file}));
        let back = back.expect("an answer");
        let causes = back["causes"].as_array().expect("a list");
        let from_script = json!({"text": "roles.prepare.run", "line": first, "last": first + 2});
        assert!(causes.contains(&from_script), "{built}: {back}");
    }
}

#[test]
fn why_names_settings_and_defaults_without_a_line() {
    let fixture = Fixture::new(JOB);
    let built = ask(&fixture, "jobc/build", json!({"uri": fixture.uri})).expect("files");
    let files = built["files"].as_array().expect("a list");
    let config = files.iter().find(|file| file["path"] == "oci/train-0/config.json").expect("a file");
    let text = config["text"].as_str().expect("a text");
    let line = text.lines().position(|line| line.contains("\"JOBC_")).expect("a line");
    let found = ask(&fixture, "jobc/why", json!({"uri": fixture.uri, "line": line, "file": config}));
    let words = "the contract: a task without a framework knows which one it is";
    assert_eq!(found.expect("an answer")["causes"], json!([{"text": words, "line": null, "last": null}]));
}

fn ask(fixture: &Fixture, method: &str, params: Value) -> Result<Value, String> {
    dispatch::answer(&fixture.session, method, params).map_err(|failure| failure.message)
}

#[test]
fn the_plan_of_the_text_in_the_editor() {
    let fixture = Fixture::new(JOB);
    let plan = ask(&fixture, "jobc/plan", json!({"uri": fixture.uri})).expect("a plan");
    assert_eq!(
        (&plan["languageId"], &plan["targets"]),
        (&json!("yaml"), &json!(["local", "kubernetes", "openpai"]))
    );
    assert!(plan["text"].as_str().unwrap().starts_with("version: 1\njobs:\n"));
    assert_eq!(
        plan["text"].as_str().unwrap().matches("name: gpt\n").count(),
        1,
        "one of the targets is enough"
    );
    let json =
        ask(&fixture, "jobc/plan", json!({"uri": fixture.uri, "target": "kubernetes", "format": "json"}))
            .expect("a plan");
    let read: Value = serde_json::from_str(json["text"].as_str().unwrap()).expect("JSON");
    assert_eq!(read["jobs"][0]["target"]["name"], "kubernetes");
    let why = ask(&fixture, "jobc/plan", json!({"uri": fixture.uri, "target": "kubernets"}))
        .expect_err("no such target");
    assert_eq!(why, "J0401: unknown target `kubernets`".replace("J0401", &why[..5]));
}

#[test]
fn the_artifacts_of_the_text_in_the_editor() {
    let fixture = Fixture::new(JOB);
    let ask = |backend: &str| ask(&fixture, "jobc/artifact", json!({"uri": fixture.uri, "backend": backend}));
    let made = ask("kubernetes").expect("manifests");
    assert_eq!(made["languageId"], "yaml");
    let text = made["text"].as_str().unwrap();
    assert!(text.starts_with("---\n# kubernetes/") && text.contains("kind: JobSet"), "{text}");
    let files = made["files"].as_array().unwrap();
    assert!(files.iter().all(|file| file["path"].as_str().unwrap().starts_with("kubernetes/")));
    assert_eq!(
        ask("dockerfile").expect_err("nothing is built"),
        "the backend `dockerfile` has nothing to write for this job"
    );
    let broken = Fixture::new(&JOB.replace("env:", "enf:").replace("needs:", "need:"));
    let why = super::features::ask(&broken, "jobc/artifact", json!({"uri": broken.uri, "backend": "oci"}))
        .expect_err("errors");
    assert!(why.starts_with("J0101: unknown key `enf`") && why.ends_with("; and 1 more error"), "{why}");
}

#[test]
fn a_text_of_another_tool_becomes_a_job() {
    let fixture = Fixture::new("==== job.yaml\n==== [.env]\nLR=0.1\n");
    let text = "services:
  train:
    image: python:3.12-slim
    command: [python, train.py]
    env_file: .env
    cpus: 2
    mem_limit: 4g
    container_name: mine
";
    let import =
        |text: &str| ask(&fixture, "jobc/import", json!({"uri": "file:///w/compose.yaml", "text": text}));
    let made = import(text).expect("a job");
    let job = made["text"].as_str().expect("a text");
    assert!(job.contains("LR: \"0.1\"") && job.contains("memory: 4GiB"), "{job}");
    let findings = made["findings"].as_array().unwrap();
    let at: Vec<&Value> = findings.iter().map(|finding| &finding["range"]["start"]["line"]).collect();
    assert_eq!(at, [7], "{findings:#?}");
    let refused = import(&text.replace("cpus: 2", "cpus: many")).expect("findings");
    assert_eq!(refused["text"], Value::Null);
    assert_eq!(refused["findings"][0]["range"]["start"]["line"], 5, "{refused:#}");
    assert_eq!(import(JOB).expect_err("it is a job"), "the text is already a job file of jobc");
}

#[test]
fn the_page_of_a_code() {
    let fixture = Fixture::new(JOB);
    let page = ask(&fixture, "jobc/explain", json!({"code": "j0101"})).expect("a page");
    assert_eq!(page["code"], "J0101");
    assert!(
        page["markdown"].as_str().unwrap().contains("J0101") && !page["title"].as_str().unwrap().is_empty()
    );
    let why = ask(&fixture, "jobc/explain", json!({"code": "J9999"})).expect_err("no such code");
    assert!(why.starts_with("unknown code `J9999`"), "{why}");
}

#[test]
fn a_client_without_related_locations_gets_the_notes_in_the_message() {
    let text = JOB.replace("env:", "enf:");
    let fixture = Fixture::with(&text, Settings::default());
    let mut client = fixture.session.client.clone();
    client.related_information = false;
    let analysis = fixture.session.job(&fixture.uri).and_then(|job| job.analysis.as_ref()).expect("compiled");
    let output = crate::diagnostics::of_analysis(analysis, &fixture.uri, &client);
    let lsp_types::Message::String(message) = &output[&fixture.uri.0][0].message else { panic!("a string") };
    let finding = &analysis.findings[0];
    assert!(message.starts_with(&finding.message) && finding.notes.iter().all(|note| message.contains(note)));
}
