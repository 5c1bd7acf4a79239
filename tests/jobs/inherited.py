#!/usr/bin/env python3
"""Tests containers of a user in cgroups that somebody else made and limited, as a batch system, systemd and Kubernetes do.

The user can create no cgroup. The limits are set at an outer cgroup; the process is in an inner one without limits. With cgroup v1 the
CPUs are a set, and GPUs are denied by the device cgroup. With cgroup v2 (`vm`) the CPU limit is a quota.
"""

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / name) for name in ("gpu", "runtime")]

import user  # noqa: E402
from faults import copy_program  # noqa: E402
from fake_gpus import fake_gpus  # noqa: E402
from harness import Harness, scratch  # noqa: E402

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


def result(done):
    return f"exit code {done.returncode}: {(done.stdout + done.stderr)[-1500:]}"


def held_anyway(jobs):
    """Limits that the cgroups above hold are enforced, so a bundle and a job start without a warning."""
    for words in (["--root", "host", jobs.bundle(ASKED)], ["--root", "host", "--cgroup", "inherited", jobs.bundle(ASKED)]):
        done = jobs.call("run", *words)
        if done.returncode or "runs" not in done.stdout or done.stderr:
            yield f"{words[2]}: {result(done)}"
    done = jobs.call("run", jobs.job(ASKED))
    record = json.loads(jobs.call("inspect", "--format", "json", "tested-inherited").stdout or "{}")
    unenforced = record.get("tasks", [{}])[0].get("unenforced", [])
    if done.returncode or "runs" not in done.stdout or "enforced" in done.stderr or unenforced:
        yield f"{unenforced}: {result(done)}"
    jobs.call("rm", "--force", "tested-inherited")


def weaker(jobs):
    """A limit that is stricter than those above is refused by name; `--cgroup inherited` starts with a warning about it alone.

    A set of one CPU is as strict as half a CPU for batch systems, which give out whole cores.
    """
    for field, resources in (("memory", "cpu: 1, memory: 32MiB, pids: 50"), ("cpu", "cpu: 0.5, memory: 64MiB, pids: 50"),
                             ("pids", "cpu: 1, memory: 64MiB, pids: 20")):
        bundle = jobs.bundle(resources)
        done = jobs.call("run", "--root", "host", bundle)
        if done.returncode == 0 or f"/linux/resources/{field}/" not in done.stderr:
            yield f"{field}: {result(done)}"
        done = jobs.call("run", "--root", "host", "--cgroup", "inherited", bundle)
        warnings = [line for line in done.stderr.splitlines() if line]
        expected = [] if IS_V1 and field == "cpu" else [f"limits on `{field}` are not enforced"]
        if done.returncode or "runs" not in done.stdout or len(warnings) != len(expected) or any(text not in done.stderr for text in expected):
            yield f"{field}: {result(done)}"
        if jobs.call("run", jobs.job(resources)).returncode == 0:
            yield f"{field}: a job with that limit starts"


def gpus(jobs):
    """Cards that the device cgroup denies are not there, and a container gets the others alone."""
    listed = json.loads(jobs.call("gpu", "ls", "--format", "json").stdout)
    left = [gpu["index"] for gpu in listed["gpus"]]
    if left != [0, 1] or listed.get("denied") != len(DENIED):
        yield f"left {left}, denied {listed.get('denied')}"
    for count in (1, 2, 3):
        done = jobs.call("run", "--root", "host", "--cgroup", "inherited", jobs.bundle(f"{ASKED}, gpu: {count}"))
        expected = "gpus " + " ".join(f"nvidia{number}" for number in range(count))
        if count == 3:
            if done.returncode == 0 or "asks for 3 GPUs, and 2 are available" not in done.stderr:
                yield result(done)
        elif done.returncode or expected not in done.stdout.splitlines():
            yield f"{count}: {result(done)}"


def own_cgroup(jobs):
    """Where jobc creates a cgroup, it still does; as root nothing would keep a container without one from devices."""
    bundle = jobs.bundle(ASKED)
    done = jobs.call("run", "--root", "host", "--dry-run", bundle, as_root=True)
    if done.returncode or "make the cgroup" not in done.stdout:
        yield result(done)
    done = jobs.call("run", "--root", "host", "--cgroup", "inherited", "--dry-run", bundle)
    if done.returncode or "make the cgroup" in done.stdout:
        yield result(done)
    done = jobs.call("run", "--root", "host", "--cgroup", "inherited", bundle, as_root=True)
    if done.returncode == 0 or "device access cannot be restricted" not in done.stderr:
        yield result(done)


def main():
    harness = Harness("inherited", __doc__.split("\n", maxsplit=1)[0])
    harness.parse()
    if os.geteuid() != 0:
        harness.missing("root")
    cases = [held_anyway, weaker, own_cgroup, *([gpus] if IS_V1 else [])]
    if not IS_V1:
        harness.note("the device cgroup of cgroup v2 is a program that this test does not write")
    with scratch() as directory:
        driver = directory / "driver"
        subprocess.run([fake_gpus(harness), "h100", str(driver)], check=True)
        group = Group()
        try:
            jobs = Jobs(directory, user.without_range(), group, driver)
            for case in cases:
                if harness.wants(case.__name__):
                    harness.check(case.__name__, case(jobs))
        finally:
            group.remove()
    harness.end()


if __name__ == "__main__":
    main()
