//! The kernel: its release, and the syscalls that create containers.

use super::check::{Check, Found, Need};
use super::distribution::sysctl;
use super::machine::{As, Machine};
use jobc_sys::syscall::available::Call;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "kernel.release",
        purpose: "all of the following; Linux 5.12 has every syscall that jobc needs",
        need: Need::Nobody(""),
        look: release,
    },
    Check {
        name: "kernel.calls",
        purpose: "mounts by file descriptor, pidfds, and closing ranges of file descriptors",
        need: Need::Everyone,
        look: calls,
    },
    Check {
        name: "kernel.executable-memory",
        purpose: "the last step before a container's program, which must not be a file of the host",
        need: Need::Everyone,
        look: executable_memory,
    },
];

/// The running kernel's release, as two numbers.
pub(super) fn number(machine: &dyn Machine) -> Option<(u32, u32)> {
    let release = machine.read("/proc/sys/kernel/osrelease")?;
    let mut numbers = release.trim().split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn release(machine: &dyn Machine) -> Found {
    let text = machine.read("/proc/sys/kernel/osrelease").unwrap_or_default();
    let text = format!("Linux {}", text.trim());
    match number(machine) {
        Some(number) if number >= (5, 12) => Found::ok(text),
        Some(_) => Found::limited(format!("{text}, which is older than 5.12")).fix("use a newer kernel"),
        None => Found::missing("no release in /proc/sys/kernel/osrelease").fix("mount -t proc proc /proc"),
    }
}

fn calls(machine: &dyn Machine) -> Found {
    let missing: Vec<String> = Call::TABLE
        .iter()
        .filter(|(call, _, _)| !machine.call(*call))
        .map(|(_, name, since)| format!("{name} (Linux {since})"))
        .collect();
    if missing.is_empty() {
        return Found::ok(Call::TABLE.map(|(_, name, _)| name).join(", "));
    }
    let found = Found::missing(format!("missing: {}", missing.join(", ")));
    let filtered = machine.read("/proc/self/status").is_some_and(|status| status.contains("\nSeccomp:\t2"));
    if filtered {
        found.fix("a seccomp filter on this process may block them: allow them in the filter")
    } else {
        found.fix("use a newer kernel")
    }
}

fn executable_memory(machine: &dyn Machine) -> Found {
    let Err(why) = machine.attempt("trampoline", As::Me) else {
        return Found::ok("created, sealed and executed");
    };
    let forbidden = machine.read("/proc/sys/vm/memfd_noexec").is_some_and(|value| value.trim() == "2");
    let found = Found::missing(why);
    if forbidden { found.fix(sysctl("vm.memfd_noexec", "1")) } else { found }
}
