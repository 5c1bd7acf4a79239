//! Which resources, GPUs, files and privileges of an instance a pod can express.

use jobc_schema::plan::{JobPlan, RolePlan};

use crate::backend::Capability;
use crate::backend::Support::{self, Full, Lossy};
use crate::stdlib::providers::DeviceProperty;

use super::super::gpu::{self, labels_of};
use super::super::security::{file_group, user_numbers};
use super::super::settings::RoleSettings;
use super::super::settings::settings;
use super::none;

/// Whether a pod can express a feature of an instance.
pub(super) fn answer(capability: Capability, job: &JobPlan, role: Option<&RolePlan>) -> Support {
    match capability {
        Capability::Pids => Lossy(
            "a pod has no process limit of its own; `podPidsLimit` of the node applies".to_owned(),
        ),
        Capability::DiskIo => none(
            "a pod cannot limit its disk traffic; leave `io` out, and choose a storage class with limits for its volumes",
        ),
        Capability::Ulimits => Lossy(
            "a pod has no limits of setrlimit(2) of its own; those of the container engine on the node apply (a `ulimit` in `setup` can lower them)"
                .to_owned(),
        ),
        Capability::FileIndex => match role {
            Some(role) if role.instances > 1 => none(
                "a ConfigMap is the same for all pods of a role; write the file in `setup`, where `$JOBC_INDEX` is known",
            ),
            _ => Full,
        },
        Capability::GpuGrow => none("a pod has the GPUs that it asks for, as long as it runs; leave `share` out"),
        Capability::GpuTime => none(
            "no provider pauses pods in turn; leave `share` out and have an administrator turn on time slices in the device plug-in of the vendor, or write `isolation: none` with a provider that has them, such as `nvidia-time-slicing`",
        ),
        Capability::Gpu(vendor) => match (gpu::provider(job, vendor), role) {
            (Err(why), _) => none(why),
            (Ok(_), Some(role)) => refused(job, role, false),
            (Ok(_), None) => Full,
        },
        Capability::Hugepages
        | Capability::Rdma
        | Capability::GpuModel
        | Capability::GpuMemory
        | Capability::GpuVersion
        | Capability::GpuShare
        | Capability::GpuProfile
        | Capability::FileOwner
        | Capability::User => role.map_or(Full, |role| of_role(capability, job, role)),
        _ => Full,
    }
}

fn of_role(capability: Capability, job: &JobPlan, role: &RolePlan) -> Support {
    match capability {
        Capability::Hugepages => {
            if role.resources.cpu_millis.is_some() || role.resources.memory_bytes.is_some() {
                return Full;
            }
            none("Kubernetes assigns huge pages only to pods that also request CPU or memory; write `memory`")
        }
        Capability::Rdma => {
            if RoleSettings::of(settings(job), role).pod.rdma.is_some() {
                return Full;
            }
            none(
                "the target has no resource name for its RDMA devices; write `rdma: NAME` under `kubernetes` of the target, such as `rdma/hca`",
            )
        }
        Capability::FileOwner => file_group(job, role).map_or_else(none, |_| Full),
        Capability::User => match role.user.as_deref().map(user_numbers) {
            Some(Err(why)) => none(why),
            _ => Full,
        },
        Capability::GpuShare | Capability::GpuProfile => refused(job, role, true),
        _ => gpu_kind(capability, job, role),
    }
}

/// The parts of a GPU request that the provider cannot serve.
fn refused(job: &JobPlan, role: &RolePlan, of_share: bool) -> Support {
    match gpu::refusal(job, role) {
        Some(refusal) if refusal.of_share == of_share && refusal.lossy => Lossy(refusal.why),
        Some(refusal) if refusal.of_share == of_share => none(refusal.why),
        _ => Full,
    }
}

/// Whether nodes can be selected by the properties of their GPUs.
fn gpu_kind(capability: Capability, job: &JobPlan, role: &RolePlan) -> Support {
    let Some(gpu) = role.gpus() else { return Full };
    let selector = RoleSettings::of(settings(job), role).pod.node_selector;
    let Ok(provider) = gpu::provider(job, gpu.vendor) else { return Full };
    let by = provider.models.as_deref().unwrap_or_default();
    let by_resource = by == "resource" && capability == Capability::GpuModel;
    if by_resource || provider.claim.as_ref().is_some_and(|form| form.knows(capability_key(capability))) {
        return Full;
    }
    if !gpu::has_labels(by) {
        if !selector.is_empty() {
            return Lossy(
                "the labels of these GPUs cannot be compared; the target's `node_selector` alone decides"
                    .to_owned(),
            );
        }
        return none(
            "the labels of these GPUs cannot be compared; leave it out and choose nodes by `node_selector` of the target",
        );
    }
    if by.contains('/') {
        return Full;
    }
    if capability != Capability::GpuModel || selector.contains_key("nvidia.com/gpu.product") {
        return Full;
    }
    let cut = gpu.share.as_ref().is_some_and(|share| share.profile.is_some());
    let unknown: Vec<&String> = gpu.models.iter().filter(|model| labels_of(model, cut).is_empty()).collect();
    match unknown.first() {
        None => Full,
        Some(model) => none(format!(
            "unknown GPU model `{model}`{} (known: {}); write `node_selector: {{nvidia.com/gpu.product: NAME}}` for the target, with the label of its nodes",
            if cut { " with MIG support" } else { "" },
            gpu::families().join(", ")
        )),
    }
}

/// The attribute of a device that a capability refers to.
fn capability_key(capability: Capability) -> DeviceProperty {
    match capability {
        Capability::GpuModel => DeviceProperty::Product,
        Capability::GpuMemory => DeviceProperty::Memory,
        _ => DeviceProperty::Versions,
    }
}
