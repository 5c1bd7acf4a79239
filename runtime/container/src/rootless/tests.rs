use serde_json::json;

use super::*;
use crate::config::Config;

/// Shows the resulting namespaces and mounts of a bundle, and the messages. Ids that no file grants more to.
fn check(name: &str, namespaces: &[&str], mounts: &serde_json::Value, around: Restrictions) {
    check_caller(name, namespaces, mounts, Caller::IsRoot, around);
}

fn check_caller(
    name: &str,
    namespaces: &[&str],
    mounts: &serde_json::Value,
    caller: Caller,
    around: Restrictions,
) {
    let namespaces: Vec<_> = namespaces.iter().map(|kind| json!({"type": kind})).collect();
    let config = json!({
        "ociVersion": "1.1.0", "root": {"path": "rootfs"}, "process": {"args": ["true"], "cwd": "/", "user": {"uid": 0, "gid": 0}},
        "mounts": mounts, "hostname": "main-0", "linux": {"namespaces": namespaces}
    });
    let mut spec = Config::read(config.to_string().as_bytes()).unwrap().spec;
    let ids = (3_999_999_999, 3_999_999_998);
    let notes = adapt_within(&mut spec, ids, caller, around, || Some(Engine::Podman)).unwrap();
    let linux = spec.linux().as_ref().unwrap();
    let mut shown = json!({
        "said": notes, "hostname": spec.hostname(), "mounts": spec.mounts(), "namespaces": linux.namespaces(),
        "uidMappings": linux.uid_mappings(), "gidMappings": linux.gid_mappings(),
    });
    if caller == Caller::IsUnchanged {
        shown["user"] = json!(spec.process().as_ref().unwrap().user());
        shown["annotations"] = json!(spec.annotations());
    }
    insta::assert_snapshot!(name, format!("{config:#}\n\n{shown:#}"));
}

fn mounts() -> serde_json::Value {
    json!([
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev/pts", "type": "devpts", "source": "devpts", "options": ["nosuid", "gid=5", "mode=0620"]},
        {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["nosuid", "ro"]}
    ])
}

#[test]
fn on_the_hosts_network_sys_is_the_hosts() {
    check("machine_network", &["pid", "mount"], &mounts(), Restrictions::default());
}

#[test]
fn with_a_network_of_its_own_sys_is_its_own() {
    check("own_network", &["pid", "mount", "network"], &mounts(), Restrictions::default());
}

#[test]
fn a_caller_who_is_not_root_inside_keeps_ids_and_groups() {
    let namespaces = &["pid", "mount", "network"];
    check_caller("same_caller", namespaces, &mounts(), Caller::IsUnchanged, Restrictions::default());
}

/// A process with groups of its own cannot have those of the caller, which have no number in the container.
#[test]
fn groups_of_the_caller_are_kept_where_the_process_has_none() {
    let kept = |namespaces: serde_json::Value, groups: &[u32], uid| {
        let config = json!({
            "ociVersion": "1.1.0", "root": {"path": "rootfs"}, "linux": {"namespaces": namespaces},
            "process": {"args": ["true"], "cwd": "/", "user": {"uid": 1000, "gid": 1000, "additionalGids": groups}},
        });
        let mut spec = Config::read(config.to_string().as_bytes()).unwrap().spec;
        adapt_within(&mut spec, (uid, uid), Caller::IsRoot, Restrictions::default(), || None).unwrap();
        spec.annotations().as_ref().is_some_and(|all| all.contains_key(KEEP_GROUPS))
    };
    let (none, user) = (json!([]), json!([{"type": "user"}]));
    assert!(kept(none.clone(), &[], 3_999_999_999));
    assert!(!kept(none.clone(), &[44], 3_999_999_999));
    assert!(!kept(none, &[], 0), "root of a container");
    assert!(!kept(user, &[], 3_999_999_999));
}

#[test]
fn an_explicit_user_namespace_is_left_unchanged() {
    check("user_namespace", &["user", "mount"], &mounts(), Restrictions::default());
}

#[test]
fn features_denied_by_an_outer_container_are_left_out() {
    let around = Restrictions { no_proc: true, no_sysfs: true, no_host_name: true };
    check("nested", &["pid", "mount", "network", "uts"], &mounts(), around);
}

#[test]
fn an_id_map_says_which_ids_there_are() {
    let machine = "         0          0 4294967295\n";
    let single = "0 1500 1\n";
    let ranges = "0 1500 1\n1 100000 4\n6 200000 65536\n";
    let has = |map: &str, ids: [u32; 4]| ids.map(|id| has_id(map, id));
    assert_eq!(has(machine, [0, 5, 6, u32::MAX]), [true, true, true, false]);
    assert_eq!(has(single, [0, 1, 5, 1500]), [true, false, false, false]);
    assert_eq!(has(ranges, [4, 5, 6, 65542]), [true, false, true, false]);
    assert_eq!(has("", [0, 1, 5, 6]), [false; 4]);
}

#[test]
fn the_changes_are_one_note() {
    let changes = ["its root is user 1000", "`/sys` is the host's"].map(str::to_owned);
    let note = summary(&changes).unwrap();
    assert_eq!(note, "as an unprivileged user: its root is user 1000; `/sys` is the host's");
    assert!(is_summary(&note) && !is_summary("the job's network has no uplink"));
    assert_eq!(summary(&[]), None);
}
