//! The jobs of a submission: all are checked before any is created, several at a time, and existing ones are left
//! alone, so that the same command resumes an interrupted one.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;

use camino::Utf8Path;
use jobc_compiler::compile::Output;
use jobc_remote::built::BuiltDirectory;
use jobc_remote::host::ImageLayout;
use jobc_remote::identity::Identity;
use jobc_remote::place::{RemotePlace, Submission, SubmitError};
use jobc_sys::error::{Error, Kind};
use jobc_sys::parallel::lock;

use super::runs::Run;
use super::step::{End, Step, each};
use super::{problems, secrets};
use crate::input::shorten;
use crate::output::write;
use crate::runtime::commands::jobs::{Failure, Result};
use crate::terminal;

/// The jobs to submit, each with its run.
pub(super) struct Batch<'a> {
    pub(super) place: &'a dyn RemotePlace,
    pub(super) runs: &'a [Run],
    pub(super) outputs: &'a [Output],
    /// The base directory of relative paths in the job file.
    pub(super) directory: &'a Path,
    pub(super) user: &'a str,
    /// The images on this host that the place needs.
    pub(super) images: &'a [ImageLayout],
    /// Where the manifests are kept.
    pub(super) output: Option<&'a Utf8Path>,
}

impl Batch<'_> {
    /// The jobs that are not on the cluster completely.
    pub(super) fn missing(&self) -> Vec<usize> {
        let is_there = |run: &Run| run.existing.as_ref().is_some_and(|existing| existing.is_complete);
        (0..self.runs.len()).filter(|index| !is_there(&self.runs[*index])).collect()
    }

    /// Checks jobs without creating anything.
    pub(super) fn check(&self, jobs: &[usize]) -> Result<End> {
        // An error of the target is an error of every job: it is reported once.
        let (first, others) = jobs.split_at(jobs.len().min(1));
        match each("checked", first, &|index, step| self.check_one(index, step))? {
            End::Complete => each("checked", others, &|index, step| self.check_one(index, step)),
            end => Ok(end),
        }
    }

    /// Creates jobs. `show` gets each job that is on the cluster, in order. Returns how many were created.
    pub(super) fn create(
        &self,
        jobs: &[usize],
        show: &(dyn Fn(usize) + Sync),
    ) -> std::result::Result<(End, usize), (Failure, usize)> {
        let order = Order::new(self.runs.len(), jobs, show);
        order.show();
        match self.create_together(jobs) {
            Ok(Together::Created) => {
                for index in jobs {
                    order.settle(*index, true);
                }
                return Ok((End::Complete, order.created()));
            }
            Ok(Together::Refused) => return Ok((End::Refused, 0)),
            Ok(Together::OneByOne) => {}
            Err(failure) => return Err((failure, 0)),
        }
        let end = each("submitted", jobs, &|index, step| {
            let created = self.create_one(index, step)?;
            step.progress.around(|| order.settle(index, created));
            Ok(())
        });
        let created = order.created();
        end.map(|end| (end, created)).map_err(|failure| (failure, created))
    }

    /// Creates the jobs of a matrix as one, where the target has something for that.
    fn create_together(&self, jobs: &[usize]) -> Result<Together> {
        // The first job is the last to be complete.
        if jobs.len() < 2 || jobs.first() != Some(&0) || !self.place.joins_matrix() {
            return Ok(Together::OneByOne);
        }
        let built = (0..self.runs.len()).map(|index| self.built(index)).collect::<Result<Vec<_>>>()?;
        let submissions = built.iter().enumerate().map(|(index, built)| self.submission(index, built));
        let submissions = submissions.collect::<Result<Vec<_>>>()?;
        match self.place.submit_matrix(&submissions) {
            Ok(true) => Ok(Together::Created),
            Ok(false) => Ok(Together::OneByOne),
            Err(SubmitError::Refused(found)) => {
                found.iter().for_each(problems::print);
                Ok(Together::Refused)
            }
            Err(SubmitError::Failed(error)) => Err(error.into()),
        }
    }

    fn check_one(&self, index: usize, step: &Step<'_>) -> Result<()> {
        let built = self.built(index)?;
        let submission = self.submission(index, &built)?;
        step.report(&self.place.check(&submission)?);
        Ok(())
    }

    fn create_one(&self, index: usize, step: &Step<'_>) -> Result<bool> {
        let built = self.built(index)?;
        let submission = self.submission(index, &built)?;
        match self.place.submit(&submission) {
            Ok(()) => Ok(true),
            Err(SubmitError::Refused(found)) => {
                step.report(&found);
                Ok(false)
            }
            Err(SubmitError::Failed(error)) => Err(error.into()),
        }
    }

    fn submission<'b>(&'b self, index: usize, built: &'b BuiltDirectory) -> Result<Submission<'b>> {
        let submission = submission(built, &self.runs[index].identity, self.user, self.directory)?;
        Ok(Submission { images: self.images, ..submission })
    }

    fn built(&self, index: usize) -> Result<BuiltDirectory> {
        let files = self.outputs[index].artifacts.iter();
        BuiltDirectory::of_artifacts(files.map(|file| (file.path.as_str(), file.mode, &file.bytes[..])))
            .map_err(Failure::from)
    }

    /// Writes the manifests where the user wants them.
    pub(super) fn keep(&self) -> Result<()> {
        let Some(directory) = self.output else { return Ok(()) };
        for (run, output) in self.runs.iter().zip(self.outputs) {
            let path = directory.join(&run.name);
            write(&path, &output.artifacts).map_err(|error| {
                Error::new(Kind::System, format!("cannot write `{}`: {error}", shorten(&path)))
            })?;
        }
        Ok(())
    }
}

/// The result of creating the jobs of a matrix.
enum Together {
    /// They were created as one.
    Created,
    /// The target refuses them; the problems were printed.
    Refused,
    /// Each is created on its own.
    OneByOne,
}

/// A job with the values of its secrets.
pub(super) fn submission<'a>(
    built: &'a BuiltDirectory,
    identity: &'a Identity,
    user: &'a str,
    directory: &'a Path,
) -> Result<Submission<'a>> {
    let secrets = secrets::of(built, directory)?;
    Ok(Submission { built, identity, user, directory, images: &[], secrets })
}

/// Deletes this user's runs of the jobs.
pub(super) fn replace(place: &dyn RemotePlace, runs: &[Run], user: &str) -> Result<()> {
    let names: BTreeSet<&str> = runs.iter().map(|run| run.identity.job.as_str()).collect();
    let earlier = place.list()?;
    let is_ours = |job: &str, by: Option<&str>| names.contains(job) && by == Some(user);
    for run in earlier.iter().filter(|run| is_ours(&run.job, run.user.as_deref())) {
        place.delete(&run.name)?;
        terminal::eprint(&format!("jobc: deleted `{}`\n", run.name));
    }
    Ok(())
}

/// Shows jobs in their order, although they are created in another.
struct Order<'a> {
    state: Mutex<OrderState>,
    show: &'a (dyn Fn(usize) + Sync),
}

struct OrderState {
    /// Of each job whether it is on the cluster; none while that is not known.
    settled: Vec<Option<bool>>,
    next: usize,
    created: usize,
}

impl<'a> Order<'a> {
    fn new(total: usize, missing: &[usize], show: &'a (dyn Fn(usize) + Sync)) -> Self {
        let mut settled = vec![Some(true); total];
        for index in missing {
            settled[*index] = None;
        }
        Self { state: Mutex::new(OrderState { settled, next: 0, created: 0 }), show }
    }

    fn settle(&self, index: usize, is_there: bool) {
        let mut state = lock(&self.state);
        state.settled[index] = Some(is_there);
        state.created += usize::from(is_there);
        drop(state);
        self.show();
    }

    /// Shows the jobs whose predecessors are all settled.
    fn show(&self) {
        let mut state = lock(&self.state);
        while let Some(Some(is_there)) = state.settled.get(state.next).copied() {
            if is_there {
                (self.show)(state.next);
            }
            state.next += 1;
        }
    }

    fn created(&self) -> usize {
        lock(&self.state).created
    }
}
