#!/usr/bin/env python3
"""Measures pulling and unpacking from a registry on the loopback address: jobc, which unpacks layers while they come, beside
skopeo copy and umoci unpack, and jobc unpacking afterwards.

    tests/bench/images/pull_unpack.py [--binary PATH] [--rounds N] [--layers N] [--mib N] [--strict] [--json FILE]

Needs root, docker-registry, skopeo, umoci, and runtime/registry/examples/pull.rs: `cargo build --release --example pull -p
jobc-registry`. Each round runs every program once, in a changing order. Times are medians. The exit code is 1 only if a run
fails, or with --strict if a goal is missed.
"""

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/bench"), str(ROOT / "tests/images")]
from registry import registry  # noqa: E402
from report import MIB, Table, machine  # noqa: E402

GOALS = {"wall": 0.6, "processor": 0.5, "memory": 32 << 10}


def layout(directory, layers, size):
    """An image with this many layers, each of a hundred files that gzip compresses to half their size."""
    for words in (["umoci", "init", "--layout", directory / "layout"], ["umoci", "new", "--image", f"{directory}/layout:1"]):
        subprocess.run(words, check=True)
    for number in range(layers):
        files = directory / f"files-{number}"
        files.mkdir()
        half = size // 200 // 512 * 512
        for name in range(100):
            (files / str(name)).write_bytes(os.urandom(half) + b"text" * (half // 4))
        subprocess.run(["umoci", "insert", "--image", f"{directory}/layout:1", files, f"/data/{number}"], check=True, stderr=subprocess.DEVNULL)
        shutil.rmtree(files)
    return directory / "layout"


def timed(commands, environment):
    """Seconds of wall time and of processors of commands one after the other, and the last one's output."""
    before, begun, output = os.times(), time.perf_counter(), ""
    for command in commands:
        done = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"failed: {command}: {done.stderr}")
        output = done.stdout
    wall, after = time.perf_counter() - begun, os.times()
    return wall, after.children_user + after.children_system - before.children_user - before.children_system, output


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--binary", default=target / "release/examples/pull")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--mib", type=int, default=64, help="uncompressed size of a layer")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    table, report = Table(), {"machine": machine(), "binary": str(options.binary), "load": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory(prefix="jobc-bench-") as directory:
        directory = Path(directory)
        image = layout(directory, options.layers, options.mib * MIB)
        with registry(directory / "registry") as host:
            name = f"{host}/bench/app:1"
            subprocess.run(["skopeo", "copy", "-q", "--dest-tls-verify=false", f"oci:{image}:1", f"docker://{name}"], check=True)
            environment = os.environ | {"HOME": str(directory)}

            def programs(fresh):
                yield "jobc", [[options.binary, fresh / "store", name]]
                yield "jobc, unpacked afterwards", [[options.binary, fresh / "store", name, "--whole"]]
                yield "skopeo and umoci", [["skopeo", "copy", "-q", "--src-tls-verify=false", f"docker://{name}", f"oci:{fresh}/store:1"],
                                           ["umoci", "unpack", "--image", f"{fresh}/store:1", fresh / "bundle"]]

            samples, peak = {who: [] for who, _ in programs(directory)}, 0
            # The first round warms up. Nothing is removed before the end: ext4 skips inodes that were freed within the last minute.
            for number in range(options.rounds + 1):
                for who in random.sample(list(samples), len(samples)):
                    fresh = directory / f"{number}-{list(samples).index(who)}"
                    fresh.mkdir()
                    wall, processor, output = timed(dict(programs(fresh))[who], environment)
                    if number > 0:
                        samples[who].append((wall, processor))
                        if who == "jobc":
                            peak = max(peak, int(output.split()[-1]))
    for who, runs in samples.items():
        wall, processor = (statistics.median(run[part] for run in runs) for part in (0, 1))
        report[who] = {"wall_s": wall, "processor_s": processor}
        table.add(f"pull and unpack {options.layers} layers of {options.mib} MiB: {who}", f"{wall * 1000:.0f} ms, {processor * 1000:.0f} ms of processors")
    ours, theirs = report["jobc"], report["skopeo and umoci"]
    for what in ("wall", "processor"):
        ratio = ours[f"{what}_s"] / theirs[f"{what}_s"]
        table.add(f"jobc beside skopeo and umoci, {what}", f"{ratio:.2f} times", f"at most {GOALS[what]}", ratio <= GOALS[what])
    report["peak_kib"] = peak
    table.add("peak memory of jobc", f"{peak / 1024:.1f} MiB", f"at most {GOALS['memory'] >> 10} MiB", peak <= GOALS["memory"])
    table.print()
    if options.json:
        Path(options.json).write_text(json.dumps(report, indent=2))
    sys.exit(1 if options.strict and table.missed else 0)


if __name__ == "__main__":
    main()
