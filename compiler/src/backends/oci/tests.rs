mod gpus;
mod rights;
mod volumes;

use serde_json::{Value, json};

use super::*;
use crate::backend::Content;
use crate::backends::fixture;
use crate::snapshot;

/// A training job with everything that a bundle can express.
fn training() -> Value {
    json!({
        "name": "resnet50",
        "images": {"main": {
            "source": {"kind": "build", "from": "pytorch/pytorch:2.4.0", "workdir": "/workspace"},
            "reference": "resnet50-main:1a2b3c", "declared_at": "/image"
        }},
        "volumes": {
            "imagenet": {"kind": "data", "source": {"kind": "path", "path": "/tmp/data"}},
            "labels": {"kind": "data", "source": {"kind": "path", "path": "./labels"}},
            "weights": {"kind": "data", "source": {"kind": "https", "url": "https://example.com/w.tar", "unpack": true}},
            "checkpoints": {"kind": "output", "source": {"kind": "path", "path": "out"}}
        },
        "secrets": {"wandb": {"env": "WANDB_API_KEY"}, "token": {"file": "~/.token"}},
        "roles": {"train": {
            "instances": 2,
            "command": {"script": {"shell": ["bash", "-euo", "pipefail", "-c"], "script": ["echo ", {"index": {}}, "\npython train.py"]}},
            "env": {"EPOCHS": "3", "WANDB_API_KEY": {"secret": "wandb"}, "NAME": "héllo 世界"},
            "provided_env": {
                "JOBC_INDEX": [{"index": {}}],
                "JOBC_HOSTS_TRAIN": [{"hosts": {"role": "train", "separator": ","}}],
                "JOBC_ENDPOINTS_TRAIN_RDZV": [{"hosts": {"role": "train", "label": "rdzv", "separator": ","}}],
                "JOBC_PORT_RDZV": [{"port": {"role": "train", "label": "rdzv"}}],
                "JOBC_RANK": [{"rank": {"offset": 0}}]
            },
            "provided_files": [{"path": "/etc/jobc/job.json", "content": ["{\"index\": ", {"index": {}}, "}\n"], "mode": 420}],
            "files": [
                {"path": "/opt/run.sh", "content": "exec python\n", "mode": 493},
                {"path": "/run/token", "content": {"secret": "token"}, "mode": 384}
            ],
            "ports": [{"label": "rdzv", "number": 29500, "count": 1, "auto": true, "shared_base": 20000, "publish": "none"}],
            "mounts": [
                {"volume": "labels", "path": "/output/labels", "writable": false},
                {"volume": "imagenet", "path": "/data", "writable": false},
                {"volume": "weights", "path": "/weights", "writable": false},
                {"volume": "checkpoints", "path": "/output", "writable": true}
            ],
            "user": "1000:100",
            "labels": {"team": "vision"},
            "resources": {
                "cpu_millis": 7500, "memory_bytes": 34_359_738_368_u64, "shm_bytes": 8_589_934_592_u64, "pids": 4096,
                "disk_bytes": 1_000_000_000, "hugepages_bytes": {"2MiB": 4_194_304}, "rdma": 1,
                "io": {"259:0": {"read_bytes": 1_000_000}, "/data": {"write_bytes": 7, "read_ops": 8}},
                "ulimits": {"memlock": null, "nofile": 4096},
                "gpu": {"count": 2, "first": 1, "vendor": "nvidia", "cuda": "12.4.1", "driver": "550.54.15",
                        "compute_capability": "8.0", "models": ["A100"], "memory_bytes": 42_949_672_960_u64,
                        "capabilities": ["compute", "utility"]}
            },
            "security": {"read_only_root": true, "capabilities": {"add": ["ipc_lock"], "drop": ["CAP_NET_RAW"]}}
        }}
    })
}

fn bundles(changes: &Value) -> Vec<(String, Value)> {
    let (files, report) = fixture::lower(&OciBackend, &fixture::job(changes));
    assert_eq!(report, "");
    let config = |file: &File| match &file.content {
        Content::Json(value) => Some((file.path.to_string(), value.clone())),
        _ => None,
    };
    files.iter().filter_map(config).collect()
}

/// The config.json of the only task.
fn bundle(changes: &Value) -> Value {
    let mut all = bundles(changes);
    assert_eq!(all.len(), 1);
    all.remove(0).1
}

/// The findings for one role, and whether they are errors.
fn report(changes: &Value) -> String {
    let (files, report) = fixture::lower(&OciBackend, &fixture::job(changes));
    format!("{report}{} files", files.len())
}

fn env(config: &Value, name: &str) -> Option<String> {
    let list = config["process"]["env"].as_array().unwrap();
    let found: Vec<_> =
        list.iter().filter_map(|entry| entry.as_str()?.strip_prefix(&format!("{name}="))).collect();
    assert!(found.len() < 2, "{name} is there more than once: {found:?}");
    found.first().map(|value| (*value).to_owned())
}

fn options(config: &Value, at: &str) -> Option<Vec<String>> {
    let mount = config["mounts"].as_array().unwrap().iter().find(|mount| mount["destination"] == at)?;
    serde_json::from_value(mount["options"].clone()).ok()
}

#[test]
fn a_training_job_as_bundles() {
    let (files, report) = fixture::lower(&OciBackend, &fixture::job(&training()));
    assert_eq!(report, "");
    let paths: Vec<_> = files.iter().map(|file| format!("{:04o} {}", file.mode, file.path)).collect();
    insta::assert_snapshot!("training_files", paths.join("\n"));
    let mut shown = files[0].content.clone();
    if let Content::Json(value) = &mut shown {
        // `examples/hello-cpu/out` has a whole bundle.
        *value = snapshot::difference(value, &bundle(&json!({}))).unwrap_or_default();
    }
    let input = snapshot::json(&training());
    let shown = File { content: shown, ..files[0].clone() };
    insta::assert_snapshot!("training_config", format!("{input}\n---\n{}", fixture::text(&shown)));
    let other: Vec<_> = files[3..].iter().map(fixture::text).collect();
    assert!(other[0].contains("NVIDIA_VISIBLE_DEVICES=3,4") && other[0].contains("JOBC_PORT_RDZV=20001"));
    assert_eq!(other[1], "{\"index\": 1}\n");
}

#[test]
fn a_directory_in_memory_is_a_file_system_of_its_size() {
    let changes = json!({
        "volumes": {"scratch": {"kind": "data", "source": {"kind": "memory", "size_bytes": 1_048_576}}},
        "roles": {"main": {"mounts": [{"volume": "scratch", "path": "/scratch", "writable": true}]}}
    });
    let config = bundle(&changes);
    assert_eq!(options(&config, "/scratch").unwrap().join(","), "nosuid,nodev,mode=1777,size=1048576");
    let mounts = config["mounts"].as_array().unwrap().iter();
    assert_eq!(mounts.filter(|mount| mount["destination"] == "/scratch").count(), 1);
}

#[test]
fn parts_tell_where_they_come_from() {
    let (files, _) = fixture::lower(&OciBackend, &fixture::job(&training()));
    let Content::Json(config) = &files[0].content else { panic!("config.json is JSON") };
    let shown: Vec<_> = files[0]
        .origins
        .iter()
        .map(|origin| {
            let crate::backend::FilePart::Pointer(part) = &origin.part else { panic!("{origin:?}") };
            let there = config.pointer(part.as_str()).unwrap_or_else(|| panic!("{part} is not there"));
            format!("{part} {there} <- {:?}", origin.from)
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn bundles_are_the_same_on_every_run() {
    let first = fixture::lower(&OciBackend, &fixture::job(&training()));
    for _ in 0..20 {
        let again = fixture::lower(&OciBackend, &fixture::job(&training()));
        let texts = |files: &[File]| files.iter().map(fixture::text).collect::<Vec<_>>();
        assert_eq!(texts(&again.0), texts(&first.0));
    }
}

#[test]
fn only_requested_settings_are_written() {
    let config = bundle(&json!({}));
    let resources = config["linux"]["resources"].as_object().unwrap();
    assert_eq!(resources.keys().collect::<Vec<_>>(), ["devices"]);
    assert_eq!(config["process"].get("rlimits"), None);
    assert_eq!(config["process"]["capabilities"]["ambient"], json!([]));
    assert_eq!(config["process"]["capabilities"]["inheritable"], json!([]));
    assert_eq!(config["process"]["env"].as_array().unwrap().len(), 1);
    assert_eq!(config.get("hooks"), None);
    assert!(options(&config, "/dev/shm").unwrap().contains(&"size=65536k".to_owned()));
}

#[test]
fn networks() {
    let check = |network: &str, address: &str, own_namespace: bool| {
        let all = bundles(&json!({"network": network, "roles": {"w": {
            "instances": 2,
            "ports": [{"label": "p", "number": 29500, "count": 2, "auto": true, "shared_base": 20000, "publish": "none"}],
            "provided_env": {
                "ALL": [{"hosts": {"role": "w", "label": "p", "separator": ","}}],
                "OWN": [{"host": {"role": "w"}}, ":", {"port": {"role": "w", "label": "p"}}],
                "FIRST": [{"host": {"role": "w", "index": 0}}]
            }
        }}}));
        let second = &all[1].1;
        let seen = ["ALL", "OWN", "FIRST"].map(|name| env(second, name).unwrap()).join(" ");
        assert_eq!(seen, address, "{network}");
        let namespaces = second["linux"]["namespaces"].as_array().unwrap();
        assert_eq!(namespaces.contains(&json!({"type": "network"})), own_namespace, "{network}");
        assert_eq!(options(second, "/etc/resolv.conf").is_some(), !own_namespace, "{network}");
    };
    check("auto", "127.0.0.1:20000,127.0.0.1:20002 127.0.0.1:20002 127.0.0.1", false);
    check("host", "127.0.0.1:20000,127.0.0.1:20002 127.0.0.1:20002 127.0.0.1", false);
    check("job", "w-0:29500,w-1:29500 w-1:29500 w-0", true);
    check("none", "127.0.0.1:29500,127.0.0.1:29500 127.0.0.1:29500 127.0.0.1", true);
}

#[test]
fn commands() {
    let check = |role: Value, image: Value, args: &[&str], left: &str| {
        let config = bundle(&json!({
            "images": {"main": {"source": image}}, "roles": {"main": role}
        }));
        let mut seen: Vec<String> = serde_json::from_value(config["process"]["args"].clone()).unwrap();
        if let Some(script) = seen.last_mut().filter(|script| script.contains("exit 127")) {
            "refuses to start".clone_into(script);
        }
        assert_eq!(seen, args);
        assert_eq!(config["annotations"]["dev.jobc.from-image"], left);
    };
    let registry = || json!({"kind": "reference"});
    let built = || json!({"kind": "build", "from": "busybox", "entrypoint": ["/init", "-v"], "user": "app"});
    let own = || json!({"command": {"image": {}}});
    let arguments = || json!({"command": {"args": ["--epochs", "3"]}});
    check(own(), registry(), &["/bin/sh", "-c", "refuses to start"], "env,path,cwd,user,command");
    check(own(), built(), &["/init", "-v"], "env,path,cwd");
    check(arguments(), registry(), &["--epochs", "3"], "env,path,cwd,user,entrypoint");
    check(arguments(), built(), &["/init", "-v", "--epochs", "3"], "env,path,cwd");
    let complete = json!({
        "command": {"argv": {"argv": ["python", "x.py"]}}, "user": "0", "workdir": "/w", "env": {"PATH": "/bin"}
    });
    check(complete, registry(), &["python", "x.py"], "env");
}

#[test]
fn too_many_tasks_and_ports() {
    let ports = |instances: u32, base: u32, count: u32| {
        json!({"roles": {"worker": {"instances": instances, "ports": [
            {"label": "data", "number": 29500, "count": count, "auto": true, "shared_base": base, "publish": "none"}
        ]}}})
    };
    assert_eq!(report(&ports(4, 65532, 1)), "4 files");
    let many_roles: serde_json::Map<_, _> = (0..2000).map(|n| (format!("r{n}"), json!({}))).collect();
    insta::assert_snapshot!(
        [
            report(&ports(4, 65533, 1)),
            report(&ports(600, 20000, 100)),
            report(&json!({"roles": {"trial": {"instances": 100_000}}})),
            report(&json!({"roles": many_roles})),
        ]
        .join("\n\n")
    );
}
