"""Namespaces of a test's own, so that other jobs on the host and their claims, names and ports do not matter."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import user
from command_line import Jobs, copy_program
from harness import REPOSITORY, scratch

NAMESPACES = ["--pid", "--mount", "--net", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"]


@contextmanager
def jobs_of(harness):
    """This tree's command line as root, or as the user of `--user`, in its own pid, mount and network namespaces."""
    harness.parser.add_argument("--user", choices=["root", "range", "single"], default="root",
                              help="run as root, or as an unprivileged user with or without a range of ids")
    options = harness.parse()
    if os.geteuid() != 0:
        harness.missing("root")
    for tool in ("unshare", "setpriv", "mount", "ip"):
        harness.tool(tool)
    if os.getpid() != 1:
        os.execvp("unshare", ["unshare", *NAMESPACES, sys.executable, *sys.argv])
    for place, mode in (("/tmp", "1777"), ("/run", "755"), ("/dev/shm", "1777")):
        subprocess.run([REPOSITORY / "tests/fresh", place, mode], check=True)
    Path("/run/lock").mkdir()
    os.chmod("/run/lock", 0o1777)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    account = {"root": lambda: None, "range": user.with_range, "single": user.without_range}[options.user]()
    with scratch() as directory:
        yield Jobs(copy_program(directory), directory, account)


def problems(case, jobs, *more):
    """The problems of a case; kills the jobs that it left."""
    try:
        yield from case(jobs, *more)
    except (AssertionError, LookupError, TypeError, TimeoutError, ValueError, subprocess.SubprocessError) as error:
        yield f"{type(error).__name__}: {error}"
    finally:
        for name in jobs.call("ps", "--quiet").stdout.split():
            jobs.call("kill", name)
