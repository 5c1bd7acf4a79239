#!/usr/bin/env python3
"""Tests the hooks of every stage: their order, namespaces, state and environment, and what a failing one leads to.

The rules are those of the runtime specification's config.md, "POSIX-platform Hooks", and runtime.md, "Lifecycle".
"""

import json
import os
import signal
import time

from bundle import Roots, configuration
from exits import asleep, running
from harness import Harness, scratch
from runtime import Runtime, program

# Stage: in the container's namespaces?, the status in the state it reads. The specification gives the hooks of `create`
# "creating"; `prestart` has the same place; startContainer runs when the container is created.
STAGES = {
    "prestart": (False, ("creating", "created")),
    "createRuntime": (False, ("creating", "created")),
    "createContainer": (True, ("creating", "created")),
    "startContainer": (True, ("created",)),
    "poststart": (False, ("running",)),
    "poststop": (False, ("stopped",)),
}

# Runs in the host's root or in the container's, so it is given to both at one path; it appends a line to its log.
HOOK = """#!/bin/sh
log=$1 stage=$2
state=$(cat)
tr '\\0' ' ' </proc/self/environ >"$log/$stage.env" 2>/dev/null
readlink /proc/self/ns/mnt >"$log/$stage.ns"
printf '%s' "$state" >"$log/$stage.state"
pwd >"$log/$stage.cwd"
echo "$stage" >>"$log/order"
"""


class Hooks:
    """Bundles whose hooks write what they see into a directory that the container has as well."""

    def __init__(self, runtime, roots, directory):
        self.runtime, self.roots, self.directory, self.count = runtime, roots, directory, 0

    def bundle(self, hooks, args=("/bin/sh", "-c", 'echo program >>"$LOG/order"; sleep 0.2; exit 7')):
        """A bundle with these hooks, `{stage: [hook]}`, in which LOG is replaced by the directory of the log."""
        self.count += 1
        place = self.directory / f"hooks-{self.count}"
        log = place / "log"
        log.mkdir(parents=True)
        log.chmod(0o777)
        config = configuration()
        config["process"]["args"] = list(args)
        config["process"]["env"].append(f"LOG={log}")
        config["annotations"] = {"org.example.kept": "yes"}
        config["mounts"].append({"destination": str(log), "type": "bind", "source": str(log), "options": ["bind"]})
        config["hooks"] = json.loads(json.dumps(hooks).replace("LOG", str(log)))
        self.roots.bundle(place, config)
        for root in (place, place / "rootfs"):
            (root / "hook").write_text(HOOK)
            (root / "hook").chmod(0o755)
        # startContainer's path is one in the container: the same there as outside.
        inner = place / "rootfs" / str(place).lstrip("/")
        inner.mkdir(parents=True)
        (inner / "hook").write_text(HOOK)
        (inner / "hook").chmod(0o755)
        (inner / "log").mkdir()
        config["hooks"] = json.loads(json.dumps(config["hooks"]).replace("HOOK", str(place / "hook")))
        (place / "config.json").write_text(json.dumps(config))
        return place, log, f"hooks-{os.getpid()}-{self.count}"

    def every_stage(self):
        hooks = {stage: [{"path": "HOOK", "args": ["hook", "LOG", stage], "env": ["PATH=/bin:/usr/bin", f"STAGE={stage}"]}]
                 for stage in STAGES}
        place, log, name = self.bundle(hooks)
        ended = self.runtime.run(place, name)
        if ended.returncode != 7:
            yield f"exit code is {ended.returncode}: {ended.stderr.strip()}"
        order = lines(log / "order")
        wanted = ["prestart", "createRuntime", "createContainer", "startContainer", "program", "poststart", "poststop"]
        # The program and poststart run at the same time.
        if sorted(order, key=lambda word: (wanted.index(word), word)) != wanted or \
                [word for word in order if word != "program"] != [word for word in wanted if word != "program"]:
            yield f"the order is {order}"
        own = os.readlink("/proc/self/ns/mnt")
        for stage, (inside, statuses) in STAGES.items():
            if not (log / f"{stage}.state").exists():
                yield f"{stage} did not run"
                continue
            state = json.loads((log / f"{stage}.state").read_text() or "null")
            if state is None:
                yield f"{stage} gets no state"
                continue
            for key, value in (("id", name), ("bundle", str(place)), ("annotations", {"org.example.kept": "yes"})):
                if state.get(key) != value:
                    yield f"{stage}: `{key}` in its state is {state.get(key)!r}"
            if state.get("status") not in statuses:
                yield f"{stage}: the status is {state.get('status')!r}, not {' or '.join(statuses)}"
            if state.get("status") in ("created", "running") and not state.get("pid"):
                yield f"{stage}: its state has no pid"
            if inside and state.get("pid") not in (None, 0, 1):
                yield f"{stage}: the pid is {state['pid']}, not the container's own view of it"
            seen = lines(log / f"{stage}.ns")[0] != own
            # crun and unshare: the test's own mount namespace is not the runtime's there, so only `inside` is certain.
            if inside and not seen:
                yield f"{stage} runs outside the container's namespaces"
            environment = (log / f"{stage}.env").read_text().split()
            unexpected = [entry for entry in environment if entry.split("=")[0] not in ("PATH", "STAGE", "PWD", "SHLVL", "_", "OLDPWD")]
            if unexpected or f"STAGE={stage}" not in environment:
                yield f"{stage}: its environment is {environment}"

    def several(self):
        """The hooks of a stage run in the order they are listed."""
        hooks = {"createRuntime": [{"path": "HOOK", "args": ["hook", "LOG", f"n{number}"]} for number in range(5)]}
        place, log, name = self.bundle(hooks)
        self.runtime.run(place, name)
        if lines(log / "order")[:5] != [f"n{number}" for number in range(5)]:
            yield f"the order is {lines(log / 'order')}"

    def failing(self, stage):
        place, log, name = self.bundle({stage: [{"path": "/bin/sh", "args": ["sh", "-c", "echo why >&2; exit 9"]}],
                                        "poststop": [{"path": "HOOK", "args": ["hook", "LOG", "poststop"]}]})
        ended = self.runtime.run(place, name)
        if ended.returncode in (0, 7):
            yield f"the container starts all the same: exit code {ended.returncode}"
        if self.runtime.name == "ours" and ended.returncode != 125:
            yield f"exit code is {ended.returncode}, not 125: {ended.stderr.strip()}"
        if "program" in lines(log / "order"):
            yield "the program ran"
        if not ended.stderr.strip():
            yield "nothing is said"
        elif self.runtime.name == "ours" and ("why" not in ended.stderr or stage not in ended.stderr):
            yield f"neither the stage nor the hook's own words are said: {ended.stderr.strip()!r}"
        if self.runtime.state(name) is not None:
            yield "its state is still there"

    def failing_later(self, stage):
        """After the program has started the failure must be said; whether the container then ends differs among editions."""
        place, log, name = self.bundle({stage: [{"path": "/bin/sh", "args": ["sh", "-c", "exit 9"]}]})
        ended = self.runtime.run(place, name)
        if not ended.stderr.strip():
            yield "nothing is said"
        if "program" not in lines(log / "order") and stage == "poststop":
            yield "the program did not run"
        if self.runtime.state(name) is not None:
            yield "its state is still there"

    def slow(self, stage):
        """A hook that takes longer than its time-out is ended, with all it started."""
        place, log, name = self.bundle({stage: [{"path": "/bin/sh", "args": ["sh", "-c", f"{asleep(3)} & {asleep(3)}"], "timeout": 1}]})
        begun = time.monotonic()
        ended = self.runtime.run(place, name, seconds=15)
        if time.monotonic() - begun > 8:
            yield "its time-out of 1 s is not kept"
        if "program" in lines(log / "order"):
            yield "the program ran"
        if ended.returncode in (0, 7):
            yield f"exit code is {ended.returncode}"
        time.sleep(0.1)
        if running(asleep(3)):
            yield "what the hook started runs on"
            for pid in running(asleep(3)):
                os.kill(pid, signal.SIGKILL)

    def absent(self):
        place, log, name = self.bundle({"createRuntime": [{"path": "/not/there"}]})
        ended = self.runtime.run(place, name)
        if ended.returncode in (0, 7) or "/not/there" not in ended.stderr:
            yield f"exit code {ended.returncode}, said {ended.stderr.strip()!r}"

    def big_state_unread(self):
        """A hook that reads nothing of its state does not stop the runtime."""
        place, log, name = self.bundle({"createRuntime": [{"path": "/bin/true"}]})
        config = json.loads((place / "config.json").read_text())
        config["annotations"] = {f"org.example.{number}": "x" * 1000 for number in range(200)}
        (place / "config.json").write_text(json.dumps(config))
        ended = self.runtime.run(place, name, seconds=10)
        if ended.returncode != 7:
            yield f"exit code {ended.returncode}, said {ended.stderr.strip()!r}"


def lines(path):
    return path.read_text().splitlines() if path.exists() else []


def main():
    harness = Harness("hooks", __doc__.split("\n", maxsplit=1)[0])
    harness.parse()
    if os.geteuid() != 0:
        harness.skip("root makes the bundles")
    with scratch() as directory:
        hooks = Hooks(Runtime(program(harness, directory), directory), Roots(directory, harness.tool("busybox")), directory)

        def case(name, check):
            if harness.wants(name):
                harness.check(name, check())

        case("every stage", hooks.every_stage)
        case("several of a stage", hooks.several)
        for stage in ("prestart", "createRuntime", "createContainer", "startContainer"):
            case(f"{stage} fails", lambda stage=stage: hooks.failing(stage))
        for stage in ("poststart", "poststop"):
            case(f"{stage} fails", lambda stage=stage: hooks.failing_later(stage))
        for stage in ("prestart", "createRuntime", "createContainer"):
            case(f"{stage} takes too long", lambda stage=stage: hooks.slow(stage))
        case("absent", hooks.absent)
        case("the state is not read", hooks.big_state_unread)
    harness.end()


if __name__ == "__main__":
    main()
