//! A scope around a supervisor, for an unprivileged user without a delegated cgroup.
//!
//! In a login under systemd a user cannot create groups, but the user's systemd can: it is asked for one transient
//! scope, whose group is delegated to the user (systemd's "Control Group Interfaces"; systemd.resource-control(5),
//! `Delegate=`). The supervisor is in it, so the scope ends when the supervisor and everything it has started have
//! ended. systemd is not called if limits have a place already, or if none is set.

use std::path::Path;
use std::time::Duration;

use rustix::process::geteuid;

use crate::cgroup::{Layout, ScopeGroup};
use crate::systemd::{REPLY_TIMEOUT, Systemd, Unit, WITHOUT_SYSTEMD_HELP};
use jobc_sys::accounts;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::id::JobId;

/// The containers that the scope is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScopeOwner {
    /// A job's.
    Job(JobId),
    /// One container, which this process attends to.
    Container(String),
}

impl ScopeOwner {
    /// Its name, which the unit bears.
    fn name(&self) -> String {
        match self {
            Self::Job(id) => id.to_string(),
            Self::Container(id) => id.clone(),
        }
    }

    fn description(&self) -> String {
        match self {
            Self::Job(id) => format!("jobc job {id}"),
            Self::Container(id) => format!("jobc container {id}"),
        }
    }
}

/// A scope that is not made yet, of a systemd that answers.
#[derive(Debug)]
pub struct Scope {
    systemd: Systemd,
    unit: Unit,
    description: String,
    /// The location of its group.
    pub group: ScopeGroup,
}

/// Whether a scope could help this user: one who is not root, where all controllers are those of cgroup v2.
pub fn is_applicable(layout: &Layout) -> bool {
    !geteuid().is_root() && layout.is_unified()
}

/// Whether this user's systemd keeps running after logout (loginctl(1), `enable-linger`), which systemd-logind
/// remembers by a file.
pub fn is_linger_enabled() -> bool {
    let passwd = accounts::read_file("/etc/passwd").unwrap_or_default();
    let name = accounts::name_of(&passwd, geteuid().as_raw()).or_else(|| std::env::var("USER").ok());
    name.is_some_and(|name| Path::new("/var/lib/systemd/linger").join(name).exists())
}

impl Scope {
    /// Finds this user's systemd, and where it would create the scope.
    ///
    /// # Errors
    ///
    /// Why it is not available, with advice, if any.
    pub fn find(holder: &ScopeOwner) -> Result<Self> {
        Self::find_with_timeout(holder, REPLY_TIMEOUT)
    }

    /// As [`Self::find`], with a timeout for each answer.
    pub fn find_with_timeout(holder: &ScopeOwner, timeout: Duration) -> Result<Self> {
        let systemd = Systemd::connect_with_timeout(true, timeout).map_err(|error| {
            let mut error = error;
            // The advice for callers of an OCI runtime does not apply to users who run jobs.
            error.hints.retain(|hint| hint != WITHOUT_SYSTEMD_HELP);
            error
        })?;
        let unit = Unit::application(&holder.name());
        let group = ScopeGroup::of(&unit, systemd.group());
        Ok(Self { systemd, unit, description: holder.description(), group })
    }

    /// The name of the unit.
    pub fn name(&self) -> &str {
        &self.unit.name
    }

    /// Creates the scope around this process, which moves to a group below it; returns the unit's name.
    ///
    /// Existing children of this process stay where they are; new ones are in the scope.
    ///
    /// # Errors
    ///
    /// systemd refuses, fails or takes too long, or the kernel does not let this process move.
    pub fn enter(mut self) -> Result<String> {
        let pid = std::process::id();
        let started = match self.systemd.start_scope(&self.unit, &self.description, pid) {
            // Another job of the same user with different directories may have the name, or a container with the job's
            // name.
            Err(error) if error.kind == Kind::State => {
                let stem = self.unit.name.trim_end_matches(".scope").to_owned();
                self.unit.name = format!("{stem}-{pid}.scope");
                self.systemd.start_scope(&self.unit, &self.description, pid)
            }
            other => other,
        };
        // Its advice is for users who chose the unit's name, or says whom to ask.
        started
            .and_then(|()| ScopeGroup::enter_supervisor_group(&self.unit))
            .map_err(|error| Error { hints: vec![], ..error })?;
        Ok(self.unit.name)
    }
}
