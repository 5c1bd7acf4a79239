"""What jobs leave behind, and the processes that belong to them, in the namespaces of a test."""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

import leaks
from leaks import zombie


def snapshot(jobs, prefix):
    """Everything that jobs whose names begin with a prefix may leave behind, in this test's namespaces."""
    pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    namespaces, processes = set(), []
    for pid in pids:
        with contextlib.suppress(OSError):
            # Threads of the kernel have no arguments, and other names now and then.
            if not zombie(pid) and not Path(f"/proc/{pid}/cmdline").read_bytes():
                continue
            processes.append(Path(f"/proc/{pid}/comm").read_text().strip() + (" (zombie)" if zombie(pid) else ""))
            namespaces |= {os.readlink(f"/proc/{pid}/ns/{name}") for name in os.listdir(f"/proc/{pid}/ns")}
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=False).stdout
    places = [Path("/run/jobc/jobs"), jobs.home / "jobc/jobs", Path("/run/lock/jobc"), Path("/dev/shm"), Path("/tmp")]
    return {
        "processes": sorted(processes),
        "mounts": sorted(line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()),
        "namespaces": sorted(namespaces),
        "cgroups": sorted(groups_of(jobs, f"/jobc/{prefix}")),
        "interfaces": sorted(line.split()[1] for line in links.splitlines()),
        "files": sorted(str(path) for place in places if place.is_dir() for path in leftover_files(place)),
    }


def groups_of(jobs, name):
    """The cgroups with a name in their paths that belong to the jobs' user: another test may run as another user."""
    found = []
    for path, _, _ in os.walk("/sys/fs/cgroup"):
        with contextlib.suppress(FileNotFoundError):
            if name in path and os.stat(path).st_uid == (jobs.account.uid if jobs.account else 0):
                found.append(path)
    return found


def leftover_files(place):
    """The files of a directory, except unlocked lock files, which are kept for the next lock."""
    for path in place.rglob("*"):
        if not path.is_dir() and path.is_relative_to("/run/lock") and path.stat().st_size == 0:
            continue
        if path.is_dir() and (path == Path("/run/lock/jobc") or path.parent == Path("/run/lock/jobc")):
            continue
        if "jobc-check-" in str(path):
            continue
        yield path


def leftovers(jobs, prefix, before, seconds=8):
    """The differences, once there are none or after a timeout."""
    return leaks.leftovers(before, lambda: snapshot(jobs, prefix), seconds)


def kill(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def still_running(pids, run, seconds=5):
    """The processes that are still running after a while; `run` is a child that the caller waits for."""
    deadline = time.monotonic() + seconds
    while True:
        reap_others(run.pid)
        still = [pid for pid in pids if is_running(pid)]
        if not still or time.monotonic() > deadline:
            return still
        time.sleep(0.02)


def is_running(pid):
    """Whether a process exists and is not a zombie; it may exit meanwhile."""
    with contextlib.suppress(OSError):
        return not zombie(pid)
    return False


def reap_others(but):
    """Reaps orphans, as the first process of a pid namespace must, except the child `but`, which its caller waits for."""
    for pid in children_of([os.getpid()]):
        with contextlib.suppress(OSError):
            if pid != but and zombie(pid):
                os.waitpid(pid, os.WNOHANG)


def processes_with_argument(word):
    """The processes with a word as their first argument."""
    found = []
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if entry.isdigit() and Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")[1:2] == [word.encode()]:
                found.append(int(entry))
    return found


def children_of(parents):
    found = []
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if entry.isdigit() and int(Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[1]) in parents:
                found.append(int(entry))
    return found
