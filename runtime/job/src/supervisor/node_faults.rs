//! What happens to the host while the job runs: faults of its GPUs, a clock that is set, a claim that is removed.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jobc_schema::duration::Seconds;
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

use super::Supervisor;
use crate::event::Kind as EventKind;

/// A clock that is corrected goes on by less.
const MIN_CLOCK_STEP: u64 = 5;

/// How often to look at the clock and the claim.
const INTERVAL: Duration = Duration::from_secs(2);

impl Supervisor {
    /// Looks whether the host is well, after each sample.
    pub(super) fn look_at_node(&mut self) {
        self.note_gpu_faults();
        let now = Instant::now();
        if self.run.is_none() && self.node_faults.looked.is_none_or(|looked| now - looked >= INTERVAL) {
            self.node_faults.looked = Some(now);
            self.look_at_clock();
            self.look_at_claim();
        }
    }

    /// Records what happened to GPUs, each thing once for an attempt.
    pub(super) fn note_gpu_faults(&mut self) {
        for (id, fault) in self.sampler.take_gpu_faults() {
            let Some(task) = self.lifecycle.tasks().iter().position(|task| task.id == id) else { continue };
            let attempt = self.lifecycle.tasks()[task].attempt;
            let known = self.node_faults.gpus.entry(task).or_default();
            if known.0 != attempt {
                *known = (attempt, vec![]);
            }
            if known.1.contains(&fault) {
                continue;
            }
            let mut detail = json!({ "gpu": fault.gpu(), "what": fault.what });
            if let Some(xid) = fault.xid {
                detail["xid"] = json!(xid);
            }
            known.1.push(fault.clone());
            self.journal.task_event(task, EventKind::GpuFault, detail);
            self.journal.note(format!("{id}: {}: {}", fault.gpu(), fault.what));
        }
    }

    fn look_at_clock(&mut self) {
        let Ok(time) = SystemTime::now().duration_since(UNIX_EPOCH) else { return };
        // It goes on while the host sleeps.
        let up = Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default();
        let clock = time.saturating_sub(up).as_secs();
        let Some(before) = self.node_faults.clock.replace(clock) else { return };
        let step = clock.abs_diff(before);
        if step < MIN_CLOCK_STEP {
            // Small steps add up.
            self.node_faults.clock = Some(before);
            return;
        }
        let seconds = i64::try_from(step).unwrap_or(i64::MAX) * if clock < before { -1 } else { 1 };
        self.journal.job_event(EventKind::ClockSet, json!({ "seconds": seconds }));
        let way = if seconds < 0 { "back" } else { "forward" };
        self.journal.note(format!(
            "the clock of this host was set {way} by {}: times before and after do not fit together",
            Seconds(step)
        ));
    }

    fn look_at_claim(&mut self) {
        let Some(result) = self.prepared.as_mut().and_then(|prepared| prepared.admission.restore()) else {
            return;
        };
        let text =
            "the claim of the job was removed from the ledger, so that others could take its resources";
        match result {
            Ok(()) => {
                self.journal.job_event(EventKind::ClaimLost, json!({ "restored": true }));
                self.journal.note(format!("{text}; it was written anew"));
            }
            Err(error) => {
                let why = error.to_string();
                self.journal.job_event(EventKind::ClaimLost, json!({ "restored": false, "why": why }));
                self.journal.note(format!("{text}: {why}; stop one of the jobs that share them"));
            }
        }
    }
}
