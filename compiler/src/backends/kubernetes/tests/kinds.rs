//! The kinds of objects: what each becomes, and what each refuses.

use std::fmt::Write as _;

use jobc_schema::role::{NeedState, RetryScope};
use serde_json::{Value, json};

use super::super::KubernetesBackend;
use super::super::kinds::{Answer, KINDS};
use super::support::refusals;
use super::{at, plan, shown};
use crate::backend::Capability;
use crate::backends::fixture;

/// What the files and findings of a job say of a kind: every finding of the target, and every refusal of a line.
fn refused(kubernetes: Value, changes: &Value) -> String {
    let (_, report) = fixture::lower(&KubernetesBackend, &plan(kubernetes.clone(), changes));
    refusals(kubernetes, changes) + &report
}

/// Two roles of which one trains on several instances.
fn trained() -> Value {
    json!({
        "name": "ddp",
        "timeout_seconds": 3600,
        "distributed": {"framework": "torchrun", "instances": 3, "world_size": 12, "port": 29500, "members": [
            {"role": "master", "part": "worker", "first_rank": 0, "processes": 4},
            {"role": "worker", "part": "worker", "first_rank": 1, "processes": 4}]},
        "stages": [["prepare"], ["master", "worker"]],
        "roles": {
            "master": {"provided_env": {"MASTER_ADDR": [{"host": {"role": "master", "index": 0}}]}},
            "worker": {
                "instances": 2,
                "needs": [{"role": "prepare", "state": "succeeded", "min": 1}],
                "provided_env": {"MASTER_ADDR": [{"host": {"role": "master", "index": 0}}], "JOBC_RANK": [{"rank": {"offset": 1}}]},
                "retry": {"max": 2, "scope": "job"},
                "resources": {"cpu_millis": 4000, "gpu": {"count": 4, "first": 0, "vendor": "nvidia"}}
            },
            "prepare": {}
        }
    })
}

/// One role that a platform's runtime may take.
fn one_role(role: &Value) -> Value {
    let mut all = json!({
        "name": "ddp",
        "images": {"main": {"source": {"kind": "reference"}, "reference": "torch:2", "declared_at": "/image"}},
        "roles": {"train": {"instances": 4, "command": {"argv": {"argv": ["torchrun", "train.py"]}}}}
    });
    let Value::Object(role) = role else { panic!("changes are a map") };
    all["roles"]["train"].as_object_mut().unwrap().extend(role.clone());
    all
}

#[test]
fn every_kind_answers_for_every_policy() {
    let policies = [
        Capability::Needs(NeedState::Started),
        Capability::Needs(NeedState::Ready),
        Capability::Needs(NeedState::Succeeded),
        Capability::NeedsMin,
        Capability::MinSucceeded,
        Capability::MinFailed,
        Capability::Retry(RetryScope::Task),
        Capability::Retry(RetryScope::Role),
        Capability::Retry(RetryScope::Job),
        Capability::RetryExitCodes,
        Capability::RetryBackoff,
        Capability::RetryDisruptions,
        Capability::JobTimeout,
        Capability::RoleTimeout,
        Capability::GangRequired,
        Capability::GangMin,
        Capability::Parallel,
        Capability::RoleMatrix,
    ];
    let mut table = String::new();
    for kind in KINDS {
        writeln!(table, "{}", kind.name).unwrap();
        for policy in policies {
            let (_, answer) = kind
                .answers
                .iter()
                .find(|(known, _)| *known == policy)
                .unwrap_or_else(|| panic!("{}: {policy:?}", kind.name));
            let said = match answer {
                Answer::Full => "full".to_owned(),
                Answer::AsJob => "as a Job or JobSet".to_owned(),
                Answer::Of(_) => "by the job".to_owned(),
                Answer::InVolcano(_) => {
                    "by the job in a queue of Volcano, else as a Job or JobSet".to_owned()
                }
                Answer::Lossy(why) => format!("lossy: {why}"),
                Answer::None(why) => format!("no: {why}"),
            };
            writeln!(table, "  {policy:?}: {said}").unwrap();
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn a_trainjob_with_a_runtime_of_its_own() {
    insta::assert_snapshot!(shown(
        json!({"kind": "trainjob", "namespace": "ml", "queue": {"kueue": "user-queue", "topology": {"required": "rack"}}}),
        &trained()
    ));
}

#[test]
fn a_trainjob_in_a_queue_of_volcano() {
    let of = |pointer: &str| {
        let (files, report) = fixture::lower(
            &KubernetesBackend,
            &plan(json!({"kind": "trainjob", "queue": {"volcano": "gpus"}}), &one_role(&json!({}))),
        );
        assert_eq!(report, "");
        let crate::backend::Content::Yaml(runtime) = &files[0].content else { panic!("a manifest") };
        runtime.pointer(pointer).cloned().unwrap_or_default()
    };
    assert_eq!(of("/kind"), "TrainingRuntime");
    assert_eq!(of("/spec/podGroupPolicy"), json!({"volcano": {}}));
    assert_eq!(of("/spec/template/metadata/annotations/scheduling.volcano.sh~1queue-name"), "gpus");
    assert_eq!(of("/spec/mlPolicy/numNodes"), 4);
}

#[test]
fn a_trainjob_with_a_runtime_of_the_platform() {
    insta::assert_snapshot!(shown(
        json!({"kind": "trainjob", "runtime": {"name": "torch-distributed"}, "service_account": "trainer",
            "node_selector": {"pool": "gpu"}, "suspend": true}),
        &one_role(&json!({
            "provided_env": {"PET_NNODES": "4", "MASTER_ADDR": [{"host": {"role": "train", "index": 0}}]},
            "files": [{"path": "/etc/app.conf", "content": "debug = false\n", "mode": 420}],
            "resources": {"cpu_millis": 4000, "memory_bytes": 1_073_741_824}
        }))
    ));
}

#[test]
fn what_a_runtime_of_the_platform_cannot_take() {
    let settings = json!({"kind": "trainjob", "runtime": {"name": "torch-distributed", "namespaced": true, "job": "train"},
        "priority_class": "high", "runtime_class": "nvidia", "ttl": "1h"});
    let role = json!({
        "retry": {"max": 2, "scope": "job"}, "workdir": "/src", "env": {"PET_NNODES": "2"}, "timeout_seconds": 60,
        "completion": {"min_succeeded": 1},
        "ready": {"probe": {"exec": ["true"]}, "delay_seconds": 0, "every_seconds": 5,
            "try_timeout_seconds": 5, "timeout_seconds": 600, "keep": true}
    });
    insta::assert_snapshot!(refused(settings.clone(), &one_role(&role)));
    insta::assert_snapshot!(refused(json!({"kind": "trainjob", "runtime": {"name": "torch"}}), &trained()));
}

#[test]
fn a_cron_job_makes_jobs() {
    insta::assert_snapshot!(shown(
        json!({"labels": {"team": "vision"}, "ttl": "1h"}),
        &json!({"description": "nightly report", "timeout_seconds": 600,
            "schedule": {"cron": "0 3 * * MON-FRI", "zone": "Europe/Berlin", "overlap": "replace"}})
    ));
}

#[test]
fn a_volcano_job() {
    insta::assert_snapshot!(shown(
        json!({"kind": "volcano", "queue": {"volcano": "gpus"}, "priority_class": "high", "ttl": "1h",
            "volcano_plugins": {"ssh": [], "env": []}}),
        &json!({
            "stages": [["ps"], ["worker"]],
            "roles": {
                "ps": {"instances": 2, "launch": "none", "retry": {"max": 1, "scope": "job", "on_exit_codes": [143, 137, 143]},
                    "ports": [{"label": "http", "number": 8000, "count": 1, "auto": false, "publish": "service"}]},
                "worker": {
                    "instances": 4,
                    "needs": [{"role": "ps", "state": "ready", "min": 1}],
                    "retry": {"max": 1, "scope": "job"},
                    "command": {"argv": {"argv": ["train", [{"host": {"role": "ps", "index": 1}}], [{"host": {"role": "worker"}}]]}}
                }
            }
        })
    ));
}

#[test]
fn how_a_volcano_job_ends() {
    let of =
        |changes: Value, pointer: &str| at(json!({"kind": "volcano"}), &changes, &format!("/spec/{pointer}"));
    let two = json!({"roles": {"a": {"instances": 2}, "b": {"instances": 3}}});
    assert_eq!(of(two.clone(), "minAvailable"), 5);
    assert_eq!(of(two.clone(), "maxRetry"), 1);
    assert_eq!(
        of(two, "tasks/1/policies"),
        json!([{"events": ["PodFailed", "PodEvicted"], "action": "TerminateJob"}])
    );
    let some = json!({"gang": {"min": 2}, "roles": {"a": {"instances": 4, "completion": {"min_succeeded": 3, "min_failed": 1}}}});
    assert_eq!([of(some.clone(), "minAvailable"), of(some, "minSuccess")], [2, 3]);
    let first = json!({"roles": {"a": {"instances": 4, "launch": "first"}, "b": {"launch": "none"}}});
    assert_eq!(of(first, "minSuccess"), 1);
    let role = json!({"roles": {"a": {"instances": 4, "retry": {"max": 2, "scope": "role"}}}});
    assert_eq!(of(role.clone(), "tasks/0/policies/0/action"), "RestartTask");
    assert_eq!(of(role, "maxRetry"), 3);
    assert_eq!(of(json!({"gang": "none", "roles": {"a": {"instances": 4}}}), "minAvailable"), 1);
}

#[test]
fn what_a_volcano_job_cannot_express() {
    insta::assert_snapshot!(refused(
        json!({"kind": "volcano", "queue": {"kueue": "user-queue"}, "suspend": true}),
        &json!({
            "gang": "required",
            "timeout_seconds": 60,
            "roles": {
                "a": {"instances": 4, "parallel": 2, "retry": {"max": 3, "scope": "task", "disruptions": "ignore", "backoff_seconds": 5}},
                "b": {"needs": [{"role": "a", "state": "succeeded", "min": 4}], "completion": {"min_succeeded": 1, "min_failed": 1}},
                "c": {"instances": 2, "needs": [{"role": "a", "state": "ready", "min": 2}], "completion": {"min_failed": 2}},
                "d": {"launch": "none"}
            }
        })
    ));
}

#[test]
fn a_pod() {
    insta::assert_snapshot!(shown(
        json!({"kind": "pod", "namespace": "ml"}),
        &json!({"timeout_seconds": 60, "description": "one task", "roles": {"main": {
            "timeout_seconds": 90,
            "ports": [{"label": "http", "number": 8000, "count": 1, "auto": false, "publish": "service"}]
        }}})
    ));
    insta::assert_snapshot!(refused(
        json!({"kind": "pod", "queue": {"kueue": "q"}, "suspend": true, "ttl": "1h"}),
        &json!({"roles": {"a": {"instances": 2, "retry": {"max": 1, "scope": "task"}}}})
    ));
    insta::assert_snapshot!(refused(json!({"kind": "pod"}), &json!({"roles": {"a": {}, "b": {}}})));
}

/// A launcher and two workers.
fn launched(launcher: &Value) -> Value {
    let mut all = json!({
        "name": "hvd",
        "distributed": {"framework": "mpi", "instances": 2, "world_size": 8, "port": 22, "ssh": {"port": 22, "user": "root"}, "members": [
            {"role": "worker", "part": "worker", "first_rank": 0, "processes": 4}, {"role": "launcher", "part": "launcher", "processes": 0}]},
        "roles": {
            "launcher": {"needs": [{"role": "worker", "state": "ready", "min": 2}], "command": {"argv": {"argv": ["mpirun", [{"hosts": {"role": "worker", "separator": ","}}]]}}},
            "worker": {"instances": 2, "launch": "none", "provided_env": {"SELF": [{"host": {"role": "worker"}}], "UP": [{"host": {"role": "launcher", "index": 0}}]}}
        }
    });
    let Value::Object(launcher) = launcher else { panic!("changes are a map") };
    all["roles"]["launcher"].as_object_mut().unwrap().extend(launcher.clone());
    all
}

#[test]
fn an_mpijob() {
    let settings = json!({"kind": "mpijob", "ttl": "1h", "suspend": true});
    insta::assert_snapshot!(shown(settings, &launched(&json!({"retry": {"max": 1, "scope": "task"}}))));
    assert_eq!(
        at(
            json!({"kind": "mpijob", "queue": {"volcano": "gpus"}}),
            &launched(&json!({})),
            "/spec/runPolicy/schedulingPolicy"
        ),
        json!({"queue": "gpus", "minAvailable": 3})
    );
    let mut wrong = launched(&json!({"resources": {"gpu": {"count": 1, "first": 0, "vendor": "nvidia"}}}));
    wrong["roles"]["worker"]["retry"] = json!({"max": 1, "scope": "task", "on_exit_codes": [1]});
    insta::assert_snapshot!(refused(json!({"kind": "mpijob"}), &wrong));
    insta::assert_snapshot!(refused(
        json!({"kind": "mpijob"}),
        &json!({"roles": {"train": {"instances": 4, "launch": "first"}}})
    ));
}

/// A head and three workers.
fn clustered() -> Value {
    let start = "env -u RAY_ADDRESS ray start --head --port=6379";
    let endpoint = json!([{"host": {"role": "head", "index": 0}}, ":6379"]);
    json!({
        "name": "tune",
        "timeout_seconds": 600,
        "distributed": {"framework": "ray", "instances": 4, "world_size": 4, "port": 6379, "members": [
            {"role": "head", "part": "head", "first_rank": 0, "processes": 1}, {"role": "worker", "part": "worker", "first_rank": 1, "processes": 1}]},
        "roles": {
            "head": {
                "command": {"argv": {"argv": ["bash", "-c", "python tune.py --trials $N"], "setup": start}},
                "env": {"N": "16"}, "provided_env": {"RAY_ADDRESS": endpoint},
                "retry": {"max": 1, "scope": "job"}
            },
            "worker": {
                "instances": 3, "launch": "none", "provided_env": {"RAY_ADDRESS": endpoint, "JOBC_HOSTFILE": "/etc/jobc/hostfile", "JOBC_RANK": [{"rank": {"offset": 1}}]},
                "provided_files": [{"path": "/etc/jobc/hostfile", "content": [{"hosts": {"role": "worker", "separator": "\n"}}], "mode": 420}],
                "retry": {"max": 1, "scope": "job"},
                "resources": {"cpu_millis": 8000, "gpu": {"count": 1, "first": 0, "vendor": "nvidia"}}
            }
        }
    })
}

#[test]
fn a_rayjob() {
    insta::assert_snapshot!(shown(
        json!({"kind": "rayjob", "service_account": "ray", "ttl": "1h"}),
        &clustered()
    ));
    let mut wrong = clustered();
    wrong["name"] = json!("a-name-of-more-than-forty-seven-characters-is-long");
    wrong["roles"]["head"]["command"] = json!({"argv": {"argv": ["python", [{"host": {"role": "worker", "index": 0}}]], "setup": "pip install x"}});
    wrong["roles"]["worker"]["env"] = json!({"I": [{"index": {}}]});
    wrong["roles"]["worker"]["timeout_seconds"] = json!(60);
    insta::assert_snapshot!(refused(json!({"kind": "rayjob", "kuberay": "1.2"}), &wrong));
    insta::assert_snapshot!(refused(
        json!({"kind": "rayjob"}),
        &json!({"name": "a-name-of-more-than-forty-seven-characters-is-long"})
    ));
}

#[test]
fn a_leaderworkerset() {
    let group = json!({"name": "vllm", "roles": {"serve": {
        "instances": 4, "retry": {"max": 3, "scope": "role"},
        "provided_env": {"LEADER": [{"host": {"role": "serve", "index": 0}}], "SECOND": [{"host": {"role": "serve", "index": 1}}], "SELF": [{"host": {"role": "serve"}}]},
        "ports": [{"label": "http", "number": 8000, "count": 1, "auto": false, "publish": "service"}]
    }}});
    insta::assert_snapshot!(shown(json!({"kind": "leaderworkerset"}), &group));
    let two = json!({"name": "vllm", "stages": [["lead"], ["work"]], "roles": {"lead": {}, "work": {"needs": [{"role": "lead", "state": "ready", "min": 1}],
        "provided_env": {"SELF": [{"host": {"role": "work"}}]}}}});
    insta::assert_snapshot!(shown(json!({"kind": "leaderworkerset"}), &two));
    insta::assert_snapshot!(refused(
        json!({"kind": "leaderworkerset", "suspend": true, "ttl": "1h"}),
        &json!({"timeout_seconds": 5, "roles": {"a": {"instances": 2}, "b": {"instances": 2, "completion": {"min_succeeded": 1, "min_failed": 1}}}})
    ));
}

#[test]
fn a_pod_finds_its_own_group_of_several() {
    let file = |role: &str| json!({"path": "/etc/jobc/job.json", "content": [{"host": {"role": role, "index": 1}}], "mode": 420});
    let group = json!({"name": "vllm", "roles": {"serve": {
        "instances": 4, "provided_files": [file("serve")],
        "provided_env": {"LEADER": [{"host": {"role": "serve", "index": 0}}], "SECOND": [{"host": {"role": "serve", "index": 1}}]},
        "resources": {"cpu_millis": 4000}
    }}});
    let settings = json!({"kind": "leaderworkerset", "replicas": 3, "quota": {"cpu": 40}});
    let set = shown(settings, &group);
    for expected in [
        "replicas: 3",
        "fieldPath: metadata.labels['leaderworkerset.sigs.k8s.io/group-index']",
        "value: vllm-$(JOBC_GROUP).vllm",
        "value: vllm-$(JOBC_GROUP)-1.vllm",
        "does not get the file `/etc/jobc/job.json`",
        "requests 48 CPUs together",
    ] {
        assert!(set.contains(expected), "no {expected}:\n{set}");
    }
    let one = shown(json!({"kind": "leaderworkerset", "replicas": 1}), &group);
    assert!(one.contains("value: vllm-0-1.vllm") && !one.contains("JOBC_GROUP"), "{one}");
}

/// A head, and workers as jobc plans them: `ray start` until the job ends.
fn ray_of(workers: u32) -> Value {
    let endpoint = json!([{"host": {"role": "leader", "index": 0}}, ":6379"]);
    json!({
        "name": "vllm",
        "distributed": {"framework": "ray", "instances": 1 + workers, "world_size": 1 + workers, "port": 6379, "members": [
            {"role": "leader", "part": "head", "first_rank": 0, "processes": 1}, {"role": "worker", "part": "worker", "first_rank": 1, "processes": 1}]},
        "roles": {
            "leader": {"completion": {"min_succeeded": 1, "min_failed": 1}, "provided_env": {"RAY_ADDRESS": endpoint, "JOBC_RANK": "0"}},
            "worker": {"instances": workers, "provided_env": {
                "RAY_ADDRESS": endpoint, "JOBC_RANK": [{"rank": {"offset": 1}}], "SELF": [{"host": {"role": "worker"}}]}}
        }
    })
}

#[test]
fn ray_serves_as_a_leaderworkerset() {
    let settings =
        json!({"kind": "leaderworkerset", "queue": {"kueue": "q", "topology": {"required": "rack"}}});
    let report = refused(settings.clone(), &ray_of(1));
    assert!(!report.contains("min_succeeded") && !report.contains("Error"), "{report}");
    insta::assert_snapshot!(shown(settings.clone(), &ray_of(3)));
    let mut numbered = ray_of(3);
    numbered["roles"]["worker"]["env"] = json!({"SHARD": [{"index": {}}]});
    let report = refused(settings, &numbered);
    assert!(report.contains("the workers of role `worker` have no numbers in a LeaderWorkerSet"), "{report}");
}

#[test]
fn ray_on_volcano_ends_with_its_head() {
    let of = |pointer: &str| at(json!({"kind": "volcano"}), &ray_of(3), &format!("/spec/tasks/{pointer}"));
    let failed = json!({"events": ["PodFailed", "PodEvicted"], "action": "TerminateJob"});
    assert_eq!(
        of("0/policies"),
        json!([failed.clone(), {"event": "TaskCompleted", "action": "CompleteJob"}])
    );
    assert_eq!([of("1/policies"), of("1/replicas")], [json!([failed]), json!(3)]);
}

#[test]
fn kueue_places_a_head_and_its_workers_together() {
    let group = |kind: &str, changes: &Value, pod: &str| {
        let settings = json!({"kind": kind, "queue": {"kueue": "q", "topology": {"preferred": "rack"}}});
        let pointer = format!("/spec/{pod}/metadata/annotations/kueue.x-k8s.io~1podset-group-name");
        at(settings, changes, &pointer)
    };
    for pod in ["0", "1"] {
        let pod = format!("replicatedJobs/{pod}/template/spec/template");
        assert_eq!(group("jobset", &ray_of(3), &pod), "vllm");
    }
    assert_eq!(group("rayjob", &ray_of(3), "rayClusterSpec/headGroupSpec/template"), "vllm");
    // Kueue takes two pod sets, of which one is a single pod; other roles need not be near each other.
    let mut apart = ray_of(3);
    apart["distributed"] = Value::Null;
    assert_eq!(group("jobset", &apart, "replicatedJobs/0/template/spec/template"), Value::Null);
}

#[test]
fn legacy_kinds_are_refused_with_the_way_to_a_trainjob() {
    for kind in ["pytorchjob", "tfjob"] {
        let report = refused(json!({"kind": kind}), &json!({}));
        assert!(report.contains("`kind: trainjob`"), "{report}");
    }
}

#[test]
fn releases_and_settings_that_do_not_fit() {
    let check = |kubernetes: Value, expected: &str| {
        let report = refused(kubernetes, &json!({}));
        assert!(if expected.is_empty() { report.is_empty() } else { report.contains(expected) }, "{report}");
    };
    check(json!({"kind": "trainjob", "trainer": "2.2"}), "");
    check(
        json!({"kind": "trainjob", "trainer": "2.1"}),
        "jobc writes for Kubeflow Trainer 2.2 and later, not 2.1",
    );
    check(json!({"kind": "trainjob", "jobset": "0.5"}), "jobc writes for JobSet 0.6");
    check(json!({"kind": "leaderworkerset", "lws": "0.5"}), "jobc writes for LeaderWorkerSet 0.6");
    check(json!({"runtime": {"name": "x"}}), "`runtime` is for `kind: trainjob`");
    check(json!({"volcano_plugins": {"env": []}}), "`volcano_plugins` is for `kind: volcano`");
    check(json!({"kind": "volcano", "volcano_plugins": {"svc": []}}), "jobc writes the plugin `svc` itself");
    check(json!({"queue": {"topology": {"required": "rack"}}}), "`topology` is for jobs in a queue of Kueue");
    check(json!({"queue": {"kueue": "q", "topology": {}}}), "exactly one of `required` and `preferred`");
    check(json!({"queue": {"kueue": "q", "topology": {"preferred": "block"}}}), "");
}

#[test]
fn gangs_of_kubernetes_itself() {
    let two =
        json!({"gang": "required", "roles": {"a": {"instances": 2}, "b": {"instances": 3, "parallel": 2}}});
    for settings in [
        json!({"gang": "native"}),
        json!({"gang": "native", "release": "1.37"}),
        json!({"gang": "native", "release": "1.35", "jobset": "0.11"}),
    ] {
        let (files, report) = fixture::lower(&KubernetesBackend, &plan(settings.clone(), &two));
        assert_eq!(report, "");
        let texts: Vec<String> = files.iter().map(fixture::text).collect();
        let fields: Vec<&str> = texts[1]
            .lines()
            .filter(|line| line.contains("schedulingGroup") || line.contains("workloadRef"))
            .collect();
        assert_eq!(fields.len(), 2, "{}", texts[1]);
        insta::assert_snapshot!(format!("# {settings}\n{}# {}\n{}", texts[0], files[1].path, fields[0]));
    }
    let refused = |settings: Value, changes: &Value, expected: &str| {
        let report = refused(settings, changes);
        assert!(if expected.is_empty() { report.is_empty() } else { report.contains(expected) }, "{report}");
    };
    refused(json!({"gang": "native", "release": "1.34"}), &two, "`gang: native` needs Kubernetes 1.35");
    refused(json!({"gang": "native", "jobset": "0.11"}), &two, "write `jobset: \"0.12\"`");
    refused(json!({"gang": "native", "release": "1.35"}), &two, "a JobSet of JobSet 0.12 has no field");
    refused(json!({"gang": "native", "kind": "volcano"}), &two, "write `queue: {volcano: NAME}`");
    refused(
        json!({"gang": "native", "kind": "trainjob", "trainer": "2.2"}),
        &one_role(&json!({})),
        "write `trainer: \"2.3\"`",
    );
    refused(json!({"gang": "native"}), &json!({"gang": {"min": 2}, "roles": {"a": {"instances": 4}}}), "");
    refused(
        json!({"kind": "rayjob", "gang": "native", "kuberay": "1.6"}),
        &clustered(),
        "write `kuberay: \"1.7\"`",
    );
}
