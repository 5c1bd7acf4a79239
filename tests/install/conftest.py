import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import needs
from harness import REPOSITORY, scratch


def pytest_addoption(parser):
    default = os.environ.get("JOBC_BINARIES", "target/release")
    parser.addoption("--binaries", default=default, help="directory with built programs, from the root of the repository")


def pytest_configure(config):
    # For the processes in which failed tests run once more.
    os.environ["JOBC_BINARIES"] = config.option.binaries


@pytest.fixture(scope="session")
def binaries(pytestconfig):
    """The directory with built programs."""
    directory = REPOSITORY / pytestconfig.option.binaries
    return directory if (directory / "jobc").exists() else needs.missing("built programs", "`tests/install/run`")


@pytest.fixture
def directory():
    """A directory that every user may enter."""
    with scratch() as directory:
        yield directory


@pytest.fixture(scope="module")
def shared():
    """A directory for the tests of a module, which every user may enter."""
    with scratch() as directory:
        yield directory
