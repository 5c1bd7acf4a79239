//! Threads that create attempts of tasks and remove what is left of them, so that the supervisor's event loop does not
//! block.
//!
//! The kernel kills a container when the *thread* that made it ends (prctl(2), `PR_SET_PDEATHSIG`): these threads end
//! with the supervisor's process and not before.

use std::fmt::Debug;
use std::fs::OpenOptions;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use rustix::fs::OFlags;
use rustix::pipe::{PipeFlags, pipe_with};

use super::container_process::ContainerProcess;
use super::context::JobContext;
use super::initial_record;
use super::mailbox::Sender;
use super::message::{Message, PendingTask};
use super::program_error;
use crate::discarded::{ExpectedLayers, WrittenLayers};
use crate::lifecycle::TaskNumber;
use crate::stall::examine::ExamineRequest;
use jobc_container::bundle::Bundle;
use jobc_container::cgroup::UnenforcedLimit;
use jobc_container::container::Container;
use jobc_container::container::create::{self, CreateRequest, StartMode};
use jobc_container::options::Options;
use jobc_container::state::Id;
use jobc_sys::error::{Error, Result};
use jobc_sys::id::TaskId;

/// More threads do not make a gang start sooner: they wait for each other in the kernel.
const THREADS: usize = 4;

/// Something to do that takes its time.
#[derive(Debug)]
pub(super) enum SpawnerRequest {
    /// Make an attempt that waits to be let go.
    Create {
        /// The task's number.
        task: TaskNumber,
        /// The task.
        id: TaskId,
        /// The attempt.
        attempt: u32,
        /// Its memory in bytes, where that is not the plan's.
        memory_bytes: Option<u64>,
    },
    /// Read the metrics in files of a task that runs.
    ReadNumbers {
        /// The task's number.
        task: TaskNumber,
        /// Its name.
        id: TaskId,
        /// The attempt.
        attempt: u32,
    },
    /// Look at tasks that make no progress.
    Examine(ExamineRequest),
    /// Remove what an attempt has left, and read the metrics in its files for the last time.
    Remove {
        /// The task's number.
        task: TaskNumber,
        /// Its name.
        id: TaskId,
        /// The container, whose first process has ended; `None` if the attempt was on another host.
        container: Option<Box<Container>>,
        /// The writable layers of its root, if what is in them is to be named.
        layers: Option<WrittenLayers>,
    },
}

/// Makes what runs the attempts of tasks.
pub(super) trait TaskSpawner: Debug + Send + Sync {
    /// Creates a task's attempt, held before its program.
    /// `memory_bytes` is its memory where that is not the plan's.
    fn create(
        &self,
        task: TaskNumber,
        id: &TaskId,
        attempt: u32,
        memory_bytes: Option<u64>,
    ) -> Result<PendingTask>;

    /// How many attempts are made at once.
    fn threads(&self) -> usize;
}

/// Makes containers of this host.
#[derive(Debug)]
pub(super) struct ContainerSpawner(pub(super) Arc<JobContext>);

impl TaskSpawner for ContainerSpawner {
    fn create(
        &self,
        task: TaskNumber,
        id: &TaskId,
        attempt: u32,
        memory_bytes: Option<u64>,
    ) -> Result<PendingTask> {
        create_container(&self.0, task, id, attempt, memory_bytes)
    }

    fn threads(&self) -> usize {
        std::thread::available_parallelism().map_or(1, std::num::NonZero::get).clamp(1, THREADS)
    }
}

/// The threads.
#[derive(Debug)]
pub(super) struct Spawner {
    work: mpsc::Sender<SpawnerRequest>,
}

impl Spawner {
    /// Starts the threads.
    pub(super) fn start(
        tasks: &Arc<dyn TaskSpawner>,
        share: &Arc<JobContext>,
        mail: &Sender<Message>,
    ) -> Self {
        let (work, receiver) = mpsc::channel();
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..tasks.threads() {
            let (receiver, share, mail) = (Arc::clone(&receiver), Arc::clone(share), mail.clone());
            let tasks = Arc::clone(tasks);
            std::thread::spawn(move || {
                loop {
                    let next = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(work) = next else { break };
                    mail.send(carry_out(tasks.as_ref(), &share, work));
                }
            });
        }
        Self { work }
    }

    /// Hands work to the threads.
    pub(super) fn submit(&self, work: SpawnerRequest) {
        // The threads live as long as the process.
        let _ = self.work.send(work);
    }
}

fn carry_out(tasks: &dyn TaskSpawner, share: &JobContext, work: SpawnerRequest) -> Message {
    match work {
        SpawnerRequest::Create { task, id, attempt, memory_bytes } => {
            let held = tasks.create(task, &id, attempt, memory_bytes).map(Box::new);
            Message::Created { task, attempt, held }
        }
        SpawnerRequest::ReadNumbers { task, id, attempt } => {
            Message::Numbers { task, attempt, numbers: share.read_numbers(&id) }
        }
        SpawnerRequest::Examine(request) => {
            let examination = request.carry_out(&share.containers);
            Message::Examined(request, examination)
        }
        SpawnerRequest::Remove { task, id, container, layers } => {
            let numbers = share.read_numbers(&id);
            let home = std::env::var_os("HOME").map(PathBuf::from);
            let home = home.filter(|home| home.is_absolute() && home != Path::new("/"));
            let discarded = layers.map(|layers| layers.discarded(home.as_deref())).unwrap_or_default();
            let left = container.map(|container| remove(share, *container)).unwrap_or_default();
            Message::Removed { task, left, numbers, discarded }
        }
    }
}

/// Removes a container; returns what could not be removed.
fn remove(share: &JobContext, container: Container) -> Vec<String> {
    let removed = container
        .lock()
        .and_then(|()| if share.submission.keep { Ok(vec![]) } else { container.delete(true) });
    match removed {
        Ok(failed) => failed.iter().map(ToString::to_string).collect(),
        Err(error) => vec![error.to_string()],
    }
}

/// The name of the container of a task's attempt.
pub(super) fn container_name(share: &JobContext, id: &TaskId, attempt: u32) -> Result<Id> {
    let again = if attempt > 1 { format!(".{attempt}") } else { String::new() };
    Id::new(&format!("{}.{id}{again}", share.directory.id))
}

/// Creates the container of a task's attempt, held before its program.
fn create_container(
    share: &JobContext,
    task: TaskNumber,
    id: &TaskId,
    attempt: u32,
    memory_bytes: Option<u64>,
) -> Result<PendingTask> {
    let name = container_name(share, id, attempt)?;
    let begun = create::reserve(&share.containers, &name)?;
    let (mut given, console) = share.allocate(task, id, begun.directory(), attempt, memory_bytes)?;
    if let Some(gpus) = share.gpus().filter(|_| attempt > 1) {
        given.notes.extend(gpus.wait_for_memory(id, &share.stopped));
    }
    share.mount_subpaths(id, &mut given.bundle)?;
    let machine = |what: &'static str| move |errno| Error::system(what, errno);
    let (held, hold) = pipe_with(PipeFlags::CLOEXEC).map_err(machine("create a pipe"))?;
    let (streams, output) = if console.is_some() {
        (None, None)
    } else {
        let [out, error] = [output_pipe()?, output_pipe()?];
        let input = share.stdin(id)?.map_or_else(open_null, Ok)?;
        (Some([input, out.1, error.1]), Some([out.0, error.0]))
    };
    let (layers, receiver) = share.expected_layers(id, &given.root)?.unzip();
    let lowers = given.root.directories().to_vec();
    let request = CreateRequest {
        options: Options {
            layers: receiver,
            allow_unenforced: !share.submission.enforce_limits,
            hold: Some(held),
            streams,
            open_files: Some(share.open_files),
            console,
            secret_environment: given.secret_environment,
            init: given.init,
            ..Options::default()
        },
        root: Some(given.root),
        ..CreateRequest::default()
    };
    let mounts = mount_count(&given.bundle);
    let made = begun
        .create(&given.bundle, request, StartMode::AttachHeld, None)
        .map_err(|error| program_error::not_found(error, &given.bundle, &lowers))?;
    made.container.unlock();
    let mut notes = given.notes;
    notes.extend(made.container.warnings.iter().cloned());
    notes.extend(UnenforcedLimit::in_words(&made.container.unenforced));
    let unenforced = initial_record::unenforced(&made.container.unenforced);
    let layers = layers.and_then(ExpectedLayers::receive);
    let (stop_signal, init) = (given.stop_signal, given.init);
    Ok(PendingTask {
        process: Box::new(ContainerProcess::new(made, hold, layers, stop_signal, init)),
        output,
        notes,
        unenforced,
        mounts: Some(mounts),
        node: None,
        earlier: 0,
    })
}

fn mount_count(bundle: &Bundle) -> usize {
    bundle.config.spec.mounts().iter().flatten().count()
}

/// A pipe for a container's output: the supervisor's end does not wait, the container's does.
fn output_pipe() -> Result<(OwnedFd, OwnedFd)> {
    let machine = |errno| Error::system("create a pipe for a task's output", errno);
    let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC).map_err(machine)?;
    rustix::fs::fcntl_setfl(&ours, OFlags::NONBLOCK).map_err(machine)?;
    Ok((ours, theirs))
}

fn open_null() -> Result<OwnedFd> {
    let null = OpenOptions::new().read(true).write(true).open("/dev/null").map(OwnedFd::from);
    null.map_err(|error| Error::io("open `/dev/null`", &error))
}
