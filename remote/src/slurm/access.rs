//! How to reach a cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use jobc_schema::plan::JobPlan;
use jobc_schema::target::SlurmTarget;
use jobc_sys::error::Result;

use super::files::Contents;
use crate::built::BatchScript;
use crate::host::{Host, ImageLayout, Program};

/// A host with Slurm's commands, and the target's settings.
#[derive(Debug)]
pub struct Access {
    /// Where Slurm's commands run.
    pub host: Host,
    /// The directory on the shared file system in which runs are kept; by default one in the user's home there.
    pub directory: Option<String>,
    /// The settings of the target.
    pub settings: SlurmTarget,
    /// This program, which the nodes may get a copy of.
    program: Program,
    /// The files of jobs by the directory of the job file and their volumes.
    contents: Mutex<BTreeMap<(PathBuf, String), Arc<Contents>>>,
    /// The images that were sent.
    images: Mutex<BTreeSet<String>>,
}

impl Access {
    /// Access through a host.
    pub fn new(host: Host, settings: SlurmTarget, program: Program) -> Self {
        Self {
            host,
            program,
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
            let directory = self.directory.as_deref().unwrap_or(SlurmTarget::DIRECTORY);
            let (store, target) = (format!("{directory}/store"), format!("{directory}/{path}"));
            self.host.send_tree(&store, &target, &image.tree)?;
            sent.insert(image.digest.clone());
        }
        Ok(path)
    }

    /// The name of the program that scripts run, if it is a copy of this one; otherwise an empty text.
    pub(crate) fn program_of(&self, scripts: &[BatchScript]) -> Result<String> {
        let path = self.settings.program().filter(|_| self.settings.copies_program()).unwrap_or_default();
        let name = path.rsplit('/').next().unwrap_or_default();
        let is_run =
            !name.is_empty() && scripts.iter().any(|script| script.text.contains(&format!("/{name}")));
        if is_run { self.program.file_name() } else { Ok(String::new()) }
    }

    /// Puts the program on the cluster under its name.
    pub(crate) fn install(&self, name: &str) -> Result<()> {
        let directory = self.directory.as_deref().unwrap_or(SlurmTarget::DIRECTORY);
        let path = format!("{directory}/bin/{name}");
        let installed = self.program.install(&self.host, &format!("{directory}/store"), &path, "slurm.jobc");
        installed.map_err(|error| error.at_field("slurm.jobc".to_owned()))
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
