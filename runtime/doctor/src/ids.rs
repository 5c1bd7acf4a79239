//! User ids: what an unprivileged user may give to containers.

use std::ops::Range;

use super::check::{Check, CheckResult, Need, Status};
use super::distribution::{Distribution, Package};
use super::host::{Host, RunAs};
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
        need: Need::Optional(""),
        run: ranges,
    },
    Check {
        name: "ids.newuidmap",
        purpose: "mapping that range into a container",
        need: Need::Optional(""),
        run: programs,
    },
    Check {
        name: "ids.mapped",
        purpose: "files and processes of several users in one container",
        need: Need::Optional("several user ids"),
        run: mapped,
    },
];

/// The ids of the host's initial user namespace: all but the last, which means "no id".
const ALL_IDS: Range<u64> = 0..u32::MAX as u64;

/// The ids of the user namespace that this process is in (user_namespaces(7)).
pub(super) struct NamespaceIds {
    users: Vec<Range<u64>>,
    groups: Vec<Range<u64>>,
}

impl NamespaceIds {
    /// Nothing in the host's own namespace, which has all ids there are.
    pub(super) fn of(machine: &dyn Host) -> Option<Self> {
        let [users, groups] = ["/proc/self/uid_map", "/proc/self/gid_map"].map(|path| {
            let map = machine.read(path)?;
            let extents = map.lines().filter_map(|line| {
                let mut fields = line.split_whitespace().map(str::parse::<u64>);
                let (first, _, count) = (fields.next()?.ok()?, fields.next()?, fields.next()?.ok()?);
                Some(first..first + count)
            });
            Some(extents.collect::<Vec<_>>()).filter(|extents| !extents.contains(&ALL_IDS))
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

fn ranges(machine: &dyn Host) -> CheckResult {
    let user = machine.user();
    if user.is_root() {
        return match NamespaceIds::of(machine).map(|inside| inside.counts()) {
            None => CheckResult::ok("root needs none"),
            Some([users, groups]) if users > 1 && groups > 1 => {
                CheckResult::ok(format!("IDs in this user namespace: {users} for users, {groups} for groups"))
            }
            Some([users, groups]) => CheckResult::missing(format!(
                "IDs in this user namespace: {users} for users, {groups} for groups"
            ))
            .fix("leave it, or enter one with a range: unshare --map-root-user --map-auto"),
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
            CheckResult::ok(format!("{uids} subordinate user ids, {gids} subordinate group ids"))
        }
        (uids, gids) => {
            let lacking = match (uids, gids) {
                (None, None) => "/etc/subuid and /etc/subgid",
                (None, _) => "/etc/subuid",
                _ => "/etc/subgid",
            };
            let usermod = |name: &str| add_range(machine, name);
            let found = CheckResult::missing(format!("no range for `{who}` in {lacking}"));
            if let Some(name) = &user.name {
                return found.command(usermod(name));
            }
            // usermod(8) does not take numeric ids, and newuidmap(1) refuses a user and group that have no line in
            // these files.
            let (name, uid, gid) = (format!("user{}", user.uid), user.uid, user.gid);
            let line = format!("echo '{name}:x:{uid}:{gid}::/:/usr/sbin/nologin' >>/etc/passwd");
            found
                .fix(format!("as root: {line}"))
                .fix(format!("then: {}", usermod(&name)))
                .commands([line, usermod(&name)])
        }
    }
}

/// The command that gives a user a range of ids which no other has.
fn add_range(machine: &dyn Host, name: &str) -> String {
    let taken = ["/etc/subuid", "/etc/subgid"].map(|path| end(&machine.read(path).unwrap_or_default()));
    let first = taken[0].max(taken[1]);
    let last = first + 65_535;
    format!("usermod --add-subuids {first}-{last} --add-subgids {first}-{last} {name}")
}

/// All commands for root that help the user of that name, with the programs where distributions have them.
pub(super) fn commands(machine: &dyn Host, name: &str) -> Vec<String> {
    let programs = ["newuidmap", "newgidmap"].map(|name| format!("chmod u+s /usr/bin/{name}"));
    let install = Distribution::of(machine).install_command(&UIDMAP);
    programs.into_iter().chain([add_range(machine, name)]).chain(install).collect()
}

/// The first id from 100,000 on after all ranges of a file.
fn end(text: &str) -> u64 {
    let ends = accounts::grants(text).map(|grant| u64::from(grant.first) + u64::from(grant.count));
    ends.max().unwrap_or(0).max(100_000)
}

fn programs(machine: &dyn Host) -> CheckResult {
    if machine.user().is_root() && NamespaceIds::of(machine).is_some() {
        return CheckResult::ok("not needed: root of a user namespace maps its ids itself");
    }
    let mut found = vec![];
    for name in ["newuidmap", "newgidmap"] {
        let Some(path) = machine.program(name) else {
            return CheckResult::missing(format!("no `{name}`"))
                .fix(Distribution::of(machine).install(&UIDMAP))
                .commands(Distribution::of(machine).install_command(&UIDMAP));
        };
        if !machine.entry(&path).is_some_and(|entry| entry.elevates_privileges) {
            let fix = format!("chmod u+s {path}");
            return CheckResult::missing(format!("{path} has neither the set-user-id bit nor capabilities"))
                .command(fix);
        }
        found.push(path);
    }
    let no_more = machine.read("/proc/self/status").is_some_and(|status| status.contains("\nNoNewPrivs:\t1"));
    if no_more {
        return CheckResult::missing("this process has no_new_privs, so they have no effect")
            .fix("start jobc from a session without no_new_privs");
    }
    CheckResult::ok(found.join(", "))
}

fn mapped(machine: &dyn Host) -> CheckResult {
    if machine.user().is_root() {
        let found = ranges(machine);
        return match (found.status, NamespaceIds::of(machine)) {
            (Status::Missing, _) => {
                CheckResult::missing("only one user id can be mapped").caused_by("ids.range")
            }
            (_, None) => CheckResult::ok("root can map any id"),
            (_, Some(_)) => CheckResult::ok("root can map the ids of its user namespace"),
        };
    }
    match machine.probe("user-range", RunAs::CurrentUser) {
        Ok(_) => CheckResult::ok("mapped"),
        Err(why) => {
            let found = CheckResult::missing(format!("{why}; only one user id can be mapped"));
            [ranges(machine), programs(machine)]
                .iter()
                .zip(["ids.range", "ids.newuidmap"])
                .find(|(cause, _)| cause.status == Status::Missing)
                .map_or(found.clone(), |(_, name)| found.caused_by(name))
        }
    }
}
