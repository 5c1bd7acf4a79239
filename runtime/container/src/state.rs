//! The state directory: one directory per container, locked, with the OCI state.
//!
//! [`store`] keeps the directories. A container's status is never written, because it would be wrong after a crash:
//! it follows from the process itself, from its cgroup, and from the fifo that a container waits at until it is started.

pub mod store;

use std::fmt;
use std::path::PathBuf;

use oci_spec::runtime::Spec;
use serde::{Deserialize, Serialize};

use crate::oci_state::{OCI_VERSION, State, Status, rfc3339};
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::process::Process;

/// A container's name: letters, digits and `_ + . -`, at most 255 bytes, neither `.` nor `..`.
///
/// It becomes the name of a directory and, if config.json names none, of a cgroup.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id(String);

impl Id {
    /// Checks a name.
    pub fn new(name: &str) -> Result<Self> {
        let wrong = name.chars().find(|one| !(one.is_ascii_alphanumeric() || "_+.-".contains(*one)));
        let why = match wrong {
            _ if name.is_empty() => "is empty".to_owned(),
            _ if name.len() > 255 => format!("has {} bytes, and a directory's name at most 255", name.len()),
            _ if matches!(name, "." | "..") => "is not allowed".to_owned(),
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

/// The record of a container: the content of `state.json`.
///
/// It is written without `process` before the container's process is created, and again as soon as there is one, so
/// that leftovers of a killed command can be found and removed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(clippy::struct_excessive_bools)] // each is a fact of its own
pub struct Record {
    /// The record's format; 1.
    pub version: u32,
    /// The container's name.
    pub id: String,
    /// The bundle's absolute path.
    pub bundle: PathBuf,
    /// Seconds since 1970.
    pub created: u64,
    /// Its creator.
    pub owner: u32,
    /// The container's first process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    /// Where its cgroups are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<crate::cgroup::CgroupRecord>,
    /// The unit of systemd's that they belong to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<crate::systemd::Unit>,
    /// Its class of cache and memory bandwidth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<crate::classes::ClassRecord>,
    /// Limits that config.json asks for and nothing enforces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unenforced: Vec<String>,
    /// Whether it has its own pid namespace, so that none of its processes outlives the first.
    #[serde(default)]
    pub pid_namespace: bool,
    /// Whether its creator waits for its end and removes it, and what is left of it otherwise may be replaced.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed_by_creator: bool,
    /// Whether hooks are to run when it is deleted.
    #[serde(default)]
    pub poststop: bool,
    /// Whether its hooks on the host get the environment of the command that runs them, where they have none.
    #[serde(default)]
    pub hooks_inherit_environment: bool,
}

impl Record {
    /// The state, for users, programs and hooks; `config` is the container's own copy of config.json.
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

#[cfg(test)]
mod tests;
