//! A manifest of another project, written as a job: kubernetes-sigs/jobset, `site/static/examples/depends-on`.
//!
//! The manifest is rebuilt here by its meaning: an initializer runs to its end, then a launcher starts, and once its
//! probe has succeeded four workers do.

use serde_json::{Value, json};

use super::at;

/// What the JobSet webhook and the API server would fill in, so that two spellings of one thing compare as equal.
fn defaulted(mut spec: Value) -> Value {
    for job in spec["replicatedJobs"].as_array_mut().unwrap() {
        fill(job, "replicas", json!(1));
        let one = job["template"]["spec"].as_object_mut().unwrap();
        for (key, value) in
            [("completionMode", json!("Indexed")), ("completions", json!(1)), ("parallelism", json!(1))]
        {
            one.entry(key).or_insert(value);
        }
        let container = &mut job["template"]["spec"]["template"]["spec"]["containers"][0];
        if let Some(probe) = container.get_mut("startupProbe") {
            for (key, value) in [("failureThreshold", 3), ("periodSeconds", 10), ("timeoutSeconds", 1)] {
                fill(probe, key, json!(value));
            }
        }
    }
    spec
}

fn fill(value: &mut Value, key: &str, default: Value) {
    value.as_object_mut().unwrap().entry(key).or_insert(default);
}

/// Takes away what jobc always states and the other manifest leaves to defaults of another meaning: pods are never
/// restarted in place and not retried unless requested, get no new privileges, and their container is called `main`.
fn without_what_jobc_states(mut spec: Value) -> Value {
    assert!(spec.get("failurePolicy").is_none());
    for job in spec["replicatedJobs"].as_array_mut().unwrap() {
        let name = job["name"].clone();
        let one = job["template"]["spec"].as_object_mut().unwrap();
        assert_eq!(one.remove("backoffLimit"), Some(json!(0)));
        let pod = one["template"].as_object_mut().unwrap();
        assert!(pod.remove("metadata").is_some());
        let pod = pod["spec"].as_object_mut().unwrap();
        assert_eq!(pod.remove("restartPolicy"), Some(json!("Never")));
        let container = pod["containers"][0].as_object_mut().unwrap();
        assert!(container.remove("securityContext").is_some());
        assert!(container.get("env").is_none());
        assert_eq!(container.insert("name".to_owned(), name), Some(json!("main")));
    }
    spec
}

#[test]
fn a_public_jobset_comes_out_the_same() {
    let container = |name: &str, script: &str| json!({"name": name, "image": "busybox", "command": ["/bin/sh", "-c", script]});
    let pod = |container: Value| json!({"spec": {"containers": [container]}});
    let mut launcher = container("launcher", "launch");
    launcher["startupProbe"] = json!({"exec": {"command": ["echo", "started"]}, "initialDelaySeconds": 5});
    let public = json!({"replicatedJobs": [
        {"name": "initializer", "template": {"spec": {"template": pod(container("initializer", "initialize"))}}},
        {"name": "launcher", "dependsOn": [{"name": "initializer", "status": "Complete"}],
            "template": {"spec": {"template": pod(launcher)}}},
        {"name": "worker", "dependsOn": [{"name": "launcher", "status": "Ready"}],
            "template": {"spec": {"parallelism": 4, "completions": 4, "template": pod(container("worker", "work"))}}}
    ]});

    let run = |script: &str| json!({"argv": {"argv": ["/bin/sh", "-c", script]}});
    let job = json!({
        "name": "depends-on",
        "images": {"main": {"source": {"kind": "reference"}, "reference": "busybox", "declared_at": "/image"}},
        "stages": [["initializer"], ["launcher"], ["worker"]],
        "roles": {
            "initializer": {"command": run("initialize")},
            "launcher": {
                "command": run("launch"),
                "needs": [{"role": "initializer", "state": "succeeded", "min": 1}],
                "ready": {"probe": {"exec": ["echo", "started"]}, "delay_seconds": 5, "every_seconds": 10,
                    "try_timeout_seconds": 1, "timeout_seconds": 35, "keep": false}
            },
            "worker": {
                "instances": 4,
                "command": run("work"),
                "needs": [{"role": "launcher", "state": "ready", "min": 1}]
            }
        }
    });
    for release in ["0.12", "0.8"] {
        let ours = at(json!({"jobset": release}), &job, "/spec");
        assert_eq!(defaulted(without_what_jobc_states(ours)), defaulted(public.clone()), "JobSet {release}");
    }
}
