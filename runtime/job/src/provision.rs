//! Provides what a job needs before its first task: data, outputs, fetched volumes, root filesystems, keys.
//!
//! [`provide`] does all of it once per job, in the order in which a mistake costs least: checks come first, and what
//! takes time and the network comes last. Its result is the input of [`prepare_task`] for
//! each task. [`release`] removes what must not stay, also after a supervisor was killed.

mod fetch;
mod fields;
mod git;
pub(crate) mod http;
mod images;
mod job;
mod large_data;
mod paths;
pub(crate) mod program;
mod provisioned;
mod roots;
mod shared_outputs;
mod ssh;
mod subpath;
mod task;
mod volumes;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use indexmap::IndexMap;
use jobc_schema::plan::JobPlan;

use crate::directory::Directory;
use jobc_container::remove::remove;
use jobc_sys::error::Result;

pub use fields::volume_path;
pub use images::pin_images;
pub use job::{Job, Progress};
use large_data::FETCHED_DIRECTORY;
pub use provisioned::ProvisionedJob;
pub use roots::{RoleRoot, RootSource};
pub use shared_outputs::shared_outputs;
pub(crate) use subpath::mount_linkless;
pub use task::{TaskBundle, prepare_task};

/// Provides for a job; `stopped` set to true ends it with an error, within about a tenth of a second.
///
/// # Errors
///
/// A missing resource, at its field in the job file. Resources created before are kept for [`release`].
pub fn provide(
    job: &Job<'_>,
    on_progress: &mut dyn FnMut(Progress),
    stopped: &AtomicBool,
) -> Result<ProvisionedJob> {
    let mut notes = Vec::new();
    paths::check_data(job.plan, &job.submission.directory, on_progress)?;
    let roles = roots::of(job, on_progress, stopped)?;
    if let Some(why) = job.submission.images.as_ref().and_then(|images| images.copied.as_ref()) {
        notes.push(format!("every task gets a copy of its image, which takes time and disk: {why}"));
    }
    paths::create_outputs(job, &roles, on_progress, &mut notes)?;
    volumes::create_job_directories(job, &roles, on_progress, &mut notes)?;
    let provided = assemble(job, roles, notes, stopped)?;
    volumes::fetch(job, on_progress, stopped)?;
    subpath::create(&provided.subpaths, &provided.roles)?;
    Ok(provided)
}

/// The same for a dry run: no output is created and nothing is fetched, so sources of volumes need not exist.
/// [`release`] removes what it keeps in the state directory, and the secrets' files of its tasks.
///
/// # Errors
///
/// As [`provide`], for what can be checked without fetching.
pub fn dry_run(job: &Job<'_>) -> Result<ProvisionedJob> {
    let (mut untold, never) = (|_| {}, AtomicBool::new(false));
    paths::check_data(job.plan, &job.submission.directory, &mut untold)?;
    let roles = roots::of(job, &mut untold, &never)?;
    assemble(job, roles, Vec::new(), &never)
}

/// Checks that the data of a job exists on this host, for a job that is not started. `base` is the job file's directory.
///
/// # Errors
///
/// Data that does not exist, or that this user may not use.
pub fn check_data(plan: &JobPlan, base: &Path) -> Result<()> {
    paths::check_data(plan, base, &mut |_| {})
}

/// The resources that every task of a job needs, with the job's own SSH keys.
fn assemble(
    job: &Job<'_>,
    roles: IndexMap<String, RoleRoot>,
    notes: Vec<String>,
    stopped: &AtomicBool,
) -> Result<ProvisionedJob> {
    let place = job.directory.secrets()?;
    let keys = ssh::keys(job, &place, stopped)?;
    Ok(ProvisionedJob {
        directory: job.directory.clone(),
        subpaths: subpath::of_roles(job),
        roles,
        secrets: job.secrets.clone(),
        place,
        keys,
        gpus: None,
        notes,
    })
}

/// Removes what a job must not leave: secrets in memory, and what was fetched or unpacked for it alone.
///
/// Its state directory must still exist. Missing entries are ignored.
pub fn release(directory: &Directory) -> Result<()> {
    let secrets = if directory.state.is_dir() { directory.secrets()?.remove() } else { Ok(()) };
    remove(&directory.record.join(FETCHED_DIRECTORY))?;
    secrets
}

#[cfg(test)]
mod tests;
