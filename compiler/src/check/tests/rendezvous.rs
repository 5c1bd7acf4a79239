//! The mistakes that people make with the rendezvous, and the forms that are right.
//!
//! [`MISTAKES`] is the list by which the figure "45 of 47" is counted. A mistake that only the program can know of
//! has no code; it stays in the list so that the figure is honest.

use super::whole;
use super::whole::{TARGETS, list, run};
use crate::diagnostic::{Code, Severity};

const TORCH: &str = "image: pytorch/pytorch:2.4.0-cuda12.4-cudnn9-runtime\n";

/// What is wrong, the code that says so, and the job.
struct Mistake {
    what: &'static str,
    code: Option<&'static str>,
    job: String,
}

/// How many instances and GPUs the jobs of the lists have, unless a list says otherwise.
const SIZE: &str = "instances: 4, resources: {cpu: 8, memory: 64GiB, shm: 8GiB, gpu: 8}";

/// A job whose role `train` runs a command; `more` is at the top level.
fn train(run: &str, more: &str) -> String {
    format!("{TORCH}roles:\n  train: {{{SIZE}, run: {run:?}}}\n{more}")
}

/// The same with variables.
fn with_env(env: &str, run: &str, more: &str) -> String {
    format!("{TORCH}roles:\n  train: {{{SIZE}, env: {{{env}}}, run: {run:?}}}\n{more}")
}

fn framework(name: &str) -> String {
    format!("distributed: {{framework: {name}, roles: [train]}}\n")
}

fn mistakes() -> Vec<Mistake> {
    let (torchrun, deepspeed, mpi, ddp) =
        (framework("torchrun"), framework("deepspeed"), framework("mpi"), framework("ddp"));
    let gpu = |image: &str, gpu: &str| {
        format!(
            "image: {image}\nroles:\n  train: {{resources: {{cpu: 8, memory: 64GiB, shm: 8GiB, gpu: {gpu}}}, run: python train.py}}\n"
        )
    };
    let list: Vec<(&'static str, &'static str, String)> = vec![
        ("torchrun without anything", "J0301", train("torchrun --nproc-per-node=8 train.py", "")),
        (
            "an address without the number of nodes, as in JobSet's own example",
            "J0301",
            train(
                "torchrun --nproc_per_node=8 --master_addr=$MASTER_ADDR --master_port=$MASTER_PORT resnet.py",
                "",
            ),
        ),
        (
            "a rendezvous endpoint without the number of nodes",
            "J0301",
            train("torchrun --rdzv_backend=c10d --rdzv_endpoint=${{ hosts.train[0] }}:29400 train.py", ""),
        ),
        ("the module", "J0301", train("python -m torch.distributed.run --nproc_per_node=8 train.py", "")),
        ("behind uv", "J0301", train("uv run --with rich torchrun --nproc_per_node=8 train.py", "")),
        (
            "behind numactl",
            "J0301",
            train("numactl --cpunodebind=0 -m 0 torchrun --nproc_per_node=8 train.py", ""),
        ),
        ("behind timeout", "J0301", train("timeout -k 30 12h torchrun --nproc_per_node=8 train.py", "")),
        (
            "behind nsys",
            "J0301",
            train("nsys profile -o /tmp/trace -t cuda,nvtx torchrun --nproc_per_node=8 train.py", ""),
        ),
        ("behind srun", "J0301", train("srun -N 4 --mpi=none torchrun --nproc_per_node=8 train.py", "")),
        (
            "behind conda",
            "J0301",
            train("conda run --no-capture-output -n torch torchrun --nproc_per_node=8 train.py", ""),
        ),
        (
            "behind env",
            "J0301",
            train("env -u LD_PRELOAD OMP_NUM_THREADS=4 torchrun --nproc_per_node=8 train.py", ""),
        ),
        ("in a variable", "J0301", train("L=\"torchrun --nproc_per_node=8\"; $L train.py", "")),
        ("accelerate", "J0301", train("accelerate launch --multi_gpu --num_processes 32 train.py", "")),
        ("deepspeed without a host file", "J0301", train("deepspeed train.py", "")),
        ("mpirun without hosts", "J0301", train("mpirun -np 8 python train.py", "")),
        ("torchrun where the framework is ddp", "J0301", train("torchrun train.py", &ddp)),
        (
            "a role that the rendezvous leaves out",
            "J0301",
            format!(
                "{TORCH}roles:\n  train: {{{SIZE}, run: torchrun train.py}}\n  more: {{{SIZE}, run: torchrun train.py}}\n{torchrun}"
            ),
        ),
        ("ddp with several GPUs", "J0302", train("python train.py", &ddp)),
        ("WORLD_SIZE for torchrun", "J0303", with_env("WORLD_SIZE: 32", "torchrun train.py", &torchrun)),
        (
            "MASTER_ADDR over that of ddp",
            "J0303",
            format!(
                "{TORCH}roles:\n  train: {{instances: 4, resources: {{cpu: 8, memory: 64GiB, shm: 8GiB, gpu: 1}}, env: {{MASTER_ADDR: 10.0.0.1}}, run: python train.py}}\n{ddp}"
            ),
        ),
        (
            "a RANK that is the same everywhere, passed on",
            "J0303",
            with_env(
                "RANK: 0",
                "torchrun --nnodes=4 --node_rank=$RANK --master_addr=${{ hosts.train[0] }} train.py",
                "",
            ),
        ),
        (
            "the address of JAX's coordinator by hand",
            "J0303",
            with_env("JAX_COORDINATOR_ADDRESS: \"localhost:1234\"", "python train.py", &framework("jax")),
        ),
        (
            "TF_CONFIG by hand",
            "J0303",
            with_env("TF_CONFIG: '{\"cluster\": {}}'", "python train.py", &framework("tensorflow")),
        ),
        ("more nodes than instances", "J0304", train("torchrun --nnodes=8 train.py", &torchrun)),
        ("more processes than GPUs", "J0304", train("torchrun --nproc_per_node=16 train.py", &torchrun)),
        ("fewer processes than GPUs", "J0304", train("torchrun --nproc_per_node=1 train.py", &torchrun)),
        ("mpirun with another number of processes", "J0304", train("mpirun -np 8 python train.py", &mpi)),
        (
            "deepspeed with another number of nodes",
            "J0304",
            train("deepspeed --num_nodes=2 train.py", &deepspeed),
        ),
        (
            "a standalone torchrun where the instances are joined",
            "J0304",
            train("torchrun --standalone train.py", &torchrun),
        ),
        (
            "a threshold inside the group",
            "J0305",
            format!(
                "{TORCH}roles:\n  train: {{{SIZE}, completion: {{min_failed: 2}}, run: torchrun train.py}}\n{torchrun}"
            ),
        ),
        (
            "one rank retried alone",
            "J0306",
            train("torchrun train.py", &format!("{torchrun}retry: {{max: 1, scope: task}}\n")),
        ),
        (
            "localhost as the address",
            "J0307",
            train("torchrun --nnodes=4 --node_rank=$JOBC_INDEX --master_addr=localhost train.py", ""),
        ),
        (
            "localhost in the environment",
            "J0307",
            with_env(
                "MASTER_ADDR: localhost, RANK: \"${{ instance.index }}\"",
                "torchrun --nnodes=4 --node_rank=$RANK --master_addr=$MASTER_ADDR train.py",
                "",
            ),
        ),
        ("-H localhost", "J0307", train("mpirun -np 32 -H localhost:32 python train.py", &mpi)),
        (
            "the same node rank everywhere",
            "J0308",
            train("torchrun --nnodes=4 --node_rank=0 --master_addr=${{ hosts.train[0] }} train.py", ""),
        ),
        ("plain python with torchrun's framework", "J0309", train("python train.py", &torchrun)),
        (
            "plain python with DeepSpeed's framework",
            "J0309",
            train("python train.py --deepspeed ds.json", &deepspeed),
        ),
        (
            "deepspeed on every instance",
            "J0309",
            train("deepspeed train.py", "distributed: {framework: deepspeed, roles: [train], launch: all}\n"),
        ),
        (
            "no shared memory",
            "J0311",
            format!(
                "{TORCH}roles:\n  train: {{resources: {{cpu: 8, memory: 64GiB, gpu: 8}}, run: torchrun --standalone train.py}}\n"
            ),
        ),
        (
            "checkpoints in read-only data",
            "J0318",
            train(
                "torchrun train.py --data /data --output_dir /data/checkpoints",
                &format!("data: {{d: {{source: ./d, mount: /data}}}}\n{torchrun}"),
            ),
        ),
        (
            "a pipe of sh",
            "J0319",
            format!(
                "{TORCH}roles:\n  train: {{{SIZE}, shell: sh, run: \"torchrun train.py | tee /tmp/log\"}}\n{torchrun}"
            ),
        ),
        (
            "a CUDA image too old for the card",
            "J0323",
            gpu("pytorch/pytorch:1.5.1-cuda10.1-cudnn7-runtime", "{count: 1, model: A100}"),
        ),
        (
            "an NGC image too new for the driver",
            "J0321",
            gpu("nvcr.io/nvidia/pytorch:25.08-py3", "{count: 1, driver: \"550\"}"),
        ),
        ("nvcc in a runtime image", "J0347", train("nvcc -o op op.cu && torchrun train.py", &torchrun)),
        (
            "a variable of the shell in `env`",
            "J0348",
            with_env("MASTER: $JOBC_HOSTS_TRAIN", "torchrun train.py", &torchrun),
        ),
    ];
    let mut all: Vec<Mistake> =
        list.into_iter().map(|(what, code, job)| Mistake { what, code: Some(code), job }).collect();
    // What only the program, or only the host, knows.
    all.push(Mistake {
        what: "an address that is written in the program",
        code: None,
        job: train("torchrun train.py --config cluster.yaml", &torchrun),
    });
    all.push(Mistake {
        what: "a network interface that the hosts do not have",
        code: None,
        job: with_env("NCCL_SOCKET_IFNAME: eth7", "torchrun train.py", &torchrun),
    });
    all
}

#[test]
fn forty_five_of_forty_seven_mistakes_are_caught() {
    let (mut caught, mut wrong) = (0, String::new());
    let all = mistakes();
    for Mistake { what, code, job } in &all {
        let (_, found, _) = run(&whole(job), TARGETS);
        let expected = code.and_then(Code::parse);
        let has = expected.is_some_and(|code| found.iter().any(|d| d.code == code));
        caught += usize::from(has);
        // A mistake is reported once: other findings must be mistakes too.
        if has != code.is_some() || (code.is_none() && !found.is_empty()) {
            wrong += &format!("{what}: expected {code:?}\n{job}{}", list(&found));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert_eq!((caught, all.len()), (45, 47));
}

#[test]
fn a_mistake_is_reported_once() {
    let mut wrong = String::new();
    for Mistake { what, code, job } in mistakes() {
        let (_, found, _) = run(&whole(&job), TARGETS);
        let others: Vec<_> = found
            .iter()
            .filter(|d| Some(d.code.as_str()) != code && d.severity > Severity::Note)
            .cloned()
            .collect();
        if !others.is_empty() {
            wrong += &format!("{what} ({code:?}) is also\n{}", list(&others));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn correct_forms_have_no_findings() {
    let (torchrun, deepspeed, mpi) = (framework("torchrun"), framework("deepspeed"), framework("mpi"));
    let horovod = framework("horovod");
    // JobSet's example cnn-mnist: the number of the instance is the rank.
    let cnn_mnist = "\
image: registry.example.com/pytorch-mnist:1.0
roles:
  workers:
    instances: 4
    env: {MASTER_ADDR: \"${{ hosts.workers[0] }}\", MASTER_PORT: 3389, RANK: \"${{ instance.index }}\", PYTHONUNBUFFERED: 0}
    run: torchrun --rdzv_id=123 --nnodes=4 --nproc_per_node=1 --master_addr=$MASTER_ADDR --master_port=$MASTER_PORT --node_rank=$RANK mnist.py --epochs=1
";
    let data = "data: {d: {source: ./d, mount: /data}}\noutputs: {o: {source: ./o, mount: /output}}\n";
    let jobs: Vec<(&str, String)> = vec![
        ("cnn-mnist", cnn_mnist.to_owned()),
        ("torchrun", train("torchrun train.py", &torchrun)),
        ("PET_NNODES", with_env("PET_NNODES: 4, PET_MASTER_ADDR: \"${{ hosts.train[0] }}\", PET_NODE_RANK: \"${{ instance.index }}\"", "torchrun --nproc_per_node=8 train.py", "")),
        ("PET_NNODES in the command", train("PET_NNODES=4 PET_NODE_RANK=$JOBC_INDEX torchrun --master_addr=${{ hosts.train[0] }} --nproc_per_node=8 train.py", "")),
        ("standalone", train("torchrun --standalone --nproc_per_node=8 train.py", "")),
        ("standalone at localhost", train("torchrun --standalone --master_addr=localhost --nproc_per_node=8 train.py", "")),
        ("all by hand", train("torchrun --nnodes=4 --nproc_per_node=8 --node_rank=$JOBC_INDEX --master_addr=${{ hosts.train[0] }} train.py", "")),
        ("elastic", train("torchrun --nnodes=2:4 --nproc_per_node=8 --rdzv_endpoint=${{ hosts.train[0] }}:29400 train.py", "")),
        ("one instance", format!("{TORCH}roles:\n  train: {{resources: {{cpu: 8, memory: 64GiB, shm: 8GiB, gpu: 8}}, run: torchrun --nproc_per_node=8 --master_addr=localhost train.py}}\n")),
        ("accelerate with machines", train("accelerate launch --num_machines 4 --num_processes 32 --machine_rank $JOBC_INDEX --main_process_ip ${{ hosts.train[0] }} train.py", "")),
        ("behind a profiler", train("nsys profile -o /tmp/t torchrun train.py", &torchrun)),
        ("deepspeed", train("deepspeed train.py --deepspeed ds.json", &deepspeed)),
        ("deepspeed on one instance", format!("{TORCH}roles:\n  train: {{resources: {{cpu: 8, memory: 64GiB, shm: 8GiB, gpu: 8}}, run: deepspeed train.py}}\n{deepspeed}")),
        (
            "deepspeed without ssh",
            train(
                "deepspeed --no_ssh --node_rank=$JOBC_INDEX --master_addr=$MASTER_ADDR --hostfile=$JOBC_HOSTFILE train.py",
                "distributed: {framework: deepspeed, roles: [train], launch: all}\n",
            ),
        ),
        ("mpirun", train("mpirun -np ${{ distributed.world_size }} --hostfile $JOBC_HOSTFILE python train.py", &mpi)),
        ("mpirun with its defaults", train("mpirun python train.py", &mpi)),
        ("horovodrun", train("horovodrun -np 32 --hostfile $JOBC_HOSTFILE python train.py", &horovod)),
        ("mpirun on the first instance by hand", train("if [ $JOBC_INDEX = 0 ]; then mpirun -np 8 python train.py; fi", "")),
        ("several GPUs a process", train("torchrun --nproc_per_node=2 train.py", "distributed: {framework: torchrun, roles: [train], processes_per_instance: 2}\n")),
        ("jax", train("python train.py", &framework("jax"))),
        ("its own server in each instance", train("python serve.py --master_addr localhost", "")),
        ("a script after python", train("python prepare.py && ./train.sh", &torchrun)),
        ("a sourced file", train("source env.sh; export PYTHONPATH=$PYTHONPATH:/x; torchrun train.py", &torchrun)),
        ("a variable that is read", train("read -r A < list; A=$A:x; for B in 1 2; do B=$B:y; done; torchrun train.py", &torchrun)),
        ("separate runs", train("python train.py --seed $JOBC_INDEX", "")),
        ("a program that starts torchrun", train("python launch.py --nodes $PET_NNODES", &torchrun)),
        ("what is written to outputs", train("torchrun train.py --data /data --output_dir /output | tee /output/log; cp /data/a /output/a", &format!("{data}{torchrun}"))),
        ("checkpoints that are read", train("torchrun train.py --checkpoint /data/model.pt --resume_from /data/last < /data/list", &format!("{data}{torchrun}"))),
        ("a pipe of sh that only looks", format!("{TORCH}roles:\n  train: {{{SIZE}, shell: sh, run: \"ls / | wc -l; torchrun train.py\"}}\n{torchrun}")),
        ("variables with defaults", train("export PYTHONPATH=${PYTHONPATH:-}:/src X=${X:+$X:}/y PATH=/opt/bin:$PATH LD_LIBRARY_PATH=$LD_LIBRARY_PATH:/x; A=1; A=$A:2; torchrun train.py", &torchrun)),
        ("dollars that are no variables", with_env("A: \"5$\", B: \"$5\", C: \"a$$b\", D: '\\$HOME'", "torchrun train.py", &torchrun)),
        ("a command in a variable", with_env("CMD: \"echo $HOME\"", "eval \"$CMD\"; torchrun train.py", &torchrun)),
        ("nvcc in a devel image", "image: nvidia/cuda:12.4.1-cudnn-devel-ubuntu22.04\nroles:\n  a: {resources: {cpu: 1, memory: 8GiB, shm: 1GiB, gpu: 1}, run: nvcc --version}\n".to_owned()),
        ("nvcc that is installed", "image: {from: python:3.12-slim, apt: [nvidia-cuda-toolkit, cuda-nvcc-12-4]}\nroles:\n  a: {run: nvcc --version}\n".to_owned()),
        ("a reader of logs", "image: python:3.12-slim\ndata: {logs: {source: ./logs, mount: /logs}}\nroles:\n  a: {run: timeout 1h tensorboard --logdir /logs}\n".to_owned()),
        ("a server with a time limit", "image: python:3.12-slim\nroles:\n  a: {run: timeout 1h tensorboard --logdir /tmp}\n  b: {needs: [a], run: ./b}\n".to_owned()),
    ];
    let mut wrong = String::new();
    for (what, job) in jobs {
        let (_, found, planned) = run(&whole(&job), TARGETS);
        if !planned || !found.is_empty() {
            wrong += &format!("{what}\n{job}{}", list(&found));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}
