"""Marks the tests of the sixteen security promises: each is tested with an attack or a mistake that mutations make elsewhere.

`selftest.py` runs each with the mutations (`mutant.py`) that it must find.
"""

import os

import pytest

# Starts against a racer, for each target.
RACES = int(os.environ.get("JOBC_RACES", 40))


def promise(number, mutations, rootless=True, place="root"):
    """Marks the test of a promise. `place` is where its mutations are run: `root` (on any host), `vm-root` (on
    cgroup v2), or `single` (as a user without a range of ids)."""
    accounts = pytest.mark.accounts("root", "single", slow=("range", "vm-root", "vm-range")) if rootless else pytest.mark.accounts("root", slow="vm-root")

    def mark(test):
        for each in (accounts, pytest.mark.duration(60 * max(1, RACES / 40)), pytest.mark.needs("root", "busybox", "gcc"), pytest.mark.promise(number, mutations, place)):
            test = each(test)
        return test
    return mark
