"""What the conformance tests share: counting and printing of results, skipping, scratch directories.

A test prints one line for each failed case, one for each note, and one with its counts.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.append(str(REPOSITORY / "tests"))

import needs  # noqa: E402


class Harness:
    """Counts the cases of a test, prints each failure, and exits with 0, 1, or 77 if the test was skipped."""

    def __init__(self, name, description):
        self.name, self.checked, self.failed, self.lacking, self.notes = name, 0, 0, 0, {}
        # A background process may have inherited these as ignored; so would everything it starts.
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            if signal.getsignal(number) == signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        self.parser = argparse.ArgumentParser(prog=name, description=description)
        self.parser.add_argument("--runtime", default=os.environ.get("RUNTIME"),
                                 help="runtime to test: a path, `runc` or `crun` [default: the `jobc` of this tree]")
        self.parser.add_argument("--only", metavar="TEXT", help="run only the cases whose name contains TEXT")
        needs.watch(name)
        self.options, self.since = None, time.monotonic()

    def parse(self):
        self.options = self.parser.parse_args()
        return self.options

    def wants(self, case):
        """Whether `--only` selects this case."""
        return self.options.only is None or self.options.only in case

    def check(self, case, problems):
        """Counts one case. `problems` are lines; a case without problems passes."""
        problems = list(problems)
        self.checked += 1
        took, self.since = time.monotonic() - self.since, time.monotonic()
        if problems:
            self.failed += 1
            print(f"{self.name}: {case}: " + "\n    ".join(problems), flush=True)
        elif os.environ.get("JOBC_VERBOSE"):
            print(f"{self.name}: {case}: passed, {took:.1f} s", flush=True)

    def note(self, text, times=1):
        """Adds a note to the result; equal notes are counted."""
        self.notes[text] = self.notes.get(text, 0) + times

    def tool(self, name):
        """The path of a program; skips the test without it."""
        return shutil.which(name) or self.missing(name)

    def missing(self, what, installer=None):
        """Ends a test that cannot run: skipped, or failed if tools are required."""
        print(needs.line(self.name, what, installer))
        sys.exit(needs.exit_code())

    needs = missing

    def lacks(self, case, what, installer=None):
        """Skips one case that cannot run; it fails if tools are required."""
        print(needs.line(f"{self.name}: {case}", what, installer), flush=True)
        self.lacking += 1
        self.failed += needs.required()

    def end(self):
        """Prints notes and counts, and exits. A test that checked no case fails, or is skipped if it lacks what they need."""
        for text, times in sorted(self.notes.items()):
            print(f"{self.name}:   note: {text} ({times})")
        print(f"{self.name}: {self.checked} checked, {self.failed} failed")
        if not self.checked and self.lacking:
            sys.exit(needs.exit_code())
        sys.exit(1 if self.failed or not self.checked else 0)


@contextmanager
def scratch(prefix="jobc-check-"):
    """A directory that every user may enter, removed afterwards."""
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as directory:
        os.chmod(directory, 0o755)
        yield Path(directory)
