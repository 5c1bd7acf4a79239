//! No map of a file accepts an unknown key, except maps with user-defined keys.

use serde_json::Value as Json;

use crate::diagnostic::Sink;
use crate::document::{Document, Entry, Node, Value};
use crate::files::MemoryFiles;
use crate::import::{Selection, import};
use crate::source::Sources;
use crate::validate::schema::{JOB, Schema, TARGETS, branches};

use super::read;

const KEY: &str = "zzz";

/// The paths of all maps of a file that accept only known keys according to `strict`.
fn strict_maps(document: &Document, strict: &dyn Fn(&[String]) -> bool) -> Vec<Vec<String>> {
    let mut found = vec![];
    collect(&document.root, &mut vec![], strict, &mut found);
    found
}

fn collect(
    node: &Node,
    path: &mut Vec<String>,
    strict: &dyn Fn(&[String]) -> bool,
    found: &mut Vec<Vec<String>>,
) {
    match &node.value {
        Value::Mapping(entries) => {
            if strict(path) {
                found.push(path.clone());
            }
            let top = path.is_empty();
            for entry in entries.iter().filter(|entry| !(top && entry.key.starts_with("x-"))) {
                path.push(entry.key.clone());
                collect(&entry.value, path, strict, found);
                path.pop();
            }
        }
        Value::Sequence(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push(index.to_string());
                collect(item, path, strict, found);
                path.pop();
            }
        }
        _ => {}
    }
}

/// Whether the map at a path accepts only known keys.
fn is_strict(schema: &Schema, path: &[String]) -> bool {
    schema.at(path).is_some_and(|part| part_is_strict(schema, part))
}

fn part_is_strict(schema: &Schema, part: &Json) -> bool {
    let part = schema.resolve(part);
    match part.get("additionalProperties") {
        Some(Json::Bool(false)) => true,
        Some(_) => false,
        None => branches(part).any(|branch| part_is_strict(schema, branch)),
    }
}

fn insert(node: &mut Node, path: &[String]) {
    let Some((first, rest)) = path.split_first() else {
        let span = node.span;
        let Value::Mapping(entries) = &mut node.value else { panic!("a map") };
        let number = Value::Number { number: 1.into(), text: "1".to_owned() };
        entries.push(Entry { key: KEY.to_owned(), key_span: span, value: Node { span, value: number } });
        return;
    };
    match &mut node.value {
        Value::Mapping(entries) => {
            let entry = entries.iter_mut().find(|entry| entry.key == *first).expect("the key");
            insert(&mut entry.value, rest);
        }
        Value::Sequence(items) => insert(&mut items[first.parse::<usize>().unwrap()], rest),
        _ => panic!("a collection"),
    }
}

/// Inserts an unknown key into each strict map of a file in turn; an error must name it.
fn check(
    name: &str,
    text: &str,
    strict: &dyn Fn(&[String]) -> bool,
    accept: &dyn Fn(&Document, &mut Sink) -> bool,
) -> usize {
    let (_, document) = read(name, text);
    let mut sink = Sink::new();
    assert!(accept(&document, &mut sink), "{name}: {:#?}", sink.diagnostics());
    let maps = strict_maps(&document, strict);
    for path in &maps {
        let mut mutant = document.clone();
        insert(&mut mutant.root, path);
        let mut sink = Sink::new();
        assert!(!accept(&mutant, &mut sink), "{name}: {path:?} takes `{KEY}`");
        let named = |d: &crate::diagnostic::Diagnostic| {
            d.message.starts_with("unknown key `zzz`") || d.message.starts_with("unknown field `zzz`")
        };
        assert!(sink.diagnostics().iter().any(named), "{name}: {path:?}: {:#?}", sink.diagnostics());
    }
    maps.len()
}

fn check_job(name: &str, text: &str) -> usize {
    check(name, text, &|path| is_strict(&JOB, path), &|document, sink| {
        crate::validate::validate(document, sink)
    })
}

fn check_targets(name: &str, text: &str) -> usize {
    let accept = |document: &Document, sink: &mut Sink| crate::validate::targets(document, sink).is_some();
    check(name, text, &|path| is_strict(&TARGETS, path), &accept)
}

/// Every map of an OpenPAI job accepts only known fields.
fn check_openpai(name: &str, text: &str) -> usize {
    let accept = |document: &Document, sink: &mut Sink| {
        import(document.clone(), &mut Sources::new(), &MemoryFiles::default(), &Selection::default(), sink)
            .is_some()
    };
    check(name, text, &|_| true, &accept)
}

#[test]
fn an_unknown_key_is_rejected_everywhere() {
    assert!(check_job("example.yaml", include_str!("example.yaml")) > 10);
    assert!(check_job("every_field.yaml", include_str!("every_field.yaml")) > 35);
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the examples beside the crates are tests' input")]
fn an_unknown_key_is_rejected_everywhere_in_the_examples() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples");
    let mut checked = 0;
    for entry in std::fs::read_dir(directory).expect("the examples").flatten() {
        type Check = fn(&str, &str) -> usize;
        let files: [(&str, Check); 3] =
            [("job.yaml", check_job), ("targets.yaml", check_targets), ("job.json", check_openpai)];
        for (file, check) in files {
            let path = entry.path().join(file);
            if let Ok(text) = std::fs::read_to_string(&path) {
                assert!(check(&path.display().to_string(), &text) > 0, "{}", path.display());
                checked += 1;
            }
        }
    }
    assert!(checked >= 10, "only {checked} files");
}

#[test]
fn every_level_of_the_schema_is_covered() {
    let (_, document) = read("job.yaml", include_str!("every_field.yaml"));
    let met = strict_maps(&document, &|path| is_strict(&JOB, path));
    let fits = |path: &[String], met: &[String]| {
        path.len() == met.len() && path.iter().zip(met).all(|(known, s)| known == s || known == "*")
    };
    let missed: Vec<_> = JOB
        .levels
        .iter()
        .map(|level| &level.path)
        // The keys of `matrix` are the axes' names. The image of a job and those of roles are the images of `images`.
        .filter(|path| path.iter().all(|step| step != "image" && step != "matrix"))
        .filter(|path| !met.iter().any(|met| fits(path, met)))
        .collect();
    assert!(missed.is_empty(), "{missed:#?}");
}
