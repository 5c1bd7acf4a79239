//! `jobc oci delete --regex`: all containers whose names an expression matches, as with crun.

use jobc_container::container;
use jobc_container::state::Id;
use jobc_container::state::store::Store;
use jobc_sys::error::{Error, Kind, Result};
use regex::Regex;

use crate::log::Log;

/// Deletes every container that the expression matches. One that cannot be deleted keeps no other from it.
///
/// # Errors
///
/// The first one; the others are warnings.
pub(crate) fn matching(store: &Store, expression: &str, force: bool, log: &mut Log) -> Result<()> {
    let expression = Regex::new(expression).map_err(|error| {
        let reason = error.to_string();
        let reason = reason.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        Error::new(Kind::Config, format!("`{expression}` is not a regular expression: {reason}"))
            .help("write one such as `^train-[0-9]+$`")
    })?;
    let mut first = None;
    let records = store.list()?;
    for record in records.iter().filter(|record| expression.is_match(&record.id)) {
        match Id::new(&record.id).and_then(|id| container::delete(store, &id, force)) {
            Ok(warnings) => warnings.iter().for_each(|warning| log.warn(&warning.to_string())),
            Err(error) if first.is_none() => first = Some(error),
            Err(error) => log.warn(&error.to_string()),
        }
    }
    first.map_or(Ok(()), Err)
}
