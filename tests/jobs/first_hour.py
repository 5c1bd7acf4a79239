#!/usr/bin/env python3
"""Runs the commands of the README's section "From nothing to a compared sweep" as it stands there, in an empty directory, and compares
the screen with the one that the README shows.

`--user range` and `--user single` run as an unprivileged user without cgroups.
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "runtime"))

from isolation import jobs_of, problems  # noqa: E402
from harness import REPOSITORY, Harness  # noqa: E402

HEADING = "## From nothing to a compared sweep"
# The goal is ten minutes for a person who reads and types.
SECONDS = 120


def main():
    harness = Harness("first_hour", __doc__.split("\n", maxsplit=1)[0])
    with jobs_of(harness) as jobs:
        harness.check("readme", problems(readme, jobs))
    harness.end()


def blocks():
    """The commands of the README's section, and the screen that it shows for the last but one."""
    section = (REPOSITORY / "README.md").read_text().split(HEADING, 1)[1].split("\n## ", 1)[0]
    commands, screen = re.findall(r"```(?:sh|text)\n(.*?)```", section, re.DOTALL)
    return [line.split("  #", 1)[0].strip() for line in commands.splitlines() if line.strip()], screen


def readme(jobs):
    commands, screen = blocks()
    if len(commands) < 5:
        yield f"the section has {len(commands)} commands"
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
        if run.returncode != 0:
            yield f"`{command}` exits with {run.returncode}: {run.stdout}{run.stderr}"
            return
    if time.monotonic() - began > SECONDS:
        yield f"it took {time.monotonic() - began:.0f} s"
    seen, = (output for command, output in outputs.items() if command.startswith("jobc ps "))
    if same(seen) != same(screen):
        yield f"the screen of the README is not what is seen:\n{seen}"
    report = place / "sweep.html"
    if not report.exists() or "local-sweep" not in report.read_text():
        yield "no report"


def same(text):
    """Without what differs from run to run: durations and widths."""
    text = re.sub(r"\d+(\.\d+)? ?(ms|s|min)\b", "TIME", text)
    return [re.sub(r" +", " ", line).strip() for line in text.strip().splitlines()]


if __name__ == "__main__":
    main()
