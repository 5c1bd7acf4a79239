//! The state folder: one container a folder, locked, as the OCI state says.
//!
//! [`store`] keeps the folders, [`process`] names a process so that a recycled number is not taken for it. A container's
//! status is never written down, for nobody would correct it after a crash: it follows from the process itself, from
//! its control group, and from the fifo that a container waits at until it is started.

pub mod process;
pub mod store;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use oci_spec::runtime::Spec;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Kind, Result};
use process::Process;

/// A container's name: letters, digits and `_ + . -`, at most 255 bytes, neither `.` nor `..`.
///
/// It becomes the name of a folder and, where config.json names none, of a control group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id(String);

impl Id {
    /// Checks a name.
    pub fn new(name: &str) -> Result<Self> {
        let wrong = name.chars().find(|one| !(one.is_ascii_alphanumeric() || "_+.-".contains(*one)));
        let why = match wrong {
            _ if name.is_empty() => "is empty".to_owned(),
            _ if name.len() > 255 => format!("has {} bytes, and a folder's name at most 255", name.len()),
            _ if matches!(name, "." | "..") => "names a folder".to_owned(),
            Some(one) => format!("has the character `{}`", one.escape_debug()),
            None => return Ok(Self(name.to_owned())),
        };
        let shown: String = name.chars().take(64).flat_map(char::escape_debug).collect();
        Err(Error::new(Kind::State, format!("the container's name `{shown}` {why}"))
            .help("use letters, digits, `_`, `+`, `.` and `-`"))
    }
}

impl AsRef<str> for Id {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where a container is in its life (OCI runtime specification, "State"; `paused` is runc's and crun's word).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It is being made, or what made it was killed half-way.
    Creating,
    /// Everything is set up; the program waits for `start`.
    Created,
    /// The program runs.
    Running,
    /// The program is frozen.
    Paused,
    /// The program is gone, or never came to be.
    Stopped,
}

impl Status {
    /// The word the OCI state uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Creating => "creating",
            Self::Created => "created",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Stopped => "stopped",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What is kept of a container: the content of `state.json`.
///
/// It is written before the container's process is made, without `process`, and again as soon as there is one, so that
/// what a killed command leaves behind can be found and cleaned.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The record's format; 1.
    pub version: u32,
    /// The container's name.
    pub id: String,
    /// The bundle's absolute path.
    pub bundle: PathBuf,
    /// Seconds since 1970.
    pub created: u64,
    /// Who made it.
    pub owner: u32,
    /// The container's first process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    /// Where its control groups are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<crate::cgroup::Saved>,
    /// The unit of systemd's that they belong to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<crate::systemd::Unit>,
    /// Limits that config.json asks for and nothing enforces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unenforced: Vec<String>,
    /// Whether it has a pid namespace of its own, so that nothing of it outlives its first process.
    #[serde(default)]
    pub pid_namespace: bool,
    /// Whether hooks are to run when it is deleted.
    #[serde(default)]
    pub poststop: bool,
}

/// The structure that `state` prints and hooks read on their standard input (OCI runtime specification, "State").
///
/// `rootfs`, `created` and `owner` are what runc and crun add.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct State<'a> {
    /// The version of the specification that the structure follows.
    pub oci_version: &'static str,
    /// The container's name.
    pub id: &'a str,
    /// Where it is in its life.
    pub status: Status,
    /// Its first process, in the namespace of the reader; 0 where there is none.
    pub pid: u32,
    /// The bundle's absolute path.
    pub bundle: &'a Path,
    /// The root file system's absolute path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rootfs: Option<PathBuf>,
    /// When it was made, in UTC (RFC 3339).
    pub created: String,
    /// The user who made it, by number.
    pub owner: u32,
    /// config.json's annotations, in the order of their names.
    pub annotations: BTreeMap<&'a str, &'a str>,
}

/// The version of the OCI runtime specification that the structure follows.
pub const OCI_VERSION: &str = "1.2.1";

impl Record {
    /// The state, as it is told to people, programs and hooks; `config` is the container's own copy of config.json.
    pub fn state<'a>(&'a self, config: &'a Spec, status: Status) -> State<'a> {
        let annotations = config.annotations().iter().flatten();
        State {
            oci_version: OCI_VERSION,
            id: &self.id,
            status,
            pid: self.process.filter(|_| status != Status::Stopped).map_or(0, |process| process.pid),
            bundle: &self.bundle,
            rootfs: config.root().as_ref().map(|root| self.bundle.join(root.path())),
            created: rfc3339(self.created),
            owner: self.owner,
            annotations: annotations.map(|(key, value)| (key.as_str(), value.as_str())).collect(),
        }
    }
}

/// Seconds since 1970 as a date and time in UTC, such as `2026-11-21T13:31:53Z` (RFC 3339).
pub fn rfc3339(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Years are counted from March on, so that a leap day is the last of its year; 719,468 days lie between the first
    // of March of the year 0 and 1970.
    let days = days + 719_468;
    let era = days / 146_097;
    let day = days % 146_097;
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3_600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests;
