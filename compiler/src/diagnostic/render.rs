//! Ways to show diagnostics, one a file.

mod github;
mod json;
mod sarif;
mod short;
mod text;

use super::{Diagnostic, DocumentId, Place, Severity};
use crate::source::{LineColumn, Source, Sources, Span};

pub use json::{Edit, Finding, Fix, Label, Location, Position, Report};

/// How diagnostics are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Excerpts of the source with marks, for people.
    #[default]
    Text,
    /// One line a finding: `job.yaml:3:5: error[J0001]: message`.
    Short,
    /// Our own JSON; [`Report`] describes it.
    Json,
    /// SARIF 2.1.0, which code hosts and editors read.
    Sarif,
    /// Commands that GitHub Actions turns into annotations.
    Github,
}

/// How text for people looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextStyle {
    /// Whether to colour it with ANSI escapes.
    pub colour: bool,
    /// Whether frames may use box-drawing characters.
    pub unicode: bool,
    /// Columns of the terminal; longer source lines are cut round the mark.
    pub width: usize,
}

impl Default for TextStyle {
    fn default() -> Self {
        Self { colour: false, unicode: false, width: 140 }
    }
}

/// Writes diagnostics in a format; `style` matters to [`Format::Text`] only.
pub fn render(format: Format, sources: &Sources, diagnostics: &[Diagnostic], style: &TextStyle) -> String {
    match format {
        Format::Text => text::render(sources, diagnostics, *style),
        Format::Short => short::render(sources, diagnostics),
        Format::Json => json::render(sources, diagnostics),
        Format::Sarif => sarif::render(sources, diagnostics),
        Format::Github => github::render(sources, diagnostics),
    }
}

/// The last line of a run, such as `2 errors and 1 warning`; `None` where there is nothing of either.
pub fn summary(diagnostics: &[Diagnostic]) -> Option<String> {
    let count = |severity| diagnostics.iter().filter(|d| d.severity == severity).count();
    let words = |n: usize, word: &str| match n {
        0 => None,
        1 => Some(format!("1 {word}")),
        n => Some(format!("{n} {word}s")),
    };
    let parts: Vec<String> =
        [words(count(Severity::Error), "error"), words(count(Severity::Warning), "warning")]
            .into_iter()
            .flatten()
            .collect();
    (!parts.is_empty()).then(|| parts.join(" and "))
}

/// JSON that ends in a line end.
fn pretty(value: &impl serde::Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("plain structs are always JSON");
    text.push('\n');
    text
}

/// The words of a severity.
fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

/// A located place, ready to be written.
struct Region<'s> {
    source: &'s Source,
    span: Span,
    start: LineColumn,
    end: LineColumn,
}

/// The source, lines and columns of a place; `None` where it is a path that was never located.
fn region<'s>(sources: &'s Sources, place: &Place) -> Option<Region<'s>> {
    let span = place.span()?;
    let source = sources.iter().find(|(id, _)| *id == span.source)?.1;
    let (start, end) = (source.line_column(span.start), source.line_column(span.end));
    Some(Region { source, span, start, end })
}

/// A path that was never located, such as `job#/roles/train`.
fn unlocated(place: &Place) -> Option<String> {
    let Place::Path { document, pointer, .. } = place else { return None };
    let name = match document {
        DocumentId::Job => "job",
        DocumentId::Targets => "targets",
    };
    Some(format!("{name}#{pointer}"))
}

#[cfg(test)]
mod tests;
