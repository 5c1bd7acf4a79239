//! Variables and files of the members of each framework.

use std::fmt::Write as _;

use super::plan;
use jobc_schema::plan::FileContent;

/// Prints the rendezvous of a job: members, launchers, ports, variables and files, without those of every job.
fn check(roles: &str, distributed: &str) -> String {
    let text = format!("version: 1\nname: job\nimage: a:1\nroles:\n{roles}distributed: {distributed}\n");
    let plan = plan(&text);
    let mut out = format!("{roles}{distributed}\n=>\n");
    let distributed = plan.distributed.as_ref().unwrap();
    let _ = writeln!(out, "{}", serde_json::to_string(distributed).unwrap());
    for role in &plan.roles {
        let _ = writeln!(out, "{}: launch {:?}, retry {:?}", role.name, role.launch, role.retry.scope);
        for port in &role.ports {
            let _ = writeln!(out, "  port {}", serde_json::to_string(port).unwrap());
        }
        for (name, text) in &role.provided_env {
            let common = ["JOBC_JOB", "JOBC_ROLE", "JOBC_INDEX", "JOBC_INSTANCES"].contains(&name.as_str());
            if !common && !name.starts_with("JOBC_HOSTS_") && !name.starts_with("JOBC_ENDPOINTS_") {
                let _ = writeln!(out, "  {name}={}", serde_json::to_string(text).unwrap());
            }
        }
        for file in &role.provided_files {
            let FileContent::Text(text) = &file.content else { continue };
            let _ = writeln!(out, "  {} {}", file.path, serde_json::to_string(text).unwrap());
        }
    }
    out
}

#[test]
fn torchrun() {
    insta::assert_snapshot!(check(
        "  master: {run: torchrun train.py, resources: {gpu: 8}}\n  worker: {instances: 3, run: torchrun train.py, resources: {gpu: 8}}\n",
        "{framework: torchrun, roles: [master, worker]}",
    ));
}

#[test]
fn elastic_torchrun() {
    let roles = "  train: {instances: 3, run: torchrun train.py, resources: {gpu: 2}}\n";
    insta::assert_snapshot!(
        [
            check(roles, "{framework: torchrun, roles: [train], elastic: {min: 2, max: 4}}"),
            check(
                roles,
                "{framework: torchrun, roles: [train], elastic: {min: 3, max: 3, max_restarts: 0, backend: etcd-v2, endpoint: \"etcd:2379\"}}"
            ),
        ]
        .join("----\n")
    );
    let text = format!(
        "version: 1\nname: job\nimage: a:1\nretry: {{max: 2}}\nroles:\n{roles}distributed: {{framework: torchrun, roles: [train], elastic: {{min: 2, max: 4}}}}\n"
    );
    let role = &plan(&text).roles[0];
    assert_eq!((role.completion.min_succeeded, role.completion.min_failed), (Some(2), Some(2)));
    assert_eq!(role.retry.max, 2);
}

#[test]
fn ddp() {
    insta::assert_snapshot!(check(
        "  train: {instances: 2, run: python train.py, resources: {gpu: 4}, env: {MASTER_PORT: 1}}\n",
        "{framework: ddp, roles: [train], port: 2345}",
    ));
}

#[test]
fn tensorflow() {
    insta::assert_snapshot!(check(
        "  ps: {instances: 2, run: x}\n  big: {instances: 2, run: x}\n  small: {run: x}\n  chief: {run: x}\n  eval: {run: x}\n",
        "{framework: tensorflow, roles: {ps: ps, big: worker, small: worker, chief: chief, eval: evaluator}}",
    ));
}

#[test]
fn mpi_with_a_launcher() {
    insta::assert_snapshot!(check(
        "  launcher: {run: mpirun train}\n  worker: {instances: 4, resources: {gpu: 2}}\n",
        "{framework: mpi, roles: [launcher, worker], ssh: {port: 2222, user: mpi}}",
    ));
}

#[test]
fn horovod_from_the_first_worker() {
    insta::assert_snapshot!(check(
        "  worker: {instances: 4, run: horovodrun -np 4 python train.py, resources: {gpu: 1}}\n",
        "{framework: horovod, roles: [worker]}",
    ));
}

#[test]
fn deepspeed_from_the_first_and_on_all_and_alone() {
    let roles = "  worker: {instances: 2, run: deepspeed train.py, resources: {gpu: 8}}\n";
    let alone = "  worker: {run: deepspeed train.py, resources: {gpu: 8}}\n";
    insta::assert_snapshot!(
        [
            check(roles, "{framework: deepspeed, roles: [worker]}"),
            check(roles, "{framework: deepspeed, roles: [worker], launch: all}"),
            check(alone, "{framework: deepspeed, roles: [worker]}"),
        ]
        .join("----\n")
    );
}

#[test]
fn accelerate_gets_flags_and_others_variables() {
    let train = |run: &str| format!("  train: {{instances: 2, run: {run}, resources: {{gpu: 8}}}}\n");
    insta::assert_snapshot!(
        [
            check(
                &train("accelerate launch train.py"),
                "{framework: accelerate, roles: [train], port: 1234}"
            ),
            check(&train("python train.py"), "{framework: lightning, roles: [train]}"),
            check(&train("composer train.py"), "{framework: composer, roles: [train]}"),
        ]
        .join("----\n")
    );
    let text = format!(
        "version: 1\nname: job\nimage: a:1\nroles:\n{}distributed: {{framework: accelerate, roles: [train]}}\n",
        train("accelerate launch --machine_rank 3 train.py")
    );
    let jobc_schema::plan::CommandPlan::Script { script, .. } = &plan(&text).roles[0].command else {
        panic!("a script")
    };
    assert_eq!(
        script.render(|reference| format!("{reference:?}")
            .split([' ', '{'])
            .next()
            .unwrap_or_default()
            .to_owned()),
        "accelerate launch --multi_gpu --num_machines 2 --num_processes 16 --main_process_ip Host --main_process_port Port --machine_rank 3 train.py"
    );
}

#[test]
fn jax() {
    insta::assert_snapshot!(check(
        "  train: {instances: 4, run: python train.py, resources: {gpu: 8}}\n",
        "{framework: jax, roles: [train]}",
    ));
}

#[test]
fn ray() {
    let roles = "  head: {run: python tune.py, setup: pip install x, resources: {cpu: 4, gpu: 0}}\n  worker: {instances: 2, resources: {cpu: 7.5, gpu: 2}}\n";
    let text = format!(
        "version: 1\nname: job\nimage: a:1\nroles:\n{roles}distributed: {{framework: ray, roles: [worker, head]}}\n"
    );
    let plan = plan(&text);
    let commands: Vec<String> = plan
        .roles
        .iter()
        .map(|role| format!("{} {:?}\n", serde_json::to_string(&role.command).unwrap(), role.completion))
        .collect();
    insta::assert_snapshot!(
        [
            check(roles, "{framework: ray, roles: [worker, head]}"),
            commands.concat(),
            check(
                "  driver: {run: [python, tune.py]}\n  cpu: {resources: {cpu: 1}}\n  gpu: {resources: {gpu: 1}}\n",
                "{framework: ray, roles: {driver: head, cpu: worker, gpu: worker}, port: 7000}",
            ),
        ]
        .join("----\n")
    );
}

#[test]
fn no_task_runs_sshd_if_all_launch() {
    let text = "version: 1\nname: job\nimage: a:1\nroles: {w: {instances: 2, run: srun x}}\ndistributed: {framework: mpi, roles: [w], launch: all}\n";
    assert_eq!(plan(text).distributed.unwrap().ssh, None);
}
