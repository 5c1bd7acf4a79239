"""Kills unpacking at any moment, several times, and resumes it: the result is complete and correct, nothing incomplete is
left, and concurrent processes unpack each layer once."""

import os
import random
import signal
import subprocess
import time

import pytest

import image
from image import listed

pytestmark = [pytest.mark.slow, pytest.mark.duration(100), pytest.mark.needs("root", *image.PROGRAMS), pytest.mark.accounts("root", "range")]
ROUNDS = 2


def files(directory):
    """The files of a layer's directory, without the times of whiteouts."""
    found = listed(directory)
    for one in found.values():
        if one.get("device") == 0:
            del one["mtime"]
    return found


def test_unpacking_that_is_killed_resumes(unpack, directory, account, note):
    layout, store, prefix = image.ensure_image(), directory / "store", []
    store.mkdir()
    if account:
        os.chown(store, account.uid, account.gid)
        prefix = ["env", f"HOME={store}", *account.prefix()]
    words = [*prefix, unpack, "import", store, layout]

    def start():
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    started_at = time.monotonic()
    first_run = start()
    out, problem = first_run.communicate()
    duration = time.monotonic() - started_at
    assert first_run.returncode == 0, problem
    directories = out.splitlines()[:-1]
    expected = [files(one) for one in directories]
    killed_count = 0
    for number in range(ROUNDS):
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
            assert process.returncode == 0, f"round {number}: {problem.strip()}"
            assert out.splitlines()[:-1] == directories, f"round {number}: other directories: {out}"
        leftovers = [path.name for path in (store / "unpacked").glob("*/*.part")]
        assert not leftovers, f"round {number}: {leftovers} is left"
        assert [files(one) for one in directories] == expected, f"round {number}: the files differ"
    note(f"{ROUNDS} rounds, {killed_count} killed")
    assert killed_count, "nothing was killed"
