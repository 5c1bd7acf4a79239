//! Invalid texts and their findings: each snapshot shows both.

mod job;
mod limits;
mod messages;
mod mutation;
mod pages;
mod targets;

use std::fmt::Write as _;

use crate::diagnostic::{Diagnostic, DocumentId, Location, Severity, Sink};
use crate::document::Document;
use crate::parse::parse;
use crate::source::{Source, Sources};

/// Parses a valid text into its document.
fn read(name: &str, text: &str) -> (Sources, Document) {
    let mut sources = Sources::new();
    let id = sources.add(Source::new(name, text));
    let mut sink = Sink::new();
    let document = parse(&sources, id, &mut sink).expect("a tree");
    assert!(!sink.has_errors(), "{:?}", sink.diagnostics());
    (sources, document)
}

/// The findings of validating a job, with locations and in order.
fn findings(text: &str) -> (Sources, Vec<Diagnostic>) {
    let name = if text.starts_with("{\"") { "job.json" } else { "job.yaml" };
    let (sources, document) = read(name, text);
    let mut sink = Sink::new();
    let fine = super::validate(&document, &mut sink);
    assert_eq!(fine, !sink.has_errors(), "{text}");
    sink.locate(DocumentId::Job, &document, &sources);
    (sources, sink.finish())
}

/// Prints a finding in a few lines: place, code, message, labels, notes and fixes.
fn describe(out: &mut String, sources: &Sources, diagnostic: &Diagnostic) {
    let place = |place: &Location| {
        let span = place.span().expect("a located place");
        let at = sources.get(span.source).line_column(span.start);
        let text = sources.slice(span).replace('\n', "⏎");
        let short: String = text.chars().take(40).collect();
        format!("{}:{} [{short}]", at.line, at.column)
    };
    let word = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let _ = writeln!(out, "{word} {}: {}", diagnostic.code, diagnostic.message);
    for label in &diagnostic.labels {
        let _ = writeln!(out, "  at {} {}", place(&label.place), label.text);
    }
    for note in &diagnostic.notes {
        let _ = writeln!(out, "  note: {note}");
    }
    for fix in &diagnostic.fixes {
        let edits: Vec<String> =
            fix.edits.iter().map(|edit| format!("{} -> {:?}", place(&edit.place), edit.text)).collect();
        let _ = writeln!(out, "  fix ({:?}): {}: {}", fix.safety, fix.message, edits.join(", "));
    }
}

/// Prints each text with its findings.
fn check(texts: &[&str]) -> String {
    let mut out = String::new();
    for text in texts {
        let (sources, diagnostics) = findings(text);
        let _ = writeln!(out, "{}", text.trim_end());
        out.push_str("----\n");
        for diagnostic in &diagnostics {
            describe(&mut out, &sources, diagnostic);
        }
        if diagnostics.is_empty() {
            out.push_str("fine\n");
        }
        out.push('\n');
    }
    out
}

/// A job with one role `train` that consists of these lines.
fn role(lines: &str) -> String {
    let indented: Vec<String> = lines.lines().map(|line| format!("    {line}")).collect();
    format!("version: 1\nname: demo\nroles:\n  train:\n{}\n", indented.join("\n"))
}

/// Prints each role with its findings.
fn check_role(roles: &[&str]) -> String {
    let texts: Vec<String> = roles.iter().map(|lines| role(lines)).collect();
    check(&texts.iter().map(String::as_str).collect::<Vec<_>>())
        .replace("version: 1\nname: demo\nroles:\n  train:\n", "")
}

/// A job with a valid role, and these lines at the top level.
fn check_job(jobs: &[&str]) -> String {
    let head = "version: 1\nname: demo\nroles: {train: {run: python train.py}}\n";
    let texts: Vec<String> = jobs.iter().map(|lines| format!("{head}{lines}")).collect();
    check(&texts.iter().map(String::as_str).collect::<Vec<_>>()).replace(head, "")
}
