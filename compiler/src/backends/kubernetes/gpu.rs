//! GPUs of a pod: the resource that is asked for, the environment, and the labels a node must have.

mod labels;
mod products;
mod provider;

use jobc_schema::gpu::DriverCapability;
use jobc_schema::plan::{GpuPlan, RolePlan};

pub(super) use labels::{Requirement, requirements};
pub(super) use products::{families, labels_of};
pub(super) use provider::{Provider, provider};

/// What of the driver a container gets unless it asks: NVIDIA's container toolkit, `DefaultDriverCapabilities`.
const USUAL: [DriverCapability; 2] = [DriverCapability::Compute, DriverCapability::Utility];

/// The GPUs a role asks for; nothing where it asks for none.
pub(super) fn wanted(role: &RolePlan) -> Option<&GpuPlan> {
    role.resources.gpu.as_ref().filter(|gpu| gpu.count > 0)
}

/// Variables that the NVIDIA runtime reads.
///
/// `void` keeps an image that sets `NVIDIA_VISIBLE_DEVICES=all` from seeing every GPU of a node whose default runtime
/// is NVIDIA's. A pod with GPUs never sets it: the device plugin does.
pub(super) fn environment(role: &RolePlan) -> Vec<(&'static str, String)> {
    match &role.resources.gpu {
        Some(gpu) if gpu.count == 0 => vec![("NVIDIA_VISIBLE_DEVICES", "void".to_owned())],
        Some(gpu)
            if gpu.vendor == jobc_schema::gpu::Vendor::Nvidia
                && !gpu.capabilities.is_empty()
                && gpu.capabilities != USUAL =>
        {
            let names: Vec<&str> = gpu.capabilities.iter().map(|c| capability_name(*c)).collect();
            vec![("NVIDIA_DRIVER_CAPABILITIES", names.join(","))]
        }
        _ => vec![],
    }
}

/// A capability as the NVIDIA runtime writes it.
fn capability_name(capability: DriverCapability) -> &'static str {
    match capability {
        DriverCapability::Compute => "compute",
        DriverCapability::Utility => "utility",
        DriverCapability::Video => "video",
        DriverCapability::Graphics => "graphics",
        DriverCapability::Display => "display",
        DriverCapability::Compat32 => "compat32",
        DriverCapability::Ngx => "ngx",
        DriverCapability::All => "all",
    }
}
