//! How many tasks of a job there are, run, and have ended, as its object counts them.

use serde_json::Value;

use super::kinds::{Counts, Workload};
use super::state::{ROLES, items, metadata, text};
use crate::place::{JobState, TaskCounts};

fn number(object: &Value, pointer: &str) -> Option<u64> {
    object.pointer(pointer).and_then(Value::as_u64)
}

/// The roles with their instances: of the spec, else of the annotation of the submission.
fn roles(object: &Value) -> Vec<(&str, u64)> {
    let size = |role: &Value| {
        number(role, "/replicas").unwrap_or(1) * number(role, "/template/spec/completions").unwrap_or(1)
    };
    let of_spec: Vec<(&str, u64)> =
        items(object, "/spec/replicatedJobs").map(|role| (text(role, "/name"), size(role))).collect();
    if !of_spec.is_empty() {
        return of_spec;
    }
    let roles = metadata(object, "annotations", ROLES).unwrap_or_default().split(',');
    roles
        .filter_map(|role| role.split_once('='))
        .filter_map(|(name, n)| Some((name, n.parse().ok()?)))
        .collect()
}

/// The counts of an object; where it has none only how many tasks it has.
pub(crate) fn tasks(workload: &Workload, object: &Value) -> TaskCounts {
    let count = |pointer: &str| number(object, pointer).unwrap_or_default();
    let mut counts = TaskCounts::default();
    match workload.counts {
        Counts::Job => {
            counts.wanted = number(object, "/spec/completions").unwrap_or(1);
            counts.active = count("/status/active");
            counts.succeeded = count("/status/succeeded");
            counts.failed = count("/status/failed");
        }
        Counts::ChildJobs(at) => {
            let roles = roles(object);
            counts.wanted = roles.iter().map(|(_, size)| size).sum();
            for status in items(object, at) {
                let of = |key: &str| number(status, key).unwrap_or_default();
                let size = roles
                    .iter()
                    .find(|(name, _)| *name == text(status, "/name"))
                    .map_or(1, |(_, size)| *size);
                counts.active += of("/active") * size;
                counts.succeeded += of("/succeeded") * size;
                counts.failed += of("/failed");
            }
        }
        Counts::Volcano => {
            counts.wanted =
                items(object, "/spec/tasks").map(|task| number(task, "/replicas").unwrap_or(1)).sum();
            counts.active = count("/status/pending") + count("/status/running");
            counts.succeeded = count("/status/succeeded");
            counts.failed = count("/status/failed");
        }
        Counts::Replicas => {
            for part in ["Launcher", "Worker"] {
                let of = |key: &str| count(&format!("/status/replicaStatuses/{part}/{key}"));
                counts.wanted += count(&format!("/spec/mpiReplicaSpecs/{part}/replicas"));
                counts.active += of("active");
                counts.succeeded += of("succeeded");
                counts.failed += of("failed");
            }
        }
        Counts::ByState => counts.wanted = roles(object).iter().map(|(_, size)| size).sum::<u64>().max(1),
    }
    counts
}

/// The pods that a Job lacks, and those that it should have now.
pub(crate) fn missing_pods(job: &Value) -> (u64, u64) {
    let count = |pointer: &str, default: u64| number(job, pointer).unwrap_or(default);
    let left = count("/spec/completions", 1).saturating_sub(count("/status/succeeded", 0));
    let wanted = left.min(count("/spec/parallelism", 1));
    (wanted.saturating_sub(count("/status/active", 0)), wanted)
}

/// Whether pods that should run are not there or not ready, by what the object says.
pub(crate) fn is_short(workload: &Workload, object: &Value) -> bool {
    match workload.counts {
        Counts::Job => {
            let (missing, wanted) = missing_pods(object);
            missing > 0 || ready(workload, object).is_some_and(|ready| ready < wanted)
        }
        Counts::ChildJobs(at) => items(object, at).any(|status| {
            let of = |key: &str| number(status, key).unwrap_or_default();
            number(status, "/ready")
                .is_some_and(|ready| ready < of("/active").max(1) && of("/succeeded") == 0)
        }),
        Counts::Volcano | Counts::Replicas | Counts::ByState => false,
    }
}

/// The counts of a kind that has none: all of its tasks are in the state of the job.
pub(crate) fn by_state(wanted: u64, state: JobState) -> TaskCounts {
    let when = |is: bool| if is { wanted } else { 0 };
    TaskCounts {
        wanted,
        active: when(state == JobState::Running),
        succeeded: when(state == JobState::Succeeded),
        failed: u64::from(matches!(state, JobState::Failed | JobState::TimedOut)),
    }
}

/// How many pods are ready, if the object says so.
///
/// A JobSet's `ready` counts child Jobs of which every pod is ready or has succeeded: it does not count single pods.
pub(crate) fn ready(workload: &Workload, object: &Value) -> Option<u64> {
    match workload.counts {
        Counts::Job => number(object, "/status/ready"),
        Counts::Volcano => number(object, "/status/running"),
        Counts::ChildJobs(_) | Counts::Replicas | Counts::ByState => None,
    }
}
