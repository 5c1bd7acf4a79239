"""Runs the tests of runc's newest release with jobc; those of Debian's release, which are also for the installed runc and crun, are in `test_runc.py`."""

import bats
import needs
import pytest
from peer import PEERS, files

RUNTIMES = ("jobc",)
INSTALLED = PEERS / "runc-newest/built"
TESTS = PEERS / "runc-newest/tests/integration"


@pytest.mark.duration(65)
@pytest.mark.needs("bats")
@pytest.mark.parametrize("file", files("runc_newest", (path.stem for path in TESTS.glob("*.bats"))))
def test_its_own_tests_pass(runtime, program, compare, file):
    if file == "mounts_sshfs":
        needs.tool("sshfs")
    found = bats.run(runtime, TESTS / f"{file}.bats", {"RUNC": program})
    compare(found, lambda test: test.split()[0] == file)
