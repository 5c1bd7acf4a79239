//! Shows errors of a Dockerfile like findings of a job file: with an excerpt, by the same printer.

use camino::Utf8Path;
use jobc_compiler::diagnostic::{Severity, Sink};
use jobc_compiler::dockerfile::{diagnostic, severity_of_remark};
use jobc_compiler::source::{Source, Sources};
use jobc_image::dockerfile::Refusal;

use crate::args::FormatArg;
use crate::outcome::Outcome;
use crate::report;

/// Shows errors and notes of a Dockerfile; stdout is not used.
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
    for remark in remarks {
        sink.push(diagnostic(remark, severity_of_remark(remark), source, bytes));
    }
    for refusal in refusals {
        sink.push(diagnostic(refusal, Severity::Error, source, bytes));
    }
    report::findings(&sources, sink, format, true)
}
