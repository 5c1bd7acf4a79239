"""Layers of many directories take linear work: four times the directories take four times the syscalls, counted by strace, so
that a busy host changes nothing. `tests/bench/images/directories.py` measures the time."""

import subprocess

import pytest

from layers import flat, implied, nested, write

pytestmark = [pytest.mark.slow, pytest.mark.duration(20), pytest.mark.needs("strace")]

FEW, TIMES = 1500, 4
# What does not depend on the number makes the ratio smaller; a quadratic part of a tenth would make it larger than this.
MOST = 1.1 * TIMES


def syscalls(binary, directory, path):
    counts = directory / "strace"
    subprocess.run(["strace", "-f", "-c", "-o", counts, binary, "import", directory / "store", path], capture_output=True, check=True)
    total = next(line for line in counts.read_text().splitlines() if line.endswith("total"))
    # Percent, seconds, microseconds per call, calls; then errors, if there were any.
    return int(total.split()[3])


@pytest.mark.parametrize("shape", [flat, nested, implied])
def test_four_times_the_directories_take_four_times_the_syscalls(unpack, directory, note, shape):
    counts = []
    for count in (FEW, TIMES * FEW):
        place = directory / f"{count}"
        place.mkdir()
        write(place / "layer.tar", shape, count)
        counts.append(syscalls(unpack, place, place / "layer.tar"))
    few, many = counts
    note(f"{shape.__name__}: {few / FEW:.1f} syscalls a directory for {FEW:,}, {many / TIMES / FEW:.1f} for {TIMES * FEW:,}")
    # Fewer than one for each would be a count of something else.
    assert FEW < few and many <= MOST * few
