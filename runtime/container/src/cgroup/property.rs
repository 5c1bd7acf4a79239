//! A container's limits as properties of its unit.
//!
//! They are derived from what is written to the kernel's files, so that systemd, which rewrites the files on `systemctl
//! daemon-reload`, does not change them. systemd leaves limits without a property (huge pages, limits of single disks)
//! alone. Names and units: org.freedesktop.systemd1(5) and systemd.resource-control(5); the version that introduced
//! each, systemd's NEWS.

use super::layout::Version;
use super::limit::Limit;
use crate::systemd::{Property, Value};

/// systemd's `infinity`.
const NO_LIMIT: u64 = u64::MAX;
/// The kernel's default period, in microseconds.
const DEFAULT_PERIOD_USEC: u64 = 100_000;
const SECOND_USEC: u64 = 1_000_000;
/// systemd keeps CPU time in whole hundredths of a CPU: microseconds a second.
const CPU_QUOTA_STEP_USEC: u64 = SECOND_USEC / 100;

/// The properties for limits of a group of that version of cgroups, for a systemd of version `systemd`.
pub(crate) fn from_limits(limits: &[Limit], version: Version, systemd: u32) -> Vec<Property> {
    let mut list: Vec<Property> = vec![];
    let mut quota = None;
    let mut period = None;
    for (file, text) in limits.iter().filter_map(|limit| limit.files.first()) {
        let amount = amount(text);
        match (version, file.as_str()) {
            (Version::V2, "cpu.max") => {
                let (first, second) = text.split_once(' ').unwrap_or((text, ""));
                quota = self::amount(first);
                period = second.parse().ok();
            }
            (Version::V1, "cpu.cfs_quota_us") => quota = amount,
            (Version::V1, "cpu.cfs_period_us") => period = amount,
            // A weight of 0 is `idle`.
            (Version::V2, "cpu.idle") if text == "1" && systemd >= 252 => {
                set(&mut list, "CPUWeight", Value::Uint64(0));
            }
            (Version::V2, "cpuset.cpus" | "cpuset.mems") if systemd >= 244 => {
                let name = if file == "cpuset.cpus" { "AllowedCPUs" } else { "AllowedMemoryNodes" };
                if let Some(mask) = list_to_bitmask(text) {
                    set(&mut list, name, Value::Bytes(mask));
                }
            }
            _ => {
                if let (Some(name), Some(amount)) = (name(version, file), amount) {
                    set(&mut list, name, Value::Uint64(amount));
                }
            }
        }
    }
    if let Some(quota) = quota {
        set(
            &mut list,
            "CPUQuotaPerSecUSec",
            Value::Uint64(per_second(quota, period.unwrap_or(DEFAULT_PERIOD_USEC))),
        );
        if let Some(period) = period.filter(|_| systemd >= 242) {
            set(&mut list, "CPUQuotaPeriodUSec", Value::Uint64(period));
        }
    }
    list
}

/// The property with the value of a file.
fn name(version: Version, file: &str) -> Option<&'static str> {
    Some(match (version, file) {
        (_, "pids.max") => "TasksMax",
        (Version::V2, "memory.max") => "MemoryMax",
        (Version::V2, "memory.high") => "MemoryHigh",
        (Version::V2, "memory.low") => "MemoryLow",
        (Version::V2, "memory.min") => "MemoryMin",
        (Version::V2, "memory.swap.max") => "MemorySwapMax",
        (Version::V2, "cpu.weight") => "CPUWeight",
        (Version::V2, "io.weight") => "IOWeight",
        (Version::V1, "memory.limit_in_bytes") => "MemoryLimit",
        (Version::V1, "cpu.shares") => "CPUShares",
        (Version::V1, "blkio.weight") => "BlockIOWeight",
        _ => return None,
    })
}

fn set(list: &mut Vec<Property>, name: &str, value: Value) {
    list.retain(|(other, _)| other != name);
    list.push((name.to_owned(), value));
}

/// A number of a file, or no limit.
fn amount(text: &str) -> Option<u64> {
    if matches!(text, "max" | "-1") { Some(NO_LIMIT) } else { text.parse().ok() }
}

/// CPU time per second, in microseconds; never less than was written to the kernel.
fn per_second(quota: u64, period: u64) -> u64 {
    if quota == NO_LIMIT {
        return NO_LIMIT;
    }
    let exact = (u128::from(quota) * u128::from(SECOND_USEC)).div_ceil(u128::from(period.max(1)));
    u64::try_from(exact.next_multiple_of(u128::from(CPU_QUOTA_STEP_USEC))).unwrap_or(NO_LIMIT)
}

/// A list such as `0-3,7` as bits, the lowest number in the lowest bit of the first byte.
fn list_to_bitmask(list: &str) -> Option<Vec<u8>> {
    /// More CPUs than any kernel supports.
    const MAX_CPUS: usize = 1 << 16;
    let mut mask = vec![];
    for part in list.split(',').map(str::trim) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        for bit in (first..=last).take(MAX_CPUS) {
            if bit >= MAX_CPUS {
                return None;
            }
            if mask.len() <= bit / 8 {
                mask.resize(bit / 8 + 1, 0);
            }
            mask[bit / 8] |= 1 << (bit % 8);
        }
    }
    Some(mask)
}

#[cfg(test)]
mod tests;
