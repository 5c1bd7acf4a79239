//! What is known of the host that a job runs on: faults of its GPUs, and its clock.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jobc_place::verdict::NodeFault;
use rustix::time::{ClockId, clock_gettime};

use crate::lifecycle::TaskNumber;
use crate::metrics::GpuFault;

/// A clock that is corrected goes on by less.
const MIN_CLOCK_STEP: u64 = 5;

/// How often to look at the clock and the claim.
const INTERVAL: Duration = Duration::from_secs(2);

/// What has happened so far.
#[derive(Debug, Default)]
pub(super) struct NodeWatch {
    /// The faults of the GPUs of each task, with its attempt.
    gpus: BTreeMap<TaskNumber, (u32, Vec<GpuFault>)>,
    /// The time of the clock at the start of the host, in seconds since 1970.
    clock: Option<u64>,
    looked: Option<Instant>,
}

impl NodeWatch {
    /// The fault of a device that ended an attempt, if one may have.
    pub(super) fn of_attempt(&self, task: TaskNumber, attempt: u32) -> Option<NodeFault> {
        let (_, faults) = self.gpus.get(&task).filter(|(known, _)| *known == attempt)?;
        faults.iter().find_map(GpuFault::of_node)
    }

    /// Takes a fault in; whether it is the first one of its kind in the attempt.
    pub(super) fn is_new(&mut self, task: TaskNumber, attempt: u32, fault: &GpuFault) -> bool {
        let known = self.gpus.entry(task).or_default();
        if known.0 != attempt {
            *known = (attempt, vec![]);
        }
        let is_new = !known.1.contains(fault);
        if is_new {
            known.1.push(fault.clone());
        }
        is_new
    }

    /// Whether it is time to look at the clock and the claim.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        let is_due = self.looked.is_none_or(|looked| now - looked >= INTERVAL);
        if is_due {
            self.looked = Some(now);
        }
        is_due
    }

    /// By how many seconds the clock was set since the last call.
    pub(super) fn clock_step(&mut self) -> Option<i64> {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        // It goes on while the host sleeps.
        let up = Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default();
        self.step_to(time.saturating_sub(up).as_secs())
    }

    fn step_to(&mut self, clock: u64) -> Option<i64> {
        // Small steps add up.
        let before = *self.clock.get_or_insert(clock);
        let step = clock.abs_diff(before);
        if step < MIN_CLOCK_STEP {
            return None;
        }
        self.clock = Some(clock);
        let step = i64::try_from(step).unwrap_or(i64::MAX);
        Some(if clock < before { -step } else { step })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_corrected_slowly_was_set_when_that_adds_up() {
        let mut watch = NodeWatch::default();
        let steps: Vec<Option<i64>> =
            [100, 101, 104, 105, 105, 3705, 105].map(|clock| watch.step_to(clock)).to_vec();
        assert_eq!(steps, [None, None, None, Some(5), None, Some(3600), Some(-3600)]);
    }
}
