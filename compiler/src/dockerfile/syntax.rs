//! A syntax error in words, at its line.

use parse_dockerfile as read;

use crate::diagnostic::{Diagnostic, codes};
use crate::suggest;

use super::Places;

const INSTRUCTIONS: &[&str] = &[
    "ADD",
    "ARG",
    "CMD",
    "COPY",
    "ENTRYPOINT",
    "ENV",
    "EXPOSE",
    "FROM",
    "HEALTHCHECK",
    "LABEL",
    "MAINTAINER",
    "ONBUILD",
    "RUN",
    "SHELL",
    "STOPSIGNAL",
    "USER",
    "VOLUME",
    "WORKDIR",
];

/// The parser's error as a diagnostic; of its position only the line is right.
pub(super) fn diagnose(error: &read::Error, text: &str, at: &Places) -> Diagnostic {
    let reason = format!("{error:#}").replace('\'', "`");
    let line = text.split_inclusive('\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
    let start: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    let start = start + (line.len() - line.trim_start().len());
    let unknown = reason.contains("unknown instruction");
    let shown = if unknown { line.split_whitespace().next().unwrap_or_default() } else { line.trim() };
    let found =
        Diagnostic::error(codes::DOCKERFILE_SYNTAX, format!("the Dockerfile cannot be read: {reason}"))
            .at_span(at.span(&(start..start + shown.len())), "");
    if error.line() == 0 || reason.contains("expected FROM") {
        return found.note("a Dockerfile begins with `FROM IMAGE`; only `ARG` may stand before it");
    }
    match suggest::nearest(&shown.to_uppercase(), INSTRUCTIONS.iter().copied()) {
        Some(near) if unknown => found.note(format!("did you mean `{near}`?")),
        _ if unknown => found.note("a line that goes on must end in `\\`; a command needs `RUN` before it"),
        _ => found,
    }
}
