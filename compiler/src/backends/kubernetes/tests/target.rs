//! Settings of the target: storage, secrets, scheduling, queues and patches.

use serde_json::{Value, json};

use super::super::KubernetesBackend;
use super::{at, plan, shown};
use crate::backend::{FilePart, PartSource};
use crate::backends::fixture;

#[test]
fn storage_files_and_secrets() {
    insta::assert_snapshot!(shown(
        json!({"namespace": "ml", "storage": {"imagenet": {"pvc": "imagenet-ro", "sub_path": "train"}, "scratch": {"ephemeral": true}},
            "host_paths": true, "image_pull_secrets": ["team"]}),
        &json!({
            "secrets": {
                "wandb": {"env": "WANDB_API_KEY"},
                "key": {"file": "~/.ssh/it's a key"},
                "shared": {"store": {"name": "team-secrets", "key": "token"}},
                "registry": {"file": "keys/registry"},
                "unused": {"env": "UNUSED"}
            },
            "registries": {"registry.example.com": {"username": "robot$1", "password_secret": "registry"}},
            "volumes": {
                "imagenet": {"kind": "data", "source": {"kind": "s3", "bucket": "b", "path": "p"}},
                "checkpoints": {"kind": "output", "source": {"kind": "path", "path": "/mnt/out"}},
                "home": {"kind": "data", "source": {"kind": "nfs", "host": "filer.example.com", "path": "/home"}},
                "jobc-files": {"kind": "data", "source": {"kind": "pvc", "name": "mine"}},
                "scratch": {"kind": "output", "source": {"kind": "target"}}
            },
            "roles": {"main": {
                "env": {"WANDB_API_KEY": {"secret": "wandb"}, "TOKEN": {"secret": "shared"}},
                "mounts": [
                    {"volume": "imagenet", "path": "/data", "writable": false},
                    {"volume": "checkpoints", "path": "/output", "writable": true},
                    {"volume": "home", "path": "/home", "writable": false},
                    {"volume": "jobc-files", "path": "/mine", "writable": false},
                    {"volume": "scratch", "path": "/scratch", "writable": true}
                ],
                "files": [
                    {"path": "/etc/app.conf", "content": "debug = false\n", "mode": 384},
                    {"path": "/root/.ssh/id", "content": {"secret": "key"}, "mode": 256},
                    {"path": "/etc/token", "content": {"secret": "shared"}, "mode": 420}
                ],
                "provided_files": [{"path": "/etc/jobc/job.json", "content": "{}\n", "mode": 420}]
            }}
        })
    ));
}

#[test]
fn a_directory_of_the_job_is_one_of_its_own_in_a_claim() {
    insta::assert_snapshot!(shown(
        json!({"storage": {"work": {"pvc": "scratch"}, "cache": {"nfs": "filer:/x", "sub_path": "caches/"}}}),
        &json!({
            "volumes": {
                "work": {"kind": "data", "source": {"kind": "job"}},
                "cache": {"kind": "data", "source": {"kind": "job"}}
            },
            "roles": {"main": {"mounts": [
                {"volume": "work", "path": "/work", "writable": true},
                {"volume": "cache", "path": "/cache", "writable": true}
            ]}}
        })
    ));
}

#[test]
fn ssh_keys_come_from_a_secret() {
    insta::assert_snapshot!(shown(
        json!({}),
        &json!({
            "distributed": {"framework": "mpi", "members": [{"role": "main", "part": "worker", "first_rank": 0, "processes": 1}],
                "instances": 1, "world_size": 1, "port": 29500, "ssh": {"port": 22, "user": "root"}},
            "roles": {"main": {"instances": 2, "launch": "first", "command": {"argv": {"argv": ["mpirun", "hostname"]}}}}
        })
    ));
}

#[test]
fn scheduling_settings() {
    insta::assert_snapshot!(shown(
        json!({
            "labels": {"team": "vision"}, "annotations": {"example.com/owner": "vision"},
            "node_selector": {"pool": "gpu"}, "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}}},
            "priority_class": "batch", "service_account": "trainer", "runtime_class": "nvidia", "rdma": "rdma/hca",
            "ttl": "1h", "queue": {"kueue": "user-queue", "priority": "high"},
            "roles": {"train": {"node_selector": {"pool": "big"}, "priority_class": "urgent"}}
        }),
        &json!({"gang": "required", "roles": {"train": {"resources": {"rdma": 1, "gpu": {
            "count": 1, "first": 0, "vendor": "nvidia", "models": ["a100-80GB", "H100"], "memory_bytes": 42_949_672_960_u64,
            "compute_capability": "8.6", "driver": "535"}}}}})
    ));
}

#[test]
fn kueue_alone_suspends_its_jobs() {
    let of = |settings: Value, changes: Value| at(settings, &changes, "/spec/suspend");
    let two = json!({"roles": {"a": {}, "b": {}}});
    assert_eq!(of(json!({"queue": {"kueue": "user-queue"}}), json!({})), Value::Null);
    assert_eq!(of(json!({"queue": {"kueue": "user-queue"}}), two.clone()), Value::Null);
    assert_eq!(of(json!({"suspend": true}), json!({})), json!(true));
    assert_eq!(of(json!({"suspend": true}), two), json!(true));
}

#[test]
fn a_user_reads_files_that_are_not_for_all_by_a_group() {
    let role = |user: &str, mode: u32| json!({"roles": {"main": {"user": user, "files": [{"path": "/key", "content": "x", "mode": mode}]}}});
    let group = |changes: Value| at(json!({}), &changes, "/spec/template/spec/securityContext");
    assert_eq!(group(role("1000:100", 0o600)), json!({"fsGroup": 100}));
    assert_eq!(group(role("1000", 0o400)), json!({"fsGroup": 1000}));
    assert_eq!(group(role("1000", 0o644)), Value::Null);
    assert_eq!(group(role("root", 0o600)), Value::Null);
}

#[test]
fn a_user_writes_to_a_new_claim_by_a_group() {
    let volume = json!({"kind": "data", "source": {"kind": "instance", "size_bytes": 1_073_741_824_u64}});
    let role =
        json!({"user": "1000:100", "mounts": [{"volume": "scratch", "path": "/scratch", "writable": true}]});
    let job = json!({"volumes": {"scratch": volume}, "roles": {"main": role}});
    let group = |settings: Value| at(settings, &job, "/spec/template/spec/securityContext");
    assert_eq!(group(json!({"storage": {"scratch": {"claim": {"class": "fast"}}}})), json!({"fsGroup": 100}));
    // An emptyDir is open to all.
    assert_eq!(group(json!({})), Value::Null);
}

#[test]
fn ranks_that_digits_can_say_need_no_shell() {
    let container = |offset: u32, instances: u32, part: &str| {
        let role = json!({"instances": instances, "provided_env": {"JOBC_RANK": [{"rank": {"offset": offset}}]},
            "command": {"argv": {"argv": ["run"]}}});
        let changes = json!({"roles": {"main": role}});
        at(json!({}), &changes, &format!("/spec/template/spec/containers/0/{part}"))
    };
    assert_eq!(container(0, 12, "env/0/name"), json!("JOBC_RANK"));
    assert!(container(0, 12, "env/0/valueFrom/fieldRef").is_object());
    assert_eq!(container(20, 10, "env/1/value"), json!("2$(JOBC_INDEX)"));
    assert_eq!(container(20, 10, "command/0"), json!("run"));
    assert_eq!(container(20, 11, "command/0"), json!("/bin/sh"));
    assert_eq!(container(1, 3, "command/0"), json!("/bin/sh"));
}

#[test]
fn slices_of_mig() {
    let gpu = json!({"count": 1, "first": 0, "vendor": "nvidia", "models": ["A100-40GB"],
        "share": {"profile": "1g.5gb+me", "isolation": "hard", "same_card": false}});
    let changes = json!({"roles": {"main": {"resources": {"gpu": gpu}}}});
    let pod = "/spec/template/spec";
    let mixed = json!({"gpu": {"provider": "nvidia-mig-mixed"}});
    assert_eq!(
        at(mixed, &changes, &format!("{pod}/containers/0/resources")),
        json!({"limits": {"nvidia.com/mig-1g.5gb.me": "1"}})
    );
    let single = json!({"gpu": {"provider": "nvidia-mig-single"}});
    let values = at(
        single,
        &changes,
        &format!(
            "{pod}/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchExpressions/0/values"
        ),
    );
    let values: Vec<&str> = values.as_array().unwrap().iter().map(|v| v.as_str().unwrap()).collect();
    assert!(values.contains(&"NVIDIA-A100-SXM4-40GB-MIG-1g.5gb.me"), "{values:?}");
}

#[test]
fn patches_change_objects_and_the_source_map() {
    let settings = json!({"patches": [
        {"kind": "Job", "patch": {"spec": {"backoffLimit": 4, "template": {"spec": {"restartPolicy": null}}}}},
        {"kind": "Job", "name": "demo", "patch": {"metadata": {"labels": {"team": "vision"}}}}
    ]});
    let job = plan(settings, &json!({}));
    let (files, report) = fixture::lower(&KubernetesBackend, &job);
    assert_eq!(report, "");
    let text = fixture::text(&files[0]);
    assert!(text.contains("backoffLimit: 4") && text.contains("team: vision"), "{text}");
    assert!(!text.contains("restartPolicy"), "{text}");
    let from: Vec<String> = files[0]
        .origins
        .iter()
        .filter_map(|origin| match (&origin.part, &origin.from) {
            (FilePart::Pointer(part), PartSource::Target(place)) => Some(format!("{part} <- {place}")),
            _ => None,
        })
        .collect();
    assert_eq!(
        from,
        [
            "/spec/backoffLimit <- /kubernetes/patches/0/patch/spec/backoffLimit",
            "/metadata/labels/team <- /kubernetes/patches/1/patch/metadata/labels/team"
        ]
    );
}

#[test]
fn operations_change_objects_and_the_source_map() {
    let settings = json!({"patches": [{"kind": "Job", "operations": [
        {"op": "test", "path": "/spec/backoffLimit", "value": 0},
        {"op": "remove", "path": "/spec/template/spec/restartPolicy"},
        {"op": "add", "path": "/spec/template/spec/containers/0/env/-", "value": {"name": "TZ", "value": "UTC"}}
    ]}]});
    let (files, report) =
        fixture::lower(&KubernetesBackend, &plan(settings, &json!({"roles": {"main": {"env": {"A": "1"}}}})));
    assert_eq!(report, "");
    let text = fixture::text(&files[0]);
    assert!(text.contains("TZ") && !text.contains("restartPolicy"), "{text}");
    let is_noted = files[0].origins.iter().any(|origin| match (&origin.part, &origin.from) {
        (FilePart::Pointer(part), PartSource::Target(place)) => {
            part.to_string().starts_with("/spec/template/spec/containers/0/env/")
                && place.to_string() == "/kubernetes/patches/0/operations"
        }
        _ => false,
    });
    assert!(is_noted, "{:?}", files[0].origins);
    let report =
        |patch: Value| fixture::lower(&KubernetesBackend, &plan(json!({"patches": [patch]}), &json!({}))).1;
    let wrong = report(
        json!({"kind": "Job", "operations": [{"op": "replace", "path": "/spec/paralelism", "value": 1}]}),
    );
    assert!(wrong.contains("cannot be applied to Job `demo`: `/spec/paralelism` does not exist"), "{wrong}");
    let empty = report(json!({"kind": "Job"}));
    assert!(empty.contains("patch 0 of target `lab` changes nothing"), "{empty}");
}

#[test]
fn wrong_settings() {
    let findings =
        |settings: Value, changes: Value| fixture::lower(&KubernetesBackend, &plan(settings, &changes)).1;
    let two = json!({"roles": {"a": {}, "b": {}}});
    let cases = [
        findings(json!({"patches": [{"kind": "Job", "name": "other", "patch": {}}]}), json!({})),
        findings(json!({"kind": "tfjob"}), json!({})),
        findings(json!({"kind": "job"}), two.clone()),
        findings(json!({"release": "1.20", "jobset": "0.2"}), two),
        findings(json!({"queue": {"volcano": "default"}}), json!({})),
        findings(json!({"queue": {"kueue": "user-queue"}, "suspend": true}), json!({})),
        findings(json!({"release": "1.38"}), json!({})),
        findings(json!({"affinity": {"nodeAfinity": {}}}), json!({})),
        findings(json!({"tolerations": [{"key": 1}]}), json!({})),
        findings(json!({"labels": {"team": "computer vision"}}), json!({})),
        findings(json!({"rdma": "hca"}), json!({"roles": {"main": {"resources": {"rdma": 1}}}})),
        findings(json!({}), json!({"roles": {"main": {"labels": {"/x": "y"}}}})),
        findings(json!({}), json!({"name": "3d", "roles": {"a": {"instances": 2}}})),
        findings(
            json!({}),
            json!({"name": "a-name-of-thirty-eight-characters-here", "roles": {
            "a": {}, "preprocess-all-of-the-images": {}}}),
        ),
        findings(
            json!({}),
            json!({"images": {"main": {"source": {"kind": "build", "from": "python:3.12"},
            "reference": "demo-main:0123", "declared_at": "/image"}}}),
        ),
        findings(
            json!({}),
            json!({"volumes": {"d": {"kind": "data", "source": {"kind": "pvc", "name": "d"}, "secret": "s"}}}),
        ),
        findings(
            json!({"jobset": "0.8"}),
            json!({"roles": {"a": {}, "b": {}, "c": {"needs": [
            {"role": "a", "state": "succeeded", "min": 1}, {"role": "b", "state": "succeeded", "min": 1}]}}}),
        ),
    ];
    insta::assert_snapshot!(cases.join("----\n"));
}

#[test]
fn every_important_part_says_where_it_comes_from() {
    let job = plan(
        json!({"queue": {"kueue": "q"}, "storage": {"d": {"pvc": "d"}}, "roles": {"main": {"node_selector": {"a": "b"}}}}),
        &json!({
            "timeout_seconds": 60,
            "volumes": {"d": {"kind": "data", "source": {"kind": "path", "path": "/d"}}},
            "roles": {"main": {
                "instances": 2,
                "env": {"A": "b"},
                "mounts": [{"volume": "d", "path": "/d", "writable": false}],
                "completion": {"min_succeeded": 1},
                "resources": {"memory_bytes": 1024, "gpu": {"count": 1, "first": 0, "vendor": "nvidia", "memory_bytes": 1_073_741_824}}
            }}
        }),
    );
    let (files, _) = fixture::lower(&KubernetesBackend, &job);
    let lines: Vec<String> = files
        .last()
        .unwrap()
        .origins
        .iter()
        .map(|origin| {
            let FilePart::Pointer(part) = &origin.part else { panic!("manifests have pointers") };
            match &origin.from {
                PartSource::Spec(place) => format!("{part}\n  job {place}"),
                PartSource::Target(place) => format!("{part}\n  target {place}"),
                PartSource::Default(why) => format!("{part}\n  {why}"),
            }
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

/// A job with the code of a directory.
fn with_code(path: &str, role: &Value) -> Value {
    let digest = format!("sha256:{}", "ab".repeat(32));
    let mut role = role.clone();
    role["mounts"] = json!([{"volume": "jobc-code", "path": "/work dir", "writable": true}]);
    json!({
        "volumes": {"jobc-code": {"kind": "data", "source": {"kind": "code", "path": path, "digest": digest}}},
        "roles": {"main": role, "board": {}}
    })
}

#[test]
fn code_is_unpacked_by_an_init_container_with_the_image_and_limits_of_its_role() {
    let gpu = json!({"count": 1, "first": 0, "vendor": "nvidia", "capabilities": []});
    insta::assert_snapshot!(shown(
        json!({"namespace": "ml", "pod_security": "restricted"}),
        &with_code("src", &json!({"user": "1000", "resources": {"memory_bytes": 1 << 30, "gpu": gpu}}))
    ));
}

#[test]
fn code_that_is_too_large_for_config_maps_goes_to_a_claim() {
    let gpu = json!({"count": 1, "first": 0, "vendor": "nvidia", "capabilities": []});
    let role = json!({"user": "1000", "resources": {"memory_bytes": 1 << 30, "gpu": gpu}});
    let settings = json!({"namespace": "ml", "pod_security": "restricted", "code_claim": "team"});
    insta::assert_snapshot!(shown(settings.clone(), &with_code("large", &role)));
    assert!(
        !shown(settings, &with_code("medium", &role)).contains("claimName"),
        "what ConfigMaps can hold stays there"
    );
}

#[test]
fn code_is_cut_into_pieces_that_kubectl_can_apply() {
    let number = |path: &str| {
        let (files, report) =
            fixture::lower(&KubernetesBackend, &plan(json!({}), &with_code(path, &json!({}))));
        let pieces = files.iter().filter(|file| file.path.as_str().contains("jobc-code"));
        let largest = pieces.clone().map(|file| fixture::text(file).len()).max();
        (pieces.count(), largest.is_none_or(|bytes| bytes < 256 << 10), report)
    };
    assert_eq!(number("medium"), (2, true, String::new()));
    let (pieces, _, report) = number("large");
    assert_eq!(pieces, 0);
    insta::assert_snapshot!(report);
}
