use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::read::{bandwidth, count_cores, parse_list};
use super::*;
use crate::cgroup::controller::Controller;
use crate::cgroup::layout::{Hierarchy, UnifiedHierarchy};

const GROUP: &str = "slurmstepd.scope/job_7/step_0/user/task_0";

fn write(root: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

fn unified(root: &Path) -> Layout {
    let controllers = [Controller::Cpu, Controller::Cpuset, Controller::Memory, Controller::Pids];
    let unified = UnifiedHierarchy {
        mount: root.to_owned(),
        controllers: controllers.to_vec().into(),
        own_group: Some(PathBuf::from(GROUP)),
        writable: true,
    };
    Layout { hierarchies: vec![], unified: Some(unified) }
}

#[test]
fn the_least_of_all_groups_above_counts() {
    let root = tempfile::tempdir().unwrap();
    let step = "slurmstepd.scope/job_7/step_0";
    write(
        root.path(),
        &[
            (&format!("{GROUP}/memory.max"), "max\n"),
            (&format!("{step}/memory.max"), "2147483648\n"),
            ("slurmstepd.scope/job_7/memory.max", "4294967296\n"),
            (&format!("{step}/memory.swap.max"), "0\n"),
            (&format!("{GROUP}/cpu.max"), "max 100000\n"),
            ("slurmstepd.scope/cpu.max", "350000 100000\n"),
            (&format!("{step}/cpuset.cpus.effective"), "0-1,4\n"),
            (&format!("{step}/cpuset.mems.effective"), "0\n"),
            ("slurmstepd.scope/pids.max", "max\n"),
        ],
    );
    let read = InheritedLimits::read(&unified(root.path()));
    assert_eq!((read.memory, read.memory_and_swap), (Some(2 << 30), Some(2 << 30)));
    assert_eq!((read.cpu_time, read.pids), (Some(3_500_000), None));
    assert_eq!(read.cpus, Some(BTreeSet::from([0, 1, 4])));
    assert_eq!(read.memory_nodes, Some(BTreeSet::from([0])));
}

#[test]
fn hierarchies_of_cgroup_v1_have_a_group_each() {
    let root = tempfile::tempdir().unwrap();
    write(
        root.path(),
        &[
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory/slurm/job_7/memory.limit_in_bytes", "1073741824\n"),
            ("memory/slurm/job_7/step_0/memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory/slurm/job_7/step_0/memory.memsw.limit_in_bytes", "1073741824\n"),
            ("cpu/cpu.cfs_quota_us", "-1\n"),
            ("cpu/cpu.cfs_period_us", "100000\n"),
            ("cpuset/slurm/job_7/cpuset.cpus", "2-3\n"),
        ],
    );
    let hierarchy = |name: &str, controller, own: &str| Hierarchy {
        mount: root.path().join(name),
        name: name.to_owned(),
        controllers: vec![controller],
        own_group: Some(own.into()),
        writable: true,
    };
    let hierarchies = vec![
        hierarchy("memory", Controller::Memory, "slurm/job_7/step_0"),
        hierarchy("cpu", Controller::Cpu, ""),
        hierarchy("cpuset", Controller::Cpuset, "slurm/job_7"),
    ];
    let mut layout = Layout { hierarchies, unified: None };
    let read = InheritedLimits::read(&layout);
    assert_eq!((read.memory, read.memory_and_swap), (Some(1 << 30), Some(1 << 30)));
    assert_eq!((read.cpu_time, read.cpus), (None, Some(BTreeSet::from([2, 3]))));
    // A group that cannot be seen from here limits nothing that is known.
    layout.hierarchies[0].own_group = None;
    assert_eq!(InheritedLimits::read(&layout).memory, None);
}

#[test]
fn lists_quotas_and_cores() {
    assert_eq!(parse_list("0-2,7\n"), Some(BTreeSet::from([0, 1, 2, 7])));
    assert_eq!(
        (parse_list(""), parse_list("a"), parse_list("0-99999999")),
        (Some(BTreeSet::new()), None, None)
    );
    assert_eq!(
        (bandwidth("max", "100000"), bandwidth("-1", "100000"), bandwidth("1", "0")),
        (None, None, None)
    );
    assert_eq!(bandwidth("50000", "100000\n"), Some(500_000));
    let pairs = |cpu: u32| Some(BTreeSet::from([cpu % 4, cpu % 4 + 4]));
    assert_eq!(count_cores(&BTreeSet::from([0, 4, 1]), pairs), 2);
    assert_eq!(count_cores(&BTreeSet::from([0, 4, 1]), |_| None), 3);
}

/// The reasons for limits that are not kept, by place.
fn reasons(limits: &InheritedLimits, resources: Value, rounding: Rounding) -> Vec<String> {
    let resources: LinuxResources = serde_json::from_value(resources).unwrap();
    let places = ["memory/limit", "memory/swap", "cpu/quota", "cpu/shares", "cpu/cpus", "pids/limit"];
    let weak = |place: &str| limits.weakness(&format!("/linux/resources/{place}"), &resources, rounding);
    places.iter().filter_map(|place| weak(place).map(|why| format!("{place}: {why}"))).collect()
}

#[test]
fn limits_that_are_at_least_as_strict_are_kept() {
    let limits = InheritedLimits {
        memory: Some(954 << 20),
        cpus: Some(BTreeSet::from([0, 1, 8, 9])),
        cores: 2.into(),
        memory_and_swap: Some(954 << 20),
        pids: Some(100),
        has_swap: true,
        ..InheritedLimits::default()
    };
    let asked = json!({
        "memory": {"limit": 1_000_000_000, "swap": 1_000_000_000},
        "cpu": {"quota": 300_000, "period": 100_000, "shares": 3072, "cpus": "0-15"},
        "pids": {"limit": 100},
    });
    // The site counts in MiB and cores.
    assert_eq!(reasons(&limits, asked.clone(), Rounding::Site), Vec::<String>::new());
    assert_eq!(
        reasons(&limits, asked, Rounding::Exact),
        [
            "memory/limit: the cgroup of this process allows 954 MiB of memory, more than 1000000000 bytes",
            "memory/swap: the cgroup of this process allows 954 MiB of memory and swap, more than 1000000000 bytes",
            "cpu/quota: the cgroup of this process allows 4 of CPUs, more than 3",
        ]
    );
    let stricter = json!({
        "memory": {"limit": 954 << 20},
        "cpu": {"quota": 150_000, "cpus": "0-1"},
        "pids": {"limit": 99},
    });
    assert_eq!(
        reasons(&limits, stricter, Rounding::Site),
        [
            "cpu/quota: the cgroup of this process allows 4 of CPUs, more than 1.5",
            "cpu/cpus: the cgroup of this process allows other CPUs than 0-1",
            "pids/limit: the cgroup of this process allows 100 of processes, more than 99",
        ]
    );
}

#[test]
fn without_limits_nothing_is_kept() {
    let asked = json!({"memory": {"limit": 1 << 30}, "cpu": {"quota": 100_000}, "pids": {"limit": -1}});
    assert_eq!(
        reasons(&InheritedLimits::default(), asked, Rounding::Site),
        [
            "memory/limit: the cgroup of this process does not limit memory",
            "cpu/quota: the cgroup of this process does not limit CPUs",
        ]
    );
}

#[test]
fn swap_counts_only_where_there_is_some() {
    let asked = || json!({"memory": {"limit": 1 << 30, "swap": 1 << 30}});
    let mut limits = InheritedLimits { memory: Some(1 << 30), ..InheritedLimits::default() };
    assert_eq!(reasons(&limits, asked(), Rounding::Exact), Vec::<String>::new());
    limits.has_swap = true;
    assert_eq!(
        reasons(&limits, asked(), Rounding::Exact),
        ["memory/swap: the cgroup of this process does not limit memory and swap"]
    );
}

#[test]
fn other_limits_are_never_inherited() {
    let limits = InheritedLimits { memory: Some(1), ..InheritedLimits::default() };
    let resources: LinuxResources = serde_json::from_value(json!({"memory": {"limit": 2}})).unwrap();
    let lost = |place: &str| UnenforcedLimit { place: place.to_owned(), reason: "no cgroup".to_owned() };
    let mut list = ["/linux/resources/memory/limit", "/linux/resources/devices", "/linux/cgroupsPath"]
        .map(lost)
        .to_vec();
    limits.remove_enforced(&resources, &mut list);
    assert_eq!(
        list.iter().map(|limit| &limit.place[..]).collect::<Vec<_>>(),
        ["/linux/resources/devices", "/linux/cgroupsPath"]
    );
}
