//! The kinds of objects on Kubernetes: each has a case under `tests/kinds/`, with what it becomes. The objects are also
//! validated by the published definitions of custom resources, with unknown fields forbidden.
//!
//! A pod is shown as its difference from the pod of the same role in a Job or JobSet.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fs;

use jobc_compiler::diagnostic::Severity;
use jobc_tests::clusters::{ClusterCase, manifests, pods};
use jobc_tests::difference::shorten_pods;
use jobc_tests::{entries, workspace};
use serde_json::{Value, json};

fn cases() -> Vec<ClusterCase> {
    ClusterCase::all("kinds")
}

#[test]
fn a_kind_is_written_as_its_snapshot_shows() {
    for case in cases() {
        let compiled = case.compile();
        assert_eq!(compiled.count(Severity::Error), 0, "{}\n{}", case.name, compiled.text());
        let as_job = case.compile_plain(true);
        let plain = pods(&manifests(&as_job));
        assert!(!plain.is_empty(), "{} as a Job or JobSet\n{}", case.name, as_job.text());
        let mut made = manifests(&compiled);
        // The examples show the files of a job, and the oracles read them.
        made.retain(|(_, value)| value["kind"] != "ConfigMap");
        for (_, value) in &mut made {
            shorten_pods(value, &|role| plain.get(role).cloned());
        }
        case.check(&compiled, &made);
    }
}

/// The same schema with unknown fields forbidden in every object whose fields are listed.
fn strict(schema: &Value) -> Value {
    match schema {
        Value::Array(items) => items.iter().map(strict).collect(),
        Value::Object(map) => {
            let mut out: serde_json::Map<String, Value> =
                map.iter().map(|(key, value)| (key.clone(), strict(value))).collect();
            let is_object = map.get("type").is_none_or(|kind| kind == "object");
            let is_open = map.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(true));
            if is_object && !is_open && map.get("properties").is_some_and(Value::is_object) {
                out.entry("additionalProperties").or_insert(json!(false));
            }
            Value::Object(out)
        }
        value => value.clone(),
    }
}

/// The published definitions next to the checkout, by `apiVersion` and kind; none without that directory.
fn definitions() -> BTreeMap<(String, String), Value> {
    let directory = workspace().join("../shared/schemas/kubernetes-crds");
    let mut found = BTreeMap::new();
    for path in if directory.is_dir() { entries(&directory) } else { vec![] } {
        let text = fs::read_to_string(&path).expect("a definition is text");
        let item: Value = serde_yaml::from_str(&text).expect("a definition is YAML");
        let (group, kind) = (&item["spec"]["group"], &item["spec"]["names"]["kind"]);
        for version in item["spec"]["versions"].as_array().into_iter().flatten() {
            let word = |value: &Value| value.as_str().expect("a definition has names").to_owned();
            let key = format!("{}/{}", word(group), word(&version["name"]));
            found.insert((key, word(kind)), strict(&version["schema"]["openAPIV3Schema"]));
        }
    }
    found
}

/// The items of lists that have the keys of an earlier one, which an API server refuses.
fn repeated(value: &Value, schema: &Value, at: &str, problems: &mut Vec<String>) {
    if let (Some(items), Some(keys)) = (value.as_array(), schema["x-kubernetes-list-map-keys"].as_array()) {
        let of = |item: &Value| -> Vec<Value> {
            keys.iter().map(|key| item[key.as_str().unwrap_or_default()].clone()).collect()
        };
        let twice =
            items.iter().enumerate().find(|(n, item)| items[..*n].iter().any(|one| of(one) == of(item)));
        problems.extend(twice.map(|(number, item)| format!("{at}/{number}: duplicate {:?}", of(item))));
    }
    for (number, item) in value.as_array().into_iter().flatten().enumerate() {
        repeated(item, &schema["items"], &format!("{at}/{number}"), problems);
    }
    for (key, item) in value.as_object().into_iter().flatten() {
        repeated(item, &schema["properties"][key], &format!("{at}/{key}"), problems);
    }
}

/// What of an object the definition of a JobSet holds: all of a TrainingRuntime's template, and the pods of other kinds.
fn parts(object: &Value, definitions: &BTreeMap<(String, String), Value>) -> Vec<(Value, Value)> {
    let jobset = &definitions[&("jobset.x-k8s.io/v1alpha2".to_owned(), "JobSet".to_owned())];
    if object["kind"] == "TrainingRuntime" {
        let template = object["spec"]["template"]["spec"].clone();
        return vec![(template, jobset["properties"]["spec"].clone())];
    }
    let at = "/properties/spec/properties/replicatedJobs/items/properties/template/properties/spec/properties/template";
    let template = jobset.pointer(at).expect("a JobSet has pods");
    let mut found = vec![];
    let mut todo = vec![object];
    while let Some(value) = todo.pop() {
        match value {
            Value::Object(map) if map.get("spec").is_some_and(|spec| spec["containers"].is_array()) => {
                found.push((value.clone(), template.clone()));
            }
            Value::Object(map) => todo.extend(map.values()),
            Value::Array(items) => todo.extend(items),
            _ => {}
        }
    }
    found
}

#[test]
fn every_object_is_what_its_definition_says() {
    let definitions = definitions();
    if definitions.is_empty() {
        jobc_test_skip::skip("published definitions of custom resources");
        return;
    }
    let mut checked = BTreeMap::new();
    for case in cases() {
        for (name, object) in manifests(&case.compile()) {
            let word = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
            let key = (word("apiVersion"), word("kind"));
            let group = key.0.split('/').next().unwrap_or_default();
            let is_built_in =
                !group.contains('.') || (group.ends_with(".k8s.io") && !group.ends_with(".x-k8s.io"));
            if is_built_in {
                continue;
            }
            let whole = definitions.get(&key).map(|schema| vec![(object.clone(), schema.clone())]);
            if whole.is_none() {
                eprintln!("{} of {}: no definition is here, so only its pods are checked", key.1, key.0);
            }
            let held = whole.unwrap_or_else(|| parts(&object, &definitions));
            assert!(!held.is_empty(), "{}/{name}: nothing to check", case.name);
            for (value, schema) in held {
                let validator = jsonschema::validator_for(&schema).expect("a definition is a schema");
                let errors = validator.iter_errors(&value);
                let mut problems: Vec<String> =
                    errors.map(|error| format!("{}: {error}", error.instance_path())).collect();
                repeated(&value, &schema, "", &mut problems);
                assert!(problems.is_empty(), "{}/{name}\n{}", case.name, problems.join("\n"));
            }
            *checked.entry(key).or_insert(0) += 1;
        }
    }
    for kind in ["TrainJob", "TrainingRuntime", "Job", "MPIJob", "RayJob", "LeaderWorkerSet", "JobSet"] {
        assert!(checked.keys().any(|(_, known)| known == kind), "no {kind} was checked");
    }
}

#[test]
fn an_unknown_field_is_found() {
    let schema =
        strict(&json!({"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {}}}}}));
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(validator.is_valid(&json!({"a": {"b": 1}})) && !validator.is_valid(&json!({"a": {"c": 1}})));
}
