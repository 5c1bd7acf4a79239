"""What the tests of peers share: the runtimes, the sandbox, and the lists of tests that are expected not to pass."""

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PEERS = HERE.parents[2] / ".oracles/peers"
RUNTIMES = ("jobc", "runc", "crun")
EITHER, CRIU = "either: ", "criu: "


def expectations(name):
    """The list `expected/NAME`: for each runtime, a test that does not pass and why.

    Lines are `RUNTIME,...: TEST: REASON`. Empty lines and lines that start with # are skipped. A test whose reason starts with `either: `
    may pass, and one whose reason starts with `criu: ` skips itself where criu is not installed, or not for this kernel.
    """
    reasons = {runtime: {} for runtime in RUNTIMES}
    for line in (HERE / "expected" / name).read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            runtimes, test, reason = line.split(": ", 2)
            for runtime in runtimes.split(","):
                assert test not in reasons[runtime], f"expected/{name}: {test}: listed twice for {runtime}"
                reasons[runtime][test] = reason
    return reasons


def files(name, found):
    """What a test has as parameters: the files that were found, and those that a list names, so that the test of one that is gone fails."""
    return sorted({*found, *(test.split()[0] for reasons in expectations(name).values() for test in reasons)})


def in_sandbox(runtime, command, seconds, **more):
    """Runs a command in the sandbox; exit code 124 is a timeout."""
    hybrid = runtime == "crun" and os.path.ismount("/sys/fs/cgroup/unified")
    argv = [HERE / "sandbox", *(["--without-v2"] if hybrid else []), "timeout", "--kill-after=5", str(seconds), *command]
    return subprocess.run(argv, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, check=False, **more)


def expect(result, code, *words):
    """The differences from the expected exit code and texts of either stream, in any case."""
    if result.returncode != code:
        yield f"exit code {result.returncode}, not {code}: {result.stdout.strip()[-300:]} {result.stderr.strip()[-300:]}"
    for word in words:
        if word.lower() not in (result.stdout + result.stderr).lower():
            yield f"`{word}` is not in {result.stdout[-400:]!r} {result.stderr[-400:]!r}"


def name_of(case):
    return case.__name__.replace("_", " ")


def report(cases, subject):
    """In the sandbox: prints each case with its problems as JSON."""
    for case in cases:
        print(json.dumps([name_of(case), list(case(subject))]), flush=True)


def run_cases(runtime, program, file, cases, seconds):
    """Runs cases of a file in the sandbox, by the file itself, and returns the problems of each."""
    ran = in_sandbox(runtime, [sys.executable, "-B", file, program], seconds)
    missing = [f"no result: exit code {ran.returncode}: {ran.stderr.strip()[-800:]}"]
    return {name_of(case): missing for case in cases} | dict(json.loads(line) for line in ran.stdout.splitlines() if line.startswith("["))
