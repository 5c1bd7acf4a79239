"""Tests large jobs: two hundred instances that start and end, and a task that prints more than memory should hold.

JOBC_MEGABYTES=2048 is the long form (`just soak`); the default takes some seconds.
"""

import os
import resource
import time
from pathlib import Path

import pytest


pytestmark = [pytest.mark.isolated, pytest.mark.duration(25), pytest.mark.slow]

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


@pytest.fixture(autouse=True)
def few_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


@pytest.mark.parametrize("network", ("host", "job"))
def test_two_hundred_instances_start_and_end(jobs, network):
    path = jobs.directory / "many.yaml"
    path.write_text(MANY_INSTANCES.format(network=network, files=FILES))
    answer = jobs.call("run", "--quiet", str(path), seconds=120)
    record = jobs.record("large-many")
    assert answer.returncode == 0, f"exit code {answer.returncode}: {answer.stdout[-500:]}{answer.stderr[-1500:]}"
    states = [task["state"] for task in record.get("tasks", [])]
    assert states.count("succeeded") == 200, f"{states.count('succeeded')} of {len(states)} tasks succeeded"
    jobs.call("rm", "--force", "large-many")


def test_a_large_output_leaves_memory_and_disk_bounded(jobs):
    """The memory of the supervisor, and the disk of the log."""
    count = int(os.environ.get("JOBC_MEGABYTES", 256)) << 20
    path = jobs.directory / "long.yaml"
    path.write_text(LARGE_OUTPUT.format(bytes=count))
    started = jobs.call("run", "-d", str(path))
    assert started.returncode == 0, f"`jobc run -d` exits with {started.returncode}: {started.stderr}"
    peak_memory, deadline = 0, time.monotonic() + 600
    while time.monotonic() < deadline:
        record = jobs.record("large-long")
        if record["state"] in ("succeeded", "failed", "stopped", "lost"):
            break
        if "supervisor" in record:
            peak_memory = max(peak_memory, peak(record["supervisor"]["pid"]))
        time.sleep(0.1)
    assert record["state"] == "succeeded", f"the job is {record['state']}: {record.get('end')}"
    assert 0 < peak_memory <= MEMORY, f"the supervisor used {peak_memory >> 20} MiB, more than {MEMORY >> 20}"
    logs = Path(record["files"]["logs"])
    disk = sum(path.stat().st_size for path in logs.rglob("*.log"))
    assert min(count, 32 << 20) <= disk <= DISK, f"the log has {disk} bytes of {count}, and must have at most {DISK}"
    assert not any("lost" in note for note in record.get("notes", [])), f"lines were lost: {record['notes']}"
    jobs.call("rm", "--force", "large-long")


def peak(pid):
    """The peak memory of a process, in bytes; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:")), 0)
