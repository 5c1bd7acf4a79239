//! GPU architectures by compute capability: `stdlib/gpu/arch.yaml`.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::{Version, load};

pub(super) static ARCHES: LazyLock<Arches> =
    LazyLock::new(|| load(include_str!(concat!(env!("OUT_DIR"), "/arch.json"))));

/// GPU architectures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arches {
    /// The content of the file.
    pub schema: String,
    /// The architectures.
    pub gpu_arch: Vec<Arch>,
    /// The sources of the facts.
    pub sources: Vec<String>,
}

/// One architecture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arch {
    /// The compute capability.
    pub cc: String,
    /// The family's name.
    pub family: String,
    /// The first toolkit that supports it.
    pub cuda_min: String,
    /// The last toolkit that supports it; `None` if current ones do.
    pub cuda_max: Option<String>,
    /// Cards that have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub products: Option<Vec<String>>,
    /// The name that later toolkits use for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed_to: Option<String>,
    /// `false` if only secondary sources confirm it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
}

/// The toolkits that support an architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CudaRange {
    /// The first.
    pub min: &'static str,
    /// The last, as `MAJOR.MINOR`; `None` if current ones do.
    pub max: Option<&'static str>,
}

/// The architectures, oldest first, later additions at the end.
pub fn all() -> &'static [Arch] {
    &ARCHES.gpu_arch
}

/// The architecture with a compute capability.
pub fn find(cc: &str) -> Option<&'static Arch> {
    all().iter().find(|arch| arch.cc == cc)
}

/// The toolkits that support a compute capability.
pub fn cuda_range(cc: &str) -> Option<CudaRange> {
    find(cc).map(|arch| CudaRange { min: &arch.cuda_min, max: arch.cuda_max.as_deref() })
}

impl CudaRange {
    /// Whether a toolkit is older than the first that supports the architecture.
    pub fn is_before(&self, cuda: &Version) -> bool {
        Version::parse(self.min).is_some_and(|min| *cuda < min)
    }

    /// Whether a toolkit is newer than the last that supports the architecture.
    pub fn is_after(&self, cuda: &Version) -> bool {
        self.max.and_then(Version::parse).is_some_and(|max| cuda.truncate(max.precision()) > max)
    }
}
