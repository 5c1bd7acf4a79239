"""What programs may leave behind on a host: processes, mounts, namespaces, cgroups, states, open and temporary files."""

import contextlib
import os
import time
from pathlib import Path


def snapshot(runtime, group):
    """Everything that a container may leave behind, in this test's namespaces."""
    pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    namespaces, processes = set(), []
    for pid in pids:
        with contextlib.suppress(OSError):
            processes.append(Path(f"/proc/{pid}/comm").read_text().strip() + (" (zombie)" if zombie(pid) else ""))
            namespaces |= {os.readlink(f"/proc/{pid}/ns/{name}") for name in os.listdir(f"/proc/{pid}/ns")}
    # Unlike a glob, a walk ignores directories that disappear: others on this host have cgroups too.
    groups = [path for path, _, _ in os.walk("/sys/fs/cgroup") if f"/{group}" in path]
    return {
        "processes": sorted(processes),
        # Those of other tests are hidden by this one's /tmp.
        "mounts": sorted(path for path in (line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()) if os.path.exists(path)),
        "namespaces": sorted(namespaces),
        "cgroups": sorted(groups),
        "states": sorted(os.listdir(runtime.states)),
        "open files": sorted(os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")),
        "temporary files": sorted(os.listdir("/tmp")),
    }


def zombie(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def leftovers(before, take, seconds=5):
    """The differences from a snapshot to those that `take` takes, once there are none or after a timeout: the kernel removes a namespace
    a moment after its last process."""
    deadline = time.monotonic() + seconds
    while True:
        reap()
        after = take()
        differences = [f"{what}: {describe_changes(before[what], after[what])}" for what in before if before[what] != after[what]]
        if not differences or time.monotonic() > deadline:
            return differences
        time.sleep(0.05)


def describe_changes(before, after):
    more, less = list(after), []
    for one in before:
        if one in more:
            more.remove(one)
        else:
            less.append(one)
    return f"{len(more)} more {more[:5]}" + (f", {len(less)} less {less[:5]}" if less else "")


def reap():
    """As the first process of its namespace, the test is the parent of every orphan."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
