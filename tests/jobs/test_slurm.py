"""Tests jobs in steps of Slurm: a controller and a node of Debian's packages, and an unprivileged user with `srun`."""

import contextlib
import os
import re
import socket
import subprocess
import time

import needs
import pytest

pytestmark = [pytest.mark.isolated, pytest.mark.duration(10), pytest.mark.slow, pytest.mark.accounts("range")]
ADDRESS = "192.0.2.1"
CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={place}/munge.socket
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
ReturnToService=2
KillWait=5
NodeName=node0 NodeHostname={host} CPUs={cpus}
PartitionName=all Nodes=node0 Default=YES State=UP
"""

JOB = """\
version: 1
name: inside
image: host
roles:
  main:
    instances: 2
    shell: sh
    run: {run}
"""


@pytest.fixture(scope="module")
def srun(all_jobs):
    """A running cluster; returns a function that runs `srun` with the job's user."""
    for name in ("srun", "slurmctld", "slurmd", "munged", "scancel"):
        needs.tool(name)
    jobs = all_jobs
    place = jobs.directory / "slurm"
    for directory in (place, place / "state", place / "spool"):
        directory.mkdir(mode=0o755)
    (place / "key").write_bytes(os.urandom(1024))
    (place / "key").chmod(0o400)
    values = {"host": socket.gethostname().split(".")[0], "place": place, "cpus": os.cpu_count()}
    # Only this test's namespaces have them. Slurm resolves no name where loopback is the only interface (AI_ADDRCONFIG).
    (place / "hosts").write_text(f"127.0.0.1 localhost\n{ADDRESS} {values['host']}\n")
    subprocess.run(["mount", "--no-mtab", "--bind", place / "hosts", "/etc/hosts"], check=True)
    for words in (["link", "add", "slurm0", "type", "bridge"], ["address", "add", f"{ADDRESS}/24", "dev", "slurm0"], ["link", "set", "slurm0", "up"]):
        subprocess.run(["ip", *words], check=True)
    configuration = place / "slurm.conf"
    configuration.write_text(CONFIGURATION.format(**values))
    munge = [f"--{name}={place}/munge.{name.split('-')[0]}" for name in ("socket", "pid-file", "log-file", "seed-file")]
    programs = [["munged", "--foreground", "--force", f"--key-file={place}/key", *munge],
                ["slurmctld", "-D", "-f", str(configuration)], ["slurmd", "-D", "-f", str(configuration), "-N", "node0"]]
    environment = {"PATH": os.environ["PATH"], "SLURM_CONF": str(configuration)}
    running = []

    def srun(*words, **more):
        own = jobs.environment(SLURM_CONF=str(configuration), XDG_RUNTIME_DIR="/run/user/none", **more)
        return subprocess.Popen([*jobs.account.prefix(), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, env=own, cwd=jobs.home)

    try:
        for number, words in enumerate(programs):
            with (place / f"{words[0]}.out").open("w") as output:
                running.append(subprocess.Popen(words, stdout=output, stderr=output, stdin=subprocess.DEVNULL, env=environment))
            if number == 0:
                until(lambda: (place / "munge.socket").exists())
        until(lambda: srun("sinfo", "--noheader", "--format=%t").communicate()[0].strip() == "idle")
        yield srun
    except TimeoutError:
        logs = "\n".join(path.read_text()[-2000:] for path in sorted(place.glob("*.out")))
        raise TimeoutError(f"the cluster did not start:\n{logs}") from None
    finally:
        for process in reversed(running):
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)


def until(done, seconds=30):
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError("it took too long")
        time.sleep(0.1)


def job(jobs, run):
    path = jobs.home / "job.yaml"
    path.write_text(JOB.format(run=run))
    path.chmod(0o644)
    return str(path)


def test_a_job_in_a_step_has_output_and_exit_code(jobs, srun):
    """A job's output, its exit code, and a user's directory for state although XDG_RUNTIME_DIR names none."""
    step = srun("srun", "--nodes=1", str(jobs.program), "run", job(jobs, "'echo task $JOBC_INDEX; test -s /etc/jobc/job.json'"))
    out, error = step.communicate(timeout=40)
    assert step.returncode == 0 and sorted(re.findall(r"\| task (\d)", out)) == ["0", "1"], f"exit {step.returncode}\n{out}{error}"
    step = srun("srun", "--nodes=1", str(jobs.program), "run", job(jobs, "exit 3"))
    out, error = step.communicate(timeout=40)
    assert step.returncode == 1 and "exit 3" in error, f"a failing job: exit {step.returncode}\n{out}{error}"


def test_scancel_stops_the_tasks_of_a_step(jobs, srun):
    """As Ctrl-C does, with their grace period, and nothing is left."""
    mark = "sleep 98765"
    path = job(jobs, f"\"trap 'echo bye; exit 0' TERM; echo up; while :; do {mark} & wait; done\"")
    step = srun("srun", "--nodes=1", "--job-name=canceled", str(jobs.program), "run", path)
    lines = ""
    while lines.count("| up") < 2:
        lines += step.stdout.readline()
    srun("scancel", "--name=canceled").communicate(timeout=20)
    out, error = step.communicate(timeout=40)
    left = subprocess.run(["pgrep", "--full", mark], capture_output=True, text=True, check=False).stdout.split()
    assert out.count("| bye") == 2 and not left, f"exit {step.returncode}, left {left}\n{out}{error}"
