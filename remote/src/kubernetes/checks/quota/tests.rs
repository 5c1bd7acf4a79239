use super::super::demand::pod_sets;
use super::*;
use crate::built::Manifest;
use serde_json::json;

fn job(parallelism: u32, limits: &Value, class: Option<&str>) -> Vec<Manifest> {
    let mut spec = json!({"containers": [{"resources": {"limits": limits}}]});
    if let Some(class) = class {
        spec["priorityClassName"] = class.into();
    }
    let object = json!({"kind": "Job", "metadata": {"name": "train"},
        "spec": {"parallelism": parallelism, "completions": parallelism, "template": {"spec": spec}}});
    vec![Manifest::new("job", object)]
}

fn messages(manifests: &[Manifest], is_gang: bool, quota: &Value) -> Vec<String> {
    let (sets, defaults) = (pod_sets(manifests), Defaults::default());
    let objects = Amounts::from([("count/jobs.batch".to_owned(), 1000)]);
    let demand = Demand { sets: &sets, defaults: &defaults, is_gang, objects: &objects };
    let word = |problem: &Problem| if problem.is_warning { "warning" } else { "error" };
    let found = check(&demand, std::slice::from_ref(quota));
    found.iter().map(|problem| format!("{}: {}", word(problem), problem.message)).collect()
}

fn quota(hard: &Value, used: &Value) -> Value {
    json!({"metadata": {"name": "q"}, "spec": {"hard": hard}, "status": {"hard": hard, "used": used}})
}

#[test]
fn a_job_is_compared_with_what_is_left_of_a_quota() {
    let gpus = |parallelism| job(parallelism, &json!({"nvidia.com/gpu": 8}), None);
    let quota = quota(&json!({"requests.nvidia.com/gpu": "16"}), &json!({"requests.nvidia.com/gpu": "12"}));
    assert_eq!(
        messages(&gpus(1), true, &quota),
        [
            "warning: the pods ask for 8 `requests.nvidia.com/gpu`, and of 16 in the quota `q` 12 are used: the job waits"
        ]
    );
    let more = "the pods ask for 32 `requests.nvidia.com/gpu` at once, and the quota `q` allows 16";
    assert_eq!(messages(&gpus(4), true, &quota), [format!("error: {more}")]);
    assert_eq!(messages(&gpus(4), false, &quota), [format!("warning: {more}")]);
    let pod = job(1, &json!({"nvidia.com/gpu": 32}), None);
    assert_eq!(
        messages(&pod, false, &quota),
        ["error: a pod asks for 32 `requests.nvidia.com/gpu`, and the quota `q` allows 16 in all"]
    );
    assert!(messages(&job(4, &json!({"cpu": 1}), None), true, &quota).is_empty(), "it asks for no GPU");
}

#[test]
fn what_a_quota_counts_must_be_named() {
    let quota = quota(&json!({"limits.memory": "10Gi", "pods": "4"}), &json!({}));
    assert_eq!(
        messages(&job(1, &json!({"cpu": 1}), None), false, &quota),
        ["error: the quota `q` wants `limits.memory` of every container, and one has none"]
    );
    assert_eq!(
        messages(&job(5, &json!({"memory": "1Gi"}), None), false, &quota),
        ["warning: the pods ask for 5 `pods` at once, and the quota `q` allows 4"]
    );
}

#[test]
fn objects_are_counted() {
    let quota = quota(&json!({"count/jobs.batch": "3"}), &json!({"count/jobs.batch": "3"}));
    assert_eq!(
        messages(&job(1, &json!({}), None), false, &quota),
        ["error: the quota `q` allows 3 `count/jobs.batch`, of which 3 are used, and the job needs 1"]
    );
}

#[test]
fn a_quota_with_scopes_is_about_some_pods() {
    let mut quota = quota(&json!({"pods": "1"}), &json!({}));
    let pods = |class| job(2, &json!({"cpu": 1}), class);
    quota["spec"]["scopeSelector"] =
        json!({"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]});
    assert!(messages(&pods(None), false, &quota).is_empty());
    assert_eq!(messages(&pods(Some("high")), false, &quota).len(), 1);
    quota["spec"]["scopeSelector"] =
        json!({"matchExpressions": [{"scopeName": "Later", "operator": "Exists"}]});
    assert!(messages(&pods(Some("high")), false, &quota).is_empty(), "an unknown scope says nothing");
    quota["spec"] = json!({"hard": {"pods": "1"}, "scopes": ["BestEffort"]});
    assert!(messages(&pods(None), false, &quota).is_empty());
    assert_eq!(messages(&job(2, &json!({}), None), false, &quota).len(), 1);
}
