"""Proves the rendezvous of frameworks with the frameworks themselves, which `tests/jobs/install` installs.

JAX and TensorFlow run on this host's file system; PyTorch, Open MPI and horovodrun on Debian's, with a real sshd. PyTorch is Debian's,
since PyPI's needs CUDA. Of Horovod only `horovodrun` runs: building the library takes a framework and minutes.
"""

import json
import re

import pytest

from command_line import check_record, copy_example
from frameworks import DEBIAN, HOROVOD, JAX, MPI_PROGRAM, OPENMPI, PATH, TENSORFLOW, TENSORFLOW_PROGRAM, TORCH_PROGRAM, check_lines, need

pytestmark = [pytest.mark.isolated, pytest.mark.duration(110)]

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


@pytest.mark.slow
def test_jax_processes_sum_their_gradients(jobs):
    """Four meet by the one call that the guide shows."""
    sums_gradients(jobs, copy_example(jobs, "local-jax"))


@pytest.mark.slow
def test_jax_meets_on_the_network_of_the_host(jobs):
    """All have one address there."""
    copy = copy_example(jobs, "local-jax")
    job = copy / "job.yaml"
    job.write_text(job.read_text().replace("network: job", "network: host"))
    sums_gradients(jobs, copy)


def sums_gradients(jobs, example):
    need(JAX)
    answer = run(jobs, "--set", f"python={JAX}/bin/python", example)
    assert answer.returncode == 0, answer
    check_record(jobs.record("local-jax"))
    for rank in range(4):
        check_lines(answer, f"train-{rank} | process {rank} of 4, 4 devices in all",
                                 f"train-{rank} | process {rank}: slope 2.000, intercept -1.000")


@pytest.mark.slow
def test_a_note_names_the_process_that_jax_waited_for(jobs):
    """JAX itself gives up without the name."""
    need(JAX)
    copy = copy_example(jobs, "local-jax")
    program = copy / "code/train.py"
    text = program.read_text()
    late = text.replace("    jax.distributed.initialize(", '''    if os.environ["JAX_PROCESS_ID"] == "2":
        import time
        time.sleep(600)
    jax.distributed.initialize(
        initialization_timeout=15,''')
    assert late != text, "the program does not call what is replaced"
    program.write_text(late)
    answer = run(jobs, "--set", f"python={JAX}/bin/python", copy)
    notes = jobs.record("local-jax").get("notes", [])
    wanted = re.compile(r"`train-2` had no connection to port \d+ of `train-0` when `train-[013]` failed")
    assert answer.returncode != 0 and any(wanted.fullmatch(note) for note in notes), \
        f"exit {answer.returncode}, notes {notes}: {answer.stdout[-1600:]}{answer.stderr[-1600:]}"


@pytest.mark.slow
@pytest.mark.parametrize("network", ("job", "host"))
def test_torchrun_starts_two_processes_on_each_instance(jobs, network):
    """On both kinds of network."""
    # Python 3.11 does not list members of value 0, so this release finds no `Std.NONE`, the default of both options.
    command = "torchrun --redirects 1 --tee 1 /opt/program.py"
    answer = run_program(jobs, f"torchrun-{network}", command, TORCH_PROGRAM, 2, network=network, framework="torchrun",
                         processes_per_instance=2)
    check_lines(answer, *(f"train-{rank // 2} | [default{rank % 2}]:rank {rank} of 4 has 10.0" for rank in range(4)))


@pytest.mark.slow
@pytest.mark.parametrize("network", ("job", "host"))
def test_elastic_instances_find_the_store_on_the_first(jobs, network):
    """torchrun gives out the ranks, in whatever order they came."""
    answer = run_program(jobs, f"elastic-{network}", "torchrun --redirects 1 --tee 1 /opt/program.py", TORCH_PROGRAM, 3, network=network,
                         framework="torchrun", elastic={"min": 3, "max": 3})
    ranks = sorted(re.findall(r"train-\d \| \[default0\]:rank (\d) of 3 has 6.0", answer.stdout))
    assert answer.returncode == 0 and ranks == ["0", "1", "2"], \
        f"network {network}: exit {answer.returncode}, ranks {ranks}: {answer.stdout[-2400:]}{answer.stderr[-1600:]}"


@pytest.mark.slow
def test_ddp_has_one_process_on_each_instance(jobs):
    answer = run_program(jobs, "ddp", "python3 /opt/program.py", TORCH_PROGRAM, 3, framework="ddp")
    check_lines(answer, *(f"train-{rank} | rank {rank} of 3 has 6.0" for rank in range(3)))


@pytest.mark.slow
def test_open_mpi_4_starts_two_processes_on_each_instance(jobs):
    """Debian's release; they have the variables of their instance."""
    sums_ranks(jobs, "4", {"WORD": "passed"})


@pytest.mark.slow
def test_open_mpi_5_is_found_by_the_variables_of_the_instances(jobs):
    """It starts processes by PRRTE."""
    need(OPENMPI)
    place = "/opt/openmpi"
    env = {"WORD": "passed", "PATH": f"{place}/bin:{PATH}", "PYTHONPATH": f"{place}/lib/python3.11/site-packages", "OPAL_PREFIX": place}
    sums_ranks(jobs, "5", env, {"openmpi": {"source": str(OPENMPI), "mount": place}})


def sums_ranks(jobs, release, env, data=None):
    answer = run_program(jobs, f"mpi-{release}", "mpirun python3 /opt/program.py", MPI_PROGRAM, 3, env=env, data=data, framework="mpi",
                         processes_per_instance=2)
    lines = (f"train-0 | Open MPI v{release}: rank {rank} of 6 on train-{rank // 2} has 21 and passed" for rank in range(6))
    check_lines(answer, *lines)


@pytest.mark.slow
def test_horovodrun_starts_two_processes_on_each_host(jobs):
    """It reads the host file, and checks every host by ssh."""
    need(HOROVOD)
    env = {"WORD": "passed", "PATH": f"/opt/bin:{PATH}", "PYTHONPATH": "/opt/horovod"}
    command = 'horovodrun --gloo -np ${{ distributed.world_size }} --hostfile "$JOBC_HOSTFILE" python3 /opt/program.py'
    answer = run_program(jobs, "horovod", command, HOROVOD_PROGRAM, 3, env=env, data={"horovod": {"source": str(HOROVOD), "mount": "/opt/horovod"}},
                         files={"/opt/bin/horovodrun": {"content": HOROVODRUN, "mode": "0755"}}, framework="horovod", processes_per_instance=2)
    lines = (f"train-0 | [{rank}]<stdout>:rank {rank} 6 {rank % 2} 2 {rank // 2} 3 on train-{rank // 2} with passed" for rank in range(6))
    check_lines(answer, *lines)


@pytest.mark.slow
def test_tensorflow_sums_over_a_chief_and_two_workers(jobs):
    """A chief and two workers: TensorFlow's resolver reads TF_CONFIG, and its strategy sums over all three."""
    cluster = {"chief": ["chief-0:2222"], "worker": ["worker-0:2222", "worker-1:2222"]}
    answer = run_tensorflow(jobs, "tensorflow", {"chief": 1, "worker": 2})
    for part, index in (("chief", 0), ("worker", 0), ("worker", 1)):
        missing_cluster(answer, part, index, cluster)
    assert answer.stdout.count("| sum 6.0 of 3\n") == 3, f"not all had the sum: {answer.stdout[-1600:]}"


@pytest.mark.slow
def test_every_part_of_tensorflow_finds_itself_in_the_cluster(jobs):
    """The resolver of every part finds itself in the same cluster; an evaluator is in no list."""
    cluster = {"chief": ["chief-0:2222"], "worker": ["worker-0:2222"], "ps": ["ps-0:2222", "ps-1:2222"]}
    answer = run_tensorflow(jobs, "tensorflow-ps", {"chief": 1, "worker": 1, "ps": 2, "evaluator": 1})
    for part, index in (("chief", 0), ("worker", 0), ("ps", 0), ("ps", 1), ("evaluator", 0)):
        missing_cluster(answer, part, index, cluster)


def run_tensorflow(jobs, name, parts):
    need(TENSORFLOW)
    files = {"/opt/program.py": {"content": TENSORFLOW_PROGRAM}}
    what = {"run": f"exec {TENSORFLOW}/bin/python /opt/program.py", "files": files, "completion": {"min_succeeded": "all"}}
    roles = {part: {"instances": instances, **what} for part, instances in parts.items()}
    job = {"version": 1, "name": name, "image": "host", "network": "job", "roles": roles,
           "distributed": {"framework": "tensorflow", "roles": {part: part for part in parts}}}
    return run_job(jobs, job)


def missing_cluster(answer, part, index, cluster):
    """Whether a part printed itself and the cluster, in whatever order TensorFlow lists its jobs."""
    printed = re.search(rf"^{part}-{index} +\| cluster (.*)$", answer.stdout, re.MULTILINE)
    assert printed is not None and json.loads(printed[1]) == [part, index, cluster], \
        f"{part}-{index} printed {printed and printed[1]}: {answer.stdout[-1600:]}{answer.stderr[-1600:]}"


def run_program(jobs, name, command, program, instances, network="job", env=None, data=None, files=None, **distributed):
    """Runs a program of Python on all instances of a job, in Debian's root file system."""
    files = {"/opt/program.py": {"content": program}, **(files or {})}
    roles = {"train": {"instances": instances, "run": command, "files": files, "env": env or {}}}
    job = {"version": 1, "name": name, "image": "host", "network": network, "roles": roles, "data": data or {},
           "distributed": {"roles": ["train"], **distributed}}
    need(DEBIAN)
    return run_job(jobs, job, "--root", DEBIAN)


def run_job(jobs, job, *words):
    path = jobs.directory / f"{job['name']}.json"
    path.write_text(json.dumps(job))
    return run(jobs, *words, path)


def run(jobs, *words):
    return jobs.call("run", *map(str, words), seconds=60)
