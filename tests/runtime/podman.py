"""podman with its images and states in a directory of a test; the only image is busybox, imported from a tarball."""

import os
import subprocess
import tarfile
import time
from pathlib import Path

from runtime import WITHOUT_V2

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
    """podman with its own storage and configuration, and the runtime under test; as root or as an account without root."""

    def __init__(self, harness, directory, runtime, account=None):
        self.harness, self.directory, self.account = harness, directory, account
        self.podman = harness.tool("podman")
        (directory / "containers.conf").write_text(CONFIGURATION)
        (directory / "storage.conf").write_text(f'[storage]\ndriver = "vfs"\ngraphroot = "{directory}/graph"\nrunroot = "{directory}/run"\n')
        (directory / "policy.json").write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
        self.environment = os.environ | {"CONTAINERS_CONF": str(directory / "containers.conf"), "CONTAINERS_STORAGE_CONF": str(directory / "storage.conf")}
        if account:
            os.chown(directory, account.uid, account.gid)
            self.environment |= {"HOME": str(directory), "XDG_RUNTIME_DIR": str(directory)}
        self.runtime = self.wrap(runtime)

    def wrap(self, runtime):
        """crun runs without the v2 half of a hybrid tree, as in `runtime.py`."""
        if Path(runtime).name != "crun" or not os.path.ismount("/sys/fs/cgroup/unified"):
            return runtime
        wrapper = self.directory / "crun"
        words = " ".join(f"'{word}'" for word in WITHOUT_V2)
        wrapper.write_text(f'#!/bin/sh\nexec {words} {runtime} "$@"\n')
        wrapper.chmod(0o755)
        return wrapper

    def __call__(self, *words, seconds=SECONDS, flags=(), **more):
        # conmon writes a file `oom` to its working directory when a container runs out of memory.
        command = [*(self.account.prefix() if self.account else []), self.podman, "--root", f"{self.directory}/graph", "--runroot", f"{self.directory}/run", "--tmpdir", f"{self.directory}/tmp",
                   "--storage-driver", "vfs", "--runtime", str(self.runtime), *flags, *words]
        try:
            return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False, env=self.environment,
                                  **({"stdin": subprocess.DEVNULL, "cwd": self.directory} | more))
        except subprocess.TimeoutExpired as timeout:
            return subprocess.CompletedProcess(command, 124, timeout.stdout or "", f"timed out after {seconds} s")

    def run(self, *words, flags=(), **more):
        """`podman run` of busybox without a network, removed afterwards."""
        return self("run", "--rm", "--network", "none", *words, flags=flags, **more)


def expect(result, code, words=None):
    """The exit code must be this, and the output must contain the words."""
    assert result.returncode == code, f"exit code {result.returncode}, not {code}: {result.stderr.strip()[-600:]}"
    assert words is None or words in result.stdout, f"`{words}` is not in {result.stdout!r}"


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


def until(what, seconds=20):
    deadline = time.monotonic() + seconds
    while not what() and time.monotonic() < deadline:
        time.sleep(0.1)
