#!/usr/bin/env python3
"""Measures unpacking layers of many directories, in memory: seconds of processors per 100,000 directories, and the peak memory.

    tests/bench/images/directories.py [--binary PATH] [--shape flat|nested|implied] [--counts N,N,...]

Needs `cargo build --release --example unpack -p jobc-image`, and /dev/shm for some gigabytes. `tests/images/layers.py` has the
shapes, and `test_linear.py` tests that the number of syscalls is linear.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/images"), str(ROOT / "tests/runtime"), str(ROOT / "tests/bench")]
import layers  # noqa: E402
from report import machine  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--binary", default=target / "release/examples/unpack")
    parser.add_argument("--shape", choices=("flat", "nested", "implied"), default="flat")
    parser.add_argument("--counts", default="50000,100000,200000,400000")
    options = parser.parse_args()
    print(f"{machine()['processor']}, load {os.getloadavg()[0]:.2f}, shape {options.shape}")
    for count in map(int, options.counts.split(",")):
        with tempfile.TemporaryDirectory(prefix="jobc-bench-", dir="/dev/shm") as name:
            path = Path(name) / "layer.tar"
            layers.write(path, getattr(layers, options.shape), count)
            begun = os.times()
            result = subprocess.run([options.binary, "import", f"{name}/store", path], capture_output=True, text=True, check=False)
            if result.returncode != 0:
                sys.exit(f"{count} directories: {result.stderr.strip()}")
            ended = os.times()
            user, system = ended.children_user - begun.children_user, ended.children_system - begun.children_system
            peak = int(result.stdout.split("\n")[-2].split()[1])
            print(f"{count:>9,} directories: {user:6.2f} s user, {system:6.2f} s system, {(user + system) / count * 1e5:6.2f} s per 100,000, "
                  f"{peak / 1024:5.1f} MiB")


if __name__ == "__main__":
    main()
