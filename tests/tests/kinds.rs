//! The kinds of objects on Kubernetes: each has a case under `tests/kinds/`, with what it becomes, held against the
//! published definitions of custom resources with unknown fields forbidden.
//!
//! A case is a directory with a job, its targets, the manifests in `kubernetes/`, and in `says` the findings, a line each.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::compile::Output;
use jobc_compiler::diagnostic::Severity;
use jobc_tests::compile::{Compilation, compile_directory};
use jobc_tests::{entries, workspace};
use serde_json::{Value, json};

fn cases() -> Vec<Utf8PathBuf> {
    entries(&workspace().join("tests/kinds"))
}

/// The manifests, by their names in the directory of the backend.
fn manifests(compiled: &Compilation) -> BTreeMap<String, String> {
    let all = compiled.outputs.iter().flat_map(|output: &Output| &output.artifacts);
    let yaml = all.filter(|artifact| artifact.path.extension() == Some("yaml"));
    yaml.map(|artifact| {
        let name = artifact.path.file_name().expect("a file has a name").to_owned();
        (name, String::from_utf8(artifact.bytes.clone()).expect("a manifest is text"))
    })
    .collect()
}

fn committed(directory: &Utf8Path) -> BTreeMap<String, String> {
    let files = if directory.is_dir() { entries(directory) } else { vec![] };
    let text = |path: &Utf8PathBuf| fs::read_to_string(path).expect("a committed manifest is text");
    files.iter().map(|path| (path.file_name().expect("a file has a name").to_owned(), text(path))).collect()
}

#[test]
fn what_each_becomes_is_committed() {
    let update = std::env::var_os("JOBC_UPDATE").is_some_and(|value| value == "1");
    let mut differ = Vec::new();
    for case in cases() {
        let compiled = compile_directory(&case.join("job.yaml"));
        assert_eq!(compiled.count(Severity::Error), 0, "{case}\n{}", compiled.text());
        let (made, output) = (manifests(&compiled), compiled.short());
        let (out, says) = (case.join("kubernetes"), case.join("says"));
        if made == committed(&out) && output == fs::read_to_string(&says).unwrap_or_default() {
            continue;
        }
        differ.push(case.to_string());
        if update {
            let _ = fs::remove_dir_all(&out);
            let _ = fs::remove_file(&says);
            fs::create_dir_all(&out).expect("the directory can be made");
            for (name, text) in &made {
                fs::write(out.join(name), text).expect("the manifest can be written");
            }
            if !output.is_empty() {
                fs::write(&says, &output).expect("the findings can be written");
            }
        }
    }
    assert!(
        update || differ.is_empty(),
        "JOBC_UPDATE=1 writes them again, then read the change:\n{}",
        differ.join("\n")
    );
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
        eprintln!("skipped: the published definitions of custom resources are not here");
        return;
    }
    let mut checked = BTreeMap::new();
    for case in cases() {
        for (name, text) in committed(&case.join("kubernetes")) {
            let object: Value = serde_yaml::from_str(&text).expect("a manifest is YAML");
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
            assert!(!held.is_empty(), "{case}/{name}: nothing to check");
            for (value, schema) in held {
                let validator = jsonschema::validator_for(&schema).expect("a definition is a schema");
                let problems: Vec<String> = validator
                    .iter_errors(&value)
                    .map(|error| format!("{}: {error}", error.instance_path()))
                    .collect();
                assert!(problems.is_empty(), "{case}/{name}\n{}", problems.join("\n"));
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
