//! GPUs of a pod: the requirements of its provider, the environment, and the labels that a node must have.
//!
//! A provider is a row of `stdlib/gpu/providers.yaml`; `pod_request` fills in the row, `refusal` lists what it cannot
//! provide. The objects that some providers need, claims and a pod without a Job, are in `claims` and `sharepod` next
//! to this directory.

mod fill;
mod labels;
mod pod_request;
mod products;
mod provider;
mod refusal;

use jobc_schema::gpu::{DriverCapability, Vendor};
use jobc_schema::plan::{GpuPlan, JobPlan, RolePlan};

use crate::stdlib::providers::{PodField, Unit};

use super::settings::settings;

pub(super) use labels::{Requirement, has_labels, requirements};
pub(super) use pod_request::{PodRequest, pod_request};
pub(super) use products::{families, labels_of, short};
pub(super) use provider::{missing_settings, names, object_kind, provider};
pub(super) use refusal::refusal;

/// The driver capabilities of a container that requests none: NVIDIA's container toolkit, `DefaultDriverCapabilities`.
const DEFAULT_CAPABILITIES: [DriverCapability; 2] = [DriverCapability::Compute, DriverCapability::Utility];

/// Variables that the NVIDIA runtime reads.
///
/// `void` keeps an image that sets `NVIDIA_VISIBLE_DEVICES=all` from seeing every GPU of a node whose default runtime
/// is NVIDIA's; also if the GPUs are on other hosts. Another pod with GPUs never sets it: its provider does.
pub(super) fn environment(job: &JobPlan, role: &RolePlan) -> Vec<(&'static str, String)> {
    match &role.resources.gpu {
        Some(gpu) if gpu.count > 0 && is_elsewhere(job, gpu) => {
            vec![("NVIDIA_VISIBLE_DEVICES", "void".to_owned())]
        }
        Some(gpu) if gpu.count == 0 => vec![("NVIDIA_VISIBLE_DEVICES", "void".to_owned())],
        Some(gpu)
            if gpu.vendor == Vendor::Nvidia
                && !gpu.capabilities.is_empty()
                && gpu.capabilities != DEFAULT_CAPABILITIES =>
        {
            let names: Vec<&str> = gpu.capabilities.iter().map(|c| c.as_str()).collect();
            vec![("NVIDIA_DRIVER_CAPABILITIES", names.join(","))]
        }
        _ => vec![],
    }
}

/// Whether the GPUs of a pod are only in its environment, because they are on other hosts.
fn is_elsewhere(job: &JobPlan, gpu: &GpuPlan) -> bool {
    let way = provider(job, gpu.vendor).ok().and_then(|provider| provider.way(gpu.share.as_ref()));
    way.is_some_and(|way| !way.asks.is_empty() && way.asks.iter().all(|ask| ask.place == PodField::Env))
}

/// Whether a provider counts memory in a unit that the target must set.
pub(super) fn needs_memory_unit(job: &JobPlan, gpu: &GpuPlan) -> bool {
    let unit = settings(job).gpu.as_ref().and_then(|gpu| gpu.memory_unit);
    let way = provider(job, gpu.vendor).ok().and_then(|provider| provider.way(gpu.share.as_ref()));
    let memory = gpu.share.as_ref().is_some_and(|share| share.memory_bytes.is_some());
    memory
        && unit.is_none()
        && way.is_some_and(|way| way.asks.iter().any(|ask| ask.unit == Some(Unit::Setting)))
}

/// Whether pods with GPUs name Volcano as their scheduler.
pub(super) fn is_volcano(job: &JobPlan) -> bool {
    let named = |role: &RolePlan| pod_request(job, role).and_then(|given| given.scheduler) == Some("volcano");
    settings(job).gpu.is_some() && job.roles.iter().any(named)
}
