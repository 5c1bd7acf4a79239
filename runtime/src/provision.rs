//! What must be there before the first task of a job is made: data, outputs, fetched volumes, roots, keys.
//!
//! [`provide`] does all of it once a job, in the order in which a mistake costs least: what is only looked at comes first,
//! what takes time and the network last. Its result answers what [`allocate::task`](crate::allocate::task) asks for each
//! task. [`release`] takes back what must not stay, also after a supervisor that was killed.

mod git;
mod http;
mod images;
mod paths;
mod program;
mod roots;
mod ssh;
#[cfg(test)]
pub(crate) mod testing;
mod volumes;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use indexmap::IndexMap;
use jobc_schema::plan::JobPlan;

use crate::error::{Error, Kind, Result};
use crate::gpu::tasks::TaskGpus;
use crate::job::Folder;
use crate::job::submission::Submission;
use crate::root::remove::remove;
use crate::secrets::Secrets;
use crate::secrets::place::Place;

pub(crate) use images::copy_of;
pub use images::hold;
pub use roots::{Base, RoleRoot};

/// A job that is about to start.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// Its folders; the build lies in the state folder.
    pub folder: &'a Folder,
    /// Its plan.
    pub plan: &'a JobPlan,
    /// What was asked for beside it.
    pub submission: &'a Submission,
    /// The values of its secrets.
    pub secrets: &'a Secrets,
}

/// What happens while a job is provided for, in the order it happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A volume is being fetched: told at the beginning, then once a second.
    Fetching {
        /// The volume's name.
        volume: String,
        /// Where from; never with a secret.
        from: String,
        /// Bytes that are here.
        bytes: u64,
    },
    /// A volume is there: data found, an output's folder made, a source fetched.
    DataReady {
        /// The volume's name.
        volume: String,
        /// Where it is on this machine.
        path: PathBuf,
    },
    /// The root of a role's tasks is there.
    ImageReady {
        /// The role.
        role: String,
        /// What stands in the plan: an image's reference, or `host`.
        image: String,
        /// What the tasks get for it: `host`, or a path.
        root: String,
    },
}

/// What the tasks of a job share of what this machine gives them.
#[derive(Clone, Debug)]
pub struct Provided {
    /// The job's folders.
    pub(crate) folder: Folder,
    /// What the tasks of each role begin with.
    pub(crate) roles: IndexMap<String, RoleRoot>,
    /// The values of the job's secrets.
    pub(crate) secrets: Secrets,
    /// Where secrets lie as files.
    pub(crate) place: Place,
    /// The folder with the job's keys for ssh.
    pub(crate) keys: Option<PathBuf>,
    /// The tasks' GPUs; nothing where no task has any.
    pub(crate) gpus: Option<Arc<TaskGpus>>,
    /// What a person should know, a line each.
    pub notes: Vec<String>,
}

impl Provided {
    /// Gives the tasks GPUs, which were leased for them.
    pub fn with_gpus(&mut self, gpus: TaskGpus) {
        self.gpus = Some(Arc::new(gpus));
    }
}

/// Provides for a job; `stopped` set to true ends it with an error, within about a tenth of a second.
///
/// # Errors
///
/// What is missing, at the field of the job file that names it. What was made until then stays, for [`release`].
pub fn provide(job: &Job<'_>, told: &mut dyn FnMut(Progress), stopped: &AtomicBool) -> Result<Provided> {
    let mut notes = Vec::new();
    paths::see_data(job, told)?;
    let roles = roots::of(job, told, stopped)?;
    if let Some(why) = job.submission.images.as_ref().and_then(|images| images.copied.as_ref()) {
        notes.push(format!("every task gets a copy of its image, which takes time and disk: {why}"));
    }
    paths::make_outputs(job, &roles, told, &mut notes)?;
    let place = Place::of(job.folder)?;
    let keys = ssh::keys(job, &place, stopped)?;
    volumes::fetch(job, told, stopped)?;
    Ok(Provided {
        folder: job.folder.clone(),
        roles,
        secrets: job.secrets.clone(),
        place,
        keys,
        gpus: None,
        notes,
    })
}

/// The same for a look at what would be done: no output is made and nothing is fetched, so sources of volumes need not be
/// there. What it keeps in the state folder, and the secrets' files of its tasks, [`release`] removes.
///
/// # Errors
///
/// As of [`provide`], as far as can be seen without it.
pub fn rehearse(job: &Job<'_>) -> Result<Provided> {
    let (mut untold, never) = (|_| {}, AtomicBool::new(false));
    paths::see_data(job, &mut untold)?;
    let roles = roots::of(job, &mut untold, &never)?;
    let place = Place::of(job.folder)?;
    let keys = ssh::keys(job, &place, &never)?;
    Ok(Provided {
        folder: job.folder.clone(),
        roles,
        secrets: job.secrets.clone(),
        place,
        keys,
        gpus: None,
        notes: Vec::new(),
    })
}

/// Removes what a job must not leave: secrets in memory, and what was fetched or unpacked for it alone.
///
/// Its state folder must still be there. That nothing is there to be removed is fine.
pub fn release(folder: &Folder) -> Result<()> {
    let secrets = if folder.state.is_dir() { Place::of(folder)?.remove() } else { Ok(()) };
    remove(&folder.record.join(FETCHED))?;
    secrets
}

/// The folder of a job's record where large things lie while it runs.
const FETCHED: &str = "fetched";

/// Where large things of a job lie while it runs: in its state folder, or where that is in memory, on the disk that has its
/// record.
fn large(folder: &Folder) -> PathBuf {
    if crate::secrets::place::is_in_memory(&folder.state) {
        folder.record.join(FETCHED)
    } else {
        folder.state.join(FETCHED)
    }
}

/// An error about a field of the job file.
fn at_field(field: &str, what: &str) -> Error {
    Error::new(Kind::Config, format!("`{field}`: {what}"))
}

/// Whether the field of a volume is `data` or `outputs`.
fn field_of(plan: &JobPlan, name: &str) -> String {
    use jobc_schema::plan::VolumeKind;
    let output = plan.volumes.get(name).is_some_and(|volume| volume.kind == VolumeKind::Output);
    format!("{}.{name}.source", if output { "outputs" } else { "data" })
}

/// Names that roles mount, each once.
fn mounted(plan: &JobPlan) -> impl Iterator<Item = &str> {
    let names: indexmap::IndexSet<&str> =
        plan.roles.iter().flat_map(|role| &role.mounts).map(|mount| mount.volume.as_str()).collect();
    names.into_iter()
}

/// The path on this machine that a volume stands for: the target's storage, else its own path; nothing for what is fetched.
fn machine_path(job: &Job<'_>, name: &str) -> Option<PathBuf> {
    use jobc_schema::plan::VolumeSource;
    let storage = job.plan.target.settings.oci.as_ref().and_then(|oci| oci.storage.get(name));
    let ((Some(path), _) | (None, VolumeSource::Path { path })) =
        (storage, &job.plan.volumes.get(name)?.source)
    else {
        return None;
    };
    Some(job.submission.folder.join(path.trim_start_matches("./")))
}

#[cfg(test)]
mod tests;
