"""Layers of many directories, in several shapes."""

from archives import DIRECTORY, file, member


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
