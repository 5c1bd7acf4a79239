#!/usr/bin/env python3
"""The Python wheel, from an index on loopback: pip in a clean environment and `uvx`, as an unprivileged user; the source distribution.

It prints the time of `uvx jobc check` with an empty cache, from the start to the first finding.
"""

import os
import shutil
import sys
import tarfile
import time
import zipfile
from pathlib import Path

from releases import NOBODY, PACKAGING, REPOSITORY, Harness, expect, files_below, older_packaging, ran, scratch, server

BINARIES = Path(os.environ.get("JOBC_BINARIES") or REPOSITORY / "target/release")
JOB = "version: 1\nname: hello\nimage: python:3.12-slim\nroles:\n  hello:\n    intances: 2\n    run: echo hello\n"
FINDING = "unknown key `intances`"


class Index:
    """A package index (PEP 503) in a directory, and a user with an empty home directory."""

    def __init__(self, directory, address, user):
        self.user, self.home, self.address = user, directory / "home", f"{address}/simple"
        self.home.mkdir()
        (self.home / "job.yaml").write_text(JOB)
        if os.getuid() == 0:
            os.chown(self.home, user, user)

    def run(self, *command):
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "TMPDIR": str(self.home), "PIP_INDEX_URL": self.address,
                       "PIP_CONFIG_FILE": os.devnull, "UV_DEFAULT_INDEX": self.address, "UV_NO_CONFIG": "1", "UV_PYTHON_DOWNLOADS": "never"}
        return ran(command, user=self.user, cwd=self.home, env=environment)


def readable(path):
    """Whether other users may read a file: a Python below root's home directory is for root alone."""
    path = Path(path).resolve()
    return all(each.stat().st_mode & 0o5 == 0o5 or each.stat().st_mode & 0o1 and each.is_dir() for each in [path, *path.parents])


def contents(wheel):
    """The archive is whole, its RECORD names every file, and all manual pages are in it."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        if archive.testzip():
            yield "damaged"
        record = next(name for name in names if name.endswith(".dist-info/RECORD"))
        listed = [line.split(",")[0] for line in archive.read(record).decode().splitlines()]
        if sorted(listed) != sorted(names):
            yield f"RECORD: {sorted(set(listed) ^ set(names))}"
        for program in ("jobc", "jobc-oci", "jobc-nvml"):
            entry = next((each for each in archive.infolist() if each.filename.endswith(f".data/scripts/{program}")), None)
            if not entry or entry.external_attr >> 16 & 0o777 != 0o755:
                yield f"{program}: {entry}"
        if not any(name.endswith("data/share/man/man1/jobc-check.1") for name in names):
            yield "no manual page of `jobc check`"


def listed(project):
    """Writes the index page of a project in a package index."""
    wheels = "".join(f'<a href="{path.name}">{path.name}</a>' for path in sorted(project.glob("*.whl")))
    (project / "index.html").write_text(f"<!DOCTYPE html><html><body>{wheels}</body></html>")


def upgrade(index, python, uv, publish):
    """pip and uv replace the version before by the one that is published then."""
    environment = index.home / "upgraded"
    yield from expect(index.run(python, "-m", "venv", environment))
    pip = [environment / "bin/pip", "--no-cache-dir"]
    yield from expect(index.run(*pip, "install", "--quiet", "jobc"))
    yield from expect(index.run(*pip, "list"), 0, "0.0.1")
    tool = [uv, "tool"]
    if uv:
        yield from expect(index.run(*tool, "install", "--quiet", "--python", python, "jobc"))
        yield from expect(index.run(*tool, "list"), 0, "jobc v0.0.1")
    publish()
    yield from expect(index.run(*pip, "install", "--upgrade", "jobc"))
    if "0.0.1" in index.run(*pip, "list").stdout:
        yield "pip has not upgraded it"
    yield from expect(index.run(environment / "bin/jobc", "check", "job.yaml"), 1, FINDING)
    if uv:
        yield from expect(index.run(*tool, "upgrade", "--no-cache", "jobc"))
        if "jobc v0.0.1" in index.run(*tool, "list").stdout:
            yield "uv has not upgraded it"
        yield from expect(index.run(*tool, "uninstall", "jobc"))
        if (index.home / ".local/bin/jobc").exists():
            yield "left behind: jobc"


def pip(index, python):
    """pip installs it, the programs run, and removing it leaves only the environment."""
    environment = index.home / "venv"
    yield from expect(index.run(python, "-m", "venv", environment))
    before = files_below(environment / "bin")
    yield from expect(index.run(environment / "bin/pip", "install", "--quiet", "--no-cache-dir", "jobc"))
    yield from expect(index.run(environment / "bin/jobc", "check", "job.yaml"), 1, FINDING)
    yield from expect(index.run(environment / "bin/jobc-oci", "--version"), 0, "version")
    yield from expect(index.run(environment / "bin/pip", "uninstall", "--quiet", "--yes", "jobc"))
    if files_below(environment / "bin") != before or (environment / "share/jobc/schemas").exists():
        yield f"left behind: {files_below(environment / 'bin')}"


def uvx(index, uv, python, harness):
    """uvx with an empty cache checks a job."""
    started = time.monotonic()
    ran_once = index.run(uv, "tool", "run", "--python", python, "jobc", "check", "job.yaml")
    took = time.monotonic() - started
    yield from expect(ran_once, 1, FINDING)
    started = time.monotonic()
    yield from expect(index.run(uv, "tool", "run", "--python", python, "jobc", "check", "job.yaml"), 1, FINDING)
    harness.note(f"uvx: {took:.1f} s to the first finding with an empty cache, then {time.monotonic() - started:.1f} s")


def sdist(path):
    """The source distribution has what cargo needs, and the backend and cargo read it."""
    with tarfile.open(path) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}
    missing = {"PKG-INFO", "pyproject.toml", "Cargo.toml", "Cargo.lock", "cli/src/main.rs", "packaging/jobc_backend.py",
               "schemas/job.v1.schema.json", "LICENSE-MIT"} - names
    if missing:
        yield f"missing: {sorted(missing)}"
    with scratch() as directory:
        with tarfile.open(path) as archive:
            archive.extractall(directory, filter="data")
        source, = directory.iterdir()
        yield from expect(ran(["cargo", "metadata", "--locked", "--offline", "--no-deps", "--format-version", "1"], cwd=source), 0, '"jobc"')
        out = directory / "again"
        yield from expect(ran([source / "packaging/wheel", "--sdist", out]))
        if (out / path.name).read_bytes() != path.read_bytes():
            yield "a source distribution made from the source distribution differs"


def main():
    harness = Harness("wheel", __doc__)
    harness.parse()
    uv = REPOSITORY / ".oracles/venv/bin/uv"
    if not (BINARIES / "jobc").exists():
        harness.missing("built programs", "`tests/install/run`")
    # As an unprivileged user, who may not read every Python of root's.
    pythons = [path for name in ("python3", "/usr/bin/python3") if (path := shutil.which(name)) and (os.getuid() or readable(path))]
    python = pythons[0] if pythons else sys.executable
    user = NOBODY if os.getuid() == 0 and pythons else os.getuid()
    if os.getuid() == 0 and not pythons:
        harness.note("as root: no Python that other users may read")
    with scratch() as directory:
        project = directory / "served/simple/jobc"
        project.mkdir(parents=True)
        os.environ.setdefault("SOURCE_DATE_EPOCH", "1790000000")
        harness.check("written", [*expect(ran([PACKAGING / "wheel", BINARIES, project])),
                                  *expect(ran([PACKAGING / "wheel", "--sdist", directory / "sdist"]))])
        wheel, = project.iterdir()
        listed(project)
        harness.note(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB")
        harness.check("contents", contents(wheel))
        source, = (directory / "sdist").iterdir()
        harness.check("sdist", sdist(source))
        with server(directory / "served") as address:
            index = Index(directory, address, user)
            harness.check("pip", pip(index, python))
            program = shutil.copy(uv, directory / "uv") if uv.exists() else None
            if program:
                harness.check("uvx", uvx(index, program, python, harness))
            else:
                harness.lacks("uvx", "uv")
        # An index in which the version before is the newest one, at first.
        old = directory / "older-served/simple/jobc"
        old.mkdir(parents=True)
        harness.check("version before", expect(ran([older_packaging(directory / "older") / "wheel", BINARIES, old])))
        listed(old)
        (directory / "user").mkdir(mode=0o755)
        with server(directory / "older-served") as address:
            index = Index(directory / "user", address, user)
            harness.check("upgrade", upgrade(index, python, program, lambda: (shutil.copy(wheel, old), listed(old))))
    harness.end()


main()
