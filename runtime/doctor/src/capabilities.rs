//! The capabilities this process has, of those that setting up containers takes (capabilities(7)).

use linux_raw_sys::general as number;

use super::check::{Check, CheckResult, Need};
use super::host::Host;
use jobc_container::capabilities;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: SETUP,
        purpose: "namespaces, mounts, ids and devices set up by root",
        need: Need::Root,
        run: set_up,
    },
    Check {
        name: "capability.CAP_SYS_RESOURCE",
        purpose: "limits (ulimits) above those of this process",
        need: Need::Optional(""),
        run: raise_limits,
    },
];

/// The check on what root's set-up takes.
pub(super) const SETUP: &str = "capability.set-up";

/// `CAP_SYS_ADMIN` as a bit of a set: without it root makes no namespace and no mount, and attaches no BPF program.
pub(super) const SYS_ADMIN: u64 = 1 << number::CAP_SYS_ADMIN;

/// The capabilities that root's setup requires, as bits.
const REQUIRED_CAPABILITIES: u64 = SYS_ADMIN
    | 1 << number::CAP_SETUID
    | 1 << number::CAP_SETGID
    | 1 << number::CAP_SETPCAP
    | 1 << number::CAP_MKNOD
    | 1 << number::CAP_CHOWN
    | 1 << number::CAP_DAC_OVERRIDE
    | 1 << number::CAP_KILL;

/// The effective set, from the line `CapEff` of /proc/self/status.
pub(super) fn effective(machine: &dyn Host) -> Option<u64> {
    let status = machine.read("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

fn set_up(machine: &dyn Host) -> CheckResult {
    let Some(set) = effective(machine) else {
        return CheckResult::missing("no capabilities in /proc/self/status").fix("mount -t proc proc /proc");
    };
    if !machine.user().is_root() {
        return CheckResult::ok("not needed: a user namespace gives them inside a container");
    }
    let lacking = capabilities::names(REQUIRED_CAPABILITIES & !set);
    if lacking.is_empty() {
        return CheckResult::ok(capabilities::names(REQUIRED_CAPABILITIES).join(", "));
    }
    let words = format!("root without {}", lacking.join(", "));
    if set & SYS_ADMIN == 0 {
        return CheckResult::limited(format!("{words}: containers get them in a user namespace"));
    }
    CheckResult::limited(words)
        .fix("run outside the container this is in, or start that one with these capabilities")
}

fn raise_limits(machine: &dyn Host) -> CheckResult {
    match effective(machine) {
        Some(set) if set & 1 << number::CAP_SYS_RESOURCE != 0 => CheckResult::ok("limits can be raised"),
        _ if machine.user().is_root() => CheckResult::limited("limits can be lowered, not raised")
            .fix("give this process CAP_SYS_RESOURCE, or raise the limits it starts with (limit.*)"),
        _ => CheckResult::limited("limits can be lowered, not raised, as for every unprivileged user")
            .fix("raise the limits the user logs in with (limit.*)"),
    }
}
