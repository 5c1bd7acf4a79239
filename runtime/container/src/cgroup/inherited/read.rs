//! Reads limits back from the kernel's files.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::InheritedLimits;
use crate::cgroup::controller::Controller;
use crate::cgroup::layout::{Layout, Version};
use crate::cgroup::limit::has_swap;
use crate::cgroup::path::join_below;
use jobc_sys::kernel_file;

/// The value of cgroup v1 for unlimited memory: the largest number of pages (`PAGE_COUNTER_MAX`).
const UNLIMITED: u64 = 1 << 62;

pub(super) fn limits(layout: &Layout) -> InheritedLimits {
    let memory = Groups::of(layout, Controller::Memory);
    let (limit, both) = if memory.version == Some(Version::V1) {
        (memory.least("memory.limit_in_bytes", bytes), memory.least("memory.memsw.limit_in_bytes", bytes))
    } else {
        let limit = memory.least("memory.max", bytes);
        let swap = memory.least("memory.swap.max", bytes);
        (limit, limit.zip(swap).map(|(memory, swap)| memory.saturating_add(swap)))
    };
    let cpu = Groups::of(layout, Controller::Cpu);
    let cpu_time = if cpu.version == Some(Version::V1) {
        cpu.least_of(|group| {
            let quota = kernel_file::text(group.join("cpu.cfs_quota_us")).ok()?;
            bandwidth(&quota, &kernel_file::text(group.join("cpu.cfs_period_us")).ok()?)
        })
    } else {
        cpu.least("cpu.max", |text| {
            let (quota, period) = text.trim().split_once(' ')?;
            bandwidth(quota, period)
        })
    };
    let cpuset = Groups::of(layout, Controller::Cpuset);
    let cpus = cpuset.own(&["cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"]);
    InheritedLimits {
        memory: limit,
        memory_and_swap: both,
        cpu_time,
        cores: OnceCell::new(),
        cpus,
        memory_nodes: cpuset.own(&["cpuset.mems.effective", "cpuset.effective_mems", "cpuset.mems"]),
        pids: Groups::of(layout, Controller::Pids).least("pids.max", number),
        has_swap: has_swap(),
    }
}

/// The group of this process that has a controller, and those above it.
struct Groups {
    version: Option<Version>,
    /// The directories, this process's own first.
    directories: Vec<PathBuf>,
}

impl Groups {
    fn of(layout: &Layout, controller: Controller) -> Self {
        let (version, place) = match layout.hierarchy(controller) {
            Some(hierarchy) => (Version::V1, Some((&hierarchy.mount, &hierarchy.own_group))),
            None => (Version::V2, layout.unified.as_ref().map(|tree| (&tree.mount, &tree.own_group))),
        };
        let directories = place.and_then(|(mount, own)| {
            Some(own.as_ref()?.ancestors().map(|group| join_below(mount, group)).collect())
        });
        Self { version: place.map(|_| version), directories: directories.unwrap_or_default() }
    }

    fn least(&self, file: &str, parse: impl Fn(&str) -> Option<u64>) -> Option<u64> {
        self.least_of(|group| parse(&kernel_file::text(group.join(file)).ok()?))
    }

    fn least_of(&self, read: impl Fn(&Path) -> Option<u64>) -> Option<u64> {
        self.directories.iter().filter_map(|group| read(group)).min()
    }

    /// A list of numbers of this process's group, which is a subset of its parents'; the first file that exists.
    fn own(&self, files: &[&str]) -> Option<BTreeSet<u32>> {
        // A group of cgroup v2 without the controller has no file, and the CPUs of the nearest above that has one.
        self.directories.iter().find_map(|group| {
            let text = files.iter().find_map(|file| kernel_file::text(group.join(file)).ok())?;
            parse_list(&text).filter(|list| !list.is_empty())
        })
    }
}

fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

fn bytes(text: &str) -> Option<u64> {
    number(text).filter(|bytes| *bytes < UNLIMITED)
}

/// A quota of CPU time, in millionths of a CPU; nothing for `max` and -1.
pub(super) fn bandwidth(quota: &str, period: &str) -> Option<u64> {
    let (quota, period) = (number(quota)?, number(period).filter(|period| *period > 0)?);
    Some(u64::try_from(u128::from(quota) * 1_000_000 / u128::from(period)).unwrap_or(u64::MAX))
}

/// A list such as `0-3,8` (cpuset(7), "List format").
pub(crate) fn parse_list(text: &str) -> Option<BTreeSet<u32>> {
    /// More CPUs than the kernel knows.
    const MAX: u32 = 1 << 16;
    let mut list = BTreeSet::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if last >= MAX {
            return None;
        }
        list.extend(first..=last);
    }
    Some(list)
}

impl InheritedLimits {
    /// The number of cores of the CPUs. It is read only if needed: a host has a file for each CPU.
    pub(super) fn cores(&self) -> Option<usize> {
        let cpus = self.cpus.as_ref()?;
        Some(*self.cores.get_or_init(|| count_cores(cpus, siblings)))
    }
}

/// How many cores CPUs belong to.
pub(super) fn count_cores(cpus: &BTreeSet<u32>, siblings: impl Fn(u32) -> Option<BTreeSet<u32>>) -> usize {
    let first = |cpu: &u32| siblings(*cpu).and_then(|list| list.first().copied()).unwrap_or(*cpu);
    cpus.iter().map(first).collect::<BTreeSet<u32>>().len()
}

/// The hardware threads of the core of a CPU.
fn siblings(cpu: u32) -> Option<BTreeSet<u32>> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    parse_list(&kernel_file::text(path).ok()?)
}
