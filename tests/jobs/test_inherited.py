"""Tests containers of a user in cgroups that somebody else made and limited, as a batch system, systemd and Kubernetes do.

The user can create no cgroup. The limits are set at an outer cgroup; the process is in an inner one without limits. With cgroup v1 the
CPUs are a set, and GPUs are denied by the device cgroup. With cgroup v2 (`vm`) the CPU limit is a quota.
"""

import contextlib
import json
import os
import subprocess
import time
from pathlib import Path

import needs
import pytest

import user
from command_line import copy_program
from fake_gpus import fake_gpus
from harness import scratch

pytestmark = pytest.mark.duration(20)
SECONDS = 60
TREE = Path("/sys/fs/cgroup")
IS_V1 = (TREE / "memory").is_dir()
V1 = {"memory/memory.limit_in_bytes": str(64 << 20), "pids/pids.max": "50", "cpuset/cpuset.cpus": "0", "cpuset/cpuset.mems": "0"}
V2 = {"memory.max": str(64 << 20), "pids.max": "50", "cpu.max": "100000 100000"}
DENIED = range(2, 8)

JOB = """\
version: 1
name: tested-inherited
image: host
network: none
roles:
  main:
    shell: sh
    resources: {{{resources}}}
    run: |
      echo "gpus $(cd /dev; echo nvidia[0-9]*)"
      echo runs
"""
ASKED = "cpu: 1, memory: 64MiB, pids: 50"


class Group:
    """A limited cgroup, in each hierarchy, with an inner one for processes."""

    def __init__(self):
        name = f"tested-inherited-{os.getpid()}"
        controllers = ("memory", "pids", "cpuset", "devices") if IS_V1 else ("",)
        self.outer = [TREE / controller / name for controller in controllers]
        if not IS_V1:
            (TREE / "cgroup.subtree_control").write_text("+memory +pids +cpu")
        for path in self.outer:
            path.mkdir()
        for file, value in (V1 if IS_V1 else V2).items():
            controller, _, file = file.rpartition("/")
            (TREE / controller / name / file).write_text(value)
        if not IS_V1:
            (self.outer[0] / "cgroup.subtree_control").write_text("+memory +pids +cpu")
        for path in self.outer:
            (path / "task").mkdir()
        if IS_V1:
            for file in ("cpuset.cpus", "cpuset.mems"):
                (TREE / "cpuset" / name / "task" / file).write_text("0")
            for number in DENIED:
                (TREE / "devices" / name / "devices.deny").write_text(f"c 195:{number} rwm")

    def enter(self):
        """The beginning of a command that runs the rest of it in the cgroup."""
        writes = " && ".join(f"echo 0 >{path}/task/cgroup.procs" for path in self.outer)
        return ["sh", "-c", f'{writes} && exec "$@"', "sh"]

    def remove(self):
        for path in self.outer:
            for group in (path / "task", path):
                deadline = time.monotonic() + 10
                while group.exists() and time.monotonic() < deadline:
                    with contextlib.suppress(OSError):
                        group.rmdir()
                    time.sleep(0.05)


class Jobs:
    """This tree's command line as a user in the cgroup, or as root."""

    def __init__(self, directory, account, group, driver):
        self.program, self.account, self.group, self.driver = copy_program(directory), account, group, driver
        self.home = directory / "home"
        self.home.mkdir(mode=0o700)
        os.chown(self.home, account.uid, account.gid)

    def call(self, *words, as_root=False):
        prefix = [] if as_root else [*self.group.enter(), *self.account.prefix()]
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "JOBC_COLOR": "never", "JOBC_DRIVER_ROOT": str(self.driver)}
        return subprocess.run([*prefix, str(self.program), *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env=environment, cwd=self.home, timeout=SECONDS, check=False)

    def job(self, resources):
        path = self.home / "job.yaml"
        path.write_text(JOB.format(resources=resources))
        return path

    def bundle(self, resources):
        built = self.call("build", self.job(resources), "--target", "local")
        if built.returncode:
            raise ValueError(f"build: {built.stdout}{built.stderr}")
        return self.home / "out/tested-inherited/local/oci/main-0"


@pytest.fixture(scope="module", params=["host", pytest.param("vm", marks=[pytest.mark.vm, pytest.mark.slow])])
def jobs():
    needs.root()
    with scratch() as directory:
        driver = directory / "driver"
        subprocess.run([fake_gpus(needs), "h100", str(driver)], check=True)
        group = Group()
        try:
            yield Jobs(directory, user.without_range(), group, driver)
        finally:
            group.remove()


def result(done):
    return f"exit code {done.returncode}: {(done.stdout + done.stderr)[-1500:]}"


def test_limits_that_the_cgroups_above_enforce_need_no_warning(jobs):
    """Of a bundle and of a job."""
    for words in (["--root", "host", jobs.bundle(ASKED)], ["--root", "host", "--cgroup", "inherited", jobs.bundle(ASKED)]):
        done = jobs.call("run", *words)
        assert done.returncode == 0 and "runs" in done.stdout and not done.stderr, f"{words[2]}: {result(done)}"
    done = jobs.call("run", "--queue", jobs.job(ASKED))  # Other tests of this host use CPUs meanwhile.
    record = json.loads(jobs.call("inspect", "--format", "json", "tested-inherited").stdout or "{}")
    unenforced = record.get("tasks", [{}])[0].get("unenforced", [])
    assert done.returncode == 0 and "runs" in done.stdout and "enforced" not in done.stderr and not unenforced, f"{unenforced}: {result(done)}"
    jobs.call("rm", "--force", "tested-inherited")


@pytest.mark.parametrize("field, resources", [("memory", "cpu: 1, memory: 32MiB, pids: 50"), ("cpu", "cpu: 0.5, memory: 64MiB, pids: 50"),
                                              ("pids", "cpu: 1, memory: 64MiB, pids: 20")], ids=["memory", "cpu", "pids"])
def test_a_stricter_limit_is_refused_by_name(jobs, field, resources):
    """`--cgroup inherited` starts with a warning about it alone.

    A set of one CPU is as strict as half a CPU for batch systems, which give out whole cores.
    """
    bundle = jobs.bundle(resources)
    done = jobs.call("run", "--root", "host", bundle)
    assert done.returncode != 0 and f"/linux/resources/{field}/" in done.stderr, result(done)
    done = jobs.call("run", "--root", "host", "--cgroup", "inherited", bundle)
    warnings = [line for line in done.stderr.splitlines() if line]
    expected = [] if IS_V1 and field == "cpu" else [f"limits on `{field}` are not enforced"]
    assert done.returncode == 0 and "runs" in done.stdout and len(warnings) == len(expected) and all(text in done.stderr for text in expected), \
        result(done)
    assert jobs.call("run", jobs.job(f"{resources}, enforce: true")).returncode != 0, "a job with that limit starts"


# The device cgroup of cgroup v2 is a program that this test does not write.
@pytest.mark.parametrize("jobs", ["host"], indirect=True, scope="module")
def test_cards_that_the_device_cgroup_denies_are_not_there(jobs):
    """A container gets the others alone."""
    if not IS_V1:
        needs.missing("cgroup v1")
    listed = json.loads(jobs.call("gpu", "ls", "--format", "json").stdout)
    assert [gpu["index"] for gpu in listed["gpus"]] == [0, 1] and listed.get("denied") == len(DENIED), listed
    for count in (1, 2):
        done = jobs.call("run", "--root", "host", "--cgroup", "inherited", jobs.bundle(f"{ASKED}, gpu: {count}"))
        assert done.returncode == 0 and "gpus " + " ".join(f"nvidia{number}" for number in range(count)) in done.stdout.splitlines(), result(done)
    done = jobs.call("run", "--root", "host", "--cgroup", "inherited", jobs.bundle(f"{ASKED}, gpu: 3"))
    assert done.returncode != 0 and "asks for 3 GPUs, and 2 are available" in done.stderr, result(done)


def test_jobc_creates_a_cgroup_where_it_can(jobs):
    """As root nothing would keep a container without one from devices."""
    bundle = jobs.bundle(ASKED)
    done = jobs.call("run", "--root", "host", "--dry-run", bundle, as_root=True)
    assert done.returncode == 0 and "make the cgroup" in done.stdout, result(done)
    done = jobs.call("run", "--root", "host", "--cgroup", "inherited", "--dry-run", bundle)
    assert done.returncode == 0 and "make the cgroup" not in done.stdout, result(done)
    done = jobs.call("run", "--root", "host", "--cgroup", "inherited", bundle, as_root=True)
    assert done.returncode != 0 and "device access cannot be restricted" in done.stderr, result(done)
