//! `sourcemap.json`: where each part of each artifact comes from.

use std::collections::BTreeMap;

use jobc_schema::Pointer;
use serde_json::{Value as Json, json};

use crate::backend::{From, Origin, PartOf};
use crate::document::{Document, Value};
use crate::source::{Sources, Span};

/// The spans of a document's values by pointer, made once, since a map of a large job asks for many.
#[derive(Debug, Default)]
pub struct SpanIndex(BTreeMap<String, Span>);

impl SpanIndex {
    /// Walks a document.
    pub fn new(document: &Document) -> Self {
        let mut spans = BTreeMap::new();
        let mut todo = vec![(Pointer::ROOT, &document.root)];
        while let Some((at, node)) = todo.pop() {
            match &node.value {
                Value::Mapping(entries) => todo.extend(entries.iter().map(|e| (at.key(&e.key), &e.value))),
                Value::Sequence(items) => {
                    todo.extend(items.iter().enumerate().map(|(i, n)| (at.index(i), n)))
                }
                _ => {}
            }
            spans.insert(at.as_str().to_owned(), node.span);
        }
        Self(spans)
    }

    /// The span at a pointer, or at its nearest ancestor that exists.
    fn get(&self, pointer: &Pointer) -> Option<Span> {
        let mut at = Some(pointer.clone());
        while let Some(pointer) = at {
            if let Some(span) = self.0.get(pointer.as_str()) {
                return Some(*span);
            }
            at = pointer.parent();
        }
        None
    }
}

/// The map of one target's artifacts: path -> parts, each with the place of the job file, the target's setting or
/// the default that it comes from. Lines and columns count from 1. Every file is named, also one of which nothing is
/// known: so the next build knows what this one wrote.
pub fn source_map(artifacts: &[(String, Vec<Origin>)], spans: &SpanIndex, sources: &Sources) -> Json {
    let files: serde_json::Map<String, Json> = artifacts
        .iter()
        .map(|(path, origins)| (path.clone(), origins.iter().map(|o| entry(o, spans, sources)).collect()))
        .collect();
    json!({"version": 1, "artifacts": files})
}

fn entry(origin: &Origin, spans: &SpanIndex, sources: &Sources) -> Json {
    let mut entry = serde_json::Map::new();
    match &origin.part {
        PartOf::Pointer(pointer) => entry.insert("pointer".to_owned(), json!(pointer)),
        PartOf::Line(line) => entry.insert("line".to_owned(), json!(line)),
    };
    match &origin.from {
        From::Spec(pointer) => {
            entry.insert("spec".to_owned(), json!(pointer));
            if let Some(span) = spans.get(pointer) {
                let source = sources.get(span.source);
                let (start, end) = (source.line_column(span.start), source.line_column(span.end));
                let file = source.path().file_name().unwrap_or(source.path().as_str());
                entry.insert("file".to_owned(), json!(file));
                entry.insert("start".to_owned(), json!([start.line, start.column]));
                entry.insert("end".to_owned(), json!([end.line, end.column]));
            }
        }
        From::Target(pointer) => drop(entry.insert("target".to_owned(), json!(pointer))),
        From::Default(words) => drop(entry.insert("default".to_owned(), json!(words))),
    }
    Json::Object(entry)
}
