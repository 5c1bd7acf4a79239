//! Shows both places of a finding inside a template: there, and at the `uses` that included it.

use crate::diagnostic::{Label, Location, Sink};
use crate::source::Sources;

/// Adds the `uses` line, or lines, to every finding whose first place is inside a template; idempotent.
/// Places must be located first.
pub fn show_uses(sources: &Sources, sink: &mut Sink) {
    sink.for_each(|diagnostic| {
        let mut span = diagnostic.labels.first().and_then(|label| label.place.span());
        while let Some(at) = span.and_then(|span| sources.get(span.source).uses()) {
            let place = Location::Span(at);
            if !diagnostic.labels.iter().any(|label| label.place == place) {
                diagnostic.labels.push(Label { place, text: "the template is used here".to_owned() });
            }
            span = Some(at);
        }
    });
}
