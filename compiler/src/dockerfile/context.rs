//! Checks the files that `COPY` and `ADD` take from the build context.

use camino::{Utf8Path, Utf8PathBuf};
use jobc_dockerfile::Word;

use crate::diagnostic::{Diagnostic, Sink, codes};

use super::facts::Stages;
use super::request::Request;

/// Reports sources that are not in the context.
pub(super) fn check(stages: &Stages<'_>, request: &Request<'_>, sink: &mut Sink) {
    for (source, word) in &stages.copied {
        check_source(source, word, request, sink);
    }
}

fn check_source(source: &str, word: &Word, request: &Request<'_>, sink: &mut Sink) {
    // The builder checks what remains to be expanded.
    if source.contains('$') || source.contains("://") || source.starts_with("git@") {
        return;
    }
    let span = request.span(&word.span);
    let Some(inside) = below(source) else {
        // The parser has already rejected paths that leave the context as written.
        if below(&word.text).is_some() {
            let message = format!("`{source}` is outside the build context");
            sink.push(
                Diagnostic::error(codes::DOCKERFILE_OUTSIDE, message)
                    .at_span(span, "")
                    .note("choose a larger context, and write paths relative to it"),
            );
        }
        return;
    };
    if source.contains(['*', '?', '[']) {
        return;
    }
    let whole = join(request.context, &inside);
    if !request.files.exists(&whole) {
        let mut found =
            Diagnostic::warning(codes::DOCKERFILE_SOURCE, format!("no such file or directory: `{whole}`"))
                .at_span(span, "")
                .note(format!("paths are relative to the build context, `{}`", request.context));
        if word.text.contains(['"', '\'']) {
            found = found.note("a path with spaces needs the form `COPY [\"a b\", \"/to\"]`");
        }
        sink.push(found);
    }
}

/// Joins a source to the context's root, which a leading `/` also means; `None` if `..` leaves it.
fn below(source: &str) -> Option<Utf8PathBuf> {
    let mut path = Utf8PathBuf::new();
    for part in source.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if !path.pop() {
                    return None;
                }
            }
            part => path.push(part),
        }
    }
    Some(path)
}

/// The path relative to the job file.
fn join(context: &Utf8Path, inside: &Utf8Path) -> Utf8PathBuf {
    let context = context.strip_prefix(".").unwrap_or(context);
    let whole = context.join(inside);
    // `join` with an empty path leaves a trailing separator.
    let text = whole.as_str().trim_end_matches('/');
    if text.is_empty() { ".".into() } else { text.into() }
}
