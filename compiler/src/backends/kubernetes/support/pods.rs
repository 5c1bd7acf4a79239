//! Resources, GPUs, files and rights of an instance: what a pod can express of them.

use jobc_schema::gpu::{Isolation, Vendor};
use jobc_schema::plan::{JobPlan, RolePlan};

use crate::backend::Capability;
use crate::backend::Support::{self, Full, Lossy};

use super::super::cluster::settings;
use super::super::gpu::{self, Provider, labels_of};
use super::super::security::user_numbers;
use super::super::settings::RoleSettings;
use super::none;

/// Whether something of an instance can be expressed.
pub(super) fn answer(capability: Capability, job: &JobPlan, role: Option<&RolePlan>) -> Support {
    match capability {
        Capability::Pids => Lossy(
            "a pod has no limit of processes of its own; the node's `podPidsLimit` holds".to_owned(),
        ),
        Capability::Ulimits => Lossy(
            "a pod has no limits of setrlimit(2) of its own; those of the node's container engine hold (a `ulimit` in `setup` can lower them)"
                .to_owned(),
        ),
        Capability::FileIndex => match role {
            Some(role) if role.instances > 1 => none(
                "a ConfigMap is the same for all pods of a role; write the file in `setup`, where `$JOBC_INDEX` is known",
            ),
            _ => Full,
        },
        Capability::Gpu(vendor) => match gpu::provider(job, vendor) {
            Ok(Provider::NvidiaMigSingle) => whole_from_slices(role),
            Ok(_) => Full,
            Err(why) => none(why),
        },
        Capability::GpuShare => none(
            "slices by memory or cores need a sharing provider (`hami`, `volcano-vgpu`, `aliyun-gpushare`), which this version does not write for; with `nvidia-mig-mixed` or `nvidia-mig-single` a MIG `profile` works",
        ),
        Capability::Hugepages
        | Capability::Rdma
        | Capability::GpuModel
        | Capability::GpuMemory
        | Capability::GpuVersion
        | Capability::GpuProfile
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
            none("Kubernetes gives huge pages only to pods that also ask for CPU or memory; write `memory`")
        }
        Capability::Rdma => {
            if RoleSettings::of(settings(job), &role.name).pod.rdma.is_some() {
                return Full;
            }
            none(
                "the target does not say what its RDMA devices are called; write `rdma: NAME` under `kubernetes` of the target, such as `rdma/hca`",
            )
        }
        Capability::User => match role.user.as_deref().map(user_numbers) {
            Some(Err(why)) => none(why),
            _ => Full,
        },
        Capability::GpuProfile => profile(job, role),
        _ => gpu_kind(capability, job, role),
    }
}

/// With MIG strategy `single`, `nvidia.com/gpu` is a slice, never a whole card.
fn whole_from_slices(role: Option<&RolePlan>) -> Support {
    let sliced = role.and_then(gpu::wanted).is_some_and(|gpu| gpu.share.is_some());
    if sliced || role.is_none() {
        return Full;
    }
    none(
        "on this target every `nvidia.com/gpu` is a MIG slice; write `share: {profile: ...}`, or a target whose provider is `nvidia`",
    )
}

/// Whether nodes can be chosen by what their GPUs are.
fn gpu_kind(capability: Capability, job: &JobPlan, role: &RolePlan) -> Support {
    let Some(gpu) = gpu::wanted(role) else { return Full };
    let selector = RoleSettings::of(settings(job), &role.name).pod.node_selector;
    if gpu.vendor != Vendor::Nvidia {
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
    if capability != Capability::GpuModel || selector.contains_key("nvidia.com/gpu.product") {
        return Full;
    }
    let cut = gpu.share.as_ref().is_some_and(|share| share.profile.is_some());
    let unknown: Vec<&String> = gpu.models.iter().filter(|model| labels_of(model, cut).is_empty()).collect();
    match unknown.first() {
        None => Full,
        Some(model) => none(format!(
            "no card of the model `{model}` is known{} (known are {}); write `node_selector: {{nvidia.com/gpu.product: NAME}}` for the target, with the label its nodes have",
            if cut { " that MIG can cut" } else { "" },
            gpu::families().join(", ")
        )),
    }
}

/// Whether a MIG profile can be asked for.
fn profile(job: &JobPlan, role: &RolePlan) -> Support {
    let Some(gpu) = gpu::wanted(role) else { return Full };
    let Some(share) = &gpu.share else { return Full };
    match gpu::provider(job, gpu.vendor) {
        Ok(Provider::NvidiaMigMixed | Provider::NvidiaMigSingle) => {}
        Ok(_) => {
            return none(
                "the target's provider serves whole GPUs; write `gpu: {provider: nvidia-mig-mixed}` for the target if its nodes are cut so, or `nvidia-mig-single`",
            );
        }
        Err(why) => return none(why),
    }
    if gpu.count > 1 && share.same_card {
        return none("the device plugin cannot keep slices on one card; ask for one larger profile");
    }
    if gpu.count > 1 && share.isolation != Isolation::None {
        return Lossy(
            "the device plugin may take several slices of one card; ask for `count: 1` and more instances"
                .to_owned(),
        );
    }
    Full
}
