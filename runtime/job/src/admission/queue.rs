//! The queue of a host for reports: what each job of all users holds or waits for, who has that, and when it starts.

use jobc_place::queue::QueueRow;
use jobc_sys::error::Result;

use super::capacity::Capacity;
use super::estimate::{self, Start};
use super::ledger::{Entry, EntryState, Ledger};
use super::order::Order;
use super::rules::Rules;

/// The rows: first those that have their resources, then the queue in its order.
///
/// # Errors
///
/// The ledger cannot be read.
pub fn rows(ledger: &Ledger, capacity: &Capacity, now: u64) -> Result<Vec<QueueRow>> {
    let rules = Rules::of_host()?;
    Ok(of_entries(&ledger.entries()?, &rules, capacity, now))
}

fn of_entries(entries: &[Entry], rules: &Rules, capacity: &Capacity, now: u64) -> Vec<QueueRow> {
    let order = Order::new(rules, entries, capacity, now);
    let mut sorted: Vec<&Entry> = entries.iter().collect();
    sorted.sort_by(|one, other| order.compare(one, other));
    let row = |entry: &Entry, place| QueueRow {
        place,
        job: entry.id.clone(),
        user: entry.uid,
        resources: entry.claim.describe(),
        priority: order.priority(entry),
        used_seconds: order.used(entry),
        waits_for: vec![],
        seconds: None,
    };
    let mut held: Vec<&Entry> = entries.iter().filter(|entry| entry.state == EntryState::Admitted).collect();
    held.sort_by(|one, other| one.cmp_request(other));
    let held = held.into_iter();
    let held = held.map(|entry| QueueRow { seconds: estimate::seconds_left(entry, now), ..row(entry, None) });
    let waiting = sorted.iter().copied().filter(|entry| entry.state == EntryState::Waiting).zip(1..);
    let waiting = waiting.map(|(entry, place)| QueueRow {
        waits_for: estimate::holders(&order, entries, entry, capacity),
        seconds: match estimate::of_entry(&order, entries, entry, capacity, now) {
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
    use crate::admission::ledger::Ledger;
    use crate::admission::{Admission, PastUse};
    use crate::record::Claim;
    use jobc_sys::id::JobId;

    #[test]
    fn a_job_that_has_nothing_yet_is_not_listed() {
        let directory = tempfile::tempdir().unwrap();
        let ledger = Ledger::at(directory.path());
        let id = JobId { name: "a".to_owned(), run: 1 };
        let claim = Claim { cpu_millis: 1000, ..Claim::default() };
        let _entered =
            Admission::enter(ledger.clone(), Rules::default(), &id, &claim, PastUse::default()).unwrap();
        let capacity = Capacity { cpu_millis: 8000, ..Capacity::default() };
        assert_eq!(rows(&ledger, &capacity, 0).unwrap(), []);
    }
}
