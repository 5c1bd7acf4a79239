//! The usage of tasks without a cgroup that counts it: the sum over their processes, from /proc.
//!
//! CPU time includes children whose ends were taken in by their parents (proc_pid_stat(5)). Memory that processes share,
//! such as libraries, is counted once, as the most that one of them shares; pages of a forked process that neither it nor
//! its parent has written are counted for both.

use std::collections::BTreeMap;
use std::fs;

use jobc_container::cgroup::Usage;
use jobc_sys::pid_namespace;
use jobc_sys::syscall::ended::EndedUsage;

/// The processes of a task.
#[derive(Clone, Debug)]
pub(super) struct TaskProcesses {
    /// Their numbers.
    pub(super) pids: Vec<u32>,
    /// Their total usage.
    pub(super) usage: Usage,
}

/// The processes of each task, by the PID of its first one; empty if that one has exited.
pub(super) fn read(firsts: &[u32]) -> BTreeMap<u32, TaskProcesses> {
    if firsts.is_empty() {
        return BTreeMap::new();
    }
    let members = pid_namespace::members(firsts).unwrap_or_default();
    let read = |pids: Vec<u32>| TaskProcesses {
        usage: sum(pids.iter().filter_map(|&pid| ProcessUsage::read(pid))),
        pids,
    };
    members.into_iter().map(|(first, pids)| (first, read(pids))).collect()
}

/// Whether the cgroup of a task leaves out what its processes tell.
pub(super) fn is_needed(usage: &Usage) -> bool {
    usage.cpu_usec.is_none() || usage.memory.is_none()
}

/// The counts of the cgroup, and the sums over the processes for all other values.
pub(super) fn fill(usage: &mut Usage, processes: Usage) {
    let fields: [fn(&mut Usage) -> &mut Option<u64>; 6] = [
        |usage| &mut usage.cpu_usec,
        |usage| &mut usage.memory,
        |usage| &mut usage.memory_peak,
        |usage| &mut usage.read_bytes,
        |usage| &mut usage.written_bytes,
        |usage| &mut usage.pids,
    ];
    let mut processes = processes;
    for field in fields {
        let found = field(&mut processes).take();
        let known = field(usage);
        *known = known.or(found);
    }
}

/// What an attempt used in all, for what no cgroup counts. The last sample's peak is of all its processes together, and
/// the kernel's of the largest; the greater one is closer to the truth.
pub(super) fn at_end(ended: EndedUsage, last: Option<&Usage>) -> Usage {
    let most = |now: u64, before: Option<u64>| Some(before.unwrap_or(0).max(now));
    Usage {
        cpu_usec: most(ended.cpu_usec, last.and_then(|last| last.cpu_usec)),
        memory: Some(0),
        memory_peak: most(ended.largest_resident_bytes, last.and_then(|last| last.memory_peak)),
        read_bytes: most(ended.read_bytes, last.and_then(|last| last.read_bytes)),
        written_bytes: most(ended.written_bytes, last.and_then(|last| last.written_bytes)),
        pids: Some(0),
        ..Usage::default()
    }
}

/// The usage of one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ProcessUsage {
    cpu_usec: u64,
    threads: u64,
    /// Bytes of memory that only it has.
    private: u64,
    /// Bytes of files and of shared memory.
    shared: u64,
    /// Bytes read from and written to disks; nothing where this user may not know.
    disks: Option<(u64, u64)>,
}

impl ProcessUsage {
    fn read(pid: u32) -> Option<Self> {
        let text = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).ok();
        Self::parse(&text("stat")?, &text("statm")?, text("io").as_deref())
    }

    /// proc_pid_stat(5), proc_pid_statm(5) and proc_pid_io(5).
    fn parse(stat: &str, statm: &str, io: Option<&str>) -> Option<Self> {
        let number = |text: &str| text.parse::<u64>().ok();
        // The second field is the program's name, which may contain anything; what follows begins with the third.
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        let field = |place: usize| number(fields.get(place - 3)?);
        let ticks = field(14)? + field(15)? + field(16)? + field(17)?;
        let mut pages = statm.split(' ').skip(1).map_while(number);
        let (resident, shared) = (pages.next()?, pages.next()?);
        let page = rustix::param::page_size() as u64;
        let line = |name: &str| {
            number(io?.lines().find_map(|line| line.strip_prefix(name))?.strip_prefix(':')?.trim())
        };
        Some(Self {
            cpu_usec: ticks.saturating_mul(1_000_000 / rustix::param::clock_ticks_per_second().max(1)),
            threads: field(20)?,
            private: resident.saturating_sub(shared) * page,
            shared: shared * page,
            disks: line("read_bytes").zip(line("write_bytes")),
        })
    }
}

fn sum(processes: impl Iterator<Item = ProcessUsage>) -> Usage {
    let (mut all, mut disks) = (ProcessUsage::default(), None);
    for process in processes {
        all.cpu_usec += process.cpu_usec;
        all.threads += process.threads;
        all.private += process.private;
        all.shared = all.shared.max(process.shared);
        disks = match (disks, process.disks) {
            (Some((read, written)), Some(more)) => Some((read + more.0, written + more.1)),
            (known, more) => known.or(more),
        };
    }
    let memory = all.private + all.shared;
    Usage {
        cpu_usec: Some(all.cpu_usec),
        memory: Some(memory),
        memory_peak: Some(memory),
        read_bytes: disks.map(|(read, _)| read),
        written_bytes: disks.map(|(_, written)| written),
        pids: Some(all.threads),
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_are_read_as_the_kernel_writes_them() {
        let stat = "42 (a b) c) S 1 42 42 0 -1 4194560 187 0 0 0 150 20 30 5 20 0 7 0 9361 8900608 219 184";
        let io = "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 0\n";
        let page = rustix::param::page_size() as u64;
        let usage = ProcessUsage::parse(stat, "2173 219 200 12 0 131 0\n", Some(io)).unwrap();
        let expected = ProcessUsage {
            cpu_usec: 205 * 1_000_000 / rustix::param::clock_ticks_per_second(),
            threads: 7,
            private: 19 * page,
            shared: 200 * page,
            disks: Some((4096, 8192)),
        };
        assert_eq!(usage, expected);
        assert_eq!(ProcessUsage::parse(stat, "2173 219 200 12 0 131 0\n", None).unwrap().disks, None);
        assert_eq!(ProcessUsage::parse("42 (sh", "", None), None);
    }

    #[test]
    fn what_processes_share_is_counted_once() {
        let one = ProcessUsage { cpu_usec: 5, threads: 2, private: 100, shared: 30, disks: None };
        let other = ProcessUsage { shared: 50, disks: Some((1, 2)), ..one };
        let usage = sum([one, other, other].into_iter());
        assert_eq!((usage.cpu_usec, usage.memory, usage.pids), (Some(15), Some(350), Some(6)));
        assert_eq!((usage.read_bytes, usage.written_bytes), (Some(2), Some(4)));
    }

    #[test]
    fn this_process_uses_something_and_its_cgroup_takes_precedence() {
        let own = std::process::id();
        let TaskProcesses { pids, usage } = read(&[own]).remove(&own).unwrap();
        assert!(pids.contains(&own));
        assert!(usage.memory > Some(1 << 20) && usage.pids >= Some(1), "{usage:?}");
        let mut counted = Usage { memory: Some(7), ..Usage::default() };
        assert!(is_needed(&counted));
        fill(&mut counted, usage);
        assert_eq!((counted.memory, counted.cpu_usec), (Some(7), usage.cpu_usec));
        assert!(!is_needed(&counted));
    }

    #[test]
    fn the_end_has_the_kernels_sums_and_the_greater_peak() {
        let ended =
            EndedUsage { cpu_usec: 90, largest_resident_bytes: 10, read_bytes: 0, written_bytes: 512 };
        let last = Usage { cpu_usec: Some(80), memory_peak: Some(15), ..Usage::default() };
        let usage = at_end(ended, Some(&last));
        assert_eq!((usage.cpu_usec, usage.memory_peak, usage.written_bytes), (Some(90), Some(15), Some(512)));
        assert_eq!(at_end(ended, None).memory_peak, Some(10));
    }
}
