//! Jobs of many tasks: a step costs what it changes. One that searched the job would take hours here, not seconds.

use std::time::Instant;

use serde_json::{Value, json};

use super::*;

/// Carries out every action of a job at once, until it ends.
fn run(written: &Value) {
    let began = Instant::now();
    let mut job = Lifecycle::new(&plan(written));
    let mut inputs = std::collections::VecDeque::from([Input::Prepared]);
    let mut last = None;
    while let Some(input) = inputs.pop_front() {
        for action in job.step(Duration::ZERO, input) {
            match action {
                Action::Create { task, .. } => inputs.push_back(Input::Created(task)),
                Action::Start(task) => {
                    inputs.push_back(Input::Started(task));
                    inputs.push_back(Input::Ended {
                        task,
                        exit: Exit::Code(0),
                        note: None,
                        seen: AttemptFacts::default(),
                    });
                }
                action => last = Some(action),
            }
        }
    }
    assert!(matches!(last, Some(Action::End(JobState::Succeeded, _))), "{last:?}");
    assert!(began.elapsed() < Duration::from_secs(30), "it took {:?}", began.elapsed());
}

#[test]
fn a_gang_of_a_hundred_thousand() {
    run(&json!({"roles": {"worker": {"instances": 100_000}}}));
}

#[test]
fn a_hundred_thousand_of_which_few_run_at_once() {
    run(
        &json!({"roles": {"sweep": {"instances": 100_000, "parallel": 3, "completion": {"min_succeeded": 100_000}}}}),
    );
}

#[test]
fn a_chain_of_roles() {
    let mut roles = json!({"r0": {}});
    for number in 1..5000 {
        roles[format!("r{number}")] = json!({"needs": {format!("r{}", number - 1): "succeeded"}});
    }
    run(&json!({"roles": roles}));
}
