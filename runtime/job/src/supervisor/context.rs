//! The data shared by all tasks of a job, and the part that each task gets.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use jobc_schema::plan::{ImageSource, JobPlan};
use jobc_schema::preemption::{ATTEMPT, RESUME};

use super::message::FileNumber;
use crate::allocate::name_node;
use crate::directory::Directory;
use crate::discarded::ExpectedLayers;
use crate::host_environment::HostEnvironments;
use crate::lifecycle::TaskNumber;
use crate::network::Network;
use crate::provision;
use crate::provision::{ProvisionedJob, TaskBundle};
use crate::secrets::Secrets;
use crate::submission::Submission;
use crate::user_metrics::{self, FileMetric};
use jobc_container::bundle::Bundle;
use jobc_container::root::Root;
use jobc_container::state::store::Store;
use jobc_gpu::tasks::TaskGpus;
use jobc_image::store::ContentPin;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::id::TaskId;
use oci_spec::runtime::Spec;

/// The data shared by all tasks of a job.
#[derive(Debug)]
pub(super) struct JobContext {
    /// The job's directories.
    pub(super) directory: Directory,
    /// Where its containers are.
    pub(super) containers: Store,
    /// The submission.
    pub(super) submission: Submission,
    /// The plan.
    pub(super) plan: JobPlan,
    /// The values of its secrets.
    pub(super) secrets: Secrets,
    /// The part of the caller's environment that its images get.
    pub(super) environments: HostEnvironments,
    /// How many files a process may open, soft and hard, as it was before the supervisor raised it for itself.
    pub(super) open_files: (u64, u64),
    /// The receiver of the terminal of the submission's task, until its first attempt takes it; or the standard input of
    /// that task.
    pub(super) terminal: Mutex<Option<OwnedFd>>,
    /// The job's images, kept in the store as long as this value lives.
    pub(super) _images: Option<ContentPin>,
    /// Data, roots and keys, once they are ready.
    pub(super) provided: OnceLock<ProvisionedJob>,
    /// The network, once it is created.
    pub(super) network: Mutex<Option<Network>>,
    /// The job was canceled: its preparation ends.
    pub(super) stopped: AtomicBool,
}

impl JobContext {
    /// The network, locked against changes.
    pub(super) fn network(&self) -> MutexGuard<'_, Option<Network>> {
        self.network.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The job's GPUs, once it is prepared; `None` if it has none.
    pub(super) fn gpus(&self) -> Option<&TaskGpus> {
        self.provided.get()?.gpus.as_deref()
    }

    /// Takes the network away.
    pub(super) fn drop_network(&self) {
        drop(self.network().take());
    }

    /// The metrics of a task that are in files, with their values now.
    pub(super) fn read_numbers(&self, id: &TaskId) -> Vec<FileNumber> {
        let Some(role) = self.plan.role(&id.role) else { return vec![] };
        let volume = |name: &str| {
            Some(provision::volume_path(&self.directory, &self.plan, &self.submission.directory, name))
        };
        let files = user_metrics::files_of(role, &volume);
        let read = |file: FileMetric| {
            let number = user_metrics::read_number(&file.volume, &file.path, &file.key);
            (file.name, number)
        };
        files.into_iter().map(read).collect()
    }

    /// The client's standard input, if a task gets it: each of its attempts reads what the ones before have left.
    pub(super) fn stdin(&self, id: &TaskId) -> Result<Option<OwnedFd>> {
        if self.submission.stdin.as_ref() != Some(id) {
            return Ok(None);
        }
        let stdin = self.terminal.lock().unwrap_or_else(PoisonError::into_inner);
        let copy = stdin.as_ref().map(OwnedFd::try_clone).transpose();
        copy.map_err(|error| Error::io("pass the standard input on", &error))
    }

    /// Has a task mount directories in volumes, without following links.
    pub(super) fn mount_subpaths(&self, id: &TaskId, bundle: &mut Bundle) -> Result<()> {
        let subpaths = self.provided.get().and_then(|provided| provided.subpaths.get(&id.role));
        provision::mount_linkless(subpaths.map(Vec::as_slice).unwrap_or_default(), bundle)
    }

    /// Where a task's writable layers arrive, and the end for its container: of the first instance of a role on the files
    /// of the host, whose user may take what it writes there for files of the host.
    pub(super) fn expected_layers(
        &self,
        id: &TaskId,
        root: &Root,
    ) -> Result<Option<(ExpectedLayers, OwnedFd)>> {
        let on_host = self.plan.role(&id.role).and_then(|role| self.plan.image_of(role));
        let on_host = on_host.is_some_and(|image| matches!(image.source, ImageSource::Host { .. }));
        if on_host && id.index == 0 { ExpectedLayers::of(root) } else { Ok(None) }
    }

    /// Allocates host resources for a task, and its terminal if it gets one.
    pub(super) fn allocate(
        &self,
        task: TaskNumber,
        id: &TaskId,
        directory: &Path,
        attempt: u32,
        memory_bytes: Option<u64>,
    ) -> Result<(TaskBundle, Option<OwnedFd>)> {
        let provided =
            self.provided.get().ok_or_else(|| Error::new(Kind::State, "the job is not prepared yet"))?;
        let mut given = provision::prepare_task(provided, id, directory)?;
        let spec = &mut given.bundle.config.spec;
        let console = if self.submission.terminal.as_ref() == Some(id) {
            self.terminal.lock().unwrap_or_else(PoisonError::into_inner).take()
        } else {
            None
        };
        let mut changed = console.is_some();
        if changed && let Some(process) = spec.process_mut() {
            process.set_terminal(Some(true));
        }
        if let Some(process) = spec.process_mut().as_mut().filter(|_| self.plan.preemption.is_some()) {
            changed |= attempt > 1;
            tell_attempt(process.env_mut().get_or_insert_default(), attempt);
        }
        changed |= spec.process_mut().as_mut().is_some_and(name_node);
        if let Some(bytes) = memory_bytes {
            changed |= set_memory(spec, bytes);
        }
        if let Some(network) = &*self.network() {
            changed |= network.attach(task, spec)?;
        }
        if changed {
            given.bundle.text = serde_json::to_vec(spec).map_err(|error| {
                Error::new(Kind::Config, format!("the configuration of `{id}` cannot be written: {error}"))
            })?;
        }
        Ok((given, console))
    }
}

/// Tells a program that it is another attempt.
fn tell_attempt(env: &mut Vec<String>, attempt: u32) {
    if attempt > 1 {
        for (name, value) in [(ATTEMPT, attempt.to_string()), (RESUME, "1".to_owned())] {
            env.retain(|variable| variable.split('=').next() != Some(name));
            env.push(format!("{name}={value}"));
        }
    }
}

/// Raises the memory limit of a container. What was the limit of memory and swap together grows as much.
fn set_memory(spec: &mut Spec, bytes: u64) -> bool {
    let resources = spec.linux_mut().as_mut().and_then(|linux| linux.resources_mut().as_mut());
    let Some(memory) = resources.and_then(|resources| resources.memory_mut().as_mut()) else { return false };
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    let Some(limit) = memory.limit().filter(|limit| *limit > 0 && *limit < bytes) else { return false };
    if let Some(swap) = memory.swap().filter(|swap| *swap > 0) {
        memory.set_swap(Some(swap.saturating_add(bytes - limit)));
    }
    memory.set_limit(Some(bytes));
    true
}
