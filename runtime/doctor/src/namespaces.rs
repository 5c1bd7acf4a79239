//! Namespaces, each of them really made by this user.

use super::check::{Check, Found, Need};
use super::distribution::sysctl;
use super::ids::Inside;
use super::machine::{As, Machine, NOBODY};

/// The check that answers for unprivileged users.
pub(super) const NORMAL_USER: &str = "namespace.as-normal-user";

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "namespace.user",
        purpose: "containers of unprivileged users, and a container's own user ids",
        need: Need::User,
        look: user,
    },
    Check {
        name: "namespace.mount",
        purpose: "a container's own file system tree",
        need: Need::Asker,
        look: |machine| try_one(machine, "mount"),
    },
    Check {
        name: "namespace.pid",
        purpose: "a container's own processes, which are killed when the first one exits",
        need: Need::Asker,
        look: |machine| try_one(machine, "pid"),
    },
    Check {
        name: "namespace.ipc",
        purpose: "a container's own shared memory and message queues",
        need: Need::Asker,
        look: |machine| try_one(machine, "ipc"),
    },
    Check {
        name: "namespace.uts",
        purpose: "a container's own host name",
        need: Need::Asker,
        look: |machine| try_one(machine, "uts"),
    },
    Check {
        name: "namespace.net",
        purpose: "a container's own network",
        need: Need::Nobody("networks of their own"),
        look: |machine| try_one(machine, "net"),
    },
    Check {
        name: "namespace.cgroup",
        purpose: "hiding the host's cgroups from a container",
        need: Need::Asker,
        look: |machine| try_one(machine, "cgroup"),
    },
    Check {
        name: "namespace.time",
        purpose: "a container's own boot-time clocks, which are rarely used",
        need: Need::Nobody(""),
        look: time,
    },
    Check {
        name: NORMAL_USER,
        purpose: "containers without root: all namespaces together, with /proc and a file system in memory",
        need: Need::Nobody(""),
        look: as_normal_user,
    },
];

/// Steps as this user makes them: an unprivileged user needs a user namespace first.
pub(super) fn steps(machine: &dyn Machine, steps: &str) -> String {
    if machine.user().is_root() { steps.to_owned() } else { format!("user,{steps}") }
}

fn try_one(machine: &dyn Machine, name: &str) -> Found {
    match machine.attempt(&steps(machine, name), As::Me) {
        Ok(_) if machine.user().is_root() => Found::ok("made"),
        Ok(_) => Found::ok("created, in a user namespace"),
        Err(why) => refused(machine, &format!("namespace.{name}"), why),
    }
}

fn user(machine: &dyn Machine) -> Found {
    match machine.attempt("user", As::Me) {
        Ok(_) => {
            let limit = machine.read("/proc/sys/user/max_user_namespaces").unwrap_or_default();
            Found::ok(format!("created, at most {}", limit.trim()))
        }
        Err(why) => refused(machine, "namespace.user", why),
    }
}

fn time(machine: &dyn Machine) -> Found {
    if let Err(why) = machine.attempt(&steps(machine, "time"), As::Me) {
        return refused(machine, "namespace.time", why);
    }
    match machine.attempt(&steps(machine, "time-at-exec"), As::Me) {
        Ok(_) => Found::ok("created, and entered at execve"),
        Err(_) => Found::limited("created, but a process enters it only by forking")
            .fix("use a newer kernel, where a process enters it at execve"),
    }
}

fn as_normal_user(machine: &dyn Machine) -> Found {
    let (whom, who) = if machine.user().is_root() {
        (As::Nobody, "tested as user 65534")
    } else {
        (As::Me, "tested as this user")
    };
    if whom == As::Nobody && !has_normal_user(machine) {
        return Found::missing("not tested: the user namespace this is in has no user 65534")
            .follows("ids.range");
    }
    match machine.attempt("user,mount,ipc,uts,cgroup,net,pid,proc,tmpfs", whom) {
        Ok(_) => Found::ok(who),
        Err(why) if !machine.user().is_root() => refused(machine, NORMAL_USER, why),
        Err(why) => {
            let fixes = fixes(machine, step_of(&why), false);
            Found::missing(format!("{why}; {who}")).fixes(fixes)
        }
    }
}

/// Whether root can become the user who runs the tests: a user namespace may lack it.
pub(super) fn has_normal_user(machine: &dyn Machine) -> bool {
    Inside::of(machine).is_none_or(|inside| inside.has(NOBODY))
}

/// A refused try of the check `own`, with what may be behind it.
///
/// Its text begins with the step that failed; if that is another check's step, this check only follows from it.
pub(super) fn refused(machine: &dyn Machine, own: &str, why: String) -> Found {
    let administrator = super::capabilities::effective(machine)
        .is_none_or(|set| set & super::capabilities::ADMINISTRATION != 0);
    if machine.user().is_root() && !administrator {
        return Found::missing(why).follows(super::capabilities::SET_UP);
    }
    let step = step_of(&why);
    let cause = CHECKS.iter().find(|check| check.name.strip_prefix("namespace.") == Some(step));
    match cause {
        Some(cause) if cause.name != own => Found::missing(why).follows(cause.name),
        _ => {
            let fixes = fixes(machine, step, machine.user().is_root());
            Found::missing(why).fixes(fixes)
        }
    }
}

/// The step at the beginning of an error.
pub(super) fn step_of(why: &str) -> &str {
    why.split(':').next().unwrap_or_default()
}

/// What may let a step succeed, for root or for an unprivileged user.
fn fixes(machine: &dyn Machine, step: &str, root: bool) -> Vec<String> {
    match step {
        "user" => user_namespaces(machine),
        "proc" => vec!["parts of /proc are masked, as in a container: run outside the container".to_owned()],
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
fn user_namespaces(machine: &dyn Machine) -> Vec<String> {
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
        fixes.push("this process has a seccomp filter: leave the container it runs in".to_owned());
    }
    fixes
}

fn app_armor(machine: &dyn Machine) -> Vec<String> {
    let setting = machine.read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
    if setting.is_none_or(|value| value.trim() != "1") {
        return vec![];
    }
    let other = "or, instead, an AppArmor profile for jobc with the rule `userns,`";
    vec![sysctl("kernel.apparmor_restrict_unprivileged_userns", "0"), other.to_owned()]
}
