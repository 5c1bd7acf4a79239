use jobc_compiler::diagnostic::Severity;
use jobc_compiler::files::MemoryFiles;
use lsp_types::Uri;
use serde_json::Value as Json;

use super::*;
use crate::analysis::{Analysis, Choice, Input};
use crate::tests::Fixture;

const JOB: &str = include_str!("../complete/acceptance.job.yaml");

/// The errors of a job, and its roles once its parameters have their values.
fn compiled(text: &str) -> (Vec<String>, Option<Json>) {
    let files = MemoryFiles::default().with("src/train.py", "");
    let input =
        Input { path: Some("job.yaml".into()), text, targets: None, files: &files, empty_environment: false };
    let analysis = Analysis::new(&input, &Choice::default(), None);
    let errors = analysis.findings.iter().filter(|finding| finding.severity == Severity::Error);
    let errors = errors.map(|finding| format!("{} {}", finding.code, finding.message)).collect();
    let plan = analysis.planned.and_then(|planned| planned.jobs.into_iter().next());
    (errors, plan.map(|plan| serde_json::to_value(plan.roles).expect("a plan is JSON")))
}

/// Every place of every value of a text.
fn scalars(node: &Node, found: &mut Vec<Range<usize>>) {
    found.push(node.span.range());
    node.entries().iter().for_each(|entry| scalars(&entry.value, found));
    node.items().iter().for_each(|item| scalars(item, found));
}

fn applied(fixture: &Fixture, uri: &Uri, at: Range<usize>) -> Vec<(String, String)> {
    let all = extractions(&fixture.session, uri, at).into_iter();
    all.map(|(title, edits)| (title, fixture.edited(uri, &edits))).collect()
}

#[test]
fn what_is_extracted_compiles_to_the_same_roles() {
    let fixture = Fixture::new(JOB);
    let (before, roles) = compiled(JOB);
    assert!(before.is_empty() && roles.is_some(), "{before:#?}");
    let mut places = vec![];
    scalars(&fixture.session.tree(&fixture.uri).expect("it parses").document.root, &mut places);
    let mut wrong = vec![];
    let mut titles = vec![];
    for at in places {
        for (title, text) in applied(&fixture, &fixture.uri, at.start..at.start) {
            let (errors, after) = compiled(&text);
            if !errors.is_empty() || after != roles {
                wrong.push(format!("{title} of `{}`: {errors:?}", &JOB[at.clone()]));
            }
            titles.push(title);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(titles.len() > 25 && titles.contains(&"extract to `params.memory`".to_owned()), "{titles:#?}");
}

fn extracted(text: &str) -> Vec<String> {
    let fixture = Fixture::new(text);
    let open = fixture.session.documents.get(&fixture.uri).expect("it is open");
    applied(&fixture, &fixture.uri, open.text.bytes(fixture.range))
        .into_iter()
        .map(|(_, text)| text)
        .collect()
}

#[test]
fn values_and_images_are_extracted() {
    let found = extracted("version: 1\nname: a\nroles:\n  r:\n    image: regi$0stry/py:3\n    run: x\n");
    let image = "version: 1\nname: a\nimages: {py: \"registry/py:3\"}\nroles:\n  r:\n    image: {use: py}\n    run: x\n";
    let param = "version: 1\nname: a\nparams: {image: \"registry/py:3\"}\nroles:\n  r:\n    image: ${{ params.image }}\n    run: x\n";
    let unquoted = |found: &[String]| found.iter().map(|text| text.replace('"', "")).collect::<Vec<_>>();
    assert_eq!(unquoted(&found), [image, param].map(|text| text.replace('"', "")));

    let found = extracted(
        "version: 1\nname: a\nroles:\n  r:\n    image:\n      from: a/b:1\n      apt: [g$0it]\n    run: x\n",
    );
    let block = "version: 1\nname: a\nimages: {b: {from: a/b:1, apt: [git]}}\nroles:\n  r:\n    image: {use: b}\n    run: x\n";
    assert_eq!(unquoted(&found)[0], block);

    // The text of a number, in a map in braces, beside a parameter of that name.
    let found =
        extracted("version: 1\nname: a\nparams:\n  lr: 1\nroles:\n  r: {run: x, env: {LR: 1e-$04}}\n");
    let number = "version: 1\nname: a\nparams:\n  lr2: 1e-4\n  lr: 1\nroles:\n  r: {run: x, env: {LR: \"${{ params.lr2 }}\"}}\n";
    assert_eq!(found, [number]);

    // Not of names, keys, expressions, scripts, nor of what has a name already.
    for text in [
        "version: $01\nname: a\nroles: {r: {run: x}}\n",
        "version: 1\nname: a\nroles: {r: {ru$0n: x}}\n",
        "version: 1\nname: a\nroles: {r: {run: \"$0${{ job.name }}\"}}\n",
        "version: 1\nname: a\nroles:\n  r:\n    run: |\n      x$0\n",
        "version: 1\nname: a\nroles: {r: {run: x, needs: [$0s]}, s: {run: y}}\n",
        "version: 1\nname: a\nimages: {i: x}\nroles: {r: {run: x, image: {use: $0i}}}\n",
    ] {
        assert_eq!(extracted(text), Vec::<String>::new(), "{text}");
    }
}
