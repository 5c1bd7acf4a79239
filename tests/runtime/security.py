#!/usr/bin/env python3
"""Judges what keeps a container in: sixteen promises, each tried with an attack or a mistake that breaks it elsewhere.

`--list` prints them. Every check names breakages (`broken.py`) with which it must refuse; `selftest` runs those.
"""

import os
import sys
from dataclasses import dataclass

import user
from bundle import Roots
from differential import remove_groups
from judge import Judge, scratch
from runtime import Runtime, program


@dataclass
class Check:
    """A promise: its number in the list, its words, what tries it, and the breakages it must notice."""

    number: int
    title: str
    attempt: object
    breaks: tuple
    rootless: bool
    place: str


CHECKS = []


def check(number, title, breaks, rootless=True, place="root"):
    """Registers a function that yields what is wrong; `place` is where it notices the breakages, if not for root on any machine:
    `version 2` of cgroups, or a user of a `single` id."""
    def register(attempt):
        CHECKS.append(Check(number, title, attempt, breaks, rootless, place))
        return attempt
    return register


def main():
    import checks_names
    import checks_life
    import checks_paths
    import checks_process

    assert checks_names and checks_life and checks_paths and checks_process
    CHECKS.sort(key=lambda each: each.number)
    judge = Judge("security", __doc__.split("\n", maxsplit=1)[0])
    judge.parser.add_argument("--user", choices=("root", "range", "single"), default="root")
    judge.parser.add_argument("--races", type=int, default=40, metavar="N", help="starts against a racer, each target")
    judge.parser.add_argument("--exchanges", type=int, default=100_000, metavar="N", help="that the racer makes meanwhile, at least")
    judge.parser.add_argument("--list", action="store_true", help="print the checks and the breakages each must notice")
    options = judge.parse()
    if options.list:
        for each in CHECKS:
            print(f"{each.number}\t{each.title}\t{' '.join(each.breaks)}\t{each.place}")
        return
    if os.geteuid() != 0:
        judge.skip("root makes the bundles, also those of an unprivileged user")
    account = {"root": None, "range": user.with_range, "single": user.without_range}[options.user]
    account = account() if account else None
    with scratch() as directory:
        roots = Roots(directory, judge.tool("busybox"))
        for each in CHECKS:
            name = f"{each.number}. {each.title}"
            if not judge.wants(name) or account and not each.rootless:
                continue
            place = directory / f"check-{CHECKS.index(each)}"
            place.mkdir()
            scene = Scene(judge, Runtime(program(judge, directory), place, account), roots, place, account)
            try:
                judge.judge(name, each.attempt(scene))
            finally:
                scene.close()
                remove_groups(f"judge-{os.getpid()}")
    judge.end()


if __name__ == "__main__":
    sys.modules["security"] = sys.modules["__main__"]
    from scene import Scene

    main()
