#!/usr/bin/env python3
"""Proves the rendezvous of frameworks with the frameworks themselves, which `tests/jobs/install` installs.

JAX and TensorFlow run on this host's file system; PyTorch, Open MPI and horovodrun on Debian's, with a real sshd. PyTorch is Debian's,
since PyPI's needs CUDA. Of Horovod only `horovodrun` runs: building the library takes a framework and minutes.
"""

import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "runtime"))

from examples import copy_example, exit_problems, record_problems, run  # noqa: E402
from isolation import jobs_of, problems  # noqa: E402
from harness import REPOSITORY, Harness  # noqa: E402

ORACLES = REPOSITORY / ".oracles"
JAX, TENSORFLOW, DEBIAN, OPENMPI, HOROVOD = (ORACLES / name for name in ("jax", "tensorflow", "debian", "openmpi", "horovod"))
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

TORCH_PROGRAM = """\
import torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.tensor([float(dist.get_rank() + 1)])
dist.all_reduce(total)
print(f"rank {dist.get_rank()} of {dist.get_world_size()} has {total.item()}", flush=True)
"""

MPI_PROGRAM = """\
import os, socket
from mpi4py import MPI
world, version = MPI.COMM_WORLD, MPI.Get_library_version().split(",")[0].split(".")[0]
total = world.allreduce(world.Get_rank() + 1)
print(f"{version}: rank {world.Get_rank()} of {world.Get_size()} on {socket.gethostname()} has {total} and {os.environ['WORD']}", flush=True)
"""

# It asks whether Horovod was built with gloo, which it was not: only the start of processes is wanted.
HOROVODRUN = """\
#!/usr/bin/python3
from horovod.runner import launch
launch.gloo_built = lambda verbose=False: True
if __name__ == "__main__":
    launch.run_commandline()
"""

HOROVOD_PROGRAM = """\
import os, socket
values = (os.environ["HOROVOD_" + name] for name in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE"))
print("rank", *values, "on", socket.gethostname(), "with", os.environ["WORD"], flush=True)
"""

TENSORFLOW_PROGRAM = """\
import json
import tensorflow as tf
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
print("cluster", json.dumps([resolver.task_type, resolver.task_id, resolver.cluster_spec().as_dict()]), flush=True)
if resolver.task_type in ("chief", "worker") and "ps" not in resolver.cluster_spec().jobs:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    @tf.function
    def total():
        def replica():
            context = tf.distribute.get_replica_context()
            return context.all_reduce(tf.distribute.ReduceOp.SUM, tf.cast(context.replica_id_in_sync_group, tf.float32) + 1.0)
        return strategy.run(replica)
    print("sum", float(total()), "of", strategy.num_replicas_in_sync, flush=True)
"""


def main():
    harness = Harness("frameworks", __doc__)
    with jobs_of(harness) as jobs:
        for case, needed in {
            jax_example: JAX, jax_on_the_host_network: JAX, jax_without_a_member: JAX, torchrun: DEBIAN, torchrun_elastic: DEBIAN, ddp: DEBIAN,
            mpi: DEBIAN, mpi_5: OPENMPI, horovodrun: HOROVOD, tensorflow: TENSORFLOW, tensorflow_with_servers: TENSORFLOW,
        }.items():
            if not harness.wants(case.__name__):
                continue
            if (needed / "installed").exists() or needed == HOROVOD and needed.is_dir():
                harness.check(case.__name__, problems(case, jobs))
                continue
            harness.lacks(case.__name__, needed.name, "`tests/jobs/install`")
    harness.end()


def jax_example(jobs):
    """Four processes of JAX meet by the one call that the guide shows, and sum their gradients."""
    yield from sums_gradients(jobs, copy_example(jobs, "local-jax"))


def jax_on_the_host_network(jobs):
    """The same on the network of the host, where all have one address."""
    copy = copy_example(jobs, "local-jax")
    job = copy / "job.yaml"
    job.write_text(job.read_text().replace("network: job", "network: host"))
    yield from sums_gradients(jobs, copy)


def sums_gradients(jobs, example):
    answer = run(jobs, "--set", f"python={JAX}/bin/python", example)
    yield from exit_problems(answer)
    yield from record_problems(jobs.record("local-jax"), "local-jax")
    for rank in range(4):
        yield from missing_lines(answer, f"train-{rank} | process {rank} of 4, 4 devices in all",
                                 f"train-{rank} | process {rank}: slope 2.000, intercept -1.000")


def jax_without_a_member(jobs):
    """JAX gives up without the name of the process that did not come; the note has it."""
    copy = copy_example(jobs, "local-jax")
    program = copy / "code/train.py"
    text = program.read_text()
    late = text.replace("    jax.distributed.initialize(", '''    if os.environ["JAX_PROCESS_ID"] == "2":
        import time
        time.sleep(600)
    jax.distributed.initialize(
        initialization_timeout=15,''')
    if late == text:
        yield "the program does not call what is replaced"
    program.write_text(late)
    answer = run(jobs, "--set", f"python={JAX}/bin/python", copy)
    notes = jobs.record("local-jax").get("notes", [])
    wanted = re.compile(r"`train-2` had no connection to port \d+ of `train-0` when `train-[013]` failed")
    if answer.returncode == 0 or not any(wanted.fullmatch(note) for note in notes):
        yield f"exit {answer.returncode}, notes {notes}: {answer.stdout[-1600:]}{answer.stderr[-1600:]}"


def torchrun(jobs):
    """torchrun starts two processes on each of two instances, on both kinds of network."""
    for network in ("job", "host"):
        # Python 3.11 does not list members of value 0, so this release finds no `Std.NONE`, the default of both options.
        command = "torchrun --redirects 1 --tee 1 /opt/program.py"
        answer = run_program(jobs, f"torchrun-{network}", command, TORCH_PROGRAM, 2, network=network, framework="torchrun",
                             processes_per_instance=2)
        yield from missing_lines(answer, *(f"train-{rank // 2} | [default{rank % 2}]:rank {rank} of 4 has 10.0" for rank in range(4)))


def torchrun_elastic(jobs):
    """Elastic instances find the store on the first one, and torchrun gives out the ranks, in whatever order they came."""
    for network in ("job", "host"):
        answer = run_program(jobs, f"elastic-{network}", "torchrun --redirects 1 --tee 1 /opt/program.py", TORCH_PROGRAM, 3, network=network,
                             framework="torchrun", elastic={"min": 3, "max": 3})
        ranks = sorted(re.findall(r"train-\d \| \[default0\]:rank (\d) of 3 has 6.0", answer.stdout))
        if answer.returncode != 0 or ranks != ["0", "1", "2"]:
            yield f"network {network}: exit {answer.returncode}, ranks {ranks}: {answer.stdout[-2400:]}{answer.stderr[-1600:]}"


def ddp(jobs):
    """Without a launcher, one process on each instance."""
    answer = run_program(jobs, "ddp", "python3 /opt/program.py", TORCH_PROGRAM, 3, framework="ddp")
    yield from missing_lines(answer, *(f"train-{rank} | rank {rank} of 3 has 6.0" for rank in range(3)))


def mpi(jobs):
    """Debian's Open MPI 4 starts two processes on each of three instances, which have the variables of their instance."""
    yield from sums_ranks(jobs, "4", {"WORD": "passed"})


def mpi_5(jobs):
    """Open MPI 5, which starts processes by PRRTE; it is found by the variables of the instances alone."""
    place = "/opt/openmpi"
    env = {"WORD": "passed", "PATH": f"{place}/bin:{PATH}", "PYTHONPATH": f"{place}/lib/python3.11/site-packages", "OPAL_PREFIX": place}
    yield from sums_ranks(jobs, "5", env, {"openmpi": {"source": str(OPENMPI), "mount": place}})


def sums_ranks(jobs, release, env, data=None):
    answer = run_program(jobs, f"mpi-{release}", "mpirun python3 /opt/program.py", MPI_PROGRAM, 3, env=env, data=data, framework="mpi",
                         processes_per_instance=2)
    lines = (f"train-0 | Open MPI v{release}: rank {rank} of 6 on train-{rank // 2} has 21 and passed" for rank in range(6))
    yield from missing_lines(answer, *lines)


def horovodrun(jobs):
    """horovodrun reads the host file, checks every host by ssh, and starts two processes on each."""
    env = {"WORD": "passed", "PATH": f"/opt/bin:{PATH}", "PYTHONPATH": "/opt/horovod"}
    command = 'horovodrun --gloo -np ${{ distributed.world_size }} --hostfile "$JOBC_HOSTFILE" python3 /opt/program.py'
    answer = run_program(jobs, "horovod", command, HOROVOD_PROGRAM, 3, env=env, data={"horovod": {"source": str(HOROVOD), "mount": "/opt/horovod"}},
                         files={"/opt/bin/horovodrun": {"content": HOROVODRUN, "mode": "0755"}}, framework="horovod", processes_per_instance=2)
    lines = (f"train-0 | [{rank}]<stdout>:rank {rank} 6 {rank % 2} 2 {rank // 2} 3 on train-{rank // 2} with passed" for rank in range(6))
    yield from missing_lines(answer, *lines)


def tensorflow(jobs):
    """A chief and two workers: TensorFlow's resolver reads TF_CONFIG, and its strategy sums over all three."""
    cluster = {"chief": ["chief-0:2222"], "worker": ["worker-0:2222", "worker-1:2222"]}
    answer = run_tensorflow(jobs, "tensorflow", {"chief": 1, "worker": 2})
    for part, index in (("chief", 0), ("worker", 0), ("worker", 1)):
        yield from missing_cluster(answer, part, index, cluster)
    if answer.stdout.count("| sum 6.0 of 3\n") != 3:
        yield f"not all had the sum: {answer.stdout[-1600:]}"


def tensorflow_with_servers(jobs):
    """The resolver of every part finds itself in the same cluster; an evaluator is in no list."""
    cluster = {"chief": ["chief-0:2222"], "worker": ["worker-0:2222"], "ps": ["ps-0:2222", "ps-1:2222"]}
    answer = run_tensorflow(jobs, "tensorflow-ps", {"chief": 1, "worker": 1, "ps": 2, "evaluator": 1})
    for part, index in (("chief", 0), ("worker", 0), ("ps", 0), ("ps", 1), ("evaluator", 0)):
        yield from missing_cluster(answer, part, index, cluster)


def run_tensorflow(jobs, name, parts):
    files = {"/opt/program.py": {"content": TENSORFLOW_PROGRAM}}
    what = {"run": f"exec {TENSORFLOW}/bin/python /opt/program.py", "files": files, "completion": {"min_succeeded": "all"}}
    roles = {part: {"instances": instances, **what} for part, instances in parts.items()}
    job = {"version": 1, "name": name, "image": "host", "network": "job", "roles": roles,
           "distributed": {"framework": "tensorflow", "roles": {part: part for part in parts}}}
    return run_job(jobs, job)


def missing_cluster(answer, part, index, cluster):
    """Whether a part printed itself and the cluster, in whatever order TensorFlow lists its jobs."""
    printed = re.search(rf"^{part}-{index} +\| cluster (.*)$", answer.stdout, re.MULTILINE)
    if printed is None or json.loads(printed[1]) != [part, index, cluster]:
        yield f"{part}-{index} printed {printed and printed[1]}: {answer.stdout[-1600:]}{answer.stderr[-1600:]}"


def run_program(jobs, name, command, program, instances, network="job", env=None, data=None, files=None, **distributed):
    """Runs a program of Python on all instances of a job, in Debian's root file system."""
    files = {"/opt/program.py": {"content": program}, **(files or {})}
    roles = {"train": {"instances": instances, "run": command, "files": files, "env": env or {}}}
    job = {"version": 1, "name": name, "image": "host", "network": network, "roles": roles, "data": data or {},
           "distributed": {"roles": ["train"], **distributed}}
    return run_job(jobs, job, "--root", DEBIAN)


def run_job(jobs, job, *words):
    path = jobs.directory / f"{job['name']}.json"
    path.write_text(json.dumps(job))
    return run(jobs, *words, path)


def missing_lines(answer, *lines):
    if answer.returncode != 0 or not set(lines) <= set(answer.stdout.splitlines()):
        missing = [line for line in lines if line not in answer.stdout.splitlines()]
        yield f"exit {answer.returncode}, {missing} are missing: {answer.stdout[-2400:]}{answer.stderr[-1600:]}"


if __name__ == "__main__":
    main()
