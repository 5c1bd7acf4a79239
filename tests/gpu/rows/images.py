"""Rows about an image with its own libraries, of another distribution than the host's."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from rows.host import Failed, NotAvailable, last_lines
from rows.programs import CUDA

# Debian 12: its glibc is older than that of most hosts with GPUs.
SUITE = "bookworm"
SCRIPT = f". /etc/os-release; echo in $PRETTY_NAME; exec python3 - <<'END_OF_PROGRAM'\n{CUDA}\nEND_OF_PROGRAM\n"
CDI_DIRECTORY = "var/run/cdi"


def root_of(host):
    """A root file system with Python: that of `--image`, or one made by debootstrap."""
    if host.image:
        return host.image
    if host.fake:
        raise NotAvailable("needs `--image` on a simulated host")
    made = host.directory / "image"
    if made.exists():
        return made
    if os.geteuid() != 0:
        raise NotAvailable("needs `--image`, or root for debootstrap")
    if not shutil.which("debootstrap"):
        raise NotAvailable("needs `--image`, or debootstrap")
    attempt = host.directory / "image-attempt"
    command = ["debootstrap", "--variant=minbase", "--include=python3", SUITE, str(attempt)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    if answer.returncode:
        shutil.rmtree(attempt, ignore_errors=True)
        raise NotAvailable(f"debootstrap failed: {last_lines(answer)[-200:]}")
    return attempt.rename(made)


def run_in(host, root, how):
    # Variables of the host's Python are not for that of the image.
    variables, host.variables = host.variables, {}
    try:
        path = host.task(SCRIPT, 1)
    finally:
        host.variables = variables
    output = host.run_file(path, "--root", str(root), "--gpu-injection", how, seconds=300)
    found = re.search(r"in (.+)", output)
    if not found or "1 device" not in output:
        raise Failed(output[-600:])
    return f"{found[1]}: libcuda found, cuInit 0, 1 device"


def generated(host):
    """an image with its own glibc, `--gpu-injection generated`"""
    return run_in(host, root_of(host), "generated")


def by_cdi(host):
    """the same with a CDI file that `jobc gpu cdi` wrote"""
    root, directory = root_of(host), (host.fake or Path("/")) / CDI_DIRECTORY
    if os.geteuid() != 0:
        raise NotAvailable("needs root to write to /var/run/cdi")
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / "jobc-gpu-run.json"
    try:
        answer = host.call("gpu", "cdi", "--format", "json", "--output", str(file))
        if answer.returncode:
            raise Failed(last_lines(answer))
        return run_in(host, root, "cdi")
    finally:
        file.unlink(missing_ok=True)


ROWS = [generated, by_cdi]
