"""Runs the 58 validation programs of the OCI runtime-tools with jobc, runc and crun."""

import os
import re

import pytest
from peer import PEERS, files, in_sandbox

INSTALLED = PROGRAMS = PEERS / "validation/programs"
SECONDS = 150
# Both are read from the working directory, which is the program's own.
PREPARE = 'cd "$TMPDIR" && cp "$1/runtimetest" "$1"/rootfs-* . && exec "$1/programs/$2"'


def problems(result):
    """What a report in the Test Anything Protocol says against the runtime.

    Some programs write several reports. Programs whose only report is their exit code write none, and those whose only report is the
    text of an error write a plan of 0 results.
    """
    out = result.stdout
    results = re.findall(r"^((?:not )?ok \d+ .*)", out, re.MULTILINE)
    failed = [line for line in results if line.startswith("not ok") and "# TODO" not in line]
    plans = [int(plan) for plan in re.findall(r"^1\.\.(\d+)", out, re.MULTILINE)]
    if result.returncode:
        yield f"exit code {result.returncode}: {result.stderr.strip()[-400:]}"
    yield from failed
    if results and sum(plans) != len(results):
        yield f"{sum(plans)} results planned, {len(results)} written"
    if not results and '"error"' in out:
        yield out


@pytest.mark.parametrize("name", files("validation", (path.name for path in PROGRAMS.glob("*"))))
def test_a_validation_program_passes(runtime, program, compare, name):
    assert (PROGRAMS / name).exists(), "remove it from expected/validation"
    command = ["sh", "-c", PREPARE, "sh", PROGRAMS.parent, name]
    compare({name: list(problems(in_sandbox(runtime, command, SECONDS, env=os.environ | {"RUNTIME": program})))}, name.__eq__)
