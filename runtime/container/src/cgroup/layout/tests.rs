//! The cgroup layout, parsed from the kernel's two files.

use super::*;

/// The layout of a host whose mounts of cgroups and own groups are these lines.
fn check(mountinfo: &str, own: &str) -> String {
    let layout = Layout::parse(mountinfo, own);
    let mut lines = vec![];
    let own = |own: &Option<PathBuf>| {
        own.as_ref().map_or("out of sight".to_owned(), |own| format!("own `{}`", own.display()))
    };
    for hierarchy in &layout.hierarchies {
        let place = hierarchy.mount.display();
        lines.push(format!(
            "v1 {} {:?} at {place}, {}",
            hierarchy.name,
            hierarchy.controllers,
            own(&hierarchy.own_group)
        ));
    }
    if let Some(unified) = &layout.unified {
        lines.push(format!("v2 at {}, {}", unified.mount.display(), own(&unified.own_group)));
    }
    lines.join("\n")
}

#[test]
fn what_is_mounted_read_only_is_not_for_writing() {
    let check = |mount: &str, system: &str| {
        let line = format!(
            "30 23 0:26 / /sys/fs/cgroup {mount},nosuid shared:9 - cgroup2 cgroup2 {system},nsdelegate"
        );
        Layout::parse(&line, "0::/").unified.expect("mounted").writable
    };
    assert!(check("rw", "rw"));
    assert!(!check("ro", "rw"), "as in a container");
    assert!(!check("rw", "ro"));
}

#[test]
fn version_2_alone() {
    insta::assert_snapshot!(check(
        "25 1 0:22 / /proc rw - proc proc rw\n30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate",
        "0::/user.slice/user-1000.slice/session-3.scope\n",
    ), @"v2 at /sys/fs/cgroup, own `user.slice/user-1000.slice/session-3.scope`");
}

#[test]
fn version_1_with_shared_hierarchies_and_an_empty_unified_tree() {
    insta::assert_snapshot!(check(
        "31 23 0:28 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n\
         32 23 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
         33 23 0:30 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n\
         34 23 0:31 / /sys/fs/cgroup/perf_event rw - cgroup cgroup rw,perf_event\n\
         35 23 0:32 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw",
        "9:name=systemd:/a\n5:cpu,cpuacct:/b\n4:blkio:/\n3:perf_event:/\n0::/c",
    ), @r#"
        v1 name=systemd [] at /sys/fs/cgroup/systemd, own `a`
        v1 cpu,cpuacct [Cpu, Cpuacct] at /sys/fs/cgroup/cpu,cpuacct, own `b`
        v1 blkio [Io] at /sys/fs/cgroup/blkio, own ``
        v1 perf_event [] at /sys/fs/cgroup/perf_event, own ``
        v2 at /sys/fs/cgroup/unified, own `c`
    "#);
}

#[test]
fn a_hierarchy_that_is_not_mounted_is_not_there() {
    insta::assert_snapshot!(check(
        "32 23 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu",
        "5:cpu:/b\n4:memory:/\n0::/c",
    ), @"v1 cpu [Cpu] at /sys/fs/cgroup/cpu, own `b`");
}

#[test]
fn a_mount_that_shows_a_part_of_the_tree_hides_what_is_elsewhere() {
    // A container without a namespace for cgroups sees its own group mounted as the root.
    let mountinfo = "30 23 0:26 /docker/0af1 /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
    insta::assert_snapshot!(check(mountinfo, "0::/docker/0af1/sub"), @"v2 at /sys/fs/cgroup, own `sub`");
    insta::assert_snapshot!(check(mountinfo, "0::/elsewhere"), @"v2 at /sys/fs/cgroup, out of sight");
    // Joined namespaces: the kernel shows groups outside them with `..`.
    let mountinfo = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
    insta::assert_snapshot!(check(mountinfo, "0::/../../user"), @"v2 at /sys/fs/cgroup, out of sight");
}

#[test]
fn of_several_mounts_the_one_that_shows_most_is_taken() {
    insta::assert_snapshot!(check(
        "40 23 0:26 /a/b /mnt/part rw - cgroup2 cgroup2 rw\n\
         41 23 0:26 / /mnt/with\\040blank\\134 rw - cgroup2 cgroup2 rw\n\
         42 23 0:26 /a /mnt/other rw - cgroup2 cgroup2 rw",
        "0::/a/b/c",
    ), @r"v2 at /mnt/with blank\, own `a/b/c`");
}

#[test]
fn nothing_mounted_is_an_empty_layout() {
    assert_eq!(Layout::parse("25 1 0:22 / /proc rw - proc proc rw", "0::/"), Layout::default());
    assert_eq!(Layout::default().version(Controller::Memory), None);
    assert!(!Layout::default().is_unified());
}

#[test]
fn a_controller_is_where_version_1_holds_it_else_in_the_unified_tree() {
    let mut layout = Layout::parse(
        "32 23 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
         35 23 0:32 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw",
        "5:memory:/\n0::/",
    );
    layout.unified.as_mut().expect("mounted").controllers = vec![Controller::Hugetlb].into();
    assert_eq!(layout.version(Controller::Memory), Some(Version::V1));
    assert_eq!(layout.version(Controller::Hugetlb), Some(Version::V2));
    assert_eq!(
        layout.version(Controller::Freezer),
        Some(Version::V2),
        "every group of version 2 can be frozen"
    );
    assert_eq!(layout.version(Controller::Pids), None);
}

#[test]
fn mount_options_of_a_hierarchy() {
    let hierarchy = |name: &str| Hierarchy {
        mount: PathBuf::new(),
        name: name.to_owned(),
        controllers: vec![],
        own_group: None,
        writable: true,
    };
    assert_eq!(hierarchy("cpu,cpuacct").options(), ["cpu", "cpuacct"]);
    assert_eq!(hierarchy("name=systemd").options(), ["none", "name=systemd"]);
    assert_eq!(hierarchy("name=systemd").directory(), "systemd");
}
