//! `jobc diff`: shows what changed in the fields of a job, and in its built files.

mod all;
mod base;
mod built;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::compile::{Output, build, plan};
use jobc_compiler::diagnostic::Sink;
use jobc_compiler::import::{Format, text_format};

use crate::args::{DiffArgs, FormatArg, JobArgs};
use crate::changes::target_files::{BuiltTarget, TargetFiles};
use crate::changes::{Comparison, print};
use crate::input::{
    Input, InputError, JOB_FILE_NAMES, absolute, directory_of, job_path, read_source, relative,
};
use crate::outcome::Outcome;
use crate::settings::default_target;
use crate::{report, terminal};

use base::Base;
use built::BuiltDirectory;

/// Exit code 3, even where other commands exit with 1 or 2, so that scripts can tell errors from differences.
const ERROR: Outcome = Outcome::SystemError;

pub(crate) fn run(args: &DiffArgs, format: FormatArg) -> Outcome {
    match compare(args, format) {
        Ok(Some((changes, name))) => show(&changes, &name, args, format),
        Ok(None) => ERROR,
        Err(InputError(why)) => {
            terminal::eprint(&format!("jobc: {why}\n"));
            ERROR
        }
    }
}

/// What changed, and the name of what the job is compared with; nothing if a job has errors, which are printed.
fn compare(args: &DiffArgs, format: FormatArg) -> Result<Option<(Comparison, String)>, InputError> {
    let new = args.new.as_deref().map(Utf8Path::new);
    if let Some(path) = new.filter(|path| path.exists())
        && let Some(job) = &args.job.job
    {
        return Err(InputError(format!("`{path}` and `--job {job}` are both the new side; leave one out")));
    }
    let named = new.filter(|path| path.exists()).or(args.job.job.as_deref());
    let side = match new {
        // A revision of the job.
        Some(name) if !name.exists() => {
            let job = job_path(args.job.job.as_deref())?;
            let tree = Base::find(Some(name.as_str()), &directory_of(&job)?)?;
            Side { base: tree, job: Some(job) }
        }
        _ => {
            if let Some(directory) = named.filter(|path| path.is_dir() && !has_job_file(path)) {
                let built = new.is_some() && !BuiltTarget::below(directory).is_empty();
                if !built {
                    return all::changes(args, directory, format);
                }
                Side { base: Base::Built(absolute(directory)?), job: None }
            } else {
                let job = job_path(named)?;
                Side { base: Base::Job(job.clone()), job: Some(job) }
            }
        }
    };
    side.compare(args, format)
}

/// The new side of a comparison.
struct Side {
    base: Base,
    /// The job file, unless the files are built.
    job: Option<Utf8PathBuf>,
}

impl Side {
    fn compare(
        &self,
        args: &DiffArgs,
        format: FormatArg,
    ) -> Result<Option<(Comparison, String)>, InputError> {
        let here = match &self.job {
            Some(job) if job != "-" => directory_of(job)?,
            _ => absolute(Utf8Path::new("."))?,
        };
        let base = Base::find(args.base.as_deref(), &here)?;
        let sides = match (&base, &self.base) {
            (Base::Built(old), Base::Built(new)) => {
                let (old, new) = (BuiltTarget::below(old), BuiltTarget::below(new));
                // Files refer to the directory of the job by their depth below a common directory.
                let depth = |built: &BuiltTarget| built.directory.components().count();
                let least = old.iter().chain(&new).map(depth).min().unwrap_or_default();
                let read = |built: &BuiltTarget| {
                    let mut files = built.read()?;
                    files.raise(depth(built) - least);
                    Ok(files)
                };
                let read_all =
                    |side: &[BuiltTarget]| side.iter().map(read).collect::<Result<Vec<_>, InputError>>();
                Some((read_all(&old)?, read_all(&new)?))
            }
            (base, Base::Built(directory)) => {
                let built = BuiltDirectory::find(directory)?;
                let Some(then) = self.compile(base, Some(&built), args, format)? else { return Ok(None) };
                let now = built.read(&then)?;
                Some((then, now))
            }
            (Base::Built(directory), new) => {
                let built = BuiltDirectory::find(directory)?;
                let Some(now) = self.compile(new, Some(&built), args, format)? else { return Ok(None) };
                Some((built.read(&now)?, now))
            }
            (old, new) => {
                let Some(now) = self.compile(new, None, args, format)? else { return Ok(None) };
                let then = self.compile(old, None, args, format)?;
                then.map(|then| (with_names_of(then, &now), now))
            }
        };
        let script = match &base {
            Base::Job(path) if path != "-" => read_source(path).ok(),
            _ => None,
        };
        let script = script.filter(|source| text_format(source) == Some(Format::Sbatch));
        Ok(sides.map(|(old, new)| {
            let mut changes = Comparison::of(&old, &new);
            if let Some(script) = &script {
                changes.compare_options(script.text(), &new);
            }
            (changes, base.name())
        }))
    }

    /// The compiled files of a job file or a revision; nothing if the job has errors, which are printed.
    fn compile(
        &self,
        base: &Base,
        built: Option<&BuiltDirectory<'_>>,
        args: &DiffArgs,
        format: FormatArg,
    ) -> Result<Option<Vec<TargetFiles>>, InputError> {
        let path = match (base, &self.job) {
            (Base::Job(path), _) => path.clone(),
            (Base::Revision(tree), Some(job)) => tree.path().join(job.file_name().unwrap_or_default()),
            (Base::Revision(tree), None) => job_path(Some(tree.path()))?,
            (Base::Built(_), _) => unreachable!("built files are read"),
        };
        if !path.is_file() && path != "-" {
            // The job is new, and so is everything in it.
            return match base {
                Base::Revision(_) => Ok(Some(vec![])),
                _ => Err(InputError(format!("cannot read `{path}`: no such file"))),
            };
        }
        // A targets file named on the command line applies to both versions; otherwise each has its own.
        let job = JobArgs { job: Some(path), ..args.job.clone() };
        // The tree of a revision is elsewhere; built files refer to the directory of the job itself.
        let home = match (base, &self.job) {
            (Base::Revision(_), Some(job)) => Some(directory_of(job)?),
            (Base::Revision(_), None) => Some(absolute(Utf8Path::new("."))?),
            _ => None,
        };
        Ok(compile(&job, built, home.as_deref(), format))
    }
}

fn has_job_file(directory: &Utf8Path) -> bool {
    JOB_FILE_NAMES.iter().any(|name| directory.join(name).is_file())
}

fn show(changes: &Comparison, name: &str, args: &DiffArgs, format: FormatArg) -> Outcome {
    let text = match format {
        _ if args.markdown => print::markdown(changes, name),
        FormatArg::Json => format!("{:#}\n", print::json(changes)),
        _ => print::text(changes, name, args.artifacts),
    };
    terminal::print(&text);
    if changes.files.is_empty() { Outcome::Success } else { Outcome::Errors }
}

/// Compiles a job, for a directory of built files if there is one, as if the job file were in `home`; its findings are
/// printed if it has errors.
fn compile(
    args: &JobArgs,
    built: Option<&BuiltDirectory<'_>>,
    home: Option<&Utf8Path>,
    format: FormatArg,
) -> Option<Vec<TargetFiles>> {
    let args = built.map_or_else(|| args.clone(), |built| built.arguments(args));
    let mut input = match Input::read(&args) {
        Ok(input) => input,
        Err(why) => {
            super::report_input_error(&why);
            return None;
        }
    };
    let mut sink = Sink::new();
    let mut sources = std::mem::take(&mut input.sources);
    let to_job = |job: &str| match built {
        Some(built) => relative(home.unwrap_or(&input.directory), built.of_job(job)),
        None => Utf8PathBuf::from("../../.."),
    };
    let mut request = input.request(&args, &to_job);
    request.default_target = default_target();
    let planned = plan(&mut sources, &request, &mut sink);
    let outputs = planned.map_or_else(Vec::new, |planned| build(&sources, planned, &request, &mut sink));
    if sink.has_errors() {
        report::findings(&sources, sink, format, true);
        return None;
    }
    let files = outputs.into_iter().map(|Output { job, artifacts, .. }| TargetFiles {
        job: job.name,
        target: job.target.name,
        artifacts,
    });
    Some(files.collect())
}

/// The old files under the names of the new jobs, if all jobs of a file have other names.
fn with_names_of(mut old: Vec<TargetFiles>, new: &[TargetFiles]) -> Vec<TargetFiles> {
    let names = |files: &[TargetFiles]| {
        let mut names: Vec<String> = vec![];
        for of_job in files {
            if !names.contains(&of_job.job) {
                names.push(of_job.job.clone());
            }
        }
        names
    };
    let (before, after) = (names(&old), names(new));
    if before.len() == after.len() && !before.iter().any(|name| after.contains(name)) {
        for files in &mut old {
            let place = before.iter().position(|name| *name == files.job);
            files.job = place.map_or_else(String::new, |place| after[place].clone());
        }
    }
    old
}
