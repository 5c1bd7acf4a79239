//! Images of a plan.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::image::{Conda, Copy, Python};
use crate::pointer::Pointer;

/// An image that roles run in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImagePlan {
    /// Where the image comes from.
    pub source: ImageSource,
    /// What a target calls the image: the reference itself, or `<job>-<name>:<digest>` for one that is built, to be put behind the target's registry.
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
    /// The machine's own root file system under an overlay.
    Host {},
    /// An archive or a folder of the machine: an OCI layout, what `docker save` writes, or a root file system.
    File {
        /// Its path, relative to the job file.
        path: String,
    },
    /// A build from a block of the job file.
    Build {
        /// The image to build on.
        from: String,
        /// Build arguments with their values, already put into the steps; recorded for the Dockerfile's ARG lines.
        #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
        args: IndexMap<String, String>,
        /// The steps in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        steps: Vec<BuildStep>,
        /// The folder commands start in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workdir: Option<String>,
        /// Who commands run as.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<String>,
        /// The image's ENTRYPOINT.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        entrypoint: Option<Vec<String>>,
        /// Labels.
        #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
        labels: IndexMap<String, String>,
        /// The platform to build for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        platform: Option<String>,
        /// Secrets that `run` steps may read.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        secrets: Vec<String>,
    },
    /// A Dockerfile of the user's.
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
        /// The base image of the built stage, with arguments put in; absent where the file does not tell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        base: Option<String>,
        /// `ENV` values of the built stage, which tell about CUDA and GPUs.
        #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
        env: IndexMap<String, String>,
        /// The digests that `jobc.lock` has for images that the file names, by the names.
        #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
        locked: IndexMap<String, String>,
    },
}

/// One step of a build.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum BuildStep {
    /// Environment variables from here on.
    Env(IndexMap<String, String>),
    /// Debian packages.
    Apt(Vec<String>),
    /// Conda packages.
    Conda(Conda),
    /// Python and what pip installs.
    Python(Python),
    /// Files from the context or another image.
    Copy(Copy),
    /// A shell command.
    Run(String),
    /// The folder from here on.
    Workdir(String),
    /// The user from here on.
    User(String),
}

impl ImageSource {
    /// Whether the image is built from files of the job, and not taken from a registry as it is.
    pub fn is_built(&self) -> bool {
        matches!(self, Self::Build { .. } | Self::Dockerfile { .. })
    }
}
