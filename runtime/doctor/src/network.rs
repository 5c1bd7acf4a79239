//! Programs that connect containers to a network. Nothing is run: without access to /dev/net/tun, pasta waits forever.

use super::check::{Check, CheckResult, Need};
use super::distribution::{Distribution, Package};
use super::host::Host;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "network.pasta",
        purpose: "the uplink of a job's own network",
        need: Need::Optional(""),
        run: |machine| program(machine, "pasta", &Package::same("passt")),
    },
    Check {
        name: "network.slirp4netns",
        purpose: "the same, if pasta is not installed",
        need: Need::Optional(""),
        run: |machine| program(machine, "slirp4netns", &Package::same("slirp4netns")),
    },
    Check {
        name: "network.tun",
        purpose: "the network interface that pasta and slirp4netns create",
        need: Need::Optional(""),
        run: tun,
    },
];

/// All commands for root among the fixes.
pub(super) fn commands(machine: &dyn Host) -> Vec<String> {
    let packages = ["passt", "slirp4netns"].map(Package::same);
    packages.iter().filter_map(|package| Distribution::of(machine).install_command(package)).collect()
}

fn program(machine: &dyn Host, name: &str, package: &Package) -> CheckResult {
    match machine.program(name) {
        Some(path) => CheckResult::ok(path),
        None => CheckResult::missing(format!("no `{name}`"))
            .fix(Distribution::of(machine).install(package))
            .commands(Distribution::of(machine).install_command(package)),
    }
}

fn tun(machine: &dyn Host) -> CheckResult {
    match machine.entry("/dev/net/tun") {
        None => CheckResult::missing("no /dev/net/tun").fix("modprobe tun"),
        Some(entry) if entry.may_open() => CheckResult::ok("/dev/net/tun can be opened"),
        Some(_) => CheckResult::missing("/dev/net/tun cannot be opened by this user").fix(
            "as root: echo 'KERNEL==\"tun\", MODE=\"0666\"' >/etc/udev/rules.d/60-tun.rules && chmod 666 /dev/net/tun",
        ),
    }
}
