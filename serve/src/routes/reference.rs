//! The job that a path names.

use super::jobs;
use crate::call::Call;
use crate::problem::Problem;

/// The job that a path names: `train.3`, `lab/train-8d2xv`. One of another user is not found.
///
/// # Errors
/// It is not a name of a job, or not for this caller.
pub(crate) async fn reference(call: &Call) -> Result<String, Problem> {
    let name = call.part("ref").to_owned();
    let unknown = || Problem::not_found(format!("unknown job `{}`", name.escape_debug()));
    let is_word = |word: &str| {
        word.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit())
            && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-._".contains(c))
    };
    if name.len() > 500 || name.split('/').count() > 2 || !name.split('/').all(is_word) {
        return Err(unknown());
    }
    if call.actor.is_operator || call.server.owners.is_of(&call.actor.user, &name) {
        return Ok(name);
    }
    // A job of a sweep that the user started.
    let rows = jobs::local_rows(call).await?;
    let of_sweep = rows.iter().find(|row| row.id == name).and_then(|row| row.sweep.clone());
    match of_sweep {
        Some(sweep) if call.server.owners.is_of(&call.actor.user, &sweep) => Ok(name),
        _ => Err(unknown()),
    }
}
