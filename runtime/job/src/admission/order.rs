//! The order of the jobs that wait: by priority, then by what their users used, then by the time of their request.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::time::Duration;

use super::capacity::Capacity;
use super::ledger::{Entry, EntryState, PastUse};
use super::rules::{Exceeded, Rules};

/// The order of the entries of a ledger at a moment.
#[derive(Debug)]
pub(super) struct Order<'a> {
    rules: &'a Rules,
    admitted: Vec<&'a Entry>,
    /// Seconds of the whole host that each user had; empty without fair share.
    used: BTreeMap<u32, f64>,
}

impl<'a> Order<'a> {
    pub(super) fn new(
        rules: &'a Rules,
        entries: impl IntoIterator<Item = &'a Entry>,
        capacity: &Capacity,
        now: u64,
    ) -> Self {
        let entries: Vec<&Entry> = entries.into_iter().collect();
        let admitted: Vec<&Entry> =
            entries.iter().copied().filter(|entry| entry.state == EntryState::Admitted).collect();
        let mut used = BTreeMap::new();
        if let Some(share) = &rules.fair_share {
            // That which a user's newest job recorded, and what those that run had since they began.
            let mut past: BTreeMap<u32, PastUse> = BTreeMap::new();
            for entry in &entries {
                let newest = past.entry(entry.uid).or_default();
                if entry.past.at >= newest.at {
                    *newest = entry.past;
                }
            }
            for (uid, past) in past {
                let weight = decay(now.saturating_sub(past.at), share.half_life.0);
                let running = admitted.iter().filter(|entry| entry.uid == uid);
                let (gpu, cpu) = running.fold((0.0, 0.0), |(gpu, cpu), entry| {
                    let seconds = float(now.saturating_sub(entry.since));
                    (
                        gpu + float(entry.claim.gpus) * seconds,
                        cpu + float(entry.claim.cpu_millis) / 1000.0 * seconds,
                    )
                });
                let gpus = float(capacity.gpus.devices().len() as u64).max(1.0);
                let cpus = (float(capacity.cpu_millis) / 1000.0).max(1.0);
                // The share of the scarcer one counts.
                let host = f64::max(
                    past.gpu_seconds.mul_add(weight, gpu) / gpus,
                    past.cpu_seconds.mul_add(weight, cpu) / cpus,
                );
                used.insert(uid, host);
            }
        }
        Self { rules, admitted, used }
    }

    /// Seconds of the whole host that the user of a job had; none without fair share.
    pub(super) fn used(&self, entry: &Entry) -> Option<u64> {
        let seconds = self.used.get(&entry.uid)?;
        Duration::try_from_secs_f64(*seconds).ok().map(|used| used.as_secs())
    }

    /// The priority of a job, within the limits of its user.
    pub(super) fn priority(&self, entry: &Entry) -> i8 {
        self.rules.priority(entry)
    }

    pub(super) fn compare(&self, one: &Entry, other: &Entry) -> Ordering {
        let of_user = |entry: &Entry| self.used.get(&entry.uid).copied().unwrap_or_default();
        Reverse(self.priority(one))
            .cmp(&Reverse(self.priority(other)))
            // A difference of seconds is none, so that the order is the same for all who look at it.
            .then((of_user(one) / 60.0).round().total_cmp(&(of_user(other) / 60.0).round()))
            .then_with(|| one.cmp_request(other))
    }

    /// The limit of its user that a job exceeds.
    pub(super) fn exceeded(&self, entry: &Entry) -> Option<Exceeded> {
        let others = self.admitted.iter().copied().filter(|other| !std::ptr::eq(*other, entry));
        self.rules.exceeded(entry, &others.collect::<Vec<_>>())
    }

    /// Those that have their resources, then those that wait before an entry, in their order. Jobs that wait for other
    /// jobs of their user hold up no others.
    pub(super) fn before(&self, entries: impl IntoIterator<Item = &'a Entry>, own: &Entry) -> Vec<&'a Entry> {
        let mut waiting: Vec<&Entry> = entries
            .into_iter()
            .filter(|entry| entry.state == EntryState::Waiting && !entry.is_same_request(own))
            .filter(|entry| self.compare(entry, own) == Ordering::Less && self.exceeded(entry).is_none())
            .collect();
        waiting.sort_by(|one, other| self.compare(one, other));
        self.admitted.iter().copied().chain(waiting).collect()
    }
}

/// What use counts after a time.
pub(super) fn decay(seconds: u64, half_life: u64) -> f64 {
    (-float(seconds) / float(half_life)).exp2()
}

/// A number of seconds or of units; larger ones than 32 bits hold make no difference.
pub(super) fn float(number: u64) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_counts_half_after_a_half_life() {
        assert_eq!((decay(0, 60), decay(60, 60), decay(120, 60)), (1.0, 0.5, 0.25));
    }
}
