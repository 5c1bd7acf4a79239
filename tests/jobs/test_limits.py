"""Tests the limits of a job's tasks: what the job file requests is read back inside the container and from the kernel's files.

As root, and as a user with delegated cgroups, all limits must be enforced. Without them a user's job is rejected, and runs with
`--allow-unenforced`, which the record notes. Only in a virtual machine cgroups are delegated: that changes the host.
"""

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import needs
import pytest

import user
from harness import scratch
from limits import DISK_TRAFFIC, LIMITS, OUT_OF_MEMORY, V1, V2
from runtime import binary

SECONDS = 60
TREE = Path("/sys/fs/cgroup")

TOO_MANY_PROCESSES = """\
version: 1
name: tested-forking
image: host
network: none
roles:
  main:
    shell: sh
    resources: {pids: 20}
    run: |
      i=0; while [ $i -lt 40 ]; do sleep 5 & i=$((i+1)); done; wait
"""

# The computing process is a child, and has ended before the task does.
BUSY = """\
version: 1
name: tested-busy
image: host
network: none
roles:
  main:
    shell: sh
    resources: {cpu: 0.5, memory: 256MiB}
    run: |
      python3 -c 'import time; data = bytearray(40 << 20); t = time.process_time(); exec("while time.process_time() - t < 0.6: pass")'
      echo waiting; sleep 600
"""


class Jobs:
    """This tree's command line, as root or a user."""

    def __init__(self, directory, account, group):
        self.directory, self.account, self.group = directory, account, group
        self.unenforced = ["--allow-unenforced"] if account and not group else []
        self.home = directory / "home"
        self.home.mkdir(mode=0o700)
        if account:
            os.chown(self.home, account.uid, account.gid)

    def words(self, *words):
        """A command as the user, in the delegated cgroup."""
        enter = ["sh", "-c", f'echo $$ >{self.group}/processes/cgroup.procs && exec "$@"', "sh"] if self.group else []
        return [*enter, *(self.account.prefix() if self.account else []), str(binary()), *words]

    def call(self, *words):
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "JOBC_COLOR": "never", "XDG_RUNTIME_DIR": str(self.home)}
        try:
            return subprocess.run(self.words(*words), stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment,
                                  timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired as timeout:
            return subprocess.CompletedProcess(timeout.cmd, 124, "", f"timed out after {SECONDS} s")

    def job(self, text):
        path = self.directory / "job.yaml"
        path.write_text(text)
        return str(path)

    def record(self, name):
        answer = self.call("inspect", "--format", "json", name)
        return json.loads(answer.stdout) if answer.returncode == 0 else None


def delegate_cgroup(account):
    """Delegates a cgroup to a user, as systemd does: the directory and its delegation files belong to the user."""
    wanted = [name for name in ("cpu", "memory", "pids", "io") if name in (TREE / "cgroup.controllers").read_text().split()]
    switch = " ".join(f"+{name}" for name in wanted)
    (TREE / "cgroup.subtree_control").write_text(switch)
    group = TREE / "tested-user"
    for directory in (group, group / "processes"):
        directory.mkdir()
        for path in (directory, *(directory / name for name in ("cgroup.procs", "cgroup.subtree_control", "cgroup.threads"))):
            os.chown(path, account.uid, account.gid)
    (group / "cgroup.subtree_control").write_text(switch)
    return group


@pytest.fixture(scope="module")
def jobs(request):
    needs.root()
    account = user.with_range() if request.param != "root" else None
    with scratch() as directory:
        yield Jobs(directory, account, delegate_cgroup(account) if request.param == "vm" else None)


ROOT, DELEGATED = pytest.param("root", marks=pytest.mark.duration(4)), pytest.param("vm", marks=[pytest.mark.vm, pytest.mark.duration(22)])
RANGE = pytest.param("range", marks=pytest.mark.duration(4))
enforced = pytest.mark.parametrize("jobs", [ROOT, DELEGATED], indirect=True, scope="module")
everywhere = pytest.mark.parametrize("jobs", [ROOT, RANGE, DELEGATED], indirect=True, scope="module")


@everywhere
def test_limits_are_read_back_inside_and_outside(jobs):
    started = jobs.call("run", "-d", *jobs.unenforced, jobs.job(LIMITS))
    assert started.returncode == 0, f"`jobc run -d` exits with {started.returncode}: {started.stderr}"
    try:
        compare(jobs)
    finally:
        jobs.call("kill", "tested-limits")
        jobs.call("rm", "--force", "tested-limits")


def compare(jobs):
    deadline, shown = time.monotonic() + SECONDS, {}
    while time.monotonic() < deadline and "shm" not in shown:
        lines = jobs.call("logs", "tested-limits").stdout.splitlines()
        shown = dict(line.split("| ")[-1].split(" ", 1) for line in lines if " " in line)
        time.sleep(0.2)
    time.sleep(0.5)
    lines = jobs.call("logs", "tested-limits").stdout.splitlines()
    shown = dict(line.split("| ")[-1].split(" ", 1) for line in lines if " " in line)
    expected = {"nofile": "333", "shm": str(24 << 20)}
    if not jobs.unenforced:
        expected |= V1 if (TREE / "memory").is_dir() else V2
    for name, value in expected.items():
        assert shown.get(name, "").strip() == value, f"inside, {name} is {shown.get(name)!r}, not {value!r}"
    record = jobs.record("tested-limits")
    assert record is not None and record["tasks"][0].get("container"), f"no record: {record}"
    if jobs.unenforced:
        assert any("memory" in note for note in record.get("notes", [])), f"the unenforced memory limit is not reported: {record.get('notes')}"
        return
    groups = groups_of(record["tasks"][0]["process"]["pid"])
    for name, value in (V1 if (TREE / "memory").is_dir() else V2).items():
        controller, _, file = name.rpartition("/")
        directory = groups.get(controller)
        found = (directory / file).read_text().strip() if directory else None
        assert found == value, f"outside, {name} is {found!r}, not {value!r}"


def groups_of(pid):
    """The cgroups of a process, by controller of cgroup v1; the empty name is cgroup v2."""
    found = {}
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            directory = TREE / controller if controller else TREE
            found[controller] = directory / path.lstrip("/")
    return found


@everywhere
def test_what_a_task_uses_is_counted(jobs):
    """While it runs and at its end, by its cgroups or else by its processes."""
    jobs.call("run", "-d", *jobs.unenforced, jobs.job(BUSY))
    try:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline and "waiting" not in jobs.call("logs", "tested-busy").stdout:
            time.sleep(0.2)
        rows = json.loads(jobs.call("stats", "--no-stream", "--format", "json", "tested-busy").stdout)
        assert rows["memory"] and rows["cpu_usec"] >= 500_000 and rows["pids"], f"while it runs: {rows}"
        # Without cgroups, what killed processes used after the last sample is not counted.
        samples = Path(jobs.record("tested-busy")["files"]["samples"])
        while time.monotonic() < deadline and not any(json.loads(line).get("cpu_usec", 0) >= 500_000 for line in samples.read_text().splitlines()):
            time.sleep(0.2)
    finally:
        jobs.call("kill", "tested-busy")
    record = jobs.record("tested-busy")
    assert record["tasks"][0].get("unenforced", []) == (["cpu_millis", "memory_bytes"] if jobs.unenforced else [])
    last = [json.loads(line) for line in Path(record["files"]["samples"]).read_text().splitlines()][-1]
    assert last["last"] and last["cpu_usec"] >= 500_000 and last["memory_peak"] >= 40 << 20, f"at the end: {last}"
    assert last.get("from_processes", False) == bool(jobs.unenforced), f"counted by something else: {last}"
    origin = json.loads((Path(record["files"]["record"]) / "origin.json").read_text())
    assert origin["command"][-1] == str(jobs.directory / "job.yaml") and origin["host"]["name"] == os.uname().nodename, f"the origin: {origin}"
    assert (Path(record["files"]["record"]) / "job-file").read_text() == (jobs.directory / "job.yaml").read_text(), \
        "the job file is not in the record"
    jobs.call("rm", "--force", "tested-busy")


@enforced
def test_a_task_out_of_memory_is_killed_with_the_reason(jobs):
    result = jobs.call("run", jobs.job(OUT_OF_MEMORY))
    assert result.returncode == 1 and "out of memory: used 48 MiB of 48 MiB" in result.stdout + result.stderr, \
        f"exit code {result.returncode}: {(result.stdout + result.stderr)[-1500:]}"
    jobs.call("rm", "--force", "tested-hungry")


@enforced
def test_fork_fails_at_the_limit_of_processes(jobs):
    result = jobs.call("run", jobs.job(TOO_MANY_PROCESSES))
    assert result.returncode == 1 and "fork" in (result.stdout + result.stderr).lower(), \
        f"exit code {result.returncode}: {(result.stdout + result.stderr)[-1500:]}"
    jobs.call("rm", "--force", "tested-forking")


# The virtual machine has no disk.
@pytest.mark.parametrize("jobs", [ROOT], indirect=True, scope="module")
def test_disk_traffic_is_limited(jobs):
    """3 MiB at 1 MiB a second: as the kernel's file says, and as a clock does."""
    with tempfile.TemporaryDirectory(prefix="jobc-traffic-", dir=binary().parent) as directory:
        if os.major(os.stat(directory).st_dev) == 0:
            pytest.skip("needs a checkout on a disk")  # no installer gives one
        os.chmod(directory, 0o777)
        path = Path(directory) / "job.yaml"
        path.write_text(DISK_TRAFFIC % directory)
        started = jobs.call("run", "-d", str(path))
        assert started.returncode == 0, started.stderr
        try:
            deadline, took = time.monotonic() + SECONDS, ""
            while time.monotonic() < deadline and "took " not in took:
                time.sleep(0.2)
                took = jobs.call("logs", "tested-traffic").stdout
            assert int(took.split("took ")[1].split()[0]) > 1500, took
            groups = groups_of(jobs.record("tested-traffic")["tasks"][0]["process"]["pid"])
            if "blkio" in groups:
                limits = [(groups["blkio"] / f"blkio.throttle.{name}_device").read_text() for name in ("write_bps", "read_iops")]
                assert [text.split()[1] for text in limits] == ["1048576", "50"], limits
            else:
                limits = (groups[""] / "io.max").read_text()
                assert "wbps=1048576" in limits and "riops=50" in limits, limits
        finally:
            jobs.call("kill", "tested-traffic")
            jobs.call("rm", "--force", "tested-traffic")


@pytest.mark.parametrize("jobs", [RANGE], indirect=True, scope="module")
def test_limits_without_delegated_cgroups_are_rejected(jobs):
    """Before anything runs, with what to do, if the job insists on them."""
    result = jobs.call("run", jobs.job(LIMITS.replace("{cpu: 0.5", "{enforce: true, cpu: 0.5")))
    assert result.returncode != 0 and "--allow-unenforced" in result.stderr + result.stdout, \
        f"exit code {result.returncode}: {(result.stdout + result.stderr)[-1500:]}"
    jobs.call("rm", "--force", "tested-limits")
