"""Tests a runtime with podman, which drives it like runc: run, exec, stop, kill, limits, volumes, a failing hook, a pod."""

import json
import os
import re
import subprocess
import time
from pathlib import Path

import pytest

import needs
from podman import Podman, expect, image, until

pytestmark = [pytest.mark.duration(10), pytest.mark.needs("root", "podman", "busybox")]


@pytest.fixture(scope="module")
def all_podman(runtime):
    directory = runtime.states.parent
    podman = Podman(needs, directory, runtime.program)
    image(needs.tool("busybox"), directory / "busybox.tar")
    made = podman("import", str(directory / "busybox.tar"), "localhost/busybox")
    assert made.returncode == 0, made.stderr
    yield podman
    podman("rm", "--all", "--force", "--time", "0")
    podman("pod", "rm", "--all", "--force")


@pytest.fixture
def podman(all_podman):
    """podman with a busybox image; a test leaves no container."""
    yield all_podman
    listed = all_podman("ps", "--all", "--format", "{{.Names}}")
    assert listed.returncode == 0 and not listed.stdout.strip(), listed


def test_run_prints_the_programs_output(podman):
    expect(podman.run("busybox", "echo", "hello"), 0, "hello")


def test_the_exit_code_is_the_programs(podman):
    for code in (0, 3, 255):
        expect(podman.run("busybox", "sh", "-c", f"exit {code}"), code)
    expect(podman.run("busybox", "/not/there"), 127)
    expect(podman.run("busybox", "/etc"), 126)


def test_a_container_has_the_requested_environment(podman):
    result = podman.run("--env", "A=b c", "--workdir", "/tmp", "--hostname", "named", "--user", "7:8", "busybox", "sh", "-c",
                       'echo "$A|$(pwd)|$(hostname)|$(id -u):$(id -g)"')
    expect(result, 0, "b c|/tmp|named|7:8")


def test_standard_input_is_passed_on(podman):
    # podman rejects /dev/null as standard input with --interactive, so it gets a pipe.
    result = podman("run", "--rm", "--network", "none", "--interactive", "busybox", "wc", "-c", stdin=None, input="x" * 100_000)
    expect(result, 0, "100000")


def test_a_container_has_a_terminal(podman):
    result = podman.run("--tty", "busybox", "sh", "-c", "tty; test -c /dev/console && echo console")
    expect(result, 0, "/dev/pts/0")
    expect(result, 0, "console")


def test_limits_are_enforced(podman):
    result = podman.run("--memory", "64m", "--pids-limit", "50", "--cpus", "0.5", "busybox", "sh", "-c",
                       "cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/cpu/cpu.cfs_quota_us "
                       "2>/dev/null || cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/pids.max /sys/fs/cgroup/cpu.max")
    expect(result, 0)
    seen = result.stdout.split()
    assert seen[:2] == ["67108864", "50"] and "50000" in seen, f"the limits read back are {seen}"
    result = podman.run("--memory", "16m", "--memory-swap", "16m", "busybox", "sh", "-c", "head -c 64m /dev/zero | tail | wc -c")
    assert result.stdout.strip() != str(64 << 20), "64 MiB fit into 16"


def test_volumes_are_mounted(podman):
    directory = podman.directory / "volume"
    directory.mkdir(exist_ok=True)
    (directory / "in").write_text("from the host")
    result = podman.run("--volume", f"{directory}:/v:ro", "busybox", "sh", "-c", "cat /v/in; touch /v/out || echo refused")
    expect(result, 0, "from the host")
    expect(result, 0, "refused")
    expect(podman.run("--volume", f"{directory}:/v", "busybox", "touch", "/v/out"), 0)
    assert (directory / "out").exists(), "what the container wrote is not there"
    expect(podman.run("--tmpfs", "/t:size=1m", "busybox", "sh", "-c", "df /t | tail -1"), 0, "1024")
    expect(podman.run("--read-only", "busybox", "sh", "-c", "touch /x || echo refused"), 0, "refused")


def test_mounts_propagate_as_requested(podman):
    """With `rshared`, mounts of the container show on the host and the host's in the container; with `rslave` only the latter."""
    directory = podman.directory / "shared"
    directory.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "tmpfs"]
    subprocess.run([*mount, directory], check=True)
    subprocess.run(["mount", "--make-shared", directory], check=True)
    try:
        for number, (option, inward, outward) in enumerate((("rprivate", False, False), ("rslave", True, False), ("rshared", True, True))):
            for place in (f"in{number}", f"out{number}"):
                (directory / place).mkdir()
            expect(podman("run", "--detach", "--network", "none", "--cap-add", "sys_admin", "--name", option, "--volume", f"{directory}:/v:{option}",
                          "busybox", "sh", "-c", f"mount -t tmpfs inner /v/out{number} && touch /v/mounted{number}; sleep 60"), 0)
            until(lambda: (directory / f"mounted{number}").exists())
            subprocess.run([*mount, directory / f"in{number}"], check=True)
            seen = os.path.ismount(directory / f"out{number}"), podman("exec", option, "grep", "-q", f" /v/in{number} ", "/proc/self/mountinfo").returncode == 0
            assert seen == (outward, inward), f"{option}: the host sees the container's mount: {seen[0]}, the container sees the host's: {seen[1]}"
            expect(podman("rm", "--force", "--time", "0", option), 0)
    finally:
        subprocess.run(["umount", "--recursive", directory], check=False)


def test_a_detached_container_lives_until_it_is_removed(podman):
    """start, ps, logs, exec, stop and rm of one container."""
    expect(podman("run", "--detach", "--network", "none", "--name", "kept", "busybox", "sh", "-c",
                "trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.1; done"), 0)
    until(lambda: "up" in podman("logs", "kept").stdout)
    expect(podman("ps", "--format", "{{.Names}} {{.Status}}"), 0, "kept Up")
    result = podman("exec", "--env", "X=y", "--user", "9", "kept", "sh", "-c", 'echo "$X $(id -u) $(hostname)"; exit 4')
    expect(result, 4, "y 9")
    expect(podman("exec", "kept", "/not/there"), 127)
    expect(podman("exec", "--interactive", "kept", "cat", stdin=None, input="through"), 0, "through")
    expect(podman("exec", "--tty", "kept", "tty"), 0, "/dev/pts/")
    expect(podman("top", "kept", "pid", "args"), 0, "sleep")
    expect(podman("pause", "kept"), 0)
    expect(podman("inspect", "--format", "{{.State.Status}}", "kept"), 0, "paused")
    expect(podman("unpause", "kept"), 0)
    expect(podman("stop", "--time", "10", "kept"), 0)
    expect(podman("inspect", "--format", "{{.State.ExitCode}} {{.State.Status}}", "kept"), 0, "5 exited")
    expect(podman("logs", "kept"), 0, "bye")
    expect(podman("start", "kept"), 0)
    expect(podman("kill", "kept"), 0)
    until(lambda: "exited" in podman("inspect", "--format", "{{.State.Status}}", "kept").stdout)
    expect(podman("inspect", "--format", "{{.State.ExitCode}}", "kept"), 0, "137")
    expect(podman("rm", "--force", "kept"), 0)


def test_limits_are_changed_while_a_container_runs(podman):
    """Limits that are changed while a container runs, read back from inside and with podman."""
    expect(podman("run", "--detach", "--network", "none", "--name", "updated", "--memory", "64m", "busybox", "sleep", "4343"), 0)
    read = ("for f in memory.max memory/memory.limit_in_bytes cpu.max cpu/cpu.cfs_quota_us cpu.weight cpu/cpu.shares cpuset.cpus cpuset/cpuset.cpus; do "
            "test ! -e /sys/fs/cgroup/$f || cat /sys/fs/cgroup/$f; done")
    before = podman("exec", "updated", "sh", "-c", read).stdout.split()
    assert "67108864" in before, f"the first limits read back are {before}"
    expect(podman("update", "--memory", "128m", "--cpus", "0.25", "--cpu-shares", "512", "updated"), 0)
    # A cgroup that is created later is not mounted in the container, so these are read outside.
    name = podman("inspect", "--format", "{{.State.Pid}}", "updated").stdout.strip()
    seen = set()
    for line in Path(f"/proc/{name}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for file in ("memory.max", "memory.limit_in_bytes", "cpu.max", "cpu.cfs_quota_us", "cpu.weight", "cpu.shares"):
            for place in (f"/sys/fs/cgroup/{controllers}{path}/{file}", f"/sys/fs/cgroup{path}/{file}"):
                if controllers and os.path.exists(place) or not controllers and place.startswith(f"/sys/fs/cgroup{path}") and os.path.exists(place):
                    seen.add(Path(place).read_text().strip())
    for what, values in (("memory", {"134217728"}), ("CPU time", {"25000", "25000 100000"}), ("CPU shares", {"512", "20"})):
        assert seen & values, f"{what}: {sorted(seen)}"
    expect(podman("stats", "--no-stream", "--format", "{{.Name}} {{.MemUsage}} {{.PIDs}}", "updated"), 0, "MB 1")
    # CPU time is counted in a cgroup v1 hierarchy of its own.
    expect(podman("exec", "updated", "sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"), 0)
    usage = podman("stats", "--no-stream", "--format", "{{.CPUPerc}}", "updated").stdout.strip()
    assert re.fullmatch(r"\d+\.\d+%", usage) and float(usage.rstrip("%")) != 0, f"`podman stats` shows the CPU usage {usage!r}"
    groups = Path(f"/proc/{name}/cgroup").read_text().splitlines()
    own = {line.split(":", 2)[2] for line in groups if not line.startswith("0::")}
    assert len(own) <= 1, f"not one cgroup in every hierarchy: {groups}"
    expect(podman("exec", "updated", "true"), 0)
    expect(podman("rm", "--force", "--time", "0", "updated"), 0)


def test_a_program_that_ignores_sigterm_is_killed_after_the_timeout(podman):
    expect(podman("run", "--detach", "--network", "none", "--name", "deaf", "busybox", "sh", "-c", "trap '' TERM; sleep 4341"), 0)
    started_at = time.monotonic()
    expect(podman("stop", "--time", "1", "deaf"), 0)
    assert time.monotonic() - started_at <= 15, "stopping it took too long"
    expect(podman("rm", "--force", "deaf"), 0)


def test_a_container_has_the_requested_privileges(podman):
    result = podman.run("--cap-drop", "all", "--cap-add", "net_raw", "--security-opt", "no-new-privileges", "busybox", "cat", "/proc/self/status")
    expect(result, 0, "CapBnd:\t0000000000002000")
    expect(result, 0, "NoNewPrivs:\t1")
    expect(result, 0, "Seccomp:\t2")
    expect(podman.run("busybox", "unshare", "-m", "true"), 1)
    expect(podman.run("--privileged", "busybox", "sh", "-c", "ls /dev/fuse /dev/loop0; mount -t tmpfs t /tmp && echo mounted"), 0, "mounted")
    expect(podman.run("--device", "/dev/fuse", "busybox", "sh", "-c", ": <>/dev/fuse && echo opened"), 0, "opened")


def test_a_container_has_the_requested_namespaces(podman):
    expect(podman.run("--pid", "host", "busybox", "sh", "-c", "test $$ -ne 1 && echo shared"), 0, "shared")
    expect(podman.run("--uts", "host", "busybox", "hostname"), 0, os.uname().nodename)
    expect(podman.run("--uidmap", "0:200000:5000", "--gidmap", "0:200000:5000", "busybox", "cat", "/proc/self/uid_map"), 0, "200000")
    expect(podman.run("--init", "busybox", "sh", "-c", "test $$ -ne 1 && cat /proc/1/comm"), 0, "podman-init")
    expect(podman.run("--ulimit", "nofile=100:200", "--ulimit", "nproc=4096:4096", "--sysctl", "kernel.msgmax=4321", "--shm-size", "1m", "busybox", "sh", "-c",
                    "ulimit -n; cat /proc/sys/kernel/msgmax; df /dev/shm | tail -1"), 0, "100\n4321\n")


def test_containers_of_a_pod_share_its_network(podman):
    expect(podman("pod", "create", "--name", "two", "--network", "none", "--infra-command", "/bin/sleep 99", "--infra-image", "localhost/busybox"), 0)
    expect(podman("run", "--detach", "--pod", "two", "--name", "one", "busybox", "sh", "-c", "hostname; sleep 60"), 0)
    expect(podman("run", "--rm", "--pod", "two", "busybox", "ls", "/sys/class/net"), 0, "lo")
    expect(podman("pod", "rm", "--force", "--time", "1", "two"), 0)


def test_a_failing_hook_ends_the_start(podman):
    directory = podman.directory / "hooks"
    directory.mkdir(exist_ok=True)
    hook = {"version": "1.0.0", "hook": {"path": "/bin/sh", "args": ["sh", "-c", "echo because >&2; exit 9"]}, "when": {"always": True},
            "stages": ["createRuntime"]}
    (directory / "fails.json").write_text(json.dumps(hook))
    result = podman.run("busybox", "echo", "ran", flags=("--hooks-dir", str(directory)))
    assert result.returncode != 0 and "ran" not in result.stdout, f"the container ran: {result.stdout!r}"
    assert result.stderr.strip(), "there is no message"
    (directory / "fails.json").unlink()
