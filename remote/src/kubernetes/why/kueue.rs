//! Kueue: the Workload of a job, and its position in the queue.

use serde_json::Value;

use super::super::state::{items, text};
use super::reason::{Field, Reason, from, ordinal, sentence};

/// The reason in a Workload; `None` if it is admitted.
pub(crate) fn of_workload(workload: &Value) -> Option<Reason> {
    if let Some(evicted) = condition(workload, "Evicted", "True") {
        return Some(Reason::of_job(of_eviction(workload, evicted), Field::Queue));
    }
    if condition(workload, "Admitted", "True").is_some() {
        return None;
    }
    if condition(workload, "QuotaReserved", "True").is_some() {
        return Some(Reason::of_job(of_admission_checks(workload), Field::Queue));
    }
    let pending = condition(workload, "QuotaReserved", "False")?;
    let message = sentence(text(pending, "/message"));
    let after = match text(pending, "/reason") {
        "ExceedsMaxQuota" => "; it never fits without a change of the job or of the quota",
        "NoMatchingFlavor" => "; it never fits without a change of the job or of the queue's flavors",
        "Misconfigured" => "; an administrator must correct the queue",
        "Suspended" => "; the queue is stopped",
        "TopologyPlacementFailed" => "; no part of the cluster's topology has room for all of its tasks",
        "WaitingForPreemptedWorkloads" => "; jobs with a lower priority are being ended for it",
        "WaitingForPodsReady" => "; the pods of an admitted job must be ready first",
        "PendingEvaluation" => "; Kueue has not looked at it yet",
        // `WaitingForQuota`, and `Pending` and `Inadmissible` of Kueue 0.19, say it in the message.
        _ if from(&message, "is stopped").is_some() => "; it starts when the queue is started again",
        _ => "",
    };
    let what = if message.is_empty() { sentence(text(pending, "/reason")) } else { message };
    let field = resource(&what).map_or(Field::Queue, |name| Field::Resource(name.to_owned()));
    Some(Reason::of_job(format!("waits in the queue: {what}{after}"), field))
}

/// The resource that a message says is not there: `insufficient unused quota for nvidia.com/gpu in flavor a100`.
fn resource(message: &str) -> Option<&str> {
    let rest = from(message, "quota for ")?.strip_prefix("quota for ")?;
    rest.split([' ', ',']).next().filter(|name| !name.is_empty())
}

/// Why it no longer runs, and whether it comes again.
fn of_eviction(workload: &Value, evicted: &Value) -> String {
    let message = sentence(text(evicted, "/message"));
    let why = match text(evicted, "/reason") {
        "Preempted" => match condition(workload, "Preempted", "True").map(|found| text(found, "/reason")) {
            Some("InClusterQueue") => "a job with a higher priority in its queue took its place".to_owned(),
            Some("InCohortReclamation") => "another queue took back the quota that it had lent".to_owned(),
            Some("InCohortFairSharing") => "another queue of its cohort was due for its share".to_owned(),
            Some("InCohortReclaimWhileBorrowing") => {
                "another queue took back quota, and borrows for a job with a higher priority".to_owned()
            }
            _ => "a job with a higher priority took its place".to_owned(),
        },
        "PodsReadyTimeout" => "its pods were not ready in time".to_owned(),
        "AdmissionCheck" => format!("an admission check failed{}", after_colon(&message)),
        "ClusterQueueStopped" | "LocalQueueStopped" => "its queue was stopped".to_owned(),
        "NodeFailures" => "a node failed".to_owned(),
        "Deactivated" => format!("it was deactivated{}", after_colon(&message)),
        reason if reason.starts_with("DeactivatedDueTo") => {
            format!("it was deactivated ({reason}){}", after_colon(&message))
        }
        reason => format!("{reason}{}", after_colon(&message)),
    };
    let is_inactive = workload.pointer("/spec/active") == Some(&Value::Bool(false))
        || text(evicted, "/reason").starts_with("Deactivated");
    // False until what evicted it is over: then Kueue itself makes it true (`ClusterQueueRestarted`).
    let held = condition(workload, "Requeued", "False");
    let after = match held.map(|held| text(held, "/reason")) {
        _ if is_inactive => "it does not start again by itself".to_owned(),
        Some("ClusterQueueStopped" | "LocalQueueStopped") => {
            "it is queued again when the queue is started again".to_owned()
        }
        Some(_) => match text(workload, "/status/requeueState/requeueAt") {
            "" => "it is queued again later".to_owned(),
            at => format!("it is queued again at {at}"),
        },
        None => "it is queued again".to_owned(),
    };
    format!("evicted by Kueue: {why}; {after}")
}

fn after_colon(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

/// It has its quota but waits for admission checks: an autoscaler's provisioning, or another cluster.
fn of_admission_checks(workload: &Value) -> String {
    let checks = items(workload, "/status/admissionChecks");
    let open = checks.filter(|check| text(check, "/state") != "Ready");
    let shown: Vec<String> = open
        .map(|check| {
            let state = match text(check, "/state") {
                "Rejected" => " rejected it",
                "Retry" => " is tried again",
                _ => "",
            };
            format!("`{}`{state}{}", text(check, "/name"), after_colon(&sentence(text(check, "/message"))))
        })
        .collect();
    match &shown[..] {
        [] => "has its quota, and is about to be admitted".to_owned(),
        [check] => format!("has its quota, and waits for the admission check {check}"),
        checks => format!("has its quota, and waits for the admission checks {}", checks.join(", ")),
    }
}

fn condition<'a>(workload: &'a Value, kind: &str, status: &str) -> Option<&'a Value> {
    let conditions = workload.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find(|found| text(found, "/type") == kind && text(found, "/status") == status)
}

/// Where a workload is among those that wait, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// In the queue of its namespace.
    pub(crate) local: u64,
    /// Among all workloads that share the quota.
    pub(crate) cluster: u64,
}

impl Position {
    /// `it is 4th in the queue `gpu`, 12th of all that share its quota`.
    pub(crate) fn sentence(self, queue: &str) -> String {
        let shared = if self.cluster == self.local {
            String::new()
        } else {
            format!(", {} of all that share its quota", ordinal(self.cluster))
        };
        format!("it is {} in the queue `{queue}`{shared}", ordinal(self.local))
    }
}

/// The position of a workload, from an answer of `pendingworkloads`; none if the answer does not have it.
pub(crate) fn position(answer: &Value, workload: &str) -> Option<Position> {
    let items = answer.get("items")?.as_array()?;
    let own = items.iter().find(|item| text(item, "/metadata/name") == workload)?;
    let number = |key: &str| own.get(key).and_then(Value::as_u64).unwrap_or_default() + 1;
    Some(Position { local: number("positionInLocalQueue"), cluster: number("positionInClusterQueue") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(workload: &Value, text: &str, field: &Field) {
        let reason = of_workload(workload).expect("a reason");
        assert_eq!((reason.text.as_str(), &reason.field), (text, field));
    }

    fn pending(reason: &str, message: &str) -> Value {
        json!({"status": {"conditions": [
            {"type": "QuotaReserved", "status": "False", "reason": reason, "message": message}
        ]}})
    }

    #[test]
    fn what_is_missing_is_named() {
        let gpu = Field::Resource("nvidia.com/gpu".to_owned());
        let message = "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor a100, 4 more needed";
        check(&pending("Pending", message), &format!("waits in the queue: {message}"), &gpu);
        check(&pending("WaitingForQuota", message), &format!("waits in the queue: {message}"), &gpu);
        check(
            &pending(
                "Inadmissible",
                "couldn't assign flavors: untolerated taint {gpu true NoSchedule} in flavor spot.",
            ),
            "waits in the queue: couldn't assign flavors: untolerated taint {gpu true NoSchedule} in flavor spot",
            &Field::Queue,
        );
        check(
            &pending("Inadmissible", "LocalQueue user-queue is stopped"),
            "waits in the queue: LocalQueue user-queue is stopped; it starts when the queue is started again",
            &Field::Queue,
        );
    }

    #[test]
    fn every_reason_says_what_follows() {
        for (reason, after) in [
            ("ExceedsMaxQuota", "it never fits without a change of the job or of the quota"),
            ("NoMatchingFlavor", "it never fits without a change of the job or of the queue's flavors"),
            ("Misconfigured", "an administrator must correct the queue"),
            ("Suspended", "the queue is stopped"),
            ("TopologyPlacementFailed", "no part of the cluster's topology has room for all of its tasks"),
            ("WaitingForPreemptedWorkloads", "jobs with a lower priority are being ended for it"),
            ("WaitingForPodsReady", "the pods of an admitted job must be ready first"),
            ("PendingEvaluation", "Kueue has not looked at it yet"),
        ] {
            check(&pending(reason, "m."), &format!("waits in the queue: m; {after}"), &Field::Queue);
        }
        check(&pending("WaitingForQuota", ""), "waits in the queue: WaitingForQuota", &Field::Queue);
    }

    #[test]
    fn admission_checks_hold_back() {
        let with = |checks: Value| json!({"status": {"conditions": [{"type": "QuotaReserved", "status": "True"}], "admissionChecks": checks}});
        for (checks, expected) in [
            (
                json!([{"name": "prov", "state": "Pending", "message": "nodes are\n being provisioned"}, {"name": "x", "state": "Ready"}]),
                "has its quota, and waits for the admission check `prov`: nodes are being provisioned",
            ),
            (
                json!([{"name": "a", "state": "Retry"}, {"name": "b", "state": "Rejected", "message": "no."}]),
                "has its quota, and waits for the admission checks `a` is tried again, `b` rejected it: no",
            ),
            (json!([]), "has its quota, and is about to be admitted"),
        ] {
            check(&with(checks), expected, &Field::Queue);
        }
        let admitted = json!({"status": {"conditions": [
            {"type": "QuotaReserved", "status": "True"}, {"type": "Admitted", "status": "True"}
        ]}});
        assert_eq!(of_workload(&admitted), None);
        assert_eq!(of_workload(&json!({})), None);
    }

    #[test]
    fn an_eviction_says_why_and_whether_the_job_comes_again() {
        let evicted = |reason: &str, more: &[Value], spec: &Value| {
            let mut conditions =
                vec![json!({"type": "Evicted", "status": "True", "reason": reason, "message": "m."})];
            conditions.extend(more.iter().cloned());
            json!({"spec": spec, "status": {"conditions": conditions}})
        };
        let preempted = |reason: &str| [json!({"type": "Preempted", "status": "True", "reason": reason})];
        let active = json!({"active": true});
        let again = "; it is queued again";
        let never = "; it does not start again by itself";
        let reopened = "; it is queued again when the queue is started again";
        let held = |reason: &str| [json!({"type": "Requeued", "status": "False", "reason": reason})];
        for (workload, why, after) in [
            (
                evicted("Preempted", &preempted("InClusterQueue"), &active),
                "a job with a higher priority in its queue took its place",
                again,
            ),
            (
                evicted("Preempted", &preempted("InCohortReclamation"), &active),
                "another queue took back the quota that it had lent",
                again,
            ),
            (
                evicted("Preempted", &preempted("InCohortFairSharing"), &active),
                "another queue of its cohort was due for its share",
                again,
            ),
            (
                evicted("Preempted", &preempted("InCohortReclaimWhileBorrowing"), &active),
                "another queue took back quota, and borrows for a job with a higher priority",
                again,
            ),
            (evicted("Preempted", &[], &active), "a job with a higher priority took its place", again),
            (evicted("PodsReadyTimeout", &[], &active), "its pods were not ready in time", again),
            (
                evicted("PodsReadyTimeout", &held("PodsReadyTimeout"), &active),
                "its pods were not ready in time",
                "; it is queued again later",
            ),
            (
                evicted("ClusterQueueStopped", &held("ClusterQueueStopped"), &active),
                "its queue was stopped",
                reopened,
            ),
            (
                evicted("LocalQueueStopped", &held("LocalQueueStopped"), &active),
                "its queue was stopped",
                reopened,
            ),
            (
                evicted(
                    "ClusterQueueStopped",
                    &[json!({"type": "Requeued", "status": "True", "reason": "ClusterQueueRestarted"})],
                    &active,
                ),
                "its queue was stopped",
                again,
            ),
            (
                evicted("Deactivated", &held("ClusterQueueStopped"), &json!({"active": false})),
                "it was deactivated: m",
                never,
            ),
            (evicted("AdmissionCheck", &[], &active), "an admission check failed: m", again),
            (evicted("ClusterQueueStopped", &[], &active), "its queue was stopped", again),
            (evicted("NodeFailures", &[], &active), "a node failed", again),
            (evicted("Deactivated", &[], &json!({"active": false})), "it was deactivated: m", never),
            (
                evicted("DeactivatedDueToRequeuingLimitExceeded", &[], &active),
                "it was deactivated (DeactivatedDueToRequeuingLimitExceeded): m",
                never,
            ),
            (evicted("Other", &[], &active), "Other: m", again),
        ] {
            check(&workload, &format!("evicted by Kueue: {why}{after}"), &Field::Queue);
        }
    }

    #[test]
    fn a_backoff_says_when_the_job_is_queued_again() {
        let workload = json!({"spec": {"active": true}, "status": {
            "requeueState": {"count": 2, "requeueAt": "2026-01-01T00:02:00Z"},
            "conditions": [
                {"type": "Evicted", "status": "True", "reason": "PodsReadyTimeout"},
                {"type": "Requeued", "status": "False", "reason": "PodsReadyTimeout"},
            ],
        }});
        let text =
            "evicted by Kueue: its pods were not ready in time; it is queued again at 2026-01-01T00:02:00Z";
        check(&workload, text, &Field::Queue);
    }

    #[test]
    fn the_position_in_a_queue() {
        let items: Vec<Value> = (0..24)
            .map(|n| json!({"metadata": {"name": format!("w{n}")}, "positionInLocalQueue": n, "positionInClusterQueue": n + n / 3}))
            .collect();
        let answer = json!({"items": items});
        for (name, sentence) in [
            ("w0", "it is 1st in the queue `gpu`"),
            ("w3", "it is 4th in the queue `gpu`, 5th of all that share its quota"),
            ("w21", "it is 22nd in the queue `gpu`, 29th of all that share its quota"),
        ] {
            assert_eq!(position(&answer, name).unwrap().sentence("gpu"), sentence);
        }
        assert_eq!(position(&answer, "other"), None);
    }
}
