#!/usr/bin/env python3
"""Tests `--watch` of check, build and run: what changes is looked at again, a running job is ended and started again, and a
signal leaves nothing behind.

`--user range` runs as an unprivileged user.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "runtime"))

from isolation import jobs_of, problems  # noqa: E402
from harness import Harness  # noqa: E402

SECONDS = 60
JOB = "version: 1\nname: {name}\nroles:\n  main:\n    image: host\n    run: {run}\n"


def main():
    harness = Harness("watch", __doc__)
    with jobs_of(harness) as jobs:
        jobs.directory.chmod(0o777)
        for case in (check_again, build_again, run_again, command_again, signal_ends_all, stdin_is_refused):
            if harness.wants(case.__name__):
                harness.check(case.__name__, problems(case, jobs))
    harness.end()


class Watching:
    """A command with `--watch`, whose output grows in a file."""

    def __init__(self, jobs, options, words):
        self.log = jobs.directory / f"log-{time.monotonic_ns()}"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(jobs.words(*options, "--watch", *words), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                            env=jobs.environment(), cwd=jobs.directory)

    def text(self):
        return self.log.read_text(errors="replace")

    def until(self, text, count=1):
        """Waits until the output has a text so often."""
        deadline = time.monotonic() + SECONDS
        while self.text().count(text) < count:
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise TimeoutError(f"{count} times {text!r} is not in the output: {self.text()}")
            time.sleep(0.05)

    def end(self, number=signal.SIGINT):
        self.process.send_signal(number)
        return self.process.wait(timeout=SECONDS)


@contextlib.contextmanager
def watching(jobs, *options, words=()):
    """A command with its options; `words` come after `--watch`."""
    watcher = Watching(jobs, options, words)
    try:
        yield watcher
    finally:
        if watcher.process.poll() is None:
            watcher.process.kill()
            watcher.process.wait()


def write(jobs, path, text):
    """Writes as editors do: a new file with the name of the old."""
    path = jobs.directory / path
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    new.write_text(text)
    if jobs.account:
        os.chown(new, jobs.account.uid, jobs.account.gid)
    new.replace(path)


def check_again(jobs):
    """A mistake is reported when it is written, also in a targets file that was not there before."""
    write(jobs, "looked/job.yaml", JOB.format(name="looked", run="echo one"))
    with watching(jobs, "check", "looked") as watcher:
        watcher.until("waiting for changes of 1 file;")
        write(jobs, "looked/job.yaml", JOB.format(name="looked", run="echo one") + "unknown: x\n")
        watcher.until("`looked/job.yaml` changed")
        watcher.until("unknown key `unknown`")
        write(jobs, "looked/job.yaml", JOB.format(name="looked", run="echo one"))
        watcher.until("waiting for changes of 1 file;", 3)
        write(jobs, "looked/targets.yaml", "version: 1\ntargets: {lab: {backends: [nothing]}}\n")
        watcher.until("`looked/targets.yaml` changed")
        watcher.until("`nothing`")
        (jobs.directory / "looked/targets.yaml").unlink()
        watcher.until("waiting for changes of 1 file;", 4)
        if (code := watcher.end()) != -signal.SIGINT:
            yield f"ends with {code} at SIGINT"


def build_again(jobs):
    """The files are written again."""
    write(jobs, "built/job.yaml", JOB.format(name="built", run="echo one"))
    out = jobs.directory / "built-files"
    with watching(jobs, "build", "built", "-o", str(out), "--target", "kubernetes") as watcher:
        watcher.until("waiting for changes")
        write(jobs, "built/job.yaml", JOB.format(name="built", run="echo two").replace("image: host", "image: debian"))
        watcher.until("waiting for changes", 2)
    if not any("echo two" in path.read_text() for path in out.rglob("*.yaml")):
        yield f"the build was not done again: {watcher.text()}"


def run_again(jobs):
    """A running job starts again when a program that it runs, or one beside that, changes; and after its end."""
    write(jobs, "runs/code/model.py", "WORD = 'first'\n")
    write(jobs, "runs/code/train.py", "import time\nimport model\nprint('word', model.WORD, flush=True)\ntime.sleep(600)\n")
    write(jobs, "runs/job.yaml", JOB.format(name="tested-watch", run="python3 -B /code/train.py") + "data:\n  code: {source: ./code, mount: /code}\n")
    with watching(jobs, "run", "runs", *(("--allow-unenforced",) if jobs.account else ())) as watcher:
        watcher.until("word first")
        write(jobs, "runs/code/model.py", "WORD = 'second'\n")
        watcher.until("`runs/code/model.py` changed; ending the job and starting it again")
        watcher.until("word second")
        running = jobs.call("ps", "--quiet").stdout.split()
        if len(running) != 1:
            yield f"not one job runs: {running}"
        write(jobs, "runs/code/train.py", "print('at the end')\n")
        watcher.until("waiting for changes")
        write(jobs, "runs/code/train.py", "print('once more')\n")
        watcher.until("once more")
        watcher.until("waiting for changes", 2)
        if (code := watcher.end(signal.SIGTERM)) != 143:
            yield f"ends with {code} at SIGTERM"


def command_again(jobs):
    """A command without a job file runs again when its program changes."""
    write(jobs, "once.py", "import sys\nprint('words', *sys.argv[1:])\n")
    with watching(jobs, "run", *(("--allow-unenforced",) if jobs.account else ()), words=("--", "python3", "once.py", "--watch")) as watcher:
        watcher.until("words --watch")
        watcher.until("waiting for changes")
        write(jobs, "once.py", "import sys\nprint('again', *sys.argv[1:])\n")
        watcher.until("again --watch")
    yield from ()


def signal_ends_all(jobs):
    """A signal to the command ends the job within its grace period, and then the command."""
    write(jobs, "ends/job.yaml", JOB.format(name="tested-ends", run="trap 'echo saved; exit 0' TERM INT; echo ready; while :; do sleep 0.1; done"))
    with watching(jobs, "run", "ends", *(("--allow-unenforced",) if jobs.account else ())) as watcher:
        watcher.until("ready")
        code = watcher.end()
    if code != 130 or "saved" not in watcher.text():
        yield f"ends with {code}: {watcher.text()}"
    if running := jobs.call("ps", "--quiet").stdout.split():
        yield f"left running: {running}"


def stdin_is_refused(jobs):
    """What can be read once only is not watched."""
    for command in ("check", "build", "run"):
        answer = jobs.call(command, "-", "--watch")
        if answer.returncode not in (2, 125) or "`--watch` cannot read the job from stdin" not in answer.stderr:
            yield f"{command}: exit {answer.returncode}: {answer.stderr}"


if __name__ == "__main__":
    main()
