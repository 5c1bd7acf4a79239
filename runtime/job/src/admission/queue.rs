//! The queue of a host for reports: what each job of all users holds or waits for, who has that, and when it starts.

use jobc_place::queue::QueueRow;
use jobc_sys::error::Result;

use super::capacity::Capacity;
use super::estimate::{self, Start};
use super::ledger::{Entry, EntryState, Ledger};

/// The rows: first those that have their resources, then the queue in its order.
///
/// # Errors
///
/// The ledger cannot be read.
pub fn rows(ledger: &Ledger, capacity: &Capacity, now: u64) -> Result<Vec<QueueRow>> {
    let mut entries = ledger.entries()?;
    entries.sort_by(|one, other| one.is_before(other).cmp(&other.is_before(one)).reverse());
    Ok(of_entries(&entries, capacity, now))
}

fn of_entries(entries: &[Entry], capacity: &Capacity, now: u64) -> Vec<QueueRow> {
    let row = |entry: &Entry, place| QueueRow {
        place,
        job: entry.id.clone(),
        user: entry.uid,
        resources: entry.claim.describe(),
        waits_for: vec![],
        seconds: None,
    };
    let held = entries.iter().filter(|entry| entry.state == EntryState::Admitted);
    let held = held.map(|entry| QueueRow { seconds: estimate::seconds_left(entry, now), ..row(entry, None) });
    let waiting = entries.iter().filter(|entry| entry.state == EntryState::Waiting).zip(1..);
    let waiting = waiting.map(|(entry, place)| QueueRow {
        waits_for: estimate::holders(entries, entry, capacity),
        seconds: match estimate::of_entry(entries, entry, capacity, now) {
            Some(Start::Within(seconds, _)) => Some(seconds),
            _ => None,
        },
        ..row(entry, Some(place))
    });
    held.chain(waiting).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::Admission;
    use crate::admission::ledger::Ledger;
    use crate::record::Claim;
    use jobc_sys::id::JobId;

    #[test]
    fn a_job_that_has_nothing_yet_is_not_listed() {
        let directory = tempfile::tempdir().unwrap();
        let ledger = Ledger::at(directory.path());
        let id = JobId { name: "a".to_owned(), run: 1 };
        let claim = Claim { cpu_millis: 1000, ..Claim::default() };
        let _entered = Admission::enter(ledger.clone(), &id, &claim).unwrap();
        let capacity = Capacity { cpu_millis: 8000, ..Capacity::default() };
        assert_eq!(rows(&ledger, &capacity, 0).unwrap(), []);
    }
}
