"""Runs a private dockerd with jobc, runc and crun as its default runtime (`--add-runtime`): containers, builds, and a killed daemon."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from peer import PEERS, expect, report, run_cases

INSTALLED = PEERS / "runc/images"
SECONDS = 400
pytestmark = [pytest.mark.duration(85), pytest.mark.needs("dockerd", "containerd")]
# The network of a container needs iptables; `docker run --network none` does not.
DAEMON = ["--iptables=false", "--ip6tables=false", "--bridge=none", "--storage-driver=vfs", "--live-restore", "--experimental", "--default-runtime=tested"]


class Docker:
    """A daemon with its own directories, and `docker` for it."""

    def __init__(self, directory, runtime):
        self.directory, self.runtime, self.daemon = directory, runtime, None
        self.environment = os.environ | {"DOCKER_HOST": f"unix://{directory}/socket", "DOCKER_BUILDKIT": "0", "DOCKER_CONFIG": str(directory)}

    def start(self):
        words = [f"--host=unix://{self.directory}/socket", f"--data-root={self.directory}/root", f"--exec-root={self.directory}/exec",
                 f"--pidfile={self.directory}/pid", f"--add-runtime=tested={self.runtime}", *DAEMON]
        with open(self.directory / "log", "ab") as log:
            self.daemon = subprocess.Popen(["dockerd", *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        for _ in range(300):
            if self("version").returncode == 0:
                return
            time.sleep(0.1)
        raise SystemExit(f"dockerd does not start: {(self.directory / 'log').read_text()[-2000:]}")

    def kill(self):
        self.daemon.send_signal(signal.SIGKILL)
        self.daemon.wait()
        (self.directory / "pid").unlink(missing_ok=True)

    def __call__(self, *words, seconds=60, **more):
        try:
            return subprocess.run(["/usr/bin/docker", *words], capture_output=True, text=True, errors="replace", timeout=seconds, check=False, env=self.environment,
                                  **({"stdin": subprocess.DEVNULL} | more))
        except subprocess.TimeoutExpired as timeout:
            return subprocess.CompletedProcess(words, 124, "", f"timed out: {timeout.stdout} {timeout.stderr}")

    def run(self, *words, **more):
        return self("run", "--network", "none", *(() if "--detach" in words else ("--rm",)), *words, **more)

    def inspect(self, name, field):
        return self("inspect", "--format", f"{{{{{field}}}}}", name).stdout.strip()

    def wait_for(self, name, field, value):
        for _ in range(100):
            if self.inspect(name, field) == value:
                return True
            time.sleep(0.1)
        return False


def run(docker):
    yield from expect(docker("info", "--format", "{{.DefaultRuntime}}"), 0, "tested")
    for code in (0, 3, 255):
        yield from expect(docker.run("busybox", "sh", "-c", f"echo hello; exit {code}"), code, "hello")
    yield from expect(docker.run("busybox", "/not/there"), 127, "no such file or directory")
    yield from expect(docker.run("busybox", "not-in-path"), 127)
    yield from expect(docker.run("busybox", "/etc"), 126, "permission denied")
    yield from expect(docker.run("--interactive", "busybox", "wc", "-c", stdin=None, input="x" * 100_000), 0, "100000")
    yield from expect(docker.run("--tty", "busybox", "tty"), 0, "/dev/pts/0")


def settings(docker):
    yield from expect(docker.run("--env", "A=b c", "--workdir", "/tmp", "--hostname", "named", "--user", "7:8", "busybox", "sh", "-c",
                                 'echo "$A|$(pwd)|$(hostname)|$(id -u):$(id -g)"'), 0, "b c|/tmp|named|7:8")
    yield from expect(docker.run("--read-only", "--tmpfs", "/t:size=1m", "--cap-drop", "all", "--cap-add", "chown", "--security-opt", "no-new-privileges", "busybox",
                                 "sh", "-c", "touch /x || echo refused; df /t | tail -1; grep -E '^(NoNewPrivs|CapEff|Seccomp):' /proc/self/status"), 0,
                      "refused", "1024", "CapEff:\t0000000000000001", "NoNewPrivs:\t1", "Seccomp:\t2")
    yield from expect(docker.run("--ulimit", "nofile=100:200", "--sysctl", "kernel.msgmax=4321", "--shm-size", "1m", "--pid", "host", "busybox", "sh", "-c",
                                 "ulimit -n; cat /proc/sys/kernel/msgmax; df /dev/shm | tail -1; test $$ -ne 1 && echo shared"), 0, "100\n4321\n", "1024", "shared")
    yield from expect(docker.run("--privileged", "busybox", "sh", "-c", "mount -t tmpfs t /tmp && echo mounted"), 0, "mounted")
    yield from expect(docker.run("--device", "/dev/fuse", "busybox", "sh", "-c", ": <>/dev/fuse && echo opened"), 0, "opened")
    yield from expect(docker.run("--security-opt", "seccomp=unconfined", "busybox", "grep", "Seccomp:", "/proc/self/status"), 0, "Seccomp:\t0")


def volumes(docker):
    directory = docker.directory / "volume"
    directory.mkdir()
    (directory / "file").write_text("from the host")
    yield from expect(docker.run("--volume", f"{directory}:/v:ro", "busybox", "sh", "-c", "cat /v/file; touch /v/out || echo refused"), 0, "from the host", "refused")
    yield from expect(docker.run("--volume", f"{directory}:/v", "busybox", "touch", "/v/out"), 0)
    if not (directory / "out").exists():
        yield "what the container wrote is not there"
    yield from expect(docker("volume", "create", "named"), 0)
    yield from expect(docker.run("--volume", "named:/v", "busybox", "sh", "-c", "echo kept >/v/file"), 0)
    yield from expect(docker.run("--mount", "type=volume,source=named,target=/v", "busybox", "cat", "/v/file"), 0, "kept")
    yield from expect(docker("volume", "rm", "named"), 0)


def life(docker):
    """exec, pause, top, stats, update, stop, start, kill and rm of one container."""
    yield from expect(docker.run("--detach", "--name", "kept", "busybox", "sh", "-c", "trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.1; done"), 0)
    yield from expect(docker("exec", "--env", "X=y", "--user", "9", "kept", "sh", "-c", 'echo "$X $(id -u)"; exit 4'), 4, "y 9")
    # This version of docker has one exit code for both.
    yield from expect(docker("exec", "kept", "/not/there"), 126, "no such file or directory")
    yield from expect(docker("exec", "kept", "/etc"), 126, "permission denied")
    yield from expect(docker("exec", "--tty", "kept", "tty"), 0, "/dev/pts/")
    yield from expect(docker("exec", "--interactive", "kept", "cat", stdin=None, input="through"), 0, "through")
    yield from expect(docker("top", "kept"), 0, "trap 'echo bye")
    yield from expect(docker("pause", "kept"), 0)
    yield from expect(docker("ps", "--format", "{{.Status}}"), 0, "(Paused)")
    yield from expect(docker("exec", "kept", "true"), 1, "is paused")
    yield from expect(docker("unpause", "kept"), 0)
    yield from expect(docker("update", "--memory", "64m", "--memory-swap", "64m", "--cpus", "0.5", "kept"), 0)
    pid = docker.inspect("kept", ".State.Pid")
    groups = {words[1]: words[2] for words in (line.split(":", 2) for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines())}
    for controller, file, wanted in (("memory", "memory.limit_in_bytes", "67108864"), ("cpu", "cpu.cfs_quota_us", "50000")):
        found = Path(f"/sys/fs/cgroup/{controller}{groups[controller]}/{file}").read_text().strip()
        if found != wanted:
            yield f"after the update {file} is {found}"
    yield from expect(docker("stats", "--no-stream", "--format", "{{.MemUsage}} {{.PIDs}}", "kept"), 0, "/ 64MiB")
    yield from expect(docker("stop", "--time", "10", "kept"), 0)
    if docker.inspect("kept", ".State.ExitCode") != "5":
        yield f"after stop the exit code is {docker.inspect('kept', '.State.ExitCode')}"
    yield from expect(docker("logs", "kept"), 0, "bye")
    yield from expect(docker("start", "kept"), 0)
    yield from expect(docker("kill", "kept"), 0)
    if not docker.wait_for("kept", ".State.Status", "exited") or docker.inspect("kept", ".State.ExitCode") != "137":
        yield f"after kill it is {docker.inspect('kept', '.State.Status')} with {docker.inspect('kept', '.State.ExitCode')}"
    yield from expect(docker("rm", "kept"), 0)


def memory(docker):
    """Who runs out of memory is reported."""
    docker.run("--detach", "--name", "hungry", "--memory", "16m", "--memory-swap", "16m", "busybox", "sh", "-c", "head -c 64m /dev/zero | tail | wc -c; sleep 1")
    if not docker.wait_for("hungry", ".State.Status", "exited") or docker.inspect("hungry", ".State.OOMKilled") != "true":
        yield f"OOMKilled is {docker.inspect('hungry', '.State.OOMKilled')}, the container {docker.inspect('hungry', '.State.Status')}"
    docker("rm", "--force", "hungry")


def restarts(docker):
    yield from expect(docker.run("--detach", "--name", "failing", "--restart", "on-failure:2", "busybox", "sh", "-c", "exit 7"), 0)
    if not docker.wait_for("failing", ".RestartCount", "2"):
        yield f"it was restarted {docker.inspect('failing', '.RestartCount')} times"
    docker("rm", "--force", "failing")


def a_build(docker):
    context = docker.directory / "context"
    context.mkdir()
    (context / "Dockerfile").write_text("FROM busybox\nRUN echo made >/made && chown 7:8 /made\nUSER 7:8\nRUN id -u >/tmp/who\nCMD cat /made /tmp/who\n")
    yield from expect(docker("build", "--network", "none", "--tag", "built", str(context), seconds=120), 0)
    yield from expect(docker.run("built"), 0, "made\n7")
    (context / "Dockerfile").write_text("FROM busybox\nRUN exit 9\n")
    yield from expect(docker("build", "--network", "none", "--force-rm", str(context)), 9)


def a_checkpoint(docker):
    """It is refused, and the container goes on."""
    yield from expect(docker.run("--detach", "--name", "saved", "busybox", "sleep", "100"), 0)
    yield from expect(docker("checkpoint", "create", "saved", "point"), 1, "checkpoint")
    if docker.inspect("saved", ".State.Status") != "running":
        yield f"it is {docker.inspect('saved', '.State.Status')}"
    docker("rm", "--force", "saved")


def a_killed_daemon(docker):
    """A container lives on without dockerd, which finds it again."""
    yield from expect(docker.run("--detach", "--name", "surviving", "busybox", "sh", "-c", "while [ ! -e /go ]; do sleep 0.1; done; exit 6"), 0)
    docker.kill()
    docker.start()
    if docker.inspect("surviving", ".State.Status") != "running":
        yield f"it is {docker.inspect('surviving', '.State.Status')}"
    yield from expect(docker("exec", "surviving", "touch", "/go"), 0)
    if not docker.wait_for("surviving", ".State.Status", "exited") or docker.inspect("surviving", ".State.ExitCode") != "6":
        yield f"it is {docker.inspect('surviving', '.State.Status')} with {docker.inspect('surviving', '.State.ExitCode')}"
    docker("rm", "--force", "surviving")


def nothing_left(docker):
    """No container, no state of the runtime, no cgroup."""
    if docker("ps", "--all", "--quiet").stdout:
        yield docker("ps", "--all").stdout
    yield from (f"state is left: {path}" for path in (docker.directory / "exec").glob("runtime-tested/*/*"))
    yield from (f"a cgroup is left: {path}" for path in Path("/sys/fs/cgroup").glob("*/docker/*") if path.is_dir())


CASES = [run, settings, volumes, life, memory, restarts, a_build, a_checkpoint, a_killed_daemon, nothing_left]


def inside(runtime):
    directory = Path(os.environ["TMPDIR"]) / "docker"
    directory.mkdir()
    docker = Docker(directory, runtime)
    docker.start()
    imported = docker("import", str(PEERS / "runc/images/busybox.tar"), "busybox")
    if imported.returncode:
        raise SystemExit(imported.stderr)
    report(CASES, docker)
    docker.kill()


def test_docker_manages_containers(runtime, program, compare):
    compare(run_cases(runtime, program, __file__, CASES, SECONDS))


if __name__ == "__main__":
    inside(sys.argv[1])
