//! `jobc diff`: shows which values in the plan and the built files a change of a job file changes.

mod all;
mod base;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::compile::{Output, build, plan};
use jobc_compiler::diagnostic::Sink;

use crate::args::{DiffArgs, FormatArg, JobArgs};
use crate::changes::compare::FileChange;
use crate::changes::target_files::TargetFiles;
use crate::changes::{compare, print};
use crate::commands::build::OutputDirectory;
use crate::input::{Input, InputError, JOB_FILE_NAMES};
use crate::outcome::Outcome;
use crate::settings::default_target;
use crate::{report, terminal};

use base::Base;

/// Exit code 3, even where other commands exit with 1 or 2, so that scripts can tell errors from differences.
const ERROR: Outcome = Outcome::SystemError;

pub(crate) fn run(args: &DiffArgs, format: FormatArg) -> Outcome {
    let directory = args.job.job.as_ref().filter(|path| path.is_dir() && !has_job_file(path));
    if let Some(directory) = directory {
        return match all::changes(args, directory, format) {
            Ok(Some((changes, name))) => show(&changes, &name, args, format),
            Ok(None) => ERROR,
            Err(InputError(why)) => {
                terminal::eprint(&format!("jobc: {why}\n"));
                ERROR
            }
        };
    }
    let Some(now) = compile(&args.job, format) else { return ERROR };
    let base = match Base::find(args.base.as_deref(), &now.directory) {
        Ok(base) => base,
        Err(InputError(why)) => {
            terminal::eprint(&format!("jobc: {why}\n"));
            return ERROR;
        }
    };
    let then = match old_files(&base, args, &now, format) {
        Ok(Some(then)) => then,
        Ok(None) => return ERROR,
        Err(InputError(why)) => {
            terminal::eprint(&format!("jobc: {why}\n"));
            return ERROR;
        }
    };
    show(&compare::changes(&then, &now.files), &base.name(), args, format)
}

fn has_job_file(directory: &Utf8Path) -> bool {
    JOB_FILE_NAMES.iter().any(|name| directory.join(name).is_file())
}

fn show(changes: &[FileChange], name: &str, args: &DiffArgs, format: FormatArg) -> Outcome {
    let text = match format {
        _ if args.markdown => print::markdown(changes, name),
        FormatArg::Json => format!("{:#}\n", print::json(changes)),
        _ => print::text(changes, name),
    };
    terminal::print(&text);
    if changes.is_empty() { Outcome::Success } else { Outcome::Errors }
}

/// A compiled job.
struct Compiled {
    /// The job file's directory, absolute.
    directory: Utf8PathBuf,
    /// The job file, relative to the directory.
    name: String,
    several: bool,
    files: Vec<TargetFiles>,
}

/// Compiles a job; its findings are printed if it has errors.
fn compile(args: &JobArgs, format: FormatArg) -> Option<Compiled> {
    let mut input = match Input::read(args) {
        Ok(input) => input,
        Err(why) => {
            super::report_input_error(&why);
            return None;
        }
    };
    let mut sink = Sink::new();
    let mut sources = std::mem::take(&mut input.sources);
    let to_job = |_: &str| Utf8PathBuf::from("../../..");
    let mut request = input.request(args, &to_job);
    request.default_target = default_target();
    let mut outputs = vec![];
    let mut several = false;
    if let Some(planned) = plan(&mut sources, &request, &mut sink) {
        several = planned.jobs.iter().any(|job| !job.matrix.is_empty());
        outputs = build(&sources, planned, &request, &mut sink);
    }
    if sink.has_errors() {
        report::findings(&sources, sink, format, true);
        return None;
    }
    let name = sources.get(input.job).path().file_name().unwrap_or_default().to_owned();
    let files = outputs.into_iter().map(|Output { job, artifacts, .. }| TargetFiles {
        job: job.name,
        target: job.target.name,
        artifacts,
    });
    Some(Compiled { directory: input.directory.clone(), name, several, files: files.collect() })
}

/// The files to compare with; nothing if the old job has errors, which are printed.
fn old_files(
    base: &Base,
    args: &DiffArgs,
    now: &Compiled,
    format: FormatArg,
) -> Result<Option<Vec<TargetFiles>>, InputError> {
    let directory = match base {
        Base::Built(directory) => {
            let mut place = OutputDirectory::new(Some(directory), &now.directory)?;
            place.several = now.several;
            let read = |files: &TargetFiles| files.read(&place.directory(&files.job, &files.target));
            return now.files.iter().map(read).collect::<Result<_, _>>().map(Some);
        }
        Base::Job(path) => path.clone(),
        Base::Revision(tree) => tree.path().join(&now.name),
    };
    if !directory.is_file() {
        // The job is new, and so is everything in it.
        return match base {
            Base::Revision(_) => Ok(Some(vec![])),
            _ => Err(InputError(format!("`{directory}` is not a job file"))),
        };
    }
    let mut old = args.job.clone();
    // A targets file named on the command line applies to both versions; otherwise each has its own.
    old.job = Some(directory);
    Ok(compile(&old, format).map(|compiled| compiled.files))
}
