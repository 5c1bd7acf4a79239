//! The scope around a supervisor, where an unprivileged user's limits have no other place.

use crate::submission::Submission;
use jobc_container::scope::{Scope, ScopeOwner};
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::id::JobId;

/// Asks this user's systemd for a scope around this process if the submission requests one; returns its unit's name, or
/// why there is none if that is allowed.
///
/// # Errors
///
/// There is none, and limits are to be kept.
pub(super) fn enter(id: &JobId, submission: &Submission) -> Result<(Option<String>, Option<String>)> {
    if !submission.scope {
        return Ok((None, None));
    }
    match Scope::find(&ScopeOwner::Job(id.clone())).and_then(Scope::enter) {
        Ok(name) => Ok((Some(name), None)),
        Err(why) if !submission.enforce_limits => {
            Ok((None, Some(format!("no systemd scope to enforce limits in: {why}"))))
        }
        Err(why) => {
            let message = format!("the limits of tasks cannot be enforced: {}", why.message);
            let way = why.help.unwrap_or_else(|| "see `journalctl --user`; or ".to_owned());
            let help = format!(
                "run without these limits with `--allow-unenforced`; or {way}set this host up: `jobc doctor --fix` prints the commands"
            );
            Err(Error::new(Kind::Unenforceable, message).help(help))
        }
    }
}
