//! Where groups are created and what is written, on simulated trees.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::fs::Uid;
use serde_json::{Value, json};

use super::*;
use crate::cgroup::{ScopeGroup, UnifiedHierarchy, Version};
use crate::systemd::Unit;

/// A simulated cgroup v2 hierarchy: one group per line, its path, then its properties.
///
/// `given` may be written by everyone, `procs` holds a process, `has:` and `on:` are its controllers and those it
/// passes on.
fn tree(lines: &str) -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a directory");
    for line in lines.lines() {
        let mut words = line.split_whitespace();
        let group = root.path().join(words.next().expect("a path").trim_start_matches('/'));
        fs::create_dir_all(&group).expect("a group");
        let words: Vec<&str> = words.collect();
        let after = |key: &str| {
            words.iter().find_map(|word| word.strip_prefix(key)).unwrap_or_default().replace(',', " ")
        };
        let processes = if words.contains(&"procs") { "1\n" } else { "" };
        let given = words.contains(&"given");
        for (file, text) in [
            ("cgroup.procs", processes),
            ("cgroup.controllers", &after("has:")),
            ("cgroup.subtree_control", &after("on:")),
        ] {
            fs::write(group.join(file), text).expect("a file");
            fs::set_permissions(group.join(file), Permissions::from_mode(if given { 0o666 } else { 0o644 }))
                .expect("its mode");
        }
        fs::set_permissions(&group, Permissions::from_mode(if given { 0o777 } else { 0o755 }))
            .expect("its mode");
    }
    fs::set_permissions(root.path(), fs::metadata(root.path()).expect("it is there").permissions())
        .expect("mode");
    root
}

/// The plan for a user without rights, as lines; paths below the tree begin with `/cg`.
fn check(lines: &str, own: &str, path: Option<&str>, resources: &Value) -> Option<String> {
    check_in(lines, own, path, None, resources)
}

/// As [`check`], for a user whose systemd would create a scope.
fn check_in(
    lines: &str,
    own: &str,
    path: Option<&str>,
    scope: Option<&ScopeGroup>,
    resources: &Value,
) -> Option<String> {
    if !jobc_test_skip::is_root() {
        return None;
    }
    let root = tree(lines);
    if !lines.starts_with("/ given") {
        fs::set_permissions(root.path(), Permissions::from_mode(0o755)).expect("its mode");
    }
    let layout = on(root.path(), own);
    let output = as_nobody(|| describe_in(&layout, path, scope, resources));
    Some(output.replace(&root.path().display().to_string(), "/cg"))
}

/// The cgroup v2 hierarchy there, in which this process is in the group `own`.
fn on(root: &Path, own: &str) -> Layout {
    let all = [Controller::Cpu, Controller::Memory, Controller::Pids];
    let tree = UnifiedHierarchy {
        mount: root.to_owned(),
        controllers: Vec::from(all).into(),
        own_group: Some(own.into()),
        // Then permissions are checked, for the user of the test.
        writable: false,
    };
    Layout { hierarchies: vec![], unified: Some(tree) }
}

fn output(layout: &Layout, path: Option<&str>, resources: &Value) -> String {
    describe_in(layout, path, None, resources)
}

fn describe_in(layout: &Layout, path: Option<&str>, scope: Option<&ScopeGroup>, resources: &Value) -> String {
    let resources = serde_json::from_value(resources.clone()).expect("resources");
    let request = CgroupRequest {
        id: "demo",
        path,
        scope,
        resources: Some(&resources),
        counts_io: true,
        user_namespace: true,
        ..CgroupRequest::default()
    };
    match Plan::of(layout, &request) {
        Ok(plan) => plan.describe().join("\n"),
        Err(error) => format!("{error}\n    {}", error.hints.join("\n    ")),
    }
}

/// Calls on a thread that runs as the user `nobody`.
fn as_nobody<T: Send>(call: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let (root, nobody) = (Uid::ROOT, Uid::from_raw(65534));
            rustix::thread::set_thread_res_uid(root, nobody, root).expect("root may");
            call()
        });
        thread.join().expect("it ends well")
    })
}

fn memory() -> Value {
    json!({"memory": {"limit": 4096}})
}

#[test]
fn a_user_gets_a_group_under_the_nearest_of_their_own_that_can_pass_controllers_on() {
    let scope = "user.slice/user@7.service/app.slice/run.scope";
    // The own group holds the shell; the one above it, given too, does not.
    let Some(output) = check(
        "/ has:memory on:memory\n\
         /user.slice has:memory on:memory\n\
         /user.slice/user@7.service given has:memory on:memory\n\
         /user.slice/user@7.service/app.slice given has:memory\n\
         /user.slice/user@7.service/app.slice/run.scope given procs has:memory",
        scope,
        Some("/jobc/train/main-0"),
        &memory(),
    ) else {
        return;
    };
    insta::assert_snapshot!(output, @r#"
        make the cgroup `/cg/user.slice/user@7.service/app.slice/jobc/train/main-0`
        write `4096` to its `memory.max`
    "#);
}

#[test]
fn without_limits_the_own_group_will_do() {
    let Some(output) = check("/ procs\n/a given procs has:memory", "a", None, &json!({})) else { return };
    insta::assert_snapshot!(output, @"make the cgroup `/cg/a/jobc/demo`");
}

#[test]
fn a_user_who_was_given_no_group_gets_none_and_no_limits() {
    let lines = "/ has:memory on:memory\n/a procs has:memory";
    let Some(output) = check(lines, "a", None, &memory()) else { return };
    insta::assert_snapshot!(output, @r#"
        config.json: /linux/resources/memory/limit: this user cannot create cgroups in `/cg/a` or above it
            start it in a cgroup of your own, for example with `systemd-run --user --scope --property=Delegate=yes`, or use `jobc oci --systemd-cgroup`
            remove it from config.json, or run without it with `--allow-unenforced`
    "#);
    assert_eq!(check(lines, "a", None, &json!({})), Some(String::new()));
}

#[test]
fn a_given_group_that_holds_processes_cannot_limit() {
    let Some(output) = check("/ has:memory on:memory\n/a given procs has:memory", "a", None, &memory())
    else {
        return;
    };
    insta::assert_snapshot!(output, @r#"
        config.json: /linux/resources/memory/limit: the cgroup `/cg/a` holds processes, so it cannot enable `memory` for its children
            move its processes to a child: `mkdir /cg/a/main` and write their PIDs to `/cg/a/main/cgroup.procs`
            remove it from config.json, or run without it with `--allow-unenforced`
    "#);
}

#[test]
fn a_given_group_without_the_controller_cannot_limit() {
    let Some(output) = check("/ has:memory,pids on:pids\n/a given has:pids", "a", None, &memory()) else {
        return;
    };
    insta::assert_snapshot!(output, @r#"
        config.json: /linux/resources/memory/limit: the cgroup `/cg/a` does not have the controllers `memory`
            have root enable them for it (`+memory` in `cgroup.subtree_control` of the parent of `/cg/a`, or `Delegate=` of its unit)
            remove it from config.json, or run without it with `--allow-unenforced`
    "#);
}

#[test]
fn what_a_given_group_has_is_kept_where_another_controller_is_lacking() {
    let lines = "/ has:memory,cpu on:memory,cpu\n/a given has:memory on:memory\n/a/b given procs has:memory";
    let resources = json!({"memory": {"limit": 4096}, "cpu": {"shares": 512}});
    let Some(output) = check(lines, "a/b", None, &resources) else { return };
    assert!(
        output.starts_with(
            "config.json: /linux/resources/cpu/shares: the cgroup `/cg/a/b` does not have the controllers `cpu`"
        ),
        "{output}"
    );
    let root = tree(lines);
    let layout = on(root.path(), "a/b");
    let plan = as_nobody(|| {
        let resources = serde_json::from_value(resources).expect("resources");
        let request = CgroupRequest {
            id: "demo",
            resources: Some(&resources),
            allow_unenforced: true,
            user_namespace: true,
            ..CgroupRequest::default()
        };
        Plan::of(&layout, &request).expect("allowed")
    });
    assert!(plan.describe().iter().any(|line| line == "write `4096` to its `memory.max`"), "{plan:?}");
    assert_eq!((plan.unenforced.len(), plan.lacks_group), (1, true));
}

#[test]
fn a_scope_of_the_users_systemd_has_what_that_was_given() {
    let scope = ScopeGroup::of(&Unit::application("train.1"), Path::new("user.slice/user@7.service"));
    let lines = "/ has:memory,cpu on:memory,cpu\n\
        /user.slice/session.scope procs has:memory,cpu\n\
        /user.slice/user@7.service has:memory";
    let own = "user.slice/session.scope";
    let path = Some("/jobc/train.1/main-0");
    let Some(output) = check_in(lines, own, path, Some(&scope), &memory()) else { return };
    insta::assert_snapshot!(output, @r#"
        make the cgroup `/cg/user.slice/user@7.service/app.slice/jobc-train.1.scope/jobc/train.1/main-0`
        write `4096` to its `memory.max`
    "#);
    let more = json!({"memory": {"limit": 4096}, "cpu": {"shares": 512}});
    insta::assert_snapshot!(check_in(lines, own, path, Some(&scope), &more).expect("not skipped"), @r#"
        config.json: /linux/resources/cpu/shares: the cgroup `/cg/user.slice/user@7.service` of the user's systemd does not have the controllers `cpu`
            as root: mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\nDelegate=cpu cpuset io memory pids\n' >/etc/systemd/system/user@.service.d/delegate.conf && systemctl daemon-reload; then log in again
            remove it from config.json, or run without it with `--allow-unenforced`
    "#);
}

#[test]
fn a_path_in_a_given_group_is_taken_as_it_is_where_one_may_move_there() {
    let lines = "/ has:memory on:memory\n/a given has:memory on:memory\n/a/b given procs\n/c given has:memory on:memory";
    let Some(output) = check(lines, "a/b", Some("/a/mine"), &memory()) else { return };
    insta::assert_snapshot!(output, @r#"
        make the cgroup `/cg/a/mine`
        write `4096` to its `memory.max`
    "#);
    // Between /a/b and /c only the root is common, and that is not the user's.
    insta::assert_snapshot!(check(lines, "a/b", Some("/c/mine"), &memory()).expect("not skipped"), @r#"
        make the cgroup `/cg/a/c/mine`
        write `4096` to its `memory.max`
    "#);
}

#[test]
fn a_relative_path_begins_at_the_own_group() {
    let lines = "/ has:memory on:memory\n/a given has:memory on:memory";
    let Some(output) = check(lines, "a", Some("mine"), &memory()) else { return };
    insta::assert_snapshot!(output, @r#"
        make the cgroup `/cg/a/mine`
        write `4096` to its `memory.max`
    "#);
}

#[test]
fn without_any_cgroups_every_limit_has_the_same_reason() {
    insta::assert_snapshot!(output(&Layout::default(), None, &memory()), @r#"
        config.json: /linux/resources/memory/limit: no cgroups are available for the container
            remove it from config.json, or run without it with `--allow-unenforced`
    "#);
    assert_eq!(output(&Layout::default(), None, &json!({})), "");
    let devices =
        json!({"devices": [{"allow": true, "access": "rwm"}, {"allow": false, "type": "c", "access": "r"}]});
    insta::assert_snapshot!(output(&Layout::default(), None, &devices), @r#"
        config.json: /linux/resources/devices: no cgroups are available for the container
            remove it from config.json, or run without it with `--allow-unenforced`
    "#);
}

#[test]
fn limits_that_cannot_be_enforced_pass_where_that_is_allowed() {
    let resources =
        serde_json::from_value(json!({"memory": {"limit": 4096}, "pids": {"limit": 1}})).expect("resources");
    let request = CgroupRequest {
        id: "demo",
        resources: Some(&resources),
        allow_unenforced: true,
        user_namespace: true,
        ..CgroupRequest::default()
    };
    let plan = Plan::of(&Layout::default(), &request).expect("allowed");
    let output: Vec<String> = plan.unenforced.iter().map(ToString::to_string).collect();
    assert_eq!(
        output,
        [
            "/linux/resources/memory/limit: no cgroups are available for the container",
            "/linux/resources/pids/limit: no cgroups are available for the container",
        ]
    );
}

/// A cgroup v1 hierarchy on a directory that may be written.
fn hierarchy(root: &Path, name: &str) -> Hierarchy {
    let mount = root.join(name);
    fs::create_dir_all(&mount).expect("a directory");
    let controllers = name.split(',').filter_map(Controller::from_name).collect();
    Hierarchy { mount, name: name.to_owned(), controllers, own_group: Some("".into()), writable: false }
}

#[test]
fn version_1_gets_a_group_where_something_is_limited_or_counted() {
    let root = tempfile::tempdir().expect("a directory");
    let names =
        ["name=systemd", "cpu,cpuacct", "memory", "pids", "devices", "freezer", "blkio", "cpuset", "net_cls"];
    let hierarchies = names.map(|name| hierarchy(root.path(), name)).into();
    let mut layout = Layout { hierarchies, unified: None };
    let shown = |layout: &Layout| {
        let resources = json!({"cpu": {"shares": 512}, "network": {"classID": 7}, "pids": {"limit": 9}});
        output(layout, None, &resources).replace(&root.path().display().to_string(), "/cg")
    };
    insta::assert_snapshot!(shown(&layout), @r#"
        make the cgroup `/cg/cpu,cpuacct/jobc/demo`
        write `512` to its `cpu.shares`
        make the cgroup `/cg/memory/jobc/demo`
        make the cgroup `/cg/pids/jobc/demo`
        write `9` to its `pids.max`
        make the cgroup `/cg/devices/jobc/demo`
        write `a` to its `devices.deny`
        write `c *:* m` to its `devices.allow`
        write `b *:* m` to its `devices.allow`
        write `c 1:3 rwm` to its `devices.allow`
        write `c 1:5 rwm` to its `devices.allow`
        write `c 1:7 rwm` to its `devices.allow`
        write `c 1:8 rwm` to its `devices.allow`
        write `c 1:9 rwm` to its `devices.allow`
        write `c 5:0 rwm` to its `devices.allow`
        write `c 5:1 rwm` to its `devices.allow`
        write `c 5:2 rwm` to its `devices.allow`
        write `c 136:* rwm` to its `devices.allow`
        make the cgroup `/cg/freezer/jobc/demo`
        make the cgroup `/cg/blkio/jobc/demo`
        make the cgroup `/cg/net_cls/jobc/demo`
        write `7` to its `net_cls.classid`
    "#);
    // On a hybrid host the cgroup v2 hierarchy freezes the container.
    let mount = root.path().join("unified");
    fs::create_dir(&mount).expect("a directory");
    fs::write(mount.join("cgroup.procs"), "").expect("a file");
    layout.unified = Some(UnifiedHierarchy {
        mount,
        controllers: vec![].into(),
        own_group: Some("".into()),
        writable: false,
    });
    let output = shown(&layout);
    assert!(!output.contains("/cg/freezer"), "{output}");
    // And CPU time is counted there, but not disks and memory.
    let told_of_nothing = self::output(&layout, None, &json!({}));
    assert!(!told_of_nothing.contains("cpuacct"), "{told_of_nothing}");
    assert!(told_of_nothing.contains("/memory/") && told_of_nothing.contains("/blkio/"), "{told_of_nothing}");
    assert!(output.ends_with("make the cgroup `/cg/unified/jobc/demo`"), "{output}");
    assert_eq!(layout.version(Controller::Cpu), Some(Version::V1));
}
