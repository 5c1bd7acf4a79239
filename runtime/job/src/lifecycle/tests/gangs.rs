use serde_json::json;

use super::check;

#[test]
fn no_task_starts_before_all_of_its_gang_are_made() {
    insta::assert_snapshot!(check(
        &json!({"gang": "required", "roles": {"ps": {}, "worker": {"instances": 2}}}),
        "0 prepared
         1 created worker-1
         2 created ps-0
         3 created worker-0
         4 started ps-0"
    ));
}

#[test]
fn without_a_gang_each_starts_when_it_can() {
    insta::assert_snapshot!(check(
        &json!({"gang": "none", "roles": {"worker": {"instances": 2}}}),
        "0 prepared
         1 created worker-1
         2 created worker-0"
    ));
}

#[test]
fn a_gang_of_some() {
    insta::assert_snapshot!(check(
        &json!({"gang": {"min": 2}, "roles": {"worker": {"instances": 4}}}),
        "0 prepared
         1 created worker-3
         2 created worker-1
         3 created worker-0"
    ));
}

#[test]
fn a_gang_is_those_that_may_run_at_once_and_never_spans_a_need() {
    insta::assert_snapshot!(check(
        &json!({"gang": "required", "roles": {
            "sweep": {"instances": 3, "parallel": 2},
            "after": {"instances": 2, "needs": {"sweep": ["succeeded", 1]}},
        }}),
        "0 prepared
         1 created sweep-0
         2 created sweep-1
         3 started sweep-0
         4 ended sweep-0 0
         5 created after-1
         6 created sweep-2
         7 created after-0"
    ));
}

#[test]
fn a_gang_waits_for_the_next_attempt_of_a_member_and_keeps_its_room() {
    insta::assert_snapshot!(check(
        &json!({"roles": {"worker": {"instances": 3, "parallel": 2, "retry": {"max": 1, "backoff_seconds": 5}}}}),
        "0 prepared
         1 created worker-0
         2 not-started worker-1 125 cannot mount `/data`: no such device (ENODEV)
         8 created worker-1
         9 started worker-0
         9 started worker-1
         10 ended worker-0 0"
    ));
}

#[test]
fn a_gang_that_cannot_be_complete_ends_the_job() {
    insta::assert_snapshot!(check(
        &json!({"roles": {"worker": {"instances": 2, "completion": {}}}}),
        "0 prepared
         1 created worker-0
         2 not-started worker-1 127 cannot execute `train`: no such file or directory (ENOENT)
         3 ended worker-0 -9"
    ));
    insta::assert_snapshot!(check(
        &json!({"gang": {"min": 2}, "roles": {"worker": {"instances": 3, "completion": {}}}}),
        "0 prepared
         1 not-started worker-1 125 no room
         1 created worker-0
         2 not-started worker-2 125 no room
         3 ended worker-0 -9"
    ));
}

#[test]
fn a_gang_waits_for_a_role_that_is_tried_again() {
    insta::assert_snapshot!(check(
        &json!({"roles": {"other": {}, "worker": {"instances": 2, "retry": {"max": 1, "scope": "role", "backoff_seconds": 0}}}}),
        "0 prepared
         1 created other-0
         1 created worker-0
         2 not-started worker-1 125 no room
         3 ended worker-0 -9
         4 created worker-0
         5 created worker-1"
    ));
    insta::assert_snapshot!(check(
        &json!({"roles": {"worker": {"instances": 2, "retry": {"max": 1, "scope": "role", "backoff_seconds": 0}}}}),
        "0 prepared
         1 created worker-0
         3 ended worker-0 0
         4 created worker-1
         5 ended worker-1 -9
         5 created worker-0
         6 created worker-1"
    ));
}
