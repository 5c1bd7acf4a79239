"""Runs every bundle with runc and with crun, and checks the container from outside while it waits.

The bundle is copied with a busybox root, and changed as `oci_adapt` describes; `oci_inside` then compares the process
with config.json. The program's exit code must be returned.
"""

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import needs
import pytest
from documents import read
from oci_adapt import ANSWER, adapt
from oci_inside import differences

RUNTIMES = ("runc", "crun")
pytestmark = pytest.mark.needs("root", "busybox", *RUNTIMES)
ARTIFACTS = "oci/*/config.json"

# crun 1.8.1 rejects a hybrid cgroup tree, so it gets a mount namespace in which the v2 half is not mounted.
HYBRID = ["unshare", "--mount", "sh", "-c", 'umount /sys/fs/cgroup/unified; exec "$@"', "sh"]
SECONDS = 60


def command(runtime):
    hybrid = runtime == "crun" and os.path.ismount("/sys/fs/cgroup/unified")
    return (HYBRID if hybrid else []) + [runtime]


def run(runtime, bundle, note, scratch):
    """The differences of one bundle with one runtime, and the runtime's errors."""
    copy = scratch / "bundle"
    shutil.copytree(bundle, copy)
    config = read(copy / "config.json")
    root = copy / config["root"]["path"]
    (root / ".oracle").mkdir(parents=True)
    shutil.copy2(needs.tool("busybox"), root / ".oracle" / "busybox")
    for change in adapt(config, scratch):
        note(change)
    (copy / "config.json").write_text(json.dumps(config))

    made = absent_groups(config.get("linux", {}).get("cgroupsPath", ""))
    name = f"oracle-{os.getpid()}"
    started = subprocess.Popen([*command(runtime), "run", "--bundle", str(copy), name], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        first = started.stdout.readline().strip()
        if started.stdout.readline().strip() != "ready":
            _, errors = started.communicate(timeout=SECONDS)
            return [f"does not start: {errors.strip() or f'exit code {started.returncode}'}"]
        for _ in range(50):
            state = subprocess.run([*command(runtime), "state", name], capture_output=True, text=True, timeout=SECONDS)
            if state.returncode == 0:
                break
            # On a busy host crun has no state yet when its program already runs.
            time.sleep(0.1)
        if state.returncode:
            return [f"`state` exits with {state.returncode}: {state.stderr.strip()}"]
        found = list(differences(config, json.loads(state.stdout)["pid"], first))
        started.communicate("\n", timeout=SECONDS)
        if started.returncode != ANSWER:
            found.append(f"exit code is {started.returncode}, the program's was {ANSWER}")
        return found
    finally:
        subprocess.run([*command(runtime), "delete", "--force", name], capture_output=True, timeout=SECONDS)
        for group in made:
            # Another process may have created cgroups in it.
            with contextlib.suppress(OSError):
                group.rmdir()


def absent_groups(path):
    """A container's cgroups, and parents that its start will create, deepest first.

    Runtimes leave the parents, and after a failed start the container's own cgroup.
    """
    own = Path("/", path.lstrip("/"))
    hierarchies = [Path("/sys/fs/cgroup"), *Path("/sys/fs/cgroup").glob("*/")]
    every = [Path(f"{hierarchy}{group}") for hierarchy in hierarchies for group in (own, *own.parents)[:-1]]
    return [group for group in every if not group.exists()]


def test_a_container_runs_as_configured(artifact, note):
    for runtime in RUNTIMES:
        with tempfile.TemporaryDirectory(prefix="jobc-oracle-") as scratch:
            os.chmod(scratch, 0o755)
            problems = run(runtime, artifact.parent, note, Path(scratch))
            assert not problems, f"with {runtime}: " + "\n".join(problems)
