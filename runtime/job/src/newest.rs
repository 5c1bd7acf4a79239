//! The newest jobs of a user, for commands and completions that name none.

use std::collections::BTreeMap;

use crate::directory::{Directory, JobDirectories};
use crate::record::Record;
use jobc_sys::error::Result;
use jobc_sys::id::JobId;

/// The job that was submitted last, whether it runs or has ended. A job whose record cannot be read is not considered.
///
/// # Errors
///
/// The directories of the jobs cannot be read.
pub fn newest(places: &JobDirectories) -> Result<Option<(Directory, Record)>> {
    // Of each name only the last run can be.
    let mut last: BTreeMap<String, JobId> = BTreeMap::new();
    for id in places.list()? {
        let known = last.entry(id.name.clone()).or_insert_with(|| id.clone());
        if known.run < id.run {
            *known = id;
        }
    }
    Ok(last.into_values().filter_map(|id| readable(places, &id)).max_by_key(|(_, record)| record.submitted))
}

/// The jobs that run, or wait to run, the newest first.
///
/// # Errors
///
/// As [`newest`].
pub fn running(places: &JobDirectories) -> Result<Vec<(Directory, Record)>> {
    let ids = places.list()?;
    let supervised = ids.iter().filter(|id| places.job(id).is_supervised());
    let mut found: Vec<_> = supervised.filter_map(|id| readable(places, id)).collect();
    found.retain(|(_, record)| !record.state.is_final());
    found.sort_by_key(|(_, record)| std::cmp::Reverse(record.submitted));
    Ok(found)
}

fn readable(places: &JobDirectories, id: &JobId) -> Option<(Directory, Record)> {
    let directory = places.job(id);
    let record = Record::read(&directory).ok().flatten()?;
    Some((directory, record))
}
