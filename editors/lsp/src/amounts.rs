//! The resources of roles, as text.

use jobc_schema::Bytes;
use jobc_schema::plan::{GpuPlan, RolePlan};
use jobc_schema::plural;

/// The resources of one instance and of the whole role: `4 instances; each 64 CPUs, 512GiB, 8 GPUs; in all 32 GPUs, …`.
pub(crate) fn of_role(role: &RolePlan) -> String {
    let each = parts(role, 1);
    let instances = plural(u64::from(role.instances), "instance");
    match (role.instances, &each[..]) {
        (_, []) => instances,
        (1, each) => format!("{instances}: {}", each.join(", ")),
        (n, each) => format!("{instances}, each {}; in all {}", each.join(", "), parts(role, n).join(", ")),
    }
}

/// The totals of a hint: GPUs, CPUs and memory of all instances, such as `4 instances: 32 GPUs, 256 CPUs, 2TiB`.
pub(crate) fn hint(role: &RolePlan) -> Option<String> {
    let mut parts = parts(role, role.instances);
    // Scarce resources come first.
    if role.gpus().is_some() {
        parts.rotate_right(1);
    }
    let all = Some(parts.join(", ")).filter(|all| !all.is_empty())?;
    Some(if role.instances > 1 { format!("{} instances: {all}", role.instances) } else { all })
}

fn parts(role: &RolePlan, instances: u32) -> Vec<String> {
    let resources = &role.resources;
    let n = u64::from(instances);
    let mut parts = vec![];
    parts.extend(resources.cpu_millis.map(|millis| cpus(millis.saturating_mul(n))));
    parts.extend(resources.memory_bytes.map(|bytes| Bytes(bytes.saturating_mul(n)).to_string()));
    parts.extend(role.gpus().map(|gpu| gpus(gpu, instances)));
    parts
}

/// Formats thousandths of a CPU: `1 CPU`, `64 CPUs`, `0.5 CPUs`.
pub(crate) fn cpus(millis: u64) -> String {
    if millis.is_multiple_of(1000) {
        return plural(millis / 1000, "CPU");
    }
    let fraction = format!("{:03}", millis % 1000);
    format!("{}.{} CPUs", millis / 1000, fraction.trim_end_matches('0'))
}

/// GPUs or slices of all instances.
fn gpus(gpu: &GpuPlan, instances: u32) -> String {
    let what = if gpu.share.is_some() { "GPU slice" } else { "GPU" };
    plural(u64::from(gpu.count) * u64::from(instances), what)
}
