//! Images of a plan.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::image::{Conda, Copy, HostImage, Python, is_false};
use crate::pointer::Pointer;

/// An image that roles run in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImagePlan {
    /// Where the image comes from.
    pub source: ImageSource,
    /// Image name for a target: the reference itself, or `<job>-<name>:<digest>` for a built image, prefixed with the
    /// registry of the target.
    pub reference: String,
    /// Where the job file declares it, as a JSON Pointer.
    #[schemars(with = "String")]
    pub declared_at: Pointer,
}

/// Where an image comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum ImageSource {
    /// A registry, by reference.
    Reference {},
    /// The root filesystem of the host under an overlay.
    Host {
        /// Whether the directory in which the job is started is mounted, writable and at its own path.
        #[serde(default, skip_serializing_if = "is_false")]
        cwd: bool,
        /// Whether the active Python virtual environment or conda environment is used.
        #[serde(default, skip_serializing_if = "is_false")]
        venv: bool,
        /// Names of environment variables of the user who starts the job, or beginnings of names with a `*`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        env: Vec<String>,
    },
    /// An archive or a directory on the host: an OCI layout, the output of `docker save`, or a root filesystem.
    File {
        /// Its path, relative to the job file.
        path: String,
    },
    /// A build from a block of the job file.
    Build {
        /// Base image.
        from: String,
        /// Build arguments and their values. The steps already contain the values; they are kept for the ARG lines of
        /// the Dockerfile.
        #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
        args: IndexMap<String, String>,
        /// Steps in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        steps: Vec<BuildStep>,
        /// Working directory of commands.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workdir: Option<String>,
        /// User of commands.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<String>,
        /// ENTRYPOINT of the image.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        entrypoint: Option<Vec<String>>,
        /// Labels.
        #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
        labels: IndexMap<String, String>,
        /// Platform to build for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        platform: Option<String>,
        /// Secrets that `run` steps can read.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        secrets: Vec<String>,
    },
    /// A Dockerfile of the user.
    Dockerfile {
        /// The file, relative to the job file.
        path: String,
        /// The build context, relative to the job file.
        context: String,
        /// The stage to build.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<String>,
        /// Build arguments.
        #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
        args: IndexMap<String, String>,
        /// Base image of the built stage, with arguments expanded. Missing if the file does not determine it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        base: Option<String>,
        /// `ENV` values of the built stage. They contain information about CUDA and GPUs.
        #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
        env: IndexMap<String, String>,
        /// `ENTRYPOINT` of the built stage; that of its base image is not known.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        entrypoint: Vec<String>,
        /// Digests in `jobc.lock` of the images that the file names, by name.
        #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
        locked: IndexMap<String, String>,
    },
}

/// One step of a build.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum BuildStep {
    /// Environment variables for later steps.
    Env(IndexMap<String, String>),
    /// Debian packages.
    Apt(Vec<String>),
    /// Conda packages.
    Conda(Conda),
    /// Python and the packages that pip installs.
    Python(Python),
    /// Files from the build context or another image.
    Copy(Copy),
    /// A shell command.
    Run(String),
    /// Working directory of later steps.
    Workdir(String),
    /// User of later steps.
    User(String),
}

impl ImageSource {
    /// The host's own files, with parts of the caller's environment.
    pub fn host(image: &HostImage) -> Self {
        let HostImage { cwd, venv, env } = image.clone();
        Self::Host { cwd, venv, env }
    }

    /// Whether the image is built from files of the job, and not taken from a registry as it is.
    pub fn is_built(&self) -> bool {
        matches!(self, Self::Build { .. } | Self::Dockerfile { .. })
    }
}
