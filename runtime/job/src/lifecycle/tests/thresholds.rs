use serde_json::json;

use super::check;

#[test]
fn the_first_failure_ends_the_job_unless_written_otherwise() {
    insta::assert_snapshot!(check(
        &json!({"roles": {"worker": {"instances": 4}, "ps": {}}}),
        "0 prepared
         0 created worker-*
         0 created ps-0
         0 started worker-*
         0 started ps-0
         5 ended worker-3 -9 memory limit 2 GiB reached
         6 ended worker-0 0
         7 ended worker-1 -15
         8 ended worker-2 1
         9 ended ps-0 -15"
    ));
}

#[test]
fn a_number_of_failures_ends_the_job() {
    insta::assert_snapshot!(check(
        &json!({"roles": {"worker": {"instances": 3, "completion": {"min_failed": 2}}}}),
        "0 prepared
         0 created worker-*
         0 started worker-*
         1 ended worker-0 1
         2 ended worker-2 2
         3 ended worker-1 -15"
    ));
}

#[test]
fn a_number_of_successes_ends_the_job() {
    insta::assert_snapshot!(check(
        &json!({"roles": {"ps": {}, "worker": {"instances": 2, "completion": {"min_succeeded": 1}}}}),
        "0 prepared
         0 created ps-0
         0 created worker-*
         0 started ps-0
         0 started worker-*
         1 ended worker-1 0
         2 ended ps-0 -15
         31 tick
         32 ended worker-0 -9"
    ));
}

#[test]
fn failures_that_end_nothing() {
    insta::assert_snapshot!(check(
        &json!({"roles": {"worker": {"instances": 2, "completion": {}}}}),
        "0 prepared
         0 created worker-*
         0 started worker-*
         1 ended worker-1 1
         2 ended worker-0 1"
    ));
}

/// The thresholds of an elastic rendezvous are implicit, so its explanation does not name them.
#[test]
fn fewer_than_an_elastic_rendezvous_needs() {
    insta::assert_snapshot!(check(
        &json!({"roles": {"worker": {"instances": 4, "completion": {"min_succeeded": 3, "min_failed": 2}}},
            "members": ["worker"], "elastic": 3}),
        "0 prepared
         0 created worker-*
         0 started worker-*
         1 ended worker-1 1
         2 ended worker-0 -11
         3 ended worker-2 -15
         3 ended worker-3 -15"
    ));
}
