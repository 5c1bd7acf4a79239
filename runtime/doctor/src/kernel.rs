//! The kernel: its release, and the syscalls that create containers.

use super::check::{Check, CheckResult, Need};
use super::distribution::sysctl;
use super::host::{Host, RunAs};
use jobc_sys::syscall::available::Syscall;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "kernel.release",
        purpose: "all of the following; Linux 5.12 has every syscall that jobc needs",
        need: Need::Optional(""),
        run: release,
    },
    Check {
        name: "kernel.calls",
        purpose: "mounts by file descriptor, pidfds, and closing ranges of file descriptors",
        need: Need::Everyone,
        run: calls,
    },
    Check {
        name: "kernel.executable-memory",
        purpose: "the last step before a container's program, which must not be a file of the host",
        need: Need::Everyone,
        run: executable_memory,
    },
];

/// The running kernel's release, as two numbers.
pub(super) fn version(machine: &dyn Host) -> Option<(u32, u32)> {
    let release = machine.read("/proc/sys/kernel/osrelease")?;
    let mut numbers = release.trim().split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn release(machine: &dyn Host) -> CheckResult {
    let text = machine.read("/proc/sys/kernel/osrelease").unwrap_or_default();
    let text = format!("Linux {}", text.trim());
    match version(machine) {
        Some(number) if number >= (5, 12) => CheckResult::ok(text),
        Some(_) => {
            CheckResult::limited(format!("{text}, which is older than 5.12")).fix("use a newer kernel")
        }
        None => {
            CheckResult::missing("no release in /proc/sys/kernel/osrelease").fix("mount -t proc proc /proc")
        }
    }
}

fn calls(machine: &dyn Host) -> CheckResult {
    let missing: Vec<String> = Syscall::TABLE
        .iter()
        .filter(|(call, _, _)| !machine.has_syscall(*call))
        .map(|(_, name, since)| format!("{name} (Linux {since})"))
        .collect();
    if missing.is_empty() {
        return CheckResult::ok(Syscall::TABLE.map(|(_, name, _)| name).join(", "));
    }
    let found = CheckResult::missing(format!("missing: {}", missing.join(", ")));
    let filtered = machine.read("/proc/self/status").is_some_and(|status| status.contains("\nSeccomp:\t2"));
    if filtered {
        found.fix("a seccomp filter on this process may block them: allow them in the filter")
    } else {
        found.fix("use a newer kernel")
    }
}

fn executable_memory(machine: &dyn Host) -> CheckResult {
    let Err(why) = machine.probe("trampoline", RunAs::CurrentUser) else {
        return CheckResult::ok("created, sealed and executed");
    };
    let forbidden = machine.read("/proc/sys/vm/memfd_noexec").is_some_and(|value| value.trim() == "2");
    let found = CheckResult::missing(why);
    if forbidden { found.fix(sysctl("vm.memfd_noexec", "1")) } else { found }
}
