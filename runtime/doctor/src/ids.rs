//! User ids: what an unprivileged user may give to containers.

use std::ops::Range;

use super::check::{Check, Found, Need, Status};
use super::distribution::{Distribution, Package};
use super::machine::{As, Machine};
use jobc_sys::accounts;
use jobc_sys::id_map::subordinate;

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
        purpose: "more than one user in an unprivileged user's container (/etc/subuid, /etc/subgid)",
        need: Need::Nobody(""),
        look: ranges,
    },
    Check {
        name: "ids.newuidmap",
        purpose: "mapping that range into a container",
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

/// The ids of the host's initial user namespace: all but the last, which means "no id".
const WHOLE: Range<u64> = 0..u32::MAX as u64;

/// The ids of the user namespace that this process is in (user_namespaces(7)).
pub(super) struct Inside {
    users: Vec<Range<u64>>,
    groups: Vec<Range<u64>>,
}

impl Inside {
    /// Nothing in the host's own namespace, which has all ids there are.
    pub(super) fn of(machine: &dyn Machine) -> Option<Self> {
        let [users, groups] = ["/proc/self/uid_map", "/proc/self/gid_map"].map(|path| {
            let map = machine.read(path)?;
            let extents = map.lines().filter_map(|line| {
                let mut fields = line.split_whitespace().map(str::parse::<u64>);
                let (first, _, count) = (fields.next()?.ok()?, fields.next()?, fields.next()?.ok()?);
                Some(first..first + count)
            });
            Some(extents.collect::<Vec<_>>()).filter(|extents| !extents.contains(&WHOLE))
        });
        (users.is_some() || groups.is_some())
            .then(|| Self { users: users.unwrap_or_default(), groups: groups.unwrap_or_default() })
    }

    /// Whether it has the user and group of an id.
    pub(super) fn has(&self, id: u32) -> bool {
        [&self.users, &self.groups].iter().all(|all| all.iter().any(|extent| extent.contains(&id.into())))
    }

    /// How many users and groups it has.
    fn counts(&self) -> [u64; 2] {
        [&self.users, &self.groups].map(|all| all.iter().map(|extent| extent.end - extent.start).sum())
    }
}

fn ranges(machine: &dyn Machine) -> Found {
    let user = machine.user();
    if user.is_root() {
        return match Inside::of(machine).map(|inside| inside.counts()) {
            None => Found::ok("root needs none"),
            Some([users, groups]) if users > 1 && groups > 1 => {
                Found::ok(format!("the user namespace this is in has {users} users, {groups} groups"))
            }
            Some([users, groups]) => {
                Found::missing(format!("the user namespace this is in has users: {users}, groups: {groups}"))
                    .fix("leave it, or enter one with a range: unshare --map-root-user --map-auto")
            }
        };
    }
    let [uids, gids] = ["/etc/subuid", "/etc/subgid"].map(|path| {
        let text = machine.read(path).unwrap_or_default();
        let ranges = subordinate::ranges(&text, user.uid, user.name.as_deref());
        ranges.iter().map(|range| u64::from(range.length)).reduce(|all, more| all + more)
    });
    let who = user.name.clone().unwrap_or_else(|| user.uid.to_string());
    match (uids, gids) {
        (Some(uids), Some(gids)) => {
            Found::ok(format!("{uids} subordinate user ids, {gids} subordinate group ids"))
        }
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
            let usermod = |name: &str| {
                format!("usermod --add-subuids {first}-{last} --add-subgids {first}-{last} {name}")
            };
            let found = Found::missing(format!("no range for `{who}` in {lacking}"));
            if let Some(name) = &user.name {
                return found.fix(usermod(name));
            }
            // usermod(8) does not take numeric ids, and newuidmap(1) refuses a user and group that have no line in
            // these files.
            let (name, uid, gid) = (format!("user{}", user.uid), user.uid, user.gid);
            found
                .fix(format!("as root: echo '{name}:x:{uid}:{gid}::/:/usr/sbin/nologin' >>/etc/passwd"))
                .fix(format!("then: {}", usermod(&name)))
        }
    }
}

/// The first id from 100,000 on that lies behind all ranges of a file.
fn end(text: &str) -> u64 {
    let ends = accounts::grants(text).map(|grant| u64::from(grant.first) + u64::from(grant.count));
    ends.max().unwrap_or(0).max(100_000)
}

fn programs(machine: &dyn Machine) -> Found {
    if machine.user().is_root() && Inside::of(machine).is_some() {
        return Found::ok("not needed: root of a user namespace maps its ids itself");
    }
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
        return Found::missing("this process has no_new_privs, so they have no effect")
            .fix("start jobc from a session without no_new_privs");
    }
    Found::ok(found.join(", "))
}

fn mapped(machine: &dyn Machine) -> Found {
    if machine.user().is_root() {
        let found = ranges(machine);
        return match (found.status, Inside::of(machine)) {
            (Status::Missing, _) => Found::missing("only one user id can be mapped").follows("ids.range"),
            (_, None) => Found::ok("root can map any id"),
            (_, Some(_)) => Found::ok("root can map the ids of its user namespace"),
        };
    }
    match machine.attempt("user-range", As::Me) {
        Ok(_) => Found::ok("mapped"),
        Err(why) => {
            let found = Found::missing(format!("{why}; only one user id can be mapped"));
            [ranges(machine), programs(machine)]
                .iter()
                .zip(["ids.range", "ids.newuidmap"])
                .find(|(cause, _)| cause.status == Status::Missing)
                .map_or(found.clone(), |(_, name)| found.follows(name))
        }
    }
}
