//! Images: `image` and `images`.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::permissions::PATTERN;
use crate::scalar::{EnvValue, Scalar};

/// Image of a role: an image reference, `host`, the path of an archive, or a block that builds or selects one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Image {
    /// An image reference such as `python:3.12-slim`; `host`: the root filesystem of the host under an overlay; or a
    /// path that begins with `./`, `../` or `/`: an archive or a directory with an OCI layout, the output of
    /// `docker save`, or a root filesystem.
    Reference(String),
    /// A block with exactly one of `from`, `use`, `dockerfile`, `host`.
    Block(Box<ImageBlock>),
}

/// A block that builds an image (`from` …), selects a named image (`use`), names a Dockerfile (`dockerfile`), or is the
/// root filesystem of the host with parts of the caller's environment (`host`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImageBlock {
    /// Name of an entry in `images`. No other key is allowed with it.
    #[serde(default, rename = "use", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["tools"]))]
    pub use_: Option<String>,
    /// The root filesystem of the host under an overlay, as `image: host`, with parts of the environment of the user who
    /// starts the job. No other key is allowed with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"cwd": true, "venv": true, "env": ["WANDB_API_KEY"]}]))]
    pub host: Option<HostImage>,
    /// Path of your own Dockerfile, relative to the job file. Can be combined with `context`, `target` and `args`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["docker/Dockerfile"]))]
    pub dockerfile: Option<String>,
    /// Build context: a directory, relative to the job file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = ".", "examples" = ["."]))]
    pub context: Option<String>,
    /// Stage of the Dockerfile to build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["runtime"]))]
    pub target: Option<String>,
    /// Base image. Without other keys, nothing is built and this image is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04"]))]
    pub from: Option<String>,
    /// Build arguments and their values. Use them in this block as `${{ args.NAME }}`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("propertyNames" = {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}, "examples" = [{"PYTHON_VERSION": "3.11"}]))]
    pub args: IndexMap<String, Scalar>,
    /// Debian packages to install: `NAME` or `NAME=VERSION`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["git", "openssh-client"]]))]
    pub apt: Vec<String>,
    /// Conda packages to install.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"packages": ["pytorch=2.4.0"], "channels": ["pytorch", "conda-forge"]}]))]
    pub conda: Option<Conda>,
    /// Python and the packages that pip installs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"packages": ["torch==2.4.0"], "requirements": "requirements.txt"}]))]
    pub python: Option<Python>,
    /// Files to copy from the build context.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [[{"from": ".", "to": "/workspace"}]]))]
    pub copy: Vec<Copy>,
    /// Shell commands to run at the end of the build.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["python -c 'import torch'"]]))]
    pub run: Vec<String>,
    /// Environment variables of the image.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("propertyNames" = {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}, "examples" = [{"OMP_NUM_THREADS": "8"}]))]
    pub env: IndexMap<String, EnvValue>,
    /// Working directory of commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["/workspace"]))]
    pub workdir: Option<String>,
    /// User of commands. A name that does not exist in the image is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([A-Za-z_][A-Za-z0-9_.-]*|[0-9]+)(:([A-Za-z_][A-Za-z0-9_.-]*|[0-9]+))?$"), extend("examples" = ["1000:1000"]))]
    pub user: Option<String>,
    /// ENTRYPOINT of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = [["tini", "--"]]))]
    pub entrypoint: Option<Vec<String>>,
    /// Labels of the image.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("examples" = [{"org.opencontainers.image.source": "https://example.com/repo"}]))]
    pub labels: IndexMap<String, String>,
    /// Platform to build for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[a-z0-9]+/[a-z0-9]+(/v[0-9]+)?$"), extend("examples" = ["linux/amd64"]))]
    pub platform: Option<String>,
    /// Secrets that `run` steps can read at `/run/secrets/NAME`. They are never stored in the image.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["pypi"]]))]
    pub secrets: Vec<String>,
    /// Build steps in your own order, instead of `apt` … `run`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [[{"apt": ["git"]}, {"run": "make install"}]]))]
    pub steps: Vec<Step>,
}

/// Parts of the environment of the user who starts the job. They are looked up when the job starts, so they are in
/// neither the plan nor the built files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostImage {
    /// Mount the directory in which the job is started, writable and at its own path. Commands start in it, unless
    /// `workdir` names another directory.
    #[serde(default, skip_serializing_if = "is_false")]
    #[schemars(extend("examples" = [true]))]
    pub cwd: bool,
    /// Use the active Python virtual environment or conda environment, read-only.
    #[serde(default, skip_serializing_if = "is_false")]
    #[schemars(extend("examples" = [true]))]
    pub venv: bool,
    /// Environment variables to pass, by name; `HF_*` stands for all variables whose names begin with `HF_`, `*` for
    /// all except those of the login session. `env` of the job and of the role take precedence. The values are not
    /// written to any file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(regex(pattern = r"^([A-Za-z_][A-Za-z0-9_]*\*?|\*)$")), extend("examples" = [["WANDB_API_KEY", "HF_*"]]))]
    pub env: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) fn is_false(value: &bool) -> bool {
    !value
}

/// Conda packages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Conda {
    /// Packages: `NAME` or `NAME=VERSION`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["pytorch=2.4.0"]]))]
    pub packages: Vec<String>,
    /// Channels in order of priority.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("default" = ["conda-forge"], "examples" = [["pytorch", "conda-forge"]]))]
    pub channels: Vec<String>,
    /// Environment file, relative to the job file. It is copied automatically.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["environment.yml"]))]
    pub file: Option<String>,
}

/// Python and the packages that pip installs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Python {
    /// Python version, installed if the base image does not have it. Default: the version of the base image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+\.[0-9]+(\.[0-9]+)?|[ -~]*\$\{\{[ -~]*\}\}[ -~]*)$"), extend("examples" = ["3.11"]))]
    pub version: Option<String>,
    /// Packages: `NAME` or `NAME==VERSION`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["torch==2.4.0"]]))]
    pub packages: Vec<String>,
    /// One or more requirements files, relative to the job file. They are copied automatically.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["requirements.txt"]))]
    pub requirements: Option<crate::gpu::OneOrMany>,
    /// Package index to use instead of the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["https://pypi.example.com/simple"]))]
    pub index: Option<String>,
    /// Additional package indexes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["https://wheels.example.com/cu124"]]))]
    pub extra_index: Vec<String>,
}

/// Files to copy from the build context into the image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Copy {
    /// Source: a file or directory of the build context, or of the image `image`.
    #[schemars(length(min = 1), extend("examples" = ["."]))]
    pub from: String,
    /// Destination in the image.
    #[schemars(length(min = 1), extend("examples" = ["/workspace"]))]
    pub to: String,
    /// Image to copy from instead of the build context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["busybox:1.36"]))]
    pub image: Option<String>,
    /// Owner of the copied files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["1000:1000"]))]
    pub owner: Option<String>,
    /// Permission bits of the copied files, as a string: octal digits, or changes of each file's own bits as for chmod(1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = PATTERN), extend("examples" = ["u=rwX,go=rX", "0755"]))]
    pub mode: Option<String>,
}

/// A build step: exactly one of the keys.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub struct Step {
    /// Debian packages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [["git"]]))]
    pub apt: Option<Vec<String>>,
    /// Conda packages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"packages": ["pytorch=2.4.0"]}]))]
    pub conda: Option<Conda>,
    /// Python and the packages that pip installs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"packages": ["torch==2.4.0"]}]))]
    pub python: Option<Python>,
    /// Files to copy from the build context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"from": "src", "to": "/src"}]))]
    pub copy: Option<Copy>,
    /// A shell command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["make install"]))]
    pub run: Option<String>,
    /// Environment variables for later steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"PATH": "/opt/bin:$PATH"}]))]
    pub env: Option<IndexMap<String, EnvValue>>,
    /// Working directory of later steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["/src"]))]
    pub workdir: Option<String>,
    /// User of later steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["1000:1000"]))]
    pub user: Option<String>,
}
