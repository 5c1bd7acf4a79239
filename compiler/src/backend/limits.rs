//! The limits of a task that the kernel enforces: the numbers that bundles and cgroup files share.

use std::fmt;

use jobc_schema::Pointer;
use jobc_schema::plan::{IoPlan, JobPlan, RolePlan};

use crate::diagnostic::{Diagnostic, Location, Safety, Sink, codes};

/// The usual length of a CPU period, in microseconds.
const PERIOD: u64 = 100_000;

/// The maximum CPU period that the kernel accepts, in microseconds; it also requires a quota of at least 1,000.
const MAX_PERIOD: u64 = 1_000_000;

/// The limits of a task; `None` means unlimited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// CPU time.
    pub cpu: Option<CpuLimit>,
    /// The CPUs it may run on, as the kernel writes a list.
    pub cpuset: Option<String>,
    /// The memory nodes it may use, as the kernel writes a list.
    pub mems: Option<String>,
    /// Memory.
    pub memory: Option<MemoryLimit>,
    /// Processes and threads.
    pub pids: Option<u32>,
    /// Memory in huge pages.
    pub huge_pages: Vec<HugePageLimit>,
    /// The weight of its disk traffic.
    pub io: Option<IoWeight>,
    /// Limits of its disk traffic.
    pub throttles: Vec<Throttle>,
    /// Whether it may open every device of the host, and not only [`DEVICES`].
    pub all_devices: bool,
}

/// CPU time: at most `quota` in each `period`, and `shares` relative to others when CPUs are scarce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuLimit {
    /// Microseconds of CPU time in a period.
    pub quota: u64,
    /// Microseconds.
    pub period: u64,
    /// 1024 for a whole CPU, from 2 to 262,144: the scale of cgroup v1.
    pub shares: u64,
}

/// Memory, and swap besides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    /// Bytes of memory.
    pub bytes: u64,
    /// Bytes of swap besides the memory.
    pub swap: u64,
}

/// Memory in huge pages of one size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HugePageLimit {
    /// The size of a page as the kernel's file names spell it: `2MB` for 2 MiB.
    pub size: String,
    /// Bytes.
    pub bytes: u64,
    /// How the job file spells the size.
    pub written: String,
}

/// The weight of disk traffic, from 10 to 1000: the scale of cgroup v1 and of OCI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoWeight(pub u16);

/// The limits of disk traffic with one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Throttle {
    /// A path of the host, or the device's number.
    pub device: String,
    /// The limits.
    pub limits: IoPlan,
}

impl Throttle {
    /// The device's number, where the job file has it. Only the host knows the number for a path.
    pub fn number(&self) -> Option<(i64, i64)> {
        let (major, minor) = self.device.split_once(':').filter(|_| !self.device.starts_with('/'))?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    }
}

/// A device that every task may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceRule {
    /// `c` or `b`.
    pub kind: char,
    /// The major number; all where absent.
    pub major: Option<u32>,
    /// The minor number; all where absent.
    pub minor: Option<u32>,
    /// Of `r`, `w` and `m`, which is mknod(2).
    pub access: &'static str,
    /// Its name in systemd.
    pub systemd: &'static str,
}

/// The devices a task may use, in the order of the rules; everything else is denied before.
///
/// The set that container runtimes allow by themselves: any node may be created, but only those that every Linux has
/// may be used. GPUs and RDMA devices have numbers of the host's own, so the executor of a task allows them.
pub const DEVICES: &[DeviceRule] = &[
    device('c', None, None, "m", "char-*"),
    device('b', None, None, "m", "block-*"),
    device('c', Some(1), Some(3), "rwm", "/dev/null"),
    device('c', Some(1), Some(5), "rwm", "/dev/zero"),
    device('c', Some(1), Some(7), "rwm", "/dev/full"),
    device('c', Some(1), Some(8), "rwm", "/dev/random"),
    device('c', Some(1), Some(9), "rwm", "/dev/urandom"),
    device('c', Some(5), Some(0), "rwm", "/dev/tty"),
    device('c', Some(5), Some(1), "rwm", "/dev/console"),
    device('c', Some(5), Some(2), "rwm", "/dev/ptmx"),
    device('c', Some(136), None, "rwm", "char-pts"),
];

const fn device(
    kind: char,
    major: Option<u32>,
    minor: Option<u32>,
    access: &'static str,
    systemd: &'static str,
) -> DeviceRule {
    DeviceRule { kind, major, minor, access, systemd }
}

impl CpuLimit {
    /// The limit for this many thousandths of a CPU, exact to the microsecond.
    ///
    /// Below a hundredth of a CPU the usual period would make the quota smaller than the kernel accepts, so the period
    /// is longer.
    pub fn of(millis: u64) -> Self {
        let period = if millis < 10 { MAX_PERIOD } else { PERIOD };
        let quota = millis.saturating_mul(period / 1000);
        let shares = (millis.saturating_mul(1024) / 1000).clamp(2, 262_144);
        Self { quota, period, shares }
    }

    /// The weight that cgroup v2 has instead of shares, from 1 to 10,000.
    ///
    /// The linear formula of runc before 1.3.2 and crun before 1.23, which maps the ends of one scale to those of the
    /// other. Later ones map 1,024 shares to a weight of 100 by a quadratic in the logarithm, and so give other weights
    /// for the same shares.
    pub fn weight(self) -> u64 {
        1 + (self.shares - 2) * 9_999 / 262_142
    }
}

impl IoWeight {
    /// The weight on the scale of cgroup v2's `io.weight`, from 1 to 10,000; the runtimes' own formula.
    pub fn v2(self) -> u64 {
        1 + (u64::from(self.0).max(10) - 10) * 9_999 / 990
    }
}

impl Limits {
    /// The limits of a role's tasks.
    pub fn of(job: &JobPlan, role: &RolePlan) -> Self {
        let resources = &role.resources;
        let settings = job.target.settings.cgroup.clone().unwrap_or_default();
        let swap = settings.swap.map_or(0, |bytes| bytes.0);
        let huge_pages = resources.hugepages_bytes.iter().map(|(written, bytes)| HugePageLimit {
            size: written.replace("iB", "B"),
            bytes: *bytes,
            written: written.clone(),
        });
        Self {
            cpu: resources.cpu_millis.map(CpuLimit::of),
            cpuset: settings.cpuset,
            mems: settings.mems,
            memory: resources.memory_bytes.map(|bytes| MemoryLimit { bytes, swap }),
            pids: resources.pids,
            huge_pages: huge_pages.collect(),
            io: settings.io_weight.map(IoWeight),
            throttles: resources
                .io
                .iter()
                .map(|(device, limits)| Throttle { device: device.clone(), limits: *limits })
                .collect(),
            all_devices: role.security.privileged,
        }
    }
}

/// Reports errors in the target's `cgroup` settings.
pub fn check_settings(job: &JobPlan, sink: &mut Sink) {
    let Some(settings) = &job.target.settings.cgroup else { return };
    let at = Pointer::ROOT.keys(["targets", &job.target.name, "cgroup"]);
    for (key, list) in [("cpuset", &settings.cpuset), ("mems", &settings.mems)] {
        if let Some(list) = list
            && let Err(why) = check_list(list)
        {
            let message = format!("invalid list of CPUs or memory nodes `{list}`");
            let diagnostic = Diagnostic::error(codes::KERNEL_LIST, message)
                .at_place(Location::target(&at.key(key)), why.to_string())
                .note("write numbers and ranges in ascending order, such as `0-7,16`");
            let mended = list.split(',').map(ascending).collect::<Vec<_>>().join(",");
            sink.push(if check_list(&mended).is_ok() {
                let place = Location::target(&at.key(key));
                diagnostic.fix(format!("write `{mended}`"), place, format!("\"{mended}\""), Safety::Unsafe)
            } else {
                diagnostic
            });
        }
    }
}

/// A range from its lower number to its higher one.
fn ascending(part: &str) -> String {
    match part.split_once('-').map(|(first, last)| (first.parse::<u16>(), last.parse::<u16>())) {
        Some((Ok(first), Ok(last))) if first > last => format!("{last}-{first}"),
        _ => part.to_owned(),
    }
}

/// What is wrong with a list of numbers and ranges.
#[derive(Debug, PartialEq, Eq)]
enum ListError<'t> {
    Descending(u16, u16),
    NotANumber(&'t str),
}

impl fmt::Display for ListError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Descending(first, last) => {
                write!(f, "the range is in descending order; write `{last}-{first}`")
            }
            Self::NotANumber(part) => {
                write!(f, "`{part}` is neither a number nor a range of numbers below 65536")
            }
        }
    }
}

/// Checks a list as the kernel reads it: `0-7,16`.
fn check_list(written: &str) -> Result<(), ListError<'_>> {
    for part in written.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (first.parse::<u16>(), last.parse::<u16>()) {
            (Ok(first), Ok(last)) if first <= last => {}
            (Ok(first), Ok(last)) => return Err(ListError::Descending(first, last)),
            _ => return Err(ListError::NotANumber(part)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
