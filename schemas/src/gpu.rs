//! GPUs: `resources.gpu`.

mod class;
mod require;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::forms;
use crate::quantity::Bytes;

pub use class::{is_at_least, min_mib};
pub use require::{Condition, Facts, Require, Verdict};

/// GPUs of an instance: a number, `all`, or a block with number and kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Gpu {
    /// Number of GPUs. `0` hides all GPUs. `all` takes every GPU of the host, for jobs on a host.
    Count(#[schemars(schema_with = "count_or_all")] u32),
    /// As many as the host has.
    #[schemars(skip)]
    All(AllWord),
    /// Number and kind.
    Rules(Box<GpuRules>),
}

/// The word `all`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AllWord {
    /// As many as the host has.
    #[default]
    All,
}

fn count_or_all(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": ["integer", "string"], "minimum": 0, "maximum": 2_147_483_647, "pattern": r"^(all|\$\{\{[ -~]*\}\})$"})
}

/// Number and kind of GPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GpuRules {
    /// Number of GPUs, or number of slices with `share`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "forms::count", extend("default" = 1, "examples" = [8]))]
    pub count: Option<u32>,
    /// Vendor of the GPU.
    #[serde(default)]
    #[schemars(extend("default" = "nvidia", "examples" = ["amd"]))]
    pub vendor: Vendor,
    /// GPU model, or a list of accepted models: a family (`A100`) or a variant (`A100-80GB`). Case does not matter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["A100-80GB", ["A100", "H100"]]))]
    pub model: Option<OneOrMany>,
    /// Minimum memory of each GPU, by the nominal class of the card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["40GiB"]))]
    pub memory: Option<Bytes>,
    /// Minimum CUDA compute capability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]+\.[0-9]+$"), extend("examples" = ["8.0"]))]
    pub compute_capability: Option<String>,
    /// CUDA version that the program needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]+\.[0-9]+(\.[0-9]+)?$"), extend("examples" = ["12.4"]))]
    pub cuda: Option<String>,
    /// Minimum driver version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]+(\.[0-9]+){0,2}$"), extend("examples" = ["550.54.15"]))]
    pub driver: Option<String>,
    /// Parts of the driver that the program uses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("default" = ["compute", "utility"], "examples" = [["compute", "utility", "video"]]))]
    pub capabilities: Vec<DriverCapability>,
    /// Slices of GPUs instead of whole GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"memory": "8GiB"}, {"profile": "1g.10gb"}]))]
    pub share: Option<Share>,
}

/// One name or several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum OneOrMany {
    /// One.
    One(String),
    /// Any of several.
    Many(#[schemars(length(min = 1))] Vec<String>),
}

/// Vendor of a GPU.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Vendor {
    /// NVIDIA.
    #[default]
    Nvidia,
    /// AMD.
    Amd,
    /// Intel.
    Intel,
    /// Habana (Intel Gaudi).
    Habana,
    /// Huawei (Ascend).
    Huawei,
    /// Cambricon (MLU).
    Cambricon,
    /// Google (TPU).
    Google,
}

impl Vendor {
    /// All of them, in the order of the schema.
    pub const ALL: [Self; 7] =
        [Self::Nvidia, Self::Amd, Self::Intel, Self::Habana, Self::Huawei, Self::Cambricon, Self::Google];

    /// The name as a job file writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nvidia => "nvidia",
            Self::Amd => "amd",
            Self::Intel => "intel",
            Self::Habana => "habana",
            Self::Huawei => "huawei",
            Self::Cambricon => "cambricon",
            Self::Google => "google",
        }
    }

    /// The vendor's own spelling of its name.
    pub fn manufacturer(self) -> &'static str {
        match self {
            Self::Nvidia => "NVIDIA",
            Self::Amd => "AMD",
            Self::Intel => "Intel",
            Self::Habana => "Habana",
            Self::Huawei => "Huawei",
            Self::Cambricon => "Cambricon",
            Self::Google => "Google",
        }
    }

    /// What people call its cards: `NVIDIA GPU`, `Gaudi`, `TPU`.
    pub fn card(self) -> &'static str {
        match self {
            Self::Nvidia => "NVIDIA GPU",
            Self::Amd => "AMD GPU",
            Self::Intel => "Intel GPU",
            Self::Habana => "Gaudi",
            Self::Huawei => "Ascend",
            Self::Cambricon => "MLU",
            Self::Google => "TPU",
        }
    }
}

/// A part of the NVIDIA driver that a container can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DriverCapability {
    /// CUDA and OpenCL.
    Compute,
    /// nvidia-smi and NVML.
    Utility,
    /// Video encoding and decoding.
    Video,
    /// OpenGL and Vulkan.
    Graphics,
    /// An X display; implies graphics.
    Display,
    /// 32-bit programs.
    Compat32,
    /// The NGX library.
    Ngx,
    /// All capabilities.
    All,
}

impl DriverCapability {
    /// The name as a job file and `NVIDIA_DRIVER_CAPABILITIES` write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Utility => "utility",
            Self::Video => "video",
            Self::Graphics => "graphics",
            Self::Display => "display",
            Self::Compat32 => "compat32",
            Self::Ngx => "ngx",
            Self::All => "all",
        }
    }
}

/// A slice of a GPU: a MIG `profile`, or `memory` and `cores`; or whole GPUs in turns with other jobs, by `time`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// GPU memory of the slice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["8GiB"]))]
    pub memory: Option<Bytes>,
    /// Percentage of the GPU cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "forms::percent", extend("examples" = [30]))]
    pub cores: Option<u32>,
    /// MIG profile. Cannot be combined with `memory` and `cores`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["1g.10gb"]))]
    pub profile: Option<String>,
    /// Minimum isolation of the slice.
    #[serde(default)]
    #[schemars(extend("default" = "soft", "examples" = ["hard"]))]
    pub isolation: Isolation,
    /// Whether all slices must be on one card. If false, they are on different cards.
    #[serde(default)]
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub same_card: bool,
    /// [preview] Whether the job takes turns on whole GPUs with other jobs that do: while one runs, the others are
    /// frozen. `memory` is what it keeps on each GPU meanwhile.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub time: bool,
    /// [preview] Whole GPUs that each instance gets at most: above `count`, those that no other job leases or waits for
    /// when it starts. Once another job waits for them, its tasks leave by `preemption` and resume with fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "forms::count", extend("examples" = [4]))]
    pub grow: Option<u32>,
}

/// Minimum isolation of a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// Not enforced.
    None,
    /// Enforced by a driver or a library.
    #[default]
    Soft,
    /// Enforced by hardware.
    Hard,
}

/// What enforces a slice of a GPU.
///
/// The provider of the slice decides: on a cluster at build time, on this host when GPUs are assigned to the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Enforcement {
    /// Not enforced: the numbers are only used for placement.
    Nothing,
    /// A library between the program and the driver.
    Library,
    /// The driver.
    Driver,
    /// The hardware.
    Hardware,
}

impl Enforcement {
    /// Whether it isolates a slice as strictly as requested.
    pub fn satisfies(self, isolation: Isolation) -> bool {
        match isolation {
            Isolation::None => true,
            Isolation::Soft => self >= Self::Library,
            Isolation::Hard => self >= Self::Hardware,
        }
    }

    /// For messages: `the driver`.
    pub fn words(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Library => "a library",
            Self::Driver => "the driver",
            Self::Hardware => "the hardware",
        }
    }
}
