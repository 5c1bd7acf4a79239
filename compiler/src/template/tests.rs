//! Snapshots of jobs with templates, and of findings with their places.

use std::fmt::Write as _;

use crate::diagnostic::{DocumentId, Sink};
use crate::document::Document;
use crate::emit;
use crate::files::MemoryFiles;
use crate::lock::{Lock, Locking};
use crate::parse::parse;
use crate::source::{Source, Sources};

use super::{expand_templates, show_uses, tree};

fn files(list: &[(&str, &str)]) -> MemoryFiles {
    list.iter().fold(MemoryFiles::default(), |files, (path, text)| files.with(path, text))
}

/// Prints the job with its templates merged as YAML, and every finding with its places.
fn check(job: &str, list: &[(&str, &str)]) -> String {
    let mut out = format!("---- job.yaml\n{job}");
    for (path, text) in list {
        let _ = write!(out, "---- {path}\n{text}");
    }
    out + &result(job, &files(list))
}

fn result(job: &str, files: &MemoryFiles) -> String {
    let mut out = String::new();
    let mut sources = Sources::new();
    let mut sink = Sink::new();
    let id = sources.add(Source::new("job.yaml", job));
    let lock = Lock::read(Locking::Ignored, id, files, &mut sources, &mut sink).unwrap_or_default();
    let document = parse(&sources, id, &mut sink).expect("the test's job is YAML");
    let expanded = expand_templates(document, &mut sources, files, &lock, &mut sink);
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
fn values_of_the_user_override_the_template() {
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
fn findings_show_both_places() {
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
fn the_depth_of_templates_is_limited() {
    let list: Vec<(String, String)> = (0..40)
        .map(|n| (format!("{n}.yaml"), format!("template: 1\nkind: role\nbody: {{uses: {}.yaml}}\n", n + 1)))
        .collect();
    let list: Vec<(&str, &str)> = list.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let out = check("roles: {r: {uses: 0.yaml}}\n", &list);
    let result = out.split("---- result\n").nth(1).unwrap();
    assert!(result.starts_with("J0285 templates use each other more than 16 deep\n"), "{result}");
}

#[test]
fn a_document_without_templates_is_unchanged() {
    let text = "version: 1\nroles: {a: {run: x}}\n";
    let mut sources = Sources::new();
    let id = sources.add(Source::new("job.yaml", text));
    let mut sink = Sink::new();
    let document = parse(&sources, id, &mut sink).unwrap();
    let expanded = expand_templates(document.clone(), &mut sources, &files(&[]), &Lock::default(), &mut sink);
    assert_eq!(expanded, Some(document));
    sink.locate(DocumentId::Job, &expanded.unwrap(), &sources);
}

#[test]
fn every_built_in_template_is_valid() {
    for (name, _) in super::built_in() {
        let out = check(&format!("roles: {{a: {{uses: std/{name}}}}}\nuses: std/{name}\n"), &[]);
        let findings: Vec<&str> = out.lines().filter(|line| line.starts_with("J0")).collect();
        // In one of the two places its kind is wrong; in the other a required parameter is missing.
        assert!(
            findings.iter().all(|f| f.starts_with("J0287") || f.starts_with("J0284")),
            "{name}: {findings:#?}"
        );
        assert!(findings.iter().any(|f| f.starts_with("J0287")), "{name}: {findings:#?}");
    }
}

/// A host with one Git template in its cache, and in the lock file under a name.
fn with_git(uses: &str, tree: &[(&str, &str)]) -> MemoryFiles {
    let tree = tree.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect();
    let packed = tree::pack(&tree).expect("a small tree");
    let digest = tree::digest(&packed);
    let commit = COMMIT;
    let lock = format!("version: 1\ntemplates:\n  \"{uses}\": {{commit: \"{commit}\", digest: {digest}}}\n");
    let mut files = MemoryFiles::default().with("jobc.lock", &lock);
    files.0.insert(digest.into(), packed);
    files
}

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
const GIT: &str = "git+https://h/r//serve@v1";
const MAIN: (&str, &str) = (
    "template.yaml",
    "template: 1\nkind: role\nparams: {port: 80}\nbody:\n  uses: more/inner.yaml\n  files: {/etc/a.conf: {from: \"${{ template.directory }}/more/a.conf\", mode: \"0600\"}}\n  run: serve ${{ with.port }}\n",
);
const INNER: (&str, &str) = (
    "more/inner.yaml",
    "template: 1\nkind: role\nbody:\n  files: {/etc/b.conf: {from: \"${{template.directory}}/./more/a.conf\"}, /etc/own: {from: own.conf}}\n  env: {A: 1}\n",
);

fn git_role(uses: &str) -> String {
    format!("roles: {{r: {{uses: \"{uses}\"}}}}\n")
}

#[test]
fn a_git_template_includes_its_files() {
    let files = with_git(GIT, &[MAIN, INNER, ("more/a.conf", "a: {b}\n")]);
    insta::assert_snapshot!(result(&git_role(GIT), &files));
    let whole = "git+ssh://git@h/team/r@0123456789abcdef0123456789abcdef01234567";
    assert!(
        result(&git_role(whole), &with_git(whole, &[MAIN, INNER, ("more/a.conf", "")]))
            .contains("run: serve 80")
    );
    let one = "git+file:///srv/r//a/serve.yml@v1";
    let text = "template: 1\nkind: role\nbody: {run: one}\n";
    assert!(result(&git_role(one), &with_git(one, &[("serve.yml", text)])).contains("run: one"));
}

#[test]
fn errors_in_git_templates() {
    let template = |body: &str| format!("template: 1\nkind: role\nbody: {body}\n");
    let mut out = String::new();
    let mut add = |uses: &str, files: &MemoryFiles| out += &(result(&git_role(uses), files) + "\n");
    let good = with_git(GIT, &[MAIN, INNER, ("more/a.conf", "a\n")]);
    // Not in the lock file, or no lock file.
    add("git+https://h/r//serve@v2", &good);
    add(GIT, &MemoryFiles::default());
    // Not in the cache, or with other files there.
    let mut empty = good.clone();
    let digest = empty.0.keys().find(|key| key.as_str().starts_with("sha256:")).unwrap().clone();
    empty.0.insert(digest.clone(), b"jobc template files 1\n".to_vec());
    add(GIT, &empty);
    empty.0.remove(&digest);
    add(GIT, &empty);
    // The lock file has another commit.
    let other = "git+https://h/r//serve@1111111111111111111111111111111111111111";
    add(other, &with_git(other, &[MAIN]));
    // Invalid names.
    add("git+https://h/r//serve", &good);
    add("git+https://h/r//../x@v1", &good);
    // Missing files.
    add(GIT, &with_git(GIT, &[INNER]));
    add(GIT, &with_git(GIT, &[MAIN]));
    add(GIT, &with_git(GIT, &[MAIN, INNER]));
    add(GIT, &with_git(GIT, &[MAIN, INNER, ("more/a.conf", "${{ secrets.x }}")]));
    let one = "git+https://h/r//t.yaml@v1";
    add(one, &with_git(one, &[("t.yaml", &template("{uses: other.yaml}"))]));
    // Paths that leave the directory.
    for body in [
        "{uses: ../x.yaml}",
        "{uses: /etc/x.yaml}",
        "{data: {d: {source: \"${{ template.directory }}/d\"}}}",
        "{run: \"${{ template.name }}\"}",
    ] {
        add(GIT, &with_git(GIT, &[("template.yaml", &template(body))]));
    }
    // A template that uses one that is not locked, and one that uses itself.
    add(GIT, &with_git(GIT, &[("template.yaml", &template("{uses: \"git+https://h/other@v1\"}"))]));
    add(GIT, &with_git(GIT, &[("template.yaml", &template("{uses: template.yaml}"))]));
    insta::assert_snapshot!(out);
}

#[test]
fn a_directory_is_a_template() {
    let serve = "template: 1\nkind: role\nbody:\n  uses: ../base\n  files: {/a: {from: \"${{ template.directory }}/a.conf\"}}\n";
    let base = "template: 1\nkind: role\nbody: {run: \"in ${{ template.directory }}\"}\n";
    let list = [("t/serve/template.yaml", serve), ("t/base/template.yaml", base)];
    let found = result(&git_role("./t/serve"), &files(&list));
    assert!(found.contains("from: t/serve/a.conf") && found.contains("run: in t/base"), "{found}");
    let found = result(&git_role("./t"), &files(&list));
    assert!(found.contains("J0280") && found.contains("a directory needs a `template.yaml`"), "{found}");
    let found = result("roles: {r: {uses: template.yaml}}\n", &files(&[("template.yaml", base)]));
    assert!(found.contains("run: in ."), "{found}");
}
