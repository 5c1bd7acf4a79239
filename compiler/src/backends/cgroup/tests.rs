use serde_json::{Value, json};

use super::*;
use crate::backends::fixture;

/// All files of a job's first task.
fn shown(changes: &Value) -> String {
    let job = fixture::job(changes);
    let (files, report) = fixture::lower(&CgroupBackend, &job);
    let list = files.iter().filter(|file| file.path.starts_with("main-0"));
    let list = list
        .map(|file| format!("{}\n    {}", file.path, fixture::text(file).trim_end().replace('\n', "\n    ")));
    report + &list.collect::<Vec<_>>().join("\n")
}

#[test]
fn every_limit_is_written_in_every_format() {
    insta::assert_snapshot!(shown(&json!({
        "target": {"settings": {"cgroup": {"cpuset": "0-3,8", "mems": "0", "io_weight": 500, "swap": "1GiB"}}},
        "roles": {"main": {"resources": {
            "cpu_millis": 7500, "memory_bytes": 34_359_738_368_u64, "shm_bytes": 8_589_934_592_u64, "pids": 4096,
            "hugepages_bytes": {"2MiB": 4_194_304, "1GiB": 1_073_741_824},
            "io": {
                "259:0": {"read_bytes": 1_000_000, "write_ops": 100}, "8:16": {"read_bytes": 5},
                "/my data/100%": {"write_bytes": 7, "read_ops": 8},
            }
        }}}
    })));
}

#[test]
fn only_requested_limits_are_written() {
    let text = shown(&json!({}));
    for word in ["cpu", "memory", "CPU", "Memory", "pids", "Tasks", "io.", "IO", "hugetlb", "swap"] {
        assert!(!text.contains(word), "{word} in {text}");
    }
    assert!(text.contains("v1/devices/devices.deny"));
}

#[test]
fn privileged_tasks_may_open_every_device() {
    insta::assert_snapshot!(shown(&json!({"roles": {"main": {"security": {"privileged": true}}}})));
}

#[test]
fn small_shares_of_a_cpu_are_exact() {
    let check = |millis: u64, max: &str, quota: &str| {
        let text = shown(&json!({"roles": {"main": {"resources": {"cpu_millis": millis}}}}));
        assert!(text.contains(&format!("v2/cpu.max\n    {max}\n")), "{text}");
        assert!(text.contains(&format!("CPUQuota={quota}\n")), "{text}");
    };
    check(1, "1000 1000000", "0.1%");
    check(9, "9000 1000000", "0.9%");
    check(10, "1000 100000", "1%");
    check(125, "12500 100000", "12.5%");
    check(8000, "800000 100000", "800%");
}

#[test]
fn wrong_lists_of_cpus_are_refused() {
    insta::assert_snapshot!(shown(&json!({
        "target": {"settings": {"cgroup": {"cpuset": "7-0", "mems": "node0"}}}
    })));
}

/// The numbers of the bundle, read back from its config.json, and those of the files.
#[cfg(feature = "oci")]
#[test]
fn files_and_bundles_agree() {
    let job = fixture::job(&json!({
        "target": {"settings": {"cgroup": {"cpuset": "0-3", "mems": "0", "io_weight": 500, "swap": "1GiB"}}},
        "roles": {"main": {"resources": {
            "cpu_millis": 333, "memory_bytes": 1_000_000_001, "pids": 7, "hugepages_bytes": {"2MiB": 4_194_304},
            "io": {"259:0": {"write_bytes": 4096}}
        }}}
    }));
    let (bundle, _) = fixture::lower(&crate::backends::oci::OciBackend, &job);
    let Content::Json(config) = &bundle[0].content else { panic!("config.json is JSON") };
    let (files, _) = fixture::lower(&CgroupBackend, &job);
    let file = |path: &str| {
        let file = files.iter().find(|file| file.path == format!("main-0/v1/{path}"));
        fixture::text(file.unwrap_or_else(|| panic!("no {path}"))).trim().to_owned()
    };
    let check = |path: &str, pointer: &str| {
        let value = config.pointer(&format!("/linux/resources/{pointer}")).unwrap_or(&Value::Null);
        let number = |key| value.get(key).map(Value::to_string);
        let device = (number("major"), number("minor"), number("rate"));
        let text = match device {
            (Some(major), Some(minor), Some(rate)) => format!("{major}:{minor} {rate}"),
            _ => value.as_str().map_or_else(|| value.to_string(), str::to_owned),
        };
        assert_eq!(file(path), text, "{path}");
    };
    check("cpu/cpu.cfs_quota_us", "cpu/quota");
    check("cpu/cpu.cfs_period_us", "cpu/period");
    check("cpu/cpu.shares", "cpu/shares");
    check("cpuset/cpuset.cpus", "cpu/cpus");
    check("cpuset/cpuset.mems", "cpu/mems");
    check("memory/memory.limit_in_bytes", "memory/limit");
    check("memory/memory.memsw.limit_in_bytes", "memory/swap");
    check("pids/pids.max", "pids/limit");
    check("blkio/blkio.weight", "blockIO/weight");
    check("hugetlb/hugetlb.2MB.limit_in_bytes", "hugepageLimits/0/limit");
    check("blkio/blkio.throttle.write_bps_device", "blockIO/throttleWriteBpsDevice/0");
    let rules = config["linux"]["resources"]["devices"].as_array().unwrap();
    assert_eq!(rules.len(), 1 + file("devices/devices.allow").lines().count());
}
