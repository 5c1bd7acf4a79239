//! `jobc doctor` on the host that runs the tests, as root and as an unprivileged user.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::directory::{Directory, Run, binary};

/// A user who is not in /etc/passwd and has no home.
const OTHER_USER: u32 = 54_321;

/// The binary where all users may run it, as a user who is not root.
fn as_other_user(directory: &Directory) -> Command {
    let program = directory.path().join("jobc");
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::copy(binary(), &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = directory.command(program.as_str());
    command.uid(OTHER_USER).gid(OTHER_USER).env_remove("HOME").env_remove("XDG_RUNTIME_DIR");
    command
}

fn json(run: &Run) -> Value {
    serde_json::from_str(&run.out).expect("JSON")
}

/// The result of a check in a report.
fn check<'a>(report: &'a Value, name: &str) -> &'a Value {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("there is no check `{name}`"))
}

/// The exit code that a report promises.
fn promised(report: &Value) -> i32 {
    let who = if report["containers"]["root"].is_null() { "user" } else { "root" };
    i32::from(report["containers"][who]["status"] == "missing")
}

#[test]
fn the_report_is_of_one_shape_for_root_and_for_others() {
    let directory = Directory::new();
    let mut runs =
        vec![(rustix::process::geteuid().as_raw(), directory.jobc(&["doctor", "--format", "json"]))];
    if jobc_test_skip::is_root() {
        runs.push((OTHER_USER, Run::of(as_other_user(&directory).args(["doctor", "--format", "json"]))));
    }
    for (uid, run) in runs {
        let report = json(&run);
        let run = run.exits(promised(&report));
        assert_eq!(run.err, "");
        assert_eq!(report["version"], 1);
        assert_eq!(report["user"]["uid"], uid);
        assert_eq!(report["containers"]["root"].is_null(), uid != 0);
        let checks = report["checks"].as_array().unwrap();
        assert!(checks.len() > 40, "only {} checks", checks.len());
        for check in checks {
            let status = check["status"].as_str().unwrap();
            assert!(["ok", "limited", "missing"].contains(&status), "{check}");
            assert!(["name", "found", "purpose", "subject"].iter().all(|key| check[key] != ""), "{check}");
            assert!(check["needed"].is_boolean() && check["fix"].is_array(), "{check}");
            assert!(status != "ok" || check["fix"] == Value::Array(vec![]), "{check}");
        }
    }
}

/// The doctor tries the kernel, so what this test can create itself must also be available to the doctor.
#[test]
fn namespaces_that_unshare_can_create_are_found() {
    let directory = Directory::new();
    let report = json(&directory.jobc(&["doctor", "--format", "json"]));
    let user = if rustix::process::geteuid().is_root() { "" } else { "-Ur " };
    for (name, option) in
        [("mount", "-m"), ("pid", "-pf"), ("ipc", "-i"), ("uts", "-u"), ("net", "-n"), ("cgroup", "-C")]
    {
        let made = directory.bash(&format!("unshare {user}{option} true")).code == Some(0);
        let found = &check(&report, &format!("namespace.{name}"))["status"];
        assert_eq!(found == "ok", made, "{name}: {found}");
    }
}

#[test]
fn a_user_without_namespaces_gets_an_error() {
    if !jobc_test_skip::is_root() {
        return;
    }
    // In its own user namespace the limit can be set to 0 without affecting others.
    let directory = Directory::new();
    as_other_user(&directory);
    let line = "echo 0 >/proc/sys/user/max_user_namespaces && exec ./jobc doctor --format json";
    let run = directory.bash(&format!("unshare -Ur sh -c '{line}'"));
    let report = json(&run);
    let user = check(&report, "namespace.user");
    assert_eq!(user["status"], "missing", "{user}");
    assert!(user["found"].as_str().unwrap().contains("ENOSPC"), "{user}");
    assert!(user["fix"][0].as_str().unwrap().contains("user.max_user_namespaces"), "{user}");
}

/// The setting belongs to a pid namespace, so it does not affect others.
#[test]
fn a_host_that_forbids_executable_memory_is_found() {
    if !jobc_test_skip::is_root() {
        return;
    }
    let directory = Directory::new();
    if directory.bash("test -e /proc/sys/vm/memfd_noexec").code != Some(0) {
        jobc_test_skip::skip("a kernel with vm.memfd_noexec");
        return;
    }
    let line = "echo 2 >/proc/sys/vm/memfd_noexec && exec \"$JOBC\" doctor --format json";
    let run = directory.bash(&format!("unshare -pf --mount-proc sh -c '{line}'")).exits(1);
    let report = json(&run);
    let memory = check(&report, "kernel.executable-memory");
    assert_eq!(memory["status"], "missing", "{memory}");
    assert!(memory["fix"][0].as_str().unwrap().contains("vm.memfd_noexec"), "{memory}");
    assert_eq!(report["containers"]["root"]["without"][0], "kernel.executable-memory");
    let report = json(&directory.jobc(&["doctor", "--format", "json"]));
    assert_eq!(check(&report, "kernel.executable-memory")["status"], "ok");
}

/// The range is granted in files that only this test's mount namespace has, and mapped by the host's newuidmap.
#[test]
fn a_range_of_ids_is_really_mapped() {
    let directory = Directory::new();
    if !jobc_test_skip::is_root()
        || !["newuidmap", "newgidmap", "setpriv"].into_iter().all(jobc_test_skip::has_program)
    {
        return;
    }
    as_other_user(&directory);
    directory.write(
        "passwd",
        &format!("root:x:0:0::/:/bin/sh\nstranger:x:{OTHER_USER}:{OTHER_USER}::/:/bin/sh\n"),
    );
    directory.write("granted", "stranger:600000:1000\n");
    let doctor = |granted: &str| {
        let binds = "mount --bind passwd /etc/passwd && mount --bind $FILE /etc/subuid && mount --bind $FILE /etc/subgid";
        let user = format!("setpriv --reuid={OTHER_USER} --regid={OTHER_USER} --clear-groups");
        let line = format!("FILE={granted}; {binds} && exec {user} ./jobc doctor --format json");
        json(&directory.bash(&format!("unshare -m --propagation private sh -c '{line}'")))
    };
    let with = doctor("granted");
    assert_eq!(check(&with, "ids.range")["found"], "1000 subordinate user ids, 1000 subordinate group ids");
    assert_eq!(check(&with, "ids.mapped")["status"], "ok", "{}", check(&with, "ids.mapped"));
    let without = doctor("/dev/null");
    assert_eq!(check(&without, "ids.mapped")["status"], "missing", "{}", check(&without, "ids.mapped"));
    assert!(check(&without, "ids.range")["fix"][0].as_str().unwrap().starts_with("usermod --add-subuids "));
}

#[test]
fn nothing_is_mounted_and_no_program_may_hang_it() {
    let directory = Directory::new();
    for (name, script) in
        [("runc", "sleep 600"), ("crun", "echo crun version 9; exit 0"), ("pasta", "exit 1")]
    {
        directory.write(&format!("bin/{name}"), &format!("#!/bin/sh\n{script}\n"));
        let path = directory.path().join("bin").join(name);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let start = Instant::now();
    let user = if rustix::process::geteuid().is_root() { "" } else { "-Ur" };
    let line = "cat /proc/self/mountinfo >before; PATH=$PWD/bin:$PATH \"$JOBC\" doctor --format json; cat /proc/self/mountinfo >after";
    let run = directory.bash(&format!("unshare {user} -m --propagation private sh -c '{line}'"));
    assert!(start.elapsed() < Duration::from_mins(1), "took {:?}", start.elapsed());
    let report = json(&run);
    assert_eq!(directory.read("before"), directory.read("after"));
    let runc = check(&report, "runtime.runc");
    assert_eq!(runc["status"], "limited", "{runc}");
    assert!(runc["found"].as_str().unwrap().ends_with("timed out after 3 s"), "{runc}");
    assert!(check(&report, "runtime.crun")["found"].as_str().unwrap().ends_with("/bin/crun: crun version 9"));
    assert!(check(&report, "network.pasta")["found"].as_str().unwrap().ends_with("/bin/pasta"));
}

#[test]
fn people_get_subjects_and_a_summary_and_colors_on_a_terminal_only() {
    let directory = Directory::new();
    let plain = directory.jobc(&["doctor"]).out;
    assert!(!plain.contains('\x1b'));
    for subject in ["kernel", "namespaces", "cgroups", "GPUs", "places"] {
        assert!(plain.lines().any(|line| line == subject), "no `{subject}` in\n{plain}");
    }
    let last = plain.lines().last().unwrap();
    let who = if rustix::process::geteuid().is_root() {
        "containers as root: "
    } else {
        "containers as this user ("
    };
    assert!(last.starts_with(who), "{last}");
    let colored = directory.jobc(&["doctor", "--color", "always"]).out;
    assert!(colored.contains("\x1b[32mok"), "{colored}");
    let short = directory.jobc(&["doctor", "--format", "short"]).out;
    assert!(short.lines().any(|line| line.starts_with("kernel.release: ok: Linux ")), "{short}");
}

#[test]
fn formats_for_findings_are_rejected_for_the_report() {
    for format in ["sarif", "github"] {
        let run = Directory::new()
            .jobc(&["doctor", "--format", format])
            .exits(2)
            .says("use `--format json`, `short`");
        assert_eq!(run.out, "");
    }
}

/// The steps are for `doctor` itself; run by hand they must not mount anything on the host.
///
/// They still run in a mount namespace, so that a broken guard does no harm.
#[test]
fn a_step_that_mounts_wants_a_namespace_first() {
    let directory = Directory::new();
    let user = if rustix::process::geteuid().is_root() { "" } else { "-Ur" };
    let probe = |steps: &str| {
        directory.bash(&format!("unshare {user} -m --propagation private \"$JOBC\" probe-host {steps}"))
    };
    for steps in ["tmpfs", "proc", "overlay", "user,tmpfs", "pid,tmpfs"] {
        probe(steps).exits(1).says("only after the step `mount`");
    }
    probe("sideways").exits(1).says("sideways: no such step");
    probe("mount,tmpfs").exits(0);
    probe("mount,pid,tmpfs").exits(0);
}
