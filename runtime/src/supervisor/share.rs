//! What every task of a job shares, and what each is given of it.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jobc_schema::plan::JobPlan;

use crate::allocate::Allocation;
use crate::bundle::Bundle;
use crate::config::Config;
use crate::container::Options;
use crate::error::Result;
use crate::job::submission::{EVERY_ROLE, Submission};
use crate::job::{Folder, TaskId};
use crate::lifecycle::TaskNumber;
use crate::network::Network;
use crate::root::Root;
use crate::state::store::Store;

/// What every task of a job shares.
#[derive(Debug)]
pub(super) struct Share {
    /// The job's folders.
    pub(super) folder: Folder,
    /// Where its containers are.
    pub(super) containers: Store,
    /// What was asked for.
    pub(super) submission: Submission,
    /// The plan.
    pub(super) plan: JobPlan,
    /// How many files a process may open, soft and hard, as it was before the supervisor raised it for itself.
    pub(super) open_files: (u64, u64),
    /// Where the terminal of the submission's task goes, until its first attempt takes it.
    pub(super) terminal: Mutex<Option<OwnedFd>>,
    /// The network, once it is made.
    pub(super) network: Mutex<Option<Network>>,
}

/// What an attempt of a task is made from.
#[derive(Debug)]
pub(super) struct Allocated {
    /// The container's own configuration.
    pub(super) bundle: Bundle,
    /// Its root.
    pub(super) root: Root,
    /// More that config.json has no place for.
    pub(super) options: Options,
    /// Where its terminal goes, if it has one.
    pub(super) console: Option<OwnedFd>,
    /// What a person should know.
    pub(super) said: Vec<String>,
}

impl Share {
    /// The network, which nobody changes meanwhile.
    pub(super) fn network(&self) -> MutexGuard<'_, Option<Network>> {
        self.network.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the network away.
    pub(super) fn leave_network(&self) {
        drop(self.network().take());
    }

    /// Gives a task what only this machine knows.
    pub(super) fn allocate(&self, task: TaskNumber, id: &TaskId, folder: &Path) -> Result<Allocated> {
        let original = Bundle::open(&self.folder.bundle(id))?;
        let roots = &self.submission.roots;
        let choice = roots.get(&id.role).or_else(|| roots.get(EVERY_ROLE)).map(String::as_str);
        let allocation = Allocation::of(&original, choice, folder, true)?;
        allocation.make()?;
        let (text, said) = allocation.apply(&original)?;
        let mut config = Config::read(&text)?;
        let console = if self.submission.terminal.as_ref() == Some(id) {
            self.terminal.lock().unwrap_or_else(PoisonError::into_inner).take()
        } else {
            None
        };
        if console.is_some()
            && let Some(process) = config.spec.process_mut()
        {
            process.set_terminal(Some(true));
        }
        if let Some(network) = &*self.network() {
            network.attach(task, &mut config.spec)?;
        }
        let bundle = Bundle { dir: original.dir.clone(), config, text };
        Ok(Allocated { bundle, root: allocation.root, options: Options::default(), console, said })
    }
}
