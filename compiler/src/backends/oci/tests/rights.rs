//! Users, capabilities, privileges and syscalls.

use serde_json::{Value, json};

use super::{bundle, options, report};

#[test]
fn users() {
    let check = |user: &str, uid: u32, gid: u32, may: bool| {
        let config = bundle(&json!({"roles": {"main": {"user": user}}}));
        let process = &config["process"];
        assert_eq!(process["user"], json!({"uid": uid, "gid": gid}), "{user}");
        assert_eq!(config["annotations"]["dev.jobc.user"], user);
        let effective = process["capabilities"]["effective"].as_array().unwrap();
        assert_eq!(!effective.is_empty(), may, "{user}");
        assert_eq!(process["capabilities"]["bounding"].as_array().unwrap().len(), 14);
    };
    check("1000:100", 1000, 100, false);
    check("1000", 1000, 0, false);
    check("0", 0, 0, true);
    check("app:app", 0, 0, true);
}

#[test]
fn privileges() {
    let config = bundle(&json!({"roles": {"main": {"security": {"privileged": true}}}}));
    assert_eq!(config["process"]["capabilities"]["bounding"].as_array().unwrap().len(), 41);
    assert_eq!(config["process"]["noNewPrivileges"], false);
    assert_eq!(config["linux"]["resources"]["devices"], json!([{"allow": true, "access": "rwm"}]));
    for part in ["seccomp", "maskedPaths", "readonlyPaths"] {
        assert_eq!(config["linux"].get(part), None, "{part}");
    }
    assert!(options(&config, "/sys").unwrap().contains(&"rw".to_owned()));
}

#[test]
fn capabilities_are_added_and_dropped() {
    let check = |add: &[&str], drop: &[&str], expected: &[&str], absent: &[&str]| {
        let config =
            bundle(&json!({"roles": {"main": {"security": {"capabilities": {"add": add, "drop": drop}}}}}));
        let held: Vec<String> =
            serde_json::from_value(config["process"]["capabilities"]["bounding"].clone()).unwrap();
        for name in expected {
            assert!(held.iter().any(|one| one == name), "{name} is not in {held:?}");
        }
        for name in absent {
            assert!(held.iter().all(|one| one != name), "{name} is in {held:?}");
        }
    };
    check(&["IPC_LOCK"], &["net_raw"], &["CAP_IPC_LOCK", "CAP_CHOWN"], &["CAP_NET_RAW"]);
    check(&["CAP_SYS_NICE"], &["ALL"], &["CAP_SYS_NICE"], &["CAP_CHOWN"]);
    check(&["all"], &["SYS_ADMIN"], &["CAP_BPF", "CAP_CHOWN"], &["CAP_SYS_ADMIN"]);
    insta::assert_snapshot!(report(
        &json!({"roles": {"main": {"security": {"capabilities": {"add": ["LOCK_IPC", "权限"], "drop": ["IPC_LOK"]}}}}})
    ));
}

#[test]
fn syscalls_follow_capabilities() {
    let allowed = |add: &[&str]| {
        let config = bundle(&json!({"roles": {"main": {"security": {"capabilities": {"add": add}}}}}));
        let calls = config["linux"]["seccomp"]["syscalls"].as_array().unwrap().clone();
        let mut names: Vec<String> = vec![];
        for call in
            calls.iter().filter(|call| call["action"] == "SCMP_ACT_ALLOW" && call.get("args").is_none())
        {
            names.extend(serde_json::from_value::<Vec<String>>(call["names"].clone()).unwrap());
        }
        (names, calls)
    };
    let (usual, calls) = allowed(&[]);
    for name in ["read", "execve", "futex", "chroot", "arch_prctl", "clock_gettime"] {
        assert!(usual.iter().any(|one| one == name), "{name} is refused");
    }
    for name in
        ["mount", "unshare", "bpf", "kexec_load", "io_uring_setup", "clone", "clone3", "mbind", "socket"]
    {
        assert!(usual.iter().all(|one| one != name), "{name} is allowed");
    }
    assert!(calls.contains(&json!({"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38})));
    assert!(calls.contains(&json!({"names": ["clone"], "action": "SCMP_ACT_ALLOW",
        "args": [{"index": 0, "value": 0x7e02_0000, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}]})));
    let (admin, calls) = allowed(&["SYS_ADMIN"]);
    for name in ["mount", "clone", "clone3"] {
        assert!(admin.iter().any(|one| one == name), "{name} is refused");
    }
    assert!(calls.iter().all(|call| call["action"] == "SCMP_ACT_ALLOW"));
}

#[test]
fn the_table_names_each_call_once_and_in_order() {
    let table: Value = serde_json::from_str(include_str!("../seccomp/default.json")).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for (subject, names) in table["always"].as_object().unwrap() {
        let names: Vec<String> = serde_json::from_value(names.clone()).unwrap();
        assert!(names.is_sorted_by_key(|name| name.trim_start_matches('_')), "{subject} is not in order");
        for name in names {
            assert!(seen.insert(name.clone()), "{name} stands twice");
        }
    }
    for (capability, names) in table["with"].as_object().unwrap() {
        let names: Vec<String> = serde_json::from_value(names.clone()).unwrap();
        let config =
            bundle(&json!({"roles": {"main": {"security": {"capabilities": {"add": [capability]}}}}}));
        assert!(
            config["process"]["capabilities"]["bounding"].as_array().unwrap().contains(&json!(capability))
        );
        assert!(names.iter().all(|name| !seen.contains(name)), "{capability} names what all may call");
    }
}
