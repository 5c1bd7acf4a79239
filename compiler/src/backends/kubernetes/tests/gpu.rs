//! GPUs: what each provider refuses, and what it becomes that the cases under `tests/providers` do not show.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::super::KubernetesBackend;
use super::{at, plan};
use crate::backend::capability::needs;
use crate::backend::{Backend, Support};
use crate::backends::fixture;
use crate::stdlib::providers;

fn role(gpu: &Value) -> Value {
    let mut whole = json!({"count": 1, "first": 0, "vendor": "nvidia"});
    for (key, value) in gpu.as_object().unwrap() {
        whole[key] = value.clone();
    }
    json!({"roles": {"main": {"resources": {"memory_bytes": 1_073_741_824_u64, "gpu": whole}}}})
}

fn share(share: &Value) -> Value {
    let mut whole = json!({"isolation": "none", "same_card": false});
    for (key, value) in share.as_object().unwrap() {
        whole[key] = value.clone();
    }
    json!({"share": whole})
}

/// The refusals of a target's provider for what a role asks, one a line.
fn refused(settings: &Value, changes: &Value) -> String {
    let job = plan(settings.clone(), changes);
    let mut text = String::new();
    for (capability, place) in needs(&job) {
        match KubernetesBackend.support_at(capability, &place, &job) {
            Support::Full => {}
            Support::Lossy(why) => writeln!(text, "  lossy: {why}").unwrap(),
            Support::None(why) => writeln!(text, "  {why}").unwrap(),
            Support::Plan | Support::Submit(_) => panic!("not in the files alone"),
        }
    }
    text
}

#[test]
fn what_no_provider_can_serve_is_refused_with_those_that_can() {
    let gib = 1_u64 << 30;
    let requested = [
        ("two whole GPUs", json!({"count": 2})),
        ("memory", share(&json!({"memory_bytes": 8 * gib}))),
        ("memory, kept softly", share(&json!({"memory_bytes": 8 * gib, "isolation": "soft"}))),
        ("cores", share(&json!({"cores_percent": 30}))),
        ("memory and cores", share(&json!({"memory_bytes": 8 * gib, "cores_percent": 30}))),
        ("all cores", share(&json!({"memory_bytes": 8 * gib, "cores_percent": 100}))),
        ("a profile, kept hard", share(&json!({"profile": "1g.10gb", "isolation": "hard"}))),
    ];
    let mut text = String::new();
    let mut able = std::collections::BTreeSet::new();
    for provider in providers::all().iter().filter(|provider| provider.unserved.is_none()) {
        for (what, gpu) in &requested {
            let mut changes = role(gpu);
            changes["roles"]["main"]["resources"]["gpu"]["vendor"] = json!(provider.vendor.as_str());
            // Every setting that some provider needs, so that what is refused is refused by the provider.
            let settings = json!({
                "queue": {"kai": "q"},
                "gpu": {"provider": provider.name, "replicas": 3, "models": ["A100-40GB"], "resource": "example.com/GPU-8Q",
                    "memory_unit": "MiB", "servers": ["a:0", "a:1"], "library": "/opt/lib"}
            });
            let found = refused(&settings, &changes);
            for line in found.lines() {
                // The lists of those that can serve it are long and alike: they are at the end, once each.
                let (why, others) = line.split_once("; providers that").unwrap_or((line, ""));
                writeln!(text, "{}: {what}\n{why}", provider.name).unwrap();
                if !others.is_empty() && provider.name == "nvidia" {
                    able.insert(format!("{what}: providers that{others}"));
                }
            }
        }
    }
    for line in able {
        writeln!(text, "{line}").unwrap();
    }
    insta::assert_snapshot!(text);
}

#[test]
fn kai_starts_the_pods_of_a_job_together() {
    let settings = |kind: &str| json!({"kind": kind, "gpu": {"provider": "kai"}, "queue": {"kai": "team-a"}});
    let gpu = json!({"count": 1, "first": 0, "vendor": "nvidia"});
    let eval = |more: Value| {
        let mut role = json!({"instances": 5, "resources": {"gpu": gpu}});
        role.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"name": "waves", "gang": "required", "roles": {"eval": role}})
    };
    let annotation = "/metadata/annotations/kai.scheduler~1batch-min-member";
    assert_eq!(at(settings("job"), &eval(json!({})), annotation), json!("5"));
    assert_eq!(at(settings("jobset"), &eval(json!({})), annotation), Value::Null);
    // Those of a Job start one by one unless they must start together.
    assert_eq!(refused(&settings("job"), &eval(json!({"parallel": 4}))), "");
    let waves = refused(&settings("jobset"), &eval(json!({"parallel": 4})));
    assert!(waves.contains("KAI starts as many pods of a JobSet together"), "{waves}");
    // Roles that come later are not there yet, and those without GPUs belong to the group.
    let staged = json!({"name": "staged", "stages": [["prepare"], ["train"]], "roles": {
        "prepare": {}, "train": {"needs": [{"role": "prepare", "state": "succeeded", "min": 1}], "resources": {"gpu": gpu}}}});
    assert_eq!(at(settings("jobset"), &staged, annotation), json!("1"));
    let first = "/spec/replicatedJobs/0/template/spec/template";
    assert_eq!(at(settings("jobset"), &staged, &format!("{first}/spec/schedulerName")), "kai-scheduler");
    assert_eq!(
        at(settings("jobset"), &staged, &format!("{first}/metadata/labels/kai.scheduler~1queue")),
        "team-a"
    );
}

#[test]
fn several_slices_stay_apart_or_together() {
    let count = |n: u32, profile: &Value| {
        let mut gpu = share(profile);
        gpu["count"] = json!(n);
        role(&gpu)
    };
    let mixed = json!({"gpu": {"provider": "nvidia-mig-mixed"}});
    let apart = count(2, &json!({"profile": "1g.10gb", "isolation": "hard"}));
    assert!(
        refused(&mixed, &apart).contains("lossy: `nvidia-mig-mixed` may take several slices of one card")
    );
    let together = count(2, &json!({"profile": "1g.10gb", "same_card": true}));
    assert!(refused(&mixed, &together).contains("cannot keep slices on one card"));
    let claims = json!({"gpu": {"provider": "nvidia-dra"}});
    assert_eq!(refused(&claims, &together), "");
    let hami = json!({"gpu": {"provider": "hami"}});
    assert_eq!(refused(&hami, &count(2, &json!({"memory_bytes": 1 << 30}))), "");
}

#[test]
fn a_replica_must_be_large_enough() {
    let check = |replicas: u32, models: Value, requested: Value, expected: &str| {
        let settings = json!({"gpu": {"provider": "nvidia-mps", "replicas": replicas, "models": models}});
        let found = refused(&settings, &role(&share(&requested)));
        assert!(if expected.is_empty() { found.is_empty() } else { found.contains(expected) }, "{found}");
    };
    check(4, json!(["A100-40GB"]), json!({"memory_bytes": 10_u64 << 30, "cores_percent": 25}), "");
    check(4, json!(["A100-40GB"]), json!({"memory_bytes": 11_u64 << 30}), "each with 10GiB of its memory");
    check(4, json!(["A100-80GB", "A100-40GB"]), json!({"memory_bytes": 11_u64 << 30}), "each with 10GiB");
    check(4, json!([]), json!({"cores_percent": 26}), "each with 25 % of the cores");
    check(4, json!([]), json!({"memory_bytes": 1}), "lossy: the target makes 4 replicas");
}

#[test]
fn slices_of_one_claim_share_one_card() {
    let settings = json!({"gpu": {"provider": "nvidia-dra", "models": ["A100-40GB"]}});
    let of = |instances: u32, memory: u64, cores: u32| {
        let mut changes = role(&share(&json!({"memory_bytes": memory << 30, "cores_percent": cores})));
        changes["roles"]["main"]["instances"] = json!(instances);
        refused(&settings, &changes)
    };
    assert_eq!(of(4, 10, 25), "");
    assert!(of(4, 10, 30).contains("ask for 120 % of its cores"));
    assert!(of(4, 11, 25).contains("ask for 44GiB of its 40GiB"));
}

#[test]
fn what_a_cluster_lacks_is_reported() {
    let output =
        |settings: Value, gpu: &Value| fixture::lower(&KubernetesBackend, &plan(settings, &role(gpu))).1;
    let slice = share(&json!({"memory_bytes": 1 << 30}));
    let lacking = output(json!({"gpu": {"provider": "kai"}}), &slice);
    assert!(lacking.contains("J0414") && lacking.contains("queue: {kai: NAME}"), "{lacking}");
    let unit = output(json!({"gpu": {"provider": "elasticgpu"}}), &slice);
    assert!(unit.contains("`memory_unit`"), "{unit}");
    let old = output(json!({"release": "1.30", "gpu": {"provider": "nvidia-dra"}}), &json!({}));
    assert!(old.contains("J0412") && old.contains("Kubernetes 1.31 or later"), "{old}");
    let both =
        output(json!({"gpu": {"provider": "gaiagpu", "others": ["nvidia-device-plugin"]}}), &json!({}));
    assert!(both.contains("J0421") && both.contains("`gpu-manager` and `nvidia`"), "{both}");
    let queue = output(json!({"queue": {"kueue": "q"}, "gpu": {"provider": "volcano-vgpu"}}), &json!({}));
    assert!(queue.contains("does not schedule pods of the Kueue queue"), "{queue}");
}

#[test]
fn what_people_write_is_above_what_a_provider_needs() {
    let settings = json!({
        "gpu": {"provider": "nos-mps"},
        "node_selector": {"nos.nebuly.com/gpu-partitioning": "own"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Equal", "value": "yes"}]
    });
    let slice = role(&share(&json!({"memory_bytes": 8_000_000_000_u64})));
    let spec = at(settings, &slice, "/spec/template/spec");
    assert_eq!(spec["nodeSelector"], json!({"nos.nebuly.com/gpu-partitioning": "own"}));
    assert_eq!(spec["tolerations"].as_array().unwrap().len(), 1);
    assert_eq!(spec["containers"][0]["resources"]["limits"]["nvidia.com/gpu-8gb"], "1");
    let renamed = json!({"gpu": {"provider": "hami", "resource": "example.com/vgpu"}});
    let limits =
        at(renamed, &role(&json!({"count": 2})), "/spec/template/spec/containers/0/resources/limits");
    assert_eq!(limits["example.com/vgpu"], "2");
    assert_eq!(limits["nvidia.com/gpucores"], "100");
}

#[test]
fn volcano_pods_wait_in_its_queue() {
    let settings = json!({"gpu": {"provider": "volcano-vgpu"}, "queue": {"volcano": "gpus"}});
    let annotations = at(settings, &role(&json!({})), "/spec/template/metadata/annotations");
    assert_eq!(annotations["scheduling.volcano.sh/queue-name"], "gpus");
}
