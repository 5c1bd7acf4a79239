"""Tests that a job's secrets reach the task that requests them, and are not shown to others.

While the job runs, after it was stopped, and after its supervisor was killed, the values are searched for in the job's directories,
in the output of the job commands, and in the command line of every process.
"""

import hashlib
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from leaks import reap

pytestmark = [pytest.mark.isolated, pytest.mark.duration(17), pytest.mark.accounts("root", "range", "single")]

VARIABLE, FILE = "v4lue-of-the-v4riable", "v4lue-of-the-f1le"

# The task prints hashes of what it received, and then the values, which the log redacts.
JOB = """\
version: 1
name: {name}
image: host
network: none
secrets:
  token: {{env: TESTED_TOKEN}}
  key: {{file: key}}
roles:
  main:
    shell: sh
    env: {{TOKEN: "${{{{ secrets.token }}}}"}}
    files: {{/etc/tested/key: {{secret: key, mode: "0400"}}}}
    run: |
      printf %s "$TOKEN" | sha256sum
      sha256sum </etc/tested/key
      ls -l /etc/tested/key
      (echo never >/etc/tested/key) 2>/dev/null || echo read-only
      echo "$TOKEN"; cat /etc/tested/key
      sleep 600
"""

COMMANDS = [("ps", "--all", "--format", "json"), ("inspect", "--format", "json", "NAME"), ("events", "NAME"), ("logs", "NAME")]


def job_texts(jobs, name):
    """Everything that tells of a job: (where, bytes)."""
    for words in COMMANDS:
        answer = jobs.call(*[name if word == "NAME" else word for word in words])
        yield f"jobc {words[0]}", (answer.stdout + answer.stderr).encode()
    for directory in [state_directory(jobs), jobs.home / ".local/state/jobc"]:
        for path in directory.rglob("*"):
            if name in str(path) and path.is_file() and not path.is_symlink() and not in_secrets_directory(jobs, path):
                yield str(path), path.read_bytes()
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                yield f"{process}/cmdline", (process / "cmdline").read_bytes()
            except OSError:
                pass


def state_directory(jobs):
    return jobs.home / "jobc" if jobs.account else Path("/run/jobc")


def in_secrets_directory(jobs, path):
    """Whether a file is in the secrets directory of a job, which must be in memory and accessible only to its user."""
    place = path.relative_to(state_directory(jobs)).parts[:3] if path.is_relative_to(state_directory(jobs)) else ()
    if place[:1] != ("jobs",) or place[2:] != ("secrets",):
        return False
    kind = subprocess.run(["stat", "--file-system", "--format=%T", path], capture_output=True, text=True, check=True).stdout.strip()
    return kind == "tmpfs" and state_directory(jobs).joinpath(*place).stat().st_mode & 0o077 == 0


def check_no_leak(jobs, name):
    """Whether no place contains a secret value; and whether enough places were searched."""
    texts = list(job_texts(jobs, name))
    assert not [where for where, text in texts if VARIABLE.encode() in text or FILE.encode() in text]
    assert len(texts) >= 10, f"only {len(texts)} places were searched"


def leftovers(jobs, name):
    """What is left of the secrets directories."""
    uid = jobs.account.uid if jobs.account else 0
    return [*Path(f"/dev/shm/jobc-{uid}").glob(f"{name}*"), *state_directory(jobs).glob(f"jobs/{name}.*/secrets")]


@pytest.fixture(scope="module")
def all_jobs(all_jobs):
    if all_jobs.account:
        os.chown(all_jobs.directory, all_jobs.account.uid, all_jobs.account.gid)
    return all_jobs


def write(jobs, name, more=""):
    path = jobs.directory / f"{name}.yaml"
    path.write_text(JOB.format(name=name) + more)
    (jobs.directory / "key").write_text(f"{FILE}\n")
    return str(path)


def start(jobs, name):
    process = jobs.run(write(jobs, name), "--detach", TESTED_TOKEN=VARIABLE)
    output = process.communicate(timeout=30)[0]
    assert process.returncode == 0, output
    return jobs.running(name)


def test_values_reach_the_task_and_nothing_else(jobs):
    """The log of the task has their hashes alone; nothing is left after a stop."""
    start(jobs, "tested-stopped")
    for _ in range(100):
        log = jobs.call("logs", "tested-stopped").stdout
        if log.count("***") >= 2:
            break
        time.sleep(0.1)
    hashes = [hashlib.sha256(value.encode()).hexdigest() for value in (VARIABLE, f"{FILE}\n")]
    assert all(word in log for word in (*hashes, "-r--------", "read-only", "***")), log
    check_no_leak(jobs, "tested-stopped")
    assert leftovers(jobs, "tested-stopped"), "the secrets directory was not found, so its removal is not tested"
    jobs.call("stop", "--grace", "1s", "tested-stopped")
    jobs.until("tested-stopped", lambda record: record["state"] == "stopped")
    check_no_leak(jobs, "tested-stopped")
    assert not leftovers(jobs, "tested-stopped")


def test_exec_gets_the_variables_only_with_secrets(jobs):
    """From the sources in the job file."""
    start(jobs, "tested-exec")
    wanted, none = (hashlib.sha256(value.encode()).hexdigest() for value in (VARIABLE, ""))
    program = ["tested-exec", "--", "sh", "-c", "printf %s \"$TOKEN\" | sha256sum"]
    for words, given, code, output in ((["--secrets"], {"TESTED_TOKEN": VARIABLE}, 0, wanted), ([], {"TESTED_TOKEN": VARIABLE}, 0, none),
                                     (["--secrets"], {}, 125, "needs the environment variable `TESTED_TOKEN`, which is not set")):
        answer = jobs.call("exec", *words, *program, **given)
        assert answer.returncode == code and output in answer.stdout + answer.stderr, answer
    jobs.call("kill", "tested-exec")
    check_no_leak(jobs, "tested-exec")


@pytest.mark.accounts("range", "single")
def test_the_environment_of_a_supervisor_cannot_be_read(jobs):
    """By other processes of the user, also not while it is queued."""
    path = write(jobs, "tested-environ", "matrix: {axes: {number: [1, 2]}, max_parallel: 1}\n")
    output = jobs.run(path, "--detach", TESTED_TOKEN=VARIABLE).communicate(timeout=30)[0]
    assert len(output.split()) == 1, f"not the id of the sweep: {output}"
    for number in range(2):
        record = jobs.until(f"tested-environ-{number}", lambda record: record["state"] in ("running", "queued"))
        look = subprocess.run([*jobs.account.prefix(), "cat", f"/proc/{record['supervisor']['pid']}/environ"], capture_output=True, check=False)
        assert look.returncode, f"the memory of a supervisor whose job is {record['state']} can be read"
    for number in (1, 0):
        jobs.call("kill", f"tested-environ-{number}")


def test_nothing_is_left_when_the_supervisor_is_killed(jobs):
    supervisor = start(jobs, "tested-killed")["supervisor"]["pid"]
    os.kill(supervisor, signal.SIGKILL)
    while Path(f"/proc/{supervisor}").exists():
        reap()
        time.sleep(0.05)
    jobs.call("ps")
    jobs.until("tested-killed", lambda record: record["state"] == "lost")
    check_no_leak(jobs, "tested-killed")
    assert not leftovers(jobs, "tested-killed")


def test_a_missing_source_is_an_error(jobs):
    path = write(jobs, "tested-missing")
    (jobs.directory / "key").unlink()
    answer = jobs.call("run", path)
    assert answer.returncode == 125 and "TESTED_TOKEN" in answer.stdout + answer.stderr, answer
    assert not leftovers(jobs, "tested-missing")
