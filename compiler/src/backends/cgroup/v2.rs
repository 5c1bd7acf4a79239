//! Files of the unified tree; Documentation/admin-guide/cgroup-v2.rst of the kernel.
//!
//! There is no file for devices: a BPF program attached to the group decides, which the runtime makes from the bundle.

use crate::backend::limits::{Limits, Throttle};

use super::Setting;

/// The files of a task's group.
pub(super) fn files(limits: &Limits) -> Vec<Setting> {
    let mut list = vec![];
    if let Some(cpu) = limits.cpu {
        list.push(Setting::of("cpu", "cpu.max", &format!("{} {}", cpu.quota, cpu.period)));
        list.push(Setting::of("cpu", "cpu.weight", &cpu.weight()));
    }
    if let Some(cpus) = &limits.cpuset {
        list.push(Setting::of_target("cpuset", "cpuset.cpus", &cpus));
    }
    if let Some(mems) = &limits.mems {
        list.push(Setting::of_target("mems", "cpuset.mems", &mems));
    }
    if let Some(memory) = limits.memory {
        list.push(Setting::of("memory", "memory.max", &memory.bytes));
        // Here swap is counted separately.
        list.push(Setting::of("memory", "memory.swap.max", &memory.swap));
    }
    if let Some(pids) = limits.pids {
        list.push(Setting::of("pids", "pids.max", &pids));
    }
    if let Some(weight) = limits.io {
        list.push(Setting::of_target("io_weight", "io.weight", &weight.v2()));
    }
    // One per write, as in cgroup v1.
    let lines: Vec<String> = limits.throttles.iter().filter_map(line).collect();
    if !lines.is_empty() {
        list.push(Setting::of("io", "io.max", &lines.join("\n")));
    }
    for page in &limits.huge_pages {
        list.push(Setting::of_page(page, format!("hugetlb.{}.max", page.size)));
    }
    list
}

/// The limits of a device: `259:0 rbps=1000000 wiops=100`.
fn line(throttle: &Throttle) -> Option<String> {
    let (major, minor) = throttle.number()?;
    let rates: String = throttle.limits.rates().map(|(key, rate)| format!(" {key}={rate}")).collect();
    Some(format!("{major}:{minor}{rates}"))
}
