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
from faults import Jobs, copy_program  # noqa: E402
from harness import Harness, scratch  # noqa: E402

MANY_INSTANCES = """\
version: 1
name: large-many
image: host
network: {network}
roles:
  worker: {{instances: 200, shell: sh, run: 'test "$JOBC_INSTANCES" = 200 && test "$(ulimit -n)" = {files}'}}
"""

LARGE_OUTPUT = """\
version: 1
name: large-long
image: host
network: none
roles:
  printer:
    shell: sh
    run: "yes 'a line of forty-nine letters, again and again and' | head -c {bytes}"
"""

# The usual limit of a login session: a supervisor of many tasks needs more, but its tasks must not get more.
FILES = 1024
# The supervisor of a small job uses some 10 MiB; a task's output may add only buffers.
MEMORY = 48 << 20
# A task's log keeps four parts of 64 MiB, and a part is started before the oldest is removed.
DISK = 5 * (64 << 20)


def many_instances(jobs, network):
    """Two hundred instances start and end."""
    path = jobs.directory / "many.yaml"
    path.write_text(MANY_INSTANCES.format(network=network, files=FILES))
    answer = jobs.call("run", "--quiet", *unenforced_option(jobs), str(path), seconds=120)
    record = jobs.record("large-many")
    if answer.returncode:
        yield f"exit code {answer.returncode}: {answer.stdout[-500:]}{answer.stderr[-1500:]}"
    states = [task["state"] for task in (record or {}).get("tasks", [])]
    if states.count("succeeded") != 200:
        yield f"{states.count('succeeded')} of {len(states)} tasks succeeded"
    jobs.call("rm", "--force", "large-many")


def large_output(jobs, count):
    """A task prints a lot: the supervisor's memory and the log's disk stay bounded."""
    path = jobs.directory / "long.yaml"
    path.write_text(LARGE_OUTPUT.format(bytes=count))
    started = jobs.call("run", "-d", *unenforced_option(jobs), str(path))
    if started.returncode:
        yield f"`jobc run -d` exits with {started.returncode}: {started.stderr}"
        return
    peak_memory, deadline = 0, time.monotonic() + 600
    while time.monotonic() < deadline:
        record = jobs.record("large-long")
        if record["state"] in ("succeeded", "failed", "stopped", "lost"):
            break
        if "supervisor" in record:
            peak_memory = max(peak_memory, peak(record["supervisor"]["pid"]))
        time.sleep(0.1)
    if record["state"] != "succeeded":
        yield f"the job is {record['state']}: {record.get('end')}"
    if not 0 < peak_memory <= MEMORY:
        yield f"the supervisor used {peak_memory >> 20} MiB, more than {MEMORY >> 20}"
    logs = Path(record["files"]["logs"])
    disk = sum(path.stat().st_size for path in logs.rglob("*.log"))
    if not min(count, 32 << 20) <= disk <= DISK:
        yield f"the log has {disk} bytes of {count}, and must have at most {DISK}"
    if any("lost" in note for note in record.get("notes", [])):
        yield f"lines were lost: {record['notes']}"
    jobs.call("rm", "--force", "large-long")


def peak(pid):
    """The peak memory of a process, in bytes; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:")), 0)


def unenforced_option(jobs):
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
        jobs = Jobs(copy_program(directory), directory, account)
        cases = [("200 instances", lambda: many_instances(jobs, "host")), ("200 instances on a network of their own", lambda: many_instances(jobs, "job")),
                 (f"{options.megabytes} MB of output", lambda: large_output(jobs, options.megabytes << 20))]
        for name, run_case in cases:
            if harness.wants(name):
                harness.check(name, list(run_case()))
    harness.end()


if __name__ == "__main__":
    main()
