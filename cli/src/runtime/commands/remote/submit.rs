//! `jobc submit`: builds a job for a cluster and creates it there.

mod images;
mod secrets;

use std::process::ExitCode;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::compile::{build, plan};
use jobc_compiler::diagnostic::Sink;
use jobc_remote::Handle;
use jobc_remote::built::BuiltDirectory;
use jobc_remote::identity::Identity;
use jobc_remote::place::{JobSummary, Place, Problem, Submission, SubmitError};
use jobc_schema::BackendName;
use jobc_schema::plan::JobPlan;
use jobc_sys::accounts;
use jobc_sys::error::{Error, Kind};
use serde_json::json;

use super::handle::failure;
use super::{follow, kept, target};
use crate::args::{FormatArg, JobArgs};
use crate::input::{Input, InputError, shorten};
use crate::outcome::Outcome;
use crate::output::write;
use crate::report;
use crate::runtime::args::submit::SubmitArgs;
use crate::runtime::commands::jobs::{Failure, Result};
use crate::settings::default_target;
use crate::terminal;

/// Maximum number of names that are tried for a run.
const MAX_NAMES: u64 = 20;

/// A job to submit, and what is known of it on the cluster.
struct Run {
    identity: Identity,
    name: String,
    /// The run of the same job that is there.
    existing: Option<JobSummary>,
}

pub(crate) fn submit(args: &SubmitArgs, format: FormatArg) -> Result<ExitCode> {
    let job_args = job_args(args);
    let input_error = |InputError(why): InputError| Failure::usage_error(Error::new(Kind::Config, why));
    let mut input = Input::read(&job_args).map_err(input_error)?;
    let mut sink = Sink::new();
    let mut sources = std::mem::take(&mut input.sources);
    let to_job = |_: &str| input.directory.clone();
    let mut request = input.request(&job_args, &to_job);
    request.default_target = default_target();
    let Some(mut planned) = plan(&mut sources, &request, &mut sink) else {
        return Ok(ExitCode::from(report::findings(&sources, sink, format, true) as u8));
    };
    planned.jobs.retain(|job| {
        let settings = &job.target.settings;
        target::is_reachable(settings) || args.target.is_some() && target::backend(settings).is_some()
    });
    let target_name = only_target(&planned.jobs)?;
    let Some(first) = planned.jobs.first() else {
        let outcome = report::findings(&sources, sink, format, true);
        let error = Error::new(Kind::Config, "the job has no target to submit to");
        let failure = Failure::usage_error(
            error.help("add a target with the backend `kubernetes` or `openpai` to targets.yaml"),
        );
        return if outcome == Outcome::Success { Err(failure) } else { Ok(ExitCode::from(outcome as u8)) };
    };
    if args.follow && planned.jobs.len() > 1 {
        let error = Error::new(Kind::Unsupported, "`--follow` shows one job, and this matrix has several");
        return Err(Failure::usage_error(
            error.help("submit it without `--follow`, then use `jobc logs -f`"),
        ));
    }
    let targets = job_args.targets.clone().or_else(|| crate::input::find_targets(&input.directory));
    let directory = targets.as_deref().and_then(Utf8Path::parent);
    let place = target::connect(&first.target.settings, directory)?;
    let mut runs = Vec::new();
    for job in &mut planned.jobs {
        let run = choose_run(&*place, job, args)?;
        // From here on, all names of the objects are the run's. The variables of the tasks keep the job's name.
        job.name.clone_from(&run.name);
        // A target with several backends is reached by one of them; the other's limits do not matter.
        job.target.settings.backends = target::backend(&job.target.settings).into_iter().collect();
        runs.push(run);
    }
    let outputs = build(&sources, planned, &request, &mut sink);
    let outcome = report::findings(&sources, sink, format, true);
    if outcome != Outcome::Success {
        return Ok(ExitCode::from(outcome as u8));
    }
    let output_place = OutputPlace::new(args.output.as_deref())?;
    let (mut code, mut handle) = (Outcome::Success, None);
    for (run, output) in runs.iter().zip(&outputs) {
        let path = output_place.path.join(&run.name);
        write(&path, &output.artifacts).map_err(|error| {
            Error::new(Kind::System, format!("cannot write `{}`: {error}", shorten(&path)))
        })?;
        let built = BuiltDirectory::read(path.as_std_path()).map_err(failure)?;
        if submit_one(args, &*place, run, &built, input.directory.as_std_path())? {
            print_handle(args, format, &target_name, run);
            handle = Some(run.name.clone());
        } else {
            code = Outcome::Errors;
        }
    }
    match handle.filter(|_| args.follow && code == Outcome::Success) {
        Some(name) => follow::follow(&*place, &target_name, &name),
        None => Ok(ExitCode::from(code as u8)),
    }
}

fn job_args(args: &SubmitArgs) -> JobArgs {
    JobArgs {
        job: args.job.clone(),
        set: args.set.clone(),
        params: args.params.clone(),
        target: args.target.iter().cloned().collect(),
        backend: vec![BackendName::Kubernetes, BackendName::Openpai],
        targets: args.targets.clone(),
        allow_lossy: args.allow_lossy,
        locked: args.locked,
        gpu_injection: None,
    }
}

/// The target of all jobs.
fn only_target(jobs: &[JobPlan]) -> Result<String> {
    let mut names: Vec<&str> = jobs.iter().map(|job| job.target.name.as_str()).collect();
    names.dedup();
    names.sort_unstable();
    names.dedup();
    if names.len() > 1 {
        let error =
            Error::new(Kind::Config, format!("there are several targets to submit to: {}", names.join(", ")));
        return Err(Failure::usage_error(error.help(format!("choose one, such as `--target {}`", names[0]))));
    }
    Ok(names.first().copied().unwrap_or_default().to_owned())
}

/// Finds the run of this job that exists, or a free name for a new one.
fn choose_run(place: &dyn Place, job: &JobPlan, args: &SubmitArgs) -> Result<Run> {
    let identity = Identity::of(job);
    if !args.new && !args.replace {
        let existing = place.runs_of(&identity).map_err(failure)?.into_iter().next();
        if let Some(existing) = existing {
            return Ok(Run { identity, name: existing.name.clone(), existing: Some(existing) });
        }
    }
    let first = if args.new || args.replace { Identity::random_salt() } else { 0 };
    for salt in first..first + MAX_NAMES {
        let name = identity.run_name(salt);
        if !place.is_taken(&name).map_err(failure)? {
            return Ok(Run { identity, name, existing: None });
        }
    }
    let error =
        Error::new(Kind::State, format!("there is no free name for another run of `{}`", identity.job));
    Err(error.help("remove old runs with `jobc rm`").into())
}

/// Checks and creates one job. Returns whether it is there; problems are printed.
fn submit_one(
    args: &SubmitArgs,
    place: &dyn Place,
    run: &Run,
    built: &BuiltDirectory,
    directory: &std::path::Path,
) -> Result<bool> {
    if run.existing.as_ref().is_some_and(|existing| existing.is_complete) {
        return Ok(true);
    }
    let user = place.user(&user()).map_err(failure)?;
    let submission = Submission {
        built,
        identity: &run.identity,
        user: &user,
        secrets: secrets::of(built, directory).map_err(failure)?,
    };
    let mut problems = images::check(built);
    problems.extend(place.check(&submission).map_err(failure)?);
    print_problems(&problems);
    if problems.iter().any(|problem| !problem.is_warning) {
        return Ok(false);
    }
    if args.dry_run {
        return Ok(true);
    }
    if args.replace {
        replace(place, &run.identity.job, &user)?;
    }
    match place.submit(&submission) {
        Ok(()) => Ok(true),
        Err(SubmitError::Refused(problems)) => {
            print_problems(&problems);
            Ok(false)
        }
        Err(SubmitError::Failed(error)) => Err(failure(error)),
    }
}

/// Deletes this user's runs of a job.
fn replace(place: &dyn Place, job: &str, user: &str) -> Result<()> {
    let earlier = place.list().map_err(failure)?;
    for run in earlier.iter().filter(|run| run.job == job && run.user.as_deref() == Some(user)) {
        place.delete(&run.name).map_err(failure)?;
        terminal::eprint(&format!("jobc: deleted `{}`\n", run.name));
    }
    Ok(())
}

fn print_handle(args: &SubmitArgs, format: FormatArg, target: &str, run: &Run) {
    let handle = format!("{target}/{}", run.name);
    if let Some(existing) = run.existing.as_ref().filter(|existing| existing.is_complete) {
        terminal::eprint(&format!(
            "jobc: this job was submitted before, and is {}; `--new` creates another run\n",
            existing.state.as_str()
        ));
    }
    if args.dry_run {
        terminal::eprint("jobc: the cluster accepts the job; nothing was created\n");
        return;
    }
    kept::note(&Handle { target: target.to_owned(), name: run.name.clone() });
    if format == FormatArg::Json {
        let created = run.existing.is_none();
        let line = json!({"handle": handle, "job": run.identity.job, "name": run.name, "created": created});
        terminal::print(&format!("{line}\n"));
    } else {
        terminal::print(&format!("{handle}\n"));
    }
}

/// Prints problems in the form of the compiler's findings.
fn print_problems(problems: &[Problem]) {
    let style = terminal::style();
    for problem in problems {
        let (word, color) =
            if problem.is_warning { ("warning", "\x1b[33;1m") } else { ("error", "\x1b[31;1m") };
        let (color, plain) = if style.color { (color, "\x1b[0m") } else { ("", "") };
        let mut text = format!("{color}{word}{plain}: {}\n", crate::table::escape_control(&problem.message));
        if let Some(place) = &problem.place {
            text += &format!(" --> {place}\n");
        }
        if let Some(help) = &problem.help {
            text += &format!("  = help: {help}\n");
        }
        terminal::eprint(&text);
    }
}

/// The user's name as the value of a label: what a label cannot hold becomes `-`.
fn user() -> String {
    let passwd = accounts::read_file("/etc/passwd").unwrap_or_default();
    let name = accounts::name_of(&passwd, rustix::process::getuid().as_raw());
    let name = name.or_else(|| std::env::var("USER").ok()).unwrap_or_default();
    let allowed = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = name.chars().map(allowed).take(63).collect();
    name.trim_matches(['-', '_', '.']).to_owned()
}

/// Where the manifests are written: a directory of the user, or one that is removed at the end.
struct OutputPlace {
    path: Utf8PathBuf,
    is_temporary: bool,
}

impl OutputPlace {
    fn new(wanted: Option<&Utf8Path>) -> Result<Self> {
        if let Some(path) = wanted {
            let path = std::path::absolute(path).ok().and_then(|path| Utf8PathBuf::from_path_buf(path).ok());
            let path = path.unwrap_or_else(|| wanted.unwrap_or(Utf8Path::new(".")).to_owned());
            return Ok(Self { path, is_temporary: false });
        }
        let base = Utf8PathBuf::from_path_buf(std::env::temp_dir()).unwrap_or_else(|_| "/tmp".into());
        let path = base.join(format!("jobc-submit-{}-{:x}", std::process::id(), Identity::random_salt()));
        std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700)
            .create(&path)
            .map_err(|error| jobc_sys::error::file_error("create", path.as_std_path(), &error))?;
        Ok(Self { path, is_temporary: true })
    }
}

impl Drop for OutputPlace {
    fn drop(&mut self) {
        if self.is_temporary {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
