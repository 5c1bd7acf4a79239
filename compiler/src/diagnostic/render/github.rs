//! Workflow commands: GitHub Actions shows them next to the changed lines.

use std::fmt::Write as _;

use super::region::{region, unlocated};
use crate::diagnostic::{Diagnostic, Severity};
use crate::source::Sources;

pub(super) fn render(sources: &Sources, diagnostics: &[Diagnostic]) -> String {
    let mut out = String::new();
    for diagnostic in diagnostics {
        let command = match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "notice",
        };
        let mut message = diagnostic.message.clone();
        let mut properties = vec![];
        if let Some(label) = diagnostic.labels.first() {
            match region(sources, &label.place) {
                Some(at) => {
                    properties.push(format!("file={}", property(at.source.path().as_str())));
                    properties.push(format!("line={}", at.start.line));
                    properties.push(format!("endLine={}", at.end.line));
                    // GitHub takes columns only where the annotation stays on one line.
                    if at.start.line == at.end.line {
                        properties.push(format!("col={}", at.start.column));
                        properties.push(format!("endColumn={}", at.end.column));
                    }
                }
                None => {
                    let _ = write!(message, " (at {})", unlocated(&label.place).unwrap_or_default());
                }
            }
        }
        properties.push(format!("title={}", property(diagnostic.code.as_str())));
        for note in &diagnostic.notes {
            let _ = write!(message, "\nnote: {note}");
        }
        for fix in &diagnostic.fixes {
            let _ = write!(message, "\nhelp: {}", fix.message);
        }
        let _ = writeln!(out, "::{command} {}::{}", properties.join(","), data(&message));
    }
    out
}

/// Escapes the text of a command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes the value of a property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
