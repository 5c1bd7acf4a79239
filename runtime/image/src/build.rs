//! Builds an image of a Dockerfile: a graph of stages in, an image in the store out.
//!
//! ```text
//! dockerfile   text → stages; nothing is carried out there
//! build        the graph: stages in parallel, each after those it depends on
//!   stage      one instruction after the other: settings, or a step that makes a layer
//!   cache      a step's key → the layer that it created
//!   files      COPY: found below one file descriptor, placed below another
//!   run        RUN: a container over the layers so far
//!   layer      the changes of a step → an archive in the store, and a directory for the next step
//!   worker     the process that does this: root, or this program in an unprivileged user's user namespace
//! ```
//!
//! A build that ends at any moment leaves complete layers, which the next one finds in the cache; mounts have no mount
//! point, and the containers of commands end with the builder.

pub mod access;
mod agent;
mod archive;
mod cache;
mod container;
mod contents;
pub mod dockerignore;
mod download;
mod extras;
mod files;
mod foreign;
mod git;
mod layer;
mod network;
mod overlay;
mod run;
mod scheduling;
mod settings;
mod shared_cache;
mod source_listing;
mod stage;
mod tree_writer;
mod work;
pub mod worker;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::time::{Duration, UNIX_EPOCH};

use indexmap::IndexMap;

use crate::config::Config;
use crate::config::{History, RootFs};
use crate::fetch::Fetch;
use crate::manifest::media;
use crate::manifest::{Descriptor, Manifest};
use crate::platform::Platform;
use crate::progress::{Progress, ProgressFn};
use crate::store::ContentPin;
use crate::store::{Image, Store};
use crate::unpack;
use access::Access;
use cache::{Cache, Key, Layer};
use contents::ContentDigests;
use files::{CopyOrigin, CopySource};
use jobc_container::secret::Secret;
use jobc_dockerfile::ignore::Ignore;
use jobc_dockerfile::{Build, Refusal, Span};
use jobc_schema::digest::Digest;
use jobc_schema::reference::Reference;
use jobc_sys::error::{Error, Kind, Result, describe_io};
use network::{NetworkLease, SharedNetwork};
use scheduling::{Permits, Results};
use settings::Settings;
use work::{StepDirectory, WorkDirectory};

pub use extras::{Extras, NamedContext, Rlimit};
pub use git::{FetchedContext, PinnedFiles, PinnedRequest};
pub use layer::Compression;
pub use oci_spec::runtime::PosixRlimitType;
pub use shared_cache::{export_cache, import_cache};

/// The input and the options of a build.
pub struct Request<'a> {
    /// The graph of stages, as [`dockerfile::read`](jobc_dockerfile::read) gives it.
    pub build: &'a Build,
    /// The build context, from which `COPY` copies; `None` if there is none.
    pub context: Option<PathBuf>,
    /// Files of the context that are ignored.
    pub ignore: Ignore,
    /// Labels for the image, besides those of the Dockerfile.
    pub labels: IndexMap<String, String>,
    /// The names that the image gets.
    pub tags: Vec<Reference>,
    /// Secrets by their ids.
    pub secrets: IndexMap<String, Secret>,
    /// Whether steps are run although their results are cached.
    pub no_cache: bool,
    /// The digests by which images are taken that the Dockerfile names otherwise, by those names (`jobc.lock`).
    pub locked: IndexMap<String, Digest>,
    /// Whether base images are resolved at their registries even if the store has them.
    pub pull: bool,
    /// The latest time that files and the image may have, in seconds since 1970: `SOURCE_DATE_EPOCH`.
    ///
    /// The same context then gives the same image, whenever and wherever it is built.
    pub epoch: Option<i64>,
    /// The platform of the image.
    pub platform: Platform,
    /// How layers are compressed.
    pub compression: Compression,
    /// The fetcher of base images that the store lacks.
    pub fetch: Option<&'a dyn Fetch>,
    /// The access of the build to networks, agents and other hosts.
    pub access: Access<'a>,
    /// Options that few builds use.
    pub extras: Extras,
}

/// Why the build failed.
#[derive(Debug)]
pub enum BuildError {
    /// The text of the Dockerfile is at fault.
    Refused(Vec<Refusal>),
    /// A step failed.
    Failed(Box<Failure>),
}

/// The failure of an instruction.
#[derive(Debug)]
pub struct Failure {
    /// The instruction.
    pub span: Option<Span>,
    /// The error.
    pub error: Error,
    /// The last lines that a command has written.
    pub output: Vec<Vec<u8>>,
}

impl std::convert::From<Error> for BuildError {
    fn from(error: Error) -> Self {
        Self::Failed(Box::new(Failure { span: None, error, output: Vec::new() }))
    }
}

impl std::fmt::Display for BuildError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(refusals) => {
                let all: Vec<&str> = refusals.iter().map(|refusal| refusal.message.as_str()).collect();
                f.write_str(&all.join("; "))
            }
            Self::Failed(failure) => failure.error.fmt(f),
        }
    }
}

impl std::error::Error for BuildError {}

/// Builds an image, and gives it its names. Returns its manifest's descriptor.
///
/// It ends soon after `stopped` has become true.
///
/// # Errors
///
/// See [`BuildError`]. What was built until then is in the cache.
pub fn build(
    store: &Store,
    request: &Request<'_>,
    on_progress: ProgressFn<'_>,
    stopped: &AtomicBool,
) -> std::result::Result<Descriptor, BuildError> {
    let refused = network::check(request.build, &request.access);
    if !refused.is_empty() {
        return Err(BuildError::Refused(refused));
    }
    let context = request.context.as_deref().map(context).transpose()?;
    WorkDirectory::sweep(store)?;
    let builder = Builder {
        store,
        request,
        build: request.build,
        progress: on_progress,
        canceled: AtomicBool::new(false),
        cache: Cache::new(store, request.no_cache)?,
        contents: ContentDigests::of(store, context.as_deref().unwrap_or(Path::new(""))),
        context,
        network: SharedNetwork::default(),
        work: OnceLock::new(),
        work_error: Mutex::default(),
        permits: Permits::new(parallel_steps()),
        results: Results::new(request.build.stages.len()),
        pins: Mutex::default(),
        step_directories: Mutex::default(),
        owners_reported: AtomicBool::new(false),
    };
    let done = builder.stages(stopped)?;
    let descriptor = builder.image(&done)?;
    for tag in &request.tags {
        store.tag(tag, &descriptor)?;
    }
    builder.contents.save();
    Ok(descriptor)
}

/// How many steps run at the same time.
fn parallel_steps() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The context's directory without links in its path.
fn context(path: &Path) -> Result<PathBuf> {
    let failed = |why: &str| {
        Error::new(Kind::Config, format!("the build context `{}` cannot be read: {why}", path.display()))
            .help("name a directory")
    };
    let path = std::fs::canonicalize(path).map_err(|error| failed(&describe_io(&error)))?;
    if path.is_dir() { Ok(path) } else { Err(failed("it is not a directory")) }
}

/// How often cancellation is checked, in milliseconds.
const CANCEL_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// State that the stages of a build share.
struct Builder<'a> {
    store: &'a Store,
    request: &'a Request<'a>,
    build: &'a Build,
    progress: ProgressFn<'a>,
    /// Whether the build is canceled: by the user, or because a stage failed.
    canceled: AtomicBool,
    cache: Cache<'a>,
    contents: ContentDigests,
    context: Option<PathBuf>,
    /// Dropped before the directory that it has a file in.
    network: SharedNetwork,
    /// Created for the first step that runs: a build whose steps are all cached needs none.
    work: OnceLock<WorkDirectory>,
    work_error: Mutex<Option<Error>>,
    permits: Permits,
    results: Results<Arc<StageResult>>,
    pins: Mutex<Vec<ContentPin>>,
    /// Layers that this build has made: the directories they were made in serve the steps that follow.
    step_directories: Mutex<HashMap<Digest, StepDirectory>>,
    owners_reported: AtomicBool,
}

/// The state of a stage during the build.
#[derive(Clone, Debug)]
struct StageResult {
    settings: Settings,
    platform: Platform,
    /// Its layers, the lowest first.
    layers: Vec<Layer>,
    /// The inputs that its files depend on.
    key: Digest,
    /// When its last layer was made, in seconds since 1970.
    created: Option<u64>,
    history: Vec<History>,
}

impl StageResult {
    fn empty() -> Self {
        Self {
            settings: Settings::default(),
            platform: Platform::here(),
            layers: Vec::new(),
            key: Key::of("nothing").finish(),
            created: None,
            history: Vec::new(),
        }
    }
}

impl Builder<'_> {
    /// Builds all stages, each when those that it takes from are done; returns the target's.
    fn stages(&self, stopped: &AtomicBool) -> std::result::Result<Arc<StageResult>, BuildError> {
        let failures = Mutex::new(Vec::new());
        let one = |index: usize| {
            let result = stage::build(self, index).map(Arc::new);
            let made = match result {
                Ok(made) => Some(made),
                Err(error) => {
                    failures.lock().unwrap_or_else(PoisonError::into_inner).push(error);
                    self.cancel();
                    None
                }
            };
            self.results.set(index, made);
        };
        let (sender, receiver) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                while let Err(mpsc::RecvTimeoutError::Timeout) = receiver.recv_timeout(CANCEL_POLL_INTERVAL) {
                    if stopped.load(Ordering::Relaxed) {
                        self.cancel();
                    }
                }
            });
            // The last stage is the target. Stages that it copies from have their own threads.
            let (last, others) = (self.build.stages.len().saturating_sub(1), &one);
            for index in 0..last {
                scope.spawn(move || others(index));
            }
            one(last);
            drop(sender);
        });
        let mut failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
        // An interrupted step reports its own error.
        if stopped.load(Ordering::Relaxed) && !failures.is_empty() {
            return Err(stage::canceled().into());
        }
        // The first that failed has ended the others.
        if !failures.is_empty() {
            return Err(failures.swap_remove(0));
        }
        self.results.get(self.build.target).ok_or_else(|| stage::canceled().into())
    }

    /// Gives the build up.
    fn cancel(&self) {
        self.canceled.store(true, Ordering::Relaxed);
        self.results.wake();
    }

    fn is_canceled(&self) -> bool {
        self.canceled.load(Ordering::Relaxed)
    }

    /// Waits for another stage.
    fn wait_for_stage(&self, index: usize) -> Result<Arc<StageResult>> {
        self.results.wait(index, &self.canceled).ok_or_else(stage::canceled)
    }

    /// The directory of this build.
    fn work(&self) -> Result<&WorkDirectory> {
        if let Some(work) = self.work.get() {
            return Ok(work);
        }
        // Two stages may come at once, and one of them makes it.
        let _turn = self.work_error.lock().unwrap_or_else(PoisonError::into_inner);
        if self.work.get().is_none() {
            let _ = self.work.set(WorkDirectory::create(self.store)?);
        }
        self.work.get().ok_or_else(stage::canceled)
    }

    /// The context's directory.
    fn context(&self) -> Result<PathBuf> {
        self.context.clone().ok_or_else(|| {
            Error::new(Kind::Config, "no build context to copy from").help("name a directory as the context")
        })
    }

    /// Adds to a key what the sources name; returns the digest of the listing, by which it is seen that nothing has
    /// changed when they are copied.
    fn add_sources_to_key(
        &self,
        key: &mut Key,
        files: &CopyOrigin,
        sources: &[CopySource],
        exclude: &Ignore,
        with_parents: bool,
    ) -> Result<Digest> {
        let open = files.open()?;
        let found = open.find(sources, exclude, with_parents)?;
        for found in &found {
            let Some(tree) = open.tree() else { break };
            self.contents
                .add_to_key(key, tree, found, &self.canceled)
                .map_err(|error| Error::new(Kind::System, "cannot read the context").because(error))?;
        }
        Ok(files::listing_digest(&found))
    }

    /// Keeps what is built upon from being collected.
    fn pin(&self, digest: &Digest) -> Result<()> {
        let hold = self.store.pin(std::slice::from_ref(digest))?;
        self.pins.lock().unwrap_or_else(PoisonError::into_inner).push(hold);
        Ok(())
    }

    /// The directories of layers, lowest first. Those that this build has created exist; the others below them are
    /// unpacked if necessary.
    fn directories(&self, layers: &[Layer]) -> Result<Vec<PathBuf>> {
        let (below, own) = {
            let kept = self.step_directories.lock().unwrap_or_else(PoisonError::into_inner);
            let directory = |layer: &Layer| kept.get(&layer.diff_id).map(|step| step.path().join("upper"));
            let own: Vec<PathBuf> = layers.iter().rev().map_while(directory).collect();
            (&layers[..layers.len() - own.len()], own)
        };
        let mut directories = if below.is_empty() { Vec::new() } else { self.unpack(below)? };
        directories.extend(own.into_iter().rev());
        Ok(directories)
    }

    fn unpack(&self, layers: &[Layer]) -> Result<Vec<PathBuf>> {
        let Platform { os, architecture, variant, .. } = self.request.platform.clone();
        let mut config = Config { architecture, variant, os, ..Config::default() };
        config.rootfs.diff_ids = layers.iter().map(|layer| layer.diff_id.clone()).collect();
        let blobs = layers.iter().map(|layer| layer.blob.clone()).collect();
        // As a separate image: if another process unpacks it, it finds the layers in the store by this.
        let manifest = Manifest::new(self.store.put_json(&config, media::CONFIG)?, blobs);
        let descriptor = self.store.put_json(&manifest, media::MANIFEST)?;
        unpack::layers(self.store, &Image { descriptor, manifest, config }, self.progress, &self.canceled)
    }

    /// Keeps the directory that a layer was made in until the build is done; another one of the same content stays.
    fn keep_step(&self, diff_id: &Digest, step: StepDirectory) {
        self.step_directories
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(diff_id.clone())
            .or_insert(step);
    }

    /// A place on the network that this build's commands share; `None` if the caller makes no networks. That it has no
    /// uplink is reported once.
    fn lease_network(&self) -> Result<Option<NetworkLease<'_>>> {
        let commands = self.build.stages.iter().flat_map(|stage| &stage.instructions);
        let runs =
            commands.filter(|instruction| matches!(instruction.kind, jobc_dockerfile::Kind::Run(_))).count();
        // Commands of a base image's triggers are not counted: as many run at once as steps do.
        let places = parallel_steps().min(runs + self.build.stages.len());
        let Some((lease, is_new)) = self.network.lease(&self.request.access, self.work()?, places)? else {
            return Ok(None);
        };
        if let (true, Some(why)) = (is_new, lease.no_uplink()) {
            (self.progress)(Progress::Note(format!(
                "the build's network has no uplink: {why}; `jobc image build --network host` uses the host's network"
            )));
        }
        Ok(Some(lease))
    }

    /// Says once that owners are not kept.
    fn report_owners_lost(&self) {
        if !self.owners_reported.swap(true, Ordering::Relaxed) {
            let note = "files of other owners belong to root in the image: this user has only one id; install `uidmap` and let root grant ids in /etc/subuid and /etc/subgid";
            (self.progress)(Progress::Note(note.to_owned()));
        }
    }

    /// Writes the image.
    fn image(&self, done: &StageResult) -> Result<Descriptor> {
        let Settings { mut execution, author, .. } = done.settings.clone();
        execution.labels.extend(self.request.labels.clone());
        let Platform { os, architecture, variant, .. } = done.platform.clone();
        let diff_ids = done.layers.iter().map(|layer| layer.diff_id.clone()).collect();
        let config = Config {
            created: done.created.map(time),
            author,
            architecture,
            variant,
            os,
            config: execution,
            rootfs: RootFs { diff_ids, ..RootFs::default() },
            history: done.history.clone(),
            ..Config::default()
        };
        let config = self.store.put_json(&config, media::CONFIG)?;
        let layers = done.layers.iter().map(|layer| layer.blob.clone()).collect();
        let mut manifest = Manifest::new(config, layers);
        manifest.annotations.extend(self.request.extras.annotations.clone());
        self.store.put_json(&manifest, media::MANIFEST)
    }
}

/// A time as images have it (RFC 3339).
fn time(seconds: u64) -> String {
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(seconds)).to_string()
}

#[cfg(test)]
mod tests;
