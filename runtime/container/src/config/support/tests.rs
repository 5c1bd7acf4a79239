use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::schema::Schema;
use super::*;

/// A section that asks for a refused property, as a patch of an otherwise valid configuration, and the message.
fn check(config: &Value) -> String {
    let read = Config::read(config.to_string().as_bytes()).expect("a configuration");
    let output: String = read
        .unsupported_properties()
        .iter()
        .map(|error| {
            assert_eq!(error.kind, Kind::Unsupported);
            format!("    {error}\n        {}\n", error.advice().as_deref().expect("an advice"))
        })
        .collect();
    format!("{config}\n{output}")
}

fn process(fields: &Value) -> Value {
    let mut process = json!({"cwd": "/", "user": {}});
    process.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
    json!({"process": process})
}

/// For each refused property a configuration that asks for it.
fn asking() -> Vec<(&'static str, Value)> {
    vec![
        ("/process/commandLine", process(&json!({"commandLine": "cmd.exe"}))),
        ("/process/user/username", process(&json!({"user": {"username": "ContainerUser"}}))),
        ("/windows", json!({"windows": {"servicing": true}})),
        ("/solaris", json!({"solaris": {"milestone": "x"}})),
        ("/vm", json!({"vm": {"kernel": {"path": "/vmlinuz"}}})),
        ("/zos", json!({"zos": {"namespaces": [{"type": "pid"}]}})),
        ("/freebsd", json!({"freebsd": {"jail": {}}})),
    ]
}

#[test]
fn every_refused_property_is_refused_where_it_is_requested() {
    let asking = asking();
    let refused = |(_, support): &&(&str, Support)| matches!(support, Refused(..));
    let properties: Vec<&str> = PROPERTIES.iter().filter(refused).map(|(property, _)| *property).collect();
    assert_eq!(
        properties,
        asking.iter().map(|(property, _)| *property).collect::<Vec<_>>(),
        "a case for each row"
    );
    for (property, config) in &asking {
        assert_eq!(check(config).matches("is not supported").count(), 1, "{property} alone");
    }
    let output: String = asking.iter().map(|(_, config)| check(config)).collect();
    insta::assert_snapshot!(output);
}

#[test]
fn what_contains_nothing_asks_for_nothing() {
    let empty = json!({
        "mounts": [{"destination": "/a", "uidMappings": [], "gidMappings": []}],
        "process": {
            "cwd": "/", "user": {"username": ""}, "commandLine": "", "apparmorProfile": "", "selinuxLabel": "",
            "execCPUAffinity": {}
        },
        "linux": {
            "seccomp": {"defaultAction": "SCMP_ACT_ALLOW", "listenerPath": "", "listenerMetadata": ""},
            "mountLabel": "", "intelRdt": {}, "netDevices": {}
        },
        "windows": {}, "solaris": {}, "zos": {}
    });
    assert_eq!(check(&empty), format!("{empty}\n"));
}

#[test]
fn every_property_of_the_specification_has_a_row() {
    let Some(schema) = Schema::published("config-schema.json") else { return };
    let mut found = BTreeSet::new();
    schema.properties("", &mut found);
    assert!(found.len() > 150, "the schema was read: {} properties", found.len());
    let rows: BTreeSet<&str> = PROPERTIES.iter().map(|(property, _)| *property).collect();
    assert_eq!(rows.len(), PROPERTIES.len(), "no property twice");
    let below = |property: &str, row: &str| {
        property.strip_prefix(row).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    for property in &found {
        let covered = rows.iter().any(|row| below(property, row));
        let parted = rows.iter().any(|row| below(row, property));
        assert!(covered || parted, "{property} has no row");
    }
}
