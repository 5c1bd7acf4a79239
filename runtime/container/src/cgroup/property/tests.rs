//! Properties from what is written to the kernel's files.

use super::*;
use crate::cgroup::Controller;

/// The properties for a group with the writes `file text`, a line each, of systemd's version there.
fn check(version: Version, systemd: u32, files: &[&str]) -> String {
    let limit = |line: &&str| {
        let (file, text) = line.split_once(' ').expect("a file and its text");
        Limit {
            controller: Controller::Misc,
            files: vec![(file.to_owned(), text.to_owned())],
            pointer: String::new(),
            satisfied_without: None,
        }
    };
    let limits: Vec<Limit> = files.iter().map(limit).collect();
    let lines =
        from_limits(&limits, version, systemd).into_iter().map(|(name, value)| format!("{name} {value:?}"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn limits_of_version_2() {
    let files = [
        "cpuset.cpus 0-2,8",
        "cpuset.mems 0",
        "cpu.max 25500 50000",
        "cpu.weight 20",
        "memory.max 4096",
        "memory.swap.max max",
        "memory.low 1024",
        "memory.high 2048",
        "pids.max 33",
        "io.weight 100",
        "io.max 8:0 rbps=1",
        "hugetlb.2MB.max 0",
    ];
    insta::assert_snapshot!(check(Version::V2, 252, &files), @r"
    AllowedCPUs Bytes([7, 1])
    AllowedMemoryNodes Bytes([1])
    CPUWeight Uint64(20)
    MemoryMax Uint64(4096)
    MemorySwapMax Uint64(18446744073709551615)
    MemoryLow Uint64(1024)
    MemoryHigh Uint64(2048)
    TasksMax Uint64(33)
    IOWeight Uint64(100)
    CPUQuotaPerSecUSec Uint64(510000)
    CPUQuotaPeriodUSec Uint64(50000)
    ");
    // Older versions have fewer properties.
    insta::assert_snapshot!(check(Version::V2, 241, &["cpuset.cpus 0", "cpu.idle 1", "cpu.max 20000 50000"]), @"CPUQuotaPerSecUSec Uint64(400000)");
}

#[test]
fn limits_of_version_1() {
    let files = [
        "memory.limit_in_bytes -1",
        "memory.memsw.limit_in_bytes 1",
        "cpu.cfs_period_us 100000",
        "cpu.cfs_quota_us 150000",
        "cpu.shares 512",
        "pids.max max",
        "blkio.weight 500",
        "cpuset.cpus 0",
    ];
    insta::assert_snapshot!(check(Version::V1, 241, &files), @r"
    MemoryLimit Uint64(18446744073709551615)
    CPUShares Uint64(512)
    TasksMax Uint64(18446744073709551615)
    BlockIOWeight Uint64(500)
    CPUQuotaPerSecUSec Uint64(1500000)
    ");
}

#[test]
fn the_cpu_quota_is_never_rounded_down() {
    let of = |text: &str| check(Version::V2, 241, &[&format!("cpu.max {text}")]);
    assert_eq!(of("100000 100000"), "CPUQuotaPerSecUSec Uint64(1000000)");
    assert_eq!(of("1000"), "CPUQuotaPerSecUSec Uint64(10000)");
    assert_eq!(of("33333 100000"), "CPUQuotaPerSecUSec Uint64(340000)");
    assert_eq!(of("1000 1000000"), "CPUQuotaPerSecUSec Uint64(10000)");
    assert_eq!(of("max 100000"), "CPUQuotaPerSecUSec Uint64(18446744073709551615)");
    assert_eq!(of("1 0"), "CPUQuotaPerSecUSec Uint64(1000000)");
}

#[test]
fn what_comes_later_counts_and_what_is_no_list_is_left_to_the_kernel() {
    assert_eq!(check(Version::V2, 252, &["cpu.weight 20", "cpu.idle 1"]), "CPUWeight Uint64(0)");
    assert_eq!(check(Version::V2, 252, &["cpu.idle 0", "pids.max 1", "pids.max 2"]), "TasksMax Uint64(2)");
    for list in ["0-", "x", "0-31:1/2", "99999999", "1,,2"] {
        assert_eq!(check(Version::V2, 252, &[&format!("cpuset.cpus {list}")]), "", "{list}");
    }
}
