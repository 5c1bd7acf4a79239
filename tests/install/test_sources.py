"""The packaging scripts: shellcheck, versions that agree, release notes, what an ELF file needs, archives that can be reproduced."""

import hashlib
import os
import re
import shutil
import sys
from pathlib import Path

import needs
import pytest
from releases import PACKAGING, REPOSITORY, expect, ran, succeeds

sys.path.insert(0, str(PACKAGING))
from elf import read_elf

# What `packaging/version` reads, beside the manifests of the crates.
VERSIONED = ["Cargo.toml", "Cargo.lock", "pyproject.toml", "packaging/version", "packaging/common.py", "docs/start/install.md",
             "editors/vscode/package.json", "editors/vscode/package-lock.json"]


def elf_programs():
    """Programs of this host that are ELF files."""
    for name in ("bash", "git", "curl", "python3", "gcc", "mount"):
        path = shutil.which(name)
        if path and Path(path).read_bytes()[:4] == b"\x7fELF":
            yield path


@pytest.mark.parametrize("script", ["packaging/install.sh", "packaging/stage"])
def test_shellcheck_has_no_findings(script):
    succeeds(needs.tool("shellcheck"), "--enable=check-set-e-suppressed", "--exclude=SC2310,SC2311,SC2312", script, cwd=REPOSITORY)


def test_a_new_version_changes_every_place_and_one_that_differs_is_found(directory):
    succeeds(PACKAGING / "version", "--check")
    members = re.search(r"members = \[(.*)\]", (REPOSITORY / "Cargo.toml").read_text())[1].replace('"', "").split(", ")
    for name in [*VERSIONED, *(f"{member}/Cargo.toml" for member in members)]:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, directory / name)
    program, before = directory / "packaging/version", (directory / "Cargo.lock").read_text().splitlines()
    expect(ran([program, "7.8.9-rc.1"]), 0, "7.8.9-rc.1")
    expect(ran([program, "--check"]), 0, "version 7.8.9-rc.1")
    after = (directory / "Cargo.lock").read_text().splitlines()
    assert [line for old, line in zip(before, after, strict=True) if old != line] == ['version = "7.8.9-rc.1"'] * len(members)
    expect(ran([program, "7.8"]), 1, "invalid version")
    for name in ("pyproject.toml", "editors/vscode/package.json", "Cargo.lock"):
        text = (directory / name).read_text()
        (directory / name).write_text(text.replace("7.8.9-rc.1", "7.8.8", 1))
        expect(ran([program, "--check"]), 1, f"{name}: version 7.8.8")
        (directory / name).write_text(text)


def test_release_notes_are_the_section_of_the_version(directory):
    (directory / "packaging").mkdir()
    for name in ("notes-of", "common.py"):
        shutil.copy(PACKAGING / name, directory / "packaging")
    (directory / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\n## 1.1.0 (2026-12-01)\n\n### Added\n\n* New.\n\n## 1.0.0\n\n* Old.\n")
    program = directory / "packaging/notes-of"
    assert succeeds(program, "1.1.0").stdout == "### Added\n\n* New.\n"
    assert succeeds(program, "1.0.0").stdout == "* Old.\n"
    expect(ran([program, "1.0"]), 1, "no section `## 1.0`")
    expect(ran([program, "Unreleased"]), 1, "is empty")
    succeeds(PACKAGING / "notes-of", "Unreleased")


@pytest.mark.parametrize("path", list(elf_programs()))
def test_the_needs_of_an_elf_file_are_those_that_readelf_prints(path):
    printed, found = ran([needs.tool("readelf"), "--wide", "--version-info", "--dynamic", path]).stdout, read_elf(path)
    assert found.glibc == max(tuple(map(int, each.split("."))) for each in re.findall(r"Name: GLIBC_([0-9.]+)", printed))
    assert found.libraries == tuple(re.findall(r"\(NEEDED\).*\[(.*)\]", printed))


def test_the_same_tree_gives_the_same_archive(directory):
    """In another place, at other times and with another umask; other bytes give another one."""
    sums = []
    for name, epoch, text in (("a", "1700000000", b"x"), ("b", "1700000000", b"x"), ("c", "1700000000", b"y"), ("d", "1700000001", b"x")):
        tree, out = directory / name / "tree", directory / name / "out"
        (tree / "bin").mkdir(parents=True)
        shutil.copy("/bin/bash", tree / "bin/jobc")
        (tree / "file").write_bytes(text)
        (tree / "file").chmod(0o600 if name == "b" else 0o644)
        environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch}
        succeeds(PACKAGING / "archive", tree, out, env=environment)
        succeeds(PACKAGING / "archive", "--sums", out, env=environment)
        packed, = out.glob("*.tar.gz")
        sums.append(hashlib.sha256(packed.read_bytes()).hexdigest())
        assert (out / "SHA256SUMS").read_text() == f"{sums[-1]}  {packed.name}\n"
    assert sums[0] == sums[1] and len(set(sums)) == 3
