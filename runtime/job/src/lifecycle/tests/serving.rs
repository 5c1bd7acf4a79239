use serde_json::json;

use super::check;

#[test]
fn those_that_serve_end_with_those_that_launch() {
    insta::assert_snapshot!(check(
        &json!({"members": ["worker"], "roles": {
            "worker": {"instances": 3, "launch": "first"},
            "eval": {"needs": {"worker": "succeeded"}},
        }}),
        "0 prepared
         0 created worker-*
         0 started worker-*
         9 ended worker-0 0
         10 ended worker-1 143
         50 ended worker-2 -9
         51 created eval-0
         51 started eval-0
         52 ended eval-0 0"
    ));
}

#[test]
fn a_launcher_and_its_workers() {
    let job = json!({"members": ["launcher", "worker"], "roles": {
        "worker": {"instances": 2, "launch": "none"},
        "launcher": {"needs": {"worker": "started"}},
    }});
    insta::assert_snapshot!(check(
        &job,
        "0 prepared
         0 created worker-*
         0 started worker-*
         1 created launcher-0
         1 started launcher-0
         2 ended launcher-0 0
         3 ended worker-0 0
         3 ended worker-1 255"
    ));
    insta::assert_snapshot!(check(
        &job,
        "0 prepared
         0 created worker-*
         0 started worker-*
         1 ended worker-0 255
         2 ended worker-1 0
         3 created launcher-0
         4 ended launcher-0 -9"
    ));
}

#[test]
fn those_that_serve_are_there_again_when_the_job_is_tried_again() {
    insta::assert_snapshot!(check(
        &json!({"members": ["worker"], "roles": {
            "worker": {"instances": 2, "launch": "first", "retry": {"max": 1, "scope": "job", "backoff_seconds": 1}},
        }}),
        "0 prepared
         0 created worker-*
         0 started worker-*
         1 ended worker-0 1
         2 ended worker-1 0
         3 created worker-*
         3 started worker-*
         4 ended worker-0 0
         5 ended worker-1 0"
    ));
}

#[test]
fn those_that_would_have_served_too_late_are_not_begun() {
    insta::assert_snapshot!(check(
        &json!({"members": ["launcher", "worker"], "roles": {
            "launcher": {},
            "worker": {"launch": "none", "needs": {"launcher": "succeeded"}},
            "eval": {"needs": {"worker": "succeeded"}},
        }}),
        "0 prepared
         0 created launcher-0
         0 started launcher-0
         1 ended launcher-0 0"
    ));
    insta::assert_snapshot!(check(
        &json!({"members": ["launcher", "worker"], "roles": {
            "launcher": {},
            "worker": {"launch": "none", "needs": {"launcher": "succeeded"}},
            "eval": {"needs": {"worker": "started"}},
        }}),
        "0 prepared
         0 created launcher-0
         0 started launcher-0
         1 ended launcher-0 0"
    ));
}
