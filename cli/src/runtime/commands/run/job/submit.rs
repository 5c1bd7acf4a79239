//! Submits jobs: their directories, the files in them, and one supervisor for each.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use jobc_job::admission::job_queue;
use jobc_job::directory::{Directory, JobDirectories, replace, storage_error};
use jobc_job::submission::{QueuePosition, Submission};
use jobc_job::supervisor::start;
use jobc_job::sweep::Sweep;
use jobc_place::time::Time;
use jobc_schema::plan::JobPlan;
use jobc_schema::queueing::StartTime;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::id::{JobId, TaskId};
use jobc_sys::write_atomic::Durability;

use super::attach::RunningJob;
use super::built_plan::{BuiltJob, BuiltPlan};
use super::images::Images;
use super::options;
use crate::runtime::args::run::{RunArgs, UnenforcedLimits};
use crate::runtime::local_time::Zone;
use crate::runtime::output::write_new_directory;

/// Jobs that have directories but no supervisors yet. Dropping them removes the directories, and a new sweep none of
/// whose jobs was started.
pub(super) struct PreparedJobs {
    jobs: Vec<(Directory, File)>,
    sweep: Option<PreparedSweep>,
}

/// The sweep of the jobs.
struct PreparedSweep {
    id: JobId,
    /// Where it is, unless it is an earlier one that is resumed.
    new_in: Option<JobDirectories>,
}

/// Creates the directories of all jobs with the files for their supervisors, and takes their locks.
///
/// With `scope`, each supervisor requests a scope of this user's systemd.
pub(super) fn submit(
    args: &RunArgs,
    built: &BuiltPlan,
    images: &Images,
    places: &JobDirectories,
    scope: bool,
) -> Result<PreparedJobs> {
    let submissions =
        built.jobs.iter().map(|job| Ok(Submission { scope, ..submission(args, &job.plan, built, images)? }));
    let submissions = submissions.collect::<Result<Vec<_>>>()?;
    let slots = args.parallel.or(built.jobs.first().and_then(|job| job.plan.max_parallel)).unwrap_or(1);
    let mut submitted = PreparedJobs { jobs: Vec::with_capacity(built.jobs.len()), sweep: None };
    let mut turns = None;
    let mut sweep = match (&built.resumed, built.sweep_name()) {
        (Some(resumed), _) => Some(resumed.clone()),
        (None, Some(name)) => Some(Sweep::create(places, name, built.source.clone())?),
        (None, None) => None,
    };
    submitted.sweep = sweep.as_ref().map(|sweep| PreparedSweep {
        id: sweep.id.clone(),
        new_in: built.resumed.is_none().then(|| places.clone()),
    });
    for (number, (job, mut submission)) in (0_u32..).zip(built.jobs.iter().zip(submissions)) {
        let directory = places.create(&job.plan.name)?;
        let lock = directory.try_lock()?.ok_or_else(|| {
            Error::new(Kind::State, format!("another command uses the new job `{}`", directory.id))
        })?;
        submitted.jobs.push((directory.clone(), lock));
        if let Some((sweep, number)) = sweep.as_mut().zip(job.number()) {
            sweep.set_job(number, &job.plan.matrix, directory.id.clone());
            submission.sweep = Some(sweep.id.clone());
        }
        if built.jobs.len() > 1 {
            let turns = match &turns {
                Some(turns) => turns,
                None => turns.insert(create_queue_directory(places, &directory, built.jobs.len())?),
            };
            submission.turn = Some(QueuePosition { directory: turns.clone(), slots, number });
        }
        write_files(&directory, job, &submission)?;
        if let Some(text) = &built.job_file {
            replace(&directory.job_file(), text.as_bytes(), Durability::Rename)?;
        }
    }
    if let Some(sweep) = sweep {
        sweep.write(places)?;
    }
    Ok(submitted)
}

impl PreparedJobs {
    /// The sweep that the jobs are.
    pub(super) fn sweep(&self) -> Option<&JobId> {
        self.sweep.as_ref().map(|sweep| &sweep.id)
    }

    /// Starts the supervisor of each job. `terminal` gets the master of the terminal of the submission's task.
    ///
    /// If one cannot start, the others end, since no command is attached to them.
    pub(super) fn start(mut self, mut terminal: Option<OwnedFd>) -> Result<Vec<RunningJob>> {
        let mut running = Vec::with_capacity(self.jobs.len());
        self.jobs.reverse();
        while let Some((directory, lock)) = self.jobs.pop() {
            // If its supervisor ends without an answer, its log stays in its directory, which is removed later.
            let started = start::start(&directory, lock, terminal.take())?;
            // From now on the sweep has a job.
            self.sweep = None;
            running.push(RunningJob::new(directory, started)?);
        }
        Ok(running)
    }
}

impl Drop for PreparedJobs {
    fn drop(&mut self) {
        for (directory, _lock) in &self.jobs {
            // The user gets the error that caused this.
            let _ = directory.remove();
        }
        if let Some(PreparedSweep { id, new_in: Some(places) }) = &self.sweep {
            let _ = Sweep::remove(places, id);
        }
    }
}

/// The directory of the queue of the jobs of a matrix. It is next to the jobs, since no job exists as long as all
/// of them.
fn create_queue_directory(places: &JobDirectories, first: &Directory, jobs: usize) -> Result<PathBuf> {
    let directory = places.state.with_file_name("turns").join(first.id.to_string());
    job_queue::prepare(&directory, u32::try_from(jobs).unwrap_or(u32::MAX))?;
    Ok(directory)
}

pub(super) fn submission(
    args: &RunArgs,
    plan: &JobPlan,
    built: &BuiltPlan,
    images: &Images,
) -> Result<Submission> {
    let roots = options::roots(&args.root, plan)?.into_iter().chain(images.roots(plan));
    Ok(Submission {
        source: built.source.clone(),
        directory: built.directory.clone(),
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        working_directory: std::env::current_dir().ok(),
        // A sweep must not fail because its own jobs hold the resources.
        queue: args.queue || built.jobs.len() > 1 || built.resumed.is_some(),
        start: plan.after.as_deref().map(start_time).transpose()?,
        scaled: built.scaled.iter().cloned().collect(),
        without_gpus: args.no_gpu,
        allow_unenforced: args.allows_unenforced(),
        enforce_limits: built.unenforced_limits(args) == UnenforcedLimits::Refused,
        roots: roots.collect(),
        images: images.for_job(plan),
        gpu_injection: args.gpu_injection,
        publish: args.publish.iter().map(|word| options::publish(word, plan)).collect::<Result<_>>()?,
        terminal: args.terminal.as_deref().map(|word| options::task(word, plan)).transpose()?,
        stdin: stdin_task(args, built, plan)?,
        keep: args.keep,
        devices: options::devices(args, plan)?.into_iter().collect(),
        gpu_share: args.gpu_share.or(plan.target.settings.oci.as_ref().and_then(|oci| oci.gpu_share)),
        gpus_asked_at: built.gpus_asked_at,
        attended: !args.detach,
        ..Submission::default()
    })
}

/// The moment of `after`, by the clock and the time zone of this host.
fn start_time(after: &str) -> Result<Time> {
    let wrong = |why: String| Error::new(Kind::Config, format!("`after`: {why}"));
    let start = StartTime::parse(after).map_err(|error| wrong(error.to_string()))?;
    Zone::local().start(start, Time::now()).ok_or_else(|| wrong(format!("`{after}` is too far away")))
}

/// The task that gets our stdin. Of several tasks none does, which is an error only with `-i`.
fn stdin_task(args: &RunArgs, built: &BuiltPlan, plan: &JobPlan) -> Result<Option<TaskId>> {
    if !args.passes_stdin() {
        return Ok(None);
    }
    match options::only_task(plan) {
        Err(error) if args.interactive => Err(error),
        task => Ok(task.ok().filter(|_| built.jobs.len() == 1)),
    }
}

pub(super) fn write_files(directory: &Directory, job: &BuiltJob, submission: &Submission) -> Result<()> {
    let build = directory.build();
    write_new_directory(&build, &job.files).map_err(|error| storage_error("write", &build, &error))?;
    let text = |value: serde_json::Result<Vec<u8>>| value.expect("plans and submissions are plain JSON");
    replace(&directory.plan_file(), &text(serde_json::to_vec(&job.plan)), Durability::Rename)?;
    replace(&directory.submission_file(), &text(serde_json::to_vec(submission)), Durability::Rename)
}
