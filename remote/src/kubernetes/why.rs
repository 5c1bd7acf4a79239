//! Why a job does not run, in sentences: what the scheduler, Kueue, the kubelet and admission report.
//!
//! All functions are pure: they read recorded answers.

use std::collections::BTreeMap;

use serde_json::Value;

use super::pods::Pod;
use super::state::text;
use crate::place::Event;

/// Tasks that are named in a sentence; the rest is counted.
const MAX_NAMED: usize = 3;

/// What a Kueue Workload says; none if the job is admitted and runs.
pub(crate) fn of_workload(workload: &Value) -> Option<String> {
    let find = |kind: &str, status: &str| {
        let conditions = workload.pointer("/status/conditions")?.as_array()?;
        conditions
            .iter()
            .find(|condition| text(condition, "/type") == kind && text(condition, "/status") == status)
    };
    if let Some(evicted) = find("Evicted", "True") {
        let reason = text(evicted, "/reason");
        let why = match reason {
            "Preempted" => "a job with a higher priority took its place",
            "PodsReadyTimeout" => "its pods were not ready in time",
            "AdmissionCheck" => "an admission check failed",
            "ClusterQueueStopped" | "LocalQueueStopped" => "its queue was stopped",
            "NodeFailures" => "a node failed",
            "Deactivated" => "it was deactivated, and does not start again by itself",
            _ => "",
        };
        let after = if reason == "Deactivated" { "" } else { "; it is queued again" };
        return Some(if why.is_empty() {
            format!("evicted by Kueue ({reason}): {}{after}", sentence(text(evicted, "/message")))
        } else {
            format!("evicted by Kueue: {why}{after}")
        });
    }
    if find("Admitted", "True").is_some() {
        return None;
    }
    if find("QuotaReserved", "True").is_some() {
        let checks = workload.pointer("/status/admissionChecks").and_then(Value::as_array);
        let pending = checks.into_iter().flatten().find(|check| text(check, "/state") != "Ready");
        let detail = pending.map(|check| {
            let message = sentence(text(check, "/message"));
            let name = text(check, "/name");
            if message.is_empty() { format!(" `{name}`") } else { format!(" `{name}`: {message}") }
        });
        return Some(format!(
            "has its quota, and waits for the admission check{}",
            detail.unwrap_or_default()
        ));
    }
    let pending = find("QuotaReserved", "False")?;
    let forever = match text(pending, "/reason") {
        "ExceedsMaxQuota" => "; it never fits without a change of the job or of the quota",
        "NoMatchingFlavor" => "; no flavor of the queue fits, and none will without a change",
        "Misconfigured" => "; the queue is misconfigured",
        _ => "",
    };
    Some(format!("waits in the queue: {}{forever}", sentence(text(pending, "/message"))))
}

/// Where a Kueue workload is in its queue, counted from 1; from the answer of `pendingworkloads`.
pub(crate) fn position(answer: &Value, workload: &str) -> Option<String> {
    let items = answer.get("items")?.as_array()?;
    let own = items.iter().find(|item| text(item, "/metadata/name") == workload)?;
    let place = own.get("positionInLocalQueue")?.as_u64()? + 1;
    Some(format!("number {place} in the queue"))
}

/// What pods that wait or were ended say: one sentence for all tasks with the same reason.
pub(crate) fn of_pods(pods: &[Pod]) -> Vec<String> {
    let mut reasons: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for pod in pods {
        if let Some(reason) = of_pod(pod) {
            reasons.entry(reason).or_default().push(pod.task());
        }
    }
    let mut shown: Vec<(usize, String)> = reasons
        .into_iter()
        .map(|(reason, tasks)| (tasks.len(), format!("{}: {reason}", names(&tasks))))
        .collect();
    shown.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    shown.into_iter().map(|(_, sentence)| sentence).collect()
}

fn names(tasks: &[String]) -> String {
    match tasks.len() {
        0..=MAX_NAMED => tasks.join(", "),
        count => format!("{} and {} more tasks", tasks[..MAX_NAMED - 1].join(", "), count - MAX_NAMED + 1),
    }
}

/// What a pod says; none if nothing is wrong with it.
pub(crate) fn of_pod(pod: &Pod) -> Option<String> {
    if let Some(disruption) = pod.condition("DisruptionTarget", "True") {
        return Some(match disruption.reason.as_str() {
            "PreemptionByScheduler" => "preempted by a pod with a higher priority".to_owned(),
            "EvictionByEvictionAPI" => "evicted: its node is being drained".to_owned(),
            "DeletionByTaintManager" => "its node was lost or tainted".to_owned(),
            "TerminationByKubelet" => format!("ended by its node: {}", sentence(&disruption.message)),
            "DeletionByPodGC" => "its node does not exist any more".to_owned(),
            other => format!("disrupted ({other}): {}", sentence(&disruption.message)),
        });
    }
    match pod.status.reason.as_deref() {
        Some("Evicted") => {
            return Some(format!("evicted: {}", sentence(pod.status.message.as_deref().unwrap_or_default())));
        }
        Some("DeadlineExceeded") => return Some("exceeded its time limit".to_owned()),
        _ => {}
    }
    if let Some(ended) = pod.main().and_then(|state| state.terminated.as_ref()) {
        return match (ended.reason.as_str(), ended.exit_code) {
            ("OOMKilled", _) => Some("killed: it exceeded its memory limit".to_owned()),
            ("ContainerStatusUnknown", _) => Some("its node lost track of it".to_owned()),
            ("StartError" | "ContainerCannotRun", _) => Some("the container could not start".to_owned()),
            (_, 0) => None,
            (_, code) => Some(format!("exited with {code}")),
        };
    }
    let containers = pod.status.init_container_statuses.iter().chain(&pod.status.container_statuses);
    let waiting = containers.filter_map(|container| container.state.waiting.as_ref());
    for waiting in waiting {
        let message = sentence(&waiting.message);
        match waiting.reason.as_str() {
            "ErrImagePull" | "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull" => {
                let shown = if message.is_empty() { waiting.reason.clone() } else { message };
                return Some(format!("cannot get the image: {shown}"));
            }
            "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" => {
                return Some(format!("cannot create the container: {message}"));
            }
            "CrashLoopBackOff" => {
                return Some("crashes again and again; the cluster waits before the next try".to_owned());
            }
            _ => {}
        }
    }
    let unscheduled = pod.condition("PodScheduled", "False")?;
    Some(match unscheduled.reason.as_str() {
        "SchedulingGated" => "held back by a scheduling gate, as of Kueue's topology".to_owned(),
        _ => format!("no node fits: {}", of_scheduler(&unscheduled.message)),
    })
}

/// The counts of `0/8 nodes are available: …`, without what follows about preemption.
fn of_scheduler(message: &str) -> String {
    let end = message.find(" preemption:").or(message.find(" no new claims to deallocate"));
    sentence(&message[..end.unwrap_or(message.len())])
}

/// What events say that nothing else does: pods that could not be created, nodes that come or do not, volumes.
pub(crate) fn of_events(events: &[Event]) -> Vec<String> {
    let mut found: BTreeMap<&str, String> = BTreeMap::new();
    for event in events {
        let message = sentence(&event.message);
        let text = match event.reason.as_str() {
            "FailedCreate" => of_failed_create(&message),
            "TriggeredScaleUp" | "Nominated" => "the autoscaler is adding a node".to_owned(),
            "NotTriggerScaleUp" => format!("the autoscaler has no node that fits: {message}"),
            "FailedMount" | "FailedAttachVolume" => format!("a volume cannot be mounted: {message}"),
            "FailedCreatePodSandBox" => format!("the node cannot set up the pod: {message}"),
            _ => continue,
        };
        // The newest of each kind.
        found.insert(event.reason.as_str(), text);
    }
    if found.contains_key("TriggeredScaleUp") || found.contains_key("Nominated") {
        found.remove("NotTriggerScaleUp");
    }
    found.into_values().collect()
}

fn of_failed_create(message: &str) -> String {
    let from = |start: &str| message.find(start).map(|at| &message[at..]);
    if let Some(quota) = from("exceeded quota:") {
        return format!("no pods: {quota}");
    }
    if let Some(security) = from("violates PodSecurity") {
        return format!("no pods: the namespace {security}")
            .replace("the namespace violates", "the job violates");
    }
    if let Some(webhook) = from("admission webhook") {
        return format!("no pods: {webhook}");
    }
    format!("no pods: {message}")
}

/// A message of the cluster as a part of a sentence: one line without a full stop.
fn sentence(message: &str) -> String {
    let line: Vec<&str> = message.split_whitespace().collect();
    line.join(" ").trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests;
