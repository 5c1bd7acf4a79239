#!/usr/bin/env python3
"""The packaging scripts: shellcheck, versions that agree, release notes, what an ELF file needs, archives that can be reproduced."""

import hashlib
import os
import re
import shutil
import sys
from pathlib import Path

from releases import PACKAGING, REPOSITORY, Harness, expect, ran, scratch

sys.path.insert(0, str(PACKAGING))
from elf import read_elf  # noqa: E402


def venv_tool(harness, name):
    """A program of .oracles/venv, or of PATH; None, with a note or a failure, if it is missing."""
    path = REPOSITORY / ".oracles/venv/bin" / name
    found = str(path) if path.exists() else shutil.which(name)
    if not found:
        harness.lacks(name, name)
    return found


def shellcheck(program):
    for script in ("packaging/install.sh", "packaging/stage"):
        yield from expect(ran([program, "--enable=check-set-e-suppressed", "--exclude=SC2310,SC2311,SC2312", script], cwd=REPOSITORY))


def versions(directory):
    """`packaging/version` changes every place, and `--check` finds one that differs."""
    yield from expect(ran([PACKAGING / "version", "--check"]))
    copy = directory / "tree"
    members = re.search(r"members = \[(.*)\]", (REPOSITORY / "Cargo.toml").read_text())[1].replace('"', "").split(", ")
    for name in ["Cargo.toml", "Cargo.lock", "pyproject.toml", "packaging/version", "packaging/common.py", "docs/start/install.md",
                 "editors/vscode/package.json", "editors/vscode/package-lock.json", *(f"{member}/Cargo.toml" for member in members)]:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, copy / name)
    before = (copy / "Cargo.lock").read_text().splitlines()
    yield from expect(ran([copy / "packaging/version", "7.8.9-rc.1"]), 0, "7.8.9-rc.1")
    yield from expect(ran([copy / "packaging/version", "--check"]), 0, "version 7.8.9-rc.1")
    after = (copy / "Cargo.lock").read_text().splitlines()
    changed = [line for old, line in zip(before, after, strict=True) if old != line]
    if changed != ['version = "7.8.9-rc.1"'] * len(members):
        yield f"{len(changed)} changed lines in Cargo.lock, expected {len(members)}: {sorted(set(changed))}"
    yield from expect(ran([copy / "packaging/version", "7.8"]), 1, "invalid version")
    for name in ("pyproject.toml", "editors/vscode/package.json", "Cargo.lock"):
        text = (copy / name).read_text()
        (copy / name).write_text(text.replace("7.8.9-rc.1", "7.8.8", 1))
        yield from expect(ran([copy / "packaging/version", "--check"]), 1, f"{name}: version 7.8.8")
        (copy / name).write_text(text)


def notes(directory):
    (directory / "packaging").mkdir()
    for name in ("notes-of", "common.py"):
        shutil.copy(PACKAGING / name, directory / "packaging")
    (directory / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\n## 1.1.0 (2026-12-01)\n\n### Added\n\n* New.\n\n## 1.0.0\n\n* Old.\n")
    program = directory / "packaging/notes-of"
    for version, text in (("1.1.0", "### Added\n\n* New.\n"), ("1.0.0", "* Old.\n")):
        printed = ran([program, version])
        yield from expect(printed)
        if printed.stdout != text:
            yield f"{version}: {printed.stdout!r}"
    yield from expect(ran([program, "1.0"]), 1, "no section `## 1.0`")
    yield from expect(ran([program, "Unreleased"]), 1, "is empty")
    yield from expect(ran([PACKAGING / "notes-of", "Unreleased"]))


def elf_versions(readelf):
    """What elf.py reads is what binutils' readelf prints, for programs and libraries of this host."""
    compared = 0
    for name in ("bash", "git", "curl", "python3", "gcc", "mount"):
        path = shutil.which(name)
        if not path or Path(path).read_bytes()[:4] != b"\x7fELF":
            continue
        found, compared = read_elf(path), compared + 1
        printed = ran([readelf, "--wide", "--version-info", "--dynamic", path]).stdout
        glibc = max(tuple(map(int, each.split("."))) for each in re.findall(r"Name: GLIBC_([0-9.]+)", printed))
        libraries = tuple(re.findall(r"\(NEEDED\).*\[(.*)\]", printed))
        if (found.glibc, found.libraries) != (glibc, libraries):
            yield f"{name}: {found}, but readelf prints {glibc} {libraries}"
    if compared < 2:
        yield f"{compared} programs compared"


def reproducible(directory):
    """The same tree gives the same archive, in another place, at other times and with another umask; other bytes give another one."""
    sums = []
    for name, epoch, text in (("a", "1700000000", b"x"), ("b", "1700000000", b"x"), ("c", "1700000000", b"y"), ("d", "1700000001", b"x")):
        tree = directory / name / "tree"
        (tree / "bin").mkdir(parents=True)
        shutil.copy("/bin/bash", tree / "bin/jobc")
        (tree / "file").write_bytes(text)
        (tree / "file").chmod(0o600 if name == "b" else 0o644)
        environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch}
        out = directory / name / "out"
        for command in ([PACKAGING / "archive", tree, out], [PACKAGING / "archive", "--sums", out]):
            yield from expect(ran(command, env=environment))
        packed, = out.glob("*.tar.gz")
        sums.append(hashlib.sha256(packed.read_bytes()).hexdigest())
        if (out / "SHA256SUMS").read_text() != f"{sums[-1]}  {packed.name}\n":
            yield f"SHA256SUMS: {(out / 'SHA256SUMS').read_text()}"
    if sums[0] != sums[1] or len(set(sums)) != 3:
        yield f"sums {sums}"


def main():
    harness = Harness("sources", __doc__)
    harness.parse()
    if program := venv_tool(harness, "shellcheck"):
        harness.check("shellcheck", shellcheck(program))
    for check in (versions, notes, reproducible):
        if harness.wants(check.__name__):
            with scratch() as directory:
                harness.check(check.__name__, check(directory))
    readelf = shutil.which("readelf")
    if readelf and harness.wants("elf"):
        harness.check("elf", elf_versions(readelf))
    harness.end()


main()
