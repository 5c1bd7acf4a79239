//! The file systems a container is built from, each of them really mounted.

use super::check::{Check, Found, Need};
use super::machine::{As, Machine};
use super::namespaces::{NORMAL_USER, has_normal_user, refused, step_of, steps};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "file-system.tmpfs",
        purpose: "/dev, /dev/shm and other files in memory",
        need: Need::Asker,
        look: |machine| mounted(machine, "mount,tmpfs"),
    },
    Check {
        name: "file-system.proc",
        purpose: "/proc of a container's own processes",
        need: Need::Asker,
        look: |machine| mounted(machine, "mount,pid,proc"),
    },
    Check {
        name: "file-system.devpts",
        purpose: "terminals of a container's own",
        need: Need::Asker,
        look: |machine| mounted(machine, "mount,devpts"),
    },
    Check {
        name: "file-system.mqueue",
        purpose: "/dev/mqueue",
        need: Need::Nobody("message queues"),
        look: |machine| mounted(machine, "mount,ipc,mqueue"),
    },
    Check {
        name: "file-system.sysfs",
        purpose: "/sys of a container with a network of its own",
        need: Need::Nobody(""),
        look: |machine| mounted(machine, "mount,net,sysfs"),
    },
    Check {
        name: "file-system.overlay",
        purpose: "the root `host`: the host's own files, with changes kept apart",
        need: Need::Nobody("the root `host`"),
        look: overlay,
    },
];

fn mounted(machine: &dyn Machine, what: &str) -> Found {
    match machine.attempt(&steps(machine, what), As::Me) {
        Ok(_) => Found::ok("mounted"),
        Err(why) => refused(machine, "", why),
    }
}

fn overlay(machine: &dyn Machine) -> Found {
    let mine = machine.attempt(&steps(machine, "mount,overlay"), As::Me);
    if let Err(why) = mine {
        return refused(machine, "", why);
    }
    if !machine.user().is_root() {
        return Found::ok("mounted and written");
    }
    if !has_normal_user(machine) {
        return Found::ok("mounted and written; not tested as an unprivileged user: none is available");
    }
    match machine.attempt("user,mount,overlay", As::Nobody) {
        Ok(_) => Found::ok("mounted and written, by unprivileged users too"),
        Err(why) => {
            let step = step_of(&why).to_owned();
            let found = Found::limited(format!("mounted, but not by an unprivileged user: {why}"));
            match step.as_str() {
                "overlay" if super::kernel::number(machine) < Some((5, 11)) => {
                    found.fix("use a newer kernel (Linux 5.11 lets unprivileged users mount it)")
                }
                "overlay" => found,
                _ => found.follows(NORMAL_USER),
            }
        }
    }
}
