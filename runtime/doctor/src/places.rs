//! Where containers' state, records and images are kept: whether this user may write there, and how much fits.

use jobc_schema::Bytes;

use super::check::{Check, Found, Need};
use super::ids::Inside;
use super::machine::{As, Machine};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "place.state",
        purpose: "the state of running containers",
        need: Need::Asker,
        look: |machine| place(machine, &state(machine), "XDG_RUNTIME_DIR", 16 << 20),
    },
    Check {
        name: "place.records",
        purpose: "records and logs of jobs",
        need: Need::Nobody(""),
        look: |machine| {
            let path = below_home(machine, "XDG_STATE_HOME", ".local/state", "");
            place(machine, &path, "XDG_STATE_HOME", 256 << 20)
        },
    },
    Check {
        name: "place.images",
        purpose: "images and their layers",
        need: Need::Nobody(""),
        look: |machine| {
            let path = below_home(machine, "XDG_DATA_HOME", ".local/share", "/images");
            place(machine, &path, "XDG_DATA_HOME", 10 << 30)
        },
    },
];

/// The directory of the containers' state, as [`jobc_container::state::store::Store::standard`] chooses it, without
/// making it.
fn state(machine: &dyn Machine) -> String {
    let root = machine.user().is_root();
    if root && Inside::of(machine).is_none() {
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
fn below_home(machine: &dyn Machine, variable: &str, otherwise: &str, below: &str) -> String {
    let home = machine.variable("HOME").unwrap_or_else(|| "/".to_owned());
    let directory =
        machine.variable(variable).unwrap_or_else(|| format!("{}/{otherwise}", home.trim_end_matches('/')));
    format!("{directory}/jobc{below}")
}

/// A directory that `variable` can move, and in which `enough` bytes should be free.
fn place(machine: &dyn Machine, path: &str, variable: &str, enough: u64) -> Found {
    let facts = match machine.attempt(&format!("place={path}"), As::Me) {
        Ok(facts) => facts,
        Err(why) => return Found::missing(format!("{path}: {why}")),
    };
    let mut facts = facts.lines();
    let near = facts.next().unwrap_or_default();
    let writable = facts.next() == Some("true");
    let free: u64 = facts.next().and_then(|bytes| bytes.parse().ok()).unwrap_or(0);
    if !writable {
        return Found::missing(format!("{path}: {near} is not writable by this user"))
            .fix(format!("set {variable} to a writable directory"));
    }
    let words = format!("{path}, {} free", Bytes(free).measured());
    if free < enough {
        return Found::limited(words).fix(format!("free {} there", Bytes(enough - free).measured()));
    }
    Found::ok(words)
}
