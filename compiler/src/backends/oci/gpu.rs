//! GPUs of a bundle: the environment variables of the vendors, and the injection methods.
//!
//! Numbers are logical: task `i` of a role has `count` of them from `first + i * count`. `oci.devices` of the target
//! maps them to cards, otherwise the program that runs the bundle does. reference/gpu.md A.3 and A.4 have the sources
//! of the names.

use jobc_schema::gpu::Vendor;
use jobc_schema::plan::{GpuPlan, JobPlan, RolePlan};
use jobc_schema::target::GpuInjection;
use oci_spec::runtime::{Hook, Hooks};

use crate::backend::tasks::Task;
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Where NVIDIA's packages install the hook.
const HOOK: &str = "/usr/bin/nvidia-container-runtime-hook";

/// The logical numbers of a task's GPUs or slices.
pub(super) fn numbers(gpu: &GpuPlan, task: Task<'_>) -> Vec<u64> {
    let count = u64::from(gpu.count);
    let first = u64::from(gpu.first) + u64::from(task.index) * count;
    (first..first + count).collect()
}

/// The numbers, separated by commas, as the vendors' variables require.
pub(super) fn list(numbers: &[u64]) -> String {
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(",")
}

/// The variables that request the task's GPUs from the vendor's runtime; none if the role has no `gpu`.
///
/// `void` hides all: for `gpu: 0`, for slices, whose devices only an allocation can name, so that a program never sees
/// whole cards instead, and if the target names too few.
pub(super) fn env(job: &JobPlan, task: Task<'_>) -> Vec<(&'static str, String)> {
    let Some(gpu) = &task.role.resources.gpu else { return vec![] };
    if gpu.count == 0 {
        return vec![("NVIDIA_VISIBLE_DEVICES", "void".into()), ("AMD_VISIBLE_DEVICES", "void".into())];
    }
    let named = job.gpu_names(task.role, task.index).filter(|_| gpu.share.is_none());
    let visible = named.map_or("void".to_owned(), |names| names.join(","));
    match gpu.vendor {
        Vendor::Nvidia => {
            let mut env = vec![("NVIDIA_VISIBLE_DEVICES", visible)];
            if !gpu.capabilities.is_empty() {
                let capabilities: Vec<_> = gpu.capabilities.iter().map(|c| c.as_str()).collect();
                env.push(("NVIDIA_DRIVER_CAPABILITIES", capabilities.join(",")));
            }
            if let Some(cuda) = &gpu.cuda {
                env.push(("NVIDIA_REQUIRE_CUDA", format!("cuda>={}", major_minor(cuda))));
            }
            if let Some(driver) = &gpu.driver {
                env.push(("NVIDIA_REQUIRE_DRIVER", format!("driver>={driver}")));
            }
            if let Some(arch) = &gpu.compute_capability {
                env.push(("NVIDIA_REQUIRE_ARCH", format!("arch>={arch}")));
            }
            env
        }
        Vendor::Amd => vec![("AMD_VISIBLE_DEVICES", visible)],
        // Intel's have no such contract: the nodes of /dev/dri are all there is. The others are refused.
        _ => vec![],
    }
}

/// The injection in a bundle, if the chosen method supports the task's GPUs.
pub(super) enum Injection {
    /// NVIDIA's prestart hook.
    Hook(Hooks),
    /// CDI device names, with commas between.
    Devices(String),
}

/// The injection in the bundle of the task.
pub(super) fn injection(job: &JobPlan, task: Task<'_>, chosen: GpuInjection) -> Option<Injection> {
    let gpu = task.role.gpus().filter(|gpu| serves(chosen, gpu))?;
    match chosen {
        GpuInjection::None => None,
        GpuInjection::Hook => Some(Injection::Hook(nvidia_hook())),
        GpuInjection::Cdi => {
            let kind = if gpu.vendor == Vendor::Amd { "amd.com/gpu" } else { "nvidia.com/gpu" };
            let names = job.gpu_names(task.role, task.index)?;
            let names: Vec<_> = names.iter().map(|name| format!("{kind}={name}")).collect();
            Some(Injection::Devices(names.join(",")))
        }
    }
}

/// Reports roles for which the target's `oci.devices` names too few GPUs.
pub(super) fn check_devices(job: &JobPlan, sink: &mut Sink) {
    let whole = |role: &&RolePlan| role.gpus().is_some_and(|gpu| gpu.share.is_none());
    for role in job.roles.iter().filter(whole) {
        let last = role.at_once().saturating_sub(1);
        if job.gpu_names(role, last).is_none() {
            let message = format!("`oci.devices` of the target names too few GPUs for role `{}`", role.name);
            sink.push(
                Diagnostic::warning(codes::TOO_FEW_DEVICES, message)
                    .at(&role.at().keys(["resources", "gpu"]), "")
                    .note("name a GPU for each that the job uses at once, or leave `oci.devices` out; bundles of instances without a name have no GPUs"),
            );
        }
    }
}

/// Reports roles whose GPUs the chosen method does not support.
pub(super) fn check_injection(job: &JobPlan, chosen: GpuInjection, sink: &mut Sink) {
    let way = match chosen {
        GpuInjection::None => return,
        GpuInjection::Hook => "hook",
        GpuInjection::Cdi => "cdi",
    };
    for role in &job.roles {
        let Some(gpu) = role.gpus().filter(|gpu| !serves(chosen, gpu)) else {
            continue;
        };
        let what = match (&gpu.share, gpu.vendor) {
            (Some(_), _) => "slices of a GPU",
            (None, Vendor::Nvidia) => "these GPUs",
            (None, vendor) => &format!("{}s", vendor.card()),
        };
        sink.push(
            Diagnostic::warning(
                codes::GPU_NOT_INJECTED,
                format!(
                    "GPU injection `{way}` does not support {what}, so the bundles of `{}` have no GPU injection",
                    role.name
                ),
            )
            .at(&role.at().keys(["resources", "gpu"]), "")
            .note("`jobc run` adds the devices itself; with another runtime, add them yourself"),
        );
    }
}

/// Whether an injection method knows the devices before a host has allocated them.
fn serves(chosen: GpuInjection, gpu: &GpuPlan) -> bool {
    gpu.share.is_none()
        && match chosen {
            GpuInjection::None => true,
            GpuInjection::Hook => gpu.vendor == Vendor::Nvidia,
            GpuInjection::Cdi => matches!(gpu.vendor, Vendor::Nvidia | Vendor::Amd),
        }
}

/// The hook as NVIDIA's own runtime inserts it; it reads the environment of the bundle.
fn nvidia_hook() -> Hooks {
    let mut hook = Hook::default();
    hook.set_path(HOOK.into())
        .set_args(Some(vec!["nvidia-container-runtime-hook".into(), "prestart".into()]));
    let mut hooks = Hooks::default();
    // Deprecated since 1.0.2, but the only kind NVIDIA's hook works as, and still run by every runtime.
    hooks.set_prestart(Some(vec![hook]));
    hooks
}

/// `12.4.1` as `12.4`: the driver only distinguishes these.
fn major_minor(version: &str) -> String {
    version.split('.').take(2).collect::<Vec<_>>().join(".")
}
