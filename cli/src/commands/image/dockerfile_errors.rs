//! What is wrong with a Dockerfile, shown as findings of a job file are: with an excerpt, by the same printer.

use camino::Utf8Path;
use jobc_compiler::diagnostic::{Diagnostic, Severity, Sink, codes};
use jobc_compiler::source::{Source, SourceId, Sources, Span};
use jobc_runtime::image::dockerfile::Refusal;

use crate::Outcome;
use crate::args::FormatArg;
use crate::report;

/// Shows what keeps a Dockerfile from being built, and what is only worth knowing; standard output stays free.
pub(crate) fn show(
    path: &Utf8Path,
    bytes: &[u8],
    refusals: &[Refusal],
    remarks: &[Refusal],
    format: FormatArg,
) -> Outcome {
    let mut sources = Sources::new();
    let source = sources.add(Source::new(path, String::from_utf8_lossy(bytes)));
    let mut sink = Sink::new();
    for (list, severity) in [(remarks, Severity::Warning), (refusals, Severity::Error)] {
        for refusal in list {
            sink.push(diagnostic(refusal, severity, source, bytes));
        }
    }
    report::findings(&sources, sink, format, true)
}

fn diagnostic(refusal: &Refusal, severity: Severity, source: SourceId, bytes: &[u8]) -> Diagnostic {
    let message = refusal.message.as_str();
    let mut found = match severity {
        Severity::Error => Diagnostic::error(codes::DOCKERFILE_SYNTAX, message),
        _ => Diagnostic::warning(codes::DOCKERFILE_SYNTAX, message),
    };
    // What is wrong with the command line has no place.
    if !refusal.span.is_empty() {
        let (start, end) = (refusal.span.start, refusal.span.end);
        // Bytes that are no text stand as one character in the excerpt; nothing before them is told of.
        let end = if std::str::from_utf8(bytes).is_ok() { end } else { start + '\u{fffd}'.len_utf8() };
        found = found.at_span(Span::new(source, start, end), "");
    }
    match &refusal.help {
        Some(help) => found.note(help),
        None => found,
    }
}
