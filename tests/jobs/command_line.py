"""This tree's command line for tests of jobs: it runs jobs as root or as a user, and checks its answers."""

import json
import os
import re
import shutil
import subprocess
import time

from harness import REPOSITORY
from runtime import binary

SECONDS = 20
ESCAPE = "\x1b"
SERVE = "python3 -m http.server $JOBC_PORT_HTTP >/dev/null 2>&1"
STAYS = "sleep 600 & sleep 600"

JOB = """\
version: 1
name: {name}
image: host
network: {network}
roles:
  first:
    instances: {instances}
    run: {script}
  second:
    run: {script}
"""

LONG_JOB = """\
version: 1
name: tested-long
description: 訓練 of something
image: host
grace_period: 2s
roles:
  loud:
    instances: 2
    shell: sh
    env: {INDEX: "${{ instance.index }}"}
    run: |
      trap 'echo bye from $INDEX; exit 0' TERM
      echo hello from $INDEX; echo trouble from $INDEX >&2
      while :; do sleep 0.1; done
"""


class Jobs:
    """This tree's command line, as root or as a user, in its own directory."""

    def __init__(self, program, directory, account):
        self.program, self.directory, self.account = program, directory, account
        self.home = directory / "home"
        self.home.mkdir(mode=0o700)
        if account:
            os.chown(self.home, account.uid, account.gid)
        # What a job needs whose limits nothing enforces: not every host gives users cgroups of their own.
        self.unenforced = ["--allow-unenforced"] if account else []

    def has_ids(self):
        """Whether containers have more than one user: as root, or with a range of ids."""
        return self.account is None or self.account.subuids is not None

    def environment(self, **more):
        own = {"PATH": os.environ["PATH"], "HOME": str(self.home), "JOBC_COLOR": "never"}
        if self.account:
            own["XDG_RUNTIME_DIR"] = str(self.home)
        return own | more

    def words(self, *words):
        return [*(self.account.prefix() if self.account else []), str(self.program), *words]

    def call(self, *words, seconds=SECONDS, cwd=None, **environment):
        try:
            return subprocess.run(self.words(*words), stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                                  env=self.environment(**environment), timeout=seconds, check=False, cwd=cwd)
        except subprocess.TimeoutExpired as timeout:
            return subprocess.CompletedProcess(timeout.cmd, 124, "", f"timed out after {seconds} s")

    def job(self, name, script=STAYS, network="host", instances=2):
        path = self.directory / f"{name}.yaml"
        path.write_text(JOB.format(name=name, network=network, instances=instances, script=json.dumps(script)))
        return str(path)

    def run(self, path, *words, **environment):
        """Starts `jobc run` in the foreground, and returns the process."""
        return subprocess.Popen(self.words("run", *self.unenforced, *words, path), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, errors="replace", env=self.environment(**environment))

    def record(self, name, **environment):
        answer = self.call("inspect", "--format", "json", name, **environment)
        return json.loads(answer.stdout) if answer.returncode == 0 else None

    def until(self, name, done, seconds=SECONDS):
        """Waits until `done(record)` is true, and returns the record."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            record = self.record(name)
            if record and done(record):
                return record
            time.sleep(0.05)
        raise TimeoutError(f"{name}: {record and record['state']}: {record}")

    def running(self, name):
        return self.until(name, lambda record: all(task["state"] in ("running", "ready") for task in record["tasks"]))


def copy_program(directory):
    """A copy of this tree's program where every user may run it."""
    copy = directory / "jobc"
    shutil.copy2(binary(), copy)
    copy.chmod(0o755)
    return copy


def expect(answer, code=0, out=None, error=None):
    """Asserts the exit code and output of a command, and returns its result."""
    shown = f"{' '.join(map(str, answer.args[-4:]))}: exit {answer.returncode}\n--- out\n{answer.stdout}\n--- err\n{answer.stderr}"
    assert answer.returncode == code, f"not {code}: {shown}"
    assert ESCAPE not in answer.stdout + answer.stderr, f"escapes in a pipe: {shown}"
    for text, stream in ((out, answer.stdout), (error, answer.stderr)):
        assert text is None or re.search(text, stream), f"not {text!r}: {shown}"
    return answer


def run_roles(jobs, name, roles, code, end, **more):
    """Runs a job to its end, which must be `code` and `end`; returns its events and its record."""
    roles = {role: {**({"shell": "sh"} if isinstance(what["run"], str) else {}), **what} for role, what in roles.items()}
    path = jobs.directory / f"{name}.json"
    path.write_text(json.dumps({"version": 1, "name": name, "image": "host", "roles": roles, **more}))
    answer = jobs.call("run", *jobs.unenforced, str(path))
    record = jobs.record(name)
    assert record and record.get("end"), f"it did not end: exit {answer.returncode}\n{answer.stderr}"
    explanation = record["end"]["explanation"]
    assert answer.returncode == code and re.fullmatch(end, explanation), f"exit {answer.returncode}: {explanation}\n{answer.stderr}"
    assert explanation in answer.stderr, f"not reported: {answer.stderr}"
    lines = jobs.call("events", "--format", "json", name).stdout.splitlines()
    return [json.loads(line) for line in lines], record


def copy_example(jobs, example):
    """A copy of an example that its user may write to, without its golden output."""
    copy = jobs.directory / example
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(REPOSITORY / "examples" / example, copy, ignore=shutil.ignore_patterns("out"))
    if jobs.account:
        for path in [copy, *copy.rglob("*")]:
            os.chown(path, jobs.account.uid, jobs.account.gid)
    return copy


def check_record(record):
    """Whether a job and its tasks have succeeded, by its record."""
    assert record and record["state"] == "succeeded" and record["end"]["exit_code"] == 0, record and record["end"]
    assert {task["state"] for task in record["tasks"]} <= {"succeeded", "stopped"}, record["tasks"]
