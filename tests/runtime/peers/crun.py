#!/usr/bin/env python3
"""Runs crun's own tests (`tests/test_*.py` of its source) with jobc, runc and crun."""

import os
import re
from concurrent.futures import ThreadPoolExecutor

from peer import PEERS, Suite, in_sandbox, scratch

SECONDS = 120
# The tests run one after the other in a file; most of the time they wait.
THREADS = 4
TESTS = PEERS / "crun/tests"
# The tests write below their working directory, and one wants process ids of five digits.
PREPARE = """
mkdir "$TMPDIR/work" && chmod 755 "$TMPDIR/work" && cd "$TMPDIR/work"
echo 20000 >/proc/sys/kernel/ns_last_pid
exec python3 -B "$1"
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


def results(runtime, file, program):
    """Each test of a file with what is wrong; `None` for a test that was skipped."""
    environment = os.environ | {"OCI_RUNTIME": program, "INIT": str(PEERS / "crun-init")}
    ran = in_sandbox(runtime, ["sh", "-c", PREPARE, "sh", TESTS / file], SECONDS, env=environment)
    found = re.findall(r"^(not )?ok \d+ - (\S+)( #SKIP)?$", ran.stdout, re.MULTILINE)
    plan = re.search(r"^1\.\.(\d+)$", ran.stdout, re.MULTILINE)
    if ran.returncode or plan is None or int(plan[1]) != len(found):
        yield "all", [f"exit code {ran.returncode}, {len(found)} results: {ran.stderr.strip()[-400:]}"]
    for failed, name, skipped in found:
        yield name, None if skipped else [f"not ok; standard error of the file ends in: {ran.stderr.strip()[-400:]}"] if failed else []


def main():
    suite = Suite("crun", __doc__)
    if not (PEERS / "crun-init").exists():
        suite.missing("the peers\' tests", "`tests/runtime/peers/install`")
    files = sorted(path.name for path in TESTS.glob("test_*.py"))
    with scratch() as directory:
        runtimes = suite.runtimes(directory)
        if "runc" in runtimes:
            wrapper = directory / "runc-without-options-of-crun"
            wrapper.write_text(WRAPPER.replace("PROGRAM", runtimes["runc"]))
            wrapper.chmod(0o755)
            runtimes["runc"] = str(wrapper)
        cases = [(runtime, file, program) for file in files for runtime, program in runtimes.items() if suite.wants(file)]
        with ThreadPoolExecutor(THREADS) as threads:
            for (runtime, file, _), found in zip(cases, threads.map(lambda case: list(results(*case)), cases)):
                for name, problems in found:
                    if problems is None:
                        suite.note(f"{runtime}: skipped by the test itself")
                    else:
                        suite.result(runtime, f"{file.removeprefix('test_').removesuffix('.py')} {name}", problems)
    suite.finish()


if __name__ == "__main__":
    main()
