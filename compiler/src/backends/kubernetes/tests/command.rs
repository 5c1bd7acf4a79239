//! Commands and environments.

use serde_json::{Value, json};

use super::{at, shown, shown_against};
use crate::backend::{Backend as _, Capability, Support};
use crate::backends::kubernetes::KubernetesBackend;

const COMMAND: &str = "/spec/template/spec/containers/0/command";
const ENV: &str = "/spec/template/spec/containers/0/env";

fn one_role(role: Value) -> Value {
    let mut changes = json!({"roles": {}});
    changes["roles"]["main"] = role;
    changes
}

#[test]
fn one_pod() {
    insta::assert_snapshot!(shown_against(
        json!({"namespace": "ml"}),
        &json!({
            "description": "says hello, 你好",
            "roles": {"main": {
                "command": {"script": {
                    "shell": ["bash", "-euo", "pipefail", "-c"],
                    "setup": "pip install -e .",
                    "script": "echo $(date) $$ ${HOME} 價$價 ${#a[@]}\npython train.py\n"
                }},
                "env": {"OMP_NUM_THREADS": "8", "PRICE": "$(not a variable)"},
                "provided_env": {"JOBC_JOB": "demo", "JOBC_INDEX": [{"index": {}}], "JOBC_HOSTS_MAIN": [{"hosts": {"role": "main", "separator": ","}}]},
                "workdir": "/workspace",
                "user": "1000:1000",
                "resources": {"cpu_millis": 8000, "memory_bytes": 34_359_738_368_u64, "shm_bytes": 8_589_934_592_u64,
                    "disk_bytes": 500_000_000, "hugepages_bytes": {"2MiB": 4_294_967_296_u64},
                    "gpu": {"count": 1, "first": 0, "vendor": "nvidia", "capabilities": ["compute", "utility", "video"]}},
                "labels": {"team": "vision"},
                "security": {"read_only_root": true, "capabilities": {"add": ["IPC_LOCK"], "drop": ["NET_RAW"]}},
                "grace_period_seconds": 120,
                "timeout_seconds": 7200
            }}
        }),
        &|_| None
    ));
}

#[test]
fn several_pods_with_names() {
    insta::assert_snapshot!(shown(
        json!({}),
        &json!({
            "name": "ddp",
            "distributed": {"framework": "torchrun", "members": [{"role": "train", "part": "worker", "first_rank": 0, "processes": 8}],
                "instances": 4, "world_size": 32, "port": 29500},
            "roles": {"train": {
                "instances": 4,
                "command": {"argv": {"argv": ["torchrun", "train.py", ["--seed=", {"index": {}}]]}},
                "provided_env": {
                    "PET_NNODES": "4",
                    "PET_NODE_RANK": [{"rank": {"offset": 0}}],
                    "PET_MASTER_ADDR": [{"host": {"role": "train", "index": 0}}],
                    "PET_MASTER_PORT": [{"port": {"role": "train", "label": "rendezvous", "index": 0}}],
                    "JOBC_HOSTS_TRAIN": [{"hosts": {"role": "train", "separator": ","}}],
                    "JOBC_INDEX": [{"index": {}}]
                },
                "env": {"SELF": [{"host": {"role": "train"}}]},
                "ports": [{"label": "rendezvous", "number": 29500, "count": 1, "auto": false, "publish": "none"}],
                "provided_files": [{"path": "/etc/jobc/job.json", "content": "{}\n", "mode": 420}],
                "resources": {"gpu": {"count": 8, "first": 0, "vendor": "nvidia"}}
            }}
        })
    ));
}

#[test]
fn what_the_kubelet_would_expand_is_escaped() {
    let check = |written: &str, expected: &str| {
        let role = json!({"command": {"argv": {"argv": [written]}}, "env": {"A": written}});
        assert_eq!(at(json!({}), &one_role(role.clone()), COMMAND), json!([expected]));
        assert_eq!(at(json!({}), &one_role(role), &format!("{ENV}/0/value")), json!(expected));
    };
    check("$(date)", "$$(date)");
    check("$HOME", "$HOME");
    check("$$", "$$$");
    check("5$", "5$");
    check("$語", "$$語");
}

#[test]
fn a_dollar_before_the_index_stays_a_dollar() {
    let role = json!({"instances": 2, "command": {"argv": {"argv": [["cost: $", {"index": {}}]]}}});
    assert_eq!(at(json!({}), &one_role(role), COMMAND), json!(["cost: $$$(JOBC_INDEX)"]));
}

#[test]
fn the_only_instance_knows_its_index() {
    let index = json!([{"index": {}}]);
    let role = json!({
        "command": {"argv": {"argv": [[{"index": {}}, {"rank": {"offset": 3}}]]}},
        "provided_env": {"JOBC_INDEX": index}, "env": {"OWN": index}
    });
    assert_eq!(at(json!({}), &one_role(role.clone()), COMMAND), json!(["03"]));
    let zero = |name: &str| json!({"name": name, "value": "0"});
    assert_eq!(at(json!({}), &one_role(role), ENV), json!([zero("JOBC_INDEX"), zero("OWN")]));
}

/// `JOBC_INDEX` is there where a text is made of it; a variable that is the number itself is the field of the pod.
#[test]
fn the_index_is_there_where_it_is_used() {
    let names = |role: Value| {
        let env = at(json!({}), &one_role(role), ENV);
        let names = env.as_array().into_iter().flatten().map(|variable| variable["name"].clone());
        (names.collect::<Vec<_>>(), env[0]["valueFrom"]["fieldRef"]["fieldPath"].is_string())
    };
    let index = json!([{"index": {}}]);
    let part = json!(["task ", {"index": {}}]);
    assert_eq!(names(json!({"instances": 2})), (vec![], false));
    assert_eq!(names(json!({"instances": 2, "env": {"RANK": index}})), (vec![json!("RANK")], true));
    let composed = json!({"instances": 2, "env": {"NAME": part}});
    assert_eq!(names(composed), (vec![json!("JOBC_INDEX"), json!("NAME")], true));
    let command = json!({"instances": 2, "command": {"argv": {"argv": [part]}}});
    assert_eq!(names(command), (vec![json!("JOBC_INDEX")], true));
    let probe = json!({"probe": {"exec": [part]}, "delay_seconds": 0, "every_seconds": 10, "try_timeout_seconds": 1,
        "timeout_seconds": 35, "keep": false});
    assert_eq!(names(json!({"instances": 2, "ready": probe})), (vec![json!("JOBC_INDEX")], true));
}

#[test]
fn a_shell_adds_up_ranks() {
    let slow = json!({
        "instances": 2,
        "command": {"argv": {"argv": ["python", "train.py"]}},
        "provided_env": {"RANK": [{"rank": {"offset": 4}}], "WORLD_SIZE": "6"}
    });
    let fast = json!({"instances": 4});
    let place = "/spec/replicatedJobs/1/template/spec/template/spec/containers/0";
    let changes = json!({"roles": {"fast": fast, "slow": slow}});
    assert_eq!(
        at(json!({}), &changes, &format!("{place}/command")),
        json!([
            "/bin/sh",
            "-euc",
            "export RANK=\"$$((JOBC_INDEX + 4))\"\nexec \"$@\"\n",
            "jobc",
            "python",
            "train.py"
        ])
    );
    let names = at(json!({}), &changes, &format!("{place}/env"));
    let names: Vec<&str> =
        names.as_array().unwrap().iter().map(|var| var["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["JOBC_INDEX", "WORLD_SIZE"]);
}

#[test]
fn the_kubelet_reads_ranks_from_a_file() {
    let slow = json!({
        "instances": 2,
        "command": {"argv": {"argv": ["python", "train.py"]}},
        "provided_env": {"RANK": [{"rank": {"offset": 4}}], "WORLD_SIZE": "6"},
        "env": {"NAME": ["rank-", {"rank": {"offset": 4}}], "QUOTED": ["it's ", {"rank": {"offset": 4}}]},
        "user": "1000",
        "resources": {"cpu_millis": 1000, "gpu": {"count": 1, "first": 0, "vendor": "nvidia"}}
    });
    let changes = json!({"roles": {"fast": {"instances": 4}, "slow": slow}});
    let pod = "/spec/replicatedJobs/1/template/spec/template/spec";
    let target = json!({"gates": ["EnvFiles"]});
    let found = |part: &str| at(target.clone(), &changes, &format!("{pod}/{part}"));
    let parts = ["initContainers", "containers/0/env", "containers/0/command"].map(found);
    // A value with a quote needs the shell.
    insta::assert_snapshot!(crate::snapshot::json(&parts.into_iter().collect()));
    assert_eq!(found("volumes"), json!([{"name": "jobc-env", "emptyDir": {}}]));
    // JobSet 0.11 drops what it does not know.
    let old =
        at(json!({"gates": ["EnvFiles"], "jobset": "0.11"}), &changes, &format!("{pod}/initContainers"));
    assert_eq!(old, json!(null));
}

#[test]
fn a_rank_inside_an_argument_is_added_up_too() {
    let role = json!({
        "instances": 2,
        "command": {"script": {"shell": ["python", "-c"], "script": ["print('it''s', ", {"rank": {"offset": 4}}, ")"]}}
    });
    let command = at(json!({}), &one_role(role), COMMAND);
    assert_eq!(
        command,
        json!([
            "/bin/sh",
            "-euc",
            "exec python -c 'print('\\''it'\\'''\\''s'\\'', '\"$$((JOBC_INDEX + 4))\"')'\n"
        ])
    );
}

#[test]
fn the_image_s_own_command_cannot_get_a_sum() {
    insta::assert_snapshot!(shown(json!({}), &json!({
        "roles": {
            "fast": {"instances": 2},
            "slow": {"instances": 2, "command": {"image": {}}, "provided_env": {"RANK": [{"rank": {"offset": 2}}]}}
        }
    })).split_once("# ==== findings").unwrap().1);
}

#[test]
fn arguments_keep_the_entrypoint() {
    let role = json!({"command": {"args": ["--port", "8888"]}});
    assert_eq!(at(json!({}), &one_role(role.clone()), COMMAND), Value::Null);
    let args = at(json!({}), &one_role(role), "/spec/template/spec/containers/0/args");
    assert_eq!(args, json!(["--port", "8888"]));
}

#[test]
fn the_user_s_variables_win_and_stand_last() {
    let role = json!({"provided_env": {"A": "jobc", "B": "jobc"}, "env": {"C": "user", "A": "user"}});
    let env = at(json!({}), &one_role(role), ENV);
    assert_eq!(
        env,
        json!([
            {"name": "B", "value": "jobc"},
            {"name": "C", "value": "user"},
            {"name": "A", "value": "user"}
        ])
    );
}

#[test]
fn no_gpu_hides_all_gpus() {
    let role = json!({"resources": {"gpu": {"count": 0, "first": 0, "vendor": "nvidia"}}});
    let env = at(json!({}), &one_role(role), &format!("{ENV}/0"));
    assert_eq!(env, json!({"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}));
}

/// It is the container's own, needs the name of the system, and is passed on behind a shell.
#[test]
fn a_stop_signal_is_that_of_the_container() {
    let script = json!({"script": {"shell": ["bash", "-c"], "script": "a\nb\n"}});
    let changes = json!({"roles": {"main": {"stop_signal": "SIGUSR1", "command": script}}});
    let of_pod = |part: &str| at(json!({}), &changes, &format!("/spec/template/spec/{part}"));
    assert_eq!(of_pod("containers/0/lifecycle"), json!({"stopSignal": "SIGUSR1"}));
    assert_eq!(of_pod("os"), json!({"name": "linux"}));
    let command = of_pod("containers/0/command").to_string();
    assert!(command.contains("trap stop USR1") && command.contains("in *[2367abef]??)"), "{command}");
    let refusals = |kubernetes| super::support::refusals(kubernetes, &changes);
    assert_eq!(refusals(json!({})), "");
    insta::assert_snapshot!(
        refusals(json!({"release": "1.32"})),
        @r#"
    /roles/main/stop_signal
      `lifecycle.stopSignal` of a container needs Kubernetes 1.33, and the target has 1.32; write `release: "1.33"` for the target if the cluster has it
    "#
    );
}

#[test]
fn names_and_directories_in_memory() {
    let job = |instances: u32| {
        json!({
            "extra_hosts": {"db.lab": "10.0.0.7", "cache.lab": "2001:db8::7", "db2.lab": "10.0.0.7"},
            "dns": {"servers": ["10.0.0.2"], "search": ["corp.example.com"], "options": ["ndots:2", "rotate"]},
            "volumes": {"scratch": {"kind": "data", "source": {"kind": "memory", "size_bytes": 8_589_934_592_u64}}},
            "roles": {"main": {
                "instances": instances,
                "mounts": [{"volume": "scratch", "path": "/scratch", "writable": true}]
            }}
        })
    };
    let of = |part: &str| at(json!({}), &job(1), &format!("/spec/template/spec/{part}"));
    assert_eq!(
        of("hostAliases"),
        json!([
            {"ip": "10.0.0.7", "hostnames": ["db.lab", "db2.lab"]},
            {"ip": "2001:db8::7", "hostnames": ["cache.lab"]}
        ])
    );
    assert_eq!(
        of("dnsConfig"),
        json!({
            "nameservers": ["10.0.0.2"],
            "searches": ["corp.example.com"],
            "options": [{"name": "ndots", "value": "2"}, {"name": "rotate"}]
        })
    );
    assert_eq!(of("dnsPolicy"), json!("None"));
    assert_eq!(
        of("volumes"),
        json!([{"name": "scratch", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}}])
    );
    // Pods that find each other by the cluster's server keep it.
    let plan = super::plan(json!({}), &job(2));
    let place = jobc_schema::Pointer::ROOT.keys(["dns", "servers"]);
    let support = KubernetesBackend.support_at(Capability::DnsServers, &place, &plan);
    assert!(matches!(support, Support::Lossy(_)), "{support:?}");
}
