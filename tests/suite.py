"""Runs the tests of a suite in parallel: `suite NAME [--quick] [--expect-failure] [--waits] [-c TEST]... [--] [ARGUMENT]...`.

It runs in the suite's directory. Standard input lists the tests, one per line: `FILE ARGUMENT...`, where FILE is FILE.py or FILE.mjs in
the current directory. `vm FILE ARGUMENT...` runs the test in a virtual machine (`tests/vm/uml`). After a tab, a line may give the whole
command instead. A line may start with these, in this order:

    quick:    also run with `--quick`, which `./test` uses without `--all`
    20 s:     duration on two idle processors. The test is stopped after five times that, but not before a minute
    alone:    the test observes the whole host, or later tests need it first: no other test runs at the same time. Virtual machines
              marked `alone` run at the same time, each on its own processor

`-c` selects tests, also tests that are not listed. The arguments are passed to each test. Tests start in the order of the list.

As many tests run at a time as there are processors, or JOBC_TEST_THREADS: most of them wait more than they compute. With `--waits` it
is twice as many: these tests wait nearly all the time. The output of a test is printed when it ends. Exit code 0 is passed, 77 skipped,
everything else failed. What a skipped test or case needs is counted by name (`needs.py`). With `--expect-failure` a command must exit
with 1 and print the counts that a test prints at its end. A test that takes too long fails, and the processes it waits for are printed. With JOBC_TRIES=2, which `.ci/run` sets, a failed test runs once
more at the end, alone; the output says which tests failed once only. The last line has the counts. `in-memory` says where /tmp is.
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import needs

TESTS = Path(__file__).resolve().parent
LINE = re.compile(r"(?P<quick>quick: )?(?:(?P<seconds>\d+) s: )?(?P<alone>alone: )?(?P<words>(?P<name>[^\t]*).*)")
# Duration of a test whose line has none, and how many times its duration a test may take on a busy host.
DEFAULT_SECONDS, TIMEOUT_FACTOR = 60, 5
# The counts that a test prints at its end (`harness.py`, `editor/check.mjs`).
COUNTS = re.compile(rb" checked, | hold")


class Test:
    """A running test, in its own session, so that all processes it started can be stopped."""

    def __init__(self, line, arguments, processor):
        self.line, self.processor, self.timed_out = line, processor, None
        self.started, self.cpu_seconds, self.output = time.monotonic(), 0, tempfile.TemporaryFile()
        pinned = ["taskset", "--cpu-list", str(processor)] if line.alone and line.vm and processor is not None else []
        self.process = subprocess.Popen([*pinned, *line.command(arguments)], stdin=subprocess.DEVNULL, stdout=self.output,
                                        stderr=subprocess.STDOUT, start_new_session=True)

    def has_ended(self):
        """Whether it has ended; then its CPU time is known, with that of all children it waited for."""
        pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
        if pid:
            self.process.returncode, self.cpu_seconds = os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime
        return bool(pid)

    def elapsed(self):
        return time.monotonic() - self.started

    def enforce_timeout(self):
        """Interrupts a test that takes too long, so that it cleans up, and records the processes it waited for."""
        if self.timed_out is None and self.elapsed() > self.line.timeout:
            columns = ["ps", "--sid", str(self.process.pid), "--forest", "--format", "pid,stat,wchan:20,etime,args"]
            processes = subprocess.run(columns, capture_output=True, text=True, errors="replace", check=False).stdout
            self.timed_out = f"timed out after {self.line.timeout} s, {TIMEOUT_FACTOR} times its duration; its processes were\n{processes}"
            self.kill(signal.SIGINT)
        elif self.timed_out is not None and self.elapsed() > self.line.timeout + 20:
            self.kill(signal.SIGKILL)

    def read_output(self):
        self.output.seek(0)
        return self.output.read()

    def kill(self, number):
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass


class Line:
    """A line of the list."""

    def __init__(self, text):
        match = LINE.fullmatch(text)
        self.name, self.words, self.quick, self.alone = match["name"], match["words"], bool(match["quick"]), bool(match["alone"])
        self.vm, self.timeout = self.name.startswith("vm "), max(int(match["seconds"] or DEFAULT_SECONDS), 12) * TIMEOUT_FACTOR
        self.tries = 1

    def command(self, arguments):
        name, tab, command = self.words.partition("\t")
        if tab:
            return shlex.split(command) + arguments
        words = shlex.split(name)
        vm = [str(TESTS / "vm/uml"), "-t", str(self.timeout - 10)] if self.vm else []
        file, *more = words[1:] if vm else words
        program = ["node", f"{file}.mjs"] if Path(f"{file}.mjs").exists() else ["python3", f"{file}.py"]
        return [*vm, *program, *more, *arguments]


def report(suite, test, expect_failure, counts, wants, max_tries):
    """Prints the output and result of a test that has ended, and counts it and what it needs. Returns whether the test is to run once more."""
    code, output = test.process.returncode, test.read_output()
    if test.timed_out:
        result = "failed"
    elif expect_failure:
        result = "passed" if code == 1 and COUNTS.search(output) else "skipped" if code == 77 else "failed"
        output = b"" if result == "passed" else output
    else:
        result = {0: "passed", 77: "skipped"}.get(code, "failed")
    again = result == "failed" and not expect_failure and test.line.tries < max_tries
    if not again:
        counts[result] += 1
        for what, times in needs.found(output.decode(errors="replace")).items():
            wants[what] = wants.get(what, 0) + times
    sys.stdout.buffer.write(output)
    if test.timed_out:
        print(f"{suite}: {test.line.name}: {test.timed_out}")
    elif result == "failed":
        print(f"{suite}: {test.line.name}: {f'expected failed cases and exit code 1, got exit code {code}' if expect_failure else 'failed'}")
    elif result == "passed" and test.line.tries > 1:
        print(f"{suite}: {test.line.name}: FLAKY: failed, then passed on try {test.line.tries}")
    if again:
        print(f"{suite}: {test.line.name}: runs once more at the end")
    print(f"{suite}: {test.line.name} took {test.elapsed():.0f} s, {test.cpu_seconds:.0f} s of CPU time", flush=True)
    return again


def lacks(line):
    """What the command itself needs and this host lacks."""
    file = line.words.partition("\t")[0].split()[line.vm]
    if line.vm and not shutil.which("linux.uml"):
        return "linux.uml"
    return "node" if Path(f"{file}.mjs").exists() and not shutil.which("node") else None


def summarize(suite, counts, wants):
    """Prints the counts, appends them to the file that JOBC_RESULTS names, and returns the exit code."""
    print(f"{suite}: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    if path := os.environ.get("JOBC_RESULTS"):
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"suite": suite, **counts, "wants": wants}) + "\n")
    if counts["failed"]:
        return 1
    return 0 if counts["passed"] else needs.SKIPPED


def may_start(line, running):
    """Whether a test may start while these run."""
    if line.alone:
        return all(test.line.alone and test.line.vm for test in running) if line.vm else not running
    return not any(test.line.alone for test in running)


def main():
    if "JOBC_TMP" not in os.environ:
        os.execv(TESTS / "in-memory", [str(TESTS / "in-memory"), sys.executable, *sys.argv])
    suite, *words = sys.argv[1:]
    options = set()
    while words[:1] and words[0] in ("--quick", "--expect-failure", "--waits"):
        options.add(words.pop(0))
    expect_failure, selected = "--expect-failure" in options, []
    while words[:1] == ["-c"]:
        selected, words = [*selected, words[1]], words[2:]
    arguments = words[words[:1] == ["--"]:]
    listed = [Line(text) for text in sys.stdin.read().splitlines() if text]
    by_name = {line.name: line for line in listed}
    waiting = [by_name.get(name) or Line(name) for name in selected] or [line for line in listed if line.quick or "--quick" not in options]
    max_running = int(os.environ.get("JOBC_TEST_THREADS") or len(os.sched_getaffinity(0))) * (1 + ("--waits" in options))
    max_tries = int(os.environ.get("JOBC_TRIES") or 1)
    counts, wants = {"passed": 0, "failed": 0, "skipped": 0}, {}
    running, processors = [], sorted(os.sched_getaffinity(0))
    for line in waiting[:]:
        if what := lacks(line):
            print(needs.line(f"{suite}: {line.name}", what))
            counts["failed" if needs.required() else "skipped"] += 1
            wants[what] = wants.get(what, 0) + 1
            waiting.remove(line)
    # A signal to this process stops the tests it started.
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        while waiting or running:
            while waiting and len(running) < max_running and may_start(waiting[0], running):
                used = {test.processor for test in running}
                free = [each for each in processors if each not in used]
                running.append(Test(waiting.pop(0), arguments, free[0] if free else None))
            time.sleep(0.05)
            for test in running:
                test.enforce_timeout()
            for test in [each for each in running if each.has_ended()]:
                running.remove(test)
                if report(suite, test, expect_failure, counts, wants, max_tries):
                    test.line.tries, test.line.alone = test.line.tries + 1, True
                    waiting.append(test.line)
    finally:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        # A test cleans up when it is interrupted; what does not end by that is killed.
        for number, seconds in ((signal.SIGINT, 10), (signal.SIGKILL, 10)):
            for test in running:
                test.kill(number)
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline and any(test.process.poll() is None for test in running):
                time.sleep(0.05)
    sys.exit(summarize(suite, counts, wants))


if __name__ == "__main__":
    main()
