//! Plans and the jobs they become.

use std::fmt::Write as _;

use camino::Utf8PathBuf;
use jobc_schema::plan::JobPlan;
use serde_json::{Value, json};

use crate::backend::capability::needs;
use crate::backend::{Backend, Content, Context, File, Losses, Support};
use crate::diagnostic::Sink;
use crate::files::MemoryFiles;

use super::OpenpaiBackend;

/// A minimal role with these additional fields.
fn role(name: &str, fields: &Value) -> Value {
    let mut role = json!({
        "name": name, "instances": 1, "image": "main",
        "command": {"script": {"shell": ["bash", "-euo", "pipefail", "-c"], "script": "python train.py\n"}},
        "resources": {"cpu_millis": 4000, "memory_bytes": 8_u64 << 30},
        "completion": {"min_failed": 1}, "retry": {"max": 0, "scope": "task"},
        "grace_period_seconds": 30, "security": {}
    });
    merge(&mut role, fields);
    role
}

fn job(roles: &[Value], fields: &Value) -> JobPlan {
    let mut plan = json!({
        "name": "resnet50",
        "target": {"name": "pai", "settings": {"backends": ["openpai"]}},
        "images": {"main": {"source": {"kind": "reference"}, "reference": "python:3.11", "declared_at": "/image"}},
        "roles": roles, "stages": [], "gang": "auto", "network": "auto",
        "totals": {"instances": 0, "cpu_millis": 0, "memory_bytes": 0, "gpus": 0, "gpu_slices": 0}
    });
    merge(&mut plan, fields);
    serde_json::from_value(plan).unwrap()
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                if key == "command" {
                    into.remove(key);
                }
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

fn lower(job: &JobPlan) -> (Vec<File>, Sink) {
    let files = MemoryFiles::default();
    let context = Context {
        files: &files,
        to_job: Utf8PathBuf::from("../../.."),
        gpu_injection: None,
        losses: Losses::Refuse,
        plugins: None,
        all_jobs: &[],
    };
    let mut sink = Sink::new();
    (OpenpaiBackend.lower(job, &context, &mut sink), sink)
}

fn yaml(job: &JobPlan) -> Value {
    let (files, sink) = lower(job);
    assert!(!sink.has_errors(), "{:?}", sink.diagnostics());
    match &files[0].content {
        Content::Yaml(value) => value.clone(),
        other => panic!("{other:?}"),
    }
}

/// The errors, the findings, and the file.
fn check(job: &JobPlan) -> String {
    let mut shown = String::new();
    for (capability, at) in needs(job) {
        if let Support::None(why) | Support::Lossy(why) = OpenpaiBackend.support(capability, job) {
            let _ = writeln!(shown, "refused {at} ({capability:?}): {why}");
        }
    }
    let (files, sink) = lower(job);
    for d in sink.diagnostics() {
        let _ = writeln!(shown, "{:?} {} {}\n  {:?}", d.severity, d.code, d.message, d.notes);
    }
    if let Content::Yaml(value) = &files[0].content {
        let text = crate::emit::to_yaml(value);
        shown.push_str("----\n");
        shown.push_str(&text);
    }
    shown
}

#[test]
fn one_role() {
    let plan = job(
        &[role(
            "train",
            &json!({
                "instances": 2, "workdir": "/work space",
                "env": {"A": "it's 1", "TOKEN": {"secret": "wandb"}, "WHO": ["task ", {"index": {}}]},
                "provided_env": {"JOBC_ROLE": "train", "JOBC_INDEX": [{"index": {}}], "PAI_JOB_NAME": "x", "A": "hidden"},
                "resources": {"shm_bytes": 8_589_934_592_u64, "rdma": 1, "gpu": {"count": 8, "first": 0, "vendor": "nvidia"}},
                "completion": {"min_succeeded": 1},
                "command": {"script": {"shell": ["bash", "-euo", "pipefail", "-c"], "setup": "pip list", "script": "python train.py\n"}}
            }),
        )],
        &json!({"description": "ResNet", "secrets": {"wandb": {"env": "WANDB_API_KEY"}, "unused": {"file": "x"}}}),
    );
    insta::assert_snapshot!(check(&plan));
}

#[test]
fn rendezvous() {
    let hosts = |label: Value, before: &str, after: &str, separator: &str| json!({"hosts": {"role": "ps-server", "label": label, "before": before, "after": after, "separator": separator}});
    let plan = job(
        &[
            role(
                "ps-server",
                &json!({
                    "instances": 3, "ports": [{"label": "grpc-a", "number": 2222, "count": 2, "auto": true, "publish": "none"}],
                    "provided_env": {"JOBC_PORT_GRPC_A": [{"port": {"role": "ps-server", "label": "grpc-a"}}]}
                }),
            ),
            role(
                "chief",
                &json!({
                    "ports": [{"label": "http", "number": 8888, "count": 1, "auto": false, "publish": "host"}],
                    "provided_env": {
                        "JOBC_HOSTS_PS_SERVER": [hosts(Value::Null, "", "", ",")],
                        "TF_CONFIG": ["{\"ps\":[", hosts(json!("grpc-a"), "\"", "\"", ","), "],\"index\":", {"index": {}}, "}"],
                        "RANK": [{"rank": {"offset": 3}}],
                        "SELF": [{"host": {"role": "chief"}}, ":", {"port": {"role": "chief", "label": "http"}}],
                        "MASTER_ADDR": [{"host": {"role": "ps-server", "index": 0}}],
                        "MASTER_PORT": [{"port": {"role": "ps-server", "label": "grpc-a", "index": 0}}],
                        "JOBC_HOSTFILE": "/etc/jobc/hostfile", "OMPI_MCA_plm_rsh_args": "-p 22", "JOBC_PORT_HTTP": "8888"
                    },
                    "provided_files": [
                        {"path": "/etc/jobc/job.json", "content": "{\"a\": 1}\n", "mode": 420},
                        {"path": "/etc/jobc/hostfile", "content": [hosts(Value::Null, "", " slots=8\n", "")], "mode": 420}
                    ],
                    "command": {"argv": {"argv": ["python", "it's.py", ["--rank=", {"index": {}}]], "setup": ["echo '", {"host": {"role": "chief", "index": 0}}, "'"]}}
                }),
            ),
        ],
        &json!({"distributed": {"framework": "horovod", "members": [], "instances": 4, "world_size": 4, "port": 2222, "ssh": {"port": 22, "user": "root"}}}),
    );
    insta::assert_snapshot!(check(&plan));
}

#[test]
fn templates_of_the_user_stay_text() {
    let plan = job(
        &[
            role(
                "a",
                &json!({
                    "env": {"T": "<% $secrets.x %>", "S": ["<", {"index": {}}, "%"]},
                    "files": [{"path": "/x/page.erb", "content": "<%= title %>\n", "mode": 420}, {"path": "/plain", "content": "no end", "mode": 493},
                              {"path": "/key", "content": {"secret": "key"}, "mode": 384}],
                    "command": {"script": {"shell": ["sh", "-eu", "-c"], "script": "echo '<% x %>'"}},
                    "timeout_seconds": 3600
                }),
            ),
            role(
                "b",
                &json!({
                    "command": {"script": {"shell": ["bash", "-euo", "pipefail", "-c"], "script": "echo '<% x %>'"}}
                }),
            ),
        ],
        &json!({"secrets": {"key": {"file": "secrets/key"}}}),
    );
    let shown = check(&plan);
    let templates: Vec<&str> = shown.match_indices("<%").map(|(at, _)| &shown[at..at + 11]).collect();
    assert_eq!(templates, ["<% $secrets"], "{shown}");
    insta::assert_snapshot!(shown);
}

#[test]
fn settings_of_the_target() {
    let plan = job(
        &[
            role(
                "train-a",
                &json!({
                    "mounts": [{"volume": "imagenet", "path": "/data", "writable": false}, {"volume": "out", "path": "/output", "writable": true}],
                    "resources": {"gpu": {"count": 1, "first": 0, "vendor": "nvidia", "models": ["V100"]}}
                }),
            ),
            role(
                "eval",
                &json!({"mounts": [{"volume": "imagenet", "path": "/eval/data", "writable": false}]}),
            ),
        ],
        &json!({
            "volumes": {
                "imagenet": {"kind": "data", "source": {"kind": "path", "path": "/tmp/data"}},
                "out": {"kind": "output", "source": {"kind": "target"}}
            },
            "images": {
                "main": {"source": {"kind": "build", "from": "python:3.11"}, "reference": "resnet50-main:01", "declared_at": "/image"},
                "unused": {"source": {"kind": "reference"}, "reference": "a:1", "declared_at": "/images/unused"}
            },
            "secrets": {"login": {"env": "LOGIN"}},
            "registries": {"registry.example.com": {"username": "me", "password_secret": "login"}},
            "target": {"settings": {"registry": "registry.example.com/ml", "openpai": {
                "virtual_cluster": "research", "priority": "test",
                "storages": [
                    {"name": "confignfs", "provides": "imagenet"}, {"name": "scratch", "mount": "/mnt/scratch", "provides": "out"},
                    {"name": "home"}, {"name": "other", "provides": "of-another-job"}
                ],
                "plugins": [{"plugin": "tensorboard", "taskroles": ["train-a"], "parameters": {"port": 6006, "logdir": {"all": "/output"}}}],
                "roles": {"train-a": {"sku_type": "V100", "sku_num": 1}, "absent": {"sku_type": "K80"}}
            }}}
        }),
    );
    insta::assert_snapshot!(check(&plan));
}

#[test]
fn gang_and_retries() {
    let of = |gang: &str, scope: &str, distributed: bool| {
        let mut fields = json!({"gang": gang});
        if distributed {
            fields["distributed"] =
                json!({"framework": "torchrun", "members": [], "instances": 1, "world_size": 1, "port": 1});
        }
        let plan =
            job(&[role("a", &json!({"retry": {"max": 2, "scope": scope}})), role("b", &json!({}))], &fields);
        let refused: Vec<String> = needs(&plan)
            .into_iter()
            .filter(|(capability, _)| OpenpaiBackend.support(*capability, &plan) != Support::Full)
            .map(|(capability, _)| format!("{capability:?}"))
            .collect();
        let made = yaml(&plan);
        format!(
            "{gang:8} {scope:4} distributed={distributed:5}: gangAllocation {}, jobRetryCount {}, taskRetryCount {}, refused {refused:?}",
            made["extras"]["gangAllocation"], made["jobRetryCount"], made["taskRoles"]["a"]["taskRetryCount"]
        )
    };
    let lines: Vec<String> = ["auto", "none", "required"]
        .into_iter()
        .flat_map(|gang| ["task", "role", "job"].map(|scope| (gang, scope)))
        .flat_map(|(gang, scope)| [false, true].map(|distributed| of(gang, scope, distributed)))
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn launching_instances_end_the_job() {
    let plan = job(
        &[
            role("launch", &json!({"launch": "first", "instances": 2})),
            role("work", &json!({"launch": "none", "instances": 4})),
        ],
        &json!({}),
    );
    insta::assert_snapshot!(check(&plan));
}

#[test]
fn what_is_refused() {
    let plan = job(
        &[
            role(
                "a",
                &json!({
                    "instances": 4, "parallel": 2, "user": "1000", "labels": {"a": "b"}, "command": {"image": {}},
                    "needs": [{"role": "b", "state": "succeeded", "min": 1}],
                    "ready": {"probe": {"port": "x"}, "delay_seconds": 0, "every_seconds": 1, "try_timeout_seconds": 1, "timeout_seconds": 1, "keep": true},
                    "resources": {"cpu_millis": null, "memory_bytes": null, "disk_bytes": 1, "pids": 1, "hugepages_bytes": {"2MiB": 1}, "rdma": 2, "ulimits": {"nofile": 1},
                        "gpu": {"count": 1, "first": 0, "vendor": "amd", "models": ["MI300"], "memory_bytes": 1, "cuda": "12.4", "share": {"isolation": "soft", "same_card": false}}},
                    "retry": {"max": 1, "scope": "role", "on_exit_codes": [3], "backoff_seconds": 1},
                    "grace_period_seconds": 5, "security": {"read_only_root": true, "privileged": true}
                }),
            ),
            role("b", &json!({"instances": 2, "image": "built"})),
        ],
        &json!({
            "timeout_seconds": 1, "gang": {"min": 2}, "network": "job", "max_parallel": 2, "matrix": {"a": 1},
            "secrets": {"s": {"store": {"name": "a", "key": "b"}}},
            "images": {"built": {"source": {"kind": "build", "from": "a"}, "reference": "x:1", "declared_at": "/images/built"}},
            "volumes": {
                "nfs": {"kind": "data", "source": {"kind": "nfs", "host": "filer", "path": "/x"}, "options": {"ro": "yes"}},
                "git": {"kind": "data", "source": {"kind": "git", "url": "https://example.com/x"}}
            }
        }),
    );
    let shown = check(&plan);
    insta::assert_snapshot!(shown.split_once("----\n").unwrap().0);
}

#[test]
fn what_only_the_backend_sees() {
    let plan = job(
        &[
            role(
                "ps-server",
                &json!({"resources": {"cpu_millis": 1500, "memory_bytes": 1_000_000_000, "shm_bytes": 1}}),
            ),
            role("psserver", &json!({"mounts": [{"volume": "out", "path": "/output", "writable": true}]})),
        ],
        &json!({
            "secrets": {"a-b": {"env": "A"}},
            "volumes": {"out": {"kind": "output", "source": {"kind": "target"}, "secret": "a-b"}},
            "target": {"settings": {"openpai": {
                "storages": [{"name": "shared", "provides": "out", "read_only": true}],
                "roles": {"psserver": {"sku_type": "V100", "sku_num": 1}}
            }}}
        }),
    );
    let shown = check(&plan);
    insta::assert_snapshot!(shown.split_once("----\n").unwrap().0);
}

/// A hundred thousand instances take one line of the job, not one each.
#[test]
fn the_job_does_not_grow_with_instances() {
    let size = |instances: u32| {
        let list = json!([{"hosts": {"role": "a", "separator": ","}}]);
        let plan = job(
            &[role("a", &json!({"instances": instances, "provided_env": {"JOBC_HOSTS_A": list}}))],
            &json!({}),
        );
        crate::emit::to_yaml(&yaml(&plan)).len()
    };
    assert_eq!(size(100_000), size(100) + 2 * "000".len());
}
