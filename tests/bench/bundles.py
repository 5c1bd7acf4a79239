"""The container whose start is measured, also by `runtime/oci/order/record`."""

import shutil
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "runtime")]

from bundle import Roots, configuration  # noqa: E402
from profile import docker  # noqa: E402


def bundles(directory):
    """Writes the bundle, the same bundle with the default seccomp profile, and their root file system."""
    roots = Roots(directory, shutil.which("busybox") or sys.exit("`busybox` is not installed (Debian: busybox-static)"))
    made = []
    for name in ("plain", "filtered"):
        config = configuration()
        config["process"]["args"] = ["/bin/true"]
        config["linux"]["resources"] |= {"memory": {"limit": 256 << 20}, "pids": {"limit": 128}}
        if name == "filtered":
            config["linux"]["seccomp"] = docker(config["process"]["capabilities"]["bounding"])
        (directory / name).mkdir()
        made.append(roots.bundle(directory / name, config))
    return *made, made[0] / "rootfs"
