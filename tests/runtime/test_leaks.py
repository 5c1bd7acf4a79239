"""Tests what is left behind: after many failing starts, many runs and many kills the host must be as it was before.

It counts only its own processes, mounts, namespaces, cgroups, states and temporary files. JOBC_FAILING, JOBC_RUNS and JOBC_KILLED are
numbers of starts: `JOBC_FAILING=1000 JOBC_RUNS=10000` is the long form (`just soak`); the default takes seconds.
"""

import contextlib
import copy
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from bundle import configuration, give, rootless, write
from leaks import leftovers, snapshot
from unsupported import UNSUPPORTED

SECONDS = 10
# How many starts there are as root, and as a user.
TIMES = {"FAILING": (100, 55), "RUNS": (200, 30), "KILLED": (30, 10)}
LONGER = max(1, *(int(os.environ.get(f"JOBC_{name}", 0)) / root for name, (root, _) in TIMES.items()))

pytestmark = [pytest.mark.isolated, pytest.mark.duration(15 * LONGER), pytest.mark.needs("root", "busybox"),
              pytest.mark.accounts("root", slow="range")]


class Leaks:
    """Bundles that are created once."""

    def __init__(self, runtime, roots, account):
        self.runtime, self.roots, self.directory, self.account = runtime, roots, runtime.states.parent, account
        # Its pid is 1 in its own namespace, like that of every other such test.
        self.group = f"check-leaks-{os.stat('/proc/self/ns/pid').st_ino}"
        self.base = configuration()
        self.base["linux"]["cgroupsPath"] = f"/{self.group}"
        self.base["linux"]["resources"] |= {"memory": {"limit": 64 << 20}, "pids": {"limit": 50}}
        if account:
            rootless(self.base, account)
            self.base["linux"].pop("cgroupsPath")

    def bundle(self, name, args, change=None):
        place = self.directory / name
        config = copy.deepcopy(self.base)
        config["process"]["args"] = args
        if change:
            change(config)
        if not place.exists():
            place.mkdir()
            self.roots.bundle(place, config)
            if self.account:
                give(place, (self.account.uid, self.account.gid))
        write(place, config)
        return place


@pytest.fixture(scope="module")
def all_leaks(runtime, roots, account):
    leaks = Leaks(runtime, roots, account)
    leaks.before = snapshot(runtime, leaks.group)
    return leaks


@pytest.fixture
def leaks(all_leaks):
    """Bundles whose containers must leave nothing."""
    yield all_leaks
    assert not leftovers(all_leaks.before, lambda: snapshot(all_leaks.runtime, all_leaks.group))


@pytest.fixture
def times(request, account):
    return int(os.environ.get(f"JOBC_{request.param}", TIMES[request.param][account is not None]))


@pytest.mark.parametrize("times", ["FAILING"], indirect=True)
def test_failing_starts_leave_nothing(leaks, times):
    """Starts that fail early, late, in a hook, and at the program, in turn."""
    def hook(stage):
        return lambda config: config.update(hooks={stage: [{"path": "/bin/false"}]})
    causes = {name: (["/bin/true"], change) for name, change in UNSUPPORTED.items()}
    causes |= {f"{stage} fails": (["/bin/true"], hook(stage)) for stage in ("prestart", "createRuntime", "createContainer", "startContainer")}
    causes |= {"absent": (["/not/there"], None), "a directory": (["/etc"], None),
               "a late mount": (["/bin/true"], lambda config: config["mounts"].append({"destination": "/x", "type": "bind", "source": "/none", "options": ["bind"]}))}
    places, failures = [], 0
    for number, (name, (args, change)) in enumerate(causes.items()):
        with contextlib.suppress(ValueError, KeyError):
            places.append((name, leaks.bundle(f"failing-{number}", args, change)))
    for number in range(times):
        name, place = places[number % len(places)]
        result = leaks.runtime.run(place, f"failing-{number}", seconds=SECONDS)
        assert result.returncode != 124, f"start {number}, {name}: hangs"
        failures += result.returncode != 0
        assert "poststart" in name or result.returncode != 0 or leaks.runtime.name != "ours", f"start {number}, {name}: does not fail"
    assert failures >= times / 2, f"only {failures} of {times} failed"


@pytest.mark.parametrize("times", ["RUNS"], indirect=True)
def test_runs_leave_nothing(leaks, times):
    place = leaks.bundle("true", ["/bin/true"])
    words = leaks.runtime.argv("run", "--bundle", str(place))
    environment = leaks.runtime.environment() or os.environ
    for number in range(times):
        started = subprocess.Popen([*words, f"run-{number}"], stdin=subprocess.DEVNULL, env=environment)
        try:
            code = started.wait(SECONDS)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()
            leaks.runtime.delete(f"run-{number}")
            pytest.fail(f"run {number} hangs")
        assert not code, f"run {number}: exit code {code}"


@pytest.mark.parametrize("times", ["KILLED"], indirect=True)
def test_killed_starts_leave_nothing(leaks, times):
    """The runtime is killed at any moment of a start; `delete --force` must remove what is left."""
    place = leaks.bundle("killed", ["/bin/sleep", "50"])
    rng = random.Random(7)
    for number in range(times):
        started = leaks.runtime.spawn(place, f"killed-{number}", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL)
        time.sleep(rng.random() * 0.04)
        started.send_signal(signal.SIGKILL)
        started.wait()
        result = leaks.runtime.call("delete", "--force", f"killed-{number}", seconds=SECONDS)
        assert result.returncode != 124, f"start {number}: `delete` hangs"
        assert leaks.runtime.state(f"killed-{number}") is None, f"start {number}: its state is left: {result.stderr.strip()}"


@pytest.mark.accounts("root")
def test_cgroups_of_a_start_that_was_killed_before_it_recorded_them_are_removed(leaks):
    """A start that was killed after it had made its cgroups and before it recorded which: the state has only config.json."""
    place = leaks.bundle("unrecorded", ["/bin/true"])
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines() if " - cgroup" in line]
    state = leaks.runtime.states / "unrecorded"
    state.mkdir(mode=0o700)
    shutil.copy(place / "config.json", state)
    for mount in mounts:
        Path(mount, leaks.group).mkdir()
    result = leaks.runtime.call("delete", "--force", state.name, seconds=SECONDS)
    assert result.returncode == 0, result.stderr
