use super::*;
use serde_json::json;

fn workload(conditions: &Value, more: &Value) -> Value {
    let mut status = more.clone();
    status["conditions"] = conditions.clone();
    json!({"metadata": {"name": "job-x-12345"}, "status": status})
}

#[test]
fn kueue_says_what_is_missing() {
    let pending = |reason: &str, message: &str| {
        workload(
            &json!([{"type": "QuotaReserved", "status": "False", "reason": reason, "message": message}]),
            &json!({}),
        )
    };
    for (object, expected) in [
        (
            pending(
                "Pending",
                "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor a100, 4 more needed",
            ),
            "waits in the queue: couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor a100, 4 more needed",
        ),
        (
            pending("Inadmissible", "LocalQueue user-queue is stopped"),
            "waits in the queue: LocalQueue user-queue is stopped",
        ),
        (
            pending("ExceedsMaxQuota", "33 GPUs."),
            "waits in the queue: 33 GPUs; it never fits without a change of the job or of the quota",
        ),
        (
            workload(
                &json!([{"type": "QuotaReserved", "status": "True"}]),
                &json!({"admissionChecks": [{"name": "prov", "state": "Pending", "message": "nodes are\n being provisioned"}]}),
            ),
            "has its quota, and waits for the admission check `prov`: nodes are being provisioned",
        ),
        (
            workload(
                &json!([{"type": "Evicted", "status": "True", "reason": "Preempted", "message": "m"}]),
                &json!({}),
            ),
            "evicted by Kueue: a job with a higher priority took its place; it is queued again",
        ),
        (
            workload(
                &json!([{"type": "Evicted", "status": "True", "reason": "Deactivated", "message": "m"}]),
                &json!({}),
            ),
            "evicted by Kueue: it was deactivated, and does not start again by itself",
        ),
    ] {
        assert_eq!(of_workload(&object).as_deref(), Some(expected));
    }
    let admitted =
        json!([{"type": "QuotaReserved", "status": "True"}, {"type": "Admitted", "status": "True"}]);
    assert_eq!(of_workload(&workload(&admitted, &json!({}))), None);
}

#[test]
fn the_position_in_a_queue() {
    let items: Vec<Value> = (0..24)
        .map(|n| json!({"metadata": {"name": format!("w{n}")}, "positionInLocalQueue": n, "positionInClusterQueue": n + 7}))
        .collect();
    let answer = json!({"items": items});
    for (name, number) in [("w0", 1), ("w21", 22)] {
        assert_eq!(position(&answer, name), Some(format!("number {number} in the queue")));
    }
    assert_eq!(position(&answer, "other"), None);
}

fn pod(index: u32, status: &Value) -> Pod {
    let labels =
        json!({"jobc.dev/role": "train", "batch.kubernetes.io/job-completion-index": index.to_string()});
    serde_json::from_value(
        json!({"metadata": {"name": "p", "uid": index.to_string(), "labels": labels}, "status": status}),
    )
    .unwrap()
}

#[test]
fn pods_say_why_they_wait_or_were_ended() {
    let unscheduled = |reason: &str, message: &str| json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": reason, "message": message}]});
    let waiting = |reason: &str, message: &str| json!({"phase": "Pending", "containerStatuses": [{"name": "main", "state": {"waiting": {"reason": reason, "message": message}}}]});
    let ended = |reason: &str, code: i64| json!({"phase": "Failed", "containerStatuses": [{"name": "main", "state": {"terminated": {"reason": reason, "exitCode": code}}}]});
    let disrupted = |reason: &str| json!({"phase": "Failed", "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "m."}]});
    for (status, expected) in [
        (
            unscheduled(
                "Unschedulable",
                "0/8 nodes are available: 6 Insufficient nvidia.com/gpu, 2 node(s) had untolerated taint(s). preemption: 0/8 nodes are available: 8 No preemption victims found.",
            ),
            Some(
                "no node fits: 0/8 nodes are available: 6 Insufficient nvidia.com/gpu, 2 node(s) had untolerated taint(s)",
            ),
        ),
        (unscheduled("SchedulingGated", ""), Some("held back by a scheduling gate, as of Kueue's topology")),
        (
            waiting("ImagePullBackOff", "Back-off pulling image \"x\""),
            Some("cannot get the image: Back-off pulling image \"x\""),
        ),
        (waiting("ErrImagePull", ""), Some("cannot get the image: ErrImagePull")),
        (
            waiting("CreateContainerConfigError", "couldn't find key token in Secret ml/x-secrets"),
            Some("cannot create the container: couldn't find key token in Secret ml/x-secrets"),
        ),
        (waiting("ContainerCreating", ""), None),
        (ended("OOMKilled", 137), Some("killed: it exceeded its memory limit")),
        (ended("Error", 3), Some("exited with 3")),
        (ended("Completed", 0), None),
        (disrupted("PreemptionByScheduler"), Some("preempted by a pod with a higher priority")),
        (disrupted("EvictionByEvictionAPI"), Some("evicted: its node is being drained")),
        (disrupted("DeletionByTaintManager"), Some("its node was lost or tainted")),
        (disrupted("TerminationByKubelet"), Some("ended by its node: m")),
        (disrupted("DeletionByPodGC"), Some("its node does not exist any more")),
        (
            json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}),
            Some("evicted: The node was low on resource: memory"),
        ),
        (json!({"phase": "Failed", "reason": "DeadlineExceeded"}), Some("exceeded its time limit")),
        (json!({"phase": "Running"}), None),
    ] {
        assert_eq!(of_pod(&pod(0, &status)).as_deref(), expected, "{status}");
    }
}

#[test]
fn tasks_with_one_reason_share_a_sentence() {
    let gated =
        json!({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]});
    let evicted = json!({"phase": "Failed", "reason": "DeadlineExceeded"});
    let mut pods: Vec<Pod> = (0..10_000).map(|index| pod(index, &gated)).collect();
    pods.push(pod(10_000, &evicted));
    assert_eq!(
        of_pods(&pods),
        [
            "train-0, train-1 and 9998 more tasks: held back by a scheduling gate, as of Kueue's topology",
            "train-10000: exceeded its time limit",
        ]
    );
}

#[test]
fn events_say_why_there_are_no_pods() {
    let event = |reason: &str, message: &str| Event {
        time: String::new(),
        object: "job/x".to_owned(),
        is_warning: true,
        reason: reason.to_owned(),
        message: message.to_owned(),
        count: 1,
    };
    for (events, expected) in [
        (
            vec![event(
                "FailedCreate",
                "Error creating: pods \"x-0\" is forbidden: exceeded quota: gpus, requested: limits.nvidia.com/gpu=8, used: limits.nvidia.com/gpu=4, limited: limits.nvidia.com/gpu=8",
            )],
            vec![
                "no pods: exceeded quota: gpus, requested: limits.nvidia.com/gpu=8, used: limits.nvidia.com/gpu=4, limited: limits.nvidia.com/gpu=8",
            ],
        ),
        (
            vec![event(
                "FailedCreate",
                "Error creating: pods \"x-0\" is forbidden: violates PodSecurity \"restricted:latest\": runAsNonRoot != true",
            )],
            vec!["no pods: the job violates PodSecurity \"restricted:latest\": runAsNonRoot != true"],
        ),
        (
            vec![event(
                "FailedCreate",
                "Error creating: admission webhook \"w.example\" denied the request: no",
            )],
            vec!["no pods: admission webhook \"w.example\" denied the request: no"],
        ),
        (
            vec![
                event("NotTriggerScaleUp", "pod didn't trigger scale-up: 2 max node group size reached"),
                event("TriggeredScaleUp", ""),
            ],
            vec!["the autoscaler is adding a node"],
        ),
        (vec![event("Scheduled", "")], vec![]),
    ] {
        assert_eq!(of_events(&events), expected);
    }
}
