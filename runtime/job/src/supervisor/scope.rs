//! The scope around a supervisor, where an unprivileged user's limits have no other place.

use crate::admission::limits::unenforceable;
use crate::submission::Submission;
use jobc_container::scope::{Scope, ScopeOwner};
use jobc_sys::error::Result;
use jobc_sys::id::JobId;

/// Where the limits of a job are enforced.
#[derive(Debug)]
pub(super) enum Entered {
    /// In the cgroups of this process.
    Own,
    /// In a scope of this user's systemd, by its unit's name.
    Scope(String),
    /// Nowhere, for a reason that is allowed.
    Nowhere(String),
}

/// Asks this user's systemd for a scope around this process if the submission requests one.
///
/// # Errors
///
/// There is none, and limits are to be kept.
pub(super) fn enter(id: &JobId, submission: &Submission) -> Result<Entered> {
    if !submission.scope {
        return Ok(Entered::Own);
    }
    match Scope::find(&ScopeOwner::Job(id.clone())).and_then(Scope::enter) {
        Ok(name) => Ok(Entered::Scope(name)),
        Err(why) if !submission.enforce_limits => {
            Ok(Entered::Nowhere(format!("no systemd scope to enforce limits in: {why}")))
        }
        Err(why) => {
            let message = format!("the limits of tasks cannot be enforced: {}", why.message());
            let see =
                if why.hints.is_empty() { vec!["see `journalctl --user`".to_owned()] } else { why.hints };
            Err(unenforceable(message, see))
        }
    }
}
