//! The final output of a command: findings, and the table of written files.

use camino::Utf8Path;
use jobc_compiler::diagnostic::render::{render, summary};
use jobc_compiler::diagnostic::{Diagnostic, Severity, Sink};
use jobc_compiler::source::Sources;
use jobc_schema::Bytes;
use jobc_schema::plan::order::RoleOrder;
use jobc_schema::plan::{JobPlan, RolePlan, Totals};
use jobc_schema::plural;

use crate::args::FormatArg;
use crate::outcome::Outcome;
use crate::terminal;

/// Prints the findings: for people on stderr, for programs on stdout.
///
/// `stdout_is_taken` if stdout carries the files themselves.
pub(crate) fn findings(sources: &Sources, sink: Sink, format: FormatArg, stdout_is_taken: bool) -> Outcome {
    print_findings(sources, &sink.finish(), format, stdout_is_taken)
}

pub(crate) fn print_findings(
    sources: &Sources,
    diagnostics: &[Diagnostic],
    format: FormatArg,
    stdout_is_taken: bool,
) -> Outcome {
    let outcome = if count(diagnostics, Severity::Error) > 0 { Outcome::Errors } else { Outcome::Success };
    let style = terminal::style();
    let text = render(format.into(), sources, diagnostics, &style);
    let for_people = matches!(format, FormatArg::Text | FormatArg::Short);
    if for_people || stdout_is_taken {
        terminal::eprint(&text);
    } else {
        terminal::print(&text);
    }
    if format == FormatArg::Text
        && let Some(line) = summary(diagnostics)
    {
        terminal::eprint(&format!("{line}\n"));
    }
    outcome
}

/// The number of findings of a severity.
pub(crate) fn count(diagnostics: &[Diagnostic], severity: Severity) -> usize {
    diagnostics.iter().filter(|d| d.severity == severity).count()
}

/// One row of the table of written files.
pub(crate) struct Row {
    /// The target.
    pub target: String,
    /// The backend.
    pub backend: &'static str,
    /// The number of files.
    pub files: usize,
    /// The directory.
    pub place: String,
}

/// The table of written files, aligned, with a heading.
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

/// Thousandths of a CPU for people.
pub(crate) fn cpus(millis: u64) -> String {
    jobc_schema::Cpus { millis }.amount()
}

/// The total resources of a job, in one line.
///
/// For GPUs, also the peak, where roles run one after another.
pub(crate) fn totals(job: &JobPlan) -> String {
    format!("{}: {}\n", job.name, total(job))
}

/// The total resources of a job: `4 instances, 32 GPUs`.
pub(crate) fn total(job: &JobPlan) -> String {
    let weights: Vec<u64> = job.roles.iter().map(RolePlan::gpus_at_once).collect();
    let peak = if job.totals.gpus > 0 { RoleOrder::of(job).heaviest(&weights) } else { 0 };
    amounts(&job.totals, peak)
}

/// The total resources of all jobs of a matrix, in one line.
pub(crate) fn totals_of_matrix(jobs: &[&JobPlan]) -> String {
    let mut all = Totals::default();
    for job in jobs {
        all.instances += job.totals.instances;
        all.cpu_millis += job.totals.cpu_millis;
        all.memory_bytes = all.memory_bytes.saturating_add(job.totals.memory_bytes);
        all.gpus += job.totals.gpus;
        all.gpu_slices += job.totals.gpu_slices;
    }
    format!("all {} jobs: {}\n", jobs.len(), amounts(&all, all.gpus))
}

/// Resources in words. `peak` is the number of GPUs that are used at once.
fn amounts(totals: &Totals, peak: u64) -> String {
    let mut parts = vec![plural(totals.instances, "instance")];
    if totals.cpu_millis > 0 {
        parts.push(cpus(totals.cpu_millis));
    }
    if totals.memory_bytes > 0 {
        parts.push(format!("{} of memory", Bytes(totals.memory_bytes).amount()));
    }
    if totals.gpus > 0 {
        let at_once = if peak < totals.gpus { format!(" ({peak} at once)") } else { String::new() };
        parts.push(plural(totals.gpus, "GPU") + &at_once);
    }
    if totals.gpu_slices > 0 {
        parts.push(plural(totals.gpu_slices, "GPU slice"));
    }
    parts.join(", ")
}

/// The error of a path that cannot be written.
pub(crate) fn cannot_write(path: &Utf8Path, error: &std::io::Error) -> String {
    format!("jobc: cannot write `{path}`: {}\n", crate::input::reason(error))
}
