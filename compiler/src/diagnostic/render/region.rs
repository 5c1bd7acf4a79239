//! Places of diagnostics with their lines and columns.

use crate::diagnostic::{DocumentId, Location};
use crate::source::{LineColumn, Source, Sources, Span};

/// A located place, ready to be written.
pub(super) struct Region<'s> {
    pub(super) source: &'s Source,
    pub(super) span: Span,
    pub(super) start: LineColumn,
    pub(super) end: LineColumn,
}

/// The source, lines and columns of a place; `None` where it is a path that was never located.
pub(super) fn region<'s>(sources: &'s Sources, place: &Location) -> Option<Region<'s>> {
    let span = place.span()?;
    let source = sources.iter().find(|(id, _)| *id == span.source)?.1;
    let (start, end) = (source.line_column(span.start), source.line_column(span.end));
    Some(Region { source, span, start, end })
}

/// A path that was never located, such as `job#/roles/train`.
pub(super) fn unlocated(place: &Location) -> Option<String> {
    let (document, pointer) = match place {
        Location::Span(_) => return None,
        Location::Path { document, pointer, .. }
        | Location::Entry { document, pointer }
        | Location::Moved { document, to: pointer, .. }
        | Location::Shaped { document, pointer, .. } => (*document, pointer),
        Location::Inside { pointer, .. } | Location::Words { pointer, .. } => (DocumentId::Job, pointer),
    };
    let name = match document {
        DocumentId::Job => "job",
        DocumentId::Targets => "targets",
    };
    Some(format!("{name}#{pointer}"))
}
