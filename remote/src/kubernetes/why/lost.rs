//! Pods that are gone: what the events about them, which outlive them by an hour, say of their end.

use std::collections::BTreeMap;

use super::reason::{Field, Reason, sentence};

/// Why pods that do not exist any more ended, as far as their events say: the name, the reason and the message of each.
pub(crate) fn of_lost_pods<'a>(events: impl Iterator<Item = (&'a str, &'a str, &'a str)>) -> Vec<Reason> {
    let mut found: BTreeMap<&str, Reason> = BTreeMap::new();
    for (pod, reason, message) in events {
        if let Some(why) = of_event(reason, message) {
            found.insert(pod, Reason::of_job(format!("pod `{pod}`, which is gone: {why}"), Field::Role));
        }
    }
    found.into_values().collect()
}

/// Why a pod was ended, in an event of the kubelet, the scheduler or the node controller; `None` for other events.
fn of_event(reason: &str, message: &str) -> Option<String> {
    let message = sentence(message);
    let what = match reason {
        "Evicted" => "evicted by its node",
        "Preempted" => "preempted by a pod with a higher priority",
        "TaintManagerEviction" => "its node was lost or tainted",
        "NodeNotReady" => "its node was not ready",
        _ => return None,
    };
    Some(if message.is_empty() { what.to_owned() } else { format!("{what}: {message}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_outlive_the_pods_that_they_are_about() {
        let events = [
            ("a-0-x", "Scheduled", "assigned"),
            ("a-0-x", "Evicted", "The node was low on resource: memory."),
            ("a-1-y", "Preempted", ""),
        ];
        let texts: Vec<String> =
            of_lost_pods(events.into_iter()).into_iter().map(|reason| reason.text).collect();
        assert_eq!(
            texts,
            [
                "pod `a-0-x`, which is gone: evicted by its node: The node was low on resource: memory",
                "pod `a-1-y`, which is gone: preempted by a pod with a higher priority",
            ]
        );
    }
}
