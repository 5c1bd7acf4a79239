use serde_json::json;

use super::check;

#[test]
fn a_task_is_tried_again_after_longer_and_longer_waits() {
    insta::assert_snapshot!(check(
        &json!({"roles": {"main": {"retry": {"max": 2, "backoff_seconds": 10}}}}),
        "0 prepared
         0 created main-0
         0 started main-0
         1 ended main-0 1
         11 created main-0
         11 started main-0
         12 ended main-0 -9 memory limit 2 GiB reached
         33 created main-0
         33 started main-0
         34 ended main-0 1"
    ));
}

#[test]
fn only_listed_exit_codes_are_tried_again() {
    insta::assert_snapshot!(check(
        &json!({"roles": {"main": {"retry": {"max": 2, "on_exit_codes": [75, 137], "backoff_seconds": 0}}}}),
        "0 prepared
         0 created main-0
         0 started main-0
         1 ended main-0 -9
         2 created main-0
         2 started main-0
         3 ended main-0 1"
    ));
}

#[test]
fn only_listed_kinds_of_failures_are_tried_again() {
    insta::assert_snapshot!(check(
        &json!({"roles": {"main": {"retry": {"max": 5, "on": ["out of memory"], "on_exit_codes": [75], "backoff_seconds": 0}}}}),
        "0 prepared
         0 created main-0
         0 started main-0
         1 ended main-0 -9 out of memory: used 64 MiB of 64 MiB
         2 created main-0
         2 started main-0
         3 ended main-0 75
         4 created main-0
         4 started main-0
         5 ended main-0 1"
    ));
}

#[test]
fn failed_checks_use_up_no_retry() {
    // As often again as the command may be, and the command has its own count.
    insta::assert_snapshot!(check(
        &json!({"roles": {"main": {"preflight": [{"gpus": {}}], "retry": {"max": 1, "backoff_seconds": 0}}}}),
        "0 prepared
         0 created main-0
         0 started main-0
         1 ended main-0 86 jobc: preflight failed: gpus: 7 of 8 are visible (main-0 on n1: the node is at fault)
         2 created main-0
         2 started main-0
         3 ended main-0 1
         4 created main-0
         4 started main-0
         5 ended main-0 86 jobc: preflight failed: gpus: 7 of 8 are visible (main-0 on n1: the node is at fault)"
    ));
}

#[test]
fn what_no_node_can_repair_is_not_tried_again() {
    insta::assert_snapshot!(check(
        &json!({"roles": {"main": {"instances": 2, "preflight": [{"gpus": {}}], "retry": {"max": 3, "scope": "role", "backoff_seconds": 0}}}}),
        "0 prepared
         0 created main-*
         0 started main-*
         1 ended main-1 86 jobc: preflight failed: gpus: 7 of 8 are visible (main-1 on n1: the node is at fault)
         1 ended main-0 143
         2 created main-*
         2 started main-*
         3 ended main-0 87 jobc: preflight failed: data: /data has no files (main-0 on n1: the job is at fault)"
    ));
}

#[test]
fn memory_grows_after_an_attempt_that_ran_out_of_it() {
    insta::assert_snapshot!(check(
        &json!({"roles": {"main": {"retry": {"max": 4, "memory_bytes": [96, 144], "backoff_seconds": 0}}}}),
        "0 prepared
         0 created main-0
         0 started main-0
         1 ended main-0 -9 out of memory: used 64 B of 64 B
         2 created main-0
         2 started main-0
         3 ended main-0 1
         4 created main-0
         4 started main-0
         5 ended main-0 1 out of memory: used 96 B of 96 B
         6 created main-0
         6 started main-0
         7 ended main-0 -9 out of memory: used 144 B of 144 B
         8 created main-0
         8 started main-0
         9 ended main-0 0"
    ));
}

#[test]
fn the_memory_of_a_whole_role_grows_together() {
    insta::assert_snapshot!(check(
        &json!({"roles": {"main": {"instances": 2, "retry": {"max": 1, "scope": "role", "memory_bytes": [96], "backoff_seconds": 0}}}}),
        "0 prepared
         0 created main-*
         0 started main-*
         1 ended main-1 -9 out of memory: used 64 B of 64 B
         1 ended main-0 143
         2 created main-*
         2 started main-*
         3 ended main-* 0"
    ));
}

#[test]
fn all_other_exit_codes_are_tried_again() {
    insta::assert_snapshot!(check(
        &json!({"roles": {"main": {"retry": {"max": 3, "never_on_exit_codes": [42], "backoff_seconds": 0}}}}),
        "0 prepared
         0 created main-0
         0 started main-0
         1 ended main-0 1
         2 created main-0
         2 started main-0
         3 ended main-0 42"
    ));
}

#[test]
fn a_role_is_tried_again_as_a_whole() {
    insta::assert_snapshot!(check(
        &json!({"roles": {
            "other": {},
            "worker": {"instances": 3, "retry": {"max": 1, "scope": "role", "backoff_seconds": 5}, "needs": {"other": "started"}},
        }}),
        "0 prepared
         0 created other-0
         0 started other-0
         1 created worker-*
         1 started worker-*
         2 ended worker-0 0
         3 ended worker-1 1
         20 ended worker-2 143
         21 created worker-*
         21 started worker-*
         22 ended worker-2 1
         23 ended worker-0 0
         23 ended worker-1 0
         23 ended other-0 0"
    ));
}

#[test]
fn a_job_is_tried_again_as_a_whole() {
    insta::assert_snapshot!(check(
        &json!({"roles": {
            "prepare": {},
            "train": {"instances": 2, "retry": {"max": 1, "scope": "job"}, "needs": {"prepare": "succeeded"}},
        }}),
        "0 prepared
         0 created prepare-0
         0 started prepare-0
         1 ended prepare-0 0
         2 created train-*
         2 started train-*
         3 ended train-1 1
         4 ended train-0 -15
         5 created prepare-0
         5 started prepare-0
         6 ended prepare-0 0
         7 created train-*
         7 started train-*
         8 ended train-1 2
         9 ended train-0 -15"
    ));
}

#[test]
fn tasks_that_wait_for_another_attempt_make_room_for_others() {
    insta::assert_snapshot!(check(
        &json!({"gang": "none", "roles": {"sweep": {"instances": 3, "parallel": 1, "retry": {"max": 1, "backoff_seconds": 10}}}}),
        "0 prepared
         0 created sweep-0
         0 started sweep-0
         1 ended sweep-0 1
         2 created sweep-1
         2 started sweep-1
         20 ended sweep-1 0
         21 created sweep-0"
    ));
}

#[test]
fn a_role_and_then_the_job_are_tried_again() {
    insta::assert_snapshot!(check(
        &json!({"roles": {
            "a": {"retry": {"max": 1, "scope": "role", "backoff_seconds": 60}},
            "b": {"retry": {"max": 1, "scope": "job", "backoff_seconds": 1}},
        }}),
        "0 prepared
         0 created a-0
         0 created b-0
         0 started a-0
         0 started b-0
         1 ended a-0 1
         2 ended b-0 1
         4 created a-0
         4 created b-0
         70 tick"
    ));
}

#[test]
fn a_stop_ends_the_wait_for_another_attempt() {
    insta::assert_snapshot!(check(
        &json!({"roles": {"main": {"retry": {"max": 2, "backoff_seconds": 100}}}}),
        "0 prepared
         0 created main-0
         0 started main-0
         1 ended main-0 1
         2 stop"
    ));
}

#[test]
fn an_attempt_that_makes_no_progress_is_ended() {
    let story = "0 prepared
         0 created main-0
         0 started main-0
         60 stalled main-0 again no log line, no CPU time
         62 ended main-0 -15
         63 created main-0
         63 started main-0
         99 stalled main-0 final no log line, no CPU time
         100 ended main-0 0";
    // No list of `retry` names it, but `stall` does.
    let restart = json!({"after_seconds": 50, "signs": ["logs", "cpu"], "action": "restart"});
    let retry = json!({"max": 2, "on": ["node"], "backoff_seconds": 1});
    insta::assert_snapshot!(check(&json!({"roles": {"main": {"retry": retry, "stall": restart}}}), story));
}
