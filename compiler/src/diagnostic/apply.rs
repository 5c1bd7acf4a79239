//! Fixes applied to the texts they edit, as `jobc check --fix` does.

use std::collections::BTreeMap;

use crate::source::{Source, SourceId, Sources, Span};

use super::{Diagnostic, Fix, Location, Safety};

/// A source after some fixes.
pub struct Applied<'a> {
    /// Which source.
    pub source: SourceId,
    /// All of its text.
    pub text: String,
    /// The fixes, with the byte of the source where each begins.
    pub fixes: Vec<(u32, &'a Fix)>,
}

/// A fix of a finding, with its edits as bytes of one source.
struct Candidate<'a> {
    fix: &'a Fix,
    source: SourceId,
    edits: Vec<(Span, &'a str)>,
}

/// Applies at most one fix of each finding, and none that touches another, to the sources that may be edited.
///
/// A fix can reveal further mistakes, so there may be more after the next check.
pub fn apply<'a>(
    sources: &Sources,
    findings: &'a [Diagnostic],
    with_unsafe: bool,
    is_editable: impl Fn(&Source) -> bool,
) -> Vec<Applied<'a>> {
    let mut by_source: BTreeMap<SourceId, Vec<Candidate<'a>>> = BTreeMap::new();
    for candidate in choose(sources, findings, with_unsafe, is_editable) {
        by_source.entry(candidate.source).or_default().push(candidate);
    }
    let applied = |(source, candidates): (SourceId, Vec<Candidate<'a>>)| Applied {
        source,
        text: edited(sources.get(source).text(), &candidates),
        fixes: candidates.iter().map(|candidate| (candidate.edits[0].0.start, candidate.fix)).collect(),
    };
    by_source.into_iter().map(applied).collect()
}

fn choose<'a>(
    sources: &Sources,
    findings: &'a [Diagnostic],
    with_unsafe: bool,
    is_editable: impl Fn(&Source) -> bool,
) -> Vec<Candidate<'a>> {
    let mut chosen: Vec<Candidate<'a>> = Vec::new();
    let mut editable = BTreeMap::new();
    for finding in findings {
        let usable = finding.fixes.iter().filter(|fix| fix.safety == Safety::Safe || with_unsafe);
        let mut candidates = usable.filter_map(candidate);
        let found = candidates.find(|candidate| {
            *editable.entry(candidate.source).or_insert_with(|| is_editable(sources.get(candidate.source)))
                && changes(sources.get(candidate.source), candidate)
                && !chosen.iter().any(|other| touch(candidate, other))
        });
        chosen.extend(found);
    }
    chosen
}

/// A fix whose places are all in one source.
fn candidate(fix: &Fix) -> Option<Candidate<'_>> {
    let edits: Option<Vec<(Span, &str)>> = fix
        .edits
        .iter()
        .map(|edit| match &edit.place {
            Location::Span(span) => Some((*span, edit.text.as_str())),
            _ => None,
        })
        .collect();
    let edits = edits.filter(|edits| !edits.is_empty())?;
    let source = edits[0].0.source;
    edits.iter().all(|(span, _)| span.source == source).then_some(Candidate { fix, source, edits })
}

/// Whether a fix does anything: otherwise it would be found again for ever.
fn changes(source: &Source, candidate: &Candidate<'_>) -> bool {
    candidate.edits.iter().any(|(span, text)| source.slice(*span) != *text)
}

/// Two edits at the same place have no order.
fn touch(one: &Candidate<'_>, other: &Candidate<'_>) -> bool {
    let overlaps = |a: Span, b: Span| a.source == b.source && a.start <= b.end && b.start <= a.end;
    one.edits.iter().any(|(a, _)| other.edits.iter().any(|(b, _)| overlaps(*a, *b)))
}

fn edited(text: &str, candidates: &[Candidate<'_>]) -> String {
    let mut edits: Vec<&(Span, &str)> = candidates.iter().flat_map(|candidate| &candidate.edits).collect();
    edits.sort_by_key(|(span, _)| (span.start, span.end));
    let mut out = String::new();
    let mut at = 0;
    for (span, new) in edits {
        out.push_str(&text[at..span.range().start]);
        out.push_str(new);
        at = span.range().end;
    }
    out.push_str(&text[at..]);
    out
}
