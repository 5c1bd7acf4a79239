//! Hosts described in lines of text, and the doctor's report on them.

mod fake_host;
mod script;

use super::distribution::Distribution;
use super::*;
use fake_host::FakeHost;

/// A usual host of 2026 with systemd, on which everything works; lines that come first count more.
const DEFAULT_HOST: &str = r"
    variable HOME = /home/ada
    /etc/os-release = ID=debian
    /proc/sys/kernel/osrelease = 6.12.43-amd64
    /proc/sys/user/max_user_namespaces = 63480
    /proc/self/status = Name:\tjobc\nCapEff:\t000001ffffffffff\nNoNewPrivs:\t0\nSeccomp:\t0\n
    /proc/self/limits = Max processes             253922               253922               processes\nMax open files            1024                 1048576              files\nMax locked memory         unlimited            unlimited            bytes
    /proc/self/cgroup = 0::/user.slice/session.scope
    /proc/self/mountinfo = 35 24 0:30 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate
    /proc/swaps = Filename\n/dev/sda2
    /proc/sys/kernel/seccomp/actions_avail = kill_process kill_thread trap errno user_notif trace log allow
    /sys/fs/cgroup/cgroup.controllers = cpuset cpu io memory hugetlb pids rdma misc
    there /sys/fs/cgroup/user.slice/session.scope/memory.max
    there /sys/fs/cgroup/user.slice/session.scope/memory.swap.max
    program newuidmap = /usr/bin/newuidmap
    program newgidmap = /usr/bin/newgidmap
    set-uid /usr/bin/newuidmap
    set-uid /usr/bin/newgidmap
    program pasta = /usr/bin/pasta
    program slirp4netns = /usr/bin/slirp4netns
    program ip = /usr/sbin/ip
    program nft = /usr/sbin/nft
    write /dev/net/tun
    program runc = /usr/sbin/runc: runc version 1.3.6
    program crun = /usr/bin/crun: crun version 1.28
    program youki = /usr/bin/youki: youki version: 0.7.0
    program grubby = /usr/sbin/grubby
    program nvidia-container-runtime = /usr/bin/nvidia-container-runtime: NVIDIA Container Runtime version 1.20.0
";

/// Root of such a host, who can create cgroups.
const ROOT: &str = "user 0 root\n";

/// A user without delegated cgroups.
const NOT_DELEGATED: &str = r"
    refuse limits=memory+pids = this user cannot create cgroups in `/own` or above it\nstart it in a group of your own, as by `systemd-run`; or remove it from config.json
    refuse limits= = this user cannot create cgroups in `/own` or above it
";

fn report(differs: &str) -> Report {
    examine(FakeHost::new(&format!("{differs}\n{DEFAULT_HOST}")))
}

/// The differences from the usual host, and the doctor's report: all checks that are not ok, and the summary.
fn check(name: &str, differs: &str) {
    let report = report(differs);
    let mut out = String::new();
    for line in differs.lines().map(str::trim).filter(|line| !line.is_empty()) {
        out += &format!("{line}\n");
    }
    out += "\n";
    for check in
        report.checks.iter().filter(|check| check.status != Status::Ok && !check.name.starts_with("gpu."))
    {
        out += &shown(check);
    }
    out += &format!("{}\n", report.summary());
    insta::assert_snapshot!(name, out);
}

fn shown(check: &Finding) -> String {
    let status = format!("{:?}", check.status).to_lowercase();
    let needed = if check.needed { " (needed)" } else { "" };
    let fixes: String = check.fix.iter().map(|fix| format!("    fix: {fix}\n")).collect();
    format!("{status}{needed} {}: {}\n{fixes}", check.name, check.found)
}

/// The result of one check on a host.
fn one(name: &str, differs: &str) -> Finding {
    report(differs).checks.into_iter().find(|check| check.name == name).expect("a check of that name")
}

#[test]
fn a_usual_host_as_root() {
    check("usual_root", ROOT);
}

#[test]
fn a_usual_host_as_a_user_of_a_terminal() {
    check(
        "usual_user",
        &format!(
            "user 1000 ada
            /etc/subuid = ada:100000:65536
            /etc/subgid = 1000:100000:65536
            there /run/systemd/system
            there /sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service
            {NOT_DELEGATED}"
        ),
    );
}

#[test]
fn a_user_with_groups_of_their_own() {
    check(
        "delegated_user",
        r"
        user 1000 ada
        /etc/subuid = ada:100000:65536
        /etc/subgid = ada:100000:65536
        variable XDG_RUNTIME_DIR = /run/user/1000
        there /run/user/1000
        ",
    );
}

#[test]
fn a_user_whom_few_controllers_were_handed_on_to() {
    let given = "user 1000 ada
        there /run/systemd/system
        refuse limits=memory+pids+cpu+cpuset = the cgroup `/own` does not have the controllers `cpuset`";
    let found = one("cgroup.delegated", given);
    assert_eq!(
        (found.status, &*found.found),
        (Status::Limited, "the cgroup `/own` does not have the controllers `cpuset`")
    );
    assert!(found.fix[0].contains("Delegate=cpu cpuset io memory pids\\n"), "{}", found.fix[0]);
    let without = given.replace("there /run/systemd/system", "");
    assert!(one("cgroup.delegated", &without).fix[0].contains("cgroup.subtree_control"));
    assert!(one("cgroup.delegated", &given.replace("1000 ada", "0 root")).fix.is_empty());
}

#[test]
fn a_user_without_delegated_cgroups() {
    let of =
        |machine: &str| one("cgroup.delegated", &format!("user 1000 ada\n{NOT_DELEGATED}\n{machine}")).fix;
    let root = "as root: mkdir /sys/fs/cgroup/ada, chown it with its cgroup.procs and cgroup.subtree_control to ada, and start their shell in a cgroup below it";
    assert_eq!(of(""), [root]);
    // A user whose systemd cannot be reached gets the reason, and no advice to call systemd by hand.
    assert_eq!(of("there /run/systemd/system"), ["log in by ssh"]);
    let v1 = "/proc/self/cgroup = 4:memory:/\n/proc/self/mountinfo = 31 23 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory";
    let each =
        "as root: create a cgroup for ada in each cgroup v1 hierarchy, chown it, and start their shell in it";
    assert_eq!(of(v1), [each]);
}

#[test]
fn a_user_whose_systemd_makes_scopes() {
    let of = |controllers: &str| {
        let found = one("cgroup.delegated", &format!("user 1000 ada\n{NOT_DELEGATED}\nscope {controllers}"));
        let fix =
            found.fix.iter().map(|fix| format!("; {}", fix.split_once(": ").map_or("", |(who, _)| who)));
        format!("{:?}: {}{}", found.status, found.found, fix.collect::<String>())
    };
    assert_eq!(
        of("cpuset cpu io memory pids"),
        "Ok: this user's systemd creates a scope for each job, with memory, pids, cpu, cpuset"
    );
    assert_eq!(
        of("memory pids"),
        "Limited: this user's systemd creates a scope for each job, with memory, pids; it was not given cpu, cpuset; as root"
    );
    assert_eq!(of("cpu cpuset"), "Missing: this user's systemd was not given memory, pids; as root");
    let born =
        |machine: &str| one("cgroup.born-inside", &format!("user 1000 ada\n{NOT_DELEGATED}\n{machine}"));
    assert_eq!(born("scope memory").found, "in a scope of this user's systemd");
    assert_eq!(born("").status, Status::Missing);
}

#[test]
fn a_user_without_namespaces() {
    check(
        "no_user_namespaces",
        r"
        user 1000 ada
        /etc/os-release = ID=ubuntu\nID_LIKE=debian
        /proc/sys/user/max_user_namespaces = 0
        /proc/sys/kernel/unprivileged_userns_clone = 0
        /proc/sys/kernel/apparmor_restrict_unprivileged_userns = 1
        refuse user = operation not permitted (EPERM)
        refuse user-range = operation not permitted (EPERM)
        refuse limits=memory+pids = this user cannot create cgroups in `/own` or above it
        refuse limits= = this user may not make cgroups
        ",
    );
}

#[test]
fn app_armor_may_give_a_user_namespace_and_no_rights_in_it() {
    let mount = one(
        "namespace.mount",
        "user 1000 ada
        /proc/sys/kernel/apparmor_restrict_unprivileged_userns = 1
        refuse mount = permission denied (EACCES)",
    );
    assert!(mount.fix[0].contains("apparmor_restrict_unprivileged_userns = 0"), "{mount:?}");
}

#[test]
fn root_inside_a_docker_container() {
    check(
        "inside_a_container",
        r"
        user 0 root
        /proc/self/status = Name:\tjobc\nCapEff:\t00000000a80425fb\nNoNewPrivs:\t0\nSeccomp:\t2\nSeccomp_filters:\t1\n
        /proc/self/cgroup = 0::/
        /proc/self/mountinfo = 35 24 0:30 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup2 rw
        /sys/fs/cgroup/cgroup.controllers = cpuset cpu io memory hugetlb pids
        refuse limits=memory+pids = this user cannot create cgroups in `/sys/fs/cgroup` or above it
        refuse limits= = this user may not make cgroups
        refuse mount = operation not permitted (EPERM)
        refuse pid = operation not permitted (EPERM)
        refuse ipc = operation not permitted (EPERM)
        refuse uts = operation not permitted (EPERM)
        refuse net = operation not permitted (EPERM)
        refuse cgroup = operation not permitted (EPERM)
        refuse time = operation not permitted (EPERM)
        refuse user = operation not permitted (EPERM)
        refuse nobody:user = operation not permitted (EPERM)
        refuse job:doctor-run = this Docker container does not allow user namespaces
        there /.dockerenv
        ",
    );
}

/// podman's filter allows user namespaces, and its masks over /proc remain.
#[test]
fn root_inside_a_podman_container() {
    check(
        "inside_a_podman_container",
        r"
        user 0 root
        /proc/self/status = Name:\tjobc\nCapEff:\t00000000a80425fb\nNoNewPrivs:\t0\nSeccomp:\t2\nSeccomp_filters:\t1\n
        /proc/self/cgroup = 0::/
        /proc/self/mountinfo = 35 24 0:30 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup2 rw
        /sys/fs/cgroup/cgroup.controllers = cpuset cpu io memory hugetlb pids
        refuse limits=memory+pids = this user cannot create cgroups in `/sys/fs/cgroup` or above it
        refuse limits= = this user may not make cgroups
        refuse proc = operation not permitted (EPERM)
        refuse nobody:proc = operation not permitted (EPERM)
        refuse host-name = operation not permitted (EPERM)
        refuse job:doctor-limits = limits are not enforced
        there /run/.containerenv
        ",
    );
}

#[test]
fn root_of_a_user_namespace_of_one_user() {
    check(
        "user_namespace_of_one",
        r"
        user 0 root
        /proc/self/uid_map = 0       1000          1
        /proc/self/gid_map = 0       1000          1
        program newuidmap = /outside/newuidmap
        read /outside/newuidmap
        refuse nobody:user = invalid argument (EINVAL)
        ",
    );
    let range = "user 0 root\n/proc/self/uid_map = 0 1000 1\\n1 100000 65536\n/proc/self/gid_map = 0 1000 1\\n1 100000 65536";
    let found = one("ids.range", range).found;
    assert_eq!(found, "IDs in this user namespace: 65537 for users, 65537 for groups");
    assert_eq!(one("ids.mapped", range).found, "root can map the ids of its user namespace");
    assert_eq!(one("namespace.as-normal-user", range).found, "tested as user 65534");
    let places = "variable XDG_RUNTIME_DIR = /run/user/1000\nthere /run/user/1000";
    let found = |machine: &str| one("place.state", &format!("{machine}\n{places}")).found;
    assert!(found(range).starts_with("/run/user/1000/jobc,") && found(ROOT).starts_with("/run/jobc,"));
    let whole = "user 0 root\n/proc/self/uid_map = 0 0 4294967295\n/proc/self/gid_map = 0 0 4294967295";
    assert_eq!(one("ids.range", whole).found, "root needs none");
}

/// usermod(8) takes only names, and newuidmap(1) refuses a user without a name.
#[test]
fn a_user_without_a_name_needs_one_first() {
    let fix = one("ids.range", "user 1500 -").fix;
    let line = "as root: echo 'user1500:x:1500:1500::/:/usr/sbin/nologin' >>/etc/passwd";
    let usermod = "then: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 user1500";
    assert_eq!(fix, [line, usermod]);
    assert!(one("ids.range", "user 1500 ada").fix[0].starts_with("usermod "));
}

#[test]
fn a_fix_for_the_kernels_command_line_names_what_is_there() {
    let fix = |machine: &str| {
        let usual = DEFAULT_HOST.replace("program grubby", "program other");
        Distribution::of(&FakeHost::new(&format!("{machine}\n{usual}"))).kernel_parameter("x=1")
    };
    assert_eq!(fix(""), "add `x=1` to the kernel's command line, then reboot");
    let edit = "sed -i 's/^GRUB_CMDLINE_LINUX=\"/&x=1 /' /etc/default/grub";
    for (id, update) in [
        ("debian", "update-grub"),
        ("ubuntu", "update-grub"),
        ("fedora", "grub2-mkconfig -o /boot/grub2/grub.cfg"),
        ("arch", "grub-mkconfig -o /boot/grub/grub.cfg"),
    ] {
        let host = format!("/etc/os-release = ID={id}\n/etc/default/grub = GRUB_TIMEOUT=5");
        assert_eq!(fix(&host), format!("{edit} && {update}, then reboot"));
    }
    let alpine = fix("/etc/os-release = ID=alpine\n/etc/default/grub = GRUB_TIMEOUT=5");
    assert!(alpine.starts_with("add `x=1` to GRUB_CMDLINE_LINUX in /etc/default/grub, run "), "{alpine}");
    assert_eq!(
        fix("program grubby = /usr/sbin/grubby"),
        "grubby --update-kernel=ALL --args=x=1, then reboot"
    );
}

#[test]
fn locked_memory_is_unlimited_or_too_little_for_rdma() {
    let memory = |bytes: &str, more: &str| {
        let limits = format!("/proc/self/limits = Max locked memory         {bytes} {bytes} bytes");
        one("limit.locked-memory", &format!("user 1000 ada\n{limits}\n{more}"))
    };
    let fix = "echo '* - memlock unlimited' >/etc/security/limits.d/60-jobc.conf, then log in again; \
               a service: LimitMEMLOCK=infinity";
    let small = memory("8388608", "");
    assert_eq!((small.found.as_str(), small.fix), ("at most 8388608 bytes", vec![fix.to_owned()]));
    assert!(memory("67108864", "").fix.is_empty(), "enough for pinned memory");
    let rdma = memory("67108864", "there /sys/class/infiniband/mlx5_0");
    assert_eq!(rdma.found, "at most 67108864 bytes; RDMA buffers of `mlx5_0` are locked memory");
    assert_eq!(rdma.fix, [fix]);
    assert!(memory("unlimited", "there /sys/class/infiniband/mlx5_0").fix.is_empty());
}

#[test]
fn every_other_runtime_has_a_way_to_come() {
    let bare = DEFAULT_HOST.lines().filter(|line| !line.trim().starts_with("program ")).collect::<Vec<_>>();
    let report = examine(FakeHost::new(&format!("{ROOT}{}", bare.join("\n"))));
    let runtimes = report.checks.iter().filter(|check| check.name.starts_with("runtime."));
    let fixes: Vec<&str> = runtimes.map(|check| check.fix.first().map_or("", String::as_str)).collect();
    assert_eq!(fixes.len(), 4);
    assert!(fixes[0] == "apt install runc" && fixes[2].contains("releases"), "{fixes:?}");
    assert!(fixes.iter().all(|fix| !fix.is_empty()), "{fixes:?}");
}

/// Linux 5.11 lets an unprivileged user mount an overlay; on a newer one something else refused it.
#[test]
fn only_an_old_kernel_is_too_old() {
    let fix = |machine: &str| one("file-system.overlay", &format!("{ROOT}{machine}")).fix;
    let no = "refuse nobody:overlay = operation not permitted (EPERM)";
    assert!(fix(no).is_empty());
    let old = fix(&format!("{no}\n/proc/sys/kernel/osrelease = 5.10.0"));
    assert!(old[0].starts_with("use a newer kernel"), "{old:?}");
    assert_eq!(
        fix("refuse nobody:user = no space left on device (ENOSPC)"),
        ["see namespace.as-normal-user"]
    );
}

#[test]
fn an_old_kernel_with_cgroup_v1() {
    check(
        "old_kernel",
        r"
        user 0 root
        /etc/os-release = ID=centos\nID_LIKE=rhel fedora
        /proc/sys/kernel/osrelease = 4.18.0-553.el8.x86_64
        /proc/self/cgroup = 12:hugetlb:/\n11:memory:/system.slice\n4:cpu,cpuacct:/\n3:devices:/
        /proc/self/mountinfo = 31 23 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n32 23 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n33 23 0:30 / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices\n34 23 0:31 / /sys/fs/cgroup/hugetlb rw - cgroup cgroup rw,hugetlb
        /proc/cgroups = #subsys_name\thierarchy\tnum_cgroups\tenabled\npids\t0\t1\t0
        lack clone3
        lack mount_setattr
        refuse time = invalid argument (EINVAL)
        refuse nobody:overlay = operation not permitted (EPERM)
        ",
    );
}

#[test]
fn what_is_needed_decides_whether_containers_run() {
    assert!(report(ROOT).can_run());
    assert!(!report(&format!("{ROOT}refuse pid = no")).can_run());
    assert!(report(&format!("{ROOT}refuse time = no")).can_run());
    assert!(
        report(&format!("{ROOT}refuse nobody:user = no")).can_run(),
        "root does not need what others lack"
    );
    assert!(!report("user 1000 ada\nrefuse user = no").can_run());
    assert!(report("user 1000 ada").can_run());
}

#[test]
fn a_check_that_hangs_is_left_behind() {
    let start = std::time::Instant::now();
    let machine: Arc<dyn Host> = Arc::new(FakeHost::new(&format!("hang /proc/swaps\n{ROOT}{DEFAULT_HOST}")));
    let report = examine_within(&machine, Duration::from_millis(500));
    assert!(start.elapsed() < Duration::from_secs(20), "took {:?}", start.elapsed());
    let swap = report.checks.iter().find(|check| check.name == "cgroup.swap").unwrap();
    assert_eq!((swap.status, &*swap.found), (Status::Missing, "timed out after 0.5 s"));
    assert_eq!(report.checks.iter().filter(|check| check.found.starts_with("timed out")).count(), 1);
    assert!(report.can_run());
}

#[test]
fn every_check_has_a_name_of_its_own_and_says_what_it_is_for() {
    let mut names = std::collections::BTreeSet::new();
    for check in SUBJECTS.iter().flat_map(|(_, checks)| *checks) {
        assert!(names.insert(check.name), "{} is there twice", check.name);
        assert!(check.name.contains('.'), "{}", check.name);
        assert!(!check.purpose.is_empty() && !check.purpose.ends_with('.'), "{}", check.name);
    }
    assert!(names.contains(namespaces::UNPRIVILEGED_USER));
}

#[test]
fn what_is_needed_and_missing_has_a_fix() {
    let nothing = "user 1000 ada
        /proc/self/status = Seccomp:\\t2\\n
        lack clone3
        refuse user = no
        place /tmp/jobc-1000 = / false 0";
    for check in report(nothing).checks.iter().filter(|check| check.needed && check.status == Status::Missing)
    {
        let others = ["namespace.", "file-system."].iter().any(|subject| check.name.starts_with(subject));
        assert!(!check.fix.is_empty() || others, "{} has no fix", check.name);
    }
}

/// Hosts with GPUs, one line each: the differences, and the results of the GPU checks.
#[test]
fn gpus() {
    let cases = [
        (
            "an NVIDIA card without a driver",
            r"
            /sys/bus/pci/devices/0000:01:00.0/class = 0x030200
            /sys/bus/pci/devices/0000:01:00.0/vendor = 0x10de",
        ),
        (
            "two NVIDIA cards with everything",
            r#"
            /sys/bus/pci/devices/0000:01:00.0/class = 0x030200
            /sys/bus/pci/devices/0000:01:00.0/vendor = 0x10de
            there /sys/bus/pci/devices/0000:01:00.0/driver
            /sys/bus/pci/devices/0000:02:00.0/class = 0x030200
            /sys/bus/pci/devices/0000:02:00.0/vendor = 0x10de
            there /sys/bus/pci/devices/0000:02:00.0/driver
            write /dev/nvidia0
            write /dev/nvidia1
            write /dev/nvidiactl
            write /dev/nvidia-uvm
            /proc/driver/nvidia/gpus/0000:01:00.0/information = Model: NVIDIA L4\nDevice Minor: 0
            /proc/driver/nvidia/gpus/0000:02:00.0/information = Model: NVIDIA L4\nDevice Minor: 1
            /proc/driver/nvidia/version = NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\nGCC version: 12.2.0
            program nvidia-ctk = /usr/bin/nvidia-ctk: NVIDIA Container Toolkit CLI version 1.20.0
            /var/run/cdi/nvidia.yaml = cdiVersion: 0.7.0\nkind: nvidia.com/gpu\ndevices: []
            /etc/cdi/amd.json = {"cdiVersion":"0.7.0","kind":"amd.com/gpu"}"#,
        ),
        (
            "a CDI file whose hook is gone",
            r#"
            /etc/cdi/nvidia.json = {"cdiVersion":"0.7.0","kind":"nvidia.com/gpu","devices":[],"containerEdits":{"hooks":[{"hookName":"createContainer","path":"/gone/nvidia-cdi-hook"}]}}"#,
        ),
        (
            "one NVIDIA card without unified memory",
            r"
            write /dev/nvidiactl
            write /dev/nvidia0
            /proc/driver/nvidia/gpus/0000:01:00.0/information = Model: Tesla T4\nDevice Minor: 0
            /proc/driver/nvidia/version = NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024",
        ),
        (
            "an AMD card this user may not open",
            r"
            /sys/bus/pci/devices/0000:03:00.0/class = 0x120000
            /sys/bus/pci/devices/0000:03:00.0/vendor = 0x1002
            there /sys/bus/pci/devices/0000:03:00.0/driver
            there /dev/kfd
            /sys/class/kfd/kfd/topology/nodes/0/properties = cpu_cores_count 16\nsimd_count 0
            /sys/class/kfd/kfd/topology/nodes/1/properties = cpu_cores_count 0\nsimd_count 432\nlocation_id 768
            /sys/bus/pci/devices/0000:03:00.0/product_name = AMD Instinct MI210
            there /dev/dri/renderD128",
        ),
        (
            "a network card and no GPU",
            r"
            /sys/bus/pci/devices/0000:04:00.0/class = 0x020000
            /sys/bus/pci/devices/0000:04:00.0/vendor = 0x8086",
        ),
    ];
    let mut out = String::new();
    for (what, machine) in cases {
        out += &format!("# {what}\n");
        for line in machine.lines().map(str::trim).filter(|line| !line.is_empty()) {
            out += &format!("{line}\n");
        }
        out += "\n";
        let report = report(&format!("user 1000 ada\n{machine}"));
        out.extend(report.checks.iter().filter(|check| check.name.starts_with("gpu.")).map(shown));
        out += "\n";
    }
    insta::assert_snapshot!("gpus", out);
}

#[test]
fn each_distribution_has_its_own_command() {
    let cases = [
        ("ID=debian", "apt install uidmap"),
        ("ID=linuxmint\\nID_LIKE=\"ubuntu debian\"", "apt install uidmap"),
        ("ID=\"rocky\"\\nID_LIKE=\"rhel centos fedora\"", "dnf install shadow-utils"),
        ("ID=opensuse-leap\\nID_LIKE=\"suse opensuse\"", "zypper install shadow"),
        ("ID=arch", "pacman -S shadow"),
        ("ID=alpine", "apk add shadow-uidmap"),
        ("ID=nixos", "install the package `uidmap`"),
    ];
    for (release, fix) in cases {
        let machine = FakeHost::new(&format!("user 1000 ada\n/etc/os-release = {release}"));
        let found =
            ids::CHECKS.iter().find(|check| check.name == "ids.newuidmap").map(|check| (check.run)(&machine));
        assert_eq!(found.unwrap().fix, [fix], "{release}");
    }
}

#[test]
fn a_new_range_lies_behind_all_others() {
    let fix = one(
        "ids.range",
        "user 1000 ada\n/etc/subuid = eve:100000:65536\\nmax:500000:10\n/etc/subgid = eve:100000:65536",
    )
    .fix;
    assert_eq!(fix, ["usermod --add-subuids 500010-565545 --add-subgids 500010-565545 ada"]);
}

#[test]
fn places_tell_what_fits() {
    let of = |free: u64| {
        one(
            "place.images",
            &format!("user 1000 ada\nplace /home/ada/.local/share/jobc/images = /home true {free}"),
        )
    };
    assert_eq!(of(68_719_476_736).found, "/home/ada/.local/share/jobc/images, 64.0 GiB free");
    let full = of(5 << 30);
    assert_eq!((full.status, &*full.fix), (Status::Limited, &["free 5.0 GiB there".to_owned()][..]));
    assert_eq!(of(0).found, "/home/ada/.local/share/jobc/images, 0 B free");
    assert_eq!(of(u64::MAX).found, "/home/ada/.local/share/jobc/images, 15.9 EiB free");
    let shut = one("place.state", "user 1000 ada\nplace /tmp/jobc-1000 = / false 1");
    assert_eq!((shut.status, shut.needed), (Status::Missing, true));
}

#[test]
fn the_report_as_json_keeps_its_names() {
    let value = serde_json::to_value(report(ROOT)).unwrap();
    let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&value), ["version", "user", "containers", "checks"]);
    assert_eq!(keys(&value["containers"]), ["root", "user"]);
    assert_eq!(keys(&value["containers"]["root"]), ["status", "without"]);
    assert_eq!(keys(&value["checks"][0]), ["subject", "name", "status", "found", "purpose", "needed", "fix"]);
    assert_eq!(value["checks"][0]["status"], "ok");
    let value = serde_json::to_value(report("user 1000 ada")).unwrap();
    assert_eq!(keys(&value["containers"]), ["user"]);
}
