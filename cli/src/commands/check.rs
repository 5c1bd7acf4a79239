//! `jobc check`: prints all findings and writes nothing.

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::compile::{check_all, plan};
use jobc_compiler::diagnostic::{Diagnostic, Severity, Sink};
use jobc_compiler::source::{SourceId, Sources};

use crate::args::{CheckArgs, FormatArg, JobArgs};
use crate::input::{Input, InputError, JOB_FILE_NAMES, shorten};
use crate::outcome::Outcome;
use crate::settings::default_target;
use crate::{report, terminal, watch};

/// Maximum depth of directories below a directory that is checked.
const MAX_DEPTH: usize = 16;

pub(crate) fn run(check: &CheckArgs, format: FormatArg) -> Outcome {
    if !check.watch {
        return run_once(check, format);
    }
    if let Err(why) = super::reject_watched_stdin(check.job.job.iter().chain(&check.more)) {
        return super::report_input_error(&why);
    }
    watch::repeat(|| run_once(check, format), shorten)
}

fn run_once(check: &CheckArgs, format: FormatArg) -> Outcome {
    let given: Vec<Utf8PathBuf> = check.job.job.iter().chain(&check.more).cloned().collect();
    let jobs = match jobs(&given) {
        Ok(jobs) => jobs,
        Err(why) => return super::report_input_error(&why),
    };
    let (mut sources, mut sink) = (Sources::new(), Sink::new());
    for job in &jobs {
        let one = JobArgs { job: job.clone(), ..check.job.clone() };
        match check_one(&one) {
            Ok((own, findings)) => merge(&own, findings, &mut sources, &mut sink),
            Err(why) => return super::report_input_error(&why),
        }
    }
    let warned = sink.diagnostics().iter().any(|d| d.severity == Severity::Warning);
    let quiet = sink.diagnostics().is_empty();
    let outcome = report::findings(&sources, sink, format, false);
    if quiet && format == FormatArg::Text {
        let files = if jobs.len() > 1 { format!(" in {} files", jobs.len()) } else { String::new() };
        terminal::eprint(&format!("no findings{files}\n"));
    }
    if warned && check.deny_warnings { Outcome::Errors } else { outcome }
}

/// Checks one job file.
fn check_one(args: &JobArgs) -> Result<(Sources, Vec<Diagnostic>), InputError> {
    let mut input = Input::read(args)?;
    let to_job = |_: &str| Utf8PathBuf::from("../../..");
    let mut sink = Sink::new();
    let mut sources = std::mem::take(&mut input.sources);
    let mut request = input.request(args, &to_job);
    request.default_target = default_target();
    if let Some(planned) = plan(&mut sources, &request, &mut sink) {
        check_all(&sources, &planned, &request, &mut sink);
    }
    Ok((sources, sink.finish()))
}

/// Adds the findings of one file to those of all; each source gets a new number.
fn merge(own: &Sources, findings: Vec<Diagnostic>, sources: &mut Sources, sink: &mut Sink) {
    let numbers: Vec<SourceId> = own.iter().map(|(_, source)| sources.add(source.clone())).collect();
    for mut finding in findings {
        finding.move_to(|id| numbers[id.0 as usize]);
        sink.push(finding);
    }
}

/// The job files of the arguments; a directory without a job file of its own stands for all job files below it.
fn jobs(given: &[Utf8PathBuf]) -> Result<Vec<Option<Utf8PathBuf>>, InputError> {
    if given.is_empty() {
        return Ok(vec![None]);
    }
    let mut jobs = Vec::new();
    for path in given {
        let own = JOB_FILE_NAMES.iter().any(|name| path.join(name).is_file());
        if !path.is_dir() || own {
            jobs.push(Some(path.clone()));
            continue;
        }
        let before = jobs.len();
        below(path, 0, &mut jobs);
        if jobs.len() == before {
            return Err(InputError(format!("`{path}` is a directory without a job.yaml in it or below it")));
        }
    }
    Ok(jobs)
}

/// The job files below a directory, by name; hidden directories, `out` and `node_modules` hold none of the user's.
fn below(directory: &Utf8Path, depth: usize, jobs: &mut Vec<Option<Utf8PathBuf>>) {
    watch::note(directory);
    let Ok(entries) = directory.read_dir_utf8() else { return };
    let mut paths: Vec<Utf8PathBuf> = entries.flatten().map(camino::Utf8DirEntry::into_path).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default();
        if path.is_file() && JOB_FILE_NAMES.contains(&name) {
            jobs.push(Some(path));
        } else if path.is_dir()
            && !path.is_symlink()
            && depth < MAX_DEPTH
            && !name.starts_with('.')
            && !["out", "node_modules", "target"].contains(&name)
        {
            below(&path, depth + 1, jobs);
        }
    }
}
