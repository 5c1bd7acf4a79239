//! The file systems a container is built from, each of them really mounted.

use super::check::{Check, CheckResult, Need};
use super::host::{Host, RunAs};
use super::namespaces::{
    SHARED_PROC, UNPRIVILEGED_USER, denied, engine, has_unprivileged_user, step_of, steps,
};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "file-system.tmpfs",
        purpose: "/dev, /dev/shm and other files in memory",
        need: Need::CurrentUser,
        run: |machine| mount(machine, "mount,tmpfs"),
    },
    Check {
        name: "file-system.proc",
        purpose: "/proc of a container's own processes",
        need: Need::CurrentUser,
        run: proc,
    },
    Check {
        name: "file-system.devpts",
        purpose: "terminals of a container's own",
        need: Need::CurrentUser,
        run: |machine| mount(machine, "mount,devpts"),
    },
    Check {
        name: "file-system.mqueue",
        purpose: "/dev/mqueue",
        need: Need::Optional("message queues"),
        run: |machine| mount(machine, "mount,ipc,mqueue"),
    },
    Check {
        name: "file-system.sysfs",
        purpose: "/sys of a container with a network of its own",
        need: Need::Optional(""),
        run: |machine| mount(machine, "mount,net,sysfs"),
    },
    Check {
        name: "file-system.overlay",
        purpose: "the root `host`: the host's own files, with changes kept apart",
        need: Need::Optional("the root `host`"),
        run: overlay,
    },
];

fn mount(machine: &dyn Host, what: &str) -> CheckResult {
    match machine.probe(&steps(machine, what), RunAs::CurrentUser) {
        Ok(_) => CheckResult::ok("mounted"),
        Err(why) => denied(machine, "", why),
    }
}

/// A procfs that cannot be mounted because parts of this one are masked is replaced by this one.
fn proc(machine: &dyn Host) -> CheckResult {
    match machine.probe(&steps(machine, "mount,pid,proc"), RunAs::CurrentUser) {
        Ok(_) => CheckResult::ok("mounted"),
        Err(why) if step_of(&why) == "proc" && machine.needs_user_namespace() => {
            CheckResult::limited(SHARED_PROC).fix(engine(machine).unmask(false))
        }
        Err(why) => denied(machine, "", why),
    }
}

fn overlay(machine: &dyn Host) -> CheckResult {
    let mine = machine.probe(&steps(machine, "mount,overlay"), RunAs::CurrentUser);
    if let Err(why) = mine {
        return denied(machine, "", why);
    }
    if machine.needs_user_namespace() {
        return CheckResult::ok("mounted and written");
    }
    if !has_unprivileged_user(machine) {
        return CheckResult::ok("mounted and written; not tested as an unprivileged user: none is available");
    }
    match machine.probe("user,mount,overlay", RunAs::Nobody) {
        Ok(_) => CheckResult::ok("mounted and written, by unprivileged users too"),
        Err(why) => {
            let step = step_of(&why).to_owned();
            let found = CheckResult::limited(format!("mounted, but not by an unprivileged user: {why}"));
            match step.as_str() {
                "overlay" if super::kernel::version(machine) < Some((5, 11)) => {
                    found.fix("use a newer kernel (Linux 5.11 lets unprivileged users mount it)")
                }
                "overlay" => found,
                _ => found.caused_by(UNPRIVILEGED_USER),
            }
        }
    }
}
