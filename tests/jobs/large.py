#!/usr/bin/env python3
"""Tests large jobs: two hundred instances that start and end, and a task that prints more than memory should hold.

`--megabytes 2048` is the long form (`just soak`); the default takes some seconds.
"""

import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "runtime"))

import user  # noqa: E402
from faults import Jobs, copied  # noqa: E402
from harness import Harness, scratch  # noqa: E402

MANY = """\
version: 1
name: large-many
image: host
network: {network}
roles:
  worker: {{instances: 200, shell: sh, run: 'test "$JOBC_INSTANCES" = 200 && test "$(ulimit -n)" = {files}'}}
"""

LONG = """\
version: 1
name: large-long
image: host
network: none
roles:
  printer:
    shell: sh
    run: "yes 'a line of forty-nine letters, again and again and' | head -c {bytes}"
"""

# What a log-in gives as a rule: a supervisor of many tasks needs more, and its tasks are to have no more.
FILES = 1024
# The supervisor of a small job has some 10 MiB; what a task prints may add buffers, and no more.
MEMORY = 48 << 20
# Four parts of 64 MiB stay of a task's log, and a part is begun before the oldest goes.
DISK = 5 * (64 << 20)


def many(jobs, network):
    """Two hundred instances start and end."""
    path = jobs.directory / "many.yaml"
    path.write_text(MANY.format(network=network, files=FILES))
    answer = jobs.call("run", "--quiet", *unenforced(jobs), str(path), seconds=120)
    record = jobs.record("large-many")
    if answer.returncode:
        yield f"exit code {answer.returncode}: {answer.stdout[-500:]}{answer.stderr[-1500:]}"
    states = [task["state"] for task in (record or {}).get("tasks", [])]
    if states.count("succeeded") != 200:
        yield f"{states.count('succeeded')} of {len(states)} tasks succeeded"
    jobs.call("rm", "--force", "large-many")


def long(jobs, count):
    """A task prints a lot: the supervisor's memory and the log's disk stay bounded."""
    path = jobs.directory / "long.yaml"
    path.write_text(LONG.format(bytes=count))
    started = jobs.call("run", "-d", *unenforced(jobs), str(path))
    if started.returncode:
        yield f"`jobc run -d` exits with {started.returncode}: {started.stderr}"
        return
    most, deadline = 0, time.monotonic() + 600
    while time.monotonic() < deadline:
        record = jobs.record("large-long")
        if record["state"] in ("succeeded", "failed", "stopped", "lost"):
            break
        if "supervisor" in record:
            most = max(most, peak(record["supervisor"]["pid"]))
        time.sleep(0.1)
    if record["state"] != "succeeded":
        yield f"the job is {record['state']}: {record.get('end')}"
    if not 0 < most <= MEMORY:
        yield f"the supervisor had {most >> 20} MiB, and {MEMORY >> 20} are enough"
    logs = Path(record["files"]["logs"])
    disk = sum(path.stat().st_size for path in logs.rglob("*.log"))
    if not min(count, 32 << 20) <= disk <= DISK:
        yield f"the log has {disk} bytes of {count}, and at most {DISK} are to stay"
    if any("lost" in note for note in record.get("notes", [])):
        yield f"lines were lost: {record['notes']}"
    jobs.call("rm", "--force", "large-long")


def peak(pid):
    """The most memory a process has had, in bytes; 0 where it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:")), 0)


def unenforced(jobs):
    return ["--allow-unenforced"] if jobs.account else []


def main():
    harness = Harness("large", __doc__.split("\n", maxsplit=1)[0])
    harness.parser.add_argument("--user", choices=("root", "range", "single"), default="root")
    harness.parser.add_argument("--megabytes", type=int, default=256, metavar="N")
    options = harness.parse()
    account = {"root": None, "range": user.with_range, "single": user.without_range}[options.user]
    account = account() if account else None
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with scratch() as directory:
        jobs = Jobs(copied(directory), directory, account)
        cases = [("200 instances", lambda: many(jobs, "host")), ("200 instances on a network of their own", lambda: many(jobs, "job")),
                 (f"{options.megabytes} MB of output", lambda: long(jobs, options.megabytes << 20))]
        for name, attempt in cases:
            if harness.wants(name):
                harness.check(name, list(attempt()))
    harness.end()


if __name__ == "__main__":
    main()
