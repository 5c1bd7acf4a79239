//! Lints of the file as written.

use std::fmt::Write as _;

use super::{blocks, whole};
use crate::check::{allowed, check_document};
use crate::diagnostic::{Code, Diagnostic, DocumentId, Sink};
use crate::files::MemoryFiles;
use crate::parse::parse;
use crate::source::{Source, Sources};

/// The codes whose pages this pass alone can prove.
const OWN_CODES: [&str; 8] = ["J0300", "J0332", "J0335", "J0336", "J0337", "J0338", "J0339", "J0340"];

fn run(text: &str) -> (Sources, Vec<Diagnostic>) {
    run_beside(text, &MemoryFiles::default())
}

fn run_beside(text: &str, files: &MemoryFiles) -> (Sources, Vec<Diagnostic>) {
    let mut sources = Sources::new();
    let id = sources.add(Source::new("job.yaml", text));
    let mut sink = Sink::new();
    let document = parse(&sources, id, &mut sink).expect("the test's job is YAML");
    check_document(&document, files, &mut sink);
    sink.locate(DocumentId::Job, &document, &sources);
    (sources, sink.finish())
}

/// Each job and its findings.
fn check(texts: &[&str]) -> String {
    let mut out = String::new();
    for text in texts {
        let (sources, diagnostics) = run(text);
        let _ = writeln!(out, "{text}");
        for diagnostic in diagnostics {
            let span = diagnostic.labels[0].place.span().expect("places are located");
            let at = sources.get(span.source).line_column(span.start);
            let _ = writeln!(out, "{} {}:{} {}", diagnostic.code, at.line, at.column, diagnostic.message);
            for note in diagnostic.notes {
                let _ = writeln!(out, "  = {note}");
            }
        }
        out.push('\n');
    }
    out
}

#[test]
fn the_examples_of_the_pages_hold() {
    for code in OWN_CODES.map(|code| Code::parse(code).unwrap()) {
        let found = run(&whole(blocks(code.page(), "Example")[0])).1;
        assert!(found.iter().any(|d| d.code == code), "{code}: {found:#?}");
        let found = run(&whole(blocks(code.page(), "Write instead")[0])).1;
        assert_eq!(found, [], "{code}");
    }
}

#[test]
fn a_dockerfile_may_mount_a_secret_by_its_name() {
    let job = "secrets: {pip: {env: A}, wandb: {env: B}}\nimage: {dockerfile: docker/Dockerfile}\n";
    let found = |files: &MemoryFiles| {
        run_beside(job, files).1.into_iter().map(|found| found.message).collect::<Vec<_>>()
    };
    let text = "FROM a\nRUN --mount=type=secret,id=pip pip install x\n";
    assert_eq!(found(&MemoryFiles::default().with("docker/Dockerfile", text)), ["unused secret `wandb`"]);
    assert!(found(&MemoryFiles::default()).is_empty(), "it cannot be read here");
}

#[test]
fn used_declarations_are_not_reported() {
    let used = "\
params: {a: 1, b: 2, c: 3}
secrets: {one: {env: A}, two-words: {env: B}, three: {env: C}, four: {env: D}}
registries:
  docker.io: {username: u, password: {secret: one}}
image: {from: \"python:${{ params.a }}\", args: {V: 1, W: 2}, run: [\"x $V ${W:-3}\"], secrets: [three]}
images: {tools: \"busybox:1\"}
data: {d: {source: s3://b, mount: /d, secret: four}, e: {mount: /e}}
matrix: {lr: [\"${{ params['c'] }}\"]}
roles:
  a: {image: {use: tools}, data: [d], env: {X: \"${{ secrets.two-words }}\"}, run: \"cat ${{ data.e.source }}\"}
  b: {data: {}, run: \"echo ${{ params.b | sh }}\"}
";
    assert_eq!(run(used).1, []);
}

#[test]
fn each_unused_declaration_is_reported_once() {
    insta::assert_snapshot!(check(&[
        "params: {学習率: 0.1, lr: 1, x: \"${{ params.lr }}\"}\n",
        "x-notes: \"${{ params.a }}\"\nparams: {a: 1}\nroles: {r: {run: \"echo 'params.a' $a\"}}\n",
        "data: {a: {mount: /a}, b: {mount: /b}}\nroles:\n  r: {data: [a]}\n  s: {data: {a: {mount: /x}}}\n",
        "data: {a: {mount: /a}}\nroles:\n  r: {data: []}\n  s: {}\n",
        "registries: {ghcr.example.com: {}}\nimage: {from: a:1, apt: [git]}\n",
        "registries: {r.example.com: {}, docker.io: {}}\nimage: {use: a}\nimages: {a: {from: r.example.com/x:1}}\n",
        "image: {dockerfile: Dockerfile, args: {A: 1}}\n",
        "x-jobc-allow: J0311\n",
        "x-jobc-allow: [j0311, 3, J0399, J03111]\n",
    ]));
}

#[test]
fn secrets_are_found_and_never_printed() {
    let token = format!("{}{}", "ghp_", "a1B2c3".repeat(6));
    let text = format!(
        "\
env: {{WANDB_API_KEY: s3cr3t-value, HF_TOKEN: \"${{{{ secrets.hf }}}}\", DB_PASSWORD: \"\", TOKENIZERS_PARALLELISM: \"false\", SSH_PRIVATE_KEY: /etc/key}}
roles:
  a:
    env: {{MY_TOKEN: $OTHER, API_TOKEN: other-secret}}
    run: git clone https://{token}@example.com/x
  b: {{run: [mysql, --password=hunter2], setup: \"login --token $TOKEN --password 'open sesame'\"}}
"
    );
    let out = check(&[&text]);
    let findings = &out[text.len()..];
    for secret in ["s3cr3t", "other-secret", &token, "hunter2", "open"] {
        assert!(!findings.contains(secret), "{secret}: {findings}");
    }
    insta::assert_snapshot!(out.replace(&token, "[token]"));
}

#[test]
fn allowed_codes_are_read_in_any_case() {
    let mut sources = Sources::new();
    let id = sources.add(Source::new("job.yaml", "x-jobc-allow: [j0311, nothing, J0334]\n"));
    let document = parse(&sources, id, &mut Sink::new()).unwrap();
    let codes: Vec<&str> = allowed(&document).iter().map(|code| code.as_str()).collect();
    assert_eq!(codes, ["J0311", "J0334"]);
}
