#!/usr/bin/env python3
"""Runs the 58 validation programs of the OCI runtime-tools with jobc, runc and crun."""

import os
import re
from concurrent.futures import ThreadPoolExecutor

from peer import PEERS, Suite, in_sandbox, scratch

SECONDS = 150
# Most of a program's time is sleep: it asks for the state once a second.
THREADS = 6
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


def main():
    suite = Suite("validation", __doc__)
    programs = PEERS / "validation/programs"
    names = sorted(os.listdir(programs)) if programs.exists() else suite.missing("the peers\' tests", "`tests/runtime/peers/install`")
    with scratch() as directory:
        runtimes = suite.runtimes(directory)

        def run(case):
            runtime, name = case
            command = ["sh", "-c", PREPARE, "sh", programs.parent, name]
            return in_sandbox(runtime, command, SECONDS, env=os.environ | {"RUNTIME": runtimes[runtime]})

        cases = [(runtime, name) for name in names for runtime in runtimes if suite.wants(name)]
        again = []
        with ThreadPoolExecutor(THREADS) as threads:
            for (runtime, name), result in zip(cases, threads.map(run, cases)):
                found = list(problems(result))
                if not suite.is_expected(runtime, name, found):
                    # The programs wait for fixed times, which are short on a busy host.
                    suite.note(f"{runtime}: {name}: ran once more, alone")
                    again.append((runtime, name))
                else:
                    suite.result(runtime, name, found)
        for runtime, name in again:
            suite.result(runtime, name, problems(run((runtime, name))))
    suite.finish()


if __name__ == "__main__":
    main()
