"""Runs the tests of crun's newest release with jobc; those of Debian's release, which are also for the installed runc and crun, are in `test_crun.py`."""

import pytest
from peer import PEERS, files
from test_crun import results_of

RUNTIMES = ("jobc",)
INSTALLED = INIT = PEERS / "crun-newest/init"
TESTS = PEERS / "crun-newest/tests"


@pytest.mark.duration(20)
@pytest.mark.parametrize("file", files("crun_newest", (path.stem.removeprefix("test_") for path in TESTS.glob("test_*.py"))))
def test_its_own_tests_pass(runtime, program, compare, file):
    compare(results_of(runtime, program, TESTS / f"test_{file}.py", INIT), lambda test: test.split()[0] == file)
