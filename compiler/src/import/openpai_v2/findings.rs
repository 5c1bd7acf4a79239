//! Findings that several parts of the import report.

use crate::diagnostic::{Diagnostic, Location, Safety, codes};
use crate::source::Span;

/// A finding for a field that is kept only for OpenPAI.
pub(super) fn note_kept(what: &str, at: Span) -> Diagnostic {
    Diagnostic::info(codes::OPENPAI_PLACE, format!("{what} is kept for OpenPAI; other targets ignore it"))
        .at_span(at, "")
}

/// A fix that replaces the value.
pub(super) fn fix(diagnostic: Diagnostic, at: Span, text: impl Into<String>) -> Diagnostic {
    let text = text.into();
    diagnostic.fix(format!("write `{text}`"), Location::Span(at), text, Safety::Unsafe)
}
