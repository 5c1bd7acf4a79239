//! Images: `image` and `images`.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::scalar::{EnvValue, Scalar};

/// What a role runs in: an image reference, `host` or the path of an archive, or a block that builds or picks one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Image {
    /// A reference such as `python:3.12-slim`; `host`: the machine's own root file system under an overlay; or a path that
    /// begins with `./`, `../` or `/`: an archive or a folder with an OCI layout, what `docker save` writes, or a root file
    /// system.
    Reference(String),
    /// A block with exactly one of `from`, `use`, `dockerfile`.
    Block(Box<ImageBlock>),
}

/// A block that builds an image (`from` …), picks a named one (`use`), or names a Dockerfile (`dockerfile`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImageBlock {
    /// A name under `images`; stands alone.
    #[serde(default, rename = "use", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["tools"]))]
    pub use_: Option<String>,
    /// A Dockerfile of your own, relative to the job file; goes with `context`, `target` and `args`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["docker/Dockerfile"]))]
    pub dockerfile: Option<String>,
    /// The folder whose files the build sees, relative to the job file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = ".", "examples" = ["."]))]
    pub context: Option<String>,
    /// The stage of the Dockerfile to build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["runtime"]))]
    pub target: Option<String>,
    /// The image to build on; alone it builds nothing and is the image itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04"]))]
    pub from: Option<String>,
    /// Build arguments with their values; used in this block as `${{ args.NAME }}`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("propertyNames" = {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}, "examples" = [{"PYTHON_VERSION": "3.11"}]))]
    pub args: IndexMap<String, Scalar>,
    /// Debian packages to install, with `=VERSION` where it matters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["git", "openssh-client"]]))]
    pub apt: Vec<String>,
    /// Conda packages to install.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"packages": ["pytorch=2.4.0"], "channels": ["pytorch", "conda-forge"]}]))]
    pub conda: Option<Conda>,
    /// Python and what pip installs into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"packages": ["torch==2.4.0"], "requirements": "requirements.txt"}]))]
    pub python: Option<Python>,
    /// Files copied from the context.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [[{"from": ".", "to": "/workspace"}]]))]
    pub copy: Vec<Copy>,
    /// Shell commands run at the end of the build.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["python -c 'import torch'"]]))]
    pub run: Vec<String>,
    /// Environment variables kept in the image.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("propertyNames" = {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}, "examples" = [{"OMP_NUM_THREADS": "8"}]))]
    pub env: IndexMap<String, EnvValue>,
    /// The folder commands start in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["/workspace"]))]
    pub workdir: Option<String>,
    /// Who commands run as; a name that is not in the image is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([A-Za-z_][A-Za-z0-9_.-]*|[0-9]+)(:([A-Za-z_][A-Za-z0-9_.-]*|[0-9]+))?$"), extend("examples" = ["1000:1000"]))]
    pub user: Option<String>,
    /// The image's ENTRYPOINT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = [["tini", "--"]]))]
    pub entrypoint: Option<Vec<String>>,
    /// Labels of the image.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("examples" = [{"org.opencontainers.image.source": "https://example.com/repo"}]))]
    pub labels: IndexMap<String, String>,
    /// The platform to build for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[a-z0-9]+/[a-z0-9]+(/v[0-9]+)?$"), extend("examples" = ["linux/amd64"]))]
    pub platform: Option<String>,
    /// Secrets that `run` steps may read at `/run/secrets/NAME`; never kept in the image.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["pypi"]]))]
    pub secrets: Vec<String>,
    /// Steps in an order of your own, in place of `apt` … `run`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [[{"apt": ["git"]}, {"run": "make install"}]]))]
    pub steps: Vec<Step>,
}

/// Conda packages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Conda {
    /// Packages, with `=VERSION` where it matters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["pytorch=2.4.0"]]))]
    pub packages: Vec<String>,
    /// Channels in their order; `conda-forge` unless written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("default" = ["conda-forge"], "examples" = [["pytorch", "conda-forge"]]))]
    pub channels: Vec<String>,
    /// An environment file, relative to the job file; copied by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["environment.yml"]))]
    pub file: Option<String>,
}

/// Python and what pip installs into it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Python {
    /// The version to install where the base image has none of it; the base image's own unless written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+\.[0-9]+(\.[0-9]+)?|\$\{\{[ -~]*\}\})$"), extend("examples" = ["3.11"]))]
    pub version: Option<String>,
    /// Packages, with `==VERSION` where it matters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["torch==2.4.0"]]))]
    pub packages: Vec<String>,
    /// A requirements file or several, relative to the job file; copied by themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["requirements.txt"]))]
    pub requirements: Option<crate::gpu::OneOrMany>,
    /// A package index in place of the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["https://pypi.example.com/simple"]))]
    pub index: Option<String>,
    /// Package indexes looked at as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["https://wheels.example.com/cu124"]]))]
    pub extra_index: Vec<String>,
}

/// Files copied from the context into the image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Copy {
    /// What: a file or folder of the context, or of the image `image`.
    #[schemars(length(min = 1), extend("examples" = ["."]))]
    pub from: String,
    /// Where to, in the image.
    #[schemars(length(min = 1), extend("examples" = ["/workspace"]))]
    pub to: String,
    /// An image to copy from in place of the context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["busybox:1.36"]))]
    pub image: Option<String>,
    /// The owner of the copies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["1000:1000"]))]
    pub owner: Option<String>,
    /// The permission bits of the copies, in octal, as a string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^0?[0-7]{3}$"), extend("examples" = ["0755"]))]
    pub mode: Option<String>,
}

/// One build step: exactly one of its keys.
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
    /// Python and what pip installs into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"packages": ["torch==2.4.0"]}]))]
    pub python: Option<Python>,
    /// Files copied from the context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"from": "src", "to": "/src"}]))]
    pub copy: Option<Copy>,
    /// A shell command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["make install"]))]
    pub run: Option<String>,
    /// Environment variables from here on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"PATH": "/opt/bin:$PATH"}]))]
    pub env: Option<IndexMap<String, EnvValue>>,
    /// The folder from here on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["/src"]))]
    pub workdir: Option<String>,
    /// The user from here on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["1000:1000"]))]
    pub user: Option<String>,
}
