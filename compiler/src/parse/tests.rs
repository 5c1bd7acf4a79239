//! Snapshots of texts with their findings and trees.

use std::fmt::Write as _;

use crate::diagnostic::{Diagnostic, Location, Sink};
use crate::document::{Document, Node, Value};
use crate::source::{Source, SourceId, Sources, Span};

use super::parse;

mod hostile;
mod json;
mod pages;
mod patch;
mod properties;
mod yaml;

/// Parses one text with a file name.
fn run(path: &str, text: &str) -> (Sources, Option<Document>, Vec<Diagnostic>) {
    let mut sources = Sources::new();
    let id = sources.add(Source::new(path, text));
    let mut sink = Sink::new();
    let document = parse(&sources, id, &mut sink);
    (sources, document, sink.finish())
}

/// Prints each text, its findings, and its value as JSON.
fn check(path: &str, texts: &[&str]) -> String {
    let mut out = String::new();
    for text in texts {
        let (sources, document, diagnostics) = run(path, text);
        let _ = writeln!(out, "{}", show(text));
        for diagnostic in &diagnostics {
            write_diagnostic(&mut out, &sources, diagnostic);
        }
        match document {
            Some(document) => writeln!(out, "=> {}", document.to_json()),
            None => writeln!(out, "=> nothing"),
        }
        .unwrap();
        out.push('\n');
    }
    out
}

/// Prints each text and its tree with the byte range of every key and value.
fn check_spans(path: &str, texts: &[&str]) -> String {
    let mut out = String::new();
    for text in texts {
        let (sources, document, diagnostics) = run(path, text);
        assert!(diagnostics.is_empty(), "{diagnostics:#?}");
        let _ = writeln!(out, "{}", show(text));
        if let Some(document) = document {
            write_node(&mut out, &sources, &document.root, 0);
        }
        out.push('\n');
    }
    out
}

/// A text with tabs, line endings and marks made visible.
fn show(text: &str) -> String {
    let visible = text.replace('\t', "→").replace('\r', "␍").replace('\u{feff}', "<BOM>");
    visible.lines().map(|line| format!("| {line}")).collect::<Vec<_>>().join("\n")
}

fn write_diagnostic(out: &mut String, sources: &Sources, diagnostic: &Diagnostic) {
    let severity = format!("{:?}", diagnostic.severity).to_lowercase();
    let _ = writeln!(out, "{severity}[{}]: {}", diagnostic.code, diagnostic.message);
    for label in &diagnostic.labels {
        let span = label.place.span().unwrap();
        let at = sources.get(span.source).line_column(span.start);
        let text = sources.slice(span).escape_debug().to_string();
        let _ = writeln!(out, "  {}:{} `{text}` {}", at.line, at.column, label.text);
    }
    for note in &diagnostic.notes {
        let _ = writeln!(out, "  note: {note}");
    }
    for fix in &diagnostic.fixes {
        let mut mended = sources.get(SourceId(0)).text().to_owned();
        for edit in fix.edits.iter().rev() {
            let Location::Span(span) = edit.place else { panic!("an edit without bytes") };
            mended.replace_range(span.range(), &edit.text);
        }
        let line = changed_lines(sources.get(SourceId(0)).text(), &mended);
        let _ = writeln!(out, "  fix ({:?}): {}: {line}", fix.safety, fix.message);
    }
}

fn changed_lines(before: &str, after: &str) -> String {
    let old: Vec<&str> = before.lines().collect();
    let changed: Vec<&str> =
        after.lines().enumerate().filter(|(n, l)| old.get(*n) != Some(l)).map(|(_, l)| l).collect();
    format!("{:?}", changed.join("\n").trim())
}

fn write_node(out: &mut String, sources: &Sources, node: &Node, depth: usize) {
    let shown = |span: Span| {
        let text = sources.slice(span).escape_debug().to_string();
        format!("{}..{} `{text}`", span.start, span.end)
    };
    let pad = "  ".repeat(depth);
    match &node.value {
        Value::Sequence(items) => {
            let _ = writeln!(out, "{pad}list {}", shown(node.span));
            for item in items {
                write_node(out, sources, item, depth + 1);
            }
        }
        Value::Mapping(entries) => {
            let _ = writeln!(out, "{pad}map {}", shown(node.span));
            for entry in entries {
                let _ = writeln!(out, "{pad}  {:?} at {}", entry.key, shown(entry.key_span));
                write_node(out, sources, &entry.value, depth + 2);
            }
        }
        _ => {
            let _ = writeln!(out, "{pad}{} {}", node.to_json(), shown(node.span));
        }
    }
}
