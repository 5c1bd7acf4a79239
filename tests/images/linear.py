#!/usr/bin/env python3
"""Layers of many directories take linear work: four times the directories take four times the syscalls, counted by strace, so
that a busy host changes nothing. `tests/bench/images/directories.py` measures the time."""

import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runtime"))

from archives import DIRECTORY, file, member  # noqa: E402
from harness import REPOSITORY, Harness  # noqa: E402

FEW, TIMES = 1500, 4
# What does not depend on the number makes the ratio smaller; a quadratic part of a tenth would make it larger than this.
MOST = 1.1 * TIMES


def flat(out, count):
    """Directories next to each other."""
    for number in range(count):
        out.write(member(DIRECTORY, f"many/directory-{number:06}", mode=0o700 + number % 8, mtime=1_500_000_000 + number))


def nested(out, count):
    """Chains of thirty directories, each with its own entry."""
    for number in range(count // 30):
        for depth in range(1, 31):
            out.write(member(DIRECTORY, f"chain-{number}/" + "d/" * depth, mtime=1_500_000_000 + depth))


def implied(out, count):
    """Directories without an entry of their own, each with one file."""
    for number in range(count):
        out.write(file(f"many/{number:06}/file"))


def write(path, shape, count):
    """Writes a layer of so many directories."""
    with path.open("wb") as out:
        shape(out, count)
        out.write(b"\0" * 1024)


def syscalls(binary, directory, path):
    counts = directory / "strace"
    subprocess.run(["strace", "-f", "-c", "-o", counts, binary, "import", directory / "store", path], capture_output=True, check=True)
    total = next(line for line in counts.read_text().splitlines() if line.endswith("total"))
    # Percent, seconds, microseconds per call, calls; then errors, if there were any.
    return int(total.split()[3])


def main():
    harness = Harness("linear", __doc__)
    harness.parse()
    binary = REPOSITORY / "target/debug/examples/unpack"
    if not binary.exists():
        harness.missing("unpack", "`cargo build --example unpack -p jobc-image`")
    harness.tool("strace")
    for shape in (flat, nested, implied):
        if not harness.wants(shape.__name__):
            continue
        counts = []
        for count in (FEW, TIMES * FEW):
            with tempfile.TemporaryDirectory() as name:
                path = Path(name) / "layer.tar"
                write(path, shape, count)
                counts.append(syscalls(binary, Path(name), path))
        few, many = counts
        harness.note(f"{shape.__name__}: {few / FEW:.1f} syscalls a directory for {FEW:,}, {many / TIMES / FEW:.1f} for {TIMES * FEW:,}")
        problem = f"{few:,} syscalls for {FEW:,} directories, {many:,} for {TIMES * FEW:,}"
        # Fewer than one for each would be a count of something else.
        harness.check(shape.__name__, [] if FEW < few and many <= MOST * few else [problem])
    harness.end()


if __name__ == "__main__":
    main()
