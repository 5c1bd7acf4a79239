//! What a command says at the end: findings, and the table of what was written.

use camino::Utf8Path;
use jobc_compiler::diagnostic::render::{render, summary};
use jobc_compiler::diagnostic::{Diagnostic, Severity, Sink};
use jobc_compiler::source::Sources;
use jobc_schema::Bytes;
use jobc_schema::plan::Totals;

use crate::args::FormatArg;
use crate::outcome::Outcome;
use crate::terminal;
#[cfg(target_os = "linux")]
pub(crate) use jobc_oci::message::{error as container_error, warning as container_warning};

/// Shows the findings: to people on standard error, to programs on standard output.
///
/// `stdout_is_taken` where standard output carries the files themselves.
pub(crate) fn findings(sources: &Sources, sink: Sink, format: FormatArg, stdout_is_taken: bool) -> Outcome {
    let diagnostics = sink.finish();
    let outcome = if count(&diagnostics, Severity::Error) > 0 { Outcome::Errors } else { Outcome::Fine };
    let style = terminal::style();
    let text = render(format.into(), sources, &diagnostics, &style);
    let for_people = matches!(format, FormatArg::Text | FormatArg::Short);
    if for_people || stdout_is_taken {
        terminal::eprint(&text);
    } else {
        terminal::print(&text);
    }
    if format == FormatArg::Text
        && let Some(line) = summary(&diagnostics)
    {
        terminal::eprint(&format!("{line}\n"));
    }
    outcome
}

/// How many findings are of a severity.
pub(crate) fn count(diagnostics: &[Diagnostic], severity: Severity) -> usize {
    diagnostics.iter().filter(|d| d.severity == severity).count()
}

/// One row of the table of what was written.
pub(crate) struct Row {
    /// The target.
    pub target: String,
    /// The backend.
    pub backend: &'static str,
    /// How many files.
    pub files: usize,
    /// Where.
    pub place: String,
}

/// The table of what was written, aligned, with a heading.
pub(crate) fn table(rows: &[Row]) -> String {
    let width = |get: fn(&Row) -> usize, heading: &str| {
        rows.iter().map(get).chain([heading.len()]).max().unwrap_or(0)
    };
    let target = width(|r| r.target.len(), "target");
    let backend = width(|r| r.backend.len(), "backend");
    let mut out = format!("{:target$}  {:backend$}  files  written to\n", "target", "backend");
    for row in rows {
        out += &format!("{:target$}  {:backend$}  {:5}  {}\n", row.target, row.backend, row.files, row.place);
    }
    out
}

/// What a job takes in all, in one line.
pub(crate) fn totals(name: &str, totals: &Totals) -> String {
    let mut parts = vec![plural(totals.instances, "instance")];
    if totals.cpu_millis > 0 {
        let whole = totals.cpu_millis.is_multiple_of(1000);
        let cpus =
            if whole { (totals.cpu_millis / 1000).to_string() } else { format!("{}m", totals.cpu_millis) };
        parts.push(format!("{cpus} CPUs"));
    }
    if totals.memory_bytes > 0 {
        parts.push(format!("{} of memory", Bytes(totals.memory_bytes)));
    }
    if totals.gpus > 0 {
        parts.push(plural(totals.gpus, "GPU"));
    }
    if totals.gpu_slices > 0 {
        parts.push(plural(totals.gpu_slices, "GPU slice"));
    }
    format!("{name}: {}\n", parts.join(", "))
}

fn plural(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// The same, for a message about a path.
pub(crate) fn cannot_write(path: &Utf8Path, error: &std::io::Error) -> String {
    format!("jobc: cannot write `{path}`: {}\n", crate::input::reason(error))
}
