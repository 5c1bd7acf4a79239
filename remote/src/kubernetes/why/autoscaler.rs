//! Autoscalers: events of the cluster autoscaler and of Karpenter on pods that have no node.

use super::reason::{Field, Reason, sentence};

/// The reason in an autoscaler's event; `None` for other events.
pub(super) fn of_event(reason: &str, source: &str, message: &str) -> Option<Reason> {
    let message = sentence(message);
    let is_karpenter = source.contains("karpenter");
    let text = match reason {
        "TriggeredScaleUp" => "a node comes: the autoscaler is adding one".to_owned(),
        "Nominated" if is_karpenter || message.contains("nodeclaim") => {
            "a node comes: Karpenter is adding one".to_owned()
        }
        "NotTriggerScaleUp" => {
            format!("none fits: the autoscaler has no node for it: {}", after_up(&message))
        }
        "FailedScheduling" if is_karpenter => format!("none fits: Karpenter has no node for it: {message}"),
        _ => return None,
    };
    Some(Reason::of_job(text, Field::Placement))
}

/// `pod didn't trigger scale-up: 2 max node group size reached` without the constant part.
fn after_up(message: &str) -> &str {
    message.strip_prefix("pod didn't trigger scale-up").map_or(message, |rest| {
        // `… (it wouldn't fit if a new node is added): …` of older releases.
        rest.split_once(": ").map_or(rest, |(_, what)| what)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn autoscaler_events_are_explained() {
        for (reason, source, message, expected) in [
            (
                "TriggeredScaleUp",
                "cluster-autoscaler",
                "pod triggered scale-up: [{a100 1->2 (max: 4)}]",
                Some("a node comes: the autoscaler is adding one"),
            ),
            (
                "NotTriggerScaleUp",
                "cluster-autoscaler",
                "pod didn't trigger scale-up: 2 max node group size reached",
                Some("none fits: the autoscaler has no node for it: 2 max node group size reached"),
            ),
            (
                "NotTriggerScaleUp",
                "cluster-autoscaler",
                "pod didn't trigger scale-up (it wouldn't fit if a new node is added): 1 Insufficient nvidia.com/gpu.",
                Some("none fits: the autoscaler has no node for it: 1 Insufficient nvidia.com/gpu"),
            ),
            (
                "Nominated",
                "karpenter",
                "Pod should schedule on: nodeclaim/a-1",
                Some("a node comes: Karpenter is adding one"),
            ),
            (
                "FailedScheduling",
                "karpenter",
                "Failed to schedule pod, incompatible requirements.",
                Some(
                    "none fits: Karpenter has no node for it: Failed to schedule pod, incompatible requirements",
                ),
            ),
            ("FailedScheduling", "default-scheduler", "0/1 nodes are available", None),
            ("Scheduled", "default-scheduler", "", None),
        ] {
            let found = of_event(reason, source, message).map(|reason| reason.text);
            assert_eq!(found.as_deref(), expected, "{reason} {source}");
        }
    }
}
