//! What connects containers to a network. Nothing is run: where /dev/net/tun may not be opened, pasta waits for ever.

use super::distribution::{Distribution, Package};
use super::{Check, Found, Machine, Need};

const IPROUTE: Package =
    Package { debian: "iproute2", fedora: "iproute", suse: "iproute2", arch: "iproute2", alpine: "iproute2" };

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "network.pasta",
        purpose: "connecting a normal user's job with a network of its own",
        need: Need::Nobody(""),
        look: |machine| program(machine, "pasta", &Package::same("passt")),
    },
    Check {
        name: "network.slirp4netns",
        purpose: "the same, where there is no pasta",
        need: Need::Nobody(""),
        look: |machine| program(machine, "slirp4netns", &Package::same("slirp4netns")),
    },
    Check {
        name: "network.tun",
        purpose: "what pasta and slirp4netns make their interface from",
        need: Need::Nobody(""),
        look: tun,
    },
    Check {
        name: "network.ip",
        purpose: "connecting root's job with a network of its own",
        need: Need::Nobody(""),
        look: |machine| program(machine, "ip", &IPROUTE),
    },
    Check {
        name: "network.nft",
        purpose: "the way out of such a network",
        need: Need::Nobody(""),
        look: |machine| program(machine, "nft", &Package::same("nftables")),
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
        Some(_) => Found::missing("/dev/net/tun may not be opened by this user").fix(
            "as root: echo 'KERNEL==\"tun\", MODE=\"0666\"' >/etc/udev/rules.d/60-tun.rules && chmod 666 /dev/net/tun",
        ),
    }
}
