//! The sink of this pass: findings about one source, limited in number.

use std::collections::BTreeMap;

use crate::diagnostic::{Code, Diagnostic, Location, Severity, Sink, codes};
use crate::source::{SourceId, Span};

/// The maximum number of findings per code; a hostile file could have one at every second byte.
const MAX_PER_CODE: usize = 50;

/// Collects the findings about one source.
pub(super) struct Report<'s> {
    source: SourceId,
    sink: &'s mut Sink,
    /// For each code the number of findings, and the place of the first one not shown.
    counts: BTreeMap<Code, (usize, Option<Span>)>,
}

impl<'s> Report<'s> {
    /// Starts a report about one source.
    pub(super) fn new(source: SourceId, sink: &'s mut Sink) -> Self {
        Self { source, sink, counts: BTreeMap::new() }
    }

    /// The source that is parsed.
    pub(super) fn source(&self) -> SourceId {
        self.source
    }

    /// The content of the source that is parsed.
    pub(super) fn span(&self, start: usize, end: usize) -> Span {
        Span::new(self.source, start, end)
    }

    /// Whether a finding with that code would still be shown; check it first if formatting is expensive.
    pub(super) fn wants(&mut self, code: Code, at: Span) -> bool {
        let (count, hidden) = self.counts.entry(code).or_default();
        if *count < MAX_PER_CODE {
            return true;
        }
        *count += 1;
        hidden.get_or_insert(at);
        false
    }

    /// Adds a finding.
    pub(super) fn push(&mut self, diagnostic: Diagnostic) {
        let at = diagnostic.labels.first().and_then(|label| label.place.span());
        if self.wants(diagnostic.code, at.unwrap_or_default()) {
            self.counts.entry(diagnostic.code).or_default().0 += 1;
            self.sink.push(diagnostic);
        }
    }

    /// Adds the findings of a trial run.
    pub(super) fn append(&mut self, findings: Sink) {
        self.sink.append(findings);
    }

    /// Reports a text without a value.
    pub(super) fn empty(&mut self, text: &str) {
        let what = if text.trim_start_matches('\u{feff}').trim().is_empty() {
            "the file is empty"
        } else {
            "the file contains no value, only comments or markers"
        };
        self.push(
            Diagnostic::error(codes::EMPTY, what)
                .at_span(self.span(0, 0), "")
                .note("the smallest job is `version: 1`, a `name`, and one role with `run` under `roles`"),
        );
    }

    /// Reports how many findings were omitted.
    pub(super) fn finish(self) {
        for (code, (count, hidden)) in self.counts {
            if let Some(span) = hidden {
                let more = count - MAX_PER_CODE;
                let message = format!("{more} more of these are not shown");
                self.sink
                    .push(Diagnostic::new(code, Severity::Note, message).at_place(Location::Span(span), ""));
            }
        }
    }
}
