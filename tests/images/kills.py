#!/usr/bin/env python3
"""Kills unpacking at any moment, several times, and resumes it: the result is complete and correct, nothing incomplete is
left, and concurrent processes unpack each layer once."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runtime"))

import image
import user
from harness import REPOSITORY, Harness, scratch
from trees import listed


def files(directory):
    """The files of a layer's directory, without the times of whiteouts."""
    found = listed(directory)
    for one in found.values():
        if one.get("device") == 0:
            del one["mtime"]
    return found


def check_account(harness, account, binary, layout, directory, kills):
    store = directory / ("root" if account is None else account.name)
    store.mkdir()
    prefix = []
    if account:
        os.chown(store, account.uid, account.gid)
        prefix = ["env", f"HOME={store}", *account.prefix()]
    name = "root" if account is None else account.name
    words = [*prefix, binary, "import", store, layout]

    def start():
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    started_at = time.monotonic()
    first_run = start()
    out, problem = first_run.communicate()
    duration = time.monotonic() - started_at
    if first_run.returncode:
        harness.check(name, [problem])
        return
    directories = out.splitlines()[:-1]
    expected = [files(one) for one in directories]
    problems, killed_count = [], 0
    for number in range(kills):
        subprocess.run(["rm", "-rf", store / "unpacked"], check=True)
        # Several kills of one unpacking: each process resumes where the last one was killed.
        while True:
            process = start()
            time.sleep(random.uniform(0, duration * 0.6))
            process.send_signal(signal.SIGKILL)
            process.communicate()
            killed_count += process.returncode == -signal.SIGKILL
            if process.returncode == 0 or random.random() < 0.4:
                break
        # Two at a time share the work.
        pair = [start(), start()]
        for process in pair:
            out, problem = process.communicate()
            if process.returncode:
                problems.append(f"round {number}: {problem.strip()}")
            elif out.splitlines()[:-1] != directories:
                problems.append(f"round {number}: other directories: {out}")
        leftovers = [path.name for path in (store / "unpacked").glob("*/*.part")]
        if leftovers:
            problems.append(f"round {number}: {leftovers} is left")
        if [files(one) for one in directories] != expected:
            problems.append(f"round {number}: the files differ")
    harness.check(f"{name}, {kills} rounds, {killed_count} killed", problems + ([] if killed_count else ["nothing was killed"]))


def main():
    harness = Harness("kills", __doc__)
    harness.parser.add_argument("--rounds", type=int, default=2)
    options = harness.parse()
    binary = options.runtime or REPOSITORY / "target/debug/examples/unpack"
    if not Path(binary).exists():
        harness.missing("unpack", "`cargo build --example unpack -p jobc-image`")
    if os.geteuid() != 0:
        harness.missing("root")
    layout = image.ensure_image(harness)
    with scratch("jobc-kills-") as directory:
        for account in [None, user.with_range()]:
            if harness.wants("root" if account is None else account.name):
                check_account(harness, account, binary, layout, directory, options.rounds)
    harness.end()


if __name__ == "__main__":
    main()
