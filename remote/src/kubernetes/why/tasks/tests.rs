use super::*;
use serde_json::{Value, json};

fn pod(index: u32, status: &Value) -> Pod {
    let labels =
        json!({"jobc.dev/role": "train", "batch.kubernetes.io/job-completion-index": index.to_string()});
    serde_json::from_value(
        json!({"metadata": {"name": "p", "uid": index.to_string(), "labels": labels}, "status": status}),
    )
    .unwrap()
}

fn check(status: &Value, expected: Option<(&str, Field)>) {
    let found = of_pod(&pod(0, status));
    let expected = expected.map(|(text, field)| (text.to_owned(), field));
    assert_eq!(found, expected, "{status}");
}

fn waiting(reason: &str, message: &str) -> Value {
    json!({"phase": "Pending", "containerStatuses": [
        {"name": "main", "state": {"waiting": {"reason": reason, "message": message}}}
    ]})
}

fn ended(reason: &str, code: i64) -> Value {
    json!({"phase": "Failed", "containerStatuses": [
        {"name": "main", "state": {"terminated": {"reason": reason, "exitCode": code, "message": "m."}}}
    ]})
}

#[test]
fn an_init_container_that_failed() {
    let failed = |code: i64, reason: &str, message: &str| {
        json!({"phase": "Failed", "containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "PodInitializing"}}}],
        "initContainerStatuses": [
            {"name": "first", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}},
            {"name": "jobc-code", "state": {"terminated": {"exitCode": code, "reason": reason, "message": message}}},
        ]})
    };
    let no_tar =
        "init container `jobc-code`: exited with 125: jobc: the image has no tar, which unpacks the code";
    let status = failed(125, "Error", "jobc: the image has no tar, which unpacks the code\n");
    check(&status, Some((no_tar, Field::Command)));
    let no_shell =
        "init container `jobc-code`: the container could not start: exec: \"/bin/sh\": no such file";
    check(&failed(128, "StartError", "exec: \"/bin/sh\": no such file"), Some((no_shell, Field::Command)));
    check(&failed(0, "Completed", ""), None);
}

#[test]
fn a_device_that_is_not_healthy() {
    let status = |state: &Value, health: &str, message: &str| {
        let devices = json!([{"resourceID": "GPU-0", "health": "Healthy"},
            {"resourceID": "GPU-7", "health": health, "message": message}]);
        json!({"phase": "Running", "containerStatuses": [{"name": "main", "state": state,
            "allocatedResourcesStatus": [{"name": "nvidia.com/gpu", "resources": devices}]}]})
    };
    let (runs, failed) = (json!({"running": {}}), json!({"terminated": {"reason": "Error", "exitCode": 1}}));
    let gpu = || Field::Resource("nvidia.com/gpu".to_owned());
    check(&status(&runs, "Healthy", ""), None);
    check(&status(&runs, "Unknown", ""), None);
    let text = "GPU-7 (`nvidia.com/gpu`) is unhealthy";
    check(&status(&runs, "Unhealthy", ""), Some((text, gpu())));
    let text = "exited with 1; GPU-7 (`nvidia.com/gpu`) is unhealthy: XID 79";
    check(&status(&failed, "Unhealthy", "XID 79."), Some((text, gpu())));
    check(&status(&json!({"terminated": {"exitCode": 0}}), "Unhealthy", ""), None);
}

#[test]
fn containers_that_cannot_start() {
    let again = "; the cluster tries again without end";
    let pull = format!("cannot get the image: Back-off pulling image \"x\"{again}");
    let key = format!("cannot create the container: couldn't find key token in Secret ml/x-secrets{again}");
    let root =
        format!("cannot create the container: container has runAsNonRoot and image will run as root{again}");
    for (reason, message, expected) in [
        ("ImagePullBackOff", "Back-off pulling image \"x\"", Some((pull.as_str(), Field::Image))),
        (
            "ErrImagePull",
            "",
            Some(("cannot get the image: ErrImagePull; the cluster tries again without end", Field::Image)),
        ),
        (
            "InvalidImageName",
            "Failed to apply default image tag \"X\": invalid reference format",
            Some((
                "cannot get the image: Failed to apply default image tag \"X\": invalid reference format",
                Field::Image,
            )),
        ),
        (
            "CreateContainerConfigError",
            "couldn't find key token in Secret ml/x-secrets",
            Some((key.as_str(), Field::Role)),
        ),
        (
            "CreateContainerConfigError",
            "container has runAsNonRoot and image will run as root",
            Some((root.as_str(), Field::Security)),
        ),
        (
            "RunContainerError",
            "no such file",
            Some(("cannot start the container: no such file", Field::Command)),
        ),
        (
            "CrashLoopBackOff",
            "back-off 5m0s",
            Some(("crashes again and again; the cluster waits before the next try", Field::Command)),
        ),
        ("ContainerCreating", "", None),
        ("PodInitializing", "", None),
    ] {
        check(&waiting(reason, message), expected);
    }
    let init = json!({"initContainerStatuses": [
        {"name": "wait", "state": {"waiting": {"reason": "ErrImagePull", "message": "no"}}}
    ]});
    check(&init, Some(("cannot get the image: no; the cluster tries again without end", Field::Image)));
}

#[test]
fn containers_that_ended() {
    let memory = Field::Resource("memory".to_owned());
    for (reason, code, expected) in [
        ("OOMKilled", 137, Some(("killed: it exceeded its memory limit", memory))),
        ("Error", 3, Some(("exited with 3", Field::Command))),
        ("Error", 137, Some(("exited with 137, as after a SIGKILL", Field::Command))),
        ("Error", 143, Some(("exited with 143, as after a SIGTERM", Field::Command))),
        ("StartError", 128, Some(("the container could not start: m", Field::Command))),
        ("ContainerStatusUnknown", 137, Some(("its node lost track of it", Field::Role))),
        ("Completed", 0, None),
    ] {
        check(&ended(reason, code), expected);
    }
}

#[test]
fn pods_that_were_ended_from_outside() {
    let disrupted = |reason: &str, message: &str| {
        json!({"phase": "Failed", "message": message, "conditions": [
            {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "m."}
        ]})
    };
    for (reason, message, expected) in [
        ("PreemptionByScheduler", "", "preempted by a pod with a higher priority"),
        ("EvictionByEvictionAPI", "", "evicted: its node is being drained"),
        ("DeletionByTaintManager", "", "its node was lost or tainted"),
        ("TerminationByKubelet", "", "ended by its node: m"),
        (
            "TerminationByKubelet",
            "The node was low on resource: memory. ",
            "ended by its node: The node was low on resource: memory",
        ),
        ("DeletionByPodGC", "", "its node does not exist any more"),
        ("New", "", "disrupted (New): m"),
    ] {
        check(&disrupted(reason, message), Some((expected, Field::Role)));
    }
    let gone =
        |reason: &str| json!({"phase": "Failed", "reason": reason, "message": "The node had\n pressure."});
    for (reason, expected, field) in [
        ("Evicted", "evicted by its node: The node had pressure", Field::Role),
        ("DeadlineExceeded", "exceeded its time limit", Field::Timeout),
        ("NodeLost", "its node was lost", Field::Role),
        ("Terminated", "its node was shut down", Field::Role),
        ("UnexpectedAdmissionError", "rejected by its node: The node had pressure", Field::Role),
        (
            "OutOfnvidia.com/gpu",
            "rejected by its node, which has too little nvidia.com/gpu left",
            Field::Resource("nvidia.com/gpu".to_owned()),
        ),
    ] {
        check(&gone(reason), Some((expected, field)));
    }
    check(
        &json!({"phase": "Running", "containerStatuses": [{"name": "main", "state": {"running": {}}}]}),
        None,
    );
}

#[test]
fn tasks_with_the_same_reason_share_a_sentence() {
    let unscheduled = json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes are available: 2 Insufficient cpu."}
    ]});
    let mut pods: Vec<Pod> = (0..12).map(|index| pod(11 - index, &unscheduled)).collect();
    pods.push(pod(12, &ended("OOMKilled", 137)));
    let reasons = of_pods(&pods);
    let texts: Vec<&str> = reasons.iter().map(|reason| reason.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "train-0, train-1 and 10 more tasks: no node fits: 0/2 nodes are available: 2 Insufficient cpu",
            "train-12: killed: it exceeded its memory limit",
        ]
    );
    assert_eq!(reasons[0].field, Field::Resource("cpu".to_owned()));
    assert_eq!(reasons[0].role.as_deref(), Some("train"));
}
