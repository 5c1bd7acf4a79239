//! When a job of the queue starts at the latest, by the time limits of those before it.

use jobc_sys::error::Result;
use jobc_sys::id::JobId;

use super::capacity::Capacity;
use super::ledger::{Entry, EntryState, Ledger};
use super::order::Order;
use super::resources::Resource;
use super::rules::Rules;
use crate::record::Claim;

/// When a job starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// In so many seconds at the latest; which job ends then.
    Within(u64, String),
    /// It waits for jobs that may run forever: they have no time limit.
    Unknown(Vec<String>),
}

/// A job that holds resources, or waits before.
#[derive(Clone, Debug)]
struct Other {
    id: String,
    name: String,
    claim: Claim,
    /// When it ends at the latest, in seconds from now; none without a time limit. Of a waiting one, how long it runs.
    seconds: Option<u64>,
}

/// The estimate for a job of this user that waits in a ledger; none if it does not wait there, or shares GPUs.
///
/// # Errors
///
/// The ledger cannot be read.
pub fn of_job(ledger: &Ledger, id: &JobId, capacity: &Capacity, now: u64) -> Result<Option<Start>> {
    let entries = ledger.entries()?;
    let (uid, name) = (rustix::process::geteuid().as_raw(), id.to_string());
    let is_own = |entry: &&Entry| entry.id == name && entry.uid == uid && entry.state == EntryState::Waiting;
    let rules = Rules::of_host()?;
    let order = Order::new(&rules, &entries, capacity, now);
    Ok(entries.iter().find(is_own).and_then(|own| of_entry(&order, &entries, own, capacity, now)))
}

/// The seconds that an admitted job has left by its time limit.
pub(super) fn seconds_left(entry: &Entry, now: u64) -> Option<u64> {
    let ran = now.saturating_sub(entry.since);
    entry.claim.timeout_seconds.map(|timeout| timeout.saturating_sub(ran))
}

/// The jobs that have what a waiting job lacks, those that hold most first.
pub(super) fn holders<'e>(
    order: &Order<'e>,
    entries: &'e [Entry],
    own: &Entry,
    capacity: &Capacity,
) -> Vec<String> {
    if order.exceeded(own).is_some() {
        // The other jobs of its user.
        let held = entries.iter().filter(|entry| entry.state == EntryState::Admitted && entry.uid == own.uid);
        return held.map(|entry| entry.id.clone()).collect();
    }
    let mut others: Vec<Other> =
        order.before(entries, own).into_iter().map(|entry| other(entry, None)).collect();
    let Some(resource) = missing(&own.claim, capacity, &others) else { return vec![] };
    others.retain(|other| resource.of(&other.claim) > 0);
    others.sort_by_key(|other| std::cmp::Reverse(resource.of(&other.claim)));
    others.into_iter().map(|other| other.id).collect()
}

fn other(entry: &Entry, seconds: Option<u64>) -> Other {
    Other { id: entry.id.clone(), name: entry.owner(), claim: entry.claim.clone(), seconds }
}

/// The estimate for a waiting job; none if it shares GPUs, or waits for a limit of its user.
pub(super) fn of_entry<'e>(
    order: &Order<'e>,
    entries: &'e [Entry],
    own: &Entry,
    capacity: &Capacity,
    now: u64,
) -> Option<Start> {
    // The share of a GPU is placed by rules of its own.
    if (own.claim.gpus == 0 && !own.demands.is_empty()) || order.exceeded(own).is_some() {
        return None;
    }
    let (held, before): (Vec<&Entry>, Vec<&Entry>) =
        order.before(entries, own).into_iter().partition(|entry| entry.state == EntryState::Admitted);
    Some(start(
        &own.claim,
        capacity,
        held.into_iter().map(|entry| other(entry, seconds_left(entry, now))).collect(),
        before.into_iter().map(|entry| other(entry, entry.claim.timeout_seconds)).collect(),
    ))
}

/// Lets the jobs end at their limits, and those that wait start in their order.
fn start(own: &Claim, capacity: &Capacity, mut running: Vec<Other>, before: Vec<Other>) -> Start {
    let (mut now, mut last) = (0, String::new());
    let mut queue = before.into_iter().peekable();
    loop {
        while let Some(next) = queue.next_if(|next| missing(&next.claim, capacity, &running).is_none()) {
            running.push(Other { seconds: next.seconds.map(|runs| now + runs), ..next });
        }
        let wanted = queue.peek().map_or(own, |next| &next.claim);
        let Some(resource) = missing(wanted, capacity, &running) else {
            // It is the first of the queue.
            return Start::Within(now, last);
        };
        let next =
            running.iter().enumerate().filter_map(|(number, other)| Some((other.seconds?, number))).min();
        let Some((ends, number)) = next else {
            let holders = running.iter().filter(|other| resource.of(&other.claim) > 0);
            return Start::Unknown(holders.map(|other| other.name.clone()).collect());
        };
        now = now.max(ends);
        last = running.remove(number).name;
    }
}

/// The first resource that a claim lacks besides others.
fn missing(claim: &Claim, capacity: &Capacity, running: &[Other]) -> Option<Resource> {
    let all = [Resource::Gpus, Resource::Cpus, Resource::Memory, Resource::Disk];
    all.into_iter().find(|resource| {
        let taken = running.iter().fold(0, |sum: u64, other| sum.saturating_add(resource.of(&other.claim)));
        resource.of(claim) > resource.of_host(capacity).saturating_sub(taken)
            // A job that never fits is refused before it waits.
            && !running.is_empty()
            && resource.of(claim) > 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(count: u64) -> Claim {
        Claim { cpu_millis: count * 1000, ..Claim::default() }
    }

    fn other(name: &str, count: u64, seconds: Option<u64>) -> Other {
        Other { id: name.to_owned(), name: name.to_owned(), claim: cpus(count), seconds }
    }

    /// The start of a job of so many CPUs on a host of 8.
    fn check(own: u64, running: Vec<Other>, before: Vec<Other>) -> Start {
        let capacity = Capacity { cpu_millis: 8000, ..Capacity::default() };
        start(&cpus(own), &capacity, running, before)
    }

    #[test]
    fn the_end_that_leaves_enough_is_the_start() {
        let running = || vec![other("a", 4, Some(60)), other("b", 3, Some(20)), other("c", 1, None)];
        assert_eq!(check(3, running(), vec![]), Start::Within(20, "b".to_owned()));
        assert_eq!(check(7, running(), vec![]), Start::Within(60, "a".to_owned()));
        assert_eq!(check(8, running(), vec![]), Start::Unknown(vec!["c".to_owned()]));
    }

    #[test]
    fn those_before_start_first_and_run_for_their_limit() {
        let running = || vec![other("a", 8, Some(60))];
        let before = |seconds| vec![other("b", 6, seconds)];
        assert_eq!(check(2, running(), before(Some(100))), Start::Within(60, "a".to_owned()));
        assert_eq!(check(4, running(), before(Some(100))), Start::Within(160, "b".to_owned()));
        assert_eq!(check(4, running(), before(None)), Start::Unknown(vec!["b".to_owned()]));
        // The order of the queue holds: a small job does not pass a large one.
        let large = vec![other("b", 8, Some(5))];
        assert_eq!(check(1, vec![other("a", 2, Some(60))], large), Start::Within(65, "b".to_owned()));
    }
}
