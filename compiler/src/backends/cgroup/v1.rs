//! Files of the cgroup v1 hierarchies, one directory per controller; Documentation/admin-guide/cgroup-v1 of the kernel.

use crate::backend::limits::{DEVICES, DeviceRule, Limits, Throttle};

use super::Setting;

/// The files of a task's groups, as `<controller>/<file>`.
///
/// Some must be written in this order: memory before memory and swap, `devices.deny` before `devices.allow`.
pub(super) fn files(limits: &Limits) -> Vec<Setting> {
    let mut list = vec![];
    if let Some(cpu) = limits.cpu {
        list.push(Setting::of("cpu", "cpu/cpu.cfs_period_us", &cpu.period));
        list.push(Setting::of("cpu", "cpu/cpu.cfs_quota_us", &cpu.quota));
        list.push(Setting::of("cpu", "cpu/cpu.shares", &cpu.shares));
    }
    if let Some(cpus) = &limits.cpuset {
        list.push(Setting::of_target("cpuset", "cpuset/cpuset.cpus", &cpus));
    }
    if let Some(mems) = &limits.mems {
        list.push(Setting::of_target("mems", "cpuset/cpuset.mems", &mems));
    }
    if let Some(memory) = limits.memory {
        list.push(Setting::of("memory", "memory/memory.limit_in_bytes", &memory.bytes));
        // Here memory and swap are counted together.
        let both = memory.bytes.saturating_add(memory.swap);
        list.push(Setting::of("memory", "memory/memory.memsw.limit_in_bytes", &both));
    }
    if let Some(pids) = limits.pids {
        list.push(Setting::of("pids", "pids/pids.max", &pids));
    }
    if let Some(weight) = limits.io {
        list.push(Setting::of_target("io_weight", "blkio/blkio.weight", &weight.0));
    }
    let files =
        [("rbps", "read_bps"), ("wbps", "write_bps"), ("riops", "read_iops"), ("wiops", "write_iops")];
    for (key, file) in files {
        let lines: Vec<String> = limits.throttles.iter().filter_map(|throttle| rate(throttle, key)).collect();
        if !lines.is_empty() {
            list.push(Setting::of("io", &format!("blkio/blkio.throttle.{file}_device"), &lines.join("\n")));
        }
    }
    for page in &limits.huge_pages {
        list.push(Setting::of_page(page, format!("hugetlb/hugetlb.{}.limit_in_bytes", page.size)));
    }
    if limits.all_devices {
        list.push(Setting::default_setting("devices/devices.allow", "a *:* rwm".to_owned()));
    } else {
        let allowed: Vec<_> = DEVICES.iter().map(line).collect();
        list.push(Setting::default_setting("devices/devices.deny", "a".to_owned()));
        list.push(Setting::default_setting("devices/devices.allow", allowed.join("\n")));
    }
    list
}

/// A limit as the kernel reads it, one per write: `259:0 1000000`.
fn rate(throttle: &Throttle, key: &str) -> Option<String> {
    let (major, minor) = throttle.number()?;
    let (_, rate) = throttle.limits.rates().find(|(known, _)| *known == key)?;
    Some(format!("{major}:{minor} {rate}"))
}

/// A rule as the kernel reads it, one per write: `c 1:3 rwm`.
fn line(rule: &DeviceRule) -> String {
    let number = |number: Option<u32>| number.map_or_else(|| "*".to_owned(), |n| n.to_string());
    format!("{} {}:{} {}", rule.kind, number(rule.major), number(rule.minor), rule.access)
}
