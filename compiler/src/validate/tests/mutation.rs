//! No map of a job takes a key that nobody knows, but those whose names are the user's.

use serde_json::Value as Json;

use crate::diagnostic::Sink;
use crate::document::{Document, Entry, Node, Value};
use crate::validate::schema::{JOB, Schema, branches};

use super::read;

const KEY: &str = "zzz";

/// The places of all maps whose keys the schema knows.
fn strict_maps(document: &Document) -> Vec<Vec<String>> {
    let mut found = vec![];
    collect(&document.root, &mut vec![], &mut found);
    found
}

fn collect(node: &Node, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    match &node.value {
        Value::Mapping(entries) => {
            if JOB.at(path).is_some_and(|part| is_strict(&JOB, part)) {
                found.push(path.clone());
            }
            let top = path.is_empty();
            for entry in entries.iter().filter(|entry| !(top && entry.key.starts_with("x-"))) {
                path.push(entry.key.clone());
                collect(&entry.value, path, found);
                path.pop();
            }
        }
        Value::Sequence(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push(index.to_string());
                collect(item, path, found);
                path.pop();
            }
        }
        _ => {}
    }
}

/// Whether every map that a part of the schema accepts has known keys only.
fn is_strict(schema: &Schema, part: &Json) -> bool {
    let part = schema.resolve(part);
    match part.get("additionalProperties") {
        Some(Json::Bool(false)) => true,
        Some(_) => false,
        None => branches(part).any(|branch| is_strict(schema, branch)),
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

/// Puts an unknown key into each map of a job in turn; each must be named in an error.
fn check(name: &str, text: &str) -> usize {
    let (_, document) = read("job.yaml", text);
    let mut sink = Sink::new();
    assert!(crate::validate::validate(&document, &mut sink), "{name}: {:#?}", sink.diagnostics());
    let maps = strict_maps(&document);
    for path in &maps {
        let mut mutant = document.clone();
        insert(&mut mutant.root, path);
        let mut sink = Sink::new();
        assert!(!crate::validate::validate(&mutant, &mut sink), "{name}: {path:?} takes `{KEY}`");
        let named = sink.diagnostics().iter().any(|d| d.message.starts_with("unknown key `zzz`"));
        assert!(named, "{name}: {path:?}: {:#?}", sink.diagnostics());
    }
    maps.len()
}

#[test]
fn an_unknown_key_is_refused_everywhere() {
    assert!(check("the spec's example", include_str!("example.yaml")) > 10);
    assert!(check("every field", include_str!("every_field.yaml")) > 35);
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the examples beside the crates are tests' input")]
fn an_unknown_key_is_refused_everywhere_in_the_examples() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples");
    let Ok(entries) = std::fs::read_dir(folder) else {
        eprintln!("skipped: there is no folder `examples` yet");
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path().join("job.yaml");
        if let Ok(text) = std::fs::read_to_string(&path) {
            assert!(check(&path.display().to_string(), &text) > 0);
        }
    }
}

#[test]
fn every_level_of_the_schema_is_met() {
    let (_, document) = read("job.yaml", include_str!("every_field.yaml"));
    let met = strict_maps(&document);
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
