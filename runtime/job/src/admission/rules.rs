//! The rules of a host's queue, which an administrator writes: `/etc/jobc/queue.yaml`.
//!
//! Every job's supervisor reads and follows them. Like the [ledger](super::ledger), they bind only jobs: they order what
//! users of jobc do, and do not keep a user from running other programs.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use jobc_schema::{Bytes, Cpus, Seconds};
use jobc_sys::error::{Error, Kind, Result, describe_io};
use jobc_sys::{accounts, yaml};
use serde::Deserialize;

use super::ledger::{DIRECTORY_VARIABLE, Entry};
use super::resources::Resource;
use crate::record::Claim;

/// The file of the host.
pub const FILE: &str = "/etc/jobc/queue.yaml";

/// The rules of a queue; without the file nothing is limited, and jobs are in the order of their requests.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rules {
    /// Users who used less come first.
    pub fair_share: Option<FairShare>,
    /// How long a turn of a job is that shares its GPUs by time, once others wait.
    pub turn: Option<Seconds>,
    limits: Limits,
    #[serde(skip)]
    passwd: String,
    #[serde(skip)]
    group: String,
}

/// How long a turn is where `turn` is not written: as in Gandiva, where a switch takes less than a hundredth of it.
pub(super) const TURN: Seconds = Seconds(60);

/// How past use counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FairShare {
    /// The time after which use counts half.
    pub half_life: Seconds,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Limits {
    /// Of each user whom `users` does not name.
    default: Option<Limit>,
    users: BTreeMap<String, Limit>,
    /// Of all members of a group together.
    groups: BTreeMap<String, Limit>,
}

/// How much the running jobs of a user or of a group may have.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Limit {
    jobs: Option<u64>,
    gpus: Option<u64>,
    cpu: Option<Cpus>,
    memory: Option<Bytes>,
    /// The highest priority; a job that has a higher one is treated as if it had this.
    priority: Option<i8>,
}

impl Limit {
    fn of(&self, resource: Resource) -> Option<u64> {
        match resource {
            Resource::Gpus => self.gpus,
            Resource::Cpus => self.cpu.map(|cpu| cpu.millis),
            Resource::Memory => self.memory.map(|bytes| bytes.0),
            Resource::Disk => None,
        }
    }
}

/// Why a job does not fit the limits of its user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Exceeded {
    /// It never does: what it needs, and what is allowed.
    Always(String),
    /// Not now: as text.
    Now(String),
}

impl Rules {
    /// The rules of this host. Where [`DIRECTORY_VARIABLE`] names another ledger, its own are in `queue.yaml` there.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or has an error.
    pub fn of_host() -> Result<Self> {
        let named = std::env::var_os(DIRECTORY_VARIABLE).map(PathBuf::from).filter(|path| path.is_absolute());
        let path = named.map_or_else(|| PathBuf::from(FILE), |directory| directory.join("queue.yaml"));
        let wrong = |why: String| {
            Error::new(Kind::Config, format!("`{}`: {why}", path.display()))
                .help("docs/guides/operate.md describes the rules of a queue")
        };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(wrong(describe_io(&error))),
        };
        let read = |path: &str| accounts::read_file(Path::new(path)).unwrap_or_default();
        let rules = Self::parse(&text).map_err(wrong)?;
        Ok(Self { passwd: read("/etc/passwd"), group: read("/etc/group"), ..rules })
    }

    fn parse(text: &str) -> std::result::Result<Self, String> {
        let is_blank = |line: &str| line.is_empty() || line.starts_with('#');
        if text.lines().all(|line| is_blank(line.trim())) {
            return Ok(Self::default());
        }
        let value = yaml::read(text)?;
        let rules: Self = serde_json::from_value(value).map_err(|error| error.to_string())?;
        if rules.fair_share.is_some_and(|share| share.half_life.0 == 0) {
            return Err("`half_life` must be longer than 0s".to_owned());
        }
        if rules.turn.is_some_and(|turn| turn.0 == 0) {
            return Err("`turn` must be longer than 0s".to_owned());
        }
        Ok(rules)
    }

    /// The limits that count for a user: a name to show, the limit, and the users who share it.
    fn limits_of(&self, uid: u32) -> Vec<(String, &Limit, Vec<u32>)> {
        let name = accounts::name_of(&self.passwd, uid);
        let number = uid.to_string();
        let named = name.as_deref().and_then(|name| self.limits.users.get(name));
        let own = named.or_else(|| self.limits.users.get(&number)).or(self.limits.default.as_ref());
        let shown = name.clone().unwrap_or(number);
        let mut found: Vec<_> =
            own.into_iter().map(|limit| (format!("user `{shown}`"), limit, vec![uid])).collect();
        for (group, limit) in &self.limits.groups {
            let members = self.members(group);
            if members.contains(&uid) {
                found.push((format!("group `{group}`"), limit, members));
            }
        }
        found
    }

    /// The users of a group, also those of whom it is the first group.
    fn members(&self, group: &str) -> Vec<u32> {
        let Some(entry) = accounts::groups(&self.group).find(|entry| entry.name == group) else {
            return vec![];
        };
        let names: Vec<&str> = entry.members().collect();
        let users = accounts::users(&self.passwd);
        users
            .filter(|user| user.gid == entry.gid || names.contains(&user.name))
            .map(|user| user.uid)
            .collect()
    }

    /// The priority of a job, within the limits of its user.
    pub(super) fn priority(&self, entry: &Entry) -> i8 {
        let max = self.limits_of(entry.uid).into_iter().filter_map(|(_, limit, _)| limit.priority).min();
        entry.claim.priority.min(max.unwrap_or(i8::MAX))
    }

    /// The first limit that a job exceeds beside those that hold resources.
    pub(super) fn exceeded(&self, entry: &Entry, admitted: &[&Entry]) -> Option<Exceeded> {
        self.limits_of(entry.uid).into_iter().find_map(|(who, limit, users)| {
            let own: Vec<&&Entry> = admitted.iter().filter(|other| users.contains(&other.uid)).collect();
            exceeded(&entry.claim, &who, limit, &own)
        })
    }
}

fn exceeded(claim: &Claim, who: &str, limit: &Limit, own: &[&&Entry]) -> Option<Exceeded> {
    for resource in Resource::COUNTED.into_iter().chain([Resource::Gpus]) {
        let (Some(max), wanted) = (limit.of(resource), resource.of(claim)) else { continue };
        if wanted > max {
            return Some(Exceeded::Always(format!(
                "the job needs {}, and {who} may have {}",
                resource.format_amount(wanted),
                resource.format_number(max)
            )));
        }
        let has = own.iter().fold(0, |sum: u64, other| sum.saturating_add(resource.of(&other.claim)));
        if wanted > 0 && has.saturating_add(wanted) > max {
            return Some(Exceeded::Now(format!(
                "needs {}, and {who} has {} of {}: {}",
                resource.format_amount(wanted),
                resource.format_number(has),
                resource.format_number(max),
                holders(own, |other| resource.of(&other.claim) > 0)
            )));
        }
    }
    let max = limit.jobs?;
    if max == 0 {
        return Some(Exceeded::Always(format!("{who} may run no jobs")));
    }
    let has = own.len() as u64;
    (has >= max)
        .then(|| Exceeded::Now(format!("{who} has {has} of {max} running jobs: {}", holders(own, |_| true))))
}

fn holders(own: &[&&Entry], holds: impl Fn(&Entry) -> bool) -> String {
    let names = own.iter().filter(|other| holds(other)).take(3).map(|other| other.owner());
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
impl Rules {
    /// Rules with the accounts of a test.
    pub(super) fn of_test(text: &str) -> Self {
        let passwd = "ada:x:1001:100::/home/ada:/bin/sh\nbob:x:1002:200::/home/bob:/bin/sh\n";
        let group = "students:x:100:bob\nstaff:x:200:\n";
        let rules = Self::parse(text).unwrap();
        Self { passwd: passwd.to_owned(), group: group.to_owned(), ..rules }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_what_is_wrong() {
        let wrong = |text: &str| Rules::parse(text).unwrap_err();
        assert!(wrong("fair_share: {half_live: 7d}").starts_with("unknown field `half_live`"));
        assert!(wrong("fair_share: {half_life: 7w}").contains("write for example `90s`"));
        assert_eq!(wrong("fair_share: {half_life: 0s}"), "`half_life` must be longer than 0s");
        assert!(wrong("limits: {users: {ada: {gpu: 1}}}").starts_with("unknown field `gpu`"));
        assert!(wrong("limits: [").contains("line"));
        assert_eq!(Rules::parse("# nothing\n").unwrap(), Rules::default());
    }

    #[test]
    fn a_group_has_also_those_of_whom_it_is_the_first() {
        let rules = Rules::of_test("limits: {groups: {students: {gpus: 2}, unknown: {gpus: 0}}}");
        assert_eq!((rules.members("students"), rules.members("staff")), (vec![1001, 1002], vec![1002]));
        assert!(rules.members("unknown").is_empty());
    }
}
