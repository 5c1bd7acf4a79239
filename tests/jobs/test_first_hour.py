"""Runs the commands of the README's section "From nothing to a compared sweep" as it stands there, in an empty directory, and compares
the screen with the one that the README shows.
"""

import os
import subprocess
import time

import pytest

from first_hour import blocks, same

pytestmark = [pytest.mark.isolated, pytest.mark.duration(5), pytest.mark.accounts("single", slow=("root", "range"))]
# The goal is ten minutes for a person who reads and types.
SECONDS = 120


def test_the_commands_of_the_readme_show_its_screen(jobs):
    commands, screen = blocks()
    assert len(commands) >= 5, f"the section has {len(commands)} commands"
    place = jobs.directory / "empty"
    place.mkdir()
    if jobs.account:
        os.chown(place, jobs.account.uid, jobs.account.gid)
    jobs.directory.chmod(0o755)
    environment = jobs.environment(PATH=f"{jobs.directory}:{os.environ['PATH']}")
    prefix = jobs.account.prefix() if jobs.account else []
    began = time.monotonic()
    outputs = {}
    for command in commands:
        run = subprocess.run([*prefix, "sh", "-c", command], cwd=place, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             timeout=SECONDS, check=False)
        outputs[command] = run.stdout
        assert run.returncode == 0, f"`{command}` exits with {run.returncode}: {run.stdout}{run.stderr}"
    assert time.monotonic() - began <= SECONDS, f"it took {time.monotonic() - began:.0f} s"
    seen, = (output for command, output in outputs.items() if command.startswith("jobc ps "))
    assert same(seen) == same(screen), f"the screen of the README is not what is seen:\n{seen}"
    report = place / "sweep.html"
    assert report.exists() and "local-sweep" in report.read_text(), "no report"
