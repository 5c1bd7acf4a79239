//! Why a job waits or ended: what its objects, its pods and their events say, at the lines of the job.

use std::collections::BTreeMap;

use serde_json::Value;

use super::client::Client;
use super::counts::missing_pods;
use super::events::{self, Observed};
use super::kinds::Workload;
use super::lines::Lines;
use super::objects::{ClusterJob, children};
use super::pods::Pod;
use super::queue;
use super::state::{items, name};
use super::why::{self, Reason, Report};
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
    // Objects without read permission are left out.
    if matches!(summary.state, JobState::Pending | JobState::Suspended) || summary.is_short {
        let events = events::of_job(client, found, Some(pods)).unwrap_or_default();
        reasons.extend(of_events(&missing(client, found), &events, summary.state));
    } else if let Some(gone) =
        lost_pods(found, summary, pods).filter(|_| summary.state != JobState::Succeeded)
    {
        sentences.push(gone);
        let events = events::of_job(client, found, None).unwrap_or_default();
        let of_pods = events.iter().filter_map(|Observed { event, .. }| {
            let pod = event.object.strip_prefix("pod/")?;
            let is_gone = pods.iter().all(|known| known.metadata.name != pod);
            is_gone.then_some((pod, event.event.as_str(), event.message.as_str()))
        });
        reasons.extend(why::of_lost_pods(of_pods));
    }
    let lines = Lines::of_object(&found.object);
    sentences.extend(reasons.iter().map(|reason| lines.show(reason)));
    sentences
}

/// What the events of a job explain. Of a job that runs, only what is still missing counts: an event may be an hour
/// old.
fn of_events(missing: &BTreeMap<String, String>, events: &[Observed], state: JobState) -> Vec<Reason> {
    let runs = state == JobState::Running;
    why::of_events(events.iter().filter_map(|observed| {
        let lacks = missing.get(&observed.event.object);
        (lacks.is_some() || !runs).then(|| Report {
            reason: &observed.event.event,
            source: &observed.source,
            message: &observed.event.message,
            missing: lacks.map_or("no pods", String::as_str),
        })
    }))
}

/// What each object of a job lacks, such as `no pods`, by `job/NAME`; nothing of a complete one.
fn missing(client: &Client, found: &ClusterJob) -> BTreeMap<String, String> {
    let of = |kind: &str, object: &Value, what: &str, (missing, wanted): (u64, u64)| {
        let text = if missing == wanted {
            format!("no {what}")
        } else {
            format!("{missing} of {wanted} {what} cannot be created")
        };
        (missing > 0).then(|| (format!("{}/{}", kind.to_lowercase(), name(object)), text))
    };
    let pods = |job: &Value| of("Job", job, "pods", missing_pods(job));
    if !found.workload.has_jobset() {
        return if is_job(found.workload) {
            pods(&found.object).into_iter().collect()
        } else {
            BTreeMap::new()
        };
    }
    let jobs = children(client, found.name());
    let replicas = items(&found.object, "/spec/replicatedJobs");
    let count = |role: &Value| role.get("replicas").and_then(Value::as_u64).unwrap_or(1);
    let wanted: u64 = replicas.map(count).sum();
    let absent = wanted.saturating_sub(jobs.len() as u64);
    jobs.iter()
        .filter_map(pods)
        .chain(of(found.workload.kind, &found.object, "Jobs", (absent, wanted)))
        .collect()
}

fn is_job(workload: &Workload) -> bool {
    (workload.group, workload.kind) == ("batch", "Job")
}

/// Says that pods of an ended job are gone, and their output with them; none if all are there.
pub(crate) fn lost_pods(found: &ClusterJob, summary: &JobSummary, pods: &[Pod]) -> Option<String> {
    if !summary.state.is_final() {
        return None;
    }
    let counted = if is_job(found.workload) { summary.tasks.failed + summary.tasks.succeeded } else { 1 };
    let gone = counted.saturating_sub(pods.len() as u64);
    let what = match gone {
        0 => return None,
        _ if pods.is_empty() => "its pods are gone".to_owned(),
        1 => "one of its pods is gone".to_owned(),
        _ => format!("{gone} of its pods are gone"),
    };
    let why = match summary.state {
        JobState::TimedOut => ": Kubernetes deletes the pods that run when the time of a job is over",
        JobState::Failed => {
            ": they were deleted while they ran, as when a node is drained or lost, or after it"
        }
        _ => "",
    };
    Some(format!("{what}, and their output with them{why}"))
}
