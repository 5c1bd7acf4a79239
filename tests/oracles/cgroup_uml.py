#!/usr/bin/env python3
"""Runs `cgroup_write` under a user-mode kernel that mounts the unified tree, so that v2 files are judged on any machine.

The kernel is Debian's `linux.uml`; its root is this machine's files, read-only. It has the controllers cpu, io, memory
and pids. The result is read from the console, since such a kernel's exit code says nothing.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from common import Check

INIT = """#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin PYTHONDONTWRITEBYTECODE=1
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t cgroup2 cgroup2 /sys/fs/cgroup
{python} {script} {roots}
busybox poweroff -f
"""
SECONDS = 120


def boot(kernel, check, scratch):
    """The console's lines from the check that ran inside."""
    script = Path(__file__).resolve().with_name("cgroup_write.py")
    roots = " ".join(f"'{root.resolve()}'" for root in check.roots)
    init = scratch / "init"
    init.write_text(INIT.format(python=sys.executable, script=script, roots=roots))
    init.chmod(0o755)
    done = subprocess.run(
        [kernel, "mem=512M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", f"init={init}", "quiet",
         "con=null", "con0=fd:0,fd:1", "cgroup_no_v1=all", f"uml_dir={scratch}", "umid=oracle"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS)
    return done.stdout.replace("\r", "").splitlines()


def main():
    check = Check("cgroup_uml", "tasks")
    kernel = check.tool("linux.uml")
    check.tool("busybox")
    with tempfile.TemporaryDirectory(prefix="jobc-oracle-") as scratch:
        console = boot(kernel, check, Path(scratch))
    result = re.search(r"^cgroup_write: (\d+) tasks judged, (\d+) refused$", "\n".join(console), re.MULTILINE)
    if result is None:
        print("\n".join(console))
        check.refuse(check.roots[0], "the kernel did not get to the end")
        check.end()
    for line in console[console.index(next(line for line in console if line.startswith("cgroup_write:"))):]:
        if line.startswith(("cgroup_write: ", "    ")) and line != result[0]:
            print(line.replace("cgroup_write:", "cgroup_uml:", 1))
    check.judged, check.refused = int(result[1]), int(result[2])
    check.end()


main()
