//! SARIF 2.1.0 (OASIS): the part of it that code hosts and editors read.

use std::collections::BTreeSet;

use jobc_schema::percent;
use serde::Serialize;

use super::json::pretty;
use super::region::{region, unlocated};
use crate::diagnostic::{self, Code, Diagnostic, Edit, Fix, Label, Severity};
use crate::source::{Source, Sources, Span};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

#[derive(Serialize)]
struct Log<'a> {
    #[serde(rename = "$schema")]
    schema: &'a str,
    version: &'a str,
    runs: [Run<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Run<'a> {
    tool: Tool<'a>,
    column_kind: &'a str,
    results: Vec<Outcome<'a>>,
}

#[derive(Serialize)]
struct Tool<'a> {
    driver: Driver<'a>,
}

#[derive(Serialize)]
struct Driver<'a> {
    name: &'a str,
    version: &'a str,
    rules: Vec<Rule<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rule<'a> {
    id: &'a str,
    short_description: Message<'a>,
    help: Help<'a>,
}

#[derive(Serialize)]
struct Help<'a> {
    text: &'a str,
    markdown: &'a str,
}

#[derive(Serialize)]
struct Message<'a> {
    text: &'a str,
}

/// A `result` of SARIF.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Outcome<'a> {
    rule_id: &'a str,
    rule_index: usize,
    level: &'a str,
    message: OwnedMessage,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    locations: Vec<Location<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related_locations: Vec<Location<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fixes: Vec<SarifFix<'a>>,
}

#[derive(Serialize)]
struct OwnedMessage {
    text: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Location<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<usize>,
    #[serde(rename = "physicalLocation", skip_serializing_if = "Option::is_none")]
    physical: Option<Physical>,
    #[serde(rename = "logicalLocations", skip_serializing_if = "Vec::is_empty")]
    logical: Vec<Logical>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Message<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Logical {
    fully_qualified_name: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Physical {
    artifact_location: Artifact,
    region: Region,
}

#[derive(Serialize)]
struct Artifact {
    uri: String,
}

/// Lines and columns from 1, columns in UTF-16 code units, the end exclusive.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    start_line: u32,
    start_column: u32,
    end_line: u32,
    end_column: u32,
}

/// A `fix` of SARIF.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifFix<'a> {
    description: Message<'a>,
    artifact_changes: [Change<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Change<'a> {
    artifact_location: Artifact,
    replacements: Vec<Replacement<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Replacement<'a> {
    deleted_region: Region,
    inserted_content: Message<'a>,
}

pub(super) fn render(sources: &Sources, diagnostics: &[Diagnostic]) -> String {
    let codes: BTreeSet<Code> = diagnostics.iter().map(|diagnostic| diagnostic.code).collect();
    let codes: Vec<Code> = codes.into_iter().collect();
    let rules = codes.iter().map(|code| Rule {
        id: code.as_str(),
        short_description: Message { text: code.title() },
        help: Help { text: code.page(), markdown: code.page() },
    });
    let driver = Driver { name: "jobc", version: env!("CARGO_PKG_VERSION"), rules: rules.collect() };
    let results = diagnostics.iter().map(|diagnostic| outcome(sources, diagnostic, &codes)).collect();
    let run = Run { tool: Tool { driver }, column_kind: "utf16CodeUnits", results };
    pretty(&Log { schema: SCHEMA, version: "2.1.0", runs: [run] })
}

fn outcome<'a>(sources: &Sources, diagnostic: &'a Diagnostic, codes: &[Code]) -> Outcome<'a> {
    let level = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let mut text = diagnostic.message.clone();
    for note in &diagnostic.notes {
        text.push('\n');
        text.push_str(note);
    }
    let (primary, related) = diagnostic.labels.split_at(diagnostic.labels.len().min(1));
    let related = related.iter().enumerate().map(|(n, label)| location(sources, label, Some(n + 1)));
    Outcome {
        rule_id: diagnostic.code.as_str(),
        rule_index: codes.binary_search(&diagnostic.code).unwrap_or_default(),
        level,
        message: OwnedMessage { text },
        locations: primary.iter().map(|label| location(sources, label, None)).collect(),
        related_locations: related.collect(),
        fixes: diagnostic.fixes.iter().filter_map(|fix| sarif_fix(sources, fix)).collect(),
    }
}

fn location<'a>(sources: &Sources, label: &'a Label, id: Option<usize>) -> Location<'a> {
    let logical = unlocated(&label.place).map(|name| Logical { fully_qualified_name: name });
    Location {
        id,
        physical: physical(sources, &label.place),
        logical: logical.into_iter().collect(),
        message: (!label.text.is_empty()).then_some(Message { text: &label.text }),
    }
}

fn physical(sources: &Sources, place: &diagnostic::Location) -> Option<Physical> {
    let at = region(sources, place)?;
    Some(Physical { artifact_location: artifact(at.source), region: utf16(at.source, at.span) })
}

/// A fix, if all its edits are located; SARIF has no other.
fn sarif_fix<'a>(sources: &Sources, fix: &'a Fix) -> Option<SarifFix<'a>> {
    let source = region(sources, &fix.edits.first()?.place)?.source;
    let replacement = |edit: &'a Edit| {
        let at = region(sources, &edit.place)?;
        Some(Replacement {
            deleted_region: utf16(at.source, at.span),
            inserted_content: Message { text: &edit.text },
        })
    };
    let replacements = fix.edits.iter().map(replacement).collect::<Option<Vec<_>>>()?;
    let change = Change { artifact_location: artifact(source), replacements };
    Some(SarifFix { description: Message { text: &fix.message }, artifact_changes: [change] })
}

fn utf16(source: &Source, span: Span) -> Region {
    let (start, end) = (source.line_column_utf16(span.start), source.line_column_utf16(span.end));
    Region { start_line: start.line, start_column: start.column, end_line: end.line, end_column: end.column }
}

/// The path as a URI reference: what is not plain in one is escaped byte by byte.
fn artifact(source: &Source) -> Artifact {
    let path = source.path().as_str();
    let scheme = if path.starts_with('/') { "file://" } else { "" };
    Artifact { uri: format!("{scheme}{}", percent::encode_path(path)) }
}
