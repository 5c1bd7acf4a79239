//! The resource usage of the processes of a group.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use serde::{Deserialize, Serialize};

use super::controller::Controller;
use super::layout::Version;
use super::record::{Cgroup, GroupRecord};

/// The usage of a container so far; `None` for values that the kernel does not count here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// CPU time in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_usec: Option<u64>,
    /// Memory now, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Peak memory in bytes; cgroup v2 has it since Linux 5.19.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_peak: Option<u64>,
    /// How many times the memory was at its limit and the kernel had to make room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit_hits: Option<u64>,
    /// How many processes the kernel has killed because the memory was at its limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oom_kills: Option<u64>,
    /// Bytes read from disks. What comes from the page cache is not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
    /// Bytes written to disks. Version 1 counts only what did not go through the page cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
    /// Processes and threads now; where nothing counts the latter, processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pids: Option<u64>,
}

/// The value read from the text of a file.
type ParseFn = fn(&str, &mut Usage);

/// The files that contain it, in cgroup-v2.rst and cgroup-v1/{memory,cpuacct,blkio-controller,pids}.rst, with the
/// controller that has them. What an earlier one has reported is left as it is.
const FILES: &[(Version, Controller, &str, ParseFn)] = &[
    (Version::V2, Controller::Cpu, "cpu.stat", |text, usage| {
        set_if_missing(&mut usage.cpu_usec, value_of_key(text, "usage_usec"));
    }),
    (Version::V2, Controller::Memory, "memory.current", |text, usage| {
        set_if_missing(&mut usage.memory, number(text));
    }),
    (Version::V2, Controller::Memory, "memory.peak", |text, usage| {
        set_if_missing(&mut usage.memory_peak, number(text));
    }),
    (Version::V2, Controller::Memory, "memory.events", |text, usage| {
        set_if_missing(&mut usage.memory_limit_hits, value_of_key(text, "max"));
        set_if_missing(&mut usage.oom_kills, value_of_key(text, "oom_kill"));
    }),
    (Version::V2, Controller::Io, "io.stat", |text, usage| {
        set_if_missing(&mut usage.read_bytes, Some(sum_of_devices(text, "rbytes=")));
        set_if_missing(&mut usage.written_bytes, Some(sum_of_devices(text, "wbytes=")));
    }),
    (Version::V2, Controller::Pids, "pids.current", |text, usage| {
        set_if_missing(&mut usage.pids, number(text));
    }),
    (Version::V1, Controller::Cpuacct, "cpuacct.usage", |text, usage| {
        set_if_missing(&mut usage.cpu_usec, number(text).map(|nanoseconds| nanoseconds / 1_000));
    }),
    (Version::V1, Controller::Memory, "memory.usage_in_bytes", |text, usage| {
        set_if_missing(&mut usage.memory, number(text));
    }),
    (Version::V1, Controller::Memory, "memory.max_usage_in_bytes", |text, usage| {
        set_if_missing(&mut usage.memory_peak, number(text));
    }),
    (Version::V1, Controller::Memory, "memory.failcnt", |text, usage| {
        set_if_missing(&mut usage.memory_limit_hits, number(text));
    }),
    (Version::V1, Controller::Memory, "memory.oom_control", |text, usage| {
        set_if_missing(&mut usage.oom_kills, value_of_key(text, "oom_kill"));
    }),
    (Version::V1, Controller::Io, "blkio.throttle.io_service_bytes_recursive", |text, usage| {
        set_if_missing(&mut usage.read_bytes, Some(sum_of_devices(text, "Read ")));
        set_if_missing(&mut usage.written_bytes, Some(sum_of_devices(text, "Write ")));
    }),
    (Version::V1, Controller::Pids, "pids.current", |text, usage| {
        set_if_missing(&mut usage.pids, number(text));
    }),
];

/// Files that contain it where no controller counts processes: a line each.
const PROCESS_LISTS: &[(Version, &str)] = &[(Version::V1, "tasks"), (Version::V2, "cgroup.procs")];

/// The open files of a container's groups with its usage, for repeated reads.
///
/// It does not prevent the removal of a group; afterwards the files have no data.
#[derive(Debug, Default)]
pub struct Meter {
    files: Vec<(File, ParseFn)>,
}

impl Cgroup {
    /// The usage of the container so far. It can be read after the last process has ended, until the group is removed.
    pub fn usage(&self) -> Usage {
        self.meter().read()
    }

    /// Opens the files with the usage of the container.
    pub fn meter(&self) -> Meter {
        let mut files = vec![];
        let groups = || self.record.groups.iter().filter(|group| group.exists());
        for group in groups() {
            let known =
                FILES.iter().filter(|(version, controller, ..)| group.may_have(*version, *controller));
            files.extend(known.filter_map(|(_, _, name, take)| {
                Some((File::open(group.directory.join(name)).ok()?, *take))
            }));
        }
        let counts = |group: &&GroupRecord| {
            group.may_have(group.version, Controller::Pids) && group.directory.join("pids.current").exists()
        };
        if !groups().any(|group| counts(&group)) {
            let lists = groups().flat_map(|group| {
                PROCESS_LISTS
                    .iter()
                    .filter(|(version, _)| *version == group.version)
                    .filter_map(|(_, name)| File::open(group.directory.join(name)).ok())
            });
            let take: ParseFn =
                |text, usage| set_if_missing(&mut usage.pids, Some(text.lines().count() as u64));
            files.extend(lists.take(1).map(|file| (file, take)));
        }
        Meter { files }
    }
}

impl Meter {
    /// What the container has used so far.
    pub fn read(&self) -> Usage {
        let mut usage = Usage::default();
        let mut buffer = [0; 4096];
        for (file, take) in &self.files {
            // The kernel generates the text again for a read from the beginning.
            let read = file.read_at(&mut buffer, 0).ok().map(|length| &buffer[..length]);
            if let Some(text) = read.and_then(|text| std::str::from_utf8(text).ok()) {
                take(text, &mut usage);
            }
        }
        usage
    }

    /// How many files are open for it.
    pub fn files(&self) -> usize {
        self.files.len()
    }
}

fn set_if_missing(field: &mut Option<u64>, found: Option<u64>) {
    *field = field.or(found);
}

fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// The number of a line `key number`.
fn value_of_key(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| number(line.strip_prefix(key)?.strip_prefix(' ')?))
}

/// The sum over all devices: of `8:0 Read 4096` in cgroup v1, of `8:0 rbytes=4096 wbytes=0 …` in cgroup v2.
fn sum_of_devices(text: &str, key: &str) -> u64 {
    let of_line = |line: &str| {
        let (device, rest) = line.split_once(' ')?;
        let number = rest.split_once(key)?.1.split(' ').next()?.parse::<u64>().ok()?;
        device.contains(':').then_some(number)
    };
    text.lines().filter_map(of_line).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(version: Version, file: &str, text: &str, expected: Usage) {
        let (.., take) = FILES.iter().find(|(known, _, name, _)| (*known, *name) == (version, file)).unwrap();
        let mut usage = Usage::default();
        take(text, &mut usage);
        assert_eq!(usage, expected, "{file}");
        let mut reported = Usage { cpu_usec: Some(1), memory: Some(1), pids: Some(1), ..usage };
        take("", &mut reported);
        assert_eq!(reported, Usage { cpu_usec: Some(1), memory: Some(1), pids: Some(1), ..usage }, "{file}");
    }

    #[test]
    fn files_are_read_as_the_kernel_writes_them() {
        let none = Usage::default();
        check(
            Version::V2,
            "cpu.stat",
            "usage_usec 1234567\nuser_usec 1000000\nsystem_usec 234567\nnr_periods 0\n",
            Usage { cpu_usec: Some(1_234_567), ..none },
        );
        check(
            Version::V2,
            "memory.events",
            "low 0\nhigh 0\nmax 12\noom 2\noom_kill 1\noom_group_kill 0\n",
            Usage { memory_limit_hits: Some(12), oom_kills: Some(1), ..none },
        );
        check(
            Version::V2,
            "io.stat",
            "8:16 rbytes=1459200 wbytes=314773504 rios=192 wios=353 dbytes=0 dios=0\n8:0 rbytes=90430464 wbytes=299008000 rios=8950 wios=1252 dbytes=50331648 dios=3021\n",
            Usage { read_bytes: Some(91_889_664), written_bytes: Some(613_781_504), ..none },
        );
        check(
            Version::V1,
            "blkio.throttle.io_service_bytes_recursive",
            "8:0 Read 4096\n8:0 Write 8192\n8:0 Sync 4096\n8:0 Async 8192\n8:0 Discard 0\n8:0 Total 12288\n254:0 Read 1\n254:0 Write 2\nTotal 12291\n",
            Usage { read_bytes: Some(4097), written_bytes: Some(8194), ..none },
        );
        check(
            Version::V1,
            "memory.oom_control",
            "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
            Usage { oom_kills: Some(3), ..none },
        );
        check(Version::V1, "cpuacct.usage", "1999\n", Usage { cpu_usec: Some(1), ..none });
    }
}
