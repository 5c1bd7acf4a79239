"""What the peers' suites share: the runtimes, the sandbox, and the lists of tests that are expected not to pass."""

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from harness import REPOSITORY, Harness, scratch  # noqa: E402
from runtime import ours  # noqa: E402

PEERS = REPOSITORY / ".oracles/peers"
RUNTIMES = ("jobc", "runc", "crun")


def expectations(name):
    """The list `expected/NAME`: for each runtime, a test that does not pass and why.

    Lines are `RUNTIME,...: TEST: REASON`. Empty lines and lines that start with # are skipped. A test whose reason starts with `either: `
    may pass.
    """
    reasons = {runtime: {} for runtime in RUNTIMES}
    for line in (HERE / "expected" / name).read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            runtimes, test, reason = line.split(": ", 2)
            for runtime in runtimes.split(","):
                if test in reasons[runtime]:
                    raise SystemExit(f"expected/{name}: {test}: listed twice for {runtime}")
                reasons[runtime][test] = reason
    return reasons


class Suite(Harness):
    """A peer's suite: every test of each runtime passes, or its list says why not."""

    def __init__(self, name, description):
        super().__init__(name, description)
        self.reasons, self.passed, self.total = expectations(name), {}, {}
        self.parse()
        if os.geteuid():
            self.missing("root")
        if not any(line.split(" - ")[1].startswith("cgroup ") for line in Path("/proc/self/mountinfo").read_text().splitlines()):
            self.missing("cgroup v1")
        if not PEERS.exists():
            self.missing("the peers\' tests", "`tests/runtime/peers/install`")

    def runtimes(self, directory, references=True):
        """The runtimes to test by name, with their programs; without `references` only jobc, where `--runtime` names no other."""
        wanted = self.options.runtime
        names = [wanted] if wanted in RUNTIMES else RUNTIMES if references and not wanted else ["jobc"]
        return {name: str(ours(directory) if name == "jobc" else self.tool(name)) for name in names}

    def is_expected(self, runtime, test, problems):
        """Whether a result is the one that the list has."""
        reason = self.reasons[runtime].get(test)
        return bool(problems) == (reason is not None) or (reason or "").startswith("either: ")

    def result(self, runtime, test, problems):
        """Compares the result of one test with the list."""
        problems, reason = list(problems), self.reasons[runtime].pop(test, None)
        self.total[runtime] = self.total.get(runtime, 0) + 1
        self.passed[runtime] = self.passed.get(runtime, 0) + (not problems)
        if reason is None:
            self.check(f"{runtime}: {test}", problems)
        else:
            passes_now = not problems and not reason.startswith("either: ")
            self.check(f"{runtime}: {test}", [f"passes now: remove it from expected/{self.name}"] if passes_now else [])

    def finish(self):
        """Rejects entries of no test, prints the counts of each runtime, and exits."""
        for runtime in self.total if self.options.only is None else ():
            for test in self.reasons[runtime]:
                self.check(f"{runtime}: {test}", [f"there is no such test: remove it from expected/{self.name}"])
        for runtime, total in self.total.items():
            print(f"{self.name}: {runtime} passes {self.passed[runtime]} of {total}")
        self.end()


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


def run_cases(suite, file, cases, seconds):
    """Runs cases of a file in the sandbox, by the file itself with `--inside` and each runtime's program."""
    with scratch() as directory:
        for runtime, program in suite.runtimes(directory).items():
            ran = in_sandbox(runtime, [sys.executable, "-B", file, "--inside", program], seconds)
            found = dict(json.loads(line) for line in ran.stdout.splitlines() if line.startswith("["))
            for case in cases:
                missing = [f"no result: exit code {ran.returncode}: {ran.stderr.strip()[-800:]}"]
                suite.result(runtime, name_of(case), found.get(name_of(case), missing))
    suite.finish()


__all__ = ["HERE", "PEERS", "REPOSITORY", "Suite", "expect", "in_sandbox", "report", "run_cases", "scratch"]
