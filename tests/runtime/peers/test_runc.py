"""Runs runc's own tests (`tests/integration/*.bats` of its source) with jobc, runc and crun."""

import bats
import pytest
from peer import PEERS, files

INSTALLED = PEERS / "runc/built"
TESTS = PEERS / "runc/tests/integration"
# crun waits for ever where runc refuses: `exec` in a paused container.
WITH_TIMEOUT = '#!/bin/sh\nexec timeout --foreground 20 crun "$@"\n'


@pytest.mark.duration(65)
@pytest.mark.needs("bats")
@pytest.mark.parametrize("file", files("runc", (path.stem for path in TESTS.glob("*.bats"))))
def test_its_own_tests_pass(runtime, program, tmp_path, compare, file):
    if runtime == "crun":
        wrapper = tmp_path / "crun"
        wrapper.write_text(WITH_TIMEOUT)
        wrapper.chmod(0o755)
        program = str(wrapper)
    found = bats.run(runtime, TESTS / f"{file}.bats", {"RUNC": program}, seconds=60 if runtime == "crun" else bats.FILE_SECONDS)
    compare(found, lambda test: test.split()[0] == file)
