//! The result of a job with templates, or its findings and their places.

use std::fmt::Write as _;

use crate::diagnostic::{DocumentId, Sink};
use crate::document::Document;
use crate::emit;
use crate::files::MemoryFiles;
use crate::parse::parse;
use crate::source::{Source, Sources};

use super::{expand_templates, show_uses};

fn files(list: &[(&str, &str)]) -> MemoryFiles {
    list.iter().fold(MemoryFiles::default(), |files, (path, text)| files.with(path, text))
}

/// The job with its templates put in as YAML, and every finding with its places.
fn check(job: &str, list: &[(&str, &str)]) -> String {
    let mut out = format!("---- job.yaml\n{job}");
    for (path, text) in list {
        let _ = write!(out, "---- {path}\n{text}");
    }
    let mut sources = Sources::new();
    let mut sink = Sink::new();
    let id = sources.add(Source::new("job.yaml", job));
    let document = parse(&sources, id, &mut sink).expect("the test's job is YAML");
    let expanded = expand_templates(document, &mut sources, &files(list), &mut sink);
    show_uses(&sources, &mut sink);
    show_uses(&sources, &mut sink);
    out.push_str("---- result\n");
    if let Some(Document { root }) = &expanded {
        out.push_str(&emit::to_yaml(&root.to_json()));
    }
    for diagnostic in sink.finish() {
        let _ = writeln!(out, "{} {}", diagnostic.code, diagnostic.message);
        for label in &diagnostic.labels {
            let span = label.place.span().expect("places are located");
            let source = sources.get(span.source);
            let at = source.line_column(span.start);
            let _ = writeln!(out, "  {}:{}:{} {}", source.path(), at.line, at.column, label.text);
        }
        for note in &diagnostic.notes {
            let _ = writeln!(out, "  = {note}");
        }
    }
    out
}

const SERVE: &str = "\
template: 1
kind: role
params:
  port: {default: 8080, min: 1, max: 65535}
  flag: {type: string, description: a flag}
  ratio: 0.10
body:
  image: {from: base:1, apt: [git]}
  env: {A: template, B: \"${{ with.ratio }}\", C: \"r=${{ with.ratio }}\"}
  resources: {cpu: 1, ports: {http: {port: \"${{ with.port }}\"}}}
  run: [serve, \"${{ with.flag }}\", \"${{ ports.http }}\", \"p=${{ params.p }}\"]
";

#[test]
fn what_the_user_writes_wins() {
    insta::assert_snapshot!(check(
        "\
version: 1
name: 例
roles:
  serve:
    uses: templates/serve.yaml
    with: {flag: \"${{ params.flag }}\", port: 9090}
    image: {from: other:2}
    env: {A: user, B: null}
    resources: {memory: 1GiB}
",
        &[("templates/serve.yaml", SERVE)],
    ));
}

#[test]
fn templates_use_templates() {
    insta::assert_snapshot!(check(
        "version: 1\nname: a\nuses: ./jobs/outer.yaml\nwith: {n: 3}\n",
        &[
            (
                "jobs/outer.yaml",
                "template: 1\nkind: job\nparams: {n: 1}\nbody:\n  uses: inner.yaml\n  with: {m: \"${{ with.n }}\"}\n  env: {OUTER: yes-it-is}\n",
            ),
            (
                "jobs/inner.yaml",
                "template: 1\nkind: job\nparams: {m: 1}\nbody:\n  env: {INNER: 1, OUTER: inner}\n  roles:\n    main: {instances: \"${{ with.m }}\", run: x}\n    board: {uses: std/tensorboard, with: {logdir: /logs}}\n",
            ),
        ],
    ));
}

#[test]
fn mistakes_show_both_places() {
    let role =
        |with: &str| format!("version: 1\nname: a\nroles:\n  r:\n    uses: serve.yaml\n    with: {with}\n");
    let mut out = String::new();
    for (job, list) in [
        (role("{prot: 1}"), vec![("serve.yaml", SERVE)]),
        (role("{flag: x, port: 0}"), vec![("serve.yaml", SERVE)]),
        (role("{flag: 1, port: [1]}"), vec![("serve.yaml", SERVE)]),
        (role("3"), vec![("serve.yaml", "template: 1\nkind: role\nbody: {}\n")]),
        (role("{}"), vec![]),
        (role("{}"), vec![("serve.yaml", "run: x\n")]),
        (role("{}"), vec![("serve.yaml", "template: 2\nkind: rol\nparams: [a]\nbodi: {}\n")]),
        (
            role("{}"),
            vec![(
                "serve.yaml",
                "template: 1\nkind: role\nparams: {a-b: 1, c: null, d: {defualt: 1}}\nbody: {}\n",
            )],
        ),
        (role("{}"), vec![("serve.yaml", "template: 1\nkind: job\nbody: {}\n")]),
        (
            role("{}"),
            vec![(
                "serve.yaml",
                "template: 1\nkind: role\nbody: {run: \"${{ with.a }} ${{ with['b'] }} ${{ x.with }}\"}\n",
            )],
        ),
        (role("{}"), vec![("serve.yaml", "template: 1\nkind: role\nbody: {run: [a\n")]),
        (role("{}"), vec![("serve.yaml", "template: 1\nkind: role\nbody: {uses: serve.yaml}\n")]),
        ("name: a\nuses: std/torhcrun\n".to_owned(), vec![]),
        ("name: a\nuses: torchrun\n".to_owned(), vec![]),
        ("name: a\nuses: \"${{ params.t }}\"\n".to_owned(), vec![]),
        ("name: a\nwith: {a: 1}\n".to_owned(), vec![]),
        ("name: a\nuses: 3\n".to_owned(), vec![]),
    ] {
        out.push_str(&check(&job, &list));
        out.push('\n');
    }
    insta::assert_snapshot!(out);
}

#[test]
fn a_chain_has_an_end() {
    let list: Vec<(String, String)> = (0..40)
        .map(|n| (format!("{n}.yaml"), format!("template: 1\nkind: role\nbody: {{uses: {}.yaml}}\n", n + 1)))
        .collect();
    let list: Vec<(&str, &str)> = list.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let out = check("roles: {r: {uses: 0.yaml}}\n", &list);
    let result = out.split("---- result\n").nth(1).unwrap();
    assert!(result.starts_with("J0285 templates use each other more than 16 deep\n"), "{result}");
}

#[test]
fn a_document_without_templates_stays() {
    let text = "version: 1\nroles: {a: {run: x}}\n";
    let mut sources = Sources::new();
    let id = sources.add(Source::new("job.yaml", text));
    let mut sink = Sink::new();
    let document = parse(&sources, id, &mut sink).unwrap();
    let expanded = expand_templates(document.clone(), &mut sources, &files(&[]), &mut sink);
    assert_eq!(expanded, Some(document));
    sink.locate(DocumentId::Job, &expanded.unwrap(), &sources);
}

#[test]
fn every_built_in_template_is_sound() {
    for (name, _) in super::built_in() {
        let out = check(&format!("roles: {{a: {{uses: std/{name}}}}}\nuses: std/{name}\n"), &[]);
        let findings: Vec<&str> = out.lines().filter(|line| line.starts_with("J0")).collect();
        // On one of the two places its kind is wrong; what it needs is not given on the other.
        assert!(
            findings.iter().all(|f| f.starts_with("J0287") || f.starts_with("J0284")),
            "{name}: {findings:#?}"
        );
        assert!(findings.iter().any(|f| f.starts_with("J0287")), "{name}: {findings:#?}");
    }
}
