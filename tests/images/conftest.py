"""What the tests of images share."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import pytest

import needs
from harness import REPOSITORY, scratch
from home import Home
from registry import certificate


@pytest.fixture
def directory():
    """A directory that every user may enter."""
    with scratch() as path:
        yield path


@pytest.fixture(scope="module")
def shared():
    """The same for all tests of a module."""
    with scratch() as path:
        yield path


@pytest.fixture
def home(directory):
    """A home directory, whose image store must be valid in the end."""
    home = Home(directory)
    yield home
    assert not list(home.store_problems())


@pytest.fixture(scope="module")
def ca(shared):
    """A directory with a CA, `ca.pem`, and a certificate for `localhost`, `server.pem`."""
    certificates = shared / "certificates"
    certificates.mkdir()
    certificate(certificates)
    return certificates


@pytest.fixture(scope="session")
def unpack(request):
    """The unpacker: what `--runtime` names, or `runtime/image/examples/unpack.rs`, which does with layers what `jobc run` does."""
    program = Path(request.config.option.runtime or REPOSITORY / "target/debug/examples/unpack")
    return program if program.exists() else needs.missing("unpack", "`cargo build --example unpack -p jobc-image`")
