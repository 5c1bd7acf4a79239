//! Retries and thresholds of a single Job.

use serde_json::{Value, json};

use super::at;
use super::support::refusals;

fn check(role: Value, expected: Value) {
    let mut changes = json!({"roles": {}});
    changes["roles"]["main"] = role;
    let Value::Object(expected) = expected else { panic!("expected fields are a map") };
    for (key, value) in expected {
        assert_eq!(at(json!({}), &changes, &format!("/spec/{key}")), value, "{key} of {changes}");
    }
}

#[test]
fn nothing_is_retried_by_default() {
    check(json!({}), json!({"backoffLimit": 0, "backoffLimitPerIndex": null, "podFailurePolicy": null}));
    check(
        json!({"instances": 4}),
        json!({"backoffLimit": 0, "backoffLimitPerIndex": null, "completions": 4, "parallelism": 4}),
    );
}

#[test]
fn each_instance_has_its_own_retries() {
    check(
        json!({"instances": 4, "parallel": 2, "retry": {"max": 3, "scope": "task"}}),
        json!({"backoffLimit": null, "backoffLimitPerIndex": 3, "maxFailedIndexes": 0, "parallelism": 2}),
    );
    check(json!({"retry": {"max": 3, "scope": "role"}}), json!({"backoffLimit": 3}));
}

#[test]
fn some_failures_may_be_borne() {
    check(
        json!({"instances": 4, "completion": {"min_succeeded": 2, "min_failed": 3}}),
        json!({"backoffLimitPerIndex": 0, "maxFailedIndexes": 2, "successPolicy": {"rules": [{"succeededCount": 2}]}}),
    );
    check(
        json!({"instances": 4, "completion": {"min_failed": null}}),
        json!({"backoffLimitPerIndex": 0, "maxFailedIndexes": null}),
    );
}

#[test]
fn other_exit_codes_are_final() {
    let disrupted =
        json!({"action": "Count", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]});
    check(
        json!({"retry": {"max": 1, "scope": "task", "on_exit_codes": [143, 42, 42]}}),
        json!({
            "podReplacementPolicy": "Failed",
            "podFailurePolicy": {"rules": [
                disrupted,
                {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [42, 143]}}
            ]}
        }),
    );
    check(
        json!({"instances": 4, "completion": {"min_failed": 2}, "retry": {"max": 1, "scope": "task", "on_exit_codes": [42]}}),
        json!({"podFailurePolicy/rules/1/action": "FailIndex"}),
    );
}

#[test]
fn only_disruptions_may_be_retried() {
    check(
        json!({"retry": {"max": 2, "scope": "task", "on": ["node", "preempted"]}}),
        json!({"backoffLimit": 2, "podFailurePolicy": {"rules": [
            {"action": "Count", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [0]}}
        ]}}),
    );
    // Together with exit codes, the codes are those of the program.
    check(
        json!({"retry": {"max": 2, "scope": "task", "on": ["node", "preempted"], "on_exit_codes": [75]}}),
        json!({"podFailurePolicy/rules/1/onExitCodes/values": [75]}),
    );
}

#[test]
fn pods_that_leave_do_not_count() {
    let mut changes = json!({"preemption": {"exit_codes": [85]}, "roles": {}});
    changes["roles"]["main"] = json!({"retry": {"max": 0, "scope": "task", "disruptions": "ignore"}});
    let rules = json!([
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [85]}}
    ]);
    assert_eq!(at(json!({}), &changes, "/spec/podFailurePolicy/rules"), rules);
    assert_eq!(at(json!({}), &changes, "/spec/backoffLimit"), 0);
    // The other ranks are restarted with it.
    changes["roles"]["main"] =
        json!({"instances": 2, "retry": {"max": 0, "scope": "job", "disruptions": "ignore"}});
    let action = |number: u8| at(json!({"kind": "jobset"}), &changes, &path_of_rule(number));
    assert_eq!((action(0), action(1)), (json!("FailJob"), json!("FailJob")));
}

fn path_of_rule(number: u8) -> String {
    format!("/spec/replicatedJobs/0/template/spec/podFailurePolicy/rules/{number}/action")
}

#[test]
fn an_exit_code_may_be_final() {
    check(
        json!({"retry": {"max": 1, "scope": "task", "never_on_exit_codes": [43, 42]}}),
        json!({"podFailurePolicy/rules/1": {
            "action": "FailJob", "onExitCodes": {"operator": "In", "values": [42, 43]}
        }}),
    );
}

#[test]
fn disruptions_may_be_left_uncounted() {
    let ignored =
        json!({"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]});
    check(
        json!({"retry": {"max": 0, "scope": "task", "disruptions": "ignore"}}),
        json!({"backoffLimit": 0, "podReplacementPolicy": "Failed", "podFailurePolicy": {"rules": [ignored]}}),
    );
    check(
        json!({"instances": 4, "retry": {"max": 2, "scope": "task", "on_exit_codes": [42], "disruptions": "ignore"}}),
        json!({"backoffLimitPerIndex": 2, "podFailurePolicy": {"rules": [
            ignored,
            {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [42]}}
        ]}}),
    );
}

#[test]
fn the_launching_instance_decides() {
    check(
        json!({"instances": 4, "launch": "first"}),
        json!({"successPolicy": {"rules": [{"succeededIndexes": "0"}]}}),
    );
}

#[test]
fn all_succeeded_needs_no_policy() {
    check(
        json!({"instances": 4, "completion": {"min_succeeded": 4, "min_failed": 1}}),
        json!({"successPolicy": null}),
    );
}

#[test]
fn a_budget_is_a_time_limit_where_gpus_are_held_at_all_times() {
    let role = |more: Value| {
        let mut role =
            json!({"instances": 2, "resources": {"gpu": {"count": 4, "first": 0, "vendor": "nvidia"}}});
        role.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"budget": {"gpu_hours": 8}, "roles": {"main": role}})
    };
    let plain = role(json!({}));
    assert_eq!(at(json!({}), &plain, "/spec/activeDeadlineSeconds"), 3600);
    assert_eq!(refusals(json!({}), &plain), "");
    let mut shorter = plain.clone();
    shorter["timeout_seconds"] = json!(600);
    assert_eq!(at(json!({}), &shorter, "/spec/activeDeadlineSeconds"), 600);
    let some = refusals(json!({}), &role(json!({"parallel": 1})));
    assert!(some.contains("/budget/gpu_hours\n  Kubernetes has only a time limit"), "{some}");
    let queued = refusals(json!({"queue": {"kueue": "users"}}), &plain);
    assert!(
        queued.contains("/budget/gpu_hours\n  lossy: it becomes a time limit, which begins anew"),
        "{queued}"
    );
    let energy = refusals(json!({}), &json!({"budget": {"energy": "10kWh"}}));
    assert!(energy.contains("/budget/energy\n  nothing of jobc reads the counters"), "{energy}");
}
