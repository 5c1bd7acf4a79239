"""Runs a private containerd with jobc, runc and crun below its shim (`io.containerd.runc.v2`), driven by `ctr`.

containerd's own tests need images from the network, so the cases are ours: what `ctr` has, and what containerd does when it is killed.
"""

import hashlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from peer import PEERS, expect, report, run_cases

INSTALLED = PEERS / "runc/images"
SECONDS = 180
pytestmark = [pytest.mark.duration(41), pytest.mark.needs("containerd", "ctr")]
IMAGE = "tested.local/busybox:1"
CONFIGURATION = """
version = 2
root = "{directory}/root"
state = "{directory}/state"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[grpc]
  address = "{directory}/socket"
"""


def image(path, layer):
    """An image of one layer in an archive of the OCI image layout."""
    blobs = {}

    def add(data):
        digest = hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return {"digest": f"sha256:{digest}", "size": len(data)}

    layer = add(layer.read_bytes())
    config = add(json.dumps({"architecture": "arm64" if os.uname().machine == "aarch64" else "amd64", "os": "linux",
                             "config": {"Env": ["PATH=/bin"], "Cmd": ["sh"]},
                             "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]}}).encode())
    kind = "application/vnd.oci.image"
    manifest = add(json.dumps({"schemaVersion": 2, "config": config | {"mediaType": f"{kind}.config.v1+json"},
                               "layers": [layer | {"mediaType": f"{kind}.layer.v1.tar"}]}).encode())
    index = {"schemaVersion": 2, "manifests": [manifest | {"mediaType": f"{kind}.manifest.v1+json", "annotations": {
        "io.containerd.image.name": IMAGE, "org.opencontainers.image.ref.name": "1"}}]}
    with tarfile.open(path, "w") as archive:
        for name, data in [("oci-layout", b'{"imageLayoutVersion": "1.0.0"}'), ("index.json", json.dumps(index).encode()),
                           *((f"blobs/sha256/{digest}", data) for digest, data in blobs.items())]:
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))


class Containerd:
    """A daemon with its own directories, and `ctr` for it."""

    def __init__(self, directory, runtime):
        self.directory, self.runtime, self.daemon = directory, runtime, None
        (directory / "config.toml").write_text(CONFIGURATION.format(directory=directory))
        self.environment = os.environ | {"CONTAINERD_ADDRESS": f"{directory}/socket", "CONTAINERD_NAMESPACE": "tested"}

    def start(self):
        with open(self.directory / "log", "ab") as log:
            self.daemon = subprocess.Popen(["containerd", "--config", self.directory / "config.toml"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        for _ in range(200):
            if self("version").returncode == 0:
                return
            time.sleep(0.1)
        raise SystemExit(f"containerd does not start: {(self.directory / 'log').read_text()[-2000:]}")

    def kill(self):
        self.daemon.send_signal(signal.SIGKILL)
        self.daemon.wait()

    def __call__(self, *words, seconds=60):
        try:
            return subprocess.run(["ctr", *words], capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, timeout=seconds, check=False,
                                  env=self.environment)
        except subprocess.TimeoutExpired as timeout:
            return subprocess.CompletedProcess(words, 124, "", f"timed out: {timeout.stdout} {timeout.stderr}")

    def run(self, name, *command, flags=()):
        return self("run", "--runc-binary", self.runtime, *(["--rm"] if "--detach" not in flags else []), *flags, IMAGE, name, *command)

    def status(self, name):
        found = re.search(rf"^{name} +\d+ +(\w+)", self("task", "list").stdout, re.MULTILINE)
        return found[1] if found else None

    def pid(self, name):
        return int(re.search(rf"^{name} +(\d+)", self("task", "list").stdout, re.MULTILINE)[1])

    def wait_for(self, name, status):
        for _ in range(100):
            if self.status(name) == status:
                return True
            time.sleep(0.1)
        return False


def run(ctr):
    yield from expect(ctr.run("simple", "sh", "-c", "echo hello; pwd; exit 3", flags=("--cwd", "/tmp")), 3, "hello\n/tmp\n")
    yield from expect(ctr.run("signalled", "sh", "-c", "kill -9 $$", flags=("--with-ns", "pid:/proc/self/ns/pid")), 137)


def a_missing_program(ctr):
    yield from expect(ctr.run("absent", "/not/there"), 1, "/not/there", "no such file or directory")


def settings(ctr):
    yield from expect(ctr.run("set", "sh", "-c", 'echo "$A"; grep -E "^(NoNewPrivs|CapEff)" /proc/self/status; touch /x || echo refused; cat /v/file', flags=(
        "--env", "A=b c", "--read-only", "--cap-drop", "CAP_CHOWN", "--seccomp", "--mount", f"type=bind,src={ctr.directory}/volume,dst=/v,options=rbind:ro")), 0,
        "b c\n", "NoNewPrivs:\t1", "CapEff:\t00000000a80425fa", "refused", "from the host")


def a_user_namespace(ctr):
    result = ctr.run("mapped", "sh", "-c", "cat /proc/self/uid_map; id -u", flags=("--uidmap", "0:100000:65536", "--gidmap", "0:100000:65536"))
    yield from expect(result, 0, "100000", "\n0\n")


def limits(ctr):
    yield from expect(ctr.run("limited", "sleep", "100", flags=("--detach", "--memory-limit", "33554432", "--cpu-quota", "20000", "--cpu-period", "100000")), 0)
    groups = {words[1]: words[2] for words in (line.split(":", 2) for line in Path(f"/proc/{ctr.pid('limited')}/cgroup").read_text().splitlines())}
    for controller, file, wanted in (("memory", "memory.limit_in_bytes", "33554432"), ("cpu", "cpu.cfs_quota_us", "20000")):
        found = Path(f"/sys/fs/cgroup/{controller}{groups[controller]}/{file}").read_text().strip()
        if found != wanted:
            yield f"{file} is {found}"
    yield from expect(ctr("task", "metrics", "limited"), 0, "memory.limit_in_bytes    33554432", "pids.current             1")
    yield from expect(ctr("task", "delete", "--force", "limited"), 0)
    yield from expect(ctr("container", "delete", "limited"), 0)
    used = ctr.run("hungry", "sh", "-c", "head -c 64m /dev/zero | tail | wc -c", flags=("--memory-limit", "16777216"))
    if "67108864" in used.stdout:
        yield "64 MiB fit into 16"


def life(ctr):
    """exec, pause, resume, ps, metrics, kill and delete of one container."""
    yield from expect(ctr.run("kept", "sh", "-c", "trap 'exit 5' TERM; while :; do sleep 0.1; done", flags=("--detach", "--pid-file", str(ctr.directory / "pid"))), 0)
    if ctr.status("kept") != "RUNNING" or str(ctr.pid("kept")) != (ctr.directory / "pid").read_text():
        yield f"it is {ctr.status('kept')}, its pid is {ctr.pid('kept')}"
    yield from expect(ctr("task", "exec", "--exec-id", "one", "--cwd", "/tmp", "--user", "7:8", "kept", "sh", "-c", "pwd; id; exit 4"), 4, "/tmp\nuid=7 gid=8")
    yield from expect(ctr("task", "exec", "--exec-id", "two", "kept", "/not/there"), 1, "/not/there", "no such file or directory")
    yield from expect(ctr("task", "pause", "kept"), 0)
    if ctr.status("kept") != "PAUSED":
        yield f"a paused task is {ctr.status('kept')}"
    yield from expect(ctr("task", "exec", "--exec-id", "three", "kept", "true"), 1, "cannot exec in a paused")
    yield from expect(ctr("task", "resume", "kept"), 0)
    if ctr.status("kept") != "RUNNING":
        yield f"a resumed task is {ctr.status('kept')}"
    yield from expect(ctr("task", "ps", "kept"), 0, str(ctr.pid("kept")))
    metrics = ctr("task", "metrics", "kept")
    yield from expect(metrics, 0)
    for name in ("memory.usage_in_bytes", "cpuacct.usage"):
        if not int((re.search(rf"^{name} +(\d+)", metrics.stdout, re.MULTILINE) or (0, 0))[1]):
            yield f"{name} is nothing: {metrics.stdout!r}"
    yield from expect(ctr("task", "kill", "kept"), 0)
    if not ctr.wait_for("kept", "STOPPED"):
        yield f"after TERM it is {ctr.status('kept')}"
    yield from expect(ctr("task", "delete", "kept"), 0, "non-zero exit code 5")
    yield from expect(ctr("container", "delete", "kept"), 0)


def kill_all(ctr):
    """KILL ends a container without a pid namespace with all of its processes."""
    yield from expect(ctr.run("many", "sh", "-c", "sleep 1234 & exec sleep 1234", flags=("--detach", "--with-ns", "pid:/proc/1/ns/pid")), 0)
    yield from expect(ctr("task", "kill", "--signal", "KILL", "--all", "many"), 0)
    if not ctr.wait_for("many", "STOPPED"):
        yield f"it is {ctr.status('many')}"
    yield from expect(ctr("task", "delete", "many"), 0)
    yield from expect(ctr("container", "delete", "many"), 0)
    left = subprocess.run(["pgrep", "-xf", "sleep 1234"], capture_output=True, text=True, check=False).stdout
    if left:
        yield f"processes are left: {left.split()}"


def a_checkpoint(ctr):
    """It is refused, and the container goes on."""
    yield from expect(ctr.run("saved", "sleep", "100", flags=("--detach",)), 0)
    yield from expect(ctr("task", "checkpoint", "saved"), 1, "checkpoint")
    if ctr.status("saved") != "RUNNING":
        yield f"it is {ctr.status('saved')}"
    yield from expect(ctr("task", "delete", "--force", "saved"), 0)
    yield from expect(ctr("container", "delete", "saved"), 0)


def a_killed_daemon(ctr):
    """A container lives on without containerd, which finds it again."""
    yield from expect(ctr.run("surviving", "sh", "-c", "while [ ! -e /go ]; do sleep 0.1; done; exit 6", flags=("--detach",)), 0)
    ctr.kill()
    ctr.start()
    if ctr.status("surviving") != "RUNNING":
        yield f"it is {ctr.status('surviving')}"
    yield from expect(ctr("task", "exec", "--exec-id", "later", "surviving", "touch", "/go"), 0)
    if not ctr.wait_for("surviving", "STOPPED"):
        yield f"it is {ctr.status('surviving')}"
    yield from expect(ctr("task", "delete", "surviving"), 0, "exit code 6")
    yield from expect(ctr("container", "delete", "surviving"), 0)


def nothing_left(ctr):
    """No task, no state of the runtime, no cgroup."""
    if len(ctr("task", "list").stdout.splitlines()) != 1:
        yield ctr("task", "list").stdout
    yield from (f"state is left: {path}" for path in Path("/run/containerd/runc/tested").glob("*"))
    yield from (f"a cgroup is left: {path}" for path in Path("/sys/fs/cgroup").glob("*/tested/*") if path.is_dir())


CASES = [run, a_missing_program, settings, a_user_namespace, limits, life, kill_all, a_checkpoint, a_killed_daemon, nothing_left]


def inside(runtime):
    directory = Path(os.environ["TMPDIR"]) / "containerd"
    (directory / "volume").mkdir(parents=True)
    (directory / "volume/file").write_text("from the host")
    ctr = Containerd(directory, runtime)
    ctr.start()
    image(directory / "image.tar", PEERS / "runc/images/busybox.tar")
    imported = ctr("image", "import", str(directory / "image.tar"))
    if imported.returncode:
        raise SystemExit(imported.stderr)
    report(CASES, ctr)
    ctr.kill()


def test_containerd_manages_containers(runtime, program, compare):
    compare(run_cases(runtime, program, __file__, CASES, SECONDS))


if __name__ == "__main__":
    inside(sys.argv[1])
