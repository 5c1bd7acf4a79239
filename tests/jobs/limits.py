#!/usr/bin/env python3
"""Tests the limits of a job's tasks: what the job file requests is read back inside the container and from the kernel's files.

As root all limits must be enforced. As a user (`--user`) they must be enforced with delegated cgroups. `--delegated` delegates
cgroups to the user first, which changes the host: use it only in tests/vm. Without them a user's job is rejected, and runs
with `--allow-unenforced`, which the record notes.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "runtime"))

import user  # noqa: E402
from harness import Harness, scratch  # noqa: E402
from runtime import binary  # noqa: E402

SECONDS = 60
TREE = Path("/sys/fs/cgroup")

LIMITS = """\
version: 1
name: tested-limits
image: host
network: none
roles:
  main:
    shell: sh
    resources: {cpu: 0.5, memory: 96MiB, shm: 24MiB, pids: 60, ulimits: {nofile: 333}}
    run: |
      echo "nofile $(ulimit -n)"
      echo "shm $(df -B1 /dev/shm | tail -1 | while read name size rest; do echo $size; done)"
      for file in memory.max pids.max cpu.max memory/memory.limit_in_bytes pids/pids.max cpu/cpu.cfs_quota_us cpu/cpu.cfs_period_us; do
        [ -r /sys/fs/cgroup/$file ] && echo "$file $(cat /sys/fs/cgroup/$file)"
      done
      sleep 600
"""

OUT_OF_MEMORY = """\
version: 1
name: tested-hungry
image: host
network: none
roles:
  main:
    shell: sh
    resources: {memory: 48MiB}
    run: |
      # Every round doubles the shell's memory.
      x=0123456789abcdef; while :; do x=$x$x; done
"""

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

# What the job requests, in the files of cgroup v2 and v1, in the container and on the host.
V2 = {"memory.max": str(96 << 20), "pids.max": "60", "cpu.max": "50000 100000"}
V1 = {"memory/memory.limit_in_bytes": str(96 << 20), "pids/pids.max": "60", "cpu/cpu.cfs_quota_us": "50000"}


class Jobs:
    """This tree's command line, as root or a user."""

    def __init__(self, directory, account, group):
        self.directory, self.account, self.group = directory, account, group
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


def read_back(jobs, allowed):
    """The limits in the container's files and the host's."""
    started = jobs.call("run", "-d", *(["--allow-unenforced"] if allowed else []), jobs.job(LIMITS))
    if started.returncode:
        yield f"`jobc run -d` exits with {started.returncode}: {started.stderr}"
        return
    try:
        yield from compare(jobs, allowed)
    finally:
        jobs.call("kill", "tested-limits")
        jobs.call("rm", "--force", "tested-limits")


def compare(jobs, allowed):
    deadline, shown = time.monotonic() + SECONDS, {}
    while time.monotonic() < deadline and "shm" not in shown:
        lines = jobs.call("logs", "tested-limits").stdout.splitlines()
        shown = dict(line.split("| ")[-1].split(" ", 1) for line in lines if " " in line)
        time.sleep(0.2)
    time.sleep(0.5)
    lines = jobs.call("logs", "tested-limits").stdout.splitlines()
    shown = dict(line.split("| ")[-1].split(" ", 1) for line in lines if " " in line)
    expected = {"nofile": "333", "shm": str(24 << 20)}
    if not allowed:
        expected |= V1 if (TREE / "memory").is_dir() else V2
    for name, value in expected.items():
        if shown.get(name, "").strip() != value:
            yield f"inside, {name} is {shown.get(name)!r}, not {value!r}"
    record = jobs.record("tested-limits")
    if record is None or not record["tasks"][0].get("container"):
        yield f"no record: {record}"
        return
    if allowed:
        if not any("memory" in note for note in record.get("notes", [])):
            yield f"the unenforced memory limit is not reported: {record.get('notes')}"
        return
    groups = groups_of(record["tasks"][0]["process"]["pid"])
    for name, value in (V1 if (TREE / "memory").is_dir() else V2).items():
        controller, _, file = name.rpartition("/")
        directory = groups.get(controller)
        found = (directory / file).read_text().strip() if directory else None
        if found != value:
            yield f"outside, {name} is {found!r}, not {value!r}"


def groups_of(pid):
    """The cgroups of a process, by controller of cgroup v1; the empty name is cgroup v2."""
    found = {}
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            directory = TREE / controller if controller else TREE
            found[controller] = directory / path.lstrip("/")
    return found


def used(jobs, enforced):
    """What a task uses is counted while it runs and at its end, by its cgroups or else by its processes."""
    jobs.call("run", "-d", *([] if enforced else ["--allow-unenforced"]), jobs.job(BUSY))
    try:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline and "waiting" not in jobs.call("logs", "tested-busy").stdout:
            time.sleep(0.2)
        rows = json.loads(jobs.call("stats", "--no-stream", "--format", "json", "tested-busy").stdout)
        if not rows["memory"] or rows["cpu_usec"] < 500_000 or not rows["pids"]:
            yield f"while it runs: {rows}"
    finally:
        jobs.call("kill", "tested-busy")
    record = jobs.record("tested-busy")
    if record["tasks"][0].get("unenforced", []) != ([] if enforced else ["cpu_millis", "memory_bytes"]):
        yield f"unenforced: {record['tasks'][0].get('unenforced')}"
    last = [json.loads(line) for line in Path(record["files"]["samples"]).read_text().splitlines()][-1]
    if not last["last"] or last["cpu_usec"] < 500_000 or last["memory_peak"] < 40 << 20:
        yield f"at the end: {last}"
    if last.get("from_processes", False) == enforced:
        yield f"counted by something else: {last}"
    origin = json.loads((Path(record["files"]["record"]) / "origin.json").read_text())
    if origin["command"][-1] != str(jobs.directory / "job.yaml") or origin["host"]["name"] != os.uname().nodename:
        yield f"the origin: {origin}"
    if (Path(record["files"]["record"]) / "job-file").read_text() != (jobs.directory / "job.yaml").read_text():
        yield "the job file is not in the record"
    jobs.call("rm", "--force", "tested-busy")


def out_of_memory(jobs):
    """More memory than the limit: the kernel kills the task, and the end says why."""
    result = jobs.call("run", jobs.job(OUT_OF_MEMORY))
    if result.returncode != 1 or "out of memory: used 48 MiB of 48 MiB" not in result.stdout + result.stderr:
        yield f"exit code {result.returncode}: {(result.stdout + result.stderr)[-1500:]}"
    jobs.call("rm", "--force", "tested-hungry")


def too_many_processes(jobs):
    """More processes than the limit: fork fails."""
    result = jobs.call("run", jobs.job(TOO_MANY_PROCESSES))
    if result.returncode != 1 or "fork" not in (result.stdout + result.stderr).lower():
        yield f"exit code {result.returncode}: {(result.stdout + result.stderr)[-1500:]}"
    jobs.call("rm", "--force", "tested-forking")


def not_delegated(jobs):
    """Without delegated cgroups, a user's limits are rejected before anything runs, with what to do."""
    result = jobs.call("run", jobs.job(LIMITS))
    if result.returncode == 0 or "--allow-unenforced" not in result.stderr + result.stdout:
        yield f"exit code {result.returncode}: {(result.stdout + result.stderr)[-1500:]}"
    jobs.call("rm", "--force", "tested-limits")


def main():
    harness = Harness("limits", __doc__.split("\n", maxsplit=1)[0])
    harness.parser.add_argument("--user", choices=("root", "range", "single"), default="root")
    harness.parser.add_argument("--delegated", action="store_true", help="delegate cgroups to the user first")
    options = harness.parse()
    if os.geteuid() != 0:
        harness.missing("root")
    account = {"root": None, "range": user.with_range, "single": user.without_range}[options.user]
    account = account() if account else None
    group = delegate_cgroup(account) if options.delegated else None
    with scratch() as directory:
        jobs = Jobs(directory, account, group)
        enforced = account is None or group is not None
        cases = [("read back", lambda: read_back(jobs, not enforced)), ("used", lambda: used(jobs, enforced))]
        cases += [("memory", lambda: out_of_memory(jobs)), ("processes", lambda: too_many_processes(jobs))] if enforced else [("refused", lambda: not_delegated(jobs))]
        for name, attempt in cases:
            if harness.wants(name):
                harness.check(name, list(attempt()))
    harness.end()


if __name__ == "__main__":
    main()
