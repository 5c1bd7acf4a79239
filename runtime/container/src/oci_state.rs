//! A container's state as the OCI runtime specification defines it: for programs, hooks and agents.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

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
    /// Its first process, in the PID namespace of the reader; 0 if there is none.
    pub pid: u32,
    /// Where it is in its life.
    pub status: Status,
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
pub const OCI_VERSION: &str = "1.3.0";

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
