"""Tests that commands without a reason to open a connection open none: strace(1) records each address that they and what they start name.

Only sockets of this host are allowed: AF_UNIX, and AF_NETLINK, by which a job's own network is made. io_uring(7) is not allowed either, since
strace does not see what goes through it. The loopback interface of a new network namespace is set up with a socket of AF_INET, which names
no address.
"""

import re
import subprocess

import pytest

import needs
import podman
from command_line import expect

pytestmark = [pytest.mark.isolated, pytest.mark.duration(20), pytest.mark.needs("root", "strace", "busybox"), pytest.mark.accounts("root")]

SECONDS = 60
HERE = {"AF_UNIX", "AF_LOCAL", "AF_NETLINK", "AF_UNSPEC"}
CALLS = "connect,sendto,sendmsg,sendmmsg,io_uring_setup"
# Names an image of a registry and data of a server, which checking and compiling must not ask.
CLUSTER = """\
version: 1
name: cluster
image: registry.example.com/ml/train:1.0
data:
  set: {source: https://data.example.com/set.tar.gz, unpack: true, mount: /data}
  code: {source: git+https://git.example.com/code, ref: v1, mount: /code}
roles:
  train: {instances: 2, resources: {cpu: 1, memory: 1GiB}, run: torchrun train.py}
distributed: {framework: torchrun, roles: [train]}
"""
TARGETS = """\
version: 1
default: [lab]
targets:
  local: {backends: [oci, cgroup]}
  lab: {backends: [kubernetes], registry: registry.example.com/ml, kubernetes: {namespace: ml, queue: {kueue: user-queue}, storage: {set: {pvc: set}, code: {pvc: code}}}}
  hpc: {backends: [slurm], slurm: {container: apptainer, storage: {set: /set, code: /code}}, ssh: {host: login.example.com}}
"""
COMMANDS = [("check",), ("build",), ("build", "--target", "hpc", "--allow-lossy"), ("plan",), ("fmt", "--check"), ("diff", "job.yaml", "job.yaml"),
            ("explain", "J0101"), ("backends",), ("std", "ls"), ("schema", "job"), ("targets", "ls"), ("ps",), ("config",)]
LOCAL = """\
version: 1
name: untouched
image: localhost/busybox:1
network: NETWORK
roles:
  first: {shell: sh, run: echo first, resources: {ports: {http: auto}}}
  second: {shell: sh, run: "ip link show lo; echo second", needs: [first]}
"""


def recorded(jobs, *words, cwd=None):
    """What a command answers, and the calls of it that go elsewhere."""
    log = jobs.directory / "strace"
    command = ["strace", "-qq", "-f", "-o", log, "-e", f"trace={CALLS}", *jobs.words(*words)]
    answer = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", env=jobs.environment(),
                            timeout=SECONDS, check=False, cwd=cwd)
    return answer, foreign(log.read_text(errors="replace"))


def foreign(text):
    """The calls that go elsewhere."""
    lines = [line for line in text.splitlines() if re.match(r"\d+ +(?:connect|send\w+|io_uring_setup)\(", line)]
    return [line for line in lines if "io_uring_setup(" in line or set(re.findall(r"sa_family=(\w+)", line)) - HERE]


@pytest.fixture
def place(jobs):
    directory = jobs.directory / "place"
    directory.mkdir(exist_ok=True)
    (directory / "targets.yaml").write_text(TARGETS)
    (directory / "job.yaml").write_text(CLUSTER)
    (directory / "train.py").write_text("print()\n")
    return directory


def test_compiling_opens_no_connection(jobs, place):
    """Also where a job names a registry, a server of data and clusters. `test` writes its golden files first."""
    for words in [*COMMANDS, ("test", "--accept"), ("test",)]:
        answer, wrong = recorded(jobs, *words, cwd=place)
        expect(answer)
        assert not wrong, f"jobc {' '.join(words)}:\n" + "\n".join(wrong)


@pytest.mark.parametrize("network", ("host", "job", "none"))
def test_a_job_with_a_local_image_opens_no_connection(jobs, place, network):
    """From the archive of the image to the removed job."""
    podman.image(needs.tool("busybox"), place / "busybox.tar")
    (place / "local.yaml").write_text(LOCAL.replace("NETWORK", network))
    commands = [("image", "import", "--tag", "localhost/busybox:1", "busybox.tar"), ("run", "--target", "local", "local.yaml"), ("logs", "untouched"),
                ("inspect", "untouched"), ("rm", "untouched")]
    for words in commands:
        answer, wrong = recorded(jobs, *words, cwd=place)
        expect(answer, out="second" if words[0] == "logs" else None)
        assert not wrong, f"jobc {' '.join(words)}:\n" + "\n".join(wrong)


def test_a_connection_is_seen(jobs, place):
    """The check can fail: a pull asks a registry, and a task what it wants."""
    _, wrong = recorded(jobs, "image", "pull", "127.0.0.1:9/x:1")
    assert any("sin_port=htons(9)" in line for line in wrong), wrong
    _, wrong = recorded(jobs, "run", "--", "bash", "-c", ": </dev/tcp/127.0.0.1/9", cwd=place)
    assert any("sin_port=htons(9)" in line for line in wrong), wrong
