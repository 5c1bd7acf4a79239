#!/usr/bin/env python3
"""Measures pulling from a registry on the loopback address, alternating with skopeo: cold, and with all blobs present.

Uses the release binary (`JOBC` names another) and docker-registry, and prints a table of measurements and goals. The exit code is
1 only if a run fails, or with --strict if a goal is missed.
"""

import argparse
import json
import os
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


def layout(directory, layers, size):
    """An image with this many layers, which gzip compresses to half their size."""
    command = ["umoci", "init", "--layout", directory / "layout"], ["umoci", "new", "--image", f"{directory}/layout:1"]
    for words in command:
        subprocess.run(words, check=True)
    for number in range(layers):
        path = directory / f"file-{number}"
        path.write_bytes(os.urandom(size // 2) + bytes(size // 2))
        subprocess.run(["umoci", "insert", "--image", f"{directory}/layout:1", path, f"/data/{number}"], check=True, stderr=subprocess.DEVNULL)
        path.unlink()
    return directory / "layout"


def timed(command, environment):
    start = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    if status != 0:
        sys.exit(f"failed: {command}: {process.stderr.read().decode()}")
    process.returncode = 0
    return wall, usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--mib", type=int, default=64, help="uncompressed size of a layer")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    jobc = os.environ.get("JOBC", str(Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/jobc"))
    table, report = Table(), {"machine": machine(), "binary": jobc}
    with tempfile.TemporaryDirectory(prefix="jobc-bench-") as directory:
        directory = Path(directory)
        image = layout(directory, options.layers, options.mib * MIB)
        with registry(directory / "registry") as host:
            name = f"{host}/bench/app:1"
            subprocess.run(["skopeo", "copy", "-q", "--dest-tls-verify=false", f"oci:{image}:1", f"docker://{name}"], check=True)
            store, other = directory / "store", directory / "other"
            environment = os.environ | {"HOME": str(directory), "JOBC_IMAGE_ROOT": str(store)}
            ours = [jobc, "image", "pull", "--quiet", "--plain-http", name]
            theirs = ["skopeo", "copy", "-q", "--src-tls-verify=false", f"docker://{name}", f"oci:{other}:1"]
            samples = {"jobc, cold": [], "skopeo, cold": [], "jobc, all of it here": [], "skopeo, all of it here": []}
            # Alternating, so that both see the same load; the first round warms the registry's files and is not counted.
            for number in range(options.runs + 1):
                for who, command, place in (("jobc", ours, store), ("skopeo", theirs, other)):
                    shutil.rmtree(place, ignore_errors=True)
                    for when in ("cold", "all of it here"):
                        sample = timed(command, environment)
                        if number > 0:
                            samples[f"{who}, {when}"].append(sample)
        for what, runs in samples.items():
            wall, processor = (statistics.median(run[part] for run in runs) for part in (0, 1))
            report[what] = {"wall_s": wall, "processor_s": processor, "wall_fastest_s": min(run[0] for run in runs)}
            table.add(f"pull {options.layers} layers of {options.mib} MiB: {what}", f"{wall * 1000:.0f} ms, {processor * 1000:.0f} ms of processors")
        for when in ("cold", "all of it here"):
            ratio = report[f"jobc, {when}"]["wall_s"] / report[f"skopeo, {when}"]["wall_s"]
            table.add(f"jobc beside skopeo, {when}", f"{ratio:.2f} times", "at most 1", ratio <= 1)
    table.print()
    if options.json:
        Path(options.json).write_text(json.dumps(report, indent=2))
    sys.exit(1 if options.strict and table.missed else 0)


if __name__ == "__main__":
    main()
