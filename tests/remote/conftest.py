import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import needs
from harness import REPOSITORY, scratch


@pytest.fixture(scope="session")
def program(pytestconfig):
    """The `jobc` to test."""
    path = Path(pytestconfig.option.runtime or os.environ.get("JOBC", REPOSITORY / "target/debug/jobc")).resolve()
    return path if path.exists() else needs.missing("jobc", "`cargo build`")


@pytest.fixture(scope="module")
def shared():
    """A directory for the tests of a module, which every user may enter."""
    with scratch() as directory:
        yield directory


@pytest.fixture
def place(program):
    """A user's directory, and a stand-in cluster of its own."""
    from place import Place

    needs.tool("openssl")
    with scratch() as directory:
        place = Place(directory, program)
        yield place
        place.close()


@pytest.fixture
def registry(place):
    """A stand-in for a registry."""
    from registry import Registry

    registry = Registry()
    place.registry(registry)
    yield registry
    registry.close()
