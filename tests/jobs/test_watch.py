"""Tests `--watch` of check, build and run: what changes is looked at again, a running job is ended and started again, and a
signal leaves nothing behind.
"""

import contextlib
import os
import signal
import subprocess
import time

import pytest

pytestmark = [pytest.mark.isolated, pytest.mark.duration(8), pytest.mark.accounts("root", slow="range")]
SECONDS = 60
JOB = "version: 1\nname: {name}\nroles:\n  main:\n    image: host\n    run: {run}\n"


@pytest.fixture
def jobs(jobs):
    jobs.directory.chmod(0o777)
    return jobs


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


def test_check_reports_a_mistake_when_it_is_written(jobs):
    """Also in a targets file that was not there before."""
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
        assert (code := watcher.end()) == -signal.SIGINT, f"ends with {code} at SIGINT"


def test_build_writes_the_files_again(jobs):
    write(jobs, "built/job.yaml", JOB.format(name="built", run="echo one"))
    out = jobs.directory / "built-files"
    with watching(jobs, "build", "built", "-o", str(out), "--target", "kubernetes") as watcher:
        watcher.until("waiting for changes")
        write(jobs, "built/job.yaml", JOB.format(name="built", run="echo two").replace("image: host", "image: debian"))
        watcher.until("waiting for changes", 2)
    assert any("echo two" in path.read_text() for path in out.rglob("*.yaml")), f"the build was not done again: {watcher.text()}"


def test_a_running_job_starts_again_when_its_program_changes(jobs):
    """Or a program beside that; and after its end."""
    write(jobs, "runs/code/model.py", "WORD = 'first'\n")
    write(jobs, "runs/code/train.py", "import time\nimport model\nprint('word', model.WORD, flush=True)\ntime.sleep(600)\n")
    write(jobs, "runs/job.yaml", JOB.format(name="tested-watch", run="python3 -B /code/train.py") + "data:\n  code: {source: ./code, mount: /code}\n")
    with watching(jobs, "run", "runs", *jobs.unenforced) as watcher:
        watcher.until("word first")
        write(jobs, "runs/code/model.py", "WORD = 'second'\n")
        watcher.until("`runs/code/model.py` changed; ending the job and starting it again")
        watcher.until("word second")
        running = jobs.call("ps", "--quiet").stdout.split()
        assert len(running) == 1, f"not one job runs: {running}"
        write(jobs, "runs/code/train.py", "print('at the end')\n")
        watcher.until("waiting for changes")
        write(jobs, "runs/code/train.py", "print('once more')\n")
        watcher.until("once more")
        watcher.until("waiting for changes", 2)
        assert (code := watcher.end(signal.SIGTERM)) == 143, f"ends with {code} at SIGTERM"


def test_a_command_runs_again_when_its_program_changes(jobs):
    write(jobs, "once.py", "import sys\nprint('words', *sys.argv[1:])\n")
    with watching(jobs, "run", *jobs.unenforced, words=("--", "python3", "once.py", "--watch")) as watcher:
        watcher.until("words --watch")
        watcher.until("waiting for changes")
        write(jobs, "once.py", "import sys\nprint('again', *sys.argv[1:])\n")
        watcher.until("again --watch")


def test_a_signal_ends_the_job_and_the_command(jobs):
    """The job within its grace period."""
    write(jobs, "ends/job.yaml", JOB.format(name="tested-ends", run="trap 'echo saved; exit 0' TERM INT; echo ready; while :; do sleep 0.1; done"))
    with watching(jobs, "run", "ends", *jobs.unenforced) as watcher:
        watcher.until("ready")
        code = watcher.end()
    assert code == 130 and "saved" in watcher.text(), f"ends with {code}: {watcher.text()}"
    assert not (running := jobs.call("ps", "--quiet").stdout.split()), f"left running: {running}"


@pytest.mark.parametrize("command", ("check", "build", "run"))
def test_stdin_is_refused(jobs, command):
    """What can be read once only is not watched."""
    answer = jobs.call(command, "-", "--watch")
    assert answer.returncode in (2, 125) and "`--watch` cannot read the job from stdin" in answer.stderr, \
        f"exit {answer.returncode}: {answer.stderr}"
