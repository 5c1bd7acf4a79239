//! `jobc check`: prints all findings, and applies their fixes on request.

mod fix;
mod targets_file;

use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::built_in_targets::DEFAULT_TARGET;
use jobc_compiler::compile::{Request, check_all, plan};
use jobc_compiler::diagnostic::{Diagnostic, Severity, Sink};
use jobc_compiler::source::{SourceId, Sources};
use jobc_schema::plan::JobPlan;

use crate::args::values::GOLDEN;
use crate::args::{CheckArgs, FormatArg, JobArgs};
use crate::input::{Input, InputError, shorten};
use crate::job_files::find;
use crate::outcome::Outcome;
use crate::settings::default_target;
use crate::{report, terminal, watch};

/// Notes on what this host lacks to run the jobs of a request, planned for any host, whose job file is in the directory.
pub(crate) type HostNotes = fn(Sources, Request<'_>, Vec<JobPlan>, &Path) -> Vec<String>;

pub(crate) fn run(check: &CheckArgs, format: FormatArg, host_notes: HostNotes) -> Outcome {
    if !check.watch {
        return run_once(check, format, host_notes);
    }
    if let Err(why) = super::reject_watched_stdin(check.job.job.iter().chain(&check.more)) {
        return super::report_input_error(&why);
    }
    watch::repeat(|| run_once(check, format, host_notes), shorten)
}

fn run_once(check: &CheckArgs, format: FormatArg, host_notes: HostNotes) -> Outcome {
    let given: Vec<Utf8PathBuf> = check.job.job.iter().chain(&check.more).cloned().collect();
    let jobs = match find(&given, GOLDEN) {
        Ok(_) if given.is_empty() => vec![None],
        Ok(jobs) => jobs.into_iter().map(Some).collect(),
        Err(why) => return super::report_input_error(&why),
    };
    let (mut sources, mut sink, mut notes) = (Sources::new(), Sink::new(), vec![]);
    let (fix, with_unsafe) = (check.fixes.fix, check.fixes.unsafe_fixes);
    if (fix || with_unsafe)
        && let Err(outcome) = fix_all(check, &jobs)
    {
        return outcome;
    }
    let host_notes = (jobs.len() == 1 && format == FormatArg::Text).then_some(host_notes);
    for job in &jobs {
        let one = JobArgs { job: job.clone(), ..check.job.clone() };
        match check_one(&one, host_notes) {
            Ok((own, findings, found)) => {
                merge(&own, findings, &mut sources, &mut sink);
                notes.extend(found);
            }
            Err(why) => return super::report_input_error(&why),
        }
    }
    let warned = sink.diagnostics().iter().any(|d| d.severity == Severity::Warning);
    let quiet = sink.diagnostics().is_empty();
    let unsafe_fixes =
        (fix && !with_unsafe).then(|| fix::unsafe_fixes(&sources, sink.diagnostics())).flatten();
    let outcome = report::findings(&sources, sink, format, false);
    if let Some(line) = unsafe_fixes.filter(|_| format == FormatArg::Text) {
        terminal::eprint(&line);
    }
    if quiet && format == FormatArg::Text {
        let files = if jobs.len() > 1 { format!(" in {} files", jobs.len()) } else { String::new() };
        terminal::eprint(&format!("no findings{files}\n"));
    }
    terminal::eprint(&notes.concat());
    if warned && check.deny_warnings { Outcome::Errors } else { outcome }
}

/// Applies the fixes of all job files, and prints them.
fn fix_all(check: &CheckArgs, jobs: &[Option<Utf8PathBuf>]) -> Result<(), Outcome> {
    let usage_error = |why: InputError| super::report_input_error(&why);
    fix::reject_stdin(check.job.job.iter().chain(&check.more)).map_err(usage_error)?;
    for job in jobs {
        let one = JobArgs { job: job.clone(), ..check.job.clone() };
        let cannot_write = |path: &Utf8Path, error: &std::io::Error| {
            terminal::eprint(&report::cannot_write(path, error));
            Outcome::SystemError
        };
        let check_again = || {
            let checked = check_one(&one, None).map_err(usage_error);
            checked.map(|(sources, findings, _)| (sources, findings))
        };
        let applied = fix::fix(check.fixes.unsafe_fixes, check_again, cannot_write)?;
        for (place, message) in applied {
            terminal::eprint(&format!("{place}: fixed: {message}\n"));
        }
    }
    Ok(())
}

/// Checks one job file: its texts, the findings, and notes on this host if it is a job without errors for it alone.
fn check_one(
    args: &JobArgs,
    host_notes: Option<HostNotes>,
) -> Result<(Sources, Vec<Diagnostic>, Vec<String>), InputError> {
    let mut input = Input::read(args)?;
    let to_job = |_: &str| Utf8PathBuf::from("../../..");
    let mut sink = Sink::new();
    let mut sources = std::mem::take(&mut input.sources);
    if let Some(findings) = targets_file::check(&sources, input.job) {
        return Ok((sources, findings, vec![]));
    }
    let mut notes = vec![];
    let mut request = input.request(args, &to_job);
    request.default_target = default_target();
    if let Some(planned) = plan(&mut sources, &request, &mut sink) {
        check_all(&sources, &planned, &request, &mut sink);
        let is_for_this_host = request.targets.is_none()
            && request.only_targets.is_empty()
            && request.only_backends.is_empty()
            && planned.jobs.iter().all(|job| job.target.name == DEFAULT_TARGET);
        if let Some(host_notes) = host_notes.filter(|_| is_for_this_host && sink.error_count() == 0) {
            notes = host_notes(sources.clone(), request, planned.jobs, input.directory.as_std_path());
        }
    }
    Ok((sources, sink.finish(), notes))
}

/// Adds the findings of one file to those of all; each source gets a new number.
fn merge(own: &Sources, findings: Vec<Diagnostic>, sources: &mut Sources, sink: &mut Sink) {
    let numbers: Vec<SourceId> = own.iter().map(|(_, source)| sources.add(source.clone())).collect();
    for mut finding in findings {
        finding.move_to(|id| numbers[id.0 as usize]);
        sink.push(finding);
    }
}
