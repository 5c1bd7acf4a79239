#!/usr/bin/env python3
"""Runs runc's own tests (`tests/integration/*.bats` of its source) with jobc, runc and crun."""

from bats import run_all
from peer import PEERS, Suite, scratch

TESTS = PEERS / "runc/tests/integration"
# crun waits for ever where runc refuses: `exec` in a paused container.
WITH_TIMEOUT = '#!/bin/sh\nexec timeout --foreground 20 crun "$@"\n'


def main():
    suite = Suite("runc", __doc__)
    if not (PEERS / "runc/built").exists():
        suite.missing("the peers\' tests", "`tests/runtime/peers/install`")
    suite.tool("bats")
    with scratch() as directory:
        runtimes = suite.runtimes(directory)
        if "crun" in runtimes:
            wrapper = directory / "crun"
            wrapper.write_text(WITH_TIMEOUT)
            wrapper.chmod(0o755)
            runtimes["crun"] = str(wrapper)
        run_all(suite, sorted(TESTS.glob("*.bats")), runtimes, lambda runtime: {"RUNC": runtimes[runtime]},
                seconds={"crun": 60})
    suite.finish()


if __name__ == "__main__":
    main()
