"""What the tests of the runtime share."""

import os
import subprocess

import pytest

import needs
from bundle import HERE, Roots
from fixture import Fixture
from harness import scratch
from runtime import Runtime, program, remove_groups

collect_ignore = ["peers"]  # they have a suite of their own


def pytest_configure(config):
    config.addinivalue_line("markers", "promise(number, mutations, place): a security promise, and how `selftest.py` breaks it")


@pytest.fixture(scope="module")
def directory():
    """A directory that every user may enter, for the tests of a module."""
    with scratch() as path:
        yield path


@pytest.fixture(scope="module")
def roots(directory):
    return Roots(directory, needs.tool("busybox"))


@pytest.fixture(scope="module")
def runtime(request, account, directory):
    """The runtime under test, as the user of the test."""
    place = directory / (account.name if account else "root")
    place.mkdir()
    runtime = Runtime(program(request.config.option.runtime, place), place, account)
    yield runtime
    # Containers of tests that failed.
    for name in os.listdir(runtime.states):
        runtime.delete(name)


@pytest.fixture(scope="module")
def peers(account, runtime, directory):
    """The runtimes that it is compared with, as the same user."""
    place = runtime.states.parent
    return [Runtime(needs.tool(name), place, account) for name in ("runc", "crun") if name != runtime.name]


@pytest.fixture(scope="module")
def inside(directory):
    """The hostile program."""
    subprocess.run(["gcc", "-O1", "-static", "-o", directory / "inside", HERE / "inside.c"], check=True)
    return directory / "inside"


@pytest.fixture
def fixture(request, account, directory, runtime, roots, inside, note):
    """Bundles with a hostile program. JOBC_RACES and JOBC_EXCHANGES say how often a racer is started against, and exchanges paths."""
    races, exchanges = (2, 1000) if request.node.get_closest_marker("vm") else (40, 100_000)
    place = runtime.states.parent / f"check-{len(list(runtime.states.parent.iterdir()))}"
    place.mkdir()
    fixture = Fixture(Runtime(runtime.program, place, account), roots, inside, place, account, note, int(os.environ.get("JOBC_RACES", races)),
                      int(os.environ.get("JOBC_EXCHANGES", exchanges)))
    yield fixture
    fixture.close()
    remove_groups(f"check-{os.getpid()}")
