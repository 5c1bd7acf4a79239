//! What happens to the host while the job runs: faults of its GPUs, a clock that is set, a claim that is removed.

use std::time::Instant;

use jobc_schema::duration::Seconds;
use serde_json::json;

use super::Supervisor;
use crate::event::Kind as EventKind;

impl Supervisor {
    /// Looks whether the host is well, after each sample.
    pub(super) fn look_at_node(&mut self) {
        self.note_gpu_faults();
        if self.run.is_none() && self.node_watch.is_due(Instant::now()) {
            self.look_at_clock();
            self.look_at_claim();
        }
    }

    /// Records what happened to GPUs, each thing once for an attempt.
    pub(super) fn note_gpu_faults(&mut self) {
        for (id, fault) in self.sampler.take_gpu_faults() {
            let Some(task) = self.lifecycle.tasks().iter().position(|task| task.id == id) else { continue };
            if !self.node_watch.is_new(task, self.lifecycle.tasks()[task].attempt, &fault) {
                continue;
            }
            let mut detail = json!({ "gpu": fault.gpu(), "what": fault.what });
            if let Some(xid) = fault.xid {
                detail["xid"] = json!(xid);
            }
            self.journal.task_event(task, EventKind::GpuFault, detail);
            self.journal.note(format!("{id}: {}: {}", fault.gpu(), fault.what));
        }
    }

    fn look_at_clock(&mut self) {
        let Some(seconds) = self.node_watch.clock_step() else { return };
        self.journal.job_event(EventKind::ClockSet, json!({ "seconds": seconds }));
        let (way, step) = (if seconds < 0 { "back" } else { "forward" }, Seconds(seconds.unsigned_abs()));
        self.journal.note(format!(
            "the clock of this host was set {way} by {step}: times before and after do not fit together"
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
