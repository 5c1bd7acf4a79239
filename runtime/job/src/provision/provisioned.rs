//! The prepared resources of a job.

use std::path::PathBuf;
use std::sync::Arc;

use indexmap::IndexMap;

use super::roots::RoleRoot;
use super::subpath::Subpath;
use crate::directory::Directory;
use crate::secrets::Secrets;
use jobc_container::secret_directory::SecretDirectory;
use jobc_gpu::tasks::TaskGpus;

/// What the tasks of a job share of what this host gives them.
#[derive(Clone, Debug)]
pub struct ProvisionedJob {
    /// The job's directories.
    pub(crate) directory: Directory,
    /// The root of each role's tasks.
    pub(crate) roles: IndexMap<String, RoleRoot>,
    /// The directories in volumes that each role's tasks mount instead of the whole volume.
    pub(crate) subpaths: IndexMap<String, Vec<Subpath>>,
    /// The values of the job's secrets.
    pub(crate) secrets: Secrets,
    /// Where secrets lie as files.
    pub(crate) place: SecretDirectory,
    /// The directory with the job's keys for ssh.
    pub(crate) keys: Option<PathBuf>,
    /// The tasks' GPUs; `None` if no task has any.
    pub(crate) gpus: Option<Arc<TaskGpus>>,
    /// Notes for the user, a line each.
    pub notes: Vec<String>,
}

impl ProvisionedJob {
    /// Gives the tasks GPUs, which were leased for them.
    pub fn with_gpus(&mut self, gpus: TaskGpus) {
        self.gpus = Some(Arc::new(gpus));
    }
}
