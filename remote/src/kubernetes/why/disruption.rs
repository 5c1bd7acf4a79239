//! Pods that were ended from outside: their condition `DisruptionTarget` and their reason.

use super::super::pods::Pod;
use super::reason::{Field, sentence};

/// Why a pod was ended, if not by its program.
pub(super) fn of_pod(pod: &Pod) -> Option<(String, Field)> {
    let message = || sentence(pod.status.message.as_deref().unwrap_or_default());
    if let Some(disruption) = pod.condition("DisruptionTarget", "True") {
        let detail = sentence(&disruption.message);
        let text = match disruption.reason.as_str() {
            "PreemptionByScheduler" => "preempted by a pod with a higher priority".to_owned(),
            "EvictionByEvictionAPI" => "evicted: its node is being drained".to_owned(),
            "DeletionByTaintManager" => "its node was lost or tainted".to_owned(),
            // The kubelet says in the pod's own message what ran out.
            "TerminationByKubelet" if message().is_empty() => format!("ended by its node: {detail}"),
            "TerminationByKubelet" => format!("ended by its node: {}", message()),
            "DeletionByPodGC" => "its node does not exist any more".to_owned(),
            other => format!("disrupted ({other}): {detail}"),
        };
        return Some((text, Field::Role));
    }
    let text = match pod.status.reason.as_deref()? {
        "Evicted" => format!("evicted by its node: {}", message()),
        "DeadlineExceeded" => return Some(("exceeded its time limit".to_owned(), Field::Timeout)),
        "NodeLost" => "its node was lost".to_owned(),
        "Terminated" | "NodeShutdown" => "its node was shut down".to_owned(),
        "UnexpectedAdmissionError" => format!("rejected by its node: {}", message()),
        reason => {
            // `OutOfcpu`, `OutOfnvidia.com/gpu`: another pod was faster.
            let name = reason.strip_prefix("OutOf")?;
            let field = Field::Resource(name.to_owned());
            return Some((format!("rejected by its node, which has too little {name} left"), field));
        }
    };
    Some((text, Field::Role))
}
