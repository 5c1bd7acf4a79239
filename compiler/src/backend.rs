//! The interface of backends, and what they can express. The table of backends is in [`crate::backends`].

pub mod address;
pub mod capability;
pub mod command;
pub mod errors;
pub mod limits;
pub mod preflight;
pub mod reasons;
pub mod signals;
pub mod tasks;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_schema::plan::{CODE, CODE_ARCHIVE, JobPlan, VolumeSource};
use jobc_schema::target::{GpuInjection, PluginName};
use jobc_schema::{BackendName, Pointer};
use serde_json::Value;

use crate::diagnostic::Sink;
use crate::emit::dockerfile::Dockerfile;
use crate::files::Files;

pub use address::{Address, render};
pub use capability::{Capability, Support};
pub use errors::{PluginError, Unsupported};

/// Turns a plan into the files of one format.
pub trait Backend: Sync {
    /// Its name.
    fn name(&self) -> BackendName;

    /// One line for `jobc backends`.
    fn about(&self) -> &str;

    /// Whether it can express something for this job; the lower pass asks before it calls [`Backend::lower`] and
    /// reports what it cannot at the line that requests it.
    fn support(&self, capability: Capability, job: &JobPlan) -> Support;

    /// Whether it can express something at one place of the job. A backend whose answer depends on the role or the
    /// volume implements this; the lower pass calls it.
    fn support_at(&self, capability: Capability, _place: &Pointer, job: &JobPlan) -> Support {
        self.support(capability, job)
    }

    /// Whether it has anything to write for the job: a job without built images has no Dockerfiles.
    fn applies(&self, _job: &JobPlan) -> bool {
        true
    }

    /// Lowers a job to files, relative to `<target>/<backend>/`. Errors that only this backend can detect, such as a
    /// derived name that is too long, go to the sink.
    fn lower(&self, job: &JobPlan, context: &Context<'_>, sink: &mut Sink) -> Vec<File>;

    /// Finds what [`Backend::lower`] would find, and makes no files: for callers that only need the findings. Backends
    /// whose main work is the files override this to report findings without making them.
    fn check(&self, job: &JobPlan, context: &Context<'_>, sink: &mut Sink) {
        self.lower(job, context, sink);
    }
}

/// Finds backends that are not built in.
pub trait Plugins: Sync {
    /// The plug-in of that name; nothing if there is none.
    ///
    /// # Errors
    ///
    /// The plug-in exists but cannot be used.
    fn find(&self, name: PluginName) -> Result<Option<&dyn Backend>, PluginError>;
}

/// What may be lost of a job, with a warning, where a backend cannot express it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Losses {
    /// Nothing.
    #[default]
    Refuse,
    /// What a backend marks as lossy: `--allow-lossy`.
    Allow,
    /// Also what a backend refuses. The files are looked at, and never run.
    Drop,
}

impl Losses {
    /// By the option `--allow-lossy`.
    pub fn new(allow_lossy: bool) -> Self {
        if allow_lossy { Self::Allow } else { Self::Refuse }
    }

    /// Whether what is lossy is a warning.
    pub fn allowed(self) -> bool {
        self != Self::Refuse
    }
}

/// Inputs of a backend besides the plan.
#[derive(Clone)]
pub struct Context<'a> {
    /// Files next to the job file.
    pub files: &'a dyn Files,
    /// The relative path from the output directory of the target to that of the job file, such as `../../..`, for bind
    /// mounts of relative paths.
    pub to_job: Utf8PathBuf,
    /// The GPU setup in OCI bundles: that of the command line, else of the target.
    pub gpu_injection: Option<GpuInjection>,
    /// What may be lost of the job.
    pub losses: Losses,
    /// Backends that are not built in.
    pub plugins: Option<&'a dyn Plugins>,
    /// All jobs of the build: the combinations of a matrix, for each target.
    pub all_jobs: &'a [JobPlan],
}

/// One file to write.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    /// The path, relative to `<target>/<backend>/`.
    pub path: Utf8PathBuf,
    /// Permission bits.
    pub mode: u32,
    /// Its content.
    pub content: Content,
    /// Where its parts come from, for the source map.
    pub origins: Vec<Origin>,
}

/// The content of a file: structure, which only `emit` turns into bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// A YAML document.
    Yaml(Value),
    /// A JSON document.
    Json(Value),
    /// A Dockerfile.
    Dockerfile(Dockerfile),
    /// Plain text.
    Text(String),
    /// Bytes of another format.
    Bytes(Vec<u8>),
}

/// Where a part of a file comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The part.
    pub part: FilePart,
    /// Where it comes from.
    pub from: PartSource,
}

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilePart {
    /// A JSON Pointer into a YAML or JSON file.
    Pointer(Pointer),
    /// A line, from 1; for a Dockerfile the number of the instruction, from 0, which emit turns into its line.
    Line(u32),
}

/// Where a part of a file comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartSource {
    /// A place of the job file.
    Spec(Pointer),
    /// A setting of the target, by its pointer below the target.
    Target(Pointer),
    /// A default, as text: `the default of Kubernetes`.
    Default(&'static str),
}

impl File {
    /// A file readable by all, without origins yet.
    pub fn new(path: impl Into<Utf8PathBuf>, content: Content) -> Self {
        Self { path: path.into(), mode: 0o644, content, origins: vec![] }
    }

    /// The archive with the code of a job.
    pub fn code(job: &JobPlan, context: &Context<'_>) -> Option<Self> {
        let VolumeSource::Code { path, .. } = &job.volumes.get(CODE)?.source else { return None };
        let packed = context.files.code(Utf8Path::new(path)).ok()??;
        Some(Self::new(CODE_ARCHIVE, Content::Bytes(packed.bytes.clone())))
    }

    /// Notes that a part comes from a place of the job file.
    pub fn origin(&mut self, part: &Pointer, spec: &Pointer) {
        self.origins
            .push(Origin { part: FilePart::Pointer(part.clone()), from: PartSource::Spec(spec.clone()) });
    }
}
