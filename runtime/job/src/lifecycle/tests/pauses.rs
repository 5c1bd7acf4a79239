use serde_json::json;

use super::check;

#[test]
fn no_time_limit_runs_out_while_a_job_is_frozen() {
    insta::assert_snapshot!(check(
        &json!({"timeout_seconds": 100, "roles": {"main": {"timeout_seconds": 50}}}),
        "0 prepared
         0 created main-0
         0 started main-0
         10 pause
         11 pause
         1000 resume
         1001 resume
         1041 tick"
    ));
}

#[test]
fn nothing_is_made_or_let_go_while_a_job_is_frozen() {
    insta::assert_snapshot!(check(
        &json!({"roles": {"a": {"instances": 2}, "b": {"needs": {"a": "started"}}, "c": {"retry": {"max": 1, "backoff_seconds": 0}}}}),
        "0 prepared
         0 created a-0
         1 created c-0
         1 pause
         2 created a-1
         5 resume
         6 started *
         7 pause
         8 ended c-0 1
         9 resume"
    ));
}

#[test]
fn a_frozen_job_that_is_stopped_goes_on() {
    insta::assert_snapshot!(check(
        &json!({"roles": {"main": {}}}),
        "0 prepared
         0 created main-0
         0 started main-0
         10 pause
         100 stop
         131 ended main-0 -9"
    ));
}

#[test]
fn a_frozen_job_that_fails_is_ended_like_any_other() {
    insta::assert_snapshot!(check(
        &json!({"roles": {"main": {"instances": 2}}}),
        "0 prepared
         0 created main-*
         0 started main-*
         10 pause
         100 ended main-1 -9
         101 pause
         131 ended main-0 -9"
    ));
}
