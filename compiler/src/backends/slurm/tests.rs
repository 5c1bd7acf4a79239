//! Plans and the scripts they become.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::*;
use crate::backend::capability::needs;
use crate::backends::fixture;

/// The part of scripts that is the same in every job.
const COMMON: &str = include_str!("list.sh");

/// A plan with the settings of its target, its errors and findings, and the script lines that the minimal job does not
/// have.
fn check(changes: Value, settings: &Value) -> String {
    let smallest = check_against(json!({}), &json!({"container": "none"}), "");
    check_against(changes, settings, &smallest)
}

/// As [`check`], without the lines of `base`.
fn check_against(mut changes: Value, settings: &Value, base: &str) -> String {
    let scripts = base.find("---- ").map_or("", |at| &base[at..]);
    let known: BTreeSet<&str> = scripts.lines().collect();
    let backends = if settings.get("container").is_some_and(|c| c == "jobc" || c == "oci") {
        json!(["oci", "slurm"])
    } else {
        json!(["slurm"])
    };
    let mut shown = crate::snapshot::json(&changes) + "\n";
    let _ = writeln!(shown, "slurm: {settings}");
    changes["target"] = json!({"name": "cluster", "settings": {"backends": backends, "slurm": settings}});
    let job = fixture::job(&changes);
    for (capability, at) in needs(&job) {
        if let Support::None(why) | Support::Lossy(why) = SlurmBackend.support_at(capability, &at, &job) {
            let _ = writeln!(shown, "refused {at}: {why}");
        }
    }
    let (files, report) = fixture::lower(&SlurmBackend, &job);
    shown.push_str(&report);
    for file in files {
        let text = fixture::text(&file).replace(COMMON, "").replace(env!("CARGO_PKG_VERSION"), "VERSION");
        let _ = writeln!(shown, "---- {} {:o}", file.path, file.mode);
        let lines = text.split_inclusive('\n').filter(|line| !known.contains(line.trim_end_matches('\n')));
        shown.extend(lines);
    }
    shown
}

#[test]
fn the_smallest_job() {
    insta::assert_snapshot!(check_against(json!({}), &json!({"container": "none"}), ""));
}

/// The headline of this backend: what needs no container needs no backend that writes them.
#[test]
fn a_job_on_the_files_of_the_node_needs_no_bundles() {
    let host = json!({"images": {"main": {"reference": "host", "source": {"kind": "host"}}}, "timeout_seconds": 3600});
    let shown = check_against(host, &json!({}), "");
    assert!(!shown.contains("J0461") && shown.contains("\nexec srun --job-name=main "), "{shown}");
    assert!(shown.contains("#SBATCH --time=60\n") && shown.lines().count() < 25, "{shown}");
    assert!(check_against(json!({}), &json!({}), "").contains("J0461"), "a container needs them");
}

fn training() -> Value {
    json!({
        "name": "gpt",
        "timeout_seconds": 7260,
        "roles": {"train": {
            "instances": 2,
            "resources": {
                "cpu_millis": 7500, "memory_bytes": 1_000_000_000_u64,
                "gpu": {"count": 8, "first": 0, "vendor": "nvidia", "models": ["A100-80GB"], "capabilities": []}
            },
            "retry": {"max": 3, "scope": "job", "on_exit_codes": [85]},
            "env": {"NAME": "it's", "WHO": ["task ", {"index": {}}]},
            "provided_env": {
                "JOBC_INDEX": [{"index": {}}],
                "JOBC_HOSTS_TRAIN": [{"hosts": {"role": "train", "separator": ","}}],
                "JOBC_ENDPOINTS_TRAIN_RDZV": [{"hosts": {"role": "train", "label": "rdzv", "separator": ","}}],
                "PET_MASTER_ADDR": [{"host": {"role": "train", "index": 0}}],
                "PET_MASTER_PORT": [{"port": {"role": "train", "label": "rdzv", "index": 0}}],
                "JOBC_HOSTFILE": "/etc/jobc/hostfile"
            },
            "provided_files": [{"path": "/etc/jobc/hostfile", "content": [{"hosts": {"role": "train", "after": " slots=8\n"}}], "mode": 420}],
            "ports": [{"label": "rdzv", "number": 29500, "count": 1, "auto": true, "shared_base": 20000, "publish": "none"}],
            "command": {"script": {"shell": ["bash", "-euo", "pipefail", "-c"], "script": "torchrun train.py\n"}}
        }},
        "stages": [["train"]]
    })
}

#[test]
fn one_role_on_several_nodes() {
    let settings = json!({
        "container": "none", "partition": "gpu", "account": "vision", "qos": "long", "exclusive": true,
        "constraint": "skylake", "licenses": "matlab:2", "switches": "1@60", "gpu_features": {"A100-80GB": "a100_80g"},
        "modules": ["cuda/12.4"], "extra": {"mail-type": "END", "comment": "a b"}
    });
    insta::assert_snapshot!(check(training(), &settings));
}

#[test]
fn jobc_on_the_nodes_is_one_line_and_a_plan() {
    let settings =
        json!({"container": "none", "jobc": "/opt/jobc", "gpu_features": {"A100-80GB": "a100_80g"}});
    insta::assert_snapshot!(check(training(), &settings));
}

#[test]
fn jobc_on_the_nodes_is_in_containers_and_gets_the_signal_before_the_end() {
    let mut job = training();
    job["roles"]["train"]["grace_period_seconds"] = json!(90);
    let settings = |container: &str| json!({"container": container, "jobc": "/opt/jobc", "gpu_features": {"A100-80GB": "a100_80g"}});
    let pyxis = check(job.clone(), &settings("pyxis"));
    assert!(pyxis.contains("#SBATCH --signal=B:TERM@90\n"), "{pyxis}");
    assert!(pyxis.contains(":/opt/jobc:ro "), "{pyxis}");
    let own = check(job.clone(), &settings("jobc"));
    assert!(own.contains("\nexec /opt/jobc run --cgroup inherited ") && own.contains("-$PPID\""), "{own}");
    let oci = check(job, &settings("oci"));
    assert!(oci.contains("#SBATCH --signal=TERM@90\n"), "{oci}");
    assert!(
        oci.contains("\"/opt/jobc step-task cgroup ") && oci.contains("\nexec srun --job-name=train "),
        "{oci}"
    );
}

#[test]
fn ranks_of_mpi_are_one_step() {
    let mut job = training();
    job["distributed"] = json!({
        "framework": "mpi", "instances": 2, "world_size": 2, "port": 29500,
        "members": [{"role": "train", "part": "worker", "first_rank": 0, "processes": 1}]
    });
    let shown = check(
        job,
        &json!({"container": "none", "jobc": "~/my bin/jobc", "gpu_types": {"A100-80GB": "a100"}}),
    );
    for expected in [
        "\nexec \"$HOME\"/'my bin/jobc' node job.json \"$@\"\n",
        "\"ranks\": true",
        "--nodes=2 --ntasks=2 --ntasks-per-node=1 --nodelist=\\\"$(IFS=,; echo \\\"${jobc_hosts_train[*]}\\\")\\\" ",
        " --mpi=pmix --kill-on-bad-exit=1 --wait=0 ",
        " step-task --rank ",
        "\nexec >>\"$jobc_run/logs/train-$jobc_index$jobc_log\" 2>&1\n",
    ] {
        assert!(shown.contains(expected), "no {expected}: {shown}");
    }
}

#[test]
fn a_budget_is_counted_by_jobc_on_the_nodes() {
    let mut job = training();
    job["budget"] = json!({"gpu_hours": 8});
    let shown = check(job.clone(), &json!({"container": "none", "gpu_types": {"A100-80GB": "a100"}}));
    assert!(shown.contains(" node job.json ") && !shown.contains("refused /budget"), "{shown}");
    job["budget"] = json!({"energy": "10kWh"});
    let shown = check(job, &json!({"container": "none", "gpu_types": {"A100-80GB": "a100"}}));
    assert!(shown.contains("refused /budget/energy: nothing of jobc reads the counters"), "{shown}");
}

#[test]
fn containers_of_jobc_get_secrets_from_files_of_the_job() {
    let mut job = training();
    job["secrets"] = json!({"token": {"env": "WANDB_API_KEY"}});
    job["roles"]["train"]["env"]["TOKEN"] = json!({"secret": "token"});
    let shown = check(
        job,
        &json!({"container": "jobc", "store": "/local/images", "gpu_types": {"A100-80GB": "a100"}}),
    );
    assert!(shown.contains(" --image-root /local/images --secrets \"$jobc_secrets\" --id "), "{shown}");
    assert!(!shown.contains("refused"), "{shown}");
}

#[test]
fn secrets_of_submit_sh_are_mounted_by_pyxis() {
    let mut job = training();
    job["secrets"] = json!({"token": {"env": "WANDB_API_KEY"}});
    job["roles"]["train"]["env"]["TOKEN"] = json!({"secret": "token"});
    let settings = json!({"container": "pyxis", "gpu_types": {"A100-80GB": "a100"}});
    let with = check(job, &settings);
    let mount = r#"\"$jobc_run:$jobc_run\",\"$jobc_secrets:$jobc_secrets:ro\""#;
    assert!(with.contains(mount) && !with.contains("refused"), "{with}");
    assert!(!check(training(), &settings).contains("$jobc_secrets:$jobc_secrets"));
}

#[test]
fn a_grace_period_fits_into_the_signal() {
    let mut job = training();
    let settings = json!({"container": "none", "gpu_types": {"A100-80GB": "a100"}});
    job["roles"]["train"]["grace_period_seconds"] = json!(65_535);
    assert!(check(job.clone(), &settings).contains("#SBATCH --signal=B:TERM@65535\n"));
    job["roles"]["train"]["grace_period_seconds"] = json!(65_536);
    job["target"] =
        json!({"name": "cluster", "settings": {"backends": ["slurm"], "slurm": {"kill_wait": "1d"}}});
    let at = Pointer::ROOT.keys(["roles", "train", "grace_period"]);
    assert!(matches!(
        SlurmBackend.support_at(Capability::GracePeriod, &at, &fixture::job(&job)),
        Support::None(_)
    ));
}

#[test]
fn each_way_of_running_containers() {
    let mut plan = training();
    plan["volumes"] = json!({
        "data": {"kind": "data", "source": {"kind": "path", "path": "/datasets"}},
        "runs": {"kind": "output", "source": {"kind": "path", "path": "./runs"}}
    });
    let train = &mut plan["roles"]["train"];
    train["mounts"] = json!([
        {"volume": "data", "path": "/data", "writable": false},
        {"volume": "runs", "path": "/runs", "writable": true, "subpath": "a"}
    ]);
    train["workdir"] = json!("/work");
    let none = check_against(training(), &json!({"container": "none"}), "");
    let mut shown = crate::snapshot::json(&plan) + "\n";
    for settings in [
        json!({"container": "jobc", "images": "/images", "gpu": "gres", "gpu_types": {"A100-80GB": "a100"}}),
        json!({"container": "apptainer", "gpu_types": {"A100-80GB": "a100"}}),
        json!({"container": "pyxis", "gpu_types": {"A100-80GB": "a100"}}),
        json!({"container": "oci", "release": "23.11", "gpu_types": {"A100-80GB": "a100"}}),
    ] {
        // The lines that a job without containers does not have.
        let full = check_against(plan.clone(), &settings, &none);
        let begin = full.find("slurm: ").expect("the settings are shown");
        shown.push_str(&full[begin..]);
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn an_instance_has_a_directory_of_its_own_and_devices_of_its_node() {
    let mut plan = training();
    plan["volumes"] =
        json!({"own": {"kind": "data", "source": {"kind": "instance", "size_bytes": 1_u64 << 30}}});
    let train = &mut plan["roles"]["train"];
    train["mounts"] = json!([{"volume": "own", "path": "/scratch", "writable": true}]);
    train["resources"]["devices"] = json!(["/dev/fuse"]);
    train["resources"]["rdma"] = json!(1);
    train["resources"]["shm_bytes"] = json!(4096);
    let shown = |container: &str| {
        let settings = json!({"container": container, "exclusive": true, "gpu_types": {"A100-80GB": "a100"}});
        check(plan.clone(), &settings)
    };
    let pyxis = shown("pyxis");
    let mounts =
        "/dev/fuse:/dev/fuse,/dev/infiniband:/dev/infiniband,tmpfs:/dev/shm:size=4096+mode=1777+nosuid+nodev";
    for expected in [mounts, "mkdir -p /scratch ||", "#SBATCH --tmp=1024M"] {
        assert!(pyxis.contains(expected), "no {expected}: {pyxis}");
    }
    assert!(!pyxis.contains("jobc_scratch="), "{pyxis}");
    let apptainer = shown("apptainer");
    assert!(apptainer.contains("--bind \"$jobc_scratch\"/own:/scratch"), "{apptainer}");
    let bundles = shown("jobc");
    let link = "ln -sfn \"$jobc_scratch/own\" \"$jobc_bundles/volumes/own/$jobc_role-$jobc_index\"";
    assert!(bundles.contains(link), "{bundles}");
}

#[test]
fn pyxis_mounts_directories_in_memory() {
    let mut plan = training();
    plan["volumes"] = json!({"fast": {"kind": "data", "source": {"kind": "memory", "size_bytes": 4096}}});
    plan["roles"]["train"]["mounts"] = json!([{"volume": "fast", "path": "/fast", "writable": true}]);
    let shown = check(plan, &json!({"container": "pyxis", "gpu_types": {"A100-80GB": "a100"}}));
    assert!(shown.contains("tmpfs:/fast:size=4096+mode=1777+nosuid+nodev"), "{shown}");
    assert!(!shown.contains("volumes/fast"), "{shown}");
}

#[test]
fn a_shell_outlives_the_signal_that_its_program_gets() {
    let mut plan = training();
    let set = "|| export jobc_trap=:";
    for (script, trapped) in
        [("python train.py", false), ("python a.py\npython b.py", true), ("python a.py | tee log", true)]
    {
        plan["roles"]["train"]["command"] =
            json!({"script": {"shell": ["bash", "-euo", "pipefail", "-c"], "script": script}});
        let shown = check(plan.clone(), &json!({"container": "pyxis", "gpu_types": {"A100-80GB": "a100"}}));
        assert_eq!(shown.contains(set), trapped, "{script}: {shown}");
        assert_eq!(
            shown.contains("trap \"${jobc_trap--}\" TERM; unset jobc_trap"),
            trapped,
            "{script}: {shown}"
        );
    }
}

#[test]
fn an_image_is_named_with_or_without_the_ending_of_its_file() {
    for (container, file) in [("pyxis", "x.sqsh"), ("apptainer", "x.sif")] {
        for image in ["x", file] {
            let mut plan = training();
            plan["images"]["main"]["reference"] = json!(image);
            let settings =
                json!({"container": container, "images": "/images", "gpu_types": {"A100-80GB": "a100"}});
            let shown = check_against(plan, &settings, "");
            assert!(shown.contains(&format!("/images/{file}")), "{shown}");
            assert!(!shown.contains(&format!("{file}.s")), "{shown}");
        }
    }
}

#[test]
fn roles_with_different_resources_are_a_heterogeneous_job() {
    let plan = json!({
        "roles": {
            "ps": {
                "instances": 2, "resources": {"cpu_millis": 4000},
                "ready": {"probe": {"port": "grpc"}, "delay_seconds": 0, "every_seconds": 1, "try_timeout_seconds": 1, "timeout_seconds": 60, "keep": false},
                "ports": [{"label": "grpc", "number": 2222, "count": 2, "auto": true, "shared_base": 21000, "publish": "none"}],
                "provided_env": {"JOBC_PORT_GRPC": [{"ports": {"role": "ps", "label": "grpc", "count": 2}}]}
            },
            "worker": {
                "resources": {"cpu_millis": 8000, "gpu": {"count": 1, "first": 0, "vendor": "nvidia", "capabilities": []}},
                "needs": [{"role": "ps", "state": "ready", "min": 2}],
                "completion": {"min_succeeded": 1, "min_failed": 1},
                "retry": {"max": 2, "scope": "task", "backoff_seconds": 5},
                "timeout_seconds": 60,
                "ports": [{"label": "web", "number": 8080, "count": 1, "auto": false, "publish": "none"}],
                "command": {"argv": {"argv": ["serve", [{"port": {"role": "ps", "label": "grpc", "index": 1}}], [{"port": {"role": "worker", "label": "web"}}]]}}
            }
        },
        "stages": [["ps"], ["worker"]]
    });
    insta::assert_snapshot!(check(
        plan,
        &json!({"container": "none", "partition": "gpu", "licenses": "matlab"})
    ));
}

#[test]
fn stages_are_a_chain_of_jobs() {
    let plan = json!({
        "secrets": {"token": {"env": "TOKEN"}, "key": {"file": "~/my key"}},
        "roles": {
            "prepare": {"env": {"TOKEN": {"secret": "token"}}},
            "train-m0": {"needs": [{"role": "prepare", "state": "succeeded", "min": 1}], "matrix": {"role": "train", "number": 0, "values": {"a": 1}}},
            "train-m1": {"needs": [{"role": "prepare", "state": "succeeded", "min": 1}], "matrix": {"role": "train", "number": 1, "values": {"a": 2}}},
            "report": {
                "needs": [{"role": "train-m0", "state": "succeeded", "min": 1}, {"role": "train-m1", "state": "succeeded", "min": 1}],
                "env": {"KEY": {"secret": "key"}}
            }
        },
        "stages": [["prepare"], ["train-m0", "train-m1"], ["report"]]
    });
    insta::assert_snapshot!(check(plan, &json!({"container": "none"})));
}

#[test]
fn a_dependency_that_would_wait_for_more_joins_the_jobs() {
    // `monitor` runs as long as the job; `train` waits for `prepare` alone.
    let plan = json!({
        "roles": {
            "prepare": {},
            "monitor": {},
            "train": {"needs": [{"role": "prepare", "state": "succeeded", "min": 1}]}
        },
        "stages": [["prepare", "monitor"], ["train"]]
    });
    let job = fixture::job(&plan);
    let names = |groups: Vec<Group<'_>>| -> Vec<Vec<String>> {
        groups.iter().map(|group| group.roles.iter().map(|role| role.name.clone()).collect()).collect()
    };
    assert_eq!(names(group::groups(&job, &SlurmTarget::default())), [["prepare", "monitor", "train"]]);
    let mut apart = plan;
    apart["gang"] = json!("none");
    let job = fixture::job(&apart);
    let separate = names(group::groups(&job, &SlurmTarget::default()));
    assert_eq!(separate, [vec!["prepare"], vec!["monitor"], vec!["train"]]);
}

#[test]
fn a_matrix_above_the_limit_of_the_cluster_is_several_arrays() {
    let lines = |max_parallel: Value| {
        let target = json!({"name": "cluster", "settings": {"backends": ["slurm"], "slurm": {"container": "pyxis", "max_array": 2}}});
        let job = |number: u32| {
            let name = format!("sweep-{number}");
            fixture::job(
                &json!({"name": name, "matrix": {"n": number}, "max_parallel": max_parallel, "target": target}),
            )
        };
        let jobs: Vec<JobPlan> = (0..5).map(job).collect();
        let (files, report) = fixture::lower_among(&SlurmBackend, &jobs[0], &jobs);
        assert_eq!(report, "");
        let texts = files.iter().filter(|file| matches!(file.path.as_str(), "submit.sh" | "array.sbatch"));
        let texts: Vec<String> = texts.map(fixture::text).collect();
        assert_eq!(texts.len(), 2, "both scripts");
        let shown = |line: &&str| ["sbatch", "--array", "exec"].iter().any(|word| line.contains(word));
        texts
            .iter()
            .flat_map(|text| text.lines())
            .filter(shown)
            .fold(String::new(), |all, line| all + line + "\n")
    };
    insta::assert_snapshot!(lines(json!(1)), @r#"
    array=$(sbatch --parsable "$@" --array=0-1%1 array.sbatch 0)
    array=$(sbatch --parsable "$@" --array=0-1%1 --dependency="afterany:${array%%;*}" array.sbatch 2)
    array=$(sbatch --parsable "$@" --array=0-0%1 --dependency="afterany:${array%%;*}" array.sbatch 4)
    #SBATCH --array=0-1%1
    cd "../../../sweep-$((SLURM_ARRAY_TASK_ID + ${1:-0}))/cluster/slurm" && exec bash job.sbatch
    "#);
    assert!(!lines(Value::Null).contains("--dependency"), "without a limit, arrays run at once");
}

#[test]
fn programs_that_call_ssh_start_processes_through_slurm() {
    let plan = json!({
        "distributed": {
            "framework": "mpi", "instances": 2, "world_size": 8, "port": 29500, "ssh": {"port": 2222, "user": "root"},
            "members": [{"role": "train", "part": "worker", "first_rank": 0, "processes": 4}]
        },
        "roles": {"train": {
            "instances": 2, "launch": "first", "resources": {"cpu_millis": 4000},
            "provided_env": {"JOBC_HOSTFILE": "/etc/jobc/hostfile"},
            "command": {"argv": {"argv": ["mpirun", "hostname"]}}
        }},
        "stages": [["train"]]
    });
    insta::assert_snapshot!(check(plan, &json!({"container": "none"})));
}

#[test]
fn gpus_are_found_by_model_memory_and_capability() {
    let settings: SlurmTarget = serde_json::from_value(json!({
        "gpu_types": {"V100": "v100"},
        "gpu_features": {"A100-40GB": "a40g", "A100-80GB": "a80g", "H100": "h100", "V100": "v100"}
    }))
    .expect("settings");
    let constraint = |gpu: Value| {
        let mut all = json!({"count": 1, "first": 0, "vendor": "nvidia", "capabilities": []});
        all.as_object_mut().expect("a map").extend(gpu.as_object().expect("a map").clone());
        let job = fixture::job(&json!({"roles": {"main": {"resources": {"gpu": all}}}}));
        let role = &job.roles[0];
        (
            gpu::request(&job, &settings, role).expect("a role with GPUs"),
            gpu::constraint(&settings, role).unwrap_or_default(),
        )
    };
    let any = "--gpus-per-node=1".to_owned();
    assert_eq!(constraint(json!({})), (any.clone(), String::new()));
    assert_eq!(constraint(json!({"models": ["v100"]})), ("--gpus-per-node=v100:1".to_owned(), String::new()));
    assert_eq!(constraint(json!({"models": ["A100"]})), (any.clone(), "a40g|a80g".to_owned()));
    assert_eq!(constraint(json!({"models": ["A100-80GB"]})), (any.clone(), "a80g".to_owned()));
    assert_eq!(constraint(json!({"memory_bytes": 60_u64 << 30})), (any.clone(), "a80g|h100".to_owned()));
    assert_eq!(constraint(json!({"compute_capability": "9.0"})), (any, "h100".to_owned()));
}

#[test]
fn images_as_every_release_of_enroot_reads_them() {
    for (reference, spelled) in [
        ("busybox:1.35", "busybox:1.35"),
        ("registry.example.io:5000/team/net:sd-pyt", "registry.example.io:5000#team/net:sd-pyt"),
        ("nvcr.io/nvidia/jax:24.10-py3@sha256:0a1b", "nvcr.io#nvidia/jax:sha256:0a1b"),
        ("nvcr.io/nvidia/jax@sha256:0a1b", "nvcr.io#nvidia/jax:sha256:0a1b"),
        ("python@sha256:0a1b", "python:sha256:0a1b"),
        ("docker.io/library/python", "library/python"),
    ] {
        assert_eq!(run::enroot_reference(reference), spelled);
    }
}

#[test]
fn code_is_unpacked_once_in_a_run_and_mounted_or_entered() {
    let changes = json!({
        "volumes": {"jobc-code": {"kind": "data", "source": {"kind": "code", "path": "src"}}},
        "roles": {"main": {
            "workdir": "/work dir/lib",
            "mounts": [{"volume": "jobc-code", "path": "/work dir", "writable": true}],
        }}
    });
    let shown = ["jobc", "pyxis", "apptainer", "none"]
        .map(|container| check(changes.clone(), &json!({"container": container})));
    insta::assert_snapshot!(shown.join("\n"));
}
