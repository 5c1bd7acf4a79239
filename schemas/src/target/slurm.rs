//! `slurm` of a target.
#![allow(rustdoc::broken_intra_doc_links)] // `[preview]` is not a link

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::scalar::Scalar;

/// Settings of Slurm jobs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlurmTarget {
    /// What runs the containers. `jobc` and `oci` run the bundles of the backend `oci`.
    #[serde(default)]
    #[schemars(extend("default" = "jobc", "examples" = ["apptainer"]))]
    pub container: SlurmContainer,
    /// [preview] `jobc` of the nodes, which runs what Slurm alone does not: `auto` is a copy of this program that `jobc
    /// submit` puts below `directory`, once per version; a path selects an installed one; `none` refuses such jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        regex(pattern = r"^(auto|none|(~/|/)[^\x00-\x1f]*)$"),
        extend("default" = SlurmTarget::AUTO, "examples" = ["/scratch/me/bin/jobc"])
    )]
    pub jobc: Option<String>,
    /// Slurm release of the cluster, as `sinfo --version` prints it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^2[0-9]\.[0-9]{2}(\.[0-9]+)?$"), extend("examples" = ["23.11"]))]
    pub release: Option<String>,
    /// Partition, or several separated by commas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[!-~]+$"), extend("examples" = ["gpu"]))]
    pub partition: Option<String>,
    /// Account that is charged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[!-~]+$"), extend("examples" = ["vision"]))]
    pub account: Option<String>,
    /// Quality of service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[!-~]+$"), extend("examples" = ["long"]))]
    pub qos: Option<String>,
    /// Reservation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[!-~]+$"), extend("examples" = ["course"]))]
    pub reservation: Option<String>,
    /// Features that nodes must have, in the syntax of `--constraint`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[!-~]+$"), extend("examples" = ["skylake|icelake"]))]
    pub constraint: Option<String>,
    /// Licenses, in the syntax of `--licenses`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[!-~]+$"), extend("examples" = ["matlab:2"]))]
    pub licenses: Option<String>,
    /// Whether a job gets whole nodes.
    #[serde(default)]
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub exclusive: bool,
    /// Maximum number of leaf switches, optionally with the maximum time to wait for them: `COUNT[@TIME]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]+(@[0-9:-]+)?$"), extend("examples" = ["1@60"]))]
    pub switches: Option<String>,
    /// `KillWait` of the cluster, as `scontrol show config` prints it: the time that tasks have after `scancel` and at
    /// the time limit. Default: 30s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["10m"]))]
    pub kill_wait: Option<crate::duration::Seconds>,
    /// `MaxArraySize` of the cluster, as `scontrol show config` prints it. A larger matrix becomes several arrays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2), extend("default" = 1001, "examples" = [10001]))]
    pub max_array: Option<u32>,
    /// Option that requests GPUs.
    #[serde(default)]
    #[schemars(extend("default" = "per-node", "examples" = ["gres"]))]
    pub gpu: SlurmGpu,
    /// [preview] Option that requests memory, for clusters whose limits are per CPU or per GPU.
    #[serde(default, skip_serializing_if = "SlurmMemory::is_default")]
    #[schemars(extend("default" = "per-node", "examples" = ["per-cpu"]))]
    pub memory: SlurmMemory,
    /// GRES types of GPUs by model, for clusters that name them: `--gpus-per-node=TYPE:N`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(schema_with = "words", extend("examples" = [{"A100-80GB": "a100"}]))]
    pub gpu_types: IndexMap<String, String>,
    /// Features of the nodes with each GPU model, for `--constraint`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(schema_with = "words", extend("examples" = [{"A100-80GB": "a100_80g", "H100": "h100"}]))]
    pub gpu_features: IndexMap<String, String>,
    /// Directory that all nodes share, for the state and logs of jobs. Default: the directory with `job.sbatch`. `~/` is
    /// the home directory there, and `$USER` or `%u` the user's name there, so that a team shares one target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(~/|/)[^\x00-\x1f]*$"), extend("examples" = ["/scratch/$USER/jobc"]))]
    pub directory: Option<String>,
    /// Directory with the images that containers run from, shared or on each node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^/[^\x00-\x1f]*$"), extend("examples" = ["/scratch/me/images"]))]
    pub images: Option<String>,
    /// Directory on each node where images are unpacked once for all jobs, with `container: jobc`. Default:
    /// `jobc-UID/images` in the node's directory for temporary files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^/[^\x00-\x1f]*$"), extend("examples" = ["/local/me/images"]))]
    pub store: Option<String>,
    /// Directories of the cluster for entries of `data` and `outputs`, by name. They replace the sources in the job.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("examples" = [{"imagenet": "/datasets/imagenet"}]))]
    pub storage: IndexMap<String, String>,
    /// Environment modules to load before anything else. A directory is one with modules, as in `MODULEPATH`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "modules", extend("examples" = [["cuda/12.4", "openmpi"]]))]
    pub modules: Vec<String>,
    /// More `sbatch` options, without `--`. `true` stands for an option without a value.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("propertyNames" = {"pattern": "^[a-z][a-z0-9-]*$"}, "examples" = [{"mail-type": "END", "mail-user": "me@example.com"}]))]
    pub extra: IndexMap<String, Scalar>,
}

/// What runs containers on a Slurm cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SlurmContainer {
    /// `jobc` in each task; an administrator need not install anything.
    #[default]
    Jobc,
    /// The plug-in pyxis, with enroot.
    Pyxis,
    /// `srun --container`, with the oci.conf of the cluster.
    Oci,
    /// Apptainer in each task.
    Apptainer,
    /// No container: commands run on the files of the nodes.
    None,
}

impl SlurmTarget {
    /// The value of `jobc` for this program.
    pub const AUTO: &str = "auto";
    /// The directory of runs on a cluster whose target names none.
    pub const DIRECTORY: &str = "~/.local/state/jobc/slurm";

    /// The words for the user's name in a directory.
    const USER: [&str; 3] = ["${USER}", "$USER", "%u"];

    /// Whether a directory is another one for each user.
    pub fn names_user(directory: &str) -> bool {
        Self::USER.iter().any(|word| directory.contains(word))
    }

    /// A directory, for a user of this name.
    pub fn of_user(directory: &str, user: &str) -> String {
        Self::USER.iter().fold(directory.to_owned(), |text, word| text.replace(word, user))
    }

    /// Whether `jobc submit` puts this program on the cluster.
    pub fn copies_program(&self) -> bool {
        self.jobc.as_deref().is_none_or(|program| program == Self::AUTO)
    }

    /// The path of `jobc` on the nodes, where `~/` is the home directory; nothing where it may not run.
    pub fn program(&self) -> Option<String> {
        if self.copies_program() {
            let directory = self.directory.as_deref().unwrap_or(Self::DIRECTORY);
            return Some(format!("{directory}/bin/jobc-{}", env!("CARGO_PKG_VERSION")));
        }
        self.jobc.clone().filter(|program| program != "none")
    }

    /// Maximum number of tasks of an array: their numbers are below `MaxArraySize`, whose default is 1001.
    pub fn max_array_tasks(&self) -> usize {
        self.max_array.unwrap_or(1001).max(1) as usize
    }
}

impl SlurmContainer {
    /// The name as written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Jobc => "jobc",
            Self::Pyxis => "pyxis",
            Self::Oci => "oci",
            Self::Apptainer => "apptainer",
            Self::None => "none",
        }
    }
}

/// Option that requests GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SlurmGpu {
    /// `--gpus-per-node=N`.
    #[default]
    PerNode,
    /// `--gres=gpu:N`.
    Gres,
    /// `--gpus-per-task=N`.
    PerTask,
}

/// Option that requests memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SlurmMemory {
    /// `--mem`.
    #[default]
    PerNode,
    /// `--mem-per-cpu`: the memory of an instance by its CPUs.
    PerCpu,
    /// `--mem-per-gpu`: the memory of an instance by its GPUs; `--mem` for one without.
    PerGpu,
}

impl SlurmMemory {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
    fn is_default(&self) -> bool {
        *self == Self::PerNode
    }
}

/// The name of an image's file in the directory `images`: other characters than letters, digits, `.`, `-` and `_`
/// become `_`.
pub fn image_file_name(reference: &str) -> String {
    reference.chars().map(|c| if c.is_ascii_alphanumeric() || ".-_".contains(c) { c } else { '_' }).collect()
}

/// A map to words without spaces.
fn words(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "object", "additionalProperties": {"type": "string", "pattern": r"^[!-~]+$"}})
}

/// A list of words without spaces.
fn modules(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "array", "items": {"type": "string", "pattern": r"^[A-Za-z0-9/][A-Za-z0-9._/+:-]*$"}})
}
