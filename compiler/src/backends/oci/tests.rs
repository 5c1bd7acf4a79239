use jobc_schema::plan::JobPlan;
use serde_json::{Value, json};

use super::*;
use crate::backend::Content;
use crate::backends::fixture;

/// A training job with everything a bundle can say.
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

/// What one role is reported for, and whether it is refused.
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
        // The names have a test of their own.
        value["linux"]["seccomp"]["syscalls"][0]["names"] = json!(["…"]);
    }
    let input = serde_json::to_string_pretty(&training()).unwrap();
    let shown = File { content: shown, ..files[0].clone() };
    insta::assert_snapshot!("training_config", format!("{input}\n---\n{}", fixture::text(&shown)));
    let other: Vec<_> = files[3..].iter().map(fixture::text).collect();
    assert!(other[0].contains("NVIDIA_VISIBLE_DEVICES=3,4") && other[0].contains("JOBC_PORT_RDZV=20001"));
    assert_eq!(other[1], "{\"index\": 1}\n");
}

#[test]
fn parts_tell_where_they_come_from() {
    let (files, _) = fixture::lower(&OciBackend, &fixture::job(&training()));
    let Content::Json(config) = &files[0].content else { panic!("config.json is JSON") };
    let shown: Vec<_> = files[0]
        .origins
        .iter()
        .map(|origin| {
            let crate::backend::PartOf::Pointer(part) = &origin.part else { panic!("{origin:?}") };
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
fn what_was_not_asked_for_is_not_there() {
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
fn users() {
    let check = |user: &str, uid: u32, gid: u32, may: bool| {
        let config = bundle(&json!({"roles": {"main": {"user": user}}}));
        let process = &config["process"];
        assert_eq!(process["user"], json!({"uid": uid, "gid": gid}), "{user}");
        assert_eq!(config["annotations"]["dev.jobc.user"], user);
        let effective = process["capabilities"]["effective"].as_array().unwrap();
        assert_eq!(!effective.is_empty(), may, "{user}");
        assert_eq!(process["capabilities"]["bounding"].as_array().unwrap().len(), 14);
    };
    check("1000:100", 1000, 100, false);
    check("1000", 1000, 0, false);
    check("0", 0, 0, true);
    check("app:app", 0, 0, true);
}

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

#[test]
fn privileges() {
    let config = bundle(&json!({"roles": {"main": {"security": {"privileged": true}}}}));
    assert_eq!(config["process"]["capabilities"]["bounding"].as_array().unwrap().len(), 41);
    assert_eq!(config["process"]["noNewPrivileges"], false);
    assert_eq!(config["linux"]["resources"]["devices"], json!([{"allow": true, "access": "rwm"}]));
    for part in ["seccomp", "maskedPaths", "readonlyPaths"] {
        assert_eq!(config["linux"].get(part), None, "{part}");
    }
    assert!(options(&config, "/sys").unwrap().contains(&"rw".to_owned()));
}

#[test]
fn capabilities_are_added_and_dropped() {
    let check = |add: &[&str], drop: &[&str], expected: &[&str], absent: &[&str]| {
        let config =
            bundle(&json!({"roles": {"main": {"security": {"capabilities": {"add": add, "drop": drop}}}}}));
        let held: Vec<String> =
            serde_json::from_value(config["process"]["capabilities"]["bounding"].clone()).unwrap();
        for name in expected {
            assert!(held.iter().any(|one| one == name), "{name} is not in {held:?}");
        }
        for name in absent {
            assert!(held.iter().all(|one| one != name), "{name} is in {held:?}");
        }
    };
    check(&["IPC_LOCK"], &["net_raw"], &["CAP_IPC_LOCK", "CAP_CHOWN"], &["CAP_NET_RAW"]);
    check(&["CAP_SYS_NICE"], &["ALL"], &["CAP_SYS_NICE"], &["CAP_CHOWN"]);
    check(&["all"], &["SYS_ADMIN"], &["CAP_BPF", "CAP_CHOWN"], &["CAP_SYS_ADMIN"]);
    insta::assert_snapshot!(report(
        &json!({"roles": {"main": {"security": {"capabilities": {"add": ["LOCK_IPC", "权限"], "drop": ["IPC_LOK"]}}}}})
    ));
}

#[test]
fn system_calls_follow_capabilities() {
    let allowed = |add: &[&str]| {
        let config = bundle(&json!({"roles": {"main": {"security": {"capabilities": {"add": add}}}}}));
        let calls = config["linux"]["seccomp"]["syscalls"].as_array().unwrap().clone();
        let mut names: Vec<String> = vec![];
        for call in
            calls.iter().filter(|call| call["action"] == "SCMP_ACT_ALLOW" && call.get("args").is_none())
        {
            names.extend(serde_json::from_value::<Vec<String>>(call["names"].clone()).unwrap());
        }
        (names, calls)
    };
    let (usual, calls) = allowed(&[]);
    for name in ["read", "execve", "futex", "chroot", "arch_prctl", "clock_gettime"] {
        assert!(usual.iter().any(|one| one == name), "{name} is refused");
    }
    for name in
        ["mount", "unshare", "bpf", "kexec_load", "io_uring_setup", "clone", "clone3", "mbind", "socket"]
    {
        assert!(usual.iter().all(|one| one != name), "{name} is allowed");
    }
    assert!(calls.contains(&json!({"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38})));
    assert!(calls.contains(&json!({"names": ["clone"], "action": "SCMP_ACT_ALLOW",
        "args": [{"index": 0, "value": 0x7e02_0000, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}]})));
    let (admin, calls) = allowed(&["SYS_ADMIN"]);
    for name in ["mount", "clone", "clone3"] {
        assert!(admin.iter().any(|one| one == name), "{name} is refused");
    }
    assert!(calls.iter().all(|call| call["action"] == "SCMP_ACT_ALLOW"));
}

#[test]
fn volumes_the_target_provides() {
    let volumes = json!({
        "imagenet": {"kind": "data", "source": {"kind": "nfs", "host": "filer", "path": "/imagenet"}},
        "scratch": {"kind": "output", "source": {"kind": "target"}}
    });
    let job = |storage: Value| {
        fixture::job(&json!({"volumes": volumes, "target": {"settings": {"oci": {"storage": storage}}}}))
    };
    let asked = |job: &JobPlan| {
        let found = crate::backend::capability::needs(job)
            .into_iter()
            .filter(|(_, at)| !at.as_str().starts_with("/roles"));
        found
            .map(|(c, at)| format!("{at}: {:?}", OciBackend.support_at(c, &at, job)))
            .collect::<Vec<_>>()
            .join("\n")
    };
    insta::assert_snapshot!(
        [asked(&job(json!({}))), asked(&job(json!({"imagenet": "/mnt/imagenet"})))].join("\n\n")
    );
    let both = json!({"imagenet": "/mnt/imagenet", "scratch": "scratch"});
    let config = bundle(&json!({
        "volumes": volumes, "target": {"settings": {"oci": {"storage": both}}},
        "roles": {"main": {"mounts": [
            {"volume": "imagenet", "path": "/data", "writable": false}, {"volume": "scratch", "path": "/s", "writable": true}
        ]}}
    }));
    let mounts = config["mounts"].as_array().unwrap();
    let sources: Vec<_> = mounts[mounts.len() - 2..].iter().map(|mount| mount["source"].clone()).collect();
    assert_eq!(sources, ["/mnt/imagenet", "../../../../../scratch"]);
}

#[test]
fn a_file_never_leaves_its_bundle() {
    let changes =
        json!({"roles": {"main": {"files": [{"path": "/a/../../../etc/x", "content": "x", "mode": 420}]}}});
    let (files, _) = fixture::lower(&OciBackend, &fixture::job(&changes));
    assert_eq!(files[1].path, "main-0/files/a/etc/x");
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

#[test]
fn mounts_inside_read_only_volumes() {
    let volume = || json!({"kind": "data", "source": {"kind": "path", "path": "x"}});
    let job = |writable: bool| {
        json!({"volumes": {"outer": volume(), "inner": volume(), "near": volume()}, "roles": {"main": {
            "mounts": [
                {"volume": "inner", "path": "/data/inner", "writable": false},
                {"volume": "outer", "path": "/data/", "writable": writable},
                {"volume": "near", "path": "/database", "writable": true}
            ],
            "files": [{"path": "/data/conf.yaml", "content": "x", "mode": 420}]
        }}})
    };
    assert_eq!(report(&job(true)), "2 files");
    insta::assert_snapshot!(report(&job(false)));
}
