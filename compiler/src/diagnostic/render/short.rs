//! One line a finding, for editors and `grep`.

use std::fmt::Write as _;

use super::region::{region, unlocated};
use crate::diagnostic::Diagnostic;
use crate::source::Sources;

pub(super) fn render(sources: &Sources, diagnostics: &[Diagnostic]) -> String {
    let mut out = String::new();
    for diagnostic in diagnostics {
        if let Some(place) = diagnostic.labels.first().map(|label| &label.place) {
            let _ = match region(sources, place) {
                Some(at) => write!(out, "{}:{}:{}: ", at.source.path(), at.start.line, at.start.column),
                None => write!(out, "{}: ", unlocated(place).unwrap_or_default()),
            };
        }
        let word = diagnostic.severity.as_str();
        let _ = writeln!(out, "{word}[{}]: {}", diagnostic.code, diagnostic.message.replace('\n', " "));
    }
    out
}
