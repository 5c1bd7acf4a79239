//! Every field of `linux.resources` in either version.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::*;
use crate::cgroup::{Hierarchy, UnifiedHierarchy, Version};

/// A host with every controller in that version.
fn layout(version: Version) -> Layout {
    match version {
        Version::V1 => Layout {
            hierarchies: vec![Hierarchy {
                mount: PathBuf::from("/cg"),
                name: "all".to_owned(),
                controllers: Controller::ALL.into(),
                own_group: None,
                writable: true,
            }],
            unified: None,
        },
        Version::V2 => Layout {
            hierarchies: vec![],
            unified: Some(UnifiedHierarchy {
                mount: PathBuf::from("/cg"),
                controllers: Controller::ALL
                    .into_iter()
                    .filter(|one| !matches!(one, Controller::NetCls | Controller::NetPrio))
                    .collect::<Vec<_>>()
                    .into(),
                own_group: None,
                writable: true,
            }),
        },
    }
}

/// Each limit and what is written for it, in both versions.
fn check(json: &Value) -> String {
    check_by(json, Limits::of)
}

fn check_by(json: &Value, of: fn(&LinuxResources, &Layout) -> Result<Limits>) -> String {
    let resources: LinuxResources = serde_json::from_value(json.clone()).expect("resources");
    let mut text = format!("{}\n", serde_json::to_string(json).expect("JSON"));
    for (name, version) in [("v1", Version::V1), ("v2", Version::V2)] {
        match of(&resources, &layout(version)) {
            Ok(limits) => {
                for limit in limits.writable {
                    let files: Vec<String> =
                        limit.files.iter().map(|(file, text)| format!("{file} = {text}")).collect();
                    let field = limit.pointer.replace("/linux/resources/", "");
                    text += &format!("{name} {field}: {}\n", files.join(" | "));
                }
                for error in limits.unsupported {
                    let field =
                        error.pointer().unwrap_or_default().to_owned().replace("/linux/resources/", "");
                    text += &format!("{name} {field}: impossible: {}\n", error.message());
                }
            }
            Err(error) => {
                text += &format!("{name} error: {error}\n    {}\n", error.advice().unwrap_or_default());
            }
        }
    }
    text
}

#[test]
fn cpu() {
    let list = [
        json!({"cpu": {"shares": 1024, "quota": 750_000, "period": 100_000, "burst": 5000, "idle": 1}}),
        json!({"cpu": {"shares": 2}}),
        json!({"cpu": {"shares": 262_144}}),
        json!({"cpu": {"shares": 1}}),
        json!({"cpu": {"quota": 50_000}}),
        json!({"cpu": {"period": 50_000}}),
        json!({"cpu": {"cpus": "0-3,8", "mems": "0"}}),
        json!({"cpu": {"realtimeRuntime": 950_000, "realtimePeriod": 1_000_000}}),
    ];
    insta::assert_snapshot!(list.iter().map(check).collect::<Vec<_>>().join("\n"));
}

#[test]
fn memory_and_pids() {
    let list = [
        json!({"memory": {"limit": 1_073_741_824, "swap": 1_073_741_824, "reservation": 536_870_912}, "pids": {"limit": 64}}),
        json!({"memory": {"limit": 1024, "swap": 4096}}),
        json!({"memory": {"limit": 4096, "swap": 1024}}),
        json!({"memory": {"swap": 4096}}),
        json!({"memory": {"kernel": 4096, "kernelTCP": 4096, "swappiness": 0, "disableOOMKiller": true, "useHierarchy": true}}),
    ];
    insta::assert_snapshot!(list.iter().map(check).collect::<Vec<_>>().join("\n"));
}

#[test]
fn disks() {
    let device = |rate: u64| json!([{"major": 8, "minor": 16, "rate": rate}]);
    let list = [
        json!({"blockIO": {"weight": 500, "leafWeight": 300, "weightDevice": [{"major": 8, "minor": 0, "weight": 10, "leafWeight": 20}]}}),
        json!({"blockIO": {
            "throttleReadBpsDevice": device(600), "throttleWriteBpsDevice": device(0),
            "throttleReadIOPSDevice": device(7), "throttleWriteIOPSDevice": device(8),
        }}),
    ];
    insta::assert_snapshot!(list.iter().map(check).collect::<Vec<_>>().join("\n"));
}

#[test]
fn huge_pages_network_and_rdma() {
    let list = [
        json!({"hugepageLimits": [{"pageSize": "2MB", "limit": 4_194_304}, {"pageSize": "1GB", "limit": 0}]}),
        json!({"hugepageLimits": [{"pageSize": "../x", "limit": 0}]}),
        json!({"network": {"classID": 1_048_577, "priorities": [{"name": "eth0", "priority": 500}]}}),
        json!({"rdma": {"mlx5_1": {"hcaHandles": 3, "hcaObjects": 10_000}, "mlx4_0": {"hcaObjects": 1}}}),
    ];
    insta::assert_snapshot!(list.iter().map(check).collect::<Vec<_>>().join("\n"));
}

#[test]
fn without_a_hierarchy_network_limits_are_refused() {
    let mut hybrid = layout(Version::V1);
    hybrid.hierarchies[0].controllers = vec![Controller::Memory];
    hybrid.unified = layout(Version::V2).unified;
    let resources = json!({"network": {"classID": 7, "priorities": [{"name": "eth0", "priority": 500}]}});
    let limits = Limits::of(&serde_json::from_value(resources).expect("resources"), &hybrid).expect("sound");
    let output: Vec<String> = limits.unsupported.iter().map(jobc_sys::Error::message).collect();
    assert_eq!(
        output,
        [
            "no cgroup v1 hierarchy with `net_cls` is mounted, and cgroup v2 does not have it",
            "no cgroup v1 hierarchy with `net_prio` is mounted, and cgroup v2 does not have it",
        ]
    );
}

#[test]
fn files_of_the_unified_tree() {
    let list = [
        json!({"unified": {"memory.high": "1024", "io.max": "8:0 rbps=1\n8:16 rbps=2\n", "cgroup.max.depth": "5"}}),
        json!({"unified": {"cgroup.procs": "1"}}),
        json!({"unified": {"../../memory.max": "1"}}),
        json!({"unified": {"memory": "1"}}),
    ];
    insta::assert_snapshot!(list.iter().map(check).collect::<Vec<_>>().join("\n"));
}

#[test]
fn what_limits_nothing_is_not_written() {
    let nothing = json!({
        "cpu": {"shares": 0, "quota": -1, "period": 100_000, "burst": 0, "idle": 0, "realtimeRuntime": 0, "cpus": "", "mems": ""},
        "memory": {"limit": -1, "swap": -1, "reservation": 0, "disableOOMKiller": false, "useHierarchy": false, "checkBeforeUpdate": true},
        "pids": {"limit": -1},
        "blockIO": {"weight": 0},
        "hugepageLimits": [],
        "network": {"classID": 0, "priorities": []},
    });
    for version in [Version::V1, Version::V2] {
        let resources = serde_json::from_value(nothing.clone()).expect("resources");
        let limits = Limits::of(&resources, &layout(version)).expect("fine");
        assert_eq!((limits.writable, limits.unsupported), (vec![], vec![]));
    }
    // So they need no controller either.
    let resources = serde_json::from_value(nothing).expect("resources");
    assert!(Limits::of(&resources, &Layout::default()).expect("fine").unsupported.is_empty());
}

#[test]
fn a_limit_without_its_controller_is_impossible() {
    let resources =
        serde_json::from_value(json!({"pids": {"limit": 3}, "memory": {"limit": 4096}})).expect("resources");
    let mut layout = layout(Version::V2);
    layout.unified.as_mut().expect("v2").controllers = vec![Controller::Pids].into();
    let limits = Limits::of(&resources, &layout).expect("fine");
    assert_eq!(limits.writable.len(), 1);
    assert_eq!(
        limits.unsupported[0].to_string(),
        "config.json: /linux/resources/memory/limit: this kernel has no controller `memory`, or it is disabled"
    );
}

#[test]
fn a_change_takes_limits_away_too() {
    let cases = [
        json!({"memory": {"limit": -1}}),
        json!({"memory": {"limit": 2_097_152, "swap": -1, "reservation": -1}}),
        json!({"memory": {"limit": 2_097_152, "swap": 3_145_728}}),
        json!({"memory": {"limit": 0, "swap": 0}}),
        json!({"cpu": {"quota": -1}}),
        json!({"cpu": {"period": 50_000}}),
        json!({"cpu": {"quota": 20_000, "period": 50_000, "shares": 0, "idle": 0}}),
        json!({"pids": {"limit": -1}}),
        json!({"blockIO": {"throttleReadBpsDevice": [{"major": 8, "minor": 0, "rate": 0}]}}),
    ];
    insta::assert_snapshot!(cases.iter().map(|json| check_by(json, Limits::of_update)).collect::<String>());
}
