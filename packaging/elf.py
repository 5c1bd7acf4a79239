"""Reads from an ELF file what a package must say about it: the architecture and the glibc version that it needs.

The layout is that of the System V ABI, "Object Files"; symbol versions are those of the Linux Standard Base, "Symbol Versioning".
"""

import re
import struct
from dataclasses import dataclass

MACHINES = {62: "x86_64", 183: "aarch64"}
SHT_DYNAMIC, SHT_GNU_VERNEED = 6, 0x6FFFFFFE
DT_NEEDED = 1


@dataclass(frozen=True)
class Elf:
    """An ELF program: its machine, the libraries it loads, and the newest version of glibc it needs, if any."""

    machine: str
    libraries: tuple
    glibc: tuple | None


def text_at(strings, offset):
    return strings[offset:strings.index(b"\0", offset)].decode()


def read_elf(path):
    """Reads a 64-bit little-endian ELF file. Raises ValueError for everything else."""
    with open(path, "rb") as file:
        header = file.read(64)
        if header[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"`{path}` is not a 64-bit little-endian ELF file")
        machine, = struct.unpack_from("<H", header, 18)
        if machine not in MACHINES:
            raise ValueError(f"`{path}` is for unsupported machine {machine}")
        sections_at, = struct.unpack_from("<Q", header, 40)
        size, count = struct.unpack_from("<HH", header, 58)
        file.seek(sections_at)
        table = file.read(size * count)
        sections = [struct.unpack_from("<IIQQQQIIQQ", table, index * size) for index in range(count)]

        def content(section):
            file.seek(section[4])
            return file.read(section[5])

        libraries, versions = [], []
        for section in sections:
            if section[1] == SHT_DYNAMIC:
                strings = content(sections[section[6]])
                for tag, value in struct.iter_unpack("<QQ", content(section)):
                    if tag == DT_NEEDED:
                        libraries.append(text_at(strings, value))
            elif section[1] == SHT_GNU_VERNEED:
                versions += needed_versions(content(section), content(sections[section[6]]), section[7])
    if not sections:
        raise ValueError(f"`{path}` has no section headers")
    glibc = [tuple(map(int, found[1].split("."))) for name in versions if (found := re.fullmatch(r"GLIBC_([0-9.]+)", name))]
    return Elf(MACHINES[machine], tuple(libraries), max(glibc, default=None))


def needed_versions(data, strings, count):
    """The names of a .gnu.version_r section: one Verneed per library, with a chain of Vernaux."""
    at = 0
    for _ in range(count):
        _, auxiliaries, _, first, following = struct.unpack_from("<HHIII", data, at)
        auxiliary = at + first
        for _ in range(auxiliaries):
            _, _, _, name, step = struct.unpack_from("<IHHII", data, auxiliary)
            yield text_at(strings, name)
            auxiliary += step
        at += following
