//! A row of the table, and its result.

use serde::Serialize;

use super::host::Host;

/// One thing a host may have.
pub(super) struct Check {
    /// Its stable name, `subject.thing`.
    pub(super) name: &'static str,
    /// Its purpose, as text to follow "for".
    pub(super) purpose: &'static str,
    /// Whether containers can be run without it.
    pub(super) need: Need,
    /// Runs the check.
    pub(super) run: fn(&dyn Host) -> CheckResult,
}

/// The users who cannot run containers if it is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// The kernel lacks it, for all users.
    Everyone,
    /// Not for this user; other users may have it.
    CurrentUser,
    /// Root cannot who sets containers up without a user namespace.
    Root,
    /// Who needs a user namespace cannot: an unprivileged user, and root in most containers.
    User,
    /// Containers run; the text names what is missing, and is empty where most containers do not need it.
    Optional(&'static str),
}

/// How far something is available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// All of it.
    Ok,
    /// Some of it, or not for this user.
    Limited,
    /// Not available.
    Missing,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CheckResult {
    pub(super) status: Status,
    pub(super) message: String,
    pub(super) fix: Vec<String>,
    /// Those of the fixes that root can run as they are, for `sh`.
    pub(super) commands: Vec<String>,
    /// The check that explains the reason, if this one only follows from it.
    pub(super) caused_by: Option<&'static str>,
}

impl CheckResult {
    pub(super) fn new(status: Status, words: impl Into<String>) -> Self {
        Self { status, message: words.into(), fix: vec![], commands: vec![], caused_by: None }
    }

    pub(super) fn ok(words: impl Into<String>) -> Self {
        Self::new(Status::Ok, words)
    }

    pub(super) fn limited(words: impl Into<String>) -> Self {
        Self::new(Status::Limited, words)
    }

    pub(super) fn missing(words: impl Into<String>) -> Self {
        Self::new(Status::Missing, words)
    }

    /// Adds a command, a setting, or words, that would help.
    pub(super) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix.push(fix.into());
        self
    }

    /// Adds a fix that is a command for root.
    pub(super) fn command(mut self, command: impl Into<String>) -> Self {
        let command = command.into();
        self.commands.push(command.clone());
        self.fix(command)
    }

    /// Adds commands for root that fixes contain among other words.
    pub(super) fn commands(mut self, commands: impl IntoIterator<Item = String>) -> Self {
        self.commands.extend(commands);
        self
    }

    /// Sends the reader to the check that this one follows from.
    pub(super) fn caused_by(mut self, name: &'static str) -> Self {
        self.caused_by = Some(name);
        self.fix(format!("see {name}"))
    }

    /// Adds several.
    pub(super) fn fixes(mut self, fixes: impl IntoIterator<Item = String>) -> Self {
        self.fix.extend(fixes);
        self
    }
}
