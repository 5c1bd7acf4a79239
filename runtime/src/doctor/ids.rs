//! User ids: what a normal user may give to containers.

use super::distribution::{Distribution, Package};
use super::machine::As;
use super::{Check, Found, Machine, Need};
use crate::id_map::subordinate;

const UIDMAP: Package = Package {
    debian: "uidmap",
    fedora: "shadow-utils",
    suse: "shadow",
    arch: "shadow",
    alpine: "shadow-uidmap",
};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "ids.range",
        purpose: "more than one user in a normal user's container (/etc/subuid, /etc/subgid)",
        need: Need::Nobody(""),
        look: ranges,
    },
    Check {
        name: "ids.newuidmap",
        purpose: "giving that range to a container",
        need: Need::Nobody(""),
        look: programs,
    },
    Check {
        name: "ids.mapped",
        purpose: "files and processes of several users in one container",
        need: Need::Nobody("several user ids"),
        look: mapped,
    },
];

fn ranges(machine: &dyn Machine) -> Found {
    let user = machine.user();
    if user.is_root() {
        return Found::ok("root needs none");
    }
    let [uids, gids] = ["/etc/subuid", "/etc/subgid"].map(|path| {
        let text = machine.read(path).unwrap_or_default();
        let ranges = subordinate::ranges(&text, user.uid, user.name.as_deref());
        ranges.iter().map(|range| u64::from(range.length)).reduce(|all, more| all + more)
    });
    let who = user.name.clone().unwrap_or_else(|| user.uid.to_string());
    match (uids, gids) {
        (Some(uids), Some(gids)) => Found::ok(format!("{uids} further users, {gids} further groups")),
        (uids, gids) => {
            let lacking = match (uids, gids) {
                (None, None) => "/etc/subuid and /etc/subgid",
                (None, _) => "/etc/subuid",
                _ => "/etc/subgid",
            };
            let taken =
                ["/etc/subuid", "/etc/subgid"].map(|path| end(&machine.read(path).unwrap_or_default()));
            let first = taken[0].max(taken[1]);
            let last = first + 65_535;
            Found::missing(format!("no range for `{who}` in {lacking}"))
                .fix(format!("usermod --add-subuids {first}-{last} --add-subgids {first}-{last} {who}"))
        }
    }
}

/// The first id from 100,000 on that lies behind all ranges of a file.
fn end(text: &str) -> u64 {
    let ends = text.lines().filter_map(|line| {
        let mut fields = line.trim().split(':').skip(1);
        Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
    });
    ends.max().unwrap_or(0).max(100_000)
}

fn programs(machine: &dyn Machine) -> Found {
    let mut found = vec![];
    for name in ["newuidmap", "newgidmap"] {
        let Some(path) = machine.program(name) else {
            return Found::missing(format!("no `{name}`")).fix(Distribution::of(machine).install(&UIDMAP));
        };
        if !machine.entry(&path).is_some_and(|entry| entry.gives_rights) {
            let fix = format!("chmod u+s {path}");
            return Found::missing(format!("{path} has neither the set-user-id bit nor capabilities"))
                .fix(fix);
        }
        found.push(path);
    }
    let no_more = machine.read("/proc/self/status").is_some_and(|status| status.contains("\nNoNewPrivs:\t1"));
    if no_more {
        return Found::missing("this process may get no new privileges, so they cannot help it")
            .fix("start jobc from a session without no_new_privs");
    }
    Found::ok(found.join(", "))
}

fn mapped(machine: &dyn Machine) -> Found {
    if machine.user().is_root() {
        return Found::ok("root maps what it wants");
    }
    match machine.attempt("user-range", As::Me) {
        Ok(_) => Found::ok("mapped"),
        Err(why) => {
            let found = Found::missing(format!("{why}; one user id works"));
            [ranges(machine), programs(machine)]
                .iter()
                .zip(["ids.range", "ids.newuidmap"])
                .find(|(cause, _)| cause.status == super::Status::Missing)
                .map_or(found.clone(), |(_, name)| found.follows(name))
        }
    }
}
