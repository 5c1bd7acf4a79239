#!/usr/bin/env python3
"""Tests a runtime with podman, which drives it like runc: run, exec, stop, kill, limits, volumes, a failing hook, a pod.

podman keeps its images and states in the test's own directory; the only image is busybox, imported from a tarball.
"""

import json
import os
import subprocess
import tarfile
import time
from pathlib import Path

from harness import Harness, scratch
from runtime import WITHOUT_V2, program

SECONDS = 60
# Debian's defaults raise limits, which needs CAP_SYS_RESOURCE; a container's own init is tested elsewhere.
CONFIGURATION = """
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=4096:4096"]
cgroupns = "private"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
default_subnet = "10.97.0.0/16"
"""


class Podman:
    """podman with its own storage and configuration, and the runtime under test."""

    def __init__(self, harness, directory, runtime):
        self.harness, self.directory = harness, directory
        self.podman = harness.tool("podman")
        (directory / "containers.conf").write_text(CONFIGURATION)
        (directory / "storage.conf").write_text(f'[storage]\ndriver = "vfs"\ngraphroot = "{directory}/graph"\nrunroot = "{directory}/run"\n')
        (directory / "policy.json").write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
        self.environment = os.environ | {"CONTAINERS_CONF": str(directory / "containers.conf"), "CONTAINERS_STORAGE_CONF": str(directory / "storage.conf")}
        self.runtime = self.wrapped(runtime)

    def wrapped(self, runtime):
        """crun on a hybrid tree sees it without its v2 half, as `runtime.py` explains."""
        if Path(runtime).name != "crun" or not os.path.ismount("/sys/fs/cgroup/unified"):
            return runtime
        wrapper = self.directory / "crun"
        words = " ".join(f"'{word}'" for word in WITHOUT_V2)
        wrapper.write_text(f'#!/bin/sh\nexec {words} {runtime} "$@"\n')
        wrapper.chmod(0o755)
        return wrapper

    def __call__(self, *words, seconds=SECONDS, flags=(), **more):
        # conmon leaves a file named `oom` where it is started, when memory runs out in a container.
        command = [self.podman, "--root", f"{self.directory}/graph", "--runroot", f"{self.directory}/run", "--tmpdir", f"{self.directory}/tmp",
                   "--storage-driver", "vfs", "--runtime", str(self.runtime), *flags, *words]
        try:
            return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False, env=self.environment,
                                  **({"stdin": subprocess.DEVNULL, "cwd": self.directory} | more))
        except subprocess.TimeoutExpired as late:
            return subprocess.CompletedProcess(command, 124, late.stdout or "", f"no end within {seconds} s")

    def run(self, *words, flags=(), **more):
        """`podman run` of busybox without a network of its own, removed afterwards."""
        return self("run", "--rm", "--network", "none", *words, flags=flags, **more)


def said(ended, code, words=None):
    """What differs from the exit code and the words in the output that were expected."""
    if ended.returncode != code:
        yield f"exit code {ended.returncode}, not {code}: {ended.stderr.strip()[-600:]}"
    elif words is not None and words not in ended.stdout:
        yield f"`{words}` is not in {ended.stdout!r}"


def image(busybox, path):
    """A root file system in a tarball: busybox and a link for each of its programs."""
    with tarfile.open(path, "w") as tar:
        tar.add(busybox, "bin/busybox")
        for name in subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split():
            if name != "busybox":
                link = tarfile.TarInfo(f"bin/{name}")
                link.type, link.linkname = tarfile.SYMTYPE, "busybox"
                tar.addfile(link)
        for name in ("tmp", "etc", "root", "dev", "proc", "sys", "run"):
            directory = tarfile.TarInfo(name)
            directory.type, directory.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            tar.addfile(directory)


def simple(podman):
    yield from said(podman.run("busybox", "echo", "hello"), 0, "hello")


def codes(podman):
    for code in (0, 3, 255):
        yield from said(podman.run("busybox", "sh", "-c", f"exit {code}"), code)
    yield from said(podman.run("busybox", "/not/there"), 127)
    yield from said(podman.run("busybox", "/etc"), 126)


def environment(podman):
    ended = podman.run("--env", "A=b c", "--workdir", "/tmp", "--hostname", "named", "--user", "7:8", "busybox", "sh", "-c",
                       'echo "$A|$(pwd)|$(hostname)|$(id -u):$(id -g)"')
    yield from said(ended, 0, "b c|/tmp|named|7:8")


def standard_input(podman):
    # podman refuses a standard input that is /dev/null with --interactive, so it gets a pipe.
    ended = podman("run", "--rm", "--network", "none", "--interactive", "busybox", "wc", "-c", stdin=None, input="x" * 100_000)
    yield from said(ended, 0, "100000")


def terminal(podman):
    ended = podman.run("--tty", "busybox", "sh", "-c", "tty; test -c /dev/console && echo console")
    yield from said(ended, 0, "/dev/pts/0")
    yield from said(ended, 0, "console")


def limits(podman):
    ended = podman.run("--memory", "64m", "--pids-limit", "50", "--cpus", "0.5", "busybox", "sh", "-c",
                       "cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/cpu/cpu.cfs_quota_us "
                       "2>/dev/null || cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/pids.max /sys/fs/cgroup/cpu.max")
    yield from said(ended, 0)
    seen = ended.stdout.split()
    if seen[:2] != ["67108864", "50"] or "50000" not in seen:
        yield f"the limits read back are {seen}"
    ended = podman.run("--memory", "16m", "--memory-swap", "16m", "busybox", "sh", "-c", "head -c 64m /dev/zero | tail | wc -c")
    if ended.stdout.strip() == str(64 << 20):
        yield "64 MiB fit into 16"


def volumes(podman):
    directory = podman.directory / "volume"
    directory.mkdir(exist_ok=True)
    (directory / "in").write_text("from the host")
    ended = podman.run("--volume", f"{directory}:/v:ro", "busybox", "sh", "-c", "cat /v/in; touch /v/out || echo refused")
    yield from said(ended, 0, "from the host")
    yield from said(ended, 0, "refused")
    yield from said(podman.run("--volume", f"{directory}:/v", "busybox", "touch", "/v/out"), 0)
    if not (directory / "out").exists():
        yield "what the container wrote is not there"
    yield from said(podman.run("--tmpfs", "/t:size=1m", "busybox", "sh", "-c", "df /t | tail -1"), 0, "1024")
    yield from said(podman.run("--read-only", "busybox", "sh", "-c", "touch /x || echo refused"), 0, "refused")


def detached(podman):
    """start, ps, logs, exec, stop and rm of one container."""
    yield from said(podman("run", "--detach", "--network", "none", "--name", "kept", "busybox", "sh", "-c",
                           "trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.1; done"), 0)
    until(lambda: "up" in podman("logs", "kept").stdout)
    yield from said(podman("ps", "--format", "{{.Names}} {{.Status}}"), 0, "kept Up")
    ended = podman("exec", "--env", "X=y", "--user", "9", "kept", "sh", "-c", 'echo "$X $(id -u) $(hostname)"; exit 4')
    yield from said(ended, 4, "y 9")
    yield from said(podman("exec", "kept", "/not/there"), 127)
    yield from said(podman("exec", "--interactive", "kept", "cat", stdin=None, input="through"), 0, "through")
    yield from said(podman("exec", "--tty", "kept", "tty"), 0, "/dev/pts/")
    yield from said(podman("top", "kept", "pid", "args"), 0, "sleep")
    yield from said(podman("pause", "kept"), 0)
    yield from said(podman("inspect", "--format", "{{.State.Status}}", "kept"), 0, "paused")
    yield from said(podman("unpause", "kept"), 0)
    yield from said(podman("stop", "--time", "10", "kept"), 0)
    yield from said(podman("inspect", "--format", "{{.State.ExitCode}} {{.State.Status}}", "kept"), 0, "5 exited")
    yield from said(podman("logs", "kept"), 0, "bye")
    yield from said(podman("start", "kept"), 0)
    yield from said(podman("kill", "kept"), 0)
    until(lambda: "exited" in podman("inspect", "--format", "{{.State.Status}}", "kept").stdout)
    yield from said(podman("inspect", "--format", "{{.State.ExitCode}}", "kept"), 0, "137")
    yield from said(podman("rm", "--force", "kept"), 0)


def updated(podman):
    """Limits that are changed while a container runs, read back from inside and by podman."""
    yield from said(podman("run", "--detach", "--network", "none", "--name", "updated", "--memory", "64m", "busybox", "sleep", "4343"), 0)
    read = ("for f in memory.max memory/memory.limit_in_bytes cpu.max cpu/cpu.cfs_quota_us cpu.weight cpu/cpu.shares cpuset.cpus cpuset/cpuset.cpus; do "
            "test ! -e /sys/fs/cgroup/$f || cat /sys/fs/cgroup/$f; done")
    before = podman("exec", "updated", "sh", "-c", read).stdout.split()
    if "67108864" not in before:
        yield f"the first limits read back are {before}"
    yield from said(podman("update", "--memory", "128m", "--cpus", "0.25", "--cpu-shares", "512", "updated"), 0)
    # A group that is made later is not mounted in the container, so these are read outside.
    name = podman("inspect", "--format", "{{.State.Pid}}", "updated").stdout.strip()
    seen = set()
    for line in Path(f"/proc/{name}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for file in ("memory.max", "memory.limit_in_bytes", "cpu.max", "cpu.cfs_quota_us", "cpu.weight", "cpu.shares"):
            for place in (f"/sys/fs/cgroup/{controllers}{path}/{file}", f"/sys/fs/cgroup{path}/{file}"):
                if controllers and os.path.exists(place) or not controllers and place.startswith(f"/sys/fs/cgroup{path}") and os.path.exists(place):
                    seen.add(Path(place).read_text().strip())
    for what, values in (("memory", {"134217728"}), ("CPU time", {"25000", "25000 100000"}), ("CPU shares", {"512", "20"})):
        if not seen & values:
            yield f"{what}: {sorted(seen)}"
    yield from said(podman("stats", "--no-stream", "--format", "{{.Name}} {{.MemUsage}} {{.PIDs}}", "updated"), 0, "MB 1")
    yield from said(podman("exec", "updated", "true"), 0)
    yield from said(podman("rm", "--force", "--time", "0", "updated"), 0)


def deaf(podman):
    """A program that ignores TERM is killed when its time is up."""
    yield from said(podman("run", "--detach", "--network", "none", "--name", "deaf", "busybox", "sh", "-c", "trap '' TERM; sleep 4341"), 0)
    begun = time.monotonic()
    yield from said(podman("stop", "--time", "1", "deaf"), 0)
    if time.monotonic() - begun > 15:
        yield "stopping it took too long"
    yield from said(podman("rm", "--force", "deaf"), 0)


def privileges(podman):
    ended = podman.run("--cap-drop", "all", "--cap-add", "net_raw", "--security-opt", "no-new-privileges", "busybox", "cat", "/proc/self/status")
    yield from said(ended, 0, "CapBnd:\t0000000000002000")
    yield from said(ended, 0, "NoNewPrivs:\t1")
    yield from said(ended, 0, "Seccomp:\t2")
    yield from said(podman.run("busybox", "unshare", "-m", "true"), 1)
    yield from said(podman.run("--privileged", "busybox", "sh", "-c", "ls /dev/fuse /dev/loop0; mount -t tmpfs t /tmp && echo mounted"), 0, "mounted")
    yield from said(podman.run("--device", "/dev/fuse", "busybox", "sh", "-c", ": <>/dev/fuse && echo opened"), 0, "opened")


def namespaces(podman):
    yield from said(podman.run("--pid", "host", "busybox", "sh", "-c", "test $$ -ne 1 && echo shared"), 0, "shared")
    yield from said(podman.run("--uts", "host", "busybox", "hostname"), 0, os.uname().nodename)
    yield from said(podman.run("--uidmap", "0:200000:5000", "--gidmap", "0:200000:5000", "busybox", "cat", "/proc/self/uid_map"), 0, "200000")
    yield from said(podman.run("--init", "busybox", "sh", "-c", "test $$ -ne 1 && cat /proc/1/comm"), 0, "podman-init")
    yield from said(podman.run("--ulimit", "nofile=100:200", "--ulimit", "nproc=4096:4096", "--sysctl", "kernel.msgmax=4321", "--shm-size", "1m", "busybox", "sh", "-c",
                               "ulimit -n; cat /proc/sys/kernel/msgmax; df /dev/shm | tail -1"), 0, "100\n4321\n")


def pod(podman):
    yield from said(podman("pod", "create", "--name", "two", "--network", "none", "--infra-command", "/bin/sleep 99", "--infra-image", "localhost/busybox"), 0)
    yield from said(podman("run", "--detach", "--pod", "two", "--name", "one", "busybox", "sh", "-c", "hostname; sleep 60"), 0)
    yield from said(podman("run", "--rm", "--pod", "two", "busybox", "ls", "/sys/class/net"), 0, "lo")
    yield from said(podman("pod", "rm", "--force", "--time", "1", "two"), 0)


def failing_hook(podman):
    directory = podman.directory / "hooks"
    directory.mkdir(exist_ok=True)
    hook = {"version": "1.0.0", "hook": {"path": "/bin/sh", "args": ["sh", "-c", "echo because >&2; exit 9"]}, "when": {"always": True},
            "stages": ["createRuntime"]}
    (directory / "fails.json").write_text(json.dumps(hook))
    ended = podman.run("busybox", "echo", "ran", flags=("--hooks-dir", str(directory)))
    if ended.returncode == 0 or "ran" in ended.stdout:
        yield f"the container ran: {ended.stdout!r}"
    if not ended.stderr.strip():
        yield "nothing is said"
    (directory / "fails.json").unlink()


def left(podman):
    """Nothing of all that is still there."""
    yield from said(podman("ps", "--all", "--format", "{{.Names}}"), 0)
    if podman("ps", "--all", "--quiet").stdout.strip():
        yield f"containers are left: {podman('ps', '--all').stdout}"


def until(what, seconds=20):
    deadline = time.monotonic() + seconds
    while not what() and time.monotonic() < deadline:
        time.sleep(0.1)


CASES = [simple, codes, environment, standard_input, terminal, limits, volumes, detached, updated, deaf, privileges, namespaces, pod, failing_hook, left]


def main():
    harness = Harness("podman", __doc__.split("\n", maxsplit=1)[0])
    harness.parse()
    if os.geteuid() != 0:
        harness.skip("root gives containers their limits")
    with scratch() as directory:
        podman = Podman(harness, directory, program(harness, directory))
        tarball = directory / "busybox.tar"
        image(harness.tool("busybox"), tarball)
        made = podman("import", str(tarball), "localhost/busybox")
        if made.returncode:
            harness.check("import", [made.stderr.strip()])
            harness.end()
        try:
            for case in CASES:
                name = case.__name__.replace("_", " ")
                if harness.wants(name):
                    harness.check(name, case(podman))
        finally:
            podman("rm", "--all", "--force", "--time", "0")
            podman("pod", "rm", "--all", "--force")
    harness.end()


if __name__ == "__main__":
    main()
