//! A job file whose text is not YAML: what is wrong with its parts.

use std::ops::Range;

use crate::diagnostic::{Code, Diagnostic, DocumentId, Sink, codes};
use crate::source::{SourceId, Sources, Span};
use crate::{parse, validate};

/// Checks the parts of a job file that can be read although the text is not YAML, so that one mistake in the syntax
/// does not hide the others.
pub(super) fn check_readable(sources: &Sources, job: SourceId, sink: &mut Sink) {
    // The parts count as those of the first source.
    let Some(found) = parse::readable_part(sources, job).filter(|_| job == SourceId::default()) else {
        return;
    };
    report_parts(sources.get(job).text(), &found, sink);
    let mut aside = Sink::new();
    validate::validate(&found.document, &mut aside);
    super::silence(&found.document, &mut aside);
    aside.locate(DocumentId::Job, &found.document, sources);
    let is_read = |span: Span| {
        let range = span.range();
        !found.broken.iter().any(|broken| range.start < broken.end && broken.start < range.end)
    };
    let absence = [codes::MISSING_KEY, codes::ROLES_MISSING];
    aside.retain(|finding| {
        let at = finding.labels.first().and_then(|label| label.place.span());
        let is_in_gap = finding.code == codes::NO_VALUE || found.has_gaps && absence.contains(&finding.code);
        at.is_some_and(is_read) && !is_in_gap
    });
    sink.append(aside);
}

/// Reports what is wrong with the syntax of the parts of a job file, but for what the parser has found already: the
/// first error, which may be shown further down than the part that causes it.
fn report_parts(text: &str, found: &parse::Recovered, sink: &mut Sink) {
    let at = |finding: &Diagnostic| finding.labels.first().and_then(|label| label.place.span());
    let known: Vec<(Code, Span)> =
        sink.diagnostics().iter().filter_map(|finding| Some((finding.code, at(finding)?))).collect();
    let end = known.iter().map(|(_, span)| span.end as usize).max().unwrap_or_default();
    let with_key =
        |broken: &Range<usize>| text[..broken.start].rfind('\n').map_or(0, |at| at + 1)..broken.end;
    let first = found.broken.first().map(with_key).filter(|first| first.start <= end);
    let is_known = |part: &Range<usize>| known.iter().any(|(_, span)| part.contains(&(span.start as usize)));
    // Its fix may be for other places too.
    let fixes = sink.diagnostics().iter().flat_map(|finding| &finding.fixes).flat_map(|fix| &fix.edits);
    let repaired = fixes.filter_map(|edit| Some(edit.place.span()?.range()));
    let reported: Vec<Range<usize>> =
        found.broken.iter().map(with_key).filter(is_known).chain(first).chain(repaired).collect();
    for finding in &found.findings {
        let Some(span) = at(finding) else { continue };
        let is_caused = reported.iter().any(|part| part.contains(&(span.start as usize)));
        if !is_caused && !known.contains(&(finding.code, span)) {
            sink.push(finding.clone());
        }
    }
}
