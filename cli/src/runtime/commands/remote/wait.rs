//! Waits for a job on a cluster, and says meanwhile why it does not run.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use jobc_remote::place::{JobState, JobSummary};
use jobc_remote::{Handle, Place};
use jobc_sys::error::Result;

use crate::table::escape_control;
use crate::terminal;

/// How long a job may wait before the reason is queried, and the interval between queries.
const INTERVALS: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(15)];

/// Waits until a job has ended; its reasons to wait are printed on stderr, each once.
pub(super) fn wait(place: &dyn Place, handle: &Handle) -> Result<Option<JobSummary>> {
    let is_waiting = AtomicBool::new(false);
    let (ended, receiver) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let receiver = receiver;
            let mut shown = BTreeSet::new();
            let mut interval = INTERVALS[0];
            while receiver.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                if !is_waiting.load(Ordering::Relaxed) {
                    continue;
                }
                interval = INTERVALS[1];
                // Failed queries are repeated later.
                for reason in place.inspect(&handle.name).map(|detail| detail.reasons).unwrap_or_default() {
                    if shown.insert(reason.clone()) {
                        terminal::eprint(&format!("{handle}: {}\n", escape_control(&reason)));
                    }
                }
            }
        });
        let end = place.wait(&handle.name, &mut |job| {
            let waits = job.is_short || matches!(job.state, JobState::Pending | JobState::Suspended);
            is_waiting.store(waits, Ordering::Relaxed);
            ControlFlow::Continue(())
        });
        drop(ended);
        end
    })
}
