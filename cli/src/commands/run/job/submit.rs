//! Handing jobs in: their folders, the files in them, and a supervisor for each.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use jobc_job::admission::turn;
use jobc_job::folder::{Folder, Places, replace};
use jobc_job::submission::{Submission, Turn};
use jobc_job::supervisor::start;
use jobc_schema::plan::JobPlan;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::write_atomic::Durability;

use super::attend::Running;
use super::built::{Built, BuiltJob};
use super::images::Images;
use super::options;
use crate::args::run::RunArgs;
use crate::output::fill_new;

/// Jobs whose folders are there and whose supervisors are not. Dropping them removes the folders.
pub(super) struct Submitted {
    jobs: Vec<(Folder, File)>,
}

/// Makes the folders of all jobs, with what their supervisors need, and takes their locks.
///
/// With `scope` each supervisor asks for a scope of this user's systemd.
pub(super) fn submit(
    args: &RunArgs,
    built: &Built,
    images: &Images,
    places: &Places,
    scope: bool,
) -> Result<Submitted> {
    let submissions =
        built.jobs.iter().map(|job| Ok(Submission { scope, ..submission(args, &job.plan, built, images)? }));
    let submissions = submissions.collect::<Result<Vec<_>>>()?;
    let slots = args.parallel.or(built.jobs.first().and_then(|job| job.plan.max_parallel)).unwrap_or(1);
    let mut submitted = Submitted { jobs: Vec::with_capacity(built.jobs.len()) };
    let mut turns = None;
    for (number, (job, mut submission)) in (0_u32..).zip(built.jobs.iter().zip(submissions)) {
        let folder = places.create(&job.plan.name)?;
        let lock = folder.try_lock()?.ok_or_else(|| {
            Error::new(Kind::State, format!("another command works on the new job `{}`", folder.id))
        })?;
        submitted.jobs.push((folder.clone(), lock));
        if built.jobs.len() > 1 {
            let turns = match &turns {
                Some(turns) => turns,
                None => turns.insert(make_turns(places, &folder, built.jobs.len())?),
            };
            submission.turn = Some(Turn { folder: turns.clone(), slots, number });
        }
        write(&folder, job, &submission)?;
    }
    Ok(submitted)
}

impl Submitted {
    /// Starts the supervisor of each. `terminal` gets the master of the terminal of the submission's task.
    ///
    /// Where one cannot begin, the others end: nobody attends to them any more.
    pub(super) fn start(mut self, mut terminal: Option<OwnedFd>) -> Result<Vec<Running>> {
        let mut running = Vec::with_capacity(self.jobs.len());
        self.jobs.reverse();
        while let Some((folder, lock)) = self.jobs.pop() {
            // What it says of why it cannot begin may stand in its folder, which is forgotten later.
            let started = start::start(&folder, lock, terminal.take())?;
            running.push(Running::new(folder, started)?);
        }
        Ok(running)
    }
}

impl Drop for Submitted {
    fn drop(&mut self) {
        for (folder, _lock) in &self.jobs {
            // Why it is given up is what the user is told.
            let _ = folder.remove();
        }
    }
}

/// Where the jobs of a matrix agree on whose turn it is: beside the jobs, since none of them is there for all of them.
fn make_turns(places: &Places, first: &Folder, jobs: usize) -> Result<PathBuf> {
    let folder = places.state.with_file_name("turns").join(first.id.to_string());
    turn::prepare(&folder, u32::try_from(jobs).unwrap_or(u32::MAX))?;
    Ok(folder)
}

pub(super) fn submission(
    args: &RunArgs,
    plan: &JobPlan,
    built: &Built,
    images: &Images,
) -> Result<Submission> {
    let roots = options::roots(&args.root, plan)?.into_iter().chain(images.roots(plan));
    Ok(Submission {
        source: built.source.clone(),
        folder: built.folder.clone(),
        queue: args.queue,
        scaled: built.scaled.iter().cloned().collect(),
        without_gpus: args.no_gpu,
        allow_unenforced: args.allow_unenforced,
        roots: roots.collect(),
        images: images.of(plan),
        gpu_injection: args.gpu_injection,
        publish: args.publish.iter().map(|word| options::publish(word, plan)).collect::<Result<_>>()?,
        terminal: args.terminal.as_deref().map(|word| options::task(word, plan)).transpose()?,
        keep: args.keep,
        devices: options::devices(&args.devices, plan)?.into_iter().collect(),
        gpu_share: args.gpu_share.or(plan.target.settings.oci.as_ref().and_then(|oci| oci.gpu_share)),
        attended: !args.detach,
        ..Submission::default()
    })
}

pub(super) fn write(folder: &Folder, job: &BuiltJob, submission: &Submission) -> Result<()> {
    let cannot = |path: &Path, error: &std::io::Error| {
        let why = crate::input::reason(error);
        Error::new(Kind::Machine, format!("cannot write `{}`: {why}", path.display()))
    };
    let build = folder.build();
    fill_new(&build, &job.files).map_err(|error| cannot(&build, &error))?;
    let text = |value: serde_json::Result<Vec<u8>>| value.expect("plans and submissions are plain JSON");
    replace(&folder.plan_file(), &text(serde_json::to_vec(&job.plan)), Durability::Rename)?;
    replace(&folder.submission_file(), &text(serde_json::to_vec(submission)), Durability::Rename)
}
