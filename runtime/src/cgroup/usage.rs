//! What the processes of a group have used.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Cgroup, Version};

/// What a container has used so far; what the kernel does not count here is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// CPU time in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_usec: Option<u64>,
    /// Memory now, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// The most memory at any time, in bytes; version 2 tells it from Linux 5.19 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_peak: Option<u64>,
    /// How many processes the kernel has killed because the memory was at its limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oom_kills: Option<u64>,
    /// Processes and threads now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pids: Option<u64>,
}

impl Cgroup {
    /// What the container has used so far. It can be asked after the last process has ended, until the removal.
    pub fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        for group in &self.saved.groups {
            let folder = &group.folder;
            let found = match group.version {
                Version::V2 => Usage {
                    cpu_usec: of_key(folder, "cpu.stat", "usage_usec"),
                    memory: number(folder, "memory.current"),
                    memory_peak: number(folder, "memory.peak"),
                    oom_kills: of_key(folder, "memory.events", "oom_kill"),
                    pids: number(folder, "pids.current"),
                },
                Version::V1 => Usage {
                    cpu_usec: number(folder, "cpuacct.usage").map(|nanoseconds| nanoseconds / 1_000),
                    memory: number(folder, "memory.usage_in_bytes"),
                    memory_peak: number(folder, "memory.max_usage_in_bytes"),
                    oom_kills: of_key(folder, "memory.oom_control", "oom_kill"),
                    pids: number(folder, "pids.current"),
                },
            };
            usage = Usage {
                cpu_usec: usage.cpu_usec.or(found.cpu_usec),
                memory: usage.memory.or(found.memory),
                memory_peak: usage.memory_peak.or(found.memory_peak),
                oom_kills: usage.oom_kills.or(found.oom_kills),
                pids: usage.pids.or(found.pids),
            };
        }
        usage
    }
}

fn number(folder: &Path, file: &str) -> Option<u64> {
    fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok()
}

/// The number of a line `key number`.
fn of_key(folder: &Path, file: &str, key: &str) -> Option<u64> {
    let text = fs::read_to_string(folder.join(file)).ok()?;
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}
