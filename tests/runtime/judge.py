"""How a judge of the runtime speaks: one line for each refusal, one with the counts, and what was left out, aloud."""

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
SKIPPED = 77


def required():
    """Whether a missing tool is an error (`.ci/run`) or only said aloud (a person's machine)."""
    return os.environ.get("JOBC_ORACLES") == "required"


class Judge:
    """Counts what was judged, prints each refusal, and ends with the exit code: 0, 1, or 77 for nothing judged."""

    def __init__(self, name, description):
        self.name, self.judged, self.refused, self.notes = name, 0, 0, {}
        # Who runs it in the background may have it ignore these, and so everything that it starts would.
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            if signal.getsignal(number) == signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        self.parser = argparse.ArgumentParser(prog=name, description=description)
        self.parser.add_argument("--runtime", default=os.environ.get("RUNTIME"),
                                 help="the runtime to judge: a path, `runc` or `crun`; the `jobc` of this tree if absent")
        self.parser.add_argument("--only", metavar="TEXT", help="only the cases whose name contains this")
        self.options, self.since = None, time.monotonic()

    def parse(self):
        self.options = self.parser.parse_args()
        return self.options

    def wants(self, case):
        return self.options.only is None or self.options.only in case

    def judge(self, case, problems):
        """Counts one case; `problems` are lines, none for a case that is as it must be."""
        problems = list(problems)
        self.judged += 1
        took, self.since = time.monotonic() - self.since, time.monotonic()
        if problems:
            self.refused += 1
            print(f"{self.name}: {case}: " + "\n    ".join(problems), flush=True)
        elif os.environ.get("JOBC_VERBOSE"):
            print(f"{self.name}: {case}: fine, {took:.1f} s", flush=True)

    def note(self, text, times=1):
        """Remembers something a reader of the result must know; equal notes are counted."""
        self.notes[text] = self.notes.get(text, 0) + times

    def tool(self, name):
        return shutil.which(name) or self.skip(f"`{name}` is not installed; `tests/oracles/install` installs it")

    def skip(self, why):
        """Leaves without judging: aloud where tools are optional, as an error where they are not."""
        print(f"{self.name}: {'missing' if required() else 'skipped'}: {why}")
        sys.exit(1 if required() else SKIPPED)

    def end(self):
        for text, times in sorted(self.notes.items()):
            print(f"{self.name}:   note: {text} ({times})")
        print(f"{self.name}: {self.judged} judged, {self.refused} refused")
        sys.exit(1 if self.refused or not self.judged else 0)


@contextmanager
def scratch(prefix="jobc-judge-"):
    """A directory that everyone may enter, removed afterwards."""
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as directory:
        os.chmod(directory, 0o755)
        yield Path(directory)
