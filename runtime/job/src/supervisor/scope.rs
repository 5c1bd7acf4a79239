//! The scope around a supervisor, where a normal user's limits have no other place.

use crate::submission::Submission;
use jobc_container::scope::{Holder, Scope};
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::id::JobId;

/// Has this user's systemd make a scope around this process where the submission asks for one; returns its unit's name, or why there is
/// none where that is allowed.
///
/// # Errors
///
/// There is none, and limits are to be kept.
pub(super) fn enter(id: &JobId, submission: &Submission) -> Result<(Option<String>, Option<String>)> {
    if !submission.scope {
        return Ok((None, None));
    }
    match Scope::of(&Holder::Job(id.clone())).and_then(Scope::enter) {
        Ok(name) => Ok((Some(name), None)),
        Err(why) if submission.allow_unenforced => {
            Ok((None, Some(format!("there is no scope to keep limits in: {why}"))))
        }
        Err(why) => {
            let message = format!("nothing keeps tasks within their limits: {}", why.message);
            let way = why.help.unwrap_or_else(|| "`journalctl --user` may say more; or ".to_owned());
            let help =
                format!("{way}go on without these limits by `--allow-unenforced`; `jobc doctor` says more");
            Err(Error::new(Kind::Unenforceable, message).help(help))
        }
    }
}
