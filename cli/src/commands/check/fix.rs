//! `jobc check --fix`: applies the fixes of findings to the files, repeatedly until none are left.

use std::collections::BTreeSet;
use std::slice;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::diagnostic::apply::apply;
use jobc_compiler::diagnostic::{Diagnostic, Fix};
use jobc_compiler::source::{Source, Sources};
use jobc_schema::plural;

use crate::input::{self, shorten};
use crate::replace::replace;

/// A fix can reveal mistakes that were hidden, such as wrong values behind a wrong key.
const MAX_ROUNDS: usize = 20;

/// Fixes that were applied: where, and what they did.
pub(super) type Applied = Vec<(String, String)>;

/// Applies fixes to the files that `check` reads, until it finds none that can be applied.
///
/// # Errors
///
/// A file cannot be checked or written.
pub(super) fn fix<E>(
    with_unsafe: bool,
    check: impl Fn() -> Result<(Sources, Vec<Diagnostic>), E>,
    cannot_write: impl Fn(&Utf8Path, &std::io::Error) -> E,
) -> Result<Applied, E> {
    let mut applied = Applied::new();
    // Two findings may undo each other's fixes: a text that was there before is not written again.
    let mut texts = BTreeSet::new();
    for _ in 0..MAX_ROUNDS {
        let (sources, findings) = check()?;
        let changed = apply(&sources, &findings, with_unsafe, is_editable);
        texts.extend(changed.iter().map(|each| sources.get(each.source).text().to_owned()));
        if changed.iter().all(|each| texts.contains(&each.text)) {
            break;
        }
        for each in changed {
            let source = sources.get(each.source);
            replace(source.path(), &each.text).map_err(|error| cannot_write(source.path(), &error))?;
            applied.extend(each.fixes.iter().map(|(at, fix)| describe(source, *at, fix)));
        }
    }
    Ok(applied)
}

/// How to apply the fixes that were left because they are guesses, if there are any.
pub(super) fn unsafe_fixes(sources: &Sources, findings: &[Diagnostic]) -> Option<String> {
    let has_fix =
        |finding: &&Diagnostic| !apply(sources, slice::from_ref(*finding), true, is_editable).is_empty();
    let left = findings.iter().filter(has_fix).count();
    (left > 0).then(|| {
        let findings = plural(left, "finding");
        format!(
            "{findings} can be fixed with `--fix --unsafe-fixes`, which applies guesses; review the changes\n"
        )
    })
}

/// Whether a source is a file that has not changed since it was checked; built-in templates are not files.
fn is_editable(source: &Source) -> bool {
    source.path() != input::STDIN && input::read(source.path()).is_ok_and(|text| text == source.text())
}

/// `job.yaml:3:5`, and what was done.
fn describe(source: &Source, start: u32, fix: &Fix) -> (String, String) {
    let at = source.line_column(start);
    let place = format!("{}:{}:{}", shorten(source.path()), at.line, at.column);
    (place, fix.message.clone())
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
