"""Tests what users do with jobs that run on a Slurm cluster: commands beside tasks, ports, files, measurements, output by its age, cancelling.

torchrun and Apptainer are stand-ins: the first takes gigabytes, and Debian 12 does not have the second. GPUs are those of a simulated driver,
since hosts of tests have none.
"""

import json
import os
import random
import re
import signal
import subprocess
import time
import urllib.request

import needs
import pytest

from cluster import Cluster, cluster, until
from fake_gpus import fake_gpus
from place import CONTAINED, SETTINGS, SUPERVISED, Place, lines_of, one

pytestmark = [pytest.mark.isolated, pytest.mark.duration(50), pytest.mark.together(5)]
BOTH = pytest.mark.parametrize("name, settings, backends", [("bare", SETTINGS, "[slurm]"), ("contained", CONTAINED, "[oci, slurm]")])


class WithDriver(Cluster):
    """A cluster whose nodes have the driver of simulated GPUs, so that containers can have them."""

    def make_gpus(self):
        self.driver = self.place / "driver"
        subprocess.run([fake_gpus(needs), "h100", str(self.driver)], check=True)
        return self.driver / "dev/nvidia"


@pytest.fixture(scope="module")
def slurm():
    with cluster(WithDriver) as slurm:
        slurm.log_in(f"JOBC_DRIVER_ROOT={slurm.driver}")
        yield slurm


SERVE = """\
version: 1
name: access
image: host
roles:
  server:
    instances: 2
    resources: {cpu: 1, memory: 64MiB, ports: {http: auto}}
    env: {MARK: here, NUMBER: "${{ instance.index }}"}
    run: exec python3 -u -m http.server --directory /var --bind 0.0.0.0 "$JOBC_PORT_HTTP"
"""


def test_commands_run_beside_tasks_and_ports_are_forwarded(slurm):
    """`exec` runs in the environment of a task; `port-forward` leads to its port."""
    place = Place(slurm, "access", SERVE)
    handle = place.submit()
    until(lambda: place.running(handle) == 2)
    done = place.jobc("exec", handle, "server-1", "--", "sh", "-c", 'echo "$MARK $NUMBER $SLURMD_NODENAME"; exit 3', code=3)
    node = [task["node"] for task in place.inspect(handle)["tasks"]][1]
    assert done.strip() == f"here 1 {node}", done
    typed = subprocess.run([*slurm.account.prefix(), slurm.program, "exec", "-i", handle, "server-0", "--", "cat"], input="typed\n", text=True,
                           capture_output=True, cwd=place.cwd, env=slurm.environment(), timeout=60, check=False)
    assert typed.stdout == "typed\n", typed
    command = f"{slurm.program} exec -it {handle} server-0 -- sh -c 'tty; stty size'"
    terminal = subprocess.run([*slurm.account.prefix(), "script", "-qec", f"stty rows 33 cols 77; {command}", "/dev/null"], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, cwd=place.cwd, env=slurm.environment(), timeout=60, check=False)
    assert "/dev/pts/" in terminal.stdout and "33 77" in terminal.stdout, terminal
    wrong = place.jobc("exec", handle, "--", "true", code=None)
    assert "name one: `server-0`, `server-1`" in wrong.stderr, wrong.stderr
    forward = subprocess.Popen([*slurm.account.prefix(), slurm.program, "port-forward", handle, "18080:server-1:http"], stdout=subprocess.PIPE, text=True,
                               cwd=place.cwd, env=slurm.environment())
    try:
        assert forward.stdout.readline().startswith("127.0.0.1:18080 is port "), "it does not listen"
        page = None
        for _ in range(50):
            try:
                page = urllib.request.urlopen("http://127.0.0.1:18080/", timeout=5).read()
                break
            except OSError:
                time.sleep(0.1)
        assert page is not None and b"Directory listing" in page, page
    finally:
        forward.send_signal(signal.SIGINT)
        forward.wait(20)
    place.jobc("rm", "--force", handle)


def running(slurm, name, run, settings=SETTINGS, backends="[slurm]", **more):
    """A job whose tasks have all printed `up`."""
    job = one(name, run, **more)
    place = Place(slurm, name, job, settings, backends)
    handle = place.submit()
    count = more.get("instances", 1)
    until(lambda: place.jobc("logs", handle).count("up\n") == count)
    return place, handle


@BOTH
def test_files_are_copied_into_tasks_and_out_of_them(slurm, name, settings, backends):
    """Bytes stay as they are, whatever runs the containers."""
    content = random.Random(1).randbytes(300_000) + b"\r\n\n\0"
    place, handle = running(slurm, f"files-{name}", ": $JOBC_INDEX; cd /tmp; echo up; exec sleep 300", settings, backends)
    (place.cwd / "data").write_bytes(content)
    os.chown(place.cwd / "data", slurm.account.uid, slurm.account.gid)
    place.jobc("copy", handle, "data", f"main-0:/tmp/copied-{name}")
    place.jobc("copy", handle, f"main-0:/tmp/copied-{name}", "back")
    assert (place.cwd / "back").read_bytes() == content, f"{len((place.cwd / 'back').read_bytes())} bytes"
    done = subprocess.run([*slurm.account.prefix(), slurm.program, "exec", "-i", handle, "--", "cat"], input=content, capture_output=True,
                          cwd=place.cwd, env=slurm.environment(), timeout=60, check=False)
    assert done.stdout == content, f"exec -i: {len(done.stdout)} bytes\n{done.stderr}"
    # Commands are in the container of the task, and only there.
    index, namespace = place.jobc("exec", handle, "main", "--", "sh", "-c", "echo $JOBC_INDEX; readlink /proc/self/ns/mnt").split()
    assert index == "0" and (namespace == os.readlink("/proc/self/ns/mnt")) == (name == "bare")
    place.jobc("rm", "--force", handle)


# Runs a command in namespaces of its own, below a process that stays outside, as Apptainer does.
APPTAINER = """\
#!/bin/bash
while [ "$1" != docker://busybox:1.36 ]; do shift; done
shift
unshare --user --map-root-user --mount -- sh -c 'mount -t tmpfs none /mnt && echo inside >/mnt/mark && exec "$@"' sh "$@"
"""


def test_commands_reach_into_containers_of_apptainer(slurm):
    """Those that Slurm itself runs are refused with the reason."""
    program = slurm.place / "bin/apptainer"
    program.write_text(APPTAINER)
    program.chmod(0o755)
    job = one("others", "echo up; exec sleep 300", more="env: {MARK: here}").replace("image: host", "image: busybox:1.36")
    place = Place(slurm, "others", job, "container: apptainer, directory: {directory}")
    handle = place.submit()
    until(lambda: "up\n" in place.jobc("logs", handle))
    assert place.jobc("exec", handle, "--", "sh", "-c", "cat /mnt/mark; echo $MARK").split() == ["inside", "here"], \
        place.jobc("exec", handle, "--", "sh", "-c", "ls /mnt; env", code=None)
    targets = place.cwd / "targets.yaml"
    targets.write_text(targets.read_text().replace("container: apptainer", "container: oci").replace("[slurm]", "[oci, slurm]"))
    refused = place.jobc("exec", handle, "--", "true", code=None)
    assert refused.returncode != 0 and "Slurm has no way into the containers that it runs itself" in refused.stderr, refused
    targets.write_text(targets.read_text().replace("container: oci", "container: apptainer").replace("[oci, slurm]", "[slurm]"))
    place.jobc("rm", "--force", handle)


def test_top_shows_what_each_task_uses(slurm):
    place, handle = running(slurm, "usage", 'echo up; if [ "$JOBC_INDEX" = 0 ]; then while :; do :; done; else exec sleep 300; fi', instances=2)
    found = [json.loads(line) for line in place.jobc("top", handle, "--no-stream", "--format", "json").splitlines()]
    tasks = [task["task"] for task in found]
    # One turns in a loop, and the host may be busy with others.
    assert tasks == ["main-0", "main-1"] and found[0]["cpu_millis"] > found[1]["cpu_millis"], found
    assert all(1 << 20 < task["memory"] < 1 << 28 for task in found), found
    place.jobc("rm", "--force", handle)
    assert place.jobc("top", handle, "--no-stream", code=None).returncode != 0, "a job that was removed is measured"


NVIDIA_SMI = """\
#!/bin/sh
[ "$1 $2" = "--query-gpu=index,uuid,utilization.gpu,memory.used --format=csv,noheader,nounits" ] || exit 1
for card in 0 1 2 3 4 5 6 7; do echo "$card, GPU-$card, $((90 + card)), $card"; done
"""


def test_top_shows_the_gpus_of_each_task(slurm):
    """As `nvidia-smi` of the node does; those that Slurm gave to the task."""
    (slurm.place / "bin/nvidia-smi").write_text(NVIDIA_SMI)
    (slurm.place / "bin/nvidia-smi").chmod(0o755)
    job = one("cards", "echo up $SLURM_STEP_GPUS; exec sleep 300").replace("memory: 64MiB", "memory: 64MiB, gpu: 2")
    place = Place(slurm, "cards", job, SETTINGS)
    handle = place.submit()
    until(lambda: "up" in place.jobc("logs", handle))
    numbers = [int(number) for number in re.search(r"up (\S+)", place.jobc("logs", handle))[1].split(",")]
    [task] = json.loads("[" + ",".join(place.jobc("top", handle, "--no-stream", "--format", "json", PATH=f"{slurm.place}/bin:{os.environ['PATH']}").splitlines()) + "]")
    cards = [(gpu["gpu"], gpu["utilization"], gpu["memory"]) for gpu in task.get("gpu", [])]
    assert len(numbers) == 2 and cards == [(f"GPU-{number}", 90 + number, number << 20) for number in numbers], (numbers, task)
    (slurm.place / "bin/nvidia-smi").unlink()
    place.jobc("rm", "--force", handle)


SECRETS = "secrets: {token: {env: TOKEN}}"
TOKEN = "    env: {TOKEN: '${{ secrets.token }}'}\n"


@pytest.mark.slow
@pytest.mark.parametrize("name, run, role, settings, backends, printed", [
    ("script", "echo ${#TOKEN}", SUPERVISED, SETTINGS, "[slurm]", ["5"]),
    ("contained", "echo ${#TOKEN}; wc -c </token", f"    files: {{/token: {{secret: token}}}}\n{SUPERVISED}", CONTAINED, "[oci, slurm]", ["5", "5"]),
    ("killed", "echo up; sleep 300", "", SETTINGS, "[slurm]", None)])
def test_secrets_are_removed_after_the_end(slurm, name, run, role, settings, backends, printed):
    """By the job's script, or by the next command that sees the end."""
    place = Place(slurm, f"secrets-{name}", one(f"secrets-{name}", run, more=SECRETS, role=role + TOKEN), settings, backends)
    handle = place.submit(TOKEN="value")
    run_directory = place.run_directory(handle)
    if name == "killed":
        until(lambda: "up" in place.jobc("logs", handle))
        assert (run_directory / "secrets/token").exists(), "the secret is not there"
        number = (run_directory / "jobs/job").read_text().strip()
        slurm.user("scancel", "--batch", "--signal=KILL", number)
        slurm.ends(number)
        assert (run_directory / "secrets/token").exists(), "the script removed it, though it was killed"
        place.jobc("ps", "--target", "cluster")
    else:
        until(lambda: not (run_directory / "secrets").exists(), 40)
        assert [line for line in lines_of(place.jobc("logs", handle), "main-0") if not line.startswith("warning")] == printed
    left = subprocess.run(["grep", "-rl", "value", *(path for path in (run_directory / "secrets", run_directory / "etc") if path.exists()), "/dev/null"],
                          capture_output=True, text=True, check=False).stdout
    assert not (run_directory / "secrets").exists() and not left, f"left {left}"


def test_a_secret_that_is_printed_is_redacted(slurm):
    """In the log as in all that stays of the run."""
    value = "correct-horse-battery"
    place = Place(slurm, "redacted", one("redacted", "echo token: $TOKEN", more=SECRETS, role=TOKEN))
    handle = place.submit(TOKEN=value)
    place.jobc("wait", handle)
    assert lines_of(place.jobc("logs", handle), "main-0") == ["token: ***"], place.jobc("logs", handle)
    left = subprocess.run(["grep", "-rl", value, place.run_directory(handle)], capture_output=True, text=True, check=False).stdout
    assert not left, left


@pytest.mark.slow
def test_a_job_that_starts_again_needs_its_secret_again(slurm):
    run = '[ "${#TOKEN}" = 5 ] || exit 3; [ "${SLURM_RESTART_COUNT-0}" -ge 1 ] || { echo up; sleep 300; }'
    place = Place(slurm, "secrets-again", one("secrets-again", run, more=SECRETS, role=TOKEN + "    retry: {max: 1, scope: job}\n"))
    handle = place.submit(TOKEN="value")
    number = (place.run_directory(handle) / "jobs/job").read_text().strip()
    until(lambda: "up" in place.jobc("logs", handle))
    slurm.user("scontrol", "requeue", number)
    until(lambda: slurm.show(number).get("Restarts") == "1" and slurm.show(number)["JobState"] == "PENDING", 40)
    time.sleep(3)
    slurm.user("scontrol", "update", f"jobid={number}", "starttime=now")
    place.jobc("wait", handle)
    assert not (place.run_directory(handle) / "secrets").exists(), "a job that was requeued leaves it"


@BOTH
def test_cancelled_tasks_have_time_to_end(slurm, name, settings, backends):
    """They have the time that Slurm gives them, and the job counts as stopped."""
    # proctrack/linuxproc signals the program and jobc, which passes the signal on.
    # It signals all processes of a task one after the other: what the program waits for may end before the program is told.
    run = 'trap "trap : TERM; sleep 3 || :; echo bye; exit 0" TERM; echo up; while :; do sleep 300 & wait; done'
    place, handle = running(slurm, f"cancelled-{name}", run, settings, backends, instances=2)
    number = (place.run_directory(handle) / "jobs/job").read_text().strip()
    since = time.monotonic()
    slurm.user("scancel", number)
    place.jobc("wait", handle, code=None)
    text = place.jobc("logs", handle)
    assert text.count("bye") == 2 and time.monotonic() - since >= 3, f"after {time.monotonic() - since:.1f} s\n{text}"
    assert place.inspect(handle)["state"] == "stopped", place.inspect(handle)


def test_a_signal_that_continues_jobs_does_not_end_one(slurm):
    place, handle = running(slurm, "continued", 'trap "echo continued" CONT; echo up; for i in $(seq 40); do sleep 0.1; done; echo end')
    number = (place.run_directory(handle) / "jobs/job").read_text().strip()
    slurm.user("scancel", "--signal=CONT", "--full", number)
    place.jobc("wait", handle)
    assert "end" in place.jobc("logs", handle), place.jobc("logs", handle)


# A stand-in for torchrun: all nodes meet at the address that it is told.
TORCHRUN = """\
#!/bin/sh
echo "node $PET_NODE_RANK of $PET_NNODES runs $(cat "$1")"
if [ "$PET_NODE_RANK" = 0 ]; then
  mkfifo /tmp/silence
  nc -l -p "$PET_MASTER_PORT" <>/tmp/silence
else
  for i in 1 2 3 4 5 6 7 8 9 10; do
    echo "hello from $PET_NODE_RANK of $(hostname)" | nc "$PET_MASTER_ADDR" "$PET_MASTER_PORT" 2>/dev/null && exit
    sleep 1
  done
  exit 1
fi
"""
STORY = """\
version: 1
name: gpt-small
image:
  from: pytorch/pytorch:2.4.0-cuda12.4-cudnn9-runtime
  copy: [{from: train.py, to: /workspace/train.py}]
  workdir: /workspace
roles:
  train:
    instances: 2
    shell: sh
    resources: {cpu: 64, memory: 512GiB, shm: 64GiB, gpu: 8}
    run: torchrun train.py
distributed: {framework: torchrun, roles: [train]}
"""


def test_the_job_of_the_readme_needs_no_administrator(slurm):
    """Its job for torchrun runs on two nodes in an image that the user's own host builds."""
    root = slurm.home / "pytorch"
    for directory in (root / "bin", root / "tmp", root / "workspace", root / "etc"):
        slurm.user("mkdir", "-p", directory)
    slurm.user("cp", "/bin/busybox", root / "bin/busybox")
    for name in ("sh", "cat", "echo", "nc", "sleep", "hostname", "mkfifo"):
        slurm.user("ln", "-s", "busybox", root / "bin" / name)
    slurm.write("pytorch/bin/torchrun", TORCHRUN, 0o755)
    slurm.user(slurm.program, "image", "import", root, "--tag", "pytorch/pytorch:2.4.0-cuda12.4-cudnn9-runtime")
    place = Place(slurm, "story", STORY, CONTAINED, "[oci, slurm]")
    slurm.write("story/train.py", "the model")
    place.jobc("check", "job.yaml", "--target", "cluster")
    assert place.submit("--dry-run") == "" and not place.queued()
    handle = place.submit()
    place.jobc("wait", handle)
    logs = place.jobc("logs", handle)
    said = {task: [line for line in lines_of(logs, task) if not line.startswith(("warning", "source", "layer", "image"))] for task in ("train-0", "train-1")}
    assert said["train-1"] == ["node 1 of 2 runs the model"] and said["train-0"][:1] == ["node 0 of 2 runs the model"] and any(line.startswith("hello from 1 of") for line in said["train-0"]), \
        f"{said}\n{logs}"
    assert len({task["node"] for task in place.inspect(handle)["tasks"]}) == 2, f"{place.inspect(handle)}"
    # After an edit there is another image, of which only the layer that changed is sent.
    slurm.write("story/train.py", "another model")
    before = {path.name for path in (place.directory / "store/sha256").iterdir()}
    second = place.submit()
    place.jobc("wait", second)
    sent = sum(path.stat().st_size for path in (place.directory / "store/sha256").iterdir() if path.name not in before)
    assert second != handle and "runs another model" in place.jobc("logs", second) and sent <= 100_000, \
        f"{second}: sent {sent}\n{place.jobc('logs', second)}"
    # `plan` has the request beside the lines that ask for it.
    plan = place.jobc("plan", "--target", "cluster")
    assert re.search(r"^  #SBATCH --nodes=2 +job.yaml:9: instances: 2$", plan, re.MULTILINE), plan
