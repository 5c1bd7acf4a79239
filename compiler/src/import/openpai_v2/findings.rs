//! Findings that several parts of the import make.

use crate::diagnostic::{Diagnostic, Place, Safety, codes};
use crate::source::Span;

/// A finding for what is kept for OpenPAI alone.
pub(super) fn note_kept(what: &str, at: Span) -> Diagnostic {
    Diagnostic::info(codes::OPENPAI_PLACE, format!("{what} is kept for OpenPAI; other targets ignore it"))
        .at_span(at, "")
}

/// The fix that writes another value.
pub(super) fn fix(diagnostic: Diagnostic, at: Span, text: impl Into<String>) -> Diagnostic {
    let text = text.into();
    diagnostic.fix(format!("write `{text}`"), Place::Span(at), text, Safety::Unsafe)
}
