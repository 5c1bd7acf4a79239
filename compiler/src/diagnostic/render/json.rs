//! Our own JSON format: the diagnostics, with lines and columns.

use serde::Serialize;

use super::region::{region, unlocated};
use crate::diagnostic::{self, Diagnostic, Safety, Severity};
use crate::source::{Source, Sources};

/// The output of `--format json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The version of this form: 1. Fields may be added without a new one.
    pub version: u32,
    /// How many of the findings are errors.
    pub errors: usize,
    /// How many of the findings are warnings.
    pub warnings: usize,
    /// The findings, in the order of the files.
    pub diagnostics: Vec<Finding>,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The stable code, such as `J0201`.
    pub code: String,
    /// `error`, `warning` or `note`.
    pub severity: &'static str,
    /// What is wrong.
    pub message: String,
    /// The primary place; absent where the finding has none.
    #[serde(flatten)]
    pub location: Location,
    /// All places with their labels, the primary one first.
    pub labels: Vec<Label>,
    /// Further sentences.
    pub notes: Vec<String>,
    /// Edits that would fix it, each on its own.
    pub fixes: Vec<Fix>,
}

/// A place: bytes of a file, or a path of a document whose bytes are not known.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Location {
    /// The path of the file, as the user gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The first character.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Position>,
    /// One past the last character.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<Position>,
    /// `job` or `targets`, `#` and a JSON Pointer, instead of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// A position in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Offset in bytes, from 0.
    pub offset: u32,
}

/// A place and its label.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Label {
    /// Where.
    #[serde(flatten)]
    pub location: Location,
    /// The label; may be empty.
    pub text: String,
}

/// Edits that together fix a finding.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fix {
    /// What the edits do.
    pub message: String,
    /// `safe` where the meaning is clear, `unsafe` where it is a guess.
    pub safety: &'static str,
    /// Replacements, in order, not overlapping.
    pub edits: Vec<Edit>,
}

/// One replacement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Edit {
    /// What is replaced; where start and end are the same, text is put in.
    #[serde(flatten)]
    pub location: Location,
    /// The new text.
    pub text: String,
}

pub(super) fn render(sources: &Sources, diagnostics: &[Diagnostic]) -> String {
    let count = |severity| diagnostics.iter().filter(|d| d.severity == severity).count();
    let report = Report {
        version: 1,
        errors: count(Severity::Error),
        warnings: count(Severity::Warning),
        diagnostics: diagnostics.iter().map(|diagnostic| finding(sources, diagnostic)).collect(),
    };
    pretty(&report)
}

fn finding(sources: &Sources, diagnostic: &Diagnostic) -> Finding {
    let labels: Vec<Label> = diagnostic
        .labels
        .iter()
        .map(|label| Label { location: location(sources, &label.place), text: label.text.clone() })
        .collect();
    Finding {
        code: diagnostic.code.to_string(),
        severity: diagnostic.severity.as_str(),
        message: diagnostic.message.clone(),
        location: labels.first().map(|label| label.location.clone()).unwrap_or_default(),
        labels,
        notes: diagnostic.notes.clone(),
        fixes: diagnostic.fixes.iter().map(|fix| fix_of(sources, fix)).collect(),
    }
}

fn fix_of(sources: &Sources, fix: &crate::diagnostic::Fix) -> Fix {
    let edit = |edit: &crate::diagnostic::Edit| Edit {
        location: location(sources, &edit.place),
        text: edit.text.clone(),
    };
    let safety = match fix.safety {
        Safety::Safe => "safe",
        Safety::Unsafe => "unsafe",
    };
    Fix { message: fix.message.clone(), safety, edits: fix.edits.iter().map(edit).collect() }
}

fn location(sources: &Sources, place: &diagnostic::Location) -> Location {
    let Some(at) = region(sources, place) else {
        return Location { path: unlocated(place), ..Location::default() };
    };
    let position = |source: &Source, offset| {
        let at = source.line_column(offset);
        Some(Position { line: at.line, column: at.column, offset })
    };
    Location {
        file: Some(at.source.path().to_string()),
        start: position(at.source, at.span.start),
        end: position(at.source, at.span.end),
        path: None,
    }
}

/// JSON that ends in a line end.
pub(super) fn pretty(value: &impl serde::Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("plain structs are always JSON");
    text.push('\n');
    text
}
