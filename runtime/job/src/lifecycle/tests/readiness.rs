use serde_json::json;

use super::check;

#[test]
fn a_task_that_is_not_ready_in_time_has_failed() {
    insta::assert_snapshot!(check(
        &json!({"roles": {"server": {"ready": {}, "retry": {"max": 1, "backoff_seconds": 2}}}}),
        "0 prepared
         0 created server-0
         0 started server-0
         600 not-ready server-0 not ready within 10m: connection refused
         601 ended server-0 0
         604 created server-0
         604 started server-0
         1204 not-ready server-0 not ready within 10m: connection refused
         1205 ended server-0 -15"
    ));
}

#[test]
fn a_task_that_is_not_ready_any_more_goes_on() {
    insta::assert_snapshot!(check(
        &json!({"gang": "none", "roles": {
            "server": {"instances": 2, "ready": {"keep": true}},
            "client": {"needs": {"server": "ready"}},
        }}),
        "0 prepared
         0 created server-*
         0 started server-*
         1 ready server-0
         2 not-ready server-0 connection refused
         3 ready server-1
         4 ready server-0"
    ));
}

#[test]
fn another_attempt_is_not_ready_because_the_last_one_was() {
    insta::assert_snapshot!(check(
        &json!({"gang": "none", "roles": {
            "server": {"instances": 2, "ready": {}, "retry": {"max": 1, "backoff_seconds": 1}},
            "client": {"needs": {"server": "ready"}},
        }}),
        "0 prepared
         0 created server-*
         0 started server-*
         1 ready server-0
         2 ended server-0 1
         3 ready server-1
         4 created server-0
         4 started server-0
         5 ready server-0"
    ));
}
