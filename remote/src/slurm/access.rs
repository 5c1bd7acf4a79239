//! How to reach a cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use jobc_schema::plan::JobPlan;
use jobc_schema::target::SlurmTarget;
use jobc_sys::error::Result;

use super::files::{Contents, DEFAULT_DIRECTORY};
use crate::host::{Host, ImageLayout};

/// A host with Slurm's commands, and the target's settings.
#[derive(Debug)]
pub struct Access {
    /// Where Slurm's commands run.
    pub host: Host,
    /// The directory on the shared file system in which runs are kept; by default one in the user's home there.
    pub directory: Option<String>,
    /// The settings of the target.
    pub settings: SlurmTarget,
    /// The files of jobs by the directory of the job file and their volumes.
    contents: Mutex<BTreeMap<(PathBuf, String), Arc<Contents>>>,
    /// The images that were sent.
    images: Mutex<BTreeSet<String>>,
}

impl Access {
    /// Access through a host.
    pub fn new(host: Host, settings: SlurmTarget) -> Self {
        Self {
            host,
            directory: settings.directory.clone(),
            settings,
            contents: Mutex::default(),
            images: Mutex::default(),
        }
    }

    /// Sends an image unless the cluster has it; returns where it is below the directory of all runs. Layers that were
    /// sent before are not sent again.
    pub(crate) fn send_image(&self, image: &ImageLayout) -> Result<String> {
        let path = format!("images/{}", image.digest.rsplit(':').next().unwrap_or_default());
        let mut sent = self.images.lock().unwrap_or_else(PoisonError::into_inner);
        if !sent.contains(&image.digest) {
            let directory = self.directory.as_deref().unwrap_or(DEFAULT_DIRECTORY);
            let (store, target) = (format!("{directory}/store"), format!("{directory}/{path}"));
            self.host.send_tree(&store, &target, &image.tree)?;
            sent.insert(image.digest.clone());
        }
        Ok(path)
    }

    /// The files that go with a job; they are read once.
    pub(crate) fn contents(&self, plan: &JobPlan, directory: &Path) -> Result<Arc<Contents>> {
        let volumes = serde_json::to_string(&plan.volumes).unwrap_or_default();
        let key = (directory.to_owned(), volumes);
        let mut known = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(contents) = known.get(&key) {
            return Ok(Arc::clone(contents));
        }
        let contents = Arc::new(Contents::read(&self.settings, plan, directory)?);
        known.insert(key, Arc::clone(&contents));
        Ok(contents)
    }
}
