use serde_json::json;

use super::check;

#[test]
fn a_stop_asks_and_then_kills() {
    insta::assert_snapshot!(check(
        &json!({"roles": {"a": {"grace_period_seconds": 5}, "b": {}, "c": {"needs": {"b": "succeeded"}}}}),
        "0 prepared
         0 created *
         0 started a-0
         0 started b-0
         10 stop
         11 ended b-0 0
         20 ended a-0 -9"
    ));
}

#[test]
fn an_interrupt_asks_twice_and_then_kills() {
    insta::assert_snapshot!(check(
        &json!({"roles": {"a": {"grace_period_seconds": 6}, "b": {}, "late": {"timeout_seconds": 9}}}),
        "0 prepared
         0 created *
         0 started *
         10 interrupt
         11 interrupt
         12 ended b-0 0
         17 ended a-0 -9
         18 ended late-0 -15"
    ));
}

#[test]
fn a_second_stop_shortens_the_wait_and_a_kill_ends_it() {
    insta::assert_snapshot!(check(
        &json!({"roles": {"main": {}}}),
        "0 prepared
         0 created main-0
         0 started main-0
         10 stop 60
         11 stop 5
         12 stop 100
         13 kill
         14 kill
         15 ended main-0 -9"
    ));
}

#[test]
fn what_is_not_let_go_yet_is_removed() {
    insta::assert_snapshot!(check(
        &json!({"roles": {"main": {"instances": 3}}}),
        "0 prepared
         1 created main-0
         2 stop
         3 created main-1
         4 ended main-0 -9
         5 ended main-1 -9
         6 not-started main-2 125 cannot make it"
    ));
}

#[test]
fn the_jobs_time_is_up_before_every_start_is_seen() {
    insta::assert_snapshot!(check(
        &json!({"timeout_seconds": 1, "roles": {"main": {"instances": 2}}}),
        "0 prepared
         0 created *
         1 started main-0
         1 started main-1
         2 ended main-0 -15
         2 ended main-1 -15"
    ));
}

#[test]
fn a_job_that_was_not_prepared_ends_at_once() {
    insta::assert_snapshot!(check(&json!({"roles": {"main": {}}}), "0 kill"));
    insta::assert_snapshot!(check(
        &json!({"roles": {"main": {}}}),
        "0 broken cannot fetch `https://example.org/a.tar`: 404"
    ));
}

#[test]
fn a_job_that_cannot_go_on() {
    insta::assert_snapshot!(check(
        &json!({"roles": {"main": {}}}),
        "0 prepared
         0 created main-0
         0 started main-0
         1 broken cannot write `job.json`: no space left on device (ENOSPC)
         2 ended main-0 -15"
    ));
}

#[test]
fn a_task_that_cannot_be_made_and_one_that_cannot_be_executed() {
    let job = json!({"roles": {"prepare": {}}});
    insta::assert_snapshot!(check(&job, "0 prepared\n1 not-started prepare-0 125 no such root: `/rootfs`"));
    insta::assert_snapshot!(check(
        &job,
        "0 prepared
         1 created prepare-0
         1 not-started prepare-0 127 cannot execute `bash`: no such file or directory (ENOENT)"
    ));
}

#[test]
fn the_jobs_time_is_up() {
    insta::assert_snapshot!(check(
        &json!({"timeout_seconds": 43200, "roles": {"main": {"instances": 4, "completion": {}}}}),
        "5 prepared
         5 created main-*
         5 started main-*
         100 ended main-0 0
         43206 ended main-1 -15
         43207 ended main-2 0
         43300 ended main-3 -9"
    ));
}

#[test]
fn an_attempts_time_is_up() {
    insta::assert_snapshot!(check(
        &json!({"roles": {"main": {"timeout_seconds": 60, "retry": {"max": 1, "on_exit_codes": [124], "backoff_seconds": 1}}}}),
        "0 prepared
         0 created main-0
         0 started main-0
         61 ended main-0 0
         63 created main-0
         63 started main-0
         160 ended main-0 -9"
    ));
}

#[test]
fn the_first_reason_is_the_jobs() {
    insta::assert_snapshot!(check(
        &json!({"timeout_seconds": 100, "roles": {"main": {"instances": 2}}}),
        "0 prepared
         0 created main-*
         0 started main-*
         90 ended main-0 7
         101 stop 1
         102 ended main-1 -15
         103 ended main-1 0"
    ));
}

#[test]
fn what_had_failed_or_served_before_the_job_was_ended_stays_so() {
    insta::assert_snapshot!(check(
        &json!({"members": ["mpi"], "roles": {
            "late": {"timeout_seconds": 10, "completion": {}},
            "other": {},
            "mpi": {"instances": 2, "launch": "first"},
        }}),
        "0 prepared
         0 created *
         0 started *
         5 ended mpi-0 0
         10 stop 20
         11 ended mpi-1 -15
         12 ended late-0 -15
         13 ended other-0 0"
    ));
    insta::assert_snapshot!(check(
        &json!({"roles": {"late": {"timeout_seconds": 10, "retry": {"max": 1}}, "other": {"instances": 2}}}),
        "0 prepared
         0 created *
         0 started *
         11 ended other-1 1
         12 ended late-0 -15
         13 ended other-0 0"
    ));
}
