//! The limits of cgroups that others made around this process: a step of Slurm, a scope of systemd, a pod.
//!
//! A limit holds for every group below the one that has it, so what counts is the least of this process's group and all
//! above it: the group of a task may read `max` where its step is limited. CPUs are limited by time, by a set of them,
//! or by both.

mod read;
mod verdict;

use std::cell::OnceCell;
use std::collections::BTreeSet;

use oci_spec::runtime::LinuxResources;

use super::layout::Layout;
use super::unenforced::UnenforcedLimit;
pub(crate) use read::parse_list;
pub(super) use verdict::Rounding;

/// The limits that hold for this process, each the minimum of its group and its ancestors; `None` if there is no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InheritedLimits {
    /// Memory, in bytes.
    memory: Option<u64>,
    /// Memory and swap together, in bytes.
    memory_and_swap: Option<u64>,
    /// CPU time, in millionths of a CPU.
    cpu_time: Option<u64>,
    /// The CPUs that may be used.
    cpus: Option<BTreeSet<u32>>,
    /// The number of cores among [`Self::cpus`]: hardware threads of one core count once. Computed on demand.
    cores: OnceCell<usize>,
    /// The NUMA nodes that memory may come from.
    memory_nodes: Option<BTreeSet<u32>>,
    /// Processes and threads.
    pids: Option<u64>,
    /// Whether the host swaps.
    has_swap: bool,
}

impl InheritedLimits {
    /// Reads the limits of the groups of this process. A group that cannot be seen from here limits nothing.
    pub fn read(layout: &Layout) -> Self {
        read::limits(layout)
    }

    /// Takes those limits out of a list of unenforced ones that hold for this process anyway, exactly as strict as asked
    /// or stricter.
    pub(crate) fn remove_enforced(&self, resources: &LinuxResources, unenforced: &mut Vec<UnenforcedLimit>) {
        unenforced.retain(|limit| {
            !limit.place.starts_with(RESOURCES_POINTER)
                || self.weakness(&limit.place, resources, Rounding::Exact).is_some()
        });
    }
}

/// The places of limits in config.json.
const RESOURCES_POINTER: &str = "/linux/resources/";

#[cfg(test)]
mod tests;
