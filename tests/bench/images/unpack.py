#!/usr/bin/env python3
"""Measures importing and unpacking an image with jobc, with skopeo and umoci, and with buildah; and jobc's memory.

    tests/bench/images/unpack.py [--binary PATH] [--rounds N]

The image is that of tests/images: Debian with three layers of changes, compressed with gzip. Each round runs every program once,
in a changing order; cold is with the page cache dropped first. Times are medians. Needs root, and a release build of
runtime/image/examples/unpack.rs."""

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
for directory in ["runtime", "images"]:
    sys.path.insert(0, str(TESTS / directory))

import image
from harness import REPOSITORY


def programs(binary, layout, directory):
    """Name, and the commands of one import and unpacking to a new directory."""
    store, storage = directory / "store", directory / "storage"
    buildah = ["buildah", "--root", storage / "root", "--runroot", storage / "run", "--storage-driver", "overlay"]
    yield "jobc", [[binary, "import", store, layout]]
    yield "skopeo and umoci", [["skopeo", "--insecure-policy", "copy", f"oci:{layout}:debian", f"oci:{store}:debian"],
                               ["umoci", "unpack", "--image", f"{store}:debian", directory / "bundle"]]
    yield "buildah", [[*buildah, "pull", "--signature-policy", directory / "policy.json", f"oci:{layout}:debian"]]


def once(commands, cold):
    """Seconds of wall time and of CPU time."""
    subprocess.run(["sync"], check=True)
    if cold:
        Path("/proc/sys/vm/drop_caches").write_text("3")
    before, begun = os.times(), time.monotonic()
    output = ""
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{command[0]}: {done.stderr}")
        output = done.stdout
    took, after = time.monotonic() - begun, os.times()
    processor = after.children_user + after.children_system - before.children_user - before.children_system
    return took, processor, output


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=REPOSITORY / "target/release/examples/unpack")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cold", action="store_true", help="drop the page cache of the host before each run")
    options = parser.parse_args()
    layout = image.ensure_image()
    size = sum(path.stat().st_size for path in (layout / "blobs/sha256").iterdir())
    print(f"{size / 2**20:.0f} MiB compressed, load {os.getloadavg()[0]:.1f}, {'cold' if options.cold else 'warm'}")
    with tempfile.TemporaryDirectory(prefix="jobc-bench-", dir=image.CACHE) as name:
        directory = Path(name)
        tools = [name for name, commands in programs(options.binary, layout, directory)
                 if shutil.which(str(commands[0][0])) or print(f"{name}: not installed")]
        times = {name: [] for name in tools}
        peak = 0
        # The first round warms up. Nothing is removed before the end: ext4 skips inodes that were freed within the last minute, which
        # takes longer than creating the files.
        for round_ in range(options.rounds + 1):
            for name in random.sample(tools, len(tools)):
                fresh = directory / f"{round_}-{tools.index(name)}"
                fresh.mkdir()
                (fresh / "policy.json").write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
                commands = dict(programs(options.binary, layout, fresh))[name]
                took, processor, output = once(commands, options.cold)
                if round_ > 0:
                    times[name].append((took, processor))
                if name == "jobc":
                    peak = max(peak, int(output.split()[-1]))
    ours = statistics.median(took for took, _ in times["jobc"])
    for name, list_ in times.items():
        took = statistics.median(took for took, _ in list_)
        processor = statistics.median(processor for _, processor in list_)
        print(f"{name:18} {took:6.2f} s wall, {processor:6.2f} s processor, ours is {ours / took:.2f} of it")
    print(f"peak memory of ours: {peak / 1024:.1f} MiB")


if __name__ == "__main__":
    main()
