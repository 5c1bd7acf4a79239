//! Where containers' state, records and images are kept: whether this user may write there, and how much fits.

use jobc_schema::Bytes;

use super::check::{Check, CheckResult, Need};
use super::host::{Host, RunAs};
use super::ids::NamespaceIds;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "place.state",
        purpose: "the state of running containers",
        need: Need::CurrentUser,
        run: |machine| check_directory(machine, &state(machine), "XDG_RUNTIME_DIR", 16 << 20),
    },
    Check {
        name: "place.records",
        purpose: "records and logs of jobs",
        need: Need::Optional(""),
        run: |machine| {
            let path = below_home(machine, "XDG_STATE_HOME", ".local/state", "");
            check_directory(machine, &path, "XDG_STATE_HOME", 256 << 20)
        },
    },
    Check {
        name: "place.images",
        purpose: "images and their layers",
        need: Need::Optional(""),
        run: |machine| {
            let path = below_home(machine, "XDG_DATA_HOME", ".local/share", "/images");
            check_directory(machine, &path, "XDG_DATA_HOME", 10 << 30)
        },
    },
];

/// The directory of the containers' state, as [`jobc_container::state::store::Store::standard`] chooses it, without
/// making it.
fn state(machine: &dyn Host) -> String {
    let root = machine.user().is_root();
    if root && NamespaceIds::of(machine).is_none() {
        return "/run/jobc".to_owned();
    }
    let runtime = machine.variable("XDG_RUNTIME_DIR");
    if let Some(directory) =
        runtime.filter(|directory| machine.entry(directory).is_some_and(|entry| entry.is_directory))
    {
        return format!("{directory}/jobc");
    }
    if root {
        return "/run/jobc".to_owned();
    }
    let temporary = machine.variable("TMPDIR").unwrap_or_else(|| "/tmp".to_owned());
    format!("{temporary}/jobc-{}", machine.user().uid)
}

/// A directory of the XDG base directory specification.
fn below_home(machine: &dyn Host, variable: &str, otherwise: &str, below: &str) -> String {
    let home = machine.variable("HOME").unwrap_or_else(|| "/".to_owned());
    let directory =
        machine.variable(variable).unwrap_or_else(|| format!("{}/{otherwise}", home.trim_end_matches('/')));
    format!("{directory}/jobc{below}")
}

/// A directory that `variable` can move, and in which `enough` bytes should be free.
fn check_directory(machine: &dyn Host, path: &str, variable: &str, enough: u64) -> CheckResult {
    let facts = match machine.probe(&format!("place={path}"), RunAs::CurrentUser) {
        Ok(facts) => facts,
        Err(why) => return CheckResult::missing(format!("{path}: {why}")),
    };
    let mut facts = facts.lines();
    let near = facts.next().unwrap_or_default();
    let writable = facts.next() == Some("true");
    let free: u64 = facts.next().and_then(|bytes| bytes.parse().ok()).unwrap_or(0);
    if !writable {
        return CheckResult::missing(format!("{path}: {near} is not writable by this user"))
            .fix(format!("set {variable} to a writable directory"));
    }
    let words = format!("{path}, {} free", Bytes(free).measured());
    if free < enough {
        return CheckResult::limited(words).fix(format!("free {} there", Bytes(enough - free).measured()));
    }
    CheckResult::ok(words)
}
