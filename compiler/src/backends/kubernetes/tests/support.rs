//! What cannot be expressed, and its findings.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::super::KubernetesBackend;
use super::plan;
use crate::backend::capability::needs;
use crate::backend::{Backend, Support};

/// Every refusal of a job, with its place.
pub(super) fn refusals(kubernetes: Value, changes: &Value) -> String {
    let job = plan(kubernetes, changes);
    let mut text = String::new();
    for (capability, place) in needs(&job) {
        match KubernetesBackend.support_at(capability, &place, &job) {
            Support::Full => {}
            Support::Plan | Support::Submit(_) => panic!("not in the files alone: {capability:?}"),
            Support::Lossy(why) => writeln!(text, "{place}\n  lossy: {why}").unwrap(),
            Support::None(why) => writeln!(text, "{place}\n  {why}").unwrap(),
        }
    }
    text
}

#[test]
fn every_refusal_has_a_reason() {
    insta::assert_snapshot!(refusals(
        json!({}),
        &json!({
            "gang": "required",
            "network": "none",
            "timeout_seconds": 60,
            "max_parallel": 2,
            "secrets": {"r": {"store": {"name": "s", "key": "k"}}},
            "registries": {"registry.example.com": {"username": "robot", "password_secret": "r"}},
            "images": {"main": {"source": {"kind": "host"}}},
            "volumes": {
                "bare": {"kind": "data", "source": {"kind": "path", "path": "/tmp/data"}},
                "beside": {"kind": "output", "source": {"kind": "path", "path": "out"}},
                "bucket": {"kind": "data", "source": {"kind": "s3", "bucket": "b", "path": ""}, "options": {"region": "eu"}},
                "page": {"kind": "data", "source": {"kind": "https", "url": "https://example.com/x", "unpack": false}},
                "repo": {"kind": "data", "source": {"kind": "git", "url": "https://example.com/x"}},
                "given": {"kind": "data", "source": {"kind": "target"}}
            },
            "roles": {
                "a": {
                    "instances": 4,
                    "matrix": {"role": "train", "number": 0, "values": {"lr": 0.1}, "max_parallel": 1},
                    "metrics": {"loss": {"source": {"file": {"volume": "given", "path": "r.json", "key": "loss"}}}},
                    "user": "mpi",
                    "ready": {"probe": {"log": "ready"}, "delay_seconds": 0, "every_seconds": 5, "try_timeout_seconds": 5,
                        "timeout_seconds": 600, "keep": false},
                    "completion": {"min_failed": 2},
                    "retry": {"max": 1, "scope": "role", "backoff_seconds": 10},
                    "files": [{"path": "/x", "content": [{"index": {}}], "mode": 420}],
                    "resources": {"pids": 1, "rdma": 1, "hugepages_bytes": {"2MiB": 2_097_152}, "ulimits": {"nofile": 1},
                        "gpu": {"count": 1, "first": 0, "vendor": "nvidia", "models": ["A999"], "share": {"memory_bytes": 1, "isolation": "soft", "same_card": false}}}
                },
                "b": {
                    "needs": [{"role": "a", "state": "started", "min": 2}],
                    "completion": {"min_failed": null},
                    "retry": {"max": 2, "scope": "job"},
                    "resources": {"gpu": {"count": 1, "first": 0, "vendor": "amd", "memory_bytes": 1}}
                },
                "c": {"resources": {"gpu": {"count": 2, "first": 0, "vendor": "nvidia",
                    "share": {"profile": "1g.5gb", "isolation": "hard", "same_card": false}}}}
            }
        })
    ));
}

#[test]
fn what_depends_on_the_target() {
    let check = |settings: Value, changes: Value, expected: &str| {
        let found = refusals(settings.clone(), &changes);
        if expected.is_empty() {
            assert_eq!(found, "", "{settings} {changes}");
        } else {
            assert!(found.contains(expected), "{found}");
        }
    };
    let gpu = |gpu: Value| json!({"roles": {"main": {"resources": {"gpu": gpu}}}});
    let whole = json!({"count": 1, "first": 0, "vendor": "nvidia"});
    let slice = json!({"count": 1, "first": 0, "vendor": "nvidia", "share": {"profile": "1g.5gb", "isolation": "hard", "same_card": false}});
    check(json!({}), gpu(whole.clone()), "");
    check(json!({"gpu": {"provider": "hami"}}), gpu(whole.clone()), "");
    check(json!({"gpu": {"provider": "haml"}}), gpu(whole.clone()), "did you mean `hami`?");
    check(json!({"gpu": {"provider": "antman"}}), gpu(whole.clone()), "patched TensorFlow");
    check(json!({"gpu": {"provider": "amd"}}), gpu(whole.clone()), "write `vendor: amd`");
    check(json!({"gpu": {"provider": "nvidia-mig-single"}}), gpu(whole), "not whole GPUs; write `share`");
    check(json!({"gpu": {"provider": "nvidia-mig-single"}}), gpu(slice.clone()), "");
    check(json!({"gpu": {"provider": "nvidia-mig-mixed"}}), gpu(slice.clone()), "");
    check(
        json!({"gpu": {"provider": "nvidia"}}),
        gpu(slice),
        "providers that support it: `nvidia-mig-mixed`",
    );
    let path = json!({"volumes": {
        "d": {"kind": "data", "source": {"kind": "path", "path": "/d"}},
        "e": {"kind": "data", "source": {"kind": "path", "path": "/e"}}
    }});
    check(json!({"host_paths": true}), path.clone(), "");
    check(json!({"storage": {"e": {"pvc": "e"}}}), path.clone(), "/data/d/source\n");
    assert!(!refusals(json!({"storage": {"e": {"pvc": "e"}}}), &path).contains("/data/e"));
    check(json!({"storage": {"d": {"nfs": "filer:/d"}, "e": {"nfs": "nfs://filer/e"}}}), path.clone(), "");
    check(json!({"storage": {"d": {"nfs": "filer"}, "e": {}}}), path, "write `HOST:/PATH`");
    let gang = json!({"gang": "required"});
    check(json!({"queue": {"kueue": "q"}}), gang, "");
    let retried = json!({"roles": {"main": {"instances": 2, "retry": {"max": 1, "scope": "task"}}}});
    check(json!({"release": "1.28"}), retried.clone(), "needs Kubernetes 1.29");
    check(json!({"release": "1.29"}), retried, "");
    let role = json!({"roles": {"a": {"instances": 2, "retry": {"max": 1, "scope": "role"}}, "b": {}}});
    check(json!({"jobset": "0.11"}), role.clone(), "or write `scope: job`");
    check(
        json!({"jobset": "0.12"}),
        role.clone(),
        "write `scope: job`, or `gates: [RestartJob]` for the target",
    );
    check(json!({"jobset": "0.11", "gates": ["RestartJob"]}), role.clone(), "needs JobSet 0.12");
    check(json!({"gates": ["RestartJob"]}), role, "");
    let whole_job = json!({"roles": {"a": {"instances": 2, "retry": {"max": 1, "scope": "job"}}}});
    check(json!({"kind": "job"}), whole_job.clone(), "restarts single pods only");
    check(json!({}), whole_job, "");
    let enough =
        json!({"roles": {"main": {"instances": 4, "completion": {"min_succeeded": 2, "min_failed": 1}}}});
    check(json!({"release": "1.30"}), enough.clone(), "needs Kubernetes 1.31");
    check(json!({}), enough, "");
    let both =
        json!({"roles": {"main": {"instances": 4, "completion": {"min_succeeded": 2, "min_failed": 3}}}});
    check(json!({}), both, "lossy: the other instances continue after fewer than 3 failures");
    let elastic = json!({
        "distributed": {"framework": "torchrun", "members": [{"role": "main", "part": "worker", "first_rank": 0, "processes": 1}],
            "instances": 4, "world_size": 4, "port": 29500,
            "elastic": {"min": 2, "max": 4, "max_restarts": 3, "backend": "c10d", "id": "demo"}},
        "roles": {"main": {"instances": 4, "completion": {"min_succeeded": 2, "min_failed": 3}}}
    });
    check(json!({}), elastic, "write `completion: {min_failed: 1}`");
    let disrupted = |codes: Value| {
        json!({"roles": {"a": {"instances": 2,
            "retry": {"max": 1, "scope": "job", "on_exit_codes": codes, "disruptions": "ignore"}}}})
    };
    check(json!({}), disrupted(json!([])), "");
    check(json!({}), disrupted(json!([143])), "");
    check(json!({"jobset": "0.9"}), disrupted(json!([143])), "`on_exit_codes` needs JobSet 0.10");
    let own = |mode: u32, source: Value| {
        json!({"volumes": {"d": {"kind": "data", "source": source}}, "roles": {"main": {"user": "1000",
            "mounts": [{"volume": "d", "path": "/d", "writable": false}],
            "files": [{"path": "/key", "content": "x", "mode": mode}]}}})
    };
    let export = json!({"kind": "nfs", "host": "filer", "path": "/d"});
    check(json!({}), own(0o600, export.clone()), "");
    check(json!({}), own(0o700, export), "write `mode: \"0755\"`");
    check(
        json!({}),
        own(0o600, json!({"kind": "pvc", "name": "d"})),
        "all files of the claim of `d`; write `mode: \"0644\"`",
    );
    let late = json!({"roles": {"a": {}, "b": {"needs": [{"role": "a", "state": "succeeded", "min": 1}]}}});
    check(json!({"jobset": "0.7"}), late.clone(), "needs JobSet 0.8");
    check(json!({"jobset": "0.8"}), late, "");
    let together = json!({"timeout_seconds": 60, "roles": {"a": {}, "b": {}}});
    check(json!({}), together, "");
    let nodes = json!({"node_selector": {"nvidia.com/gpu.product": "My-Card"}});
    check(nodes, gpu(json!({"count": 1, "first": 0, "vendor": "nvidia", "models": ["mine"]})), "");
}

#[test]
fn the_whole_job_is_as_good_as_its_worst_place() {
    use crate::backend::Capability;
    let job = plan(
        json!({"storage": {"e": {"pvc": "e"}}}),
        &json!({"volumes": {
            "d": {"kind": "data", "source": {"kind": "path", "path": "/d"}},
            "e": {"kind": "data", "source": {"kind": "path", "path": "/e"}}
        }}),
    );
    assert!(matches!(KubernetesBackend.support(Capability::VolumePath, &job), Support::None(_)));
    assert_eq!(KubernetesBackend.support(Capability::VolumeNfs, &job), Support::Full);
}
