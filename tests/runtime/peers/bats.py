"""Runs files of bats (the Bash Automated Testing System) in the sandbox, and reads their reports."""

import os
import re

from peer import in_sandbox

# For all tests of a file. bats' own timeout of a test is a process that tests with `wait` wait for.
FILE_SECONDS = 300
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
    """The problems of each test of a file, or None of one that skipped itself; a test's name begins with its file's.

    `prepare` are lines of sh(1) that run in the sandbox before.
    """
    command = ["bash", "-c", f"{prepare}\n{COMMAND.replace('SECONDS', str(seconds))}", "bash", file]
    ran = in_sandbox(runtime, command, seconds + 10, env=os.environ | environment)
    found, planned, lines, count = {}, None, [], 0
    for line in ran.stdout.splitlines():
        if plan := re.fullmatch(r"1\.\.(\d+)", line):
            planned = int(plan[1])
        elif result := RESULT.fullmatch(line):
            count, lines = count + 1, ["not ok"]
            found[f"{file.stem} {result['name']}"] = None if result["skipped"] is not None else lines if result["failed"] else []
        elif line.startswith("#"):
            lines.append(line)
    if planned != count:
        found[f"{file.stem} all"] = [f"exit code {ran.returncode}, {count} of {planned} results: {(ran.stdout + ran.stderr)[-600:]}"]
    return found
