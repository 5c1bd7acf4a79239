"""Runs tests with a mutation of what they test, which they must find (`selftest.py` of a suite)."""

import os
import re
import subprocess
import sys
from pathlib import Path

# A failed check, and not an error of the test itself.
FAILED = re.compile(r"^FAILED \S+.* - (assert|AssertionError|Failed)(?!.*its process ended)", re.MULTILINE)


def assert_found(tests, expression, runtime, cwd=None, **environment):
    """A test of `tests`, a path or an id below `tests/`, that the expression selects (`pytest -k`) fails with this runtime."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "JOBC_TEST_", "JOBC_RESULTS", "JOBC_TRIES"))}
    words = [sys.executable, "-m", "pytest", "-n", "0", str(Path(__file__).parent / tests), "-k", expression, "--runtime", str(runtime)]
    ran = subprocess.run(words, env=inherited | environment | {"COLUMNS": "1000"}, cwd=cwd, capture_output=True, text=True, errors="replace", check=False)
    assert ran.returncode == 1 and FAILED.search(ran.stdout), f"exit code {ran.returncode}, no check has failed: {ran.stdout[-4000:]}{ran.stderr[-1000:]}"
