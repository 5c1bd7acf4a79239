//! `jobc submit`: builds a job for a cluster and creates it there.

mod batch;
mod images;
mod layouts;
mod offline;
mod problems;
mod progress;
mod room;
mod runs;
mod secrets;
mod spread;
mod step;

use std::process::ExitCode;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::compile::{self, Planning, Request, build, build_with, plan};
use jobc_compiler::diagnostic::Sink;
use jobc_compiler::provenance::Provenance;
use jobc_compiler::source::Sources;
use jobc_remote::Handle;
use jobc_remote::built::BuiltDirectory;
use jobc_remote::host::ImageLayout;
use jobc_remote::identity::Identity;
use jobc_remote::place::{Problem, RemotePlace};
use jobc_remote::target::{backend, backends, brings_images, is_reachable};
use jobc_schema::BackendName;
use jobc_schema::plan::JobPlan;
use jobc_sys::accounts;
use jobc_sys::error::{Error, Kind};
use serde_json::json;

use super::follow;
use crate::args::{FormatArg, JobArgs};
use crate::input::{Input, InputError};
use crate::outcome::Outcome;
use crate::report;
use crate::runtime::args::submit::SubmitArgs;
use crate::runtime::commands::jobs::{Failure, Result};
use crate::runtime::commands::target_table;
use crate::runtime::interruptible::exit_by_signal;
use crate::runtime::kept;
use crate::runtime::signatures;
use crate::settings::default_target;
use crate::source_state;
use crate::terminal;
use batch::Batch;
use images::{ImageRequest, Pins};
use runs::{Known, Run};
use step::End;

pub(crate) fn submit(args: &SubmitArgs, format: FormatArg) -> Result<ExitCode> {
    if let Some(words) = args.target.as_ref().filter(|words| words.contains(',')) {
        let target = Some(room::choose(args, words)?);
        return submit(&SubmitArgs { target, ..args.clone() }, format);
    }
    let job_args = job_args(args);
    let input_error = |InputError(why): InputError| Failure::usage_error(Error::new(Kind::Config, why));
    let mut input = Input::read(&job_args).map_err(input_error)?;
    let mut sink = Sink::new();
    let mut sources = std::mem::take(&mut input.sources);
    let to_job = |_: &str| input.directory.clone();
    // Where the directory of a run has the files of the job, from that of what was built.
    let to_files = |_: &str| Utf8PathBuf::from("../files");
    let mut request = input.request(&job_args, &to_job);
    request.default_target = default_target();
    let Some(mut planned) = plan(&mut sources, &request, &mut sink) else {
        return Ok(ExitCode::from(report::findings(&sources, sink, format, true) as u8));
    };
    if let (Some(name), [first, ..]) = (&args.target, &planned.jobs[..])
        && backend(&first.target.settings).is_none()
    {
        return Err(target_table::not_a_cluster(name, &first.target.settings));
    }
    planned.jobs.retain(|job| {
        let settings = &job.target.settings;
        is_reachable(settings) || args.target.is_some() && backend(settings).is_some()
    });
    let target_name = only_target(&planned.jobs)?;
    let Some(first) = planned.jobs.first() else {
        let outcome = report::findings(&sources, sink, format, true);
        let error = Error::new(Kind::Config, "the job has no target to submit to");
        let failure =
            Failure::usage_error(error.help(
                "add a target with the backend `kubernetes` or `slurm`, or with `ssh`, to targets.yaml",
            ));
        return if outcome == Outcome::Success { Err(failure) } else { Ok(ExitCode::from(outcome as u8)) };
    };
    if planned.jobs.iter().any(|job| job.schedule.is_some()) {
        let error =
            Error::new(Kind::Unsupported, "the job has a `schedule`, and `jobc submit` starts a job once");
        return Err(Failure::usage_error(error.help(
            "write it with `jobc build`, and create it with `kubectl apply`; without `schedule`, the job can be submitted",
        )));
    }
    if args.follow && planned.jobs.len() > 1 {
        let error = Error::new(Kind::Unsupported, "`--follow` shows one job, and this matrix has several");
        return Err(Failure::usage_error(
            error.help("submit it without `--follow`, then use `jobc logs -f`"),
        ));
    }
    let targets = job_args.targets.clone().or_else(|| crate::input::find_targets(&input.directory));
    let directory = targets.as_deref().and_then(Utf8Path::parent);
    let connected = target_table::connect(&first.target.settings, directory);
    if args.dry_run {
        let absent = match &connected {
            Err(absent) => (absent.kind() == Kind::NotFound).then(|| absent.message()),
            Ok(place) if place.is_asked_first() => place.list().err().map(|absent| absent.message()),
            Ok(_) => None,
        };
        if let Some(why) = absent {
            let place = (&target_name[..], &*input.directory);
            return offline::show(&why, place, &sources, planned, &request, sink, format);
        }
    }
    let place = connected?;
    let delivery = place.delivery();
    let brings_images = brings_images(&first.target.settings);
    if delivery.sends_files {
        request.to_job = &to_files;
    }
    let findings = signatures::findings(&planned.jobs, directory)?;
    if !findings.is_empty() {
        compile::report(&sources, &planned, findings, &mut sink);
        return Ok(ExitCode::from(report::findings(&sources, sink, format, true) as u8));
    }
    if delivery.verifies_here {
        // It need not be done again: the images have digests.
        for policy in planned.jobs.iter_mut().filter_map(|job| job.target.settings.policy.as_mut()) {
            policy.require_signature = None;
        }
    }
    let user = user();
    let submitter = Submitter {
        args,
        place: &*place,
        directory: input.directory.as_std_path(),
        targets: directory,
        user,
    };
    let provided = if brings_images {
        submitter.provide_layouts(&sources, &mut planned, &mut request, &mut sink)?
    } else {
        submitter.provide_images(&sources, &mut planned, &mut request, &mut sink)?
    };
    let (checked, layouts) = match provided {
        Images::Ready { checked, layouts } => (checked, layouts),
        Images::Refused(code) => {
            let outcome = report::findings(&sources, sink, format, true);
            return Ok(ExitCode::from(if outcome == Outcome::Success { code } else { outcome } as u8));
        }
    };
    let runs = submitter.name_runs(&mut planned.jobs)?;
    let provenance = (!args.no_provenance).then(|| Provenance {
        digests: runs.iter().map(|run| (run.name.clone(), run.identity.digest.clone())).collect(),
        ..source_state::provenance(&input.directory)
    });
    let outputs = build_with(provenance.as_ref(), &sources, planned, &request, &mut sink);
    let outcome = report::findings(&sources, images::require_registry(sink), format, true);
    if outcome != Outcome::Success {
        return Ok(ExitCode::from(outcome as u8));
    }
    let output = args.output.as_deref().map(absolute);
    let batch = Batch {
        place: submitter.place,
        runs: &runs,
        outputs: &outputs,
        directory: submitter.directory,
        user: &submitter.user,
        images: &layouts,
        output: output.as_deref(),
    };
    let code = submitter.submit_batch(&batch, checked, &target_name, format)?;
    match &runs[..] {
        [run] if args.follow && code == ExitCode::SUCCESS => {
            follow::follow(submitter.place, &target_name, &run.name)
        }
        _ => Ok(code),
    }
}

/// What all steps of a submission need.
struct Submitter<'a> {
    args: &'a SubmitArgs,
    place: &'a dyn RemotePlace,
    /// The base directory of relative paths in the job file.
    directory: &'a std::path::Path,
    /// The directory of the targets file.
    targets: Option<&'a Utf8Path>,
    user: String,
}

/// The result of building the images.
enum Images {
    /// The nodes can get them. `checked` is whether the cluster was asked about the first job already; `layouts` go with
    /// the jobs.
    Ready { checked: bool, layouts: Vec<ImageLayout> },
    /// Something is wrong with them or the job, and was printed.
    Refused(Outcome),
}

impl Images {
    fn ready(checked: bool) -> Self {
        Self::Ready { checked, layouts: Vec::new() }
    }
}

impl Submitter<'_> {
    /// Builds the images of the jobs, and names them as the machine or the cluster will have them.
    fn provide_layouts(
        &self,
        sources: &Sources,
        planned: &mut Planning,
        request: &mut Request<'_>,
        sink: &mut Sink,
    ) -> Result<Images> {
        if self.args.dry_run {
            images::announce(&planned.jobs);
            layouts::assume(&mut planned.jobs, self.directory);
            return Ok(Images::ready(false));
        }
        let requests = images::requests(sources, planned, request, sink);
        let is_checked = !requests.is_empty();
        if is_checked {
            let mut assumed = planned.clone();
            layouts::assume(&mut assumed.jobs, self.directory);
            let trial = trial(sources, &assumed, request, sink)?;
            if !trial.map_or(Ok(false), |built| self.is_accepted(&built))? {
                return Ok(Images::Refused(Outcome::Errors));
            }
        }
        let image_root = self.args.image_root.as_deref();
        let built = match images::build(&requests, sources, self.directory, image_root)? {
            Ok(built) => built,
            Err((reference, error)) => {
                let outcome = if error.kind == Kind::System { Outcome::SystemError } else { Outcome::Errors };
                problems::print(&image_problem(&reference, error, None));
                return Ok(Images::Refused(outcome));
            }
        };
        let layouts = layouts::provide(&mut planned.jobs, &built, self.directory, image_root)?;
        Ok(Images::Ready { checked: is_checked, layouts })
    }

    /// Builds and pushes the images of the jobs, and names them by digest.
    fn provide_images(
        &self,
        sources: &Sources,
        planned: &mut Planning,
        request: &mut Request<'_>,
        sink: &mut Sink,
    ) -> Result<Images> {
        if self.args.no_build {
            let (pins, found) = images::look_up(&planned.jobs, self.targets);
            let trial = trial(sources, planned, request, sink)?;
            let mut is_refused = false;
            for (reference, problem) in found {
                is_refused |= !problem.is_warning;
                let place = trial.as_ref().and_then(|built| images::place_of(built, &reference));
                problems::print(&Problem { place, ..problem });
            }
            images::pin(&mut planned.jobs, &pins);
            return Ok(if is_refused { Images::Refused(Outcome::Errors) } else { Images::ready(false) });
        }
        let without_registry = planned.jobs.iter().all(|job| job.target.settings.registry.is_none());
        if self.args.dry_run || without_registry {
            if self.args.dry_run {
                images::announce(&planned.jobs);
            }
            return Ok(Images::ready(false));
        }
        let requests = images::requests(sources, planned, request, sink);
        if requests.is_empty() {
            return Ok(Images::ready(false));
        }
        // A build can take long, so what the cluster rejects is reported first.
        let Some(built) = trial(sources, planned, request, sink)? else {
            return Ok(Images::Refused(Outcome::Errors));
        };
        if !self.is_accepted(&built)? {
            return Ok(Images::Refused(Outcome::Errors));
        }
        match self.build_images(&requests, sources, &built)? {
            Ok(pins) => {
                images::pin(&mut planned.jobs, &pins);
                Ok(Images::ready(true))
            }
            Err(outcome) => Ok(Images::Refused(outcome)),
        }
    }

    /// Builds and pushes images; errors are printed at the line of the image.
    fn build_images(
        &self,
        requests: &[ImageRequest],
        sources: &Sources,
        built: &BuiltDirectory,
    ) -> Result<std::result::Result<Pins, Outcome>> {
        Ok(images::provide(requests, sources, self.directory, self.args.image_root.as_deref())?.map_err(
            |(reference, error)| {
                let outcome = if error.kind == Kind::System { Outcome::SystemError } else { Outcome::Errors };
                problems::print(&image_problem(&reference, error, images::place_of(built, &reference)));
                outcome
            },
        ))
    }

    /// Checks a job with the cluster; problems are printed.
    fn is_accepted(&self, built: &BuiltDirectory) -> Result<bool> {
        let identity = Identity::of(&built.plan);
        let submission = batch::submission(built, &identity, &self.user, self.directory)?;
        let found = self.place.check(&submission)?;
        found.iter().for_each(problems::print);
        Ok(found.iter().all(|problem| problem.is_warning))
    }

    /// Chooses the names of the runs. From here on, all names of the objects are the run's; the variables of the tasks
    /// keep the job's name.
    fn name_runs(&self, jobs: &mut [JobPlan]) -> Result<Vec<Run>> {
        let known = Known::of(self.place, jobs.len())?;
        let mut runs = Vec::with_capacity(jobs.len());
        for job in jobs {
            let identity = self.place.identity(job, self.directory)?;
            let run = known.choose(identity, self.args.new || self.args.replace, self.args.resume)?;
            job.name.clone_from(&run.name);
            only_backend(job);
            spread::ports(job, self.place.delivery().ports)?;
            runs.push(run);
        }
        Ok(runs)
    }

    /// Checks the jobs, creates those that are not there, and prints the handles.
    fn submit_batch(
        &self,
        batch: &Batch<'_>,
        checked: bool,
        target: &str,
        format: FormatArg,
    ) -> Result<ExitCode> {
        let total = batch.runs.len();
        let missing = batch.missing();
        // The first job was checked before its image was built.
        let unchecked = if checked && missing.first() == Some(&0) { &missing[1..] } else { &missing[..] };
        batch.keep()?;
        match batch.check(unchecked)? {
            End::Complete => {}
            End::Refused => return Ok(ExitCode::from(Outcome::Errors as u8)),
            End::Interrupted(signal) => exit_by_signal(signal),
        }
        announce_existing(batch.runs);
        if self.args.dry_run {
            let jobs = if total == 1 { "the job".to_owned() } else { format!("the {total} jobs") };
            terminal::eprint(&format!("jobc: the cluster accepts {jobs}; nothing was created\n"));
            return Ok(ExitCode::SUCCESS);
        }
        if self.args.replace {
            batch::replace(self.place, batch.runs, &self.user)?;
        }
        let report_rest = |created: usize| {
            let there = total - missing.len() + created;
            if total > 1 && there < total {
                terminal::eprint(&format!(
                    "jobc: {there} of {total} jobs are submitted; the same command submits the others\n"
                ));
            }
        };
        let show = |index: usize| print_handle(format, target, &batch.runs[index]);
        let created = batch.create(&missing, &show);
        match created {
            Ok((End::Complete, _)) => Ok(ExitCode::SUCCESS),
            Ok((End::Refused, created)) => {
                report_rest(created);
                Ok(ExitCode::from(Outcome::Errors as u8))
            }
            Ok((End::Interrupted(signal), created)) => {
                report_rest(created);
                exit_by_signal(signal)
            }
            Err((failure, created)) => {
                report_rest(created);
                Err(failure)
            }
        }
    }
}

/// What is wrong with an image.
fn image_problem(reference: &str, error: Error, place: Option<String>) -> Problem {
    let image = format!("the image `{reference}`");
    let error = if error.what.starts_with(&image) { error } else { error.under(image) };
    Problem { help: error.advice(), ..Problem::error(error.message()).at(place) }
}

/// The first job as it would be without the digests of its images; none if it has errors, which are in the sink.
fn trial(
    sources: &Sources,
    planned: &Planning,
    request: &Request<'_>,
    sink: &mut Sink,
) -> Result<Option<BuiltDirectory>> {
    let mut trial = planned.clone();
    trial.jobs.truncate(1);
    for job in &mut trial.jobs {
        job.name = Identity::of(job).run_name(0);
        only_backend(job);
    }
    let mut found = Sink::new();
    let outputs = build(sources, trial, request, &mut found);
    let Some(output) = outputs.first() else {
        sink.append(found);
        return Ok(None);
    };
    let files = output.artifacts.iter().map(|file| (file.path.as_str(), file.mode, &file.bytes[..]));
    BuiltDirectory::of_artifacts(files).map(Some).map_err(Failure::from)
}

fn job_args(args: &SubmitArgs) -> JobArgs {
    JobArgs {
        job: args.job.clone(),
        set: args.set.clone(),
        params: args.params.clone(),
        target: args.target.iter().cloned().collect(),
        // Bundles are for machines and for jobs on Slurm.
        backend: vec![BackendName::Kubernetes, BackendName::Openpai, BackendName::Slurm, BackendName::Oci],
        targets: args.targets.clone(),
        allow_lossy: args.allow_lossy,
        locked: args.locked,
        ..JobArgs::default()
    }
}

/// Leaves a job the backends by which its target is reached: the limits of others do not matter.
fn only_backend(job: &mut JobPlan) {
    job.target.settings.backends = backends(&job.target.settings);
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

fn print_handle(format: FormatArg, target: &str, run: &Run) {
    kept::note(&Handle { target: target.to_owned(), name: run.name.clone() });
    let handle = format!("{target}/{}", run.name);
    if format == FormatArg::Json {
        let created = run.existing.is_none();
        let line = json!({"handle": handle, "job": run.identity.job, "name": run.name, "created": created});
        terminal::print(&format!("{line}\n"));
    } else {
        terminal::print(&format!("{handle}\n"));
    }
}

/// Prints which jobs already existed.
fn announce_existing(runs: &[Run]) {
    let existing: Vec<_> = runs.iter().filter_map(|run| run.existing.as_ref()).collect();
    let existing: Vec<_> = existing.into_iter().filter(|run| run.is_complete).collect();
    let Some(first) = existing.first() else { return };
    let what = if runs.len() == 1 {
        format!("this job was submitted before, and {}", first.state.clause())
    } else {
        format!("{} of {} jobs were submitted before", existing.len(), runs.len())
    };
    terminal::eprint(&format!("jobc: {what}; `--new` creates another run\n"));
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

/// A path that does not depend on the current directory.
fn absolute(path: &Utf8Path) -> camino::Utf8PathBuf {
    let absolute =
        std::path::absolute(path).ok().and_then(|path| camino::Utf8PathBuf::from_path_buf(path).ok());
    absolute.unwrap_or_else(|| path.to_owned())
}
