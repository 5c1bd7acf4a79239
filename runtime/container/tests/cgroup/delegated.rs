//! A subtree of the cgroup v2 hierarchy that was given to a user: limits hold there without any rights.

use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::Path;
use std::process::Command;

use jobc_container::cgroup::{Cgroup, CgroupRequest, Layout};
use jobc_sys::error::Kind;
use serde_json::json;

use super::{TestGroup, layout, resources};

const NOBODY: u32 = 65534;

/// Runs one of this program's tests in a group, through a command that changes who or where it is.
fn run_in(group: &Path, through: &[&str], test: &str) {
    let script = format!("echo $$ >{}/cgroup.procs && exec \"$@\"", group.display());
    let done = Command::new("sh")
        .args(["-c", &script, "sh"])
        .args(through)
        .arg(std::env::current_exe().expect("this program"))
        .args(["--ignored", "--exact", test, "--nocapture"])
        .output()
        .expect("a shell runs");
    let printed = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{printed}");
    assert!(printed.contains("1 passed"), "{printed}");
}

/// Runs one of this program's tests in a group as a user without rights.
fn as_nobody(test: &str, group: &Path) {
    run_in(group, &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"], test);
}

/// Delegates a new group with controllers to the user `nobody`; `None` if that is not possible here.
fn given(name: &str) -> Option<std::path::PathBuf> {
    let layout = layout()?;
    if !layout.is_unified() {
        jobc_test_skip::skip("cgroup v2");
        return None;
    }
    let mount = layout.unified?.mount;
    std::fs::write(mount.join("cgroup.subtree_control"), "+memory +pids").expect("the root passes them on");
    let group = mount.join(name);
    std::fs::create_dir_all(group.join("shell")).expect("a group");
    for path in
        ["", "shell", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads", "shell/cgroup.procs"]
    {
        chown(group.join(path), Some(NOBODY), Some(NOBODY)).expect("root may give it away");
    }
    Some(group)
}

fn remove(group: &Path) {
    for directory in [group.join("shell"), group.join("jobc"), group.to_owned()] {
        let _ = std::fs::remove_dir(directory);
    }
    assert!(!group.exists(), "nothing is left in {}", group.display());
}

#[test]
fn a_user_may_limit_a_container_below_a_group_that_was_given() {
    let Some(group) = given("given") else { return };
    as_nobody("delegated::inside_a_given_group", &group.join("shell"));
    remove(&group);
}

#[test]
fn a_user_in_a_full_cgroup_gets_an_error() {
    let Some(group) = given("full") else { return };
    as_nobody("delegated::inside_a_given_group_that_is_full", &group);
    remove(&group);
}

#[test]
fn a_group_is_handed_to_the_root_of_a_container_without_its_limits() {
    let Some(layout) = layout() else { return };
    let (path, resources) = (super::path("owned"), resources(&json!({"memory": {"limit": 16_777_216}})));
    let request = CgroupRequest {
        id: "owned",
        path: Some(&path),
        resources: Some(&resources),
        owner: Some((NOBODY, NOBODY)),
        user_namespace: true,
        ..CgroupRequest::default()
    };
    let (cgroup, unenforced) = Cgroup::create(&layout, &request).unwrap_or_else(|error| panic!("{error}"));
    let trial = TestGroup { cgroup, unenforced, layout };
    for directory in trial.cgroup.directories() {
        let owner = |file: &str| std::fs::metadata(directory.join(file)).ok().map(|file| file.uid());
        let given = if directory.join("cgroup.freeze").exists() { NOBODY } else { 0 };
        assert_eq!(owner(""), Some(given), "{}", directory.display());
        assert_eq!(owner("cgroup.procs"), Some(given));
        assert!(owner("memory.max").is_none_or(|owner| owner == 0));
        assert!(owner("memory.limit_in_bytes").is_none_or(|owner| owner == 0));
    }
}

#[test]
#[ignore = "run by another test, in a cgroup of its own"]
fn inside_a_given_group() {
    let layout = Layout::detect().expect("a layout");
    let resources = resources(&json!({
        "memory": {"limit": 16_777_216, "swap": 16_777_216}, "pids": {"limit": 9},
        "devices": [{"allow": false, "access": "rwm"}],
    }));
    let request = CgroupRequest {
        id: "demo",
        resources: Some(&resources),
        user_namespace: true,
        ..CgroupRequest::default()
    };
    let (cgroup, unenforced) = Cgroup::create(&layout, &request).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(unenforced, [], "a list that only denies all is kept by having no device nodes");
    let trial = TestGroup { cgroup, unenforced, layout };
    assert!(
        trial.cgroup.directories().all(|directory| directory.ends_with("given/jobc/demo")),
        "{:?}",
        trial.cgroup.record()
    );
    assert_eq!(trial.read(&["memory.max"]), "16777216");
    assert_eq!(trial.read(&["pids.max"]), "9");
    assert_eq!(trial.run("cat /proc/self/cgroup"), (0, "0::/given/jobc/demo".to_owned()));
    trial.run("x=$(head -c 67108864 /dev/zero | tr '\\0' x); echo ${#x}");
    assert!(trial.cgroup.usage().oom_kills >= Some(1));
}

#[test]
#[ignore = "run by another test, in a cgroup of its own"]
fn inside_a_given_group_that_is_full() {
    let layout = Layout::detect().expect("a layout");
    let resources = resources(&json!({"pids": {"limit": 9}}));
    let request = CgroupRequest {
        id: "demo",
        resources: Some(&resources),
        user_namespace: true,
        ..CgroupRequest::default()
    };
    let error = Cgroup::create(&layout, &request).expect_err("it holds processes");
    assert_eq!((error.kind, error.pointer()), (Kind::Unenforceable, Some("/linux/resources/pids/limit")));
    assert!(
        error.message().ends_with("/full` holds processes, so it cannot enable `pids` for its children"),
        "{error}"
    );
    // Without limits it will do: the container is counted, found and killed there.
    let request = CgroupRequest { resources: None, ..request };
    let (cgroup, _) = Cgroup::create(&layout, &request).unwrap_or_else(|error| panic!("{error}"));
    assert!(cgroup.directories().all(|directory| directory.ends_with("full/jobc/demo")));
    cgroup.remove().unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn root_in_a_full_cgroup_gets_an_error() {
    let Some(group) = given("box") else { return };
    // As a container with a namespace for cgroups sees it: its own group is the root of the tree.
    let script = "umount /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup && exec \"$@\"";
    run_in(&group, &["unshare", "-Cm", "sh", "-c", script, "sh"], "delegated::inside_a_container");
    remove(&group);
}

#[test]
#[ignore = "run by another test, in a cgroup of its own"]
fn inside_a_container() {
    let layout = Layout::detect().expect("a layout");
    let limited = resources(&json!({"pids": {"limit": 9}}));
    let request = CgroupRequest {
        id: "demo",
        resources: Some(&limited),
        user_namespace: true,
        ..CgroupRequest::default()
    };
    let error = Cgroup::create(&layout, &request).expect_err("it holds processes");
    assert_eq!((error.kind, error.pointer()), (Kind::Unenforceable, Some("/linux/resources/pids/limit")));
    assert_eq!(
        error.message(),
        "the cgroup `/sys/fs/cgroup` holds processes, so it cannot enable `pids` for its children"
    );
    let request = CgroupRequest { allow_unenforced: true, ..request };
    let (cgroup, unenforced) = Cgroup::create(&layout, &request).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(unenforced.len(), 1);
    cgroup.remove().unwrap_or_else(|error| panic!("{error}"));
    std::fs::remove_dir("/sys/fs/cgroup/jobc").expect("it is empty");
}
