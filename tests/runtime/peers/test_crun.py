"""Runs crun's own tests (`tests/test_*.py` of its source) with jobc, runc and crun."""

import os
import re

import pytest
from peer import PEERS, files, in_sandbox

INSTALLED = INIT = PEERS / "crun-init"
SECONDS = 120
TESTS = PEERS / "crun/tests"
# The tests write below their working directory, some start tests/init there, and one wants process ids of five digits.
PREPARE = """
mkdir "$TMPDIR/work" && chmod 755 "$TMPDIR/work" && cd "$TMPDIR/work"
mkdir tests && ln -s "$INIT" tests/init
echo 20000 >/proc/sys/kernel/ns_last_pid
exec python3 -B -c 'import os, runpy, socket, sys
socket.setdefaulttimeout(20)  # one test waits for a connection without an end
sys.path.insert(0, os.path.dirname(sys.argv[1]))
runpy.run_path(sys.argv[1], run_name="__main__")' "$1"
"""
# Options that runc does not have.
WRAPPER = """#!/usr/bin/env bash
words=()
while [ $# -gt 0 ]; do
    case "$1 ${2-}" in
        "--config config.json") shift 2 ;;
        "--cgroup-manager "*) shift 2 ;;
        *) words+=("$1") && shift ;;
    esac
done
exec PROGRAM "${words[@]}"
"""


@pytest.mark.parametrize("file", files("crun", (path.stem.removeprefix("test_") for path in TESTS.glob("test_*.py"))))
def test_its_own_tests_pass(runtime, program, tmp_path, compare, file):
    if runtime == "runc":
        wrapper = tmp_path / "runc-without-options-of-crun"
        wrapper.write_text(WRAPPER.replace("PROGRAM", program))
        wrapper.chmod(0o755)
        program = str(wrapper)
    compare(results_of(runtime, program, TESTS / f"test_{file}.py", INIT), lambda test: test.split()[0] == file)


def results_of(runtime, program, path, init):
    """The problems of each test of a file, or None of one that skipped itself; a test's name begins with its file's."""
    file = path.stem.removeprefix("test_")
    environment = os.environ | {"OCI_RUNTIME": program, "INIT": str(init)}
    ran = in_sandbox(runtime, ["sh", "-c", PREPARE, "sh", path], SECONDS, env=environment)
    found = re.findall(r"^(not )?ok \d+ - (\S+)(.*)$", ran.stdout, re.MULTILINE)
    plan = re.search(r"^1\.\.(\d+)$", ran.stdout, re.MULTILINE)
    problem = f"not ok; standard error of the file ends in: {ran.stderr.strip()[-400:]}"
    results = {f"{file} {name}": None if "SKIP" in rest else [problem] * bool(failed) for failed, name, rest in found}
    if ran.returncode or plan is None or int(plan[1]) != len(found):
        results[f"{file} all"] = [f"exit code {ran.returncode}, {len(found)} results: {ran.stderr.strip()[-400:]}"]
    return results
