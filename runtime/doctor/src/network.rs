//! What connects containers to a network. Nothing is run: where /dev/net/tun may not be opened, pasta waits for ever.

use super::check::{Check, Found, Need};
use super::distribution::{Distribution, Package};
use super::machine::Machine;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "network.pasta",
        purpose: "the uplink of a job's own network",
        need: Need::Nobody(""),
        look: |machine| program(machine, "pasta", &Package::same("passt")),
    },
    Check {
        name: "network.slirp4netns",
        purpose: "the same, if pasta is not installed",
        need: Need::Nobody(""),
        look: |machine| program(machine, "slirp4netns", &Package::same("slirp4netns")),
    },
    Check {
        name: "network.tun",
        purpose: "the network interface that pasta and slirp4netns create",
        need: Need::Nobody(""),
        look: tun,
    },
];

fn program(machine: &dyn Machine, name: &str, package: &Package) -> Found {
    match machine.program(name) {
        Some(path) => Found::ok(path),
        None => Found::missing(format!("no `{name}`")).fix(Distribution::of(machine).install(package)),
    }
}

fn tun(machine: &dyn Machine) -> Found {
    match machine.entry("/dev/net/tun") {
        None => Found::missing("no /dev/net/tun").fix("modprobe tun"),
        Some(entry) if entry.may_open() => Found::ok("/dev/net/tun can be opened"),
        Some(_) => Found::missing("/dev/net/tun cannot be opened by this user").fix(
            "as root: echo 'KERNEL==\"tun\", MODE=\"0666\"' >/etc/udev/rules.d/60-tun.rules && chmod 666 /dev/net/tun",
        ),
    }
}
