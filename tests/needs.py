"""What a test needs and a host may lack: a program, a package, root.

A test without it is skipped. It prints a line that the suites count by name:

    NAME: skipped: needs hadolint; `./test --install` installs it

With JOBC_ORACLES=required, which `.ci/run` sets, the same is a failure, and the line says `missing` instead of `skipped`.
"""

import importlib
import os
import re
import shutil
import sys
from pathlib import Path

SKIPPED = 77
INSTALLER = "`./test --install`"
# What no installer gives.
STATES = ("root", "containers", "limits", "cgroup v1", "writable cgroups", "an x86_64 host", "the device nodes that stand for GPUs")
# The needs of a line of output.
LINE = re.compile(r"^(?:\S[^\n]*?: )?(?:skipped|missing): needs (?P<what>[^;\n]+)", re.MULTILINE)


def required():
    """Whether a missing tool is a failure (`.ci/run`) or a skipped test."""
    return os.environ.get("JOBC_ORACLES") == "required"


def line(name, what, installer=None):
    """The line of a test or case that cannot run."""
    more = f"; {installer or INSTALLER} installs it" if installer or what not in STATES else ""
    return f"{name}: {'missing' if required() else 'skipped'}: needs {what}{more}"


def tool(name, installer=None):
    """The path of a program, beside this Python or in PATH; a test of pytest is skipped without it."""
    return shutil.which(name, path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}") or missing(name, installer)


def package(name, distribution=None):
    """A Python module; a test or module of pytest is skipped without it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return missing(distribution or name)


def root():
    """Skips a test of pytest for other users than root."""
    if os.geteuid() != 0:
        missing("root")


def missing(what, installer=None):
    """Ends a test of pytest that cannot run: skipped, or failed if tools are required."""
    import pytest  # the other functions are for hosts without it

    text = line("", what, installer).removeprefix(": ")
    if required():
        pytest.fail(text, pytrace=False)
    pytest.skip(text.removeprefix("skipped: "), allow_module_level=True)


def found(output):
    """How many lines of output name each need."""
    counts = {}
    for match in LINE.finditer(output):
        for what in re.split(r",\s*|\s+and\s+", match["what"].strip()):
            counts[what.strip("`")] = counts.get(what.strip("`"), 0) + 1
    return counts
