//! The init container with the checks before a command.

use serde_json::{Value, json};

use super::at;

const SPEC: &str = "/spec/template/spec";

fn changes(role: Value) -> Value {
    let mut changes = json!({"roles": {}});
    changes["roles"]["main"] = role;
    changes
}

fn script(changes: &Value, pod: &str) -> String {
    let script = at(json!({}), changes, &format!("{pod}/initContainers/0/command/2"));
    script.as_str().unwrap_or_default().to_owned()
}

#[test]
fn checks_are_an_init_container_of_the_same_image() {
    let changes = changes(json!({"preflight": [{"disk": {"bytes": 1 << 30, "paths": ["/out"]}}]}));
    let part = |path: &str| at(json!({}), &changes, &format!("{SPEC}/initContainers/0/{path}"));
    assert_eq!(part("name"), "jobc-preflight");
    assert_eq!(part("image"), at(json!({}), &changes, &format!("{SPEC}/containers/0/image")));
    assert_eq!(
        part("securityContext"),
        at(json!({}), &changes, &format!("{SPEC}/containers/0/securityContext"))
    );
    assert_eq!(part("terminationMessagePolicy"), "FallbackToLogsOnError");
    let node = part("env").as_array().and_then(|env| env.last().cloned()).unwrap_or_default();
    assert_eq!(node["valueFrom"]["fieldRef"]["fieldPath"], "spec.nodeName");
    insta::assert_snapshot!(script(&changes, SPEC));
}

#[test]
fn gpus_are_those_of_the_command() {
    let gpus = json!({"gpu": {"count": 2, "vendor": "nvidia", "first": 0}});
    let role = |checks: Value| changes(json!({"preflight": checks, "resources": gpus}));
    let limit = |changes: &Value| {
        at(json!({}), changes, &format!("{SPEC}/initContainers/0/resources/limits/nvidia.com~1gpu"))
    };
    assert_eq!(limit(&role(json!([{"gpus": {}}]))), "2");
    assert_eq!(limit(&role(json!([{"disk": {"bytes": 1, "paths": ["/"]}}]))), Value::Null);
    let driver = json!({"driver": {"oldest": "525.60.13", "needed_by": "CUDA 12.4 of the image"}});
    let script = script(&role(json!([{"gpus": {}}, driver])), SPEC);
    assert!(script.contains("\ngpus 2 GPU '/dev/nvidia[0-9]*'\n"), "{script}");
    assert!(script.contains("\ndriver 525.60.13 'CUDA 12.4 of the image' 87\n"), "{script}");
}

#[test]
fn failed_checks_use_up_no_retry() {
    let checks = json!([{"disk": {"bytes": 1, "paths": ["/"]}}]);
    let rules = |role: Value| at(json!({}), &changes(role), "/spec/podFailurePolicy/rules");
    let rule = |action: &str, code: u8| json!({"action": action, "onExitCodes": {"containerName": "jobc-preflight", "operator": "In", "values": [code]}});
    let retried = rules(json!({"preflight": checks, "retry": {"max": 2, "scope": "task"}}));
    assert_eq!(
        retried.as_array().map(|rules| &rules[1..]),
        Some(&[rule("FailJob", 87), rule("Ignore", 86)][..])
    );
    // Nothing is retried, and so nothing must be told apart.
    assert_eq!(rules(json!({"preflight": checks})), Value::Null);
}

#[test]
fn a_jobset_does_not_count_the_restart_for_a_bad_node() {
    let checks = json!([{"disk": {"bytes": 1, "paths": ["/"]}}]);
    let changes = changes(json!({"instances": 2, "preflight": checks, "retry": {"max": 3, "scope": "job"}}));
    let part = |path: &str| at(json!({"kind": "jobset"}), &changes, &format!("/spec/{path}"));
    let rules = part("replicatedJobs/0/template/spec/podFailurePolicy/rules");
    assert_eq!(rules[1]["onExitCodes"]["values"], json!([86]));
    assert_eq!((&rules[1]["action"], rules.get(2)), (&json!("FailJob"), None));
    let restart = &part("failurePolicy")["rules"][0];
    assert_eq!(restart["action"], "RestartJobSetAndIgnoreMaxRestarts");
    assert_eq!(restart["onJobFailureReasons"], json!(["PodFailurePolicy"]));
    assert_eq!(part("failurePolicy/maxRestarts"), 3);
}
