#!/usr/bin/env python3
"""Kills the unpacking at any moment, again and again, and lets it go on: what is there in the end is whole and right, nothing
half done is left, and several processes at a time unpack each layer once."""

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
    """What a layer's directory has; when a whiteout was made says nothing."""
    found = listed(directory)
    for one in found.values():
        if one.get("device") == 0:
            del one["mtime"]
    return found


def check_as(harness, who, binary, layout, directory, kills):
    store = directory / ("root" if who is None else who.name)
    store.mkdir()
    prefix = []
    if who:
        os.chown(store, who.uid, who.gid)
        prefix = ["env", f"HOME={store}", *who.prefix()]
    name = "root" if who is None else who.name
    words = [*prefix, binary, "import", store, layout]

    def start():
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    begun = time.monotonic()
    once = start()
    out, problem = once.communicate()
    took = time.monotonic() - begun
    if once.returncode:
        harness.check(name, [problem])
        return
    directories = out.splitlines()[:-1]
    expected = [files(one) for one in directories]
    problems, died = [], 0
    for number in range(kills):
        subprocess.run(["rm", "-rf", store / "unpacked"], check=True)
        # Several moments of one unpacking: each goes on from what the one before has left.
        while True:
            process = start()
            time.sleep(random.uniform(0, took * 0.6))
            process.send_signal(signal.SIGKILL)
            process.communicate()
            died += process.returncode == -signal.SIGKILL
            if process.returncode == 0 or random.random() < 0.4:
                break
        # Two at a time: they share the work.
        both = [start(), start()]
        for process in both:
            out, problem = process.communicate()
            if process.returncode:
                problems.append(f"round {number}: {problem.strip()}")
            elif out.splitlines()[:-1] != directories:
                problems.append(f"round {number}: other directories: {out}")
        left = [path.name for path in (store / "unpacked").glob("*/*.part")]
        if left:
            problems.append(f"round {number}: {left} is left")
        if [files(one) for one in directories] != expected:
            problems.append(f"round {number}: the files are others")
    harness.check(f"{name}, {kills} rounds, {died} killed", problems + ([] if died else ["nothing was killed"]))


def main():
    harness = Harness("kills", __doc__)
    harness.parser.add_argument("--rounds", type=int, default=2)
    options = harness.parse()
    binary = options.runtime or REPOSITORY / "target/debug/examples/unpack"
    if not Path(binary).exists():
        harness.skip("`cargo build --example unpack -p jobc-image` builds the program under test")
    if os.geteuid() != 0:
        harness.skip("only root can become the users that this test runs as")
    layout = image.make(harness)
    with scratch("jobc-kills-") as directory:
        for who in [None, user.with_range()]:
            if harness.wants("root" if who is None else who.name):
                check_as(harness, who, binary, layout, directory, options.rounds)
    harness.end()


if __name__ == "__main__":
    main()
