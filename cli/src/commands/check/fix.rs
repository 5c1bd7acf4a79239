//! `jobc check --fix`: applies the fixes of findings to the files, again and again until there are none left.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::diagnostic::{Diagnostic, Fix, Place, Safety};
use jobc_compiler::source::{Source, SourceId, Sources, Span};

use crate::input::{self, shorten};
use crate::replace::replace;

/// A fix can bring to light what the mistake has hidden, such as wrong values behind a wrong key.
const MAX_ROUNDS: usize = 20;

/// Fixes that were applied: where, and what they did.
pub(super) type Applied = Vec<(String, String)>;

/// A fix of a finding, with its edits as bytes of one source.
struct Candidate<'a> {
    fix: &'a Fix,
    source: SourceId,
    edits: Vec<(Span, &'a str)>,
}

/// Applies fixes to the files that `check` reads, until it finds none that can be applied.
///
/// # Errors
///
/// A file cannot be checked, or not be written.
pub(super) fn fix<E>(
    with_unsafe: bool,
    check: impl Fn() -> Result<(Sources, Vec<Diagnostic>), E>,
    cannot_write: impl Fn(&Utf8Path, &std::io::Error) -> E,
) -> Result<Applied, E> {
    let mut applied = Applied::new();
    for _ in 0..MAX_ROUNDS {
        let (sources, findings) = check()?;
        let chosen = choose(&sources, &findings, with_unsafe);
        if chosen.is_empty() {
            break;
        }
        let mut by_source: BTreeMap<SourceId, Vec<Candidate<'_>>> = BTreeMap::new();
        for candidate in chosen {
            by_source.entry(candidate.source).or_default().push(candidate);
        }
        for (id, candidates) in by_source {
            let source = sources.get(id);
            let text = edited(source.text(), &candidates);
            replace(source.path(), &text).map_err(|error| cannot_write(source.path(), &error))?;
            applied.extend(candidates.iter().map(|candidate| describe(source, candidate)));
        }
    }
    Ok(applied)
}

/// The fixes of a round: at most one of each finding, and none that touches another.
fn choose<'a>(sources: &Sources, findings: &'a [Diagnostic], with_unsafe: bool) -> Vec<Candidate<'a>> {
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
            Place::Span(span) => Some((*span, edit.text.as_str())),
            _ => None,
        })
        .collect();
    let edits = edits.filter(|edits| !edits.is_empty())?;
    let source = edits[0].0.source;
    edits.iter().all(|(span, _)| span.source == source).then_some(Candidate { fix, source, edits })
}

/// Whether a source is a file whose text is still that which was checked: templates of jobc itself are not.
fn is_editable(source: &Source) -> bool {
    source.path() != input::STDIN && input::read(source.path()).is_ok_and(|text| text == source.text())
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

/// `job.yaml:3:5`, and what was done.
fn describe(source: &Source, candidate: &Candidate<'_>) -> (String, String) {
    let at = source.line_column(candidate.edits[0].0.start);
    let place = format!("{}:{}:{}", shorten(source.path()), at.line, at.column);
    (place, candidate.fix.message.clone())
}

/// Rejects `-`: what was read from stdin cannot be written back.
pub(super) fn reject_stdin<'a>(
    mut files: impl Iterator<Item = &'a Utf8PathBuf>,
) -> Result<(), input::InputError> {
    if files.any(|path| path == "-") {
        return Err(input::InputError("`--fix` cannot write to stdin; name a file".to_owned()));
    }
    Ok(())
}
