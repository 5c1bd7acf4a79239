//! Namespaces, each of them really made by this user.

use jobc_container::nested::Engine;

use super::check::{Check, CheckResult, Need, Status};
use super::distribution::{is_sysctl, sysctl};
use super::host::{Host, NOBODY_UID, RunAs};
use super::ids::NamespaceIds;

/// The check that answers for unprivileged users.
pub(super) const UNPRIVILEGED_USER: &str = "namespace.as-normal-user";

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "namespace.user",
        purpose: "containers of unprivileged users, and a container's own user ids",
        need: Need::User,
        run: user,
    },
    Check {
        name: "namespace.mount",
        purpose: "a container's own file system tree",
        need: Need::CurrentUser,
        run: |machine| try_namespace(machine, "mount"),
    },
    Check {
        name: "namespace.pid",
        purpose: "a container's own processes, which are killed when the first one exits",
        need: Need::CurrentUser,
        run: |machine| try_namespace(machine, "pid"),
    },
    Check {
        name: "namespace.ipc",
        purpose: "a container's own shared memory and message queues",
        need: Need::CurrentUser,
        run: |machine| try_namespace(machine, "ipc"),
    },
    Check {
        name: "namespace.uts",
        purpose: "a container's own host name",
        need: Need::CurrentUser,
        run: uts,
    },
    Check {
        name: "namespace.net",
        purpose: "a container's own network",
        need: Need::Optional("networks of their own"),
        run: |machine| try_namespace(machine, "net"),
    },
    Check {
        name: "namespace.cgroup",
        purpose: "hiding the host's cgroups from a container",
        need: Need::CurrentUser,
        run: |machine| try_namespace(machine, "cgroup"),
    },
    Check {
        name: "namespace.time",
        purpose: "a container's own boot-time clocks, which are rarely used",
        need: Need::Optional(""),
        run: time,
    },
    Check {
        name: UNPRIVILEGED_USER,
        purpose: "containers without root: all namespaces together, with /proc and a file system in memory",
        need: Need::Optional(""),
        run: as_unprivileged_user,
    },
];

/// Steps as this user makes them, some in a user namespace.
pub(super) fn steps(machine: &dyn Host, steps: &str) -> String {
    if machine.needs_user_namespace() { format!("user,{steps}") } else { steps.to_owned() }
}

fn try_namespace(machine: &dyn Host, name: &str) -> CheckResult {
    match machine.probe(&steps(machine, name), RunAs::CurrentUser) {
        Ok(_) if machine.needs_user_namespace() => CheckResult::ok("created, in a user namespace"),
        Ok(_) => CheckResult::ok("made"),
        Err(why) => denied(machine, &format!("namespace.{name}"), why),
    }
}

fn user(machine: &dyn Host) -> CheckResult {
    match machine.probe("user", RunAs::CurrentUser) {
        Ok(_) => {
            let limit = machine.read("/proc/sys/user/max_user_namespaces").unwrap_or_default();
            CheckResult::ok(format!("created, at most {}", limit.trim()))
        }
        Err(why) => denied(machine, "namespace.user", why),
    }
}

fn uts(machine: &dyn Host) -> CheckResult {
    let found = try_namespace(machine, "uts");
    if found.status != Status::Ok {
        return found;
    }
    match machine.probe(&steps(machine, "uts,host-name"), RunAs::CurrentUser) {
        Ok(_) => found,
        Err(why) => CheckResult::limited(format!("{}; tasks keep this host name: {why}", found.message))
            .fix(engine(machine).unmask(true)),
    }
}

fn time(machine: &dyn Host) -> CheckResult {
    if let Err(why) = machine.probe(&steps(machine, "time"), RunAs::CurrentUser) {
        return denied(machine, "namespace.time", why);
    }
    match machine.probe(&steps(machine, "time-at-exec"), RunAs::CurrentUser) {
        Ok(_) => CheckResult::ok("created, and entered at execve"),
        Err(_) => CheckResult::limited("created, but a process enters it only by forking")
            .fix("use a newer kernel, where a process enters it at execve"),
    }
}

fn as_unprivileged_user(machine: &dyn Host) -> CheckResult {
    let (whom, who) = if machine.user().is_root() {
        (RunAs::Nobody, "tested as user 65534")
    } else {
        (RunAs::CurrentUser, "tested as this user")
    };
    if whom == RunAs::Nobody && !has_unprivileged_user(machine) {
        return CheckResult::missing("not tested: this user namespace has no user 65534")
            .caused_by("ids.range");
    }
    match machine.probe("user,mount,ipc,uts,cgroup,net,pid,proc,tmpfs", whom) {
        Ok(_) => CheckResult::ok(who),
        Err(why)
            if step_of(&why) == "proc"
                && machine.probe("user,mount,ipc,uts,cgroup,net,pid,tmpfs", whom).is_ok() =>
        {
            CheckResult::limited(format!("{SHARED_PROC}; {who}")).fix(engine(machine).unmask(false))
        }
        Err(why) if machine.needs_user_namespace() => denied(machine, UNPRIVILEGED_USER, why),
        Err(why) => {
            let fixes = fixes(machine, step_of(&why), false);
            CheckResult::missing(format!("{why}; {who}")).commands(commands_of(&fixes)).fixes(fixes)
        }
    }
}

/// Whether root can become the user who runs the tests: a user namespace may lack it.
pub(super) fn has_unprivileged_user(machine: &dyn Host) -> bool {
    NamespaceIds::of(machine).is_none_or(|inside| inside.has(NOBODY_UID))
}

/// A refused try of the check `own`, with what may be behind it.
///
/// Its text begins with the step that failed; if that is another check's step, this check only follows from it.
pub(super) fn denied(machine: &dyn Host, own: &str, why: String) -> CheckResult {
    let step = step_of(&why);
    let cause = CHECKS.iter().find(|check| check.name.strip_prefix("namespace.") == Some(step));
    match cause {
        Some(cause) if cause.name != own => CheckResult::missing(why).caused_by(cause.name),
        _ => {
            let fixes = fixes(machine, step, !machine.needs_user_namespace());
            CheckResult::missing(why).commands(commands_of(&fixes)).fixes(fixes)
        }
    }
}

/// The container engine around this process.
pub(super) fn engine(machine: &dyn Host) -> Engine {
    let is_set = |name: &str| machine.variable(name).is_some();
    Engine::of(&is_set, &|path| machine.entry(path).is_some()).unwrap_or(Engine::Other)
}

/// /proc in containers inside a container that masks parts of its own.
pub(super) const SHARED_PROC: &str =
    "parts of /proc are masked, so tasks have the /proc of the container around them";

/// The step at the beginning of an error.
pub(super) fn step_of(why: &str) -> &str {
    why.split(':').next().unwrap_or_default()
}

/// All commands for root among the fixes.
pub(super) const COMMANDS: [fn() -> String; 4] = [
    || sysctl("user.max_user_namespaces", "15000"),
    || sysctl("kernel.unprivileged_userns_clone", "1"),
    || sysctl("kernel.apparmor_restrict_unprivileged_userns", "0"),
    || "modprobe overlay".to_owned(),
];

/// Those of the fixes that are commands for root.
fn commands_of(fixes: &[String]) -> Vec<String> {
    let commands = fixes.iter().map(|fix| fix.strip_prefix("as root: ").unwrap_or(fix));
    commands
        .filter(|command| is_sysctl(command) || command.starts_with("modprobe "))
        .map(str::to_owned)
        .collect()
}

/// Advice that may let a step succeed, for root or for an unprivileged user.
fn fixes(machine: &dyn Host, step: &str, root: bool) -> Vec<String> {
    match step {
        "user" => user_namespaces(machine),
        "overlay" => {
            let kinds = machine.read("/proc/filesystems").unwrap_or_default();
            let known = kinds.lines().any(|line| line.ends_with("\toverlay"));
            if known { vec![] } else { vec!["as root: modprobe overlay".to_owned()] }
        }
        // AppArmor may give a user namespace and take all rights in it.
        _ if !root => app_armor(machine),
        _ => vec![],
    }
}

/// The settings that keep unprivileged users from user namespaces.
fn user_namespaces(machine: &dyn Host) -> Vec<String> {
    let is = |path: &str, value: &str| machine.read(path).is_some_and(|text| text.trim() == value);
    let mut fixes = vec![];
    if is("/proc/sys/user/max_user_namespaces", "0") {
        fixes.push(sysctl("user.max_user_namespaces", "15000"));
    }
    if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        fixes.push(sysctl("kernel.unprivileged_userns_clone", "1"));
    }
    fixes.extend(app_armor(machine));
    let filtered = machine.read("/proc/self/status").is_some_and(|status| status.contains("\nSeccomp:\t2"));
    if fixes.is_empty() && filtered {
        fixes.push(engine(machine).allow().to_owned());
    }
    fixes
}

fn app_armor(machine: &dyn Host) -> Vec<String> {
    let setting = machine.read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
    if setting.is_none_or(|value| value.trim() != "1") {
        return vec![];
    }
    let other = "or, instead, an AppArmor profile for jobc with the rule `userns,`";
    vec![sysctl("kernel.apparmor_restrict_unprivileged_userns", "0"), other.to_owned()]
}
