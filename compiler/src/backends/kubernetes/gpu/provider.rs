//! Who serves GPUs on the cluster, and under which resource name.

use jobc_schema::gpu::Vendor;
use jobc_schema::plan::{GpuPlan, JobPlan};

use super::super::cluster::settings;

/// A device plugin, in one of its modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Provider {
    /// NVIDIA's, whole GPUs.
    Nvidia,
    /// NVIDIA's with `MIG_STRATEGY=single`: every `nvidia.com/gpu` is a slice.
    NvidiaMigSingle,
    /// NVIDIA's with `MIG_STRATEGY=mixed`: each profile has a resource of its own.
    NvidiaMigMixed,
    /// AMD's.
    Amd,
    /// Intel's.
    Intel,
}

/// The providers by the names targets give them.
const TABLE: [(&str, Provider, Vendor); 5] = [
    ("nvidia", Provider::Nvidia, Vendor::Nvidia),
    ("nvidia-mig-single", Provider::NvidiaMigSingle, Vendor::Nvidia),
    ("nvidia-mig-mixed", Provider::NvidiaMigMixed, Vendor::Nvidia),
    ("amd", Provider::Amd, Vendor::Amd),
    ("intel", Provider::Intel, Vendor::Intel),
];

/// The provider of the target, or the vendor's own plugin; the reason where there is none that this version knows.
pub(crate) fn provider(job: &JobPlan, vendor: Vendor) -> Result<Provider, String> {
    let named = settings(job).gpu.as_ref().and_then(|gpu| gpu.provider.as_deref());
    let Some(named) = named else {
        return Ok(match vendor {
            Vendor::Nvidia => Provider::Nvidia,
            Vendor::Amd => Provider::Amd,
            Vendor::Intel => Provider::Intel,
            _ => return Err(format!("this version writes nothing for a {}", vendor.card())),
        });
    };
    match TABLE.iter().find(|(name, ..)| *name == named) {
        Some((_, provider, of)) if *of == vendor => Ok(*provider),
        Some((name, _, of)) => Err(format!(
            "the target's GPU provider `{name}` serves {} GPUs and the role asks for {}; write `vendor: {}` or choose another target",
            of.maker(),
            vendor.maker(),
            of.as_str()
        )),
        None => {
            let known: Vec<String> = TABLE.iter().map(|(name, ..)| format!("`{name}`")).collect();
            Err(format!(
                "the target's GPU provider `{named}` is not among those this version writes for ({}); later versions bring more",
                known.join(", ")
            ))
        }
    }
}

impl Provider {
    /// The extended resource that a container lists in its limits.
    pub(crate) fn resource(self, gpu: &GpuPlan) -> String {
        let profile = gpu.share.as_ref().and_then(|share| share.profile.as_deref());
        match (self, profile) {
            // The device plugin's own spelling: `1g.10gb+me` is `nvidia.com/mig-1g.10gb.me`.
            (Self::NvidiaMigMixed, Some(profile)) => format!("nvidia.com/mig-{}", profile.replace('+', ".")),
            (Self::Nvidia | Self::NvidiaMigSingle | Self::NvidiaMigMixed, _) => "nvidia.com/gpu".to_owned(),
            (Self::Amd, _) => "amd.com/gpu".to_owned(),
            (Self::Intel, _) => "gpu.intel.com/i915".to_owned(),
        }
    }
}
