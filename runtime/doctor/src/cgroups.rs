//! Cgroups: which versions there are, which controllers, and what this user may do there.
//!
//! The available limits are not guessed: a container's groups are planned, as for a start, and the plan is discarded
//! ([`jobc_container::cgroup::Plan`]).

use std::path::Path;

use super::check::{Check, CheckResult, Need};
use super::distribution::Distribution;
use super::host::{Host, Refusal, RunAs};
use jobc_container::cgroup::{Controller, DELEGATE_HELP, Layout, Version};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "cgroup.version",
        purpose: "limits and tracking a container's processes; cgroup v2 also works without root",
        need: Need::Optional(""),
        run: version,
    },
    Check {
        name: "cgroup.controllers",
        purpose: "limits for memory, CPU time, processes, CPUs, disk I/O and huge pages",
        need: Need::Optional(""),
        run: controllers,
    },
    Check {
        name: "cgroup.delegated",
        purpose: "limits set by this user",
        need: Need::Optional("limits"),
        run: delegated,
    },
    Check {
        name: "cgroup.born-inside",
        purpose: "starting a process in its cgroup; killing and freezing a whole cgroup at once",
        need: Need::Optional(""),
        run: start_in_cgroup,
    },
    Check {
        name: "cgroup.swap",
        purpose: "limits for swap, without which a task can exceed its memory limit by swapping",
        need: Need::Optional(""),
        run: swap,
    },
    Check {
        name: "cgroup.devices",
        purpose: "denying access to device nodes that a container creates",
        need: Need::Optional(""),
        run: devices,
    },
];

/// Where cgroups are mounted, according to the host's files.
fn layout(machine: &dyn Host) -> Layout {
    let read = |path: &str| machine.read(path).unwrap_or_default();
    let mut layout = Layout::parse(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"));
    if let Some(unified) = &mut layout.unified {
        let list = read(&text(&unified.mount.join("cgroup.controllers")));
        unified.controllers =
            list.split_whitespace().filter_map(Controller::from_name).collect::<Vec<_>>().into();
    }
    layout
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn version(machine: &dyn Host) -> CheckResult {
    let layout = layout(machine);
    let unified = Distribution::of(machine).kernel_parameter("systemd.unified_cgroup_hierarchy=1");
    match &layout.unified {
        Some(tree) if layout.is_unified() => {
            CheckResult::ok(format!("cgroup v2 at {}", tree.mount.display()))
        }
        Some(tree) => {
            CheckResult::limited(format!("hybrid: cgroup v1, with cgroup v2 at {}", tree.mount.display()))
                .fix(unified)
        }
        None if layout.hierarchies.is_empty() => {
            CheckResult::missing("no cgroups are mounted").fix("mount -t cgroup2 none /sys/fs/cgroup")
        }
        None => CheckResult::limited("cgroup v1").fix(unified),
    }
}

/// The limits in bundles of jobs.
const LIMITING_CONTROLLERS: [Controller; 6] = [
    Controller::Memory,
    Controller::Cpu,
    Controller::Pids,
    Controller::Cpuset,
    Controller::Io,
    Controller::Hugetlb,
];

fn controllers(machine: &dyn Host) -> CheckResult {
    let layout = layout(machine);
    let (there, lacking): (Vec<_>, Vec<_>) =
        LIMITING_CONTROLLERS.into_iter().partition(|controller| layout.version(*controller).is_some());
    let names = |list: &[Controller]| list.iter().map(|one| one.name()).collect::<Vec<_>>().join(", ");
    if lacking.is_empty() {
        return CheckResult::ok(names(&there));
    }
    let found = if there.is_empty() {
        CheckResult::missing(format!("none of {}", names(&lacking)))
    } else {
        CheckResult::limited(format!("{}; not {}", names(&there), names(&lacking)))
    };
    // Some distributions build a controller in and leave it off (proc(5), /proc/cgroups, field `enabled`).
    let kernel = machine.read("/proc/cgroups").unwrap_or_default();
    let off: Vec<String> = kernel
        .lines()
        .map(|line| line.split('\t').collect::<Vec<_>>())
        .filter(|fields| fields.get(3) == Some(&"0"))
        .filter_map(|fields| {
            Controller::from_name(fields[0]).filter(|one| lacking.contains(one)).map(|_| fields[0])
        })
        .map(|name| format!("cgroup_enable={name}"))
        .collect();
    if off.is_empty() { found } else { found.fix(Distribution::of(machine).kernel_parameter(&off.join(" "))) }
}

/// The minimum limits of a container.
const MIN_LIMITS: &str = "limits=memory+pids";
const REQUIRED_CONTROLLERS: [Controller; 2] = [Controller::Memory, Controller::Pids];

fn delegated(machine: &dyn Host) -> CheckResult {
    let found = delegation(machine);
    let by_systemd = found.fix.iter().any(|fix| fix.contains(DELEGATE_HELP));
    found.commands(delegate_command().filter(|_| by_systemd).map(str::to_owned))
}

/// The command by which root has systemd delegate the controllers.
pub(super) fn delegate_command() -> Option<&'static str> {
    let help = DELEGATE_HELP.strip_prefix("as root: ")?;
    Some(help.split_once("; then ")?.0)
}

fn delegation(machine: &dyn Host) -> CheckResult {
    let layout = layout(machine);
    // Also: systemd delegates only some of the existing controllers.
    let mut all = MIN_LIMITS.to_owned();
    for controller in [Controller::Cpu, Controller::Cpuset] {
        if layout.version(controller).is_some() {
            all += &format!("+{}", controller.name());
        }
    }
    match (machine.probe(MIN_LIMITS, RunAs::CurrentUser), machine.probe(&all, RunAs::CurrentUser)) {
        (Ok(groups), Ok(_)) => {
            let group = first_line(&groups).split_once(' ').map_or("", |(_, directory)| directory);
            CheckResult::ok(format!("cgroups can be created, such as {group}"))
        }
        (Ok(_), Err(why)) => {
            let found = CheckResult::limited(reason(&why));
            if machine.user().is_root() { found } else { found.fix(controller_fix(machine)) }
        }
        (Err(_), _) if layout == Layout::default() => {
            CheckResult::missing("no cgroups").caused_by("cgroup.version")
        }
        (Err(why), _) if machine.user().is_root() => {
            let fix = "mount the cgroups writable, or leave the container this is in";
            CheckResult::missing(reason(&why)).fix(fix)
        }
        (Err(why), _) if !layout.is_unified() => {
            CheckResult::missing(reason(&why)).fixes(advice(machine, &why)).fixes(delegation_fixes(machine))
        }
        (Err(why), _) => match machine.scope() {
            Ok(there) => delegated_in_scope(&layout, &there),
            Err(Refusal { why: also, fix }) => {
                // A group that holds processes can be helped without systemd.
                let own = advice(machine, &why).filter(|advice| !advice.contains("systemd-run"));
                let by_systemd = fix.filter(|_| has_systemd(machine));
                let given = if by_systemd.is_some() { vec![] } else { delegation_fixes(machine) };
                let found = CheckResult::missing(format!("{}, and {also}", reason(&why)));
                found.fixes(own).fixes(by_systemd).fixes(given)
            }
        },
    }
}

/// The limits in a scope that this user's systemd creates for a job, as `jobc run` requests it.
fn delegated_in_scope(layout: &Layout, there: &[Controller]) -> CheckResult {
    let wanted = [Controller::Memory, Controller::Pids, Controller::Cpu, Controller::Cpuset];
    let names = |list: Vec<Controller>| list.iter().map(|one| one.name()).collect::<Vec<_>>().join(", ");
    let (has, lacks): (Vec<_>, Vec<_>) =
        wanted.into_iter().filter(|one| layout.version(*one).is_some()).partition(|one| there.contains(one));
    let least = REQUIRED_CONTROLLERS.iter().all(|one| has.contains(one));
    if lacks.is_empty() {
        return CheckResult::ok(format!(
            "this user's systemd creates a scope for each job, with {}",
            names(has)
        ));
    }
    if least {
        let words = format!(
            "this user's systemd creates a scope for each job, with {}; it was not given {}",
            names(has),
            names(lacks)
        );
        return CheckResult::limited(words).fix(DELEGATE_HELP);
    }
    CheckResult::missing(format!("this user's systemd was not given {}", names(lacks))).fix(DELEGATE_HELP)
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Why a limit is not available: the message of the plan, without the step's name.
fn reason(why: &str) -> &str {
    let line = first_line(why);
    line.split_once(": ").map_or(line, |(_, reason)| reason)
}

/// The advice of the plan, except to run without the limit or to use a systemd that does not exist.
fn advice(machine: &dyn Host, why: &str) -> Option<String> {
    let (advice, _) = why.lines().nth(1)?.split_once("; or ")?;
    (has_systemd(machine) || !advice.contains("systemd-run")).then(|| advice.to_owned())
}

/// Advice to delegate cgroups to a user without delegated cgroups.
fn delegation_fixes(machine: &dyn Host) -> Vec<String> {
    let user = machine.user();
    let name = user.name.unwrap_or_else(|| user.uid.to_string());
    let layout = layout(machine);
    match &layout.unified {
        Some(_) if !layout.is_unified() => {}
        Some(tree) if !has_systemd(machine) => {
            return vec![format!(
                "as root: mkdir {}/{name}, chown it with its cgroup.procs and cgroup.subtree_control to {name}, and start their shell in a cgroup below it",
                tree.mount.display()
            )];
        }
        Some(tree) => {
            let own = format!("user.slice/user-{0}.slice/user@{0}.service", user.uid);
            let there = machine.entry(&text(&tree.mount.join(own))).is_some();
            let log_in =
                "log in by ssh, at a terminal or with machinectl shell, so that systemd creates cgroups";
            return if there { vec![] } else { vec![log_in.to_owned()] };
        }
        None => {}
    }
    vec![format!(
        "as root: create a cgroup for {name} in each cgroup v1 hierarchy, chown it, and start their shell in it"
    )]
}

/// How more controllers get to a user's groups.
fn controller_fix(machine: &dyn Host) -> String {
    if !has_systemd(machine) {
        return "as root: write `+cpu +cpuset` to cgroup.subtree_control of the parent cgroups".to_owned();
    }
    DELEGATE_HELP.to_owned()
}

/// Whether systemd is the first process (sd_booted(3)).
fn has_systemd(machine: &dyn Host) -> bool {
    machine.entry("/run/systemd/system").is_some()
}

fn start_in_cgroup(machine: &dyn Host) -> CheckResult {
    if layout(machine).unified.is_none() {
        return CheckResult::missing("no cgroup v2 hierarchy")
            .fix("mount -t cgroup2 none /sys/fs/cgroup/unified");
    }
    // Without limits, this only requests a group.
    let groups = machine.probe("limits=", RunAs::CurrentUser).unwrap_or_default();
    let group = groups.lines().find_map(|line| line.strip_prefix("v2 ")).map(str::to_owned);
    let scope = || {
        let helps = !machine.user().is_root() && layout(machine).is_unified() && machine.scope().is_ok();
        helps.then(|| "a scope of this user's systemd".to_owned())
    };
    let Some(group) = group.or_else(scope) else {
        return CheckResult::missing("this user cannot create a v2 cgroup").caused_by("cgroup.delegated");
    };
    match super::kernel::version(machine) {
        Some(number) if number < (5, 7) => CheckResult::missing("needs Linux 5.7").fix("use a newer kernel"),
        Some(number) if number < (5, 14) => {
            CheckResult::limited("started inside; killing a whole cgroup at once needs Linux 5.14")
                .fix("use a newer kernel")
        }
        _ => CheckResult::ok(format!("in {group}")),
    }
}

fn swap(machine: &dyn Host) -> CheckResult {
    let swaps = machine.read("/proc/swaps").unwrap_or_default().lines().skip(1).count();
    let there = if swaps == 0 { "this host has no swap" } else { "this host has swap" };
    let is_there = |path: &Path| machine.entry(&text(path)).is_some();
    let layout = layout(machine);
    let counted = if let Some(tree) = layout.hierarchy(Controller::Memory) {
        Some(is_there(&tree.mount.join("memory.memsw.limit_in_bytes")))
    } else if let Some(tree) = &layout.unified {
        // The root group has no such file, so another group with the memory controller is read.
        let below = machine.names(&text(&tree.mount)).into_iter().map(|name| tree.mount.join(name));
        let own = tree.own_group.iter().map(|own| tree.mount.join(own));
        let limiting = own.chain(below).find(|group| is_there(&group.join("memory.max")));
        limiting.map(|group| is_there(&group.join("memory.swap.max")))
    } else {
        return CheckResult::missing("no cgroups").caused_by("cgroup.version");
    };
    match counted {
        Some(true) => CheckResult::ok(format!("counted; {there}")),
        None => CheckResult::limited(format!("unknown, because no cgroup here limits memory; {there}")),
        Some(false) if swaps == 0 => CheckResult::limited(format!("not counted; {there}")),
        Some(false) => CheckResult::missing(format!("not counted; {there}"))
            .fix(Distribution::of(machine).kernel_parameter("swapaccount=1")),
    }
}

fn devices(machine: &dyn Host) -> CheckResult {
    if machine.needs_user_namespace() {
        return CheckResult::ok("not needed: a container in a user namespace cannot create device nodes");
    }
    match layout(machine).version(Controller::Devices) {
        Some(Version::V1) => return CheckResult::ok("by the cgroup v1 controller"),
        Some(Version::V2) => {}
        None => return CheckResult::missing("no cgroups").caused_by("cgroup.version"),
    }
    if super::capabilities::effective(machine).is_some_and(|set| set & super::capabilities::SYS_ADMIN != 0) {
        return CheckResult::ok("by BPF programs in cgroup v2");
    }
    CheckResult::missing("no permission to attach BPF programs").caused_by(super::capabilities::SETUP)
}
