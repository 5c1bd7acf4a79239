#!/usr/bin/env python3
"""Tests container isolation: sixteen promises, each tested with an attack or a mistake that mutations it elsewhere.

`--list` prints them. Each check names the mutations (`mutant.py`) that it must reject; `selftest` runs them.
"""

import os
import sys
from dataclasses import dataclass

import user
from bundle import Roots
from differential import remove_groups
from harness import Harness, scratch
from runtime import Runtime, program


@dataclass
class Check:
    """A promise: its number in the list, its title, the function that tests it, and the mutations that it must reject."""

    number: int
    title: str
    function: object
    mutations: tuple
    rootless: bool
    place: str


CHECKS = []


def check(number, title, mutations, rootless=True, place="root"):
    """Registers a function that yields problems. `place` is where the mutations are run: `root` (on any host), `v2` (on cgroup v2),
    or `single` (as a user without a range of ids)."""
    def register(function):
        CHECKS.append(Check(number, title, function, mutations, rootless, place))
        return function
    return register


def main():
    import checks_names
    import checks_life
    import checks_paths
    import checks_process

    assert checks_names and checks_life and checks_paths and checks_process
    CHECKS.sort(key=lambda each: each.number)
    harness = Harness("security", __doc__.split("\n", maxsplit=1)[0])
    harness.parser.add_argument("--user", choices=("root", "range", "single"), default="root")
    harness.parser.add_argument("--races", type=int, default=40, metavar="N", help="starts against a racer, for each target")
    harness.parser.add_argument("--exchanges", type=int, default=100_000, metavar="N", help="minimum number of exchanges by a racer")
    harness.parser.add_argument("--list", action="store_true", help="print the checks with their mutations")
    options = harness.parse()
    if options.list:
        for each in CHECKS:
            print(f"{each.number}\t{each.title}\t{' '.join(each.mutations)}\t{each.place}")
        return
    if os.geteuid() != 0:
        harness.missing("root")
    account = {"root": None, "range": user.with_range, "single": user.without_range}[options.user]
    account = account() if account else None
    with scratch() as directory:
        roots = Roots(directory, harness.tool("busybox"))
        for each in CHECKS:
            name = f"{each.number}. {each.title}"
            if not harness.wants(name) or account and not each.rootless:
                continue
            place = directory / f"check-{CHECKS.index(each)}"
            place.mkdir()
            fixture = Fixture(harness, Runtime(program(harness, directory), place, account), roots, place, account)
            try:
                harness.check(name, each.function(fixture))
            finally:
                fixture.close()
                remove_groups(f"check-{os.getpid()}")
    harness.end()


if __name__ == "__main__":
    sys.modules["security"] = sys.modules["__main__"]
    from fixture import Fixture

    main()
