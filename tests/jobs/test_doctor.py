"""Tests `jobc doctor --fix`, which sets a host up for a user: what it prints, runs as root, and refuses.

It runs on a copy of /etc in a mount namespace of its own, so nothing of the host changes.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

import user

pytestmark = [pytest.mark.isolated, pytest.mark.duration(20), pytest.mark.slow]
SECONDS = 60


@pytest.fixture(scope="module")
def single(all_jobs):
    """A user without a range of ids; /etc is a copy."""
    single = user.without_range()
    copy = all_jobs.directory / "etc"
    shutil.copytree("/etc", copy, symlinks=True)
    subprocess.run(["mount", "--bind", copy, "/etc"], check=True)
    yield single
    subprocess.run(["umount", "/etc"], check=True)


def test_only_root_can_apply_and_only_for_a_user_who_exists(jobs, single):
    answer = subprocess.run([*single.prefix(), jobs.program, "doctor", "--fix", "--apply"], capture_output=True, text=True, check=False)
    assert answer.returncode == 2 and "run `sudo jobc doctor --fix --apply`" in answer.stderr and not answer.stdout, \
        f"exit {answer.returncode}: {answer.stdout}{answer.stderr}"
    unknown = jobs.call("doctor", "--fix", "--user", "nosuch")
    assert unknown.returncode == 2 and "no user `nosuch`" in unknown.stderr, f"exit {unknown.returncode}: {unknown.stdout}{unknown.stderr}"


def test_what_is_printed_is_what_root_runs(jobs, single):
    """For a user without ids; after it, the command is not printed again."""
    words = ("doctor", "--fix", "--user", single.name)
    printed = jobs.call(*words, seconds=SECONDS)
    commands = [line for line in printed.stdout.splitlines() if not line.startswith("#")]
    ids = [line for line in commands if line.startswith("usermod --add-subuids ") and line.endswith(f" {single.name}")]
    assert printed.returncode == 0 and len(ids) == 1 and single.name not in Path("/etc/subuid").read_text(), \
        f"exit {printed.returncode}: {printed.stdout}{printed.stderr}"
    run = jobs.call(*words, "--apply", seconds=SECONDS)
    granted = [single.name in Path(f"/etc/sub{kind}id").read_text() for kind in "ug"]
    assert run.returncode == 0 and f"+ {ids[0]}\n" in run.stdout and granted == [True, True], \
        f"exit {run.returncode}, granted {granted}: {run.stdout}{run.stderr}"
    again = jobs.call(*words, seconds=SECONDS)
    assert again.returncode == 0 and "usermod" not in again.stdout, f"exit {again.returncode}: {again.stdout}{again.stderr}"


LIMITED_SWEEP = """\
version: 1
name: tested-limited
image: host
matrix: {number: [1, 2, 3]}
roles:
  main: {resources: {memory: 64MiB, enforce: ENFORCE}, run: echo started}
"""


def test_a_sweep_whose_limits_cannot_be_enforced_is_refused_or_reported_once(jobs, single):
    """With what works at once before what root can do, and without other notes about an unprivileged user."""
    (jobs.directory / "limited.yaml").write_text(LIMITED_SWEEP.replace("ENFORCE", "true"))
    home = jobs.directory / "own"
    home.mkdir()
    shutil.chown(home, single.name)
    environment = jobs.environment(HOME=str(home), XDG_RUNTIME_DIR=str(home))
    command = [*single.prefix(), jobs.program, "run", jobs.directory / "limited.yaml"]
    run = subprocess.run(command, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL, check=False)
    at_once, by_root = run.stderr.find("with `--allow-unenforced`"), run.stderr.find("`jobc doctor --fix` prints the commands")
    assert run.returncode == 125 and run.stderr.count("error") == 1 and 0 <= at_once < by_root and "started" not in run.stdout, \
        f"exit {run.returncode}: {run.stdout}{run.stderr}"
    run = subprocess.run([*command, "--allow-unenforced"], capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL, check=False)
    assert run.returncode == 0 and run.stdout.count("started") == 3, f"with `--allow-unenforced`, exit {run.returncode}: {run.stdout}{run.stderr}"
    (jobs.directory / "limited.yaml").write_text(LIMITED_SWEEP.replace("ENFORCE", "false"))
    run = subprocess.run(command, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL, check=False)
    assert run.returncode == 0 and run.stdout.count("started") == 3 and run.stderr.count("not enforced") == 1, \
        f"without options, exit {run.returncode}: {run.stdout}{run.stderr}"
    assert "note: " not in run.stderr, f"a note besides the limits: {run.stderr}"
    run = subprocess.run([*command, "--verbose"], capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL, check=False)
    assert run.stderr.count("note: as an unprivileged user: the container has a user namespace") == 1, f"`--verbose`: {run.stderr}"
    subprocess.run([*single.prefix(), jobs.program, "config", "set", "allow-unenforced", "true"], env=environment, check=True, capture_output=True)
    run = subprocess.run(command, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL, check=False)
    assert run.returncode == 0 and "enforced" not in run.stderr, f"with the setting, exit {run.returncode}: {run.stdout}{run.stderr}"
