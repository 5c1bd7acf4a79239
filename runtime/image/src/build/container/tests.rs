use serde_json::Value;

use super::*;

fn setting() -> CommandConfig {
    CommandConfig {
        rlimits: Vec::new(),
        memory_bytes: None,
        arguments: vec!["/bin/sh".into(), "-c".into(), "make".into()],
        environment: vec!["PATH=/bin".into()],
        cwd: "/work".into(),
        account: Account::default(),
        network: CommandNetwork::Host,
        mounts: Vec::new(),
        shm_bytes: None,
    }
}

/// A bundle that the compiler has written, with what every task has.
const TASK: &str = "../../examples/dag/out/pipeline/local/oci/prepare-0/config.json";

#[test]
fn a_command_is_confined_as_a_task_is() {
    let task: Value =
        serde_json::from_str(&std::fs::read_to_string(TASK).expect("an example")).expect("JSON");
    let ours: Value = serde_json::from_str(TEMPLATE).expect("JSON");
    for place in [
        "/linux/seccomp",
        "/linux/maskedPaths",
        "/linux/readonlyPaths",
        "/linux/namespaces",
        "/linux/resources/devices",
        "/process/capabilities",
    ] {
        assert_eq!(ours.pointer(place), task.pointer(place), "{place}");
    }
    for mount in ours["mounts"].as_array().expect("mounts") {
        assert!(task["mounts"].as_array().expect("mounts").contains(mount), "{mount}");
    }
}

#[test]
fn a_user_has_what_root_could_have_only_through_set_user_id_programs() {
    let setting =
        CommandConfig { account: Account { uid: 1000, gid: 1000, additional: vec![44] }, ..setting() };
    let spec = spec(&setting, Path::new("/root"), true).expect("a configuration");
    let process = spec.process().clone().expect("a process");
    let capabilities = process.capabilities().clone().expect("capabilities");
    assert!(capabilities.effective().as_ref().is_some_and(std::collections::HashSet::is_empty));
    assert!(capabilities.bounding().as_ref().is_some_and(|held| held.len() == 14));
    assert_eq!(process.user().additional_gids().as_deref(), Some(&[44][..]));
}

#[test]
fn without_a_cgroup_no_device_is_made() {
    let spec = spec(&setting(), Path::new("/root"), false).expect("a configuration");
    let capabilities = spec.process().clone().and_then(|process| process.capabilities().clone());
    let held = capabilities.and_then(|held| held.bounding().clone()).expect("capabilities");
    assert!(!held.contains(&oci_spec::runtime::Capability::Mknod));
    assert!(spec.linux().as_ref().is_some_and(|linux| linux.resources().is_none()));
}

#[test]
fn a_network_of_its_own_is_a_namespace_more() {
    let count = |network| {
        let spec =
            spec(&CommandConfig { network, ..setting() }, Path::new("/root"), true).expect("a configuration");
        let kinds = spec.linux().as_ref().and_then(|linux| linux.namespaces().clone()).unwrap_or_default();
        kinds.iter().filter(|namespace| namespace.typ() == LinuxNamespaceType::Network).count()
    };
    let namespace = crate::build::access::NetworkNamespace { network: "/proc/9/fd/3".into(), user: None };
    let joined = CommandNetwork::Joined(namespace);
    assert_eq!((count(CommandNetwork::Host), count(CommandNetwork::None), count(joined)), (0, 1, 1));
}

#[test]
fn shared_memory_has_the_requested_size() {
    let options = |shm_bytes| {
        let spec = spec(&CommandConfig { shm_bytes, ..setting() }, Path::new("/root"), true)
            .expect("a configuration");
        let mounts = spec.mounts().clone().unwrap_or_default();
        let shm =
            mounts.into_iter().find(|mount| mount.destination() == Path::new("/dev/shm")).expect("/dev/shm");
        shm.options().clone().unwrap_or_default()
    };
    assert!(options(None).contains(&"size=65536k".to_owned()));
    let own = options(Some(1 << 30));
    assert!(
        own.contains(&"size=1073741824".to_owned()) && !own.contains(&"size=65536k".to_owned()),
        "{own:?}"
    );
}
