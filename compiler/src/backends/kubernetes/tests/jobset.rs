//! JobSets: order, addresses, success and restarts.

use serde_json::{Value, json};

use super::{at, shown};

#[test]
fn stages_and_addresses() {
    insta::assert_snapshot!(shown(
        json!({}),
        &json!({
            "name": "depends-on",
            "stages": [["initializer"], ["launcher"], ["worker"]],
            "roles": {
                "worker": {
                    "instances": 4,
                    "needs": [{"role": "launcher", "state": "ready", "min": 1}],
                    "command": {"argv": {"argv": ["/bin/sh", "-c", ["nc ", {"host": {"role": "launcher", "index": 0}}]]}}
                },
                "initializer": {},
                "launcher": {
                    "needs": [{"role": "initializer", "state": "succeeded", "min": 1}],
                    "ready": {"probe": {"exec": ["echo", "started"]}, "delay_seconds": 5, "every_seconds": 10,
                        "try_timeout_seconds": 1, "timeout_seconds": 35, "keep": false}
                }
            }
        })
    ));
}

#[test]
fn settings_of_a_role_are_those_of_its_combinations() {
    let matrix = |number: u32| json!({"role": "train", "number": number, "values": {"lr": 0.1}});
    let changes = json!({
        "volumes": {"runs": {"kind": "output", "source": {"kind": "pvc", "name": "runs"}}},
        "roles": {
            "train-m0": {"matrix": matrix(0), "mounts": [{"volume": "runs", "path": "/output", "writable": true, "subpath": "lr-0.1"}]},
            "train-m1": {"matrix": matrix(1)},
            "evaluate": {"needs": [{"role": "train-m0", "state": "succeeded", "min": 1}, {"role": "train-m1", "state": "succeeded", "min": 1}]}
        }
    });
    let settings =
        json!({"roles": {"train": {"priority_class": "low"}, "train-m1": {"priority_class": "high"}}});
    let of = |number: usize, path: &str| {
        at(
            settings.clone(),
            &changes,
            &format!("/spec/replicatedJobs/{number}/template/spec/template/spec/{path}"),
        )
    };
    assert_eq!(
        [of(0, "priorityClassName"), of(1, "priorityClassName"), of(2, "priorityClassName")],
        [json!("low"), json!("high"), Value::Null]
    );
    assert_eq!(of(0, "containers/0/volumeMounts/0/subPath"), json!("lr-0.1"));
}

#[test]
fn parameter_servers_do_not_keep_the_job_alive() {
    let changes = json!({"roles": {
        "ps": {"instances": 2, "launch": "none"},
        "worker": {"instances": 4, "completion": {"min_succeeded": 4, "min_failed": 1}}
    }});
    assert_eq!(
        at(json!({}), &changes, "/spec/successPolicy"),
        json!({"operator": "All", "targetReplicatedJobs": ["worker"]})
    );
    let served = json!({"roles": {"master": {}, "worker": {"instances": 2, "launch": "none"}}});
    assert_eq!(
        at(json!({}), &served, "/spec/successPolicy"),
        json!({"operator": "All", "targetReplicatedJobs": ["master"]})
    );
    assert_eq!(at(json!({}), &json!({"roles": {"a": {}, "b": {}}}), "/spec/successPolicy"), Value::Null);
}

#[test]
fn any_of_several_roles_may_decide() {
    let changes = json!({"roles": {
        "a": {"instances": 4, "completion": {"min_succeeded": 1, "min_failed": 1}},
        "b": {"completion": {"min_succeeded": 1, "min_failed": 1}}
    }});
    assert_eq!(
        at(json!({}), &changes, "/spec/successPolicy"),
        json!({"operator": "Any", "targetReplicatedJobs": ["a", "b"]})
    );
    assert_eq!(
        at(json!({}), &changes, "/spec/replicatedJobs/0/template/spec/successPolicy"),
        json!({"rules": [{"succeededCount": 1}]})
    );
}

fn failure_policy(changes: &Value) -> Value {
    at(json!({"gates": ["RestartJob"]}), changes, "/spec/failurePolicy")
}

#[test]
fn a_disruption_is_told_from_a_final_exit_code() {
    let changes = json!({"roles": {
        "train": {"instances": 4, "retry": {"max": 5, "scope": "job", "never_on_exit_codes": [42], "disruptions": "ignore"}}
    }});
    assert_eq!(
        failure_policy(&changes),
        json!({"maxRestarts": 5, "rules": [
            {"name": "disruptionNotExitCode", "action": "RestartJobSetAndIgnoreMaxRestarts",
                "onJobFailureReasons": ["PodFailurePolicy"],
                "onJobFailureMessagePatterns": ["has condition DisruptionTarget matching"],
                "targetReplicatedJobs": ["train"]},
            {"name": "exitCode", "action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"], "targetReplicatedJobs": ["train"]}
        ]})
    );
}

#[test]
fn restarts_of_everything() {
    let changes = json!({"timeout_seconds": 60, "roles": {
        "prepare": {"retry": {"max": 2, "scope": "task"}},
        "train": {"instances": 4, "retry": {"max": 3, "scope": "job", "on_exit_codes": [143, 137, 143]}}
    }});
    assert_eq!(
        failure_policy(&changes),
        json!({"maxRestarts": 3, "rules": [
            {"name": "timeout", "action": "FailJobSet", "onJobFailureReasons": ["DeadlineExceeded"]},
            {"name": "exitCode", "action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"], "targetReplicatedJobs": ["train"]},
            {"name": "noRetry", "action": "FailJobSet", "targetReplicatedJobs": ["prepare"]}
        ]})
    );
    let of = |i: usize, key: &str| {
        at(json!({}), &changes, &format!("/spec/replicatedJobs/{i}/template/spec/{key}"))
    };
    assert_eq!(of(0, "backoffLimit"), json!(2));
    assert_eq!(of(1, "backoffLimit"), json!(0));
    assert_eq!(of(1, "podFailurePolicy/rules/1/onExitCodes/values"), json!([137, 143]));
}

#[test]
fn restarts_of_one_role() {
    let changes = json!({"roles": {
        "a": {"instances": 2, "retry": {"max": 3, "scope": "role"}},
        "b": {}
    }});
    assert_eq!(
        failure_policy(&changes),
        json!({"maxRestarts": 3, "rules": [
            {"name": "role", "action": "RestartJob", "targetReplicatedJobs": ["a"]},
            {"name": "noRetry", "action": "FailJobSet", "targetReplicatedJobs": ["b"]}
        ]})
    );
}

#[test]
fn disruptions_restart_the_whole_without_being_counted() {
    let changes = json!({"roles": {"train": {"instances": 4, "retry": {"max": 0, "scope": "job", "disruptions": "ignore"}}}});
    assert_eq!(
        failure_policy(&changes),
        json!({"maxRestarts": 0, "rules": [
            {"name": "disruption", "action": "RestartJobSetAndIgnoreMaxRestarts",
                "onJobFailureReasons": ["PodFailurePolicy"], "targetReplicatedJobs": ["train"]},
            {"name": "noRetry", "action": "FailJobSet", "targetReplicatedJobs": ["train"]}
        ]})
    );
    assert_eq!(
        at(json!({}), &changes, "/spec/replicatedJobs/0/template/spec/podFailurePolicy/rules/0/action"),
        json!("FailJob")
    );
    let several = json!({"roles": {
        "a": {"instances": 2, "retry": {"max": 3, "scope": "role", "disruptions": "ignore"}},
        "b": {"retry": {"max": 3, "scope": "job"}}
    }});
    assert_eq!(
        failure_policy(&several),
        json!({"maxRestarts": 3, "rules": [
            {"name": "disruptionOfRole", "action": "RestartJobAndIgnoreMaxRestarts",
                "onJobFailureReasons": ["PodFailurePolicy"], "targetReplicatedJobs": ["a"]},
            {"name": "role", "action": "RestartJob", "targetReplicatedJobs": ["a"]}
        ]})
    );
}

#[test]
fn one_role_that_restarts_as_a_whole_is_a_jobset() {
    let changes = json!({"roles": {"train": {"instances": 4, "retry": {"max": 2, "scope": "job"}}}});
    assert_eq!(at(json!({}), &changes, "/kind"), json!("JobSet"));
    assert_eq!(failure_policy(&changes), json!({"maxRestarts": 2}));
    let alone = json!({"roles": {"train": {"retry": {"max": 2, "scope": "job"}}}});
    assert_eq!(at(json!({}), &alone, "/kind"), json!("Job"));
    assert_eq!(at(json!({}), &alone, "/spec/backoffLimit"), json!(2));
}

#[test]
fn a_service_for_published_ports() {
    insta::assert_snapshot!(shown(
        json!({}),
        &json!({
            "network": "host",
            "roles": {
                "server": {
                    "ports": [
                        {"label": "http", "number": 8000, "count": 2, "auto": false, "publish": "service"},
                        {"label": "metrics", "number": 9090, "count": 1, "auto": false, "publish": "host"}
                    ],
                    "ready": {"probe": {"http": {"port": "http", "path": "/healthz"}}, "delay_seconds": 0, "every_seconds": 5,
                        "try_timeout_seconds": 5, "timeout_seconds": 600, "keep": true}
                },
                "client": {
                    "needs": [{"role": "server", "state": "ready", "min": 1}],
                    "provided_env": {"JOBC_ENDPOINTS_SERVER_METRICS": [{"hosts": {"role": "server", "label": "metrics", "separator": ","}}]}
                }
            }
        })
    ));
}
