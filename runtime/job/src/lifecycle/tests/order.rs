use serde_json::json;

use super::check;

#[test]
fn a_single_task_succeeds() {
    insta::assert_snapshot!(check(
        &json!({"roles": {"main": {}}}),
        "0 prepared
         1 created main-0
         1 started main-0
         9 ended main-0 0
         10 tick"
    ));
}

#[test]
fn a_role_waits_until_another_has_succeeded() {
    insta::assert_snapshot!(check(
        &json!({"roles": {"prepare": {"instances": 2}, "train": {"instances": 2, "needs": {"prepare": "succeeded"}}}}),
        "0 prepared
         1 created prepare-*
         1 started prepare-*
         5 ended prepare-1 0
         6 ended prepare-0 0
         7 created train-*
         7 started train-*
         8 ended train-* 0"
    ));
}

#[test]
fn a_role_waits_until_some_of_another_run() {
    insta::assert_snapshot!(check(
        &json!({"gang": "none", "roles": {"ps": {"instances": 3}, "worker": {"needs": {"ps": ["started", 2]}}}}),
        "0 prepared
         1 created ps-2
         1 started ps-2
         2 created ps-0
         2 started ps-0
         3 created worker-0"
    ));
}

#[test]
fn a_role_waits_until_another_is_ready() {
    insta::assert_snapshot!(check(
        &json!({"roles": {
            "server": {"ready": {}, "completion": {}}, "client": {"needs": {"server": "ready"}, "completion": {"min_succeeded": 1}},
        }}),
        "0 prepared
         1 created server-0
         1 started server-0
         4 ready server-0
         5 created client-0
         5 started client-0
         9 ended client-0 0
         10 ended server-0 143"
    ));
}

#[test]
fn a_chain_and_a_diamond() {
    insta::assert_snapshot!(check(
        &json!({"roles": {
            "last": {"needs": {"left": "succeeded", "right": "started"}},
            "left": {"needs": {"first": "succeeded"}},
            "right": {"needs": {"first": "succeeded"}},
            "first": {},
        }}),
        "0 prepared
         0 created first-0
         0 started first-0
         1 ended first-0 0
         2 created left-0
         2 created right-0
         2 started left-0
         2 started right-0
         3 ended right-0 0
         4 ended left-0 0
         5 created last-0
         5 started last-0
         6 ended last-0 0"
    ));
}

#[test]
fn parallel_limits_concurrent_tasks() {
    insta::assert_snapshot!(check(
        &json!({"roles": {"sweep": {"instances": 5, "parallel": 2}}}),
        "0 prepared
         1 created sweep-0
         1 created sweep-1
         1 started sweep-0
         1 started sweep-1
         2 ended sweep-1 0
         3 created sweep-2
         3 started sweep-2
         4 ended sweep-0 0
         4 ended sweep-2 0
         5 created sweep-3
         5 started sweep-3
         6 created sweep-4
         6 started sweep-4
         7 ended sweep-3 0
         8 ended sweep-4 0"
    ));
}

#[test]
fn a_role_whose_needs_can_never_be_met_ends_the_job() {
    insta::assert_snapshot!(check(
        &json!({"roles": {
            "train": {"instances": 3, "completion": {}},
            "server": {},
            "eval": {"needs": {"train": ["succeeded", 2]}},
        }}),
        "0 prepared
         1 created train-*
         1 created server-0
         1 started train-*
         1 started server-0
         2 ended train-1 3
         4 ended train-2 -11
         5 ended train-0 0
         6 ended server-0 -15"
    ));
    insta::assert_snapshot!(check(
        &json!({"roles": {"server": {"ready": {}, "completion": {}}, "client": {"needs": {"server": "ready"}}}}),
        "0 prepared
         1 created server-0
         1 started server-0
         2 ended server-0 0"
    ));
}

#[test]
fn parallel_limits_concurrent_combinations() {
    let train = |number: u32| {
        let matrix = json!({"role": "train", "number": number, "values": {"lr": number}, "max_parallel": 2});
        json!({"instances": 2, "matrix": matrix, "needs": {"prepare": "succeeded"}, "completion": {}})
    };
    let job = json!({"roles": {
        "prepare": {},
        "train-m0": train(0), "train-m1": train(1), "train-m2": train(2), "train-m3": train(3),
        "evaluate": {"needs": {"train-m0": "succeeded", "train-m1": "succeeded", "train-m2": "succeeded", "train-m3": "succeeded"}},
    }});
    insta::assert_snapshot!(check(
        &job,
        "0 prepared
         1 created prepare-0
         1 started prepare-0
         2 ended prepare-0 0
         3 created train-m0-*
         3 created train-m1-*
         3 started train-m0-*
         3 started train-m1-*
         4 ended train-m1-0 0
         5 ended train-m1-1 0
         6 created train-m2-*
         6 started train-m2-*
         7 ended train-m2-* 0
         8 ended train-m0-* 0
         9 created train-m3-*
         9 started train-m3-*
         10 ended train-m3-* 0"
    ));
    // One that fails for good is over as well, and one that is tried again is not.
    let mut retried = job.clone();
    retried["roles"].as_object_mut().unwrap().remove("evaluate");
    retried["roles"]["train-m0"]["retry"] = json!({"max": 1, "scope": "role", "backoff_seconds": 5});
    insta::assert_snapshot!(check(
        &retried,
        "0 prepared
         1 created prepare-0
         1 started prepare-0
         2 ended prepare-0 0
         3 created train-m0-*
         3 created train-m1-*
         3 started train-m0-*
         3 started train-m1-*
         4 ended train-m0-0 1
         4 ended train-m0-1 143
         5 ended train-m1-* 3
         6 created train-m2-*
         10 created train-m0-*
         11 stop"
    ));
}
