use serde_json::{Value, json};

use super::check;
use crate::lifecycle::{Action, AttemptFacts, Input, LEFT};
use jobc_container::process::Exit;
use jobc_place::state::JobState;

/// A job whose tasks say by 85 that they want to be resumed.
fn contract(roles: &Value) -> Value {
    json!({"preemption": {"exit_codes": [85]}, "roles": roles})
}

#[test]
fn an_attempt_that_asks_to_be_resumed_does_not_count() {
    insta::assert_snapshot!(check(
        &contract(&json!({"main": {"retry": {"max": 1, "backoff_seconds": 5}}})),
        "0 prepared
         0 created main-0
         0 started main-0
         10 ended main-0 85
         15 created main-0
         15 started main-0
         20 ended main-0 85
         30 created main-0
         30 started main-0
         100 ended main-0 85
         105 created main-0
         105 started main-0
         106 ended main-0 1
         111 created main-0
         111 started main-0
         112 ended main-0 1"
    ));
}

#[test]
fn all_ranks_are_resumed_together() {
    insta::assert_snapshot!(check(
        &contract(
            &json!({"rank": {"instances": 2, "retry": {"max": 0, "scope": "job", "backoff_seconds": 0}}})
        ),
        "0 prepared
         0 created rank-*
         0 started rank-*
         10 ended rank-1 85
         11 ended rank-0 85
         12 created rank-*
         12 started rank-*
         13 ended rank-0 3
         14 ended rank-1 0"
    ));
}

#[test]
fn a_suspended_job_continues_when_there_is_room() {
    insta::assert_snapshot!(check(
        &contract(
            &json!({"main": {"instances": 3, "timeout_seconds": 100, "grace_period_seconds": 9}, "after": {"needs": {"main": "succeeded"}}})
        ),
        "0 prepared
         0 created main-*
         0 started main-*
         1 ended main-0 0
         50 suspend
         51 ended main-1 85
         59 ended main-2 -9
         1000 readmitted
         1000 created main-*
         1000 started main-*
         1099 ended main-1 0
         1099 ended main-2 0
         1099 created after-0
         1099 started after-0
         1100 ended after-0 0"
    ));
}

#[test]
fn a_task_that_is_done_when_it_is_asked_to_leave_has_succeeded() {
    let story = "0 prepared
         0 created main-0
         0 started main-0
         1 suspend
         2 ended main-0 0
         3 readmitted
         3 created main-0
         3 started main-0
         4 ended main-0 0";
    insta::assert_snapshot!(check(&contract(&json!({"main": {}})), story));
    // Without exit codes, it may have left.
    insta::assert_snapshot!(check(&json!({"preemption": {}, "roles": {"main": {}}}), story));
}

#[test]
fn on_a_cluster_the_whole_job_leaves() {
    let mut job = crate::lifecycle::Lifecycle::leaving(&super::plan(&contract(&json!({"main": {}}))));
    let now = std::time::Duration::ZERO;
    for input in [Input::Prepared, Input::Created(0), Input::Started(0)] {
        job.step(now, input);
    }
    let seen = AttemptFacts::default();
    let actions = job.step(now, Input::Ended { task: 0, exit: Exit::Code(85), note: None, seen });
    let Some(Action::End(state, end)) = actions.last() else { panic!("{actions:?}") };
    assert_eq!((*state, end.exit_code), (JobState::Stopped, LEFT));
}

#[test]
fn a_suspended_job_can_be_stopped() {
    insta::assert_snapshot!(check(
        &contract(&json!({"main": {"instances": 2}})),
        "0 prepared
         0 created main-0
         1 suspend
         2 created main-1
         3 ended main-0 -9
         3 ended main-1 -9
         4 stop"
    ));
}

#[test]
fn a_job_whose_budget_is_used_up_is_asked_to_leave() {
    insta::assert_snapshot!(check(
        &contract(&json!({"main": {"instances": 2, "grace_period_seconds": 9, "retry": {"max": 5}}})),
        "0 prepared
         0 created main-*
         0 started main-*
         50 budget 2.00 of 2 GPU-hours
         51 ended main-0 85
         59 ended main-1 -9"
    ));
}
