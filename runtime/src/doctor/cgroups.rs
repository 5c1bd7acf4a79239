//! Control groups: which versions there are, which controllers, and what this user may do there.

use super::distribution::Distribution;
use super::{Check, Found, Machine, Need};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "cgroup.version",
        purpose: "limits, and knowing all processes of a container; version 2 lets normal users have them too",
        need: Need::Nobody(""),
        look: version,
    },
    Check {
        name: "cgroup.controllers",
        purpose: "limits of memory, CPU time, processes, CPUs, disk traffic and huge pages",
        need: Need::Nobody(""),
        look: controllers,
    },
    Check {
        name: "cgroup.delegated",
        purpose: "limits set by this user",
        need: Need::Nobody("limits"),
        look: delegated,
    },
    Check {
        name: "cgroup.born-inside",
        purpose: "starting a process inside its group, ending and freezing all of a group at once",
        need: Need::Nobody(""),
        look: born_inside,
    },
    Check {
        name: "cgroup.swap",
        purpose: "limits of swap, so that a limit of memory means what it says",
        need: Need::Nobody(""),
        look: swap,
    },
    Check {
        name: "cgroup.devices",
        purpose: "refusing devices that a container makes nodes for",
        need: Need::Nobody(""),
        look: devices,
    },
];

/// The trees that are mounted, as /proc/self/mountinfo and /proc/self/cgroup tell (cgroups(7)).
#[derive(Debug, Default, PartialEq, Eq)]
struct Trees {
    v1: Vec<Tree>,
    v2: Option<Tree>,
}

/// One tree of groups.
#[derive(Debug, PartialEq, Eq)]
struct Tree {
    /// What it controls; for version 2, what this process's group may use.
    controllers: Vec<String>,
    /// Where it is mounted.
    mount: String,
    /// The folder of this process's own group.
    own: String,
}

impl Trees {
    fn of(machine: &dyn Machine) -> Self {
        let groups = machine.read("/proc/self/cgroup").unwrap_or_default();
        let mounts = machine.read("/proc/self/mountinfo").unwrap_or_default();
        let mut trees = Self::default();
        for line in mounts.lines() {
            let Some((left, right)) = line.split_once(" - ") else { continue };
            let mut left = left.split(' ').skip(3);
            let mut right = right.split(' ');
            let (Some(root), Some(mount), Some(kind)) = (left.next(), left.next(), right.next()) else {
                continue;
            };
            let options: Vec<&str> = right.nth(1).unwrap_or_default().split(',').collect();
            let group = groups.lines().find_map(|line| {
                let mut fields = line.splitn(3, ':').skip(1);
                let names = fields.next()?;
                let is_it = match kind {
                    "cgroup2" => names.is_empty(),
                    _ => !names.is_empty() && names.split(',').all(|name| options.contains(&name)),
                };
                is_it.then(|| fields.next()).flatten()
            });
            let Some(group) = group else { continue };
            let below = group.strip_prefix(root.trim_end_matches('/')).unwrap_or(group);
            let own = format!("{mount}{}", below.trim_end_matches('/'));
            if kind == "cgroup2" {
                let controllers = machine.read(&format!("{own}/cgroup.controllers")).unwrap_or_default();
                let controllers = controllers.split_whitespace().map(str::to_owned).collect();
                trees.v2 = Some(Tree { controllers, mount: mount.to_owned(), own });
            } else if kind == "cgroup" {
                let known = |option: &&str| V1.contains(option);
                let controllers = options.into_iter().filter(known).map(str::to_owned).collect();
                trees.v1.push(Tree { controllers, mount: mount.to_owned(), own });
            }
        }
        trees
    }

    /// The tree of version 1 that has a controller.
    fn v1(&self, controller: &str) -> Option<&Tree> {
        self.v1.iter().find(|tree| tree.controllers.iter().any(|name| name == controller))
    }

    /// Whether version 1 has any controller, rather than names alone.
    fn has_v1(&self) -> bool {
        self.v1.iter().any(|tree| !tree.controllers.is_empty())
    }

    fn v2_has(&self, controller: &str) -> bool {
        self.v2.as_ref().is_some_and(|tree| tree.controllers.iter().any(|name| name == controller))
    }
}

/// The controllers of version 1 that limit or count something.
const V1: [&str; 12] = [
    "blkio", "cpu", "cpuacct", "cpuset", "devices", "freezer", "hugetlb", "memory", "net_cls", "net_prio",
    "pids", "rdma",
];

/// Each limit with its controller in version 1 and in version 2.
const LIMITS: [(&str, &str); 6] = [
    ("memory", "memory"),
    ("cpu", "cpu"),
    ("pids", "pids"),
    ("cpuset", "cpuset"),
    ("blkio", "io"),
    ("hugetlb", "hugetlb"),
];

fn version(machine: &dyn Machine) -> Found {
    let trees = Trees::of(machine);
    let unified = Distribution::of(machine).boot_with("systemd.unified_cgroup_hierarchy=1");
    match (&trees.v2, trees.has_v1()) {
        (Some(tree), false) => Found::ok(format!("version 2 at {}", tree.mount)),
        (Some(tree), true) => {
            Found::limited(format!("version 1, with a tree of version 2 at {}", tree.mount)).fix(unified)
        }
        (None, true) => Found::limited("version 1").fix(unified),
        (None, false) => {
            Found::missing("no control groups are mounted").fix("mount -t cgroup2 none /sys/fs/cgroup")
        }
    }
}

fn controllers(machine: &dyn Machine) -> Found {
    let trees = Trees::of(machine);
    let (there, lacking): (Vec<_>, Vec<_>) =
        LIMITS.into_iter().partition(|(v1, v2)| trees.v2_has(v2) || trees.v1(v1).is_some());
    let name = |(v1, v2): &(&str, &str)| match trees.v2 {
        Some(_) if trees.v2_has(v2) => (*v2).to_owned(),
        _ => (*v1).to_owned(),
    };
    let there = there.iter().map(name).collect::<Vec<_>>().join(", ");
    if lacking.is_empty() {
        return Found::ok(there);
    }
    let none = lacking.iter().map(|(_, v2)| *v2).collect::<Vec<_>>().join(", ");
    let found = if there.is_empty() {
        Found::missing(format!("none of {none}"))
    } else {
        Found::limited(format!("{there}; not {none}"))
    };
    let kernel = machine.read("/proc/cgroups").unwrap_or_default();
    let off = |(v1, _): &&(&str, &str)| {
        let fields = kernel.lines().map(|line| line.split('\t').collect::<Vec<_>>());
        fields.into_iter().any(|fields| fields.first() == Some(v1) && fields.get(3) == Some(&"0"))
    };
    let off: Vec<&str> = lacking.iter().filter(off).map(|(v1, _)| *v1).collect();
    if !off.is_empty() {
        let parameters = off.iter().map(|name| format!("cgroup_enable={name}")).collect::<Vec<_>>();
        return found.fix(Distribution::of(machine).boot_with(&parameters.join(" ")));
    }
    // What the root group has and this process's does not was not handed on.
    if let Some(tree) = &trees.v2 {
        let all = machine.read(&format!("{}/cgroup.controllers", tree.mount)).unwrap_or_default();
        let all: Vec<&str> = all.split_whitespace().collect();
        if lacking.iter().any(|(_, name)| all.contains(name)) {
            return found.fix(hand_on(machine, &tree.own));
        }
    }
    found
}

/// How controllers get from the root group to a user's.
fn hand_on(machine: &dyn Machine, own: &str) -> String {
    if !has_systemd(machine) {
        return format!(
            "as root: write the controllers, as in `+memory +pids`, to cgroup.subtree_control above {own}"
        );
    }
    "as root: mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\\nDelegate=cpu cpuset io memory pids\\n' \
     >/etc/systemd/system/user@.service.d/delegate.conf && systemctl daemon-reload; then log in again"
        .to_owned()
}

/// Whether systemd is the first process (sd_booted(3)).
fn has_systemd(machine: &dyn Machine) -> bool {
    machine.entry("/run/systemd/system").is_some()
}

const WRITABLE: &str = "mount the control groups writable, or leave the container this is in";

fn delegated(machine: &dyn Machine) -> Found {
    let trees = Trees::of(machine);
    let user = machine.user();
    let may_write = |path: &str| machine.entry(path).is_some_and(|entry| entry.may_write());
    if let Some(tree) = trees.v1("memory").or_else(|| trees.v1("pids")) {
        if may_write(&tree.own) {
            return Found::ok(format!("groups may be made below {}", tree.own));
        }
        let fix = if user.is_root() {
            WRITABLE.to_owned()
        } else {
            format!(
                "as root: make a group for {} in each tree of version 1, chown it to them, and start their shell in it",
                user.name.unwrap_or_else(|| user.uid.to_string())
            )
        };
        return Found::missing(format!("{} may not be written", tree.own)).fix(fix);
    }
    let Some(tree) = &trees.v2 else { return Found::missing("no control groups").follows("cgroup.version") };
    let files = ["", "/cgroup.procs", "/cgroup.subtree_control"];
    if files.iter().all(|file| may_write(&format!("{}{file}", tree.own))) {
        if ["memory", "pids"].iter().all(|name| trees.v2_has(name)) {
            return Found::ok(format!("groups may be made below {}", tree.own));
        }
        return Found::limited(format!("below {}, without memory and pids", tree.own))
            .fix(hand_on(machine, &tree.own));
    }
    if user.is_root() {
        return Found::missing(format!("{} may not be written", tree.own)).fix(WRITABLE);
    }
    let manager = format!("{}/user.slice/user-{uid}.slice/user@{uid}.service", tree.mount, uid = user.uid);
    if may_write(&manager) {
        return Found::missing(format!("{} is not this user's; {manager} is", tree.own))
            .fix("systemd-run --user --scope -p Delegate=yes jobc …");
    }
    let found = Found::missing(format!("{} is not this user's", tree.own));
    if has_systemd(machine) {
        return found.fix("log in by ssh, at a terminal or with machinectl shell, so that systemd makes groups for the user");
    }
    let name = user.name.unwrap_or_else(|| user.uid.to_string());
    found.fix(format!(
        "as root: mkdir {}/{name}, chown it with its cgroup.procs and cgroup.subtree_control to {name}, and start their shell in it",
        tree.mount
    ))
}

fn born_inside(machine: &dyn Machine) -> Found {
    let trees = Trees::of(machine);
    let Some(tree) = &trees.v2 else {
        return Found::missing("no tree of version 2").fix("mount -t cgroup2 none /sys/fs/cgroup/unified");
    };
    if !machine.entry(&tree.own).is_some_and(|entry| entry.may_write()) {
        return Found::missing(format!("{} may not be written by this user", tree.own))
            .follows("cgroup.delegated");
    }
    match super::kernel::number(machine) {
        Some(number) if number < (5, 7) => Found::missing("Linux 5.7 brought it").fix("use a newer kernel"),
        Some(number) if number < (5, 14) => {
            Found::limited("started inside, but only Linux 5.14 ends a group at once")
                .fix("use a newer kernel")
        }
        _ => Found::ok(format!("in {}", tree.own)),
    }
}

fn swap(machine: &dyn Machine) -> Found {
    let swaps = machine.read("/proc/swaps").unwrap_or_default().lines().skip(1).count();
    let there = if swaps == 0 { "there is no swap" } else { "there is swap" };
    let trees = Trees::of(machine);
    if let Some(tree) = trees.v1("memory") {
        if machine.entry(&format!("{}/memory.memsw.limit_in_bytes", tree.mount)).is_some() {
            return Found::ok(format!("counted; {there}"));
        }
        let found = format!("not counted; {there}");
        return if swaps == 0 {
            Found::limited(found)
        } else {
            Found::missing(found).fix(Distribution::of(machine).boot_with("swapaccount=1"))
        };
    }
    let Some(tree) = trees.v2 else { return Found::missing("no control groups").follows("cgroup.version") };
    // The root group has no such file, so another group answers, of those that limit memory at all.
    let below = machine.names(&tree.mount).into_iter().map(|name| format!("{}/{name}", tree.mount));
    let there_is = |group: &String, file: &str| machine.entry(&format!("{group}/{file}")).is_some();
    let limiting = [tree.own].into_iter().chain(below).find(|group| there_is(group, "memory.max"));
    match limiting {
        None => Found::limited(format!("not known, for no group here limits memory; {there}")),
        Some(group) if there_is(&group, "memory.swap.max") => Found::ok(format!("counted; {there}")),
        Some(_) if swaps == 0 => Found::limited(format!("not counted; {there}")),
        Some(_) => Found::missing(format!("not counted; {there}"))
            .fix(Distribution::of(machine).boot_with("swapaccount=1")),
    }
}

fn devices(machine: &dyn Machine) -> Found {
    let trees = Trees::of(machine);
    if !machine.user().is_root() {
        return Found::ok("not needed: a normal user's container cannot make nodes");
    }
    if trees.v1("devices").is_some() {
        return Found::ok("by the controller of version 1");
    }
    if trees.v2.is_none() {
        return Found::missing("no control groups").follows("cgroup.version");
    }
    if super::capabilities::effective(machine)
        .is_some_and(|set| set & super::capabilities::ADMINISTRATION != 0)
    {
        return Found::ok("by BPF programs in version 2");
    }
    Found::missing("no right to attach BPF programs").follows(super::capabilities::SET_UP)
}
