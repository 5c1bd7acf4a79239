use oci_spec::runtime::{Features, LinuxSeccomp};

use super::*;
use crate::config::support::schema::Schema;

#[test]
fn the_structure() {
    insta::assert_snapshot!(serde_json::to_string_pretty(&features()).expect("JSON"));
}

#[test]
fn it_is_what_the_specification_s_schema_and_types_say() {
    // features-linux.md has these, and the published schema of 1.3 does not.
    const NEWEST: [&str; 3] =
        ["/linux/intelRdt/schemata", "/linux/intelRdt/monitoring", "/linux/memoryPolicy"];
    serde_json::from_value::<Features>(features()).expect("the types of the structure");
    let Some(schema) = Schema::published("features-schema.json") else { return };
    let validate = |features: &Value| {
        let mut wrong = schema.validate(features, "");
        wrong.retain(|error| !NEWEST.iter().any(|place| *error == format!("{place}: unknown property")));
        wrong
    };
    assert_eq!(validate(&features()), [""; 0]);
    let mut wrong = features();
    wrong["linux"]["namespaces"][0] = json!("moon");
    wrong["linux"]["seccomp"]["enabled"] = json!("yes");
    wrong["linux"]["apparmour"] = json!({});
    wrong.as_object_mut().expect("an object").remove("ociVersionMin");
    assert_eq!(validate(&wrong).len(), 4, "the schema is looked at");
}

/// The filter's compiler accepts exactly what is listed.
#[test]
fn the_actions_and_operators_are_those_of_the_filter() {
    let takes = |action: &str, operator: &str| {
        let profile = json!({"defaultAction": "SCMP_ACT_ALLOW", "listenerPath": "/run/agent", "syscalls": [{
            "names": ["getpid"], "action": action, "args": [{"index": 0, "value": 1, "valueTwo": 1, "op": operator}]
        }]});
        let profile: LinuxSeccomp = serde_json::from_value(profile).expect("a profile");
        crate::seccomp::compile(&profile).is_ok()
    };
    let listed = |name: &str| -> Vec<String> {
        serde_json::from_value(features()["linux"]["seccomp"][name].clone()).expect("names")
    };
    for action in listed("actions") {
        assert!(takes(&action, "SCMP_CMP_EQ"), "{action}");
    }
    for operator in listed("operators") {
        assert!(takes("SCMP_ACT_ERRNO", &operator), "{operator}");
    }
}
