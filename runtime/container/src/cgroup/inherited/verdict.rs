//! Whether inherited limits are at least as strict as those of config.json.

use oci_spec::runtime::{LinuxCpu, LinuxMemory, LinuxResources};

use super::read::parse_list;
use super::{InheritedLimits, RESOURCES_POINTER};

/// The period in which CPU time is counted where config.json names none, in microseconds.
const DEFAULT_PERIOD_US: u64 = 100_000;
const MIB: u64 = 1 << 20;

/// How exactly a limit must be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Rounding {
    /// To the byte, and to the millionth of a CPU.
    Exact,
    /// In the units in which batch systems give out resources: the next MiB, and the next whole core.
    Site,
}

impl InheritedLimits {
    /// Why the limit at a place of config.json is not kept; nothing where it is.
    pub(in super::super) fn weakness(
        &self,
        place: &str,
        resources: &LinuxResources,
        rounding: Rounding,
    ) -> Option<String> {
        let cpu = resources.cpu().as_ref();
        let memory = resources.memory().as_ref();
        match place.strip_prefix(RESOURCES_POINTER).unwrap_or(place) {
            "memory/limit" => {
                let asked = positive(memory.and_then(LinuxMemory::limit))?;
                at_most(self.memory, round(asked, rounding), "memory", mebibytes)
            }
            "memory/swap" => {
                let asked = positive(memory.and_then(LinuxMemory::swap))?;
                if !self.has_swap {
                    // The limit of memory without swap, which is reported separately.
                    return None;
                }
                at_most(self.memory_and_swap, round(asked, rounding), "memory and swap", mebibytes)
            }
            // A period means something together with a quota only.
            "cpu/quota" | "cpu/period" => self.cpu_weakness(cpu?, rounding),
            // A weight relative to sibling containers; a cgroup that is not divided has no siblings.
            "cpu/shares" => None,
            "cpu/cpus" => within(self.cpus.as_ref(), cpu?.cpus().as_deref()?, "CPUs"),
            "cpu/mems" => within(self.memory_nodes.as_ref(), cpu?.mems().as_deref()?, "memory nodes"),
            "pids/limit" => {
                let asked = positive(resources.pids().as_ref().map(oci_spec::runtime::LinuxPids::limit))?;
                at_most(self.pids, asked, "processes", |count| count.to_string())
            }
            _ => Some("the container has no cgroup of its own for it".to_owned()),
        }
    }

    fn cpu_weakness(&self, cpu: &LinuxCpu, rounding: Rounding) -> Option<String> {
        let quota = positive(cpu.quota())?;
        let period = cpu.period().filter(|period| *period > 0).unwrap_or(DEFAULT_PERIOD_US);
        let asked = u128::from(quota) * 1_000_000 / u128::from(period);
        let asked = u64::try_from(asked).unwrap_or(u64::MAX);
        let in_set = self.cpus.as_ref().map(|cpus| {
            let count = u64::try_from(cpus.len()).unwrap_or(u64::MAX);
            count.saturating_mul(1_000_000)
        });
        if [self.cpu_time, in_set].into_iter().flatten().any(|time| time <= asked) {
            return None;
        }
        if rounding == Rounding::Site && in_set.is_some_and(|time| time <= self.whole_cores(asked)) {
            return None;
        }
        at_most(self.cpu_time.into_iter().chain(in_set).min(), asked, "CPUs", cpus)
    }

    /// CPU time, in millionths of a CPU, rounded up to that of whole cores.
    fn whole_cores(&self, asked: u64) -> u64 {
        let cpus = self.cpus.as_ref().map_or(1, std::collections::BTreeSet::len);
        let per_core = cpus.div_ceil(self.cores().unwrap_or(1).max(1));
        let per_core = u64::try_from(per_core).unwrap_or(1).saturating_mul(1_000_000);
        asked.div_ceil(per_core).saturating_mul(per_core)
    }
}

/// A limit that limits something.
fn positive(limit: Option<i64>) -> Option<u64> {
    limit.and_then(|limit| u64::try_from(limit).ok()).filter(|limit| *limit > 0)
}

fn round(bytes: u64, rounding: Rounding) -> u64 {
    match rounding {
        Rounding::Exact => bytes,
        Rounding::Site => bytes.div_ceil(MIB).saturating_mul(MIB),
    }
}

/// The problem of a limit that exceeds the allowed maximum, or of a missing limit.
fn at_most(there: Option<u64>, max: u64, what: &str, show: impl Fn(u64) -> String) -> Option<String> {
    match there {
        Some(there) if there <= max => None,
        Some(there) => Some(format!(
            "the cgroup of this process allows {} of {what}, more than {}",
            show(there),
            show(max)
        )),
        None => Some(format!("the cgroup of this process does not limit {what}")),
    }
}

/// The problem of a set that has more than the requested items.
fn within(there: Option<&std::collections::BTreeSet<u32>>, wanted: &str, what: &str) -> Option<String> {
    let Some(there) = there else { return Some(format!("the cgroup of this process does not limit {what}")) };
    let wanted_set = parse_list(wanted)?;
    (!there.is_subset(&wanted_set))
        .then(|| format!("the cgroup of this process allows other {what} than {wanted}"))
}

fn mebibytes(bytes: u64) -> String {
    if bytes.is_multiple_of(MIB) { format!("{} MiB", bytes / MIB) } else { format!("{bytes} bytes") }
}

/// Formats millionths of a CPU.
fn cpus(millionths: u64) -> String {
    let (whole, rest) = (millionths / 1_000_000, millionths % 1_000_000);
    if rest == 0 {
        return whole.to_string();
    }
    format!("{whole}.{rest:06}").trim_end_matches('0').to_owned()
}
