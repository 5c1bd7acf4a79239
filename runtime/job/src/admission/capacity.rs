//! The host's capacity for jobs: as much as this process can use of it, regardless of other users.

use std::path::Path;

use jobc_container::cgroup::{Controller, Layout};
use jobc_gpu::Inventory;
use jobc_sys::error::{Error, Result, errno_of};

/// The resources that can be claimed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Capacity {
    /// Thousandths of a logical CPU: those this process may run on (sched_setaffinity(2)), or its cgroups' quota. CPUs
    /// are not overcommitted: a job that requests CPUs gets its own.
    pub cpu_millis: u64,
    /// Bytes of memory: the host's, without swap, or the limit of this process's cgroups.
    pub memory_bytes: u64,
    /// The GPUs; none if they were not looked up.
    pub gpus: Inventory,
    /// Bytes that are free on the disk where jobs' state is.
    pub disk_bytes: u64,
}

impl Capacity {
    /// Reads the host's capacity without its GPUs, which take longer; `state` is a directory on the disk that counts.
    pub fn of_host(state: &Path) -> Result<Self> {
        let groups = OwnCgroups { layout: Layout::detect()? };
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64;
        // Of all CPUs: the standard library's number already includes quotas, rounded.
        let affinity = rustix::thread::sched_getaffinity(None).map_or(cpus, |set| u64::from(set.count()));
        let quota = groups.cpu_millis().unwrap_or(u64::MAX);
        let total = host_memory_bytes()?;
        let disk = rustix::fs::statvfs(state).map_err(|errno| {
            Error::system(format!("read the file system status of `{}`", state.display()), errno)
        })?;
        Ok(Self {
            cpu_millis: (affinity * 1000).min(quota),
            memory_bytes: total.min(groups.memory_bytes().unwrap_or(u64::MAX)),
            gpus: Inventory::default(),
            disk_bytes: disk.f_bavail.saturating_mul(disk.f_frsize),
        })
    }
}

impl Capacity {
    /// With these GPUs.
    #[must_use]
    pub fn with_gpus(self, gpus: Inventory) -> Self {
        Self { gpus, ..self }
    }
}

fn host_memory_bytes() -> Result<u64> {
    const PATH: &str = "/proc/meminfo";
    let failed = |errno| Error::system(format!("read `{PATH}`"), errno);
    let text = std::fs::read_to_string(PATH).map_err(|error| failed(errno_of(&error)))?;
    total(&text).ok_or_else(|| failed(rustix::io::Errno::INVAL))
}

/// `MemTotal` of /proc/meminfo, which is in units of 1024 bytes (proc_meminfo(5)).
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The cgroups of this process.
struct OwnCgroups {
    layout: Layout,
}

impl OwnCgroups {
    /// The smallest value that a group from this process's up to the root has.
    fn min_limit(&self, controller: Controller, read: impl Fn(&Path, bool) -> Option<u64>) -> Option<u64> {
        let (mount, own, unified) = match (self.layout.hierarchy(controller), &self.layout.unified) {
            (Some(hierarchy), _) => (&hierarchy.mount, &hierarchy.own_group, false),
            (None, Some(unified)) => (&unified.mount, &unified.own_group, true),
            (None, None) => return None,
        };
        let own = own.as_ref()?;
        own.ancestors().filter_map(|group| read(&mount.join(group), unified)).min()
    }

    fn cpu_millis(&self) -> Option<u64> {
        self.min_limit(Controller::Cpu, |group, unified| {
            if unified {
                return millis_of_max(&read(group, "cpu.max")?);
            }
            let quota: u64 = read(group, "cpu.cfs_quota_us")?.trim().parse().ok()?;
            let period: u64 = read(group, "cpu.cfs_period_us")?.trim().parse().ok()?;
            (quota * 1000).checked_div(period)
        })
    }

    fn memory_bytes(&self) -> Option<u64> {
        self.min_limit(Controller::Memory, |group, unified| {
            let name = if unified { "memory.max" } else { "memory.limit_in_bytes" };
            read(group, name)?.trim().parse().ok()
        })
    }
}

fn read(group: &Path, name: &str) -> Option<String> {
    std::fs::read_to_string(group.join(name)).ok()
}

/// Thousandths of a CPU in the text of `cpu.max`: `150000 100000`, or `max 100000`.
fn millis_of_max(text: &str) -> Option<u64> {
    let (quota, period) = text.trim().split_once(' ')?;
    (quota.parse::<u64>().ok()? * 1000).checked_div(period.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_files_are_parsed() {
        assert_eq!(millis_of_max("150000 100000\n"), Some(1500));
        assert_eq!(millis_of_max("max 100000\n"), None);
        assert_eq!(millis_of_max("1 0"), None);
        assert_eq!(total("MemFree: 1 kB\nMemTotal:       16318492 kB\n"), Some(16_318_492 * 1024));
        assert_eq!(total("MemTotal: many"), None);
    }

    #[test]
    fn capacity_of_this_host_is_not_zero() {
        let capacity = Capacity::of_host(Path::new("/")).unwrap();
        assert!(capacity.cpu_millis >= 10 && capacity.memory_bytes > 1 << 24, "{capacity:?}");
        let all = std::thread::available_parallelism().unwrap().get() as u64;
        assert!(capacity.cpu_millis <= 1000 * all.max(1) * 1024);
    }
}
