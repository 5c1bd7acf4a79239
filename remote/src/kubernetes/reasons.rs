//! Why a job waits or ended: what its objects, its pods and their events say, at the lines of the job.

use super::client::Client;
use super::events;
use super::lines::Lines;
use super::objects::ClusterJob;
use super::pods::Pod;
use super::queue;
use super::why::{self, Report};
use crate::place::{JobState, JobSummary};

/// One sentence for each reason.
pub(crate) fn of_job(client: &Client, found: &ClusterJob, summary: &JobSummary, pods: &[Pod]) -> Vec<String> {
    let mut sentences = Vec::new();
    if !summary.is_complete {
        sentences.push("its submission is not complete; submit the same job again to complete it".to_owned());
    }
    if let (true, Some(message)) = (summary.state.is_final(), &summary.message) {
        sentences.push(message.clone());
    }
    let mut reasons = Vec::new();
    if !summary.state.is_final() {
        reasons.extend(queue::reasons(client, found));
    }
    reasons.extend(why::of_pods(pods));
    if matches!(summary.state, JobState::Pending | JobState::Suspended) {
        // Objects without read permission are left out.
        let events = events::of_job(client, found, Some(pods)).unwrap_or_default();
        reasons.extend(why::of_events(events.iter().map(|observed| Report {
            reason: &observed.event.reason,
            source: &observed.source,
            message: &observed.event.message,
        })));
    }
    let lines = Lines::of_object(&found.object);
    sentences.extend(reasons.iter().map(|reason| lines.show(reason)));
    sentences
}
