#!/usr/bin/env python3
"""Tests `jobc doctor --fix`, which sets a host up for a user: what it prints, runs as root, and refuses.

It runs on a copy of /etc in a mount namespace of its own, so nothing of the host changes.
"""

import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "runtime"))

import user  # noqa: E402
from isolation import jobs_of, problems  # noqa: E402
from harness import Harness  # noqa: E402

SECONDS = 60


def main():
    harness = Harness("doctor", __doc__)
    with jobs_of(harness) as jobs:
        account = user.without_range()
        copy = jobs.directory / "etc"
        shutil.copytree("/etc", copy, symlinks=True)
        subprocess.run(["mount", "--bind", copy, "/etc"], check=True)
        jobs.directory.chmod(0o755)
        for case in (refused, applied, refusal):
            if harness.wants(case.__name__):
                harness.check(case.__name__, problems(case, jobs, account))
        subprocess.run(["umount", "/etc"], check=True)
    harness.end()


def refused(jobs, account):
    """A user cannot apply, and nobody can set the host up for a user who does not exist."""
    answer = subprocess.run([*account.prefix(), jobs.program, "doctor", "--fix", "--apply"], capture_output=True, text=True, check=False)
    if answer.returncode != 2 or "run `sudo jobc doctor --fix --apply`" not in answer.stderr or answer.stdout:
        yield f"exit {answer.returncode}: {answer.stdout}{answer.stderr}"
    unknown = jobs.call("doctor", "--fix", "--user", "nosuch")
    if unknown.returncode != 2 or "no user `nosuch`" not in unknown.stderr:
        yield f"exit {unknown.returncode}: {unknown.stdout}{unknown.stderr}"


def applied(jobs, account):
    """What is printed for a user without ids is what root runs; after it, the command is not printed again."""
    words = ("doctor", "--fix", "--user", account.name)
    printed = jobs.call(*words, seconds=SECONDS)
    commands = [line for line in printed.stdout.splitlines() if not line.startswith("#")]
    ids = [line for line in commands if line.startswith("usermod --add-subuids ") and line.endswith(f" {account.name}")]
    if printed.returncode != 0 or len(ids) != 1 or account.name in Path("/etc/subuid").read_text():
        yield f"exit {printed.returncode}: {printed.stdout}{printed.stderr}"
        return
    run = jobs.call(*words, "--apply", seconds=SECONDS)
    granted = [account.name in Path(f"/etc/sub{kind}id").read_text() for kind in "ug"]
    if run.returncode != 0 or f"+ {ids[0]}\n" not in run.stdout or granted != [True, True]:
        yield f"exit {run.returncode}, granted {granted}: {run.stdout}{run.stderr}"
    again = jobs.call(*words, seconds=SECONDS)
    if again.returncode != 0 or "usermod" in again.stdout:
        yield f"exit {again.returncode}: {again.stdout}{again.stderr}"


LIMITED_SWEEP = """\
version: 1
name: tested-limited
image: host
matrix: {number: [1, 2, 3]}
roles:
  main: {resources: {memory: 64MiB}, run: echo started}
"""


def refusal(jobs, account):
    """Where limits cannot be enforced for a user, a sweep is refused once, with what works at once before what root can do."""
    (jobs.directory / "limited.yaml").write_text(LIMITED_SWEEP)
    home = jobs.directory / "own"
    home.mkdir()
    shutil.chown(home, account.name)
    environment = jobs.environment(HOME=str(home), XDG_RUNTIME_DIR=str(home))
    command = [*account.prefix(), jobs.program, "run", jobs.directory / "limited.yaml"]
    run = subprocess.run(command, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL, check=False)
    at_once, by_root = run.stderr.find("with `--allow-unenforced`"), run.stderr.find("`jobc doctor --fix` prints the commands")
    if run.returncode != 125 or run.stderr.count("error") != 1 or not 0 <= at_once < by_root or "started" in run.stdout:
        yield f"exit {run.returncode}: {run.stdout}{run.stderr}"
    run = subprocess.run([*command, "--allow-unenforced"], capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL, check=False)
    if run.returncode != 0 or run.stdout.count("started") != 3:
        yield f"with `--allow-unenforced`, exit {run.returncode}: {run.stdout}{run.stderr}"


if __name__ == "__main__":
    main()
