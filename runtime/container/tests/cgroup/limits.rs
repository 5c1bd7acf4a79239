//! Limits: the kernel shows the requested values and enforces them.

use jobc_container::cgroup::{Controller, Version};
use jobc_sys::error::Kind;
use serde_json::json;

use super::{layout, make, refusal, try_make};

#[test]
fn the_kernel_shows_the_limits_requested() {
    let json = json!({
        "memory": {"limit": 67_108_864, "swap": 67_108_864, "reservation": 33_554_432},
        "cpu": {"shares": 512, "quota": 150_000, "period": 100_000},
        "pids": {"limit": 20},
    });
    let Some(trial) = make("shown", &json) else { return };
    assert_eq!(trial.read(&["memory.max", "memory.limit_in_bytes"]), "67108864");
    assert_eq!(trial.read(&["memory.low", "memory.soft_limit_in_bytes"]), "33554432");
    assert_eq!(trial.read(&["pids.max"]), "20");
    if trial.layout.version(Controller::Cpu) == Some(Version::V2) {
        assert_eq!(trial.read(&["cpu.max"]), "150000 100000");
        assert_eq!(trial.read(&["cpu.weight"]), "20");
    } else {
        assert_eq!(trial.read(&["cpu.cfs_quota_us"]), "150000");
        assert_eq!(trial.read(&["cpu.cfs_period_us"]), "100000");
        assert_eq!(trial.read(&["cpu.shares"]), "512");
    }
    // Swap is counted with memory in cgroup v1, alone in cgroup v2; a kernel may count it nowhere.
    if let Some(both) = trial.find(&["memory.memsw.limit_in_bytes"]) {
        assert_eq!(both, "67108864");
    }
    if let Some(alone) = trial.find(&["memory.swap.max"]) {
        assert_eq!(alone, "0");
    }
}

#[test]
fn what_limits_nothing_writes_nothing() {
    let json =
        json!({"memory": {"limit": -1, "swap": -1}, "cpu": {"shares": 0, "quota": -1}, "pids": {"limit": 0}});
    let Some(trial) = make("unlimited", &json) else { return };
    assert!(trial.find(&["pids.max"]).is_none_or(|limit| limit == "max"));
    // Version 1 shows no limit as a number that no host has.
    let memory = trial.read(&["memory.max", "memory.limit_in_bytes"]);
    assert!(memory == "max" || memory.parse().is_ok_and(|limit: u64| limit > 1 << 60), "{memory}");
}

#[test]
fn more_memory_than_the_limit_ends_the_process() {
    let json = json!({"memory": {"limit": 16_777_216, "swap": 16_777_216}});
    let Some(trial) = make("memory", &json) else { return };
    // A shell variable of 64 MiB.
    let (code, output) = trial.run("x=$(head -c 67108864 /dev/zero | tr '\\0' x); echo ${#x}");
    assert!(code == -9 || code == 137 || output.starts_with('0'), "{code} {output}");
    let usage = trial.cgroup.usage();
    assert!(usage.oom_kills >= Some(1), "{usage:?}");
    assert!(usage.memory_peak.is_none_or(|peak| peak > 12_000_000), "{usage:?}");
    assert!(usage.cpu_usec > Some(0), "{usage:?}");
}

#[test]
fn more_processes_than_the_limit_cannot_be_made() {
    let Some(trial) = make("pids", &json!({"pids": {"limit": 5}})) else { return };
    assert_eq!(trial.run("sleep 0 & sleep 0 & wait; echo fine"), (0, "fine".to_owned()));
    let (_, output) = trial.run("for i in 1 2 3 4 5 6 7 8 9; do sleep 1 & done; wait");
    assert!(output.contains("ork"), "a fork is refused: {output}");
}

#[test]
fn a_cpu_set_holds() {
    let Some(layout) = layout() else { return };
    if layout.version(Controller::Cpuset).is_none() {
        jobc_test_skip::skip("the controller cpuset");
        return;
    }
    for (name, json) in
        [("cpus", json!({"cpu": {"cpus": "0"}})), ("both", json!({"cpu": {"cpus": "0", "mems": "0"}}))]
    {
        let Some(trial) = make(name, &json) else { return };
        let (code, output) = trial.run("grep Cpus_allowed_list /proc/self/status");
        assert_eq!((code, output.as_str()), (0, "Cpus_allowed_list:\t0"));
    }
    let error = refusal("no-such-cpu", &json!({"cpu": {"cpus": "9000"}})).expect("not skipped");
    assert_eq!((error.kind, error.pointer()), (Kind::Unenforceable, Some("/linux/resources/cpu/cpus")));
    assert!(error.message().starts_with("the kernel rejects `9000` for `cpuset.cpus`: "), "{error}");
}

#[test]
fn huge_pages_are_limited() {
    let Some(layout) = layout() else { return };
    if layout.version(Controller::Hugetlb).is_none() {
        jobc_test_skip::skip("the controller hugetlb");
        return;
    }
    let json = json!({"hugepageLimits": [{"pageSize": "2MB", "limit": 4_194_304}]});
    let Some(trial) = make("hugetlb", &json) else { return };
    assert_eq!(trial.read(&["hugetlb.2MB.max", "hugetlb.2MB.limit_in_bytes"]), "4194304");
}

#[test]
fn a_limit_that_nothing_enforces_is_refused_at_its_place() {
    let json = json!({"pids": {"limit": 9}, "hugepageLimits": [{"pageSize": "3MB", "limit": 0}]});
    let Some(error) = refusal("refused", &json) else { return };
    assert_eq!(error.kind, Kind::Unenforceable);
    assert_eq!(error.pointer(), Some("/linux/resources/hugepageLimits/0"));
    assert!(error.advice().expect("a help").contains("--allow-unenforced"));
    let path = super::path("refused");
    let left = layout().expect("not skipped").unified.map(|unified| unified.mount.join(&path[1..]).exists());
    assert_ne!(left, Some(true), "a start that fails leaves no group");

    let trial =
        try_make("recorded", &json, true).expect("not skipped").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(trial.unenforced.len(), 1);
    assert_eq!(trial.unenforced[0].place, "/linux/resources/hugepageLimits/0");
    assert_eq!(trial.read(&["pids.max"]), "9", "the others hold");
}

#[test]
fn a_limit_the_kernel_refuses_is_reported_in_its_words() {
    let Some(error) = refusal("unlikely", &json!({"cpu": {"quota": 5, "period": 100_000}})) else { return };
    assert_eq!((error.kind, error.pointer()), (Kind::Unenforceable, Some("/linux/resources/cpu/quota")));
    assert!(error.message().ends_with("invalid argument (EINVAL)"), "{error}");
}

#[test]
fn files_of_the_unified_tree_are_written_as_they_are() {
    let Some(layout) = layout() else { return };
    let json = json!({"unified": {"memory.high": "8388608", "cgroup.max.depth": "3"}});
    if layout.version(Controller::Memory) == Some(Version::V2) {
        let Some(trial) = make("unified", &json) else { return };
        assert_eq!(trial.read(&["memory.high"]), "8388608");
        assert_eq!(trial.read(&["cgroup.max.depth"]), "3");
    } else {
        let error = refusal("unified", &json).expect("not skipped");
        assert_eq!(error.kind, Kind::Unenforceable);
    }
}
