//! GPUs in the environment, in annotations, and injected.

use serde_json::{Value, json};

use super::{bundle, report};

#[test]
fn gpus() {
    let visible = |gpu: Value| {
        let config = bundle(&json!({"roles": {"main": {"resources": {"gpu": gpu}}}}));
        let notes = config["annotations"].as_object().unwrap();
        let notes: Vec<_> =
            notes.iter().filter(|(key, _)| key.contains("gpu")).map(|(k, v)| format!("{k}={v}")).collect();
        let env: Vec<_> = config["process"]["env"].as_array().unwrap()[1..].to_vec();
        format!("{} {}", json!(env), notes.join(" ").replace("dev.jobc.", "").replace('"', ""))
    };
    insta::assert_snapshot!(
        [
            visible(json!(null)),
            visible(json!({"count": 0, "first": 0, "vendor": "nvidia"})),
            visible(json!({"count": 1, "first": 0, "vendor": "nvidia", "capabilities": ["compute", "utility"]})),
            visible(json!({"count": 2, "first": 4, "vendor": "nvidia", "cuda": "12.4", "capabilities": ["all"]})),
            visible(json!({"count": 2, "first": 0, "vendor": "amd"})),
            visible(json!({"count": 1, "first": 0, "vendor": "intel"})),
            visible(json!({"count": 1, "first": 0, "vendor": "nvidia", "capabilities": ["compute"],
                "share": {"profile": "1g.10gb", "isolation": "hard", "same_card": false}})),
            visible(json!({"count": 2, "first": 0, "vendor": "nvidia", "capabilities": ["compute"],
                "share": {"memory_bytes": 8_589_934_592_u64, "cores_percent": 30, "isolation": "soft", "same_card": true}})),
        ]
        .join("\n"));
}

#[test]
fn injections() {
    let job = |way: &str, gpu: Value| {
        json!({
            "target": {"settings": {"oci": {"gpu_injection": way}}},
            "roles": {"main": {"resources": {"gpu": gpu}}}
        })
    };
    let nvidia = || json!({"count": 2, "first": 0, "vendor": "nvidia", "capabilities": ["compute"]});
    let amd = || json!({"count": 1, "first": 0, "vendor": "amd"});
    let none = bundle(&job("none", nvidia()));
    assert_eq!((none.get("hooks"), none["annotations"].get("cdi.k8s.io/jobc")), (None, None));
    assert_eq!(
        bundle(&job("hook", nvidia()))["hooks"],
        json!({"prestart": [{"path": "/usr/bin/nvidia-container-runtime-hook",
            "args": ["nvidia-container-runtime-hook", "prestart"]}]})
    );
    let names = |way: &str, gpu: Value| bundle(&job(way, gpu))["annotations"]["cdi.k8s.io/jobc"].clone();
    assert_eq!(names("cdi", nvidia()), "nvidia.com/gpu=0,nvidia.com/gpu=1");
    assert_eq!(names("cdi", amd()), "amd.com/gpu=0");
    let slice = json!({"count": 1, "first": 0, "vendor": "nvidia", "capabilities": [],
        "share": {"profile": "1g.10gb", "isolation": "hard", "same_card": false}});
    insta::assert_snapshot!(format!("{}\n{}", report(&job("hook", amd())), report(&job("cdi", slice))));
}
