//! The result of importing a template, and the findings for invalid ones.

mod openpai_0_14;
mod plugins;

use std::fmt::Write as _;

use crate::diagnostic::{Code, Diagnostic, Severity, Sink};
use crate::document::{Document, Node, Value};
use crate::files::MemoryFiles;
use crate::parse::parse;
use crate::source::{Source, Sources};

use super::{Selection, import};

/// A well-known example of the short template.
const EXAMPLE: &str = r#"{"jobName":"restnet","image":"example.tensorflow:stable","dataDir":"/tmp/data","outputDir":"/tmp/output","taskRoles":[{"taskNumber":1,"cpuNumber":8,"memoryMB":32768,"gpuNumber":1,"command":"python train.py --batch_size=256 --model_name=resnet50"}]}"#;

fn run(text: &str) -> (Sources, Option<Document>, Sink) {
    let mut sources = Sources::new();
    let id = sources.add(Source::new(if text.starts_with('{') { "job.json" } else { "job.yaml" }, text));
    let mut sink = Sink::new();
    let document = parse(&sources, id, &mut sink).expect("a tree");
    assert!(!sink.has_errors(), "{:?}", sink.diagnostics());
    let document = import(document, &mut sources, &MemoryFiles::default(), &Selection::default(), &mut sink);
    assert_eq!(document.is_none(), sink.has_errors(), "{text}");
    (sources, document, sink)
}

fn describe(out: &mut String, sources: &Sources, diagnostic: &Diagnostic) {
    let _ = writeln!(out, "{:?} {}: {}", diagnostic.severity, diagnostic.code, diagnostic.message);
    for label in &diagnostic.labels {
        let span = label.place.span().expect("a located place");
        let at = sources.get(span.source).line_column(span.start);
        let _ = writeln!(out, "  at {}:{} [{}] {}", at.line, at.column, sources.slice(span), label.text);
    }
    for note in &diagnostic.notes {
        let _ = writeln!(out, "  note: {note}");
    }
    for fix in &diagnostic.fixes {
        let _ = writeln!(out, "  fix ({:?}): {}", fix.safety, fix.message);
    }
}

/// Each text, its findings and its result, which must be a job.
fn check(texts: &[&str]) -> String {
    let mut out = String::new();
    for text in texts {
        let (sources, document, mut sink) = run(text);
        let _ = writeln!(out, "{}\n----", text.trim_end());
        if let Some(document) = &document {
            assert!(crate::validate::validate(document, &mut sink), "{:#?}", sink.diagnostics());
            assert!(crate::validate::job(document, &mut sink).is_some());
        }
        for diagnostic in &sink.finish() {
            describe(&mut out, &sources, diagnostic);
        }
        if let Some(document) = document {
            let _ = writeln!(out, "=> {}", crate::snapshot::json(&document.to_json()));
        }
        out.push('\n');
    }
    out
}

/// A template with one task role, with these additional fields of the job and the role.
fn template(job: &str, role: &str) -> String {
    format!(r#"{{"jobName": "x", "image": "i:1"{job}, "taskRoles": [{{"command": "c"{role}}}]}}"#)
}

fn check_fields(fields: &[(&str, &str)]) -> String {
    let texts: Vec<String> = fields.iter().map(|(job, role)| template(job, role)).collect();
    check(&texts.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn a_short_template() {
    insta::assert_snapshot!(check(&[EXAMPLE]));
}

#[test]
fn optional_fields() {
    insta::assert_snapshot!(check(&[r#"{
  "jobName": "Couplet_v1.2",
  "image": "openpai/tf",
  "authFile": "",
  "retryCount": 3,
  "virtualCluster": "research",
  "taskRoles": [
    {"name": "PS_server", "taskNumber": 2, "cpuNumber": 4, "memoryMB": 8192, "shmMB": 1024, "command": "ps",
     "minFailedTaskCount": null, "minSucceededTaskCount": 1,
     "portList": [{"label": "web_UI", "beginAt": 8080, "portNumber": 2}, {"label": "grpc", "beginAt": 0, "portNumber": 1}]},
    {"taskNumber": 1, "gpuNumber": 0, "command": "worker"}
  ]
}"#]));
}

#[test]
fn invalid_templates() {
    insta::assert_snapshot!(check_fields(&[
        (r#", "dataDri": "/d""#, r#", "gpuNum": 1, "zzz": 2"#),
        (r#", "codeDir": "/c", "gpuType": "K80""#, ""),
        (r#", "dataDir": "data", "outputDir": "$PAI_DEFAULT_FS_URI/out""#, ""),
        (
            r#", "dataDir": "hdfs://h/d""#,
            r#", "taskNumber": 0, "cpuNumber": "8", "memoryMB": 1.5, "gpuNumber": -1"#
        ),
        (
            r#", "retryCount": -2, "virtualCluster": 5"#,
            r#", "memoryMB": "32GB", "shmMB": true, "minFailedTaskCount": 0"#
        ),
        ("", r#", "portList": {"a": 1}"#),
        ("", r#", "portList": [5, {"beginAt": 0}, {"label": "a", "port": 1}, {"label": "A"}]"#),
        ("", r#", "name": "训练""#),
    ]));
    insta::assert_snapshot!(check(&[
        r#"{"jobName": "", "taskRoles": []}"#,
        r#"{"jobName": "...", "image": 5, "taskRoles": [5, {}, {"command": ["a"]}, {"taskNumber": 1}]}"#,
        r#"{"jobName": "x", "image": "i", "taskRoles": {"a": 1}}"#,
        r#"{"jobName": "x", "image": "i", "taskRoles": [{"name": "a_b", "command": "c"}, {"name": "a.b", "command": "c"}]}"#,
        "protocolVersion: 2\nname: x\ntype: job\ntaskRoles: {a: {}}\n",
    ]));
}

#[test]
fn our_own_spec_passes_unchanged() {
    for text in [
        "version: 1\nname: x\nroles: {a: {run: x}}\n",
        "jobName: x\nroles: {a: {run: x}}\n",
        "- a\n",
        "taskRoles: 5\n",
    ] {
        let mut sources = Sources::new();
        let id = sources.add(Source::new("job.yaml", text));
        let mut sink = Sink::new();
        let document = parse(&sources, id, &mut sink).expect("a tree");
        assert_eq!(
            import(document.clone(), &mut sources, &MemoryFiles::default(), &Selection::default(), &mut sink),
            Some(document),
            "{text}"
        );
        assert!(!sink.has_errors());
    }
}

/// A job of protocol v2 with one task role, with these additional fields of the job and the role.
fn protocol_2(job: &str, role: &str) -> String {
    format!(
        "protocolVersion: 2\nname: x\ntype: job\nprerequisites:\n  - {{name: i, type: dockerimage, uri: \"i:1\"}}\n  \
         - {{name: d, type: data, uri: [\"http://d/0\"]}}\n{job}taskRoles:\n  a:\n    dockerImage: i\n    \
         resourcePerInstance: {{cpu: 1, memoryMB: 1024, gpu: 0}}\n{role}"
    )
}

/// 0 and null mean the defaults, and by default the job ends when all tasks succeed; in v1, null means never.
#[test]
fn thresholds_of_protocol_2() {
    let thresholds = [
        "",
        "    completion: {minFailedInstances: 0, minSucceededInstances: ~}\n",
        "    instances: 3\n    completion: {minFailedInstances: -1, minSucceededInstances: 2}\n",
    ];
    let texts: Vec<String> =
        thresholds.iter().map(|text| protocol_2("", &format!("{text}    commands: [c]\n"))).collect();
    let output = check(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let lines: Vec<&str> = output
        .lines()
        .filter_map(|line| line.find("\"min_").and_then(|at| line[at..].split('}').next()))
        .collect();
    assert_eq!(
        lines,
        [
            r#""min_succeeded": "all""#,
            r#""min_succeeded": "all""#,
            r#""min_failed": "none", "min_succeeded": 2"#
        ]
    );
}

#[test]
fn commands_of_protocol_2() {
    insta::assert_snapshot!(check(&[
        &protocol_2(
            "parameters: {n: 1.0, \"not-a-name\": y, list: [a]}\nsecrets: {k: \"${store:vault/key}\"}\n",
            "    data: d\n    commands:\n      - \"run <% $parameters.n %> <% $parameters.not-a-name %> <% $parameters.list[0] %>\"\n      \
             - \"get <% $data.uri[0] %> <% $data.name %> '<% $secrets.k %>' ${{ x }}\"\n"
        ),
        &protocol_2(
            "deployments: [{name: p, taskRoles: {a: {preCommands: [before], postCommands: [after]}}}]\ndefaults: {deployment: p}\n\
             extras:\n  com.microsoft.pai.runtimeplugin:\n    - {plugin: cmd, parameters: {preCommands: [early], postCommands: [late]}}\n    \
             - {plugin: git, failurePolicy: ignore, parameters: {repo_uri: \"http://r\"}}\n",
            "    commands: [\"  own $PAI_WORK_DIR  \"]\n"
        ),
    ]));
}

/// A second document, as in OpenPAI's own tests, has the values of the job's secrets.
#[test]
fn secrets_in_a_second_document() {
    let text = "protocolVersion: 2\nname: x\ntype: job\nprerequisites:\n  - name: i\n    type: dockerimage\n    uri: r.example.com/i:1\n    \
                auth: {username: u, password: <% $secrets.p %>, registryuri: \"https://r.example.com/v2/\"}\n\
                taskRoles: {a: {dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 1024, gpu: 0}, commands: [c]}}\n---\np: hunter2\n";
    let mut sources = Sources::new();
    let id = sources.add(Source::new("job.yaml", text));
    let mut sink = Sink::new();
    let document = parse(&sources, id, &mut sink).expect("a tree");
    let document = import(document, &mut sources, &MemoryFiles::default(), &Selection::default(), &mut sink)
        .expect("a job")
        .to_json();
    assert_eq!(document["registries"]["r.example.com"]["password"]["secret"], "p");
    assert_eq!(document["secrets"]["p"]["env"], "P");
    assert!(!document.to_string().contains("hunter2"));
    assert!(sink.diagnostics().iter().all(|d| d.severity == Severity::Note), "{:#?}", sink.diagnostics());
}

/// The path of each part and the beginning of the text at its span.
fn walk(sources: &Sources, node: &Node, path: &str, out: &mut String) {
    let slice = sources.slice(node.span);
    assert!(!slice.is_empty(), "{path}");
    let short: String = slice.chars().take(40).collect();
    let _ = writeln!(out, "{path}: {short}");
    for entry in node.entries() {
        assert!(!sources.slice(entry.key_span).is_empty(), "{path}/{}", entry.key);
        walk(sources, &entry.value, &format!("{path}/{}", entry.key), out);
    }
    if let Value::Sequence(items) = &node.value {
        for (index, item) in items.iter().enumerate() {
            walk(sources, item, &format!("{path}/{index}"), out);
        }
    }
}

#[test]
fn every_part_keeps_its_span() {
    let (sources, document, _) = run(EXAMPLE);
    let root = document.unwrap().root;
    let mut out = String::new();
    walk(&sources, &root, "", &mut out);
    insta::assert_snapshot!(out);
}

#[test]
fn the_examples_of_the_documentation_are_imported() {
    let codes: Vec<Code> = Code::all()
        .map(|(code, _)| code)
        .filter(|c| c.as_str().starts_with("J052") || c.as_str().starts_with("J053"))
        .collect();
    assert_eq!(codes.len(), 11);
    for code in codes {
        let fenced: Vec<&str> = code.page().split("```").skip(1).step_by(2).collect();
        let texts: Vec<&str> = fenced.iter().map(|block| block.split_once('\n').unwrap().1).collect();
        let (_, _, sink) = run(texts[0]);
        assert!(sink.diagnostics().iter().any(|d| d.code == code), "{code}: {:#?}", sink.diagnostics());
        let (_, document, sink) = run(texts[1]);
        assert!(document.is_some() && sink.diagnostics().is_empty(), "{code}");
    }
}

#[test]
fn ten_thousand_task_roles_are_read() {
    let roles: Vec<String> =
        (0..10_000).map(|_| r#"{"command": "c", "taskNumber": 10}"#.to_owned()).collect();
    let text = format!(r#"{{"jobName": "x", "image": "i", "taskRoles": [{}]}}"#, roles.join(","));
    let (_, document, sink) = run(&text);
    assert_eq!(document.unwrap().root.get("roles").unwrap().entries().len(), 10_000);
    assert!(sink.diagnostics().iter().all(|d| d.severity != Severity::Error));
}

/// An empty value sets nothing, so it is neither reported nor kept; other values are kept as `env`.
#[test]
fn empty_fields_that_protocol_v2_lacks_are_ignored() {
    let (_, _, sink) = run(EXAMPLE);
    let output: Vec<String> = sink.diagnostics().iter().map(|d| d.message.clone()).collect();
    for (value, kept) in [("{}", false), ("null", false), ("{\"A\": \"1\"}", true)] {
        let text = EXAMPLE.replacen('{', &format!("{{\"jobEnvs\":{value},"), 1);
        let (_, document, sink) = run(&text);
        let found: Vec<String> = sink.diagnostics().iter().map(|d| d.message.clone()).collect();
        assert_eq!(found, output, "jobEnvs: {value}");
        let document = document.expect("a job").to_json();
        let variable = document.get("env").and_then(|env| env.get("A"));
        assert_eq!(variable, kept.then(|| "1".into()).as_ref(), "jobEnvs: {value}");
    }
}
