"""The Python wheel, from an index on loopback: pip in a clean environment and `uvx`, as an unprivileged user; the source distribution.

A note has the time of `uvx jobc check` with an empty cache, from the start to the first finding.
"""

import os
import shutil
import sys
import tarfile
import time
import zipfile
from pathlib import Path

import needs
import pytest
from releases import NOBODY, PACKAGING, expect, files_below, older_packaging, ran, server, succeeds

pytestmark = [pytest.mark.slow, pytest.mark.duration(60)]
JOB = "version: 1\nname: hello\nimage: python:3.12-slim\nroles:\n  hello:\n    intances: 2\n    run: echo hello\n"
FINDING = "unknown key `intances`"
# So that the source distribution can be reproduced.
os.environ.setdefault("SOURCE_DATE_EPOCH", "1790000000")


class Index:
    """A package index (PEP 503) in a directory, and a user with an empty home directory."""

    def __init__(self, directory, address, user):
        self.user, self.home, self.address = user, directory / "home", f"{address}/simple"
        self.project = directory / "served/simple/jobc"
        self.project.mkdir(parents=True)
        self.home.mkdir()
        (self.home / "job.yaml").write_text(JOB)
        if os.getuid() == 0:
            os.chown(self.home, user, user)

    def publish(self, wheel):
        shutil.copy(wheel, self.project)
        links = "".join(f'<a href="{path.name}">{path.name}</a>' for path in sorted(self.project.glob("*.whl")))
        (self.project / "index.html").write_text(f"<!DOCTYPE html><html><body>{links}</body></html>")

    def run(self, *command):
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "TMPDIR": str(self.home), "PIP_INDEX_URL": self.address,
                       "PIP_CONFIG_FILE": os.devnull, "UV_DEFAULT_INDEX": self.address, "UV_NO_CONFIG": "1", "UV_PYTHON_DOWNLOADS": "never"}
        return ran(command, user=self.user, cwd=self.home, env=environment)


def readable(path):
    """Whether other users may read a file: a Python below root's home directory is for root alone."""
    path = Path(path).resolve()
    return all(each.stat().st_mode & 0o5 == 0o5 or each.stat().st_mode & 0o1 and each.is_dir() for each in [path, *path.parents])


@pytest.fixture(scope="module")
def python():
    """A Python that the user of the tests may read, or this one."""
    found = [path for name in ("python3", "/usr/bin/python3") if (path := shutil.which(name)) and (os.getuid() or readable(path))]
    return found[0] if found else sys.executable


@pytest.fixture(scope="module")
def user(python):
    """An unprivileged user, if there is a Python for one."""
    return NOBODY if os.getuid() == 0 and readable(python) else os.getuid()


@pytest.fixture
def uv(directory):
    """A copy of uv that every user may run."""
    return shutil.copy(needs.tool("uv"), directory / "uv")


@pytest.fixture(scope="module")
def wheel(binaries, shared):
    succeeds(PACKAGING / "wheel", binaries, shared / "wheel")
    path, = (shared / "wheel").iterdir()
    return path


@pytest.fixture(scope="module")
def old_wheel(binaries, shared):
    """The wheel of the version before."""
    succeeds(older_packaging(shared / "older") / "wheel", binaries, shared / "old-wheel")
    path, = (shared / "old-wheel").iterdir()
    return path


@pytest.fixture
def index(directory, user):
    (directory / "served").mkdir()
    with server(directory / "served") as address:
        yield Index(directory, address, user)


def test_the_wheel_has_all_files_and_its_record_names_them(wheel, note):
    note(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB")
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        modes = {entry.filename: entry.external_attr >> 16 & 0o777 for entry in archive.infolist()}
        record = next(name for name in modes if name.endswith(".dist-info/RECORD"))
        assert sorted(line.split(",")[0] for line in archive.read(record).decode().splitlines()) == sorted(modes)
    for program in ("jobc", "jobc-oci", "jobc-nvml"):
        assert [mode for name, mode in modes.items() if name.endswith(f".data/scripts/{program}")] == [0o755]
    assert any(name.endswith("data/share/man/man1/jobc-check.1") for name in modes)


def test_the_source_distribution_has_what_cargo_needs_and_makes_itself_again(directory):
    succeeds(PACKAGING / "wheel", "--sdist", directory / "sdist")
    path, = (directory / "sdist").iterdir()
    with tarfile.open(path) as archive:
        assert {"PKG-INFO", "pyproject.toml", "Cargo.toml", "Cargo.lock", "cli/src/main.rs", "packaging/jobc_backend.py", "schemas/job.v1.schema.json",
                "LICENSE-MIT"} <= {name.split("/", 1)[1] for name in archive.getnames()}
        archive.extractall(directory / "source", filter="data")
    source, = (directory / "source").iterdir()
    expect(ran(["cargo", "metadata", "--locked", "--offline", "--no-deps", "--format-version", "1"], cwd=source), 0, '"jobc"')
    succeeds(source / "packaging/wheel", "--sdist", directory / "again")
    assert (directory / "again" / path.name).read_bytes() == path.read_bytes()


def test_pip_installs_programs_that_run_and_removes_them(index, wheel, python):
    index.publish(wheel)
    environment = index.home / "venv"
    expect(index.run(python, "-m", "venv", environment))
    before = files_below(environment / "bin")
    expect(index.run(environment / "bin/pip", "install", "--quiet", "--no-cache-dir", "jobc"))
    expect(index.run(environment / "bin/jobc", "check", "job.yaml"), 1, FINDING)
    expect(index.run(environment / "bin/jobc-oci", "--version"), 0, "version")
    expect(index.run(environment / "bin/pip", "uninstall", "--quiet", "--yes", "jobc"))
    assert files_below(environment / "bin") == before and not (environment / "share/jobc/schemas").exists()


def test_uvx_with_an_empty_cache_checks_a_job(index, wheel, python, uv, note):
    index.publish(wheel)
    took = []
    for _ in range(2):
        started = time.monotonic()
        expect(index.run(uv, "tool", "run", "--python", python, "jobc", "check", "job.yaml"), 1, FINDING)
        took.append(time.monotonic() - started)
    note(f"uvx: {took[0]:.1f} s to the first finding with an empty cache, then {took[1]:.1f} s")


def test_pip_upgrades_the_version_before(index, old_wheel, wheel, python):
    index.publish(old_wheel)
    environment = index.home / "upgraded"
    expect(index.run(python, "-m", "venv", environment))
    pip = [environment / "bin/pip", "--no-cache-dir"]
    expect(index.run(*pip, "install", "--quiet", "jobc"))
    expect(index.run(*pip, "list"), 0, "0.0.1")
    index.publish(wheel)
    expect(index.run(*pip, "install", "--upgrade", "jobc"))
    assert "0.0.1" not in expect(index.run(*pip, "list")).stdout
    expect(index.run(environment / "bin/jobc", "check", "job.yaml"), 1, FINDING)


def test_uv_upgrades_the_version_before_and_removes_it(index, old_wheel, wheel, python, uv):
    index.publish(old_wheel)
    expect(index.run(uv, "tool", "install", "--quiet", "--python", python, "jobc"))
    expect(index.run(uv, "tool", "list"), 0, "jobc v0.0.1")
    index.publish(wheel)
    expect(index.run(uv, "tool", "upgrade", "--no-cache", "jobc"))
    assert "jobc v0.0.1" not in index.run(uv, "tool", "list").stdout
    expect(index.run(uv, "tool", "uninstall", "jobc"))
    assert not (index.home / ".local/bin/jobc").exists()
