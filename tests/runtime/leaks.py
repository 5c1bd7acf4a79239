#!/usr/bin/env python3
"""Tests what is left behind: after many failing starts, many runs and many kills the host must be as it was before.

It runs in its own pid and mount namespaces with its own /tmp, so that it counts only its own processes,
mounts, namespaces, cgroups, states, temporary files. `--failing 1000 --runs 10000` is the long form (`just soak`); the default takes seconds.
"""

import contextlib
import copy
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import user
from bundle import Roots, configuration, give, rootless, write
from checks_life import UNSUPPORTED
from harness import REPOSITORY, Harness, scratch
from runtime import Runtime, program

SECONDS = 10


def snapshot(runtime, group):
    """Everything that a container may leave behind, in this test's namespaces."""
    pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    namespaces, processes = set(), []
    for pid in pids:
        with contextlib.suppress(OSError):
            processes.append(Path(f"/proc/{pid}/comm").read_text().strip() + (" (zombie)" if zombie(pid) else ""))
            namespaces |= {os.readlink(f"/proc/{pid}/ns/{name}") for name in os.listdir(f"/proc/{pid}/ns")}
    # Unlike a glob, a walk ignores directories that disappear: others on this host have cgroups too.
    groups = [path for path, _, _ in os.walk("/sys/fs/cgroup") if f"/{group}" in path]
    return {
        "processes": sorted(processes),
        "mounts": sorted(line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()),
        "namespaces": sorted(namespaces),
        "cgroups": sorted(groups),
        "states": sorted(os.listdir(runtime.states)),
        "open files": sorted(os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")),
        "temporary files": sorted(os.listdir("/tmp")),
    }


def zombie(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def leftovers(runtime, group, before, seconds=5):
    """The differences, once there are none or after a timeout: the kernel removes a namespace a moment after its last process."""
    deadline = time.monotonic() + seconds
    while True:
        reap()
        after = snapshot(runtime, group)
        differences = [f"{what}: {describe_changes(before[what], after[what])}" for what in before if before[what] != after[what]]
        if not differences or time.monotonic() > deadline:
            return differences
        time.sleep(0.05)


def describe_changes(before, after):
    more, less = list(after), []
    for one in before:
        if one in more:
            more.remove(one)
        else:
            less.append(one)
    return f"{len(more)} more {more[:5]}" + (f", {len(less)} less {less[:5]}" if less else "")


def reap():
    """As the first process of its namespace, the test is the parent of every orphan."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


class Leaks:
    """Three kinds of starts, in bundles that are created once."""

    def __init__(self, runtime, roots, directory, account):
        self.runtime, self.roots, self.directory, self.account = runtime, roots, directory, account
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

    def failing(self, times):
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
                places.append((name, self.bundle(f"failing-{number}", args, change)))
        for number in range(times):
            name, place = places[number % len(places)]
            result = self.runtime.run(place, f"failing-{number}", seconds=SECONDS)
            if result.returncode == 124:
                yield f"start {number}, {name}: hangs"
            failures += result.returncode != 0
            if "poststart" not in name and result.returncode == 0 and self.runtime.name == "ours":
                yield f"start {number}, {name}: does not fail"
        if failures < times / 2:
            yield f"only {failures} of {times} failed"

    def runs(self, times):
        place = self.bundle("true", ["/bin/true"])
        words = self.runtime.argv("run", "--bundle", str(place))
        environment = self.runtime.environment() or os.environ
        for number in range(times):
            started = subprocess.Popen([*words, f"run-{number}"], stdin=subprocess.DEVNULL, env=environment)
            try:
                code = started.wait(SECONDS)
            except subprocess.TimeoutExpired:
                started.kill()
                started.wait()
                yield f"run {number} hangs"
                self.runtime.delete(f"run-{number}")
                continue
            if code:
                yield f"run {number}: exit code {code}"
                return

    def killed(self, times):
        """The runtime is killed at any moment of a start; `delete --force` must remove what is left."""
        place = self.bundle("killed", ["/bin/sleep", "50"])
        rng = random.Random(7)
        for number in range(times):
            started = self.runtime.spawn(place, f"killed-{number}", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                         stderr=subprocess.DEVNULL)
            time.sleep(rng.random() * 0.04)
            started.send_signal(signal.SIGKILL)
            started.wait()
            result = self.runtime.call("delete", "--force", f"killed-{number}", seconds=SECONDS)
            if result.returncode == 124:
                yield f"start {number}: `delete` hangs"
            if self.runtime.state(f"killed-{number}") is not None:
                yield f"start {number}: its state is left: {result.stderr.strip()}"

    def unrecorded(self, times):
        """A start that was killed after it had made its cgroups and before it recorded which: the state has only config.json."""
        if self.account:
            return
        place = self.bundle("unrecorded", ["/bin/true"])
        mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines() if " - cgroup" in line]
        for number in range(times):
            state = self.runtime.states / f"unrecorded-{number}"
            state.mkdir(mode=0o700)
            shutil.copy(place / "config.json", state)
            for mount in mounts:
                Path(mount, self.group).mkdir()
            result = self.runtime.call("delete", "--force", state.name, seconds=SECONDS)
            if result.returncode:
                yield f"`delete` exits with {result.returncode}: {result.stderr.strip()}"


def main():
    harness = Harness("leaks", __doc__.split("\n", maxsplit=1)[0])
    harness.parser.add_argument("--user", choices=("root", "range", "single"), default="root")
    harness.parser.add_argument("--failing", type=int, default=100, metavar="N")
    harness.parser.add_argument("--runs", type=int, default=200, metavar="N")
    harness.parser.add_argument("--killed", type=int, default=30, metavar="N")
    options = harness.parse()
    if os.geteuid() != 0:
        harness.missing("root")
    harness.tool("unshare")
    if os.getpid() != 1:
        unshare = ["unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"]
        os.execvp(unshare[0], [*unshare, sys.executable, __file__, *sys.argv[1:]])
    subprocess.run([REPOSITORY / "tests/fresh", "/tmp", "1777"], check=True)
    account = {"root": None, "range": user.with_range, "single": user.without_range}[options.user]
    account = account() if account else None
    with scratch() as directory:
        runtime = Runtime(program(harness, directory), directory, account)
        leaks = Leaks(runtime, Roots(directory, harness.tool("busybox")), directory, account)
        before = snapshot(runtime, leaks.group)
        for name, attempt, times in (("failing starts", leaks.failing, options.failing), ("runs", leaks.runs, options.runs),
                                     ("killed starts", leaks.killed, options.killed), ("unrecorded cgroups", leaks.unrecorded, 1)):
            if harness.wants(name) and times:
                started_at = time.monotonic()
                problems = list(attempt(times))
                harness.check(name, problems[:10] + leftovers(runtime, leaks.group, before))
                harness.note(f"{times} {name} took {time.monotonic() - started_at:.0f} s")
    harness.end()


if __name__ == "__main__":
    main()
