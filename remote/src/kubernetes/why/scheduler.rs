//! The scheduler: the condition `PodScheduled` of a pod.

use super::reason::{Field, from, sentence};

/// The reason in a pod without a node, and its subject.
pub(super) fn of_unscheduled(reason: &str, message: &str) -> (String, Field) {
    match reason {
        "SchedulingGated" => {
            ("held back by a scheduling gate, as of Kueue's topology".to_owned(), Field::Queue)
        }
        "SchedulerError" => (format!("the scheduler failed: {}", sentence(message)), Field::Role),
        // `Unschedulable`.
        _ => {
            let counts = counts(message);
            let field = field(&counts);
            (format!("no node fits: {counts}"), field)
        }
    }
}

/// The counts of `0/8 nodes are available: …`, without what follows about preemption and claims.
fn counts(message: &str) -> String {
    let ends = [" preemption:", " no new claims to deallocate", " Preemption is not helpful"];
    let end = ends.iter().filter_map(|end| message.find(end)).min().unwrap_or(message.len());
    sentence(message[..end].trim_end_matches([',', ' ']))
}

/// The resource of the job that most nodes lack.
fn field(counts: &str) -> Field {
    let list = counts.split_once(": ").map_or(counts, |(_, list)| list);
    // `6 Insufficient nvidia.com/gpu`; taints of older releases contain commas and braces.
    let of_part = |part: &str| -> Option<(u64, Field)> {
        let (number, what) = part.trim().split_once(' ')?;
        let number = number.parse().ok()?;
        let field = if let Some(name) = what.strip_prefix("Insufficient ") {
            Field::Resource(name.to_owned())
        } else if from(what, "olume").is_some() {
            Field::Volumes
        } else if from(what, "taint").or(from(what, "affinity")).or(from(what, "selector")).is_some() {
            Field::Placement
        } else {
            Field::Role
        };
        Some((number, field))
    };
    if list.contains("PersistentVolumeClaim") || list.contains("persistentvolumeclaim") {
        return Field::Volumes;
    }
    let parts = list.split(", ").filter_map(of_part);
    // The first of the largest: the scheduler sorts by text.
    let largest = parts.reduce(|largest, part| if part.0 > largest.0 { part } else { largest });
    largest.map_or(Field::Role, |(_, field)| field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_nodes_are_kept_and_preemption_is_not() {
        let gpu = Field::Resource("nvidia.com/gpu".to_owned());
        for (message, counts, field) in [
            (
                "0/8 nodes are available: 6 Insufficient nvidia.com/gpu, 2 node(s) had untolerated taint(s). preemption: 0/8 nodes are available: 8 No preemption victims found.",
                "0/8 nodes are available: 6 Insufficient nvidia.com/gpu, 2 node(s) had untolerated taint(s)",
                gpu.clone(),
            ),
            (
                "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) had untolerated taint {node.kubernetes.io/unreachable: }. no new claims to deallocate, preemption: 0/3 nodes",
                "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) had untolerated taint {node.kubernetes.io/unreachable: }",
                Field::Placement,
            ),
            (
                "0/4 nodes are available: 1 Insufficient cpu, 3 node(s) didn't match Pod's node affinity/selector. preemption: 0/4",
                "0/4 nodes are available: 1 Insufficient cpu, 3 node(s) didn't match Pod's node affinity/selector",
                Field::Placement,
            ),
            (
                "0/4 nodes are available: 4 node(s) had volume node affinity conflict.",
                "0/4 nodes are available: 4 node(s) had volume node affinity conflict",
                Field::Volumes,
            ),
            (
                "0/4 nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: 0/4 nodes",
                "0/4 nodes are available: pod has unbound immediate PersistentVolumeClaims",
                Field::Volumes,
            ),
            ("no nodes available to schedule pods", "no nodes available to schedule pods", Field::Role),
            (
                "0/2 nodes are available: 2 Too many pods.",
                "0/2 nodes are available: 2 Too many pods",
                Field::Role,
            ),
        ] {
            let expected = (format!("no node fits: {counts}"), field);
            assert_eq!(of_unscheduled("Unschedulable", message), expected);
        }
        assert_eq!(
            of_unscheduled("Unschedulable", "0/8 nodes are available: 8 Insufficient nvidia.com/gpu.").1,
            gpu
        );
    }

    #[test]
    fn gates_and_errors_of_the_scheduler_are_not_missing_nodes() {
        assert_eq!(
            of_unscheduled("SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates"),
            ("held back by a scheduling gate, as of Kueue's topology".to_owned(), Field::Queue)
        );
        assert_eq!(
            of_unscheduled("SchedulerError", "binding rejected.").0,
            "the scheduler failed: binding rejected"
        );
    }
}
