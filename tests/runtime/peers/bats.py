"""Runs files of bats (the Bash Automated Testing System) in the sandbox, and reads their reports."""

import os
import re
from concurrent.futures import ThreadPoolExecutor

from peer import in_sandbox

# For all tests of a file. bats' own timeout of a test is a process that tests with `wait` wait for.
FILE_SECONDS = 300
# The tests of a file run one after the other; most of the time they wait.
THREADS = 4
# Some tests want a terminal. What a failed test leaves running keeps bats waiting: once all results are there, it may take 5 s.
COMMAND = r"""
report=$TMPDIR/report
printf 'exec bats --tap "%s" >"%s" 2>&1' "$1" "$report" >"$TMPDIR/command"
timeout --foreground --kill-after=5 SECONDS script --quiet --return --command "bash $TMPDIR/command" /dev/null >/dev/null &
ended() { ! kill -0 $! 2>/dev/null; }
until ended; do
    sleep 0.2
    plan=$(sed -n '1s/^1\.\.//p' "$report" 2>/dev/null)
    [ -z "$plan" ] || [ "$(grep -cE '^(not )?ok ' "$report")" -lt "$plan" ] || break
done
for i in $(seq 25); do ended && break; sleep 0.2; done
ended || kill $!
cat "$report"
"""
RESULT = re.compile(r"^(?P<failed>not )?ok \d+ (?P<name>.*?)(?: # skip ?(?P<skipped>.*))?$")


def run(runtime, file, environment, prepare="", seconds=FILE_SECONDS):
    """Each test of a file with what is wrong; `None` and why for a test that skipped itself.

    `prepare` are lines of sh(1) that run in the sandbox before.
    """
    environment = os.environ | environment
    ran = in_sandbox(runtime, ["bash", "-c", f"{prepare}\n{COMMAND.replace('SECONDS', str(seconds))}", "bash", file], seconds + 10, env=environment)
    results, planned = [], None
    for line in ran.stdout.splitlines():
        if plan := re.fullmatch(r"1\.\.(\d+)", line):
            planned = int(plan[1])
        elif result := RESULT.fullmatch(line):
            results.append((result, []))
        elif line.startswith("#") and results:
            results[-1][1].append(line)
    if planned is None or planned != len(results):
        yield "all", [f"exit code {ran.returncode}, {len(results)} of {planned} results: {(ran.stdout + ran.stderr)[-600:]}"], ""
    for result, lines in results:
        if result["skipped"] is not None:
            yield result["name"], None, result["skipped"]
        else:
            yield result["name"], ["\n    ".join(["not ok", *lines[-25:]])] if result["failed"] else [], ""


def run_all(suite, files, runtimes, environment_of, prepare="", seconds=None):
    """Runs the files with each runtime and counts the results; a test's name begins with its file's.

    `seconds` are other timeouts of a file, for some runtimes.
    """
    cases = [(runtime, file) for file in files for runtime in runtimes if suite.wants(file.stem)]
    with ThreadPoolExecutor(THREADS) as threads:
        found = threads.map(lambda case: list(run(*case, environment_of(case[0]), prepare, (seconds or {}).get(case[0], FILE_SECONDS))), cases)
        for (runtime, file), results in zip(cases, found):
            for name, problems, why in results:
                if problems is None:
                    suite.note(f"{runtime}: skipped by the test itself: {why}")
                else:
                    suite.result(runtime, f"{file.stem} {name}", problems)
