//! GPUs: `resources.gpu`.

mod class;
mod require;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::forms;
use crate::quantity::Bytes;

pub use class::{is_at_least, least_mib};
pub use require::{Condition, Facts, Require, Verdict};

/// GPUs of an instance: how many, or how many of which kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Gpu {
    /// How many; `0` hides all GPUs.
    Count(#[schemars(schema_with = "forms::count")] u32),
    /// How many of which kind.
    Rules(Box<GpuRules>),
}

/// How many GPUs of which kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GpuRules {
    /// How many GPUs, or with `share` how many slices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "forms::count", extend("default" = 1, "examples" = [8]))]
    pub count: Option<u32>,
    /// Who makes the GPU.
    #[serde(default)]
    #[schemars(extend("default" = "nvidia", "examples" = ["amd"]))]
    pub vendor: Vendor,
    /// The model, or a list of models that will do: a family (`A100`) or a variant (`A100-80GB`), in any case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["A100-80GB", ["A100", "H100"]]))]
    pub model: Option<OneOrMany>,
    /// At least this much memory on each GPU, by the card's nominal class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["40GiB"]))]
    pub memory: Option<Bytes>,
    /// At least this CUDA compute capability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]+\.[0-9]+$"), extend("examples" = ["8.0"]))]
    pub compute_capability: Option<String>,
    /// The CUDA version the program needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]+\.[0-9]+(\.[0-9]+)?$"), extend("examples" = ["12.4"]))]
    pub cuda: Option<String>,
    /// At least this driver version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]+(\.[0-9]+){0,2}$"), extend("examples" = ["550.54.15"]))]
    pub driver: Option<String>,
    /// What of the driver the program uses; `compute` and `utility` unless written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("default" = ["compute", "utility"], "examples" = [["compute", "utility", "video"]]))]
    pub capabilities: Vec<DriverCapability>,
    /// Slices of GPUs instead of whole ones.
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

/// Who makes a GPU.
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
    /// Habana, Intel's Gaudi.
    Habana,
    /// Huawei, the Ascend.
    Huawei,
    /// Cambricon, the MLU.
    Cambricon,
    /// Google, the TPU.
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

    /// The maker as it writes itself.
    pub fn maker(self) -> &'static str {
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

/// A part of the NVIDIA driver that a container may use.
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
    /// All of them.
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

/// A slice of a GPU: a MIG `profile`, or `memory` and `cores`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// GPU memory of the slice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["8GiB"]))]
    pub memory: Option<Bytes>,
    /// Percent of the GPU's cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "forms::percent", extend("examples" = [30]))]
    pub cores: Option<u32>,
    /// A MIG profile; excludes `memory` and `cores`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["1g.10gb"]))]
    pub profile: Option<String>,
    /// How strictly the slice must be kept.
    #[serde(default)]
    #[schemars(extend("default" = "soft", "examples" = ["hard"]))]
    pub isolation: Isolation,
    /// Whether all slices must be on one card; on different cards otherwise.
    #[serde(default)]
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub same_card: bool,
}

/// How strictly a slice must be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// Nothing enforces it.
    None,
    /// A driver or a library enforces it.
    #[default]
    Soft,
    /// The hardware enforces it.
    Hard,
}

/// What keeps a program inside its slice of a card.
///
/// Decided by whoever serves the slice: a cluster's provider at build time, this machine when the job is given its GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Enforcement {
    /// Nothing: the numbers only say where a program is placed.
    Nothing,
    /// A library between the program and the driver.
    Library,
    /// The driver.
    Driver,
    /// The hardware.
    Hardware,
}

impl Enforcement {
    /// Whether it keeps a slice as strictly as is asked.
    pub fn satisfies(self, isolation: Isolation) -> bool {
        match isolation {
            Isolation::None => true,
            Isolation::Soft => self >= Self::Library,
            Isolation::Hard => self >= Self::Hardware,
        }
    }

    /// In words: `the driver`.
    pub fn words(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Library => "a library",
            Self::Driver => "the driver",
            Self::Hardware => "the hardware",
        }
    }
}
