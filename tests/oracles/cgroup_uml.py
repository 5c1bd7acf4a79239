#!/usr/bin/env python3
"""Runs `cgroup_write` under a user-mode kernel that mounts the unified tree, so that v2 files are checked on any host.

The virtual machine is `tests/vm/uml`, which has the controllers cpu, io, memory and pids.
"""

import re
import subprocess
import sys
from pathlib import Path

from common import REPOSITORY, Check

SECONDS = 120


def boot(check):
    """The output of the check that ran inside, as lines."""
    script = Path(__file__).resolve().with_name("cgroup_write.py")
    shown = [word for root in check.roots if check.given for word in ("-w", str(root.resolve()))]
    vm = [REPOSITORY / "tests/vm/uml", "-t", str(SECONDS), "-m", "512M", *shown]
    done = subprocess.run([*vm, sys.executable, script, *(root.resolve() for root in check.roots)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    return done.stdout.splitlines()


def main():
    check = Check("cgroup_uml", "tasks")
    for tool in ("linux.uml", "busybox"):
        check.tool(tool)
    console = boot(check)
    result = re.search(r"^cgroup_write: (\d+) tasks checked, (\d+) failed$", "\n".join(console), re.MULTILINE)
    if result is None:
        print("\n".join(console))
        check.fail(check.roots[0], "the kernel did not get to the end")
        check.end()
    for line in console[console.index(next(line for line in console if line.startswith("cgroup_write:"))):]:
        if line.startswith(("cgroup_write: ", "    ")) and line != result[0]:
            print(line.replace("cgroup_write:", "cgroup_uml:", 1))
    check.checked, check.failed = int(result[1]), int(result[2])
    check.end()


main()
