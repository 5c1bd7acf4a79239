"""Tests the hooks of every stage: their order, namespaces, state and environment, and the effect of a failing hook.

The rules are those of the runtime specification's config.md, "POSIX-platform Hooks", and runtime.md, "Lifecycle".
"""

import json
import os
import signal
import time

import pytest

from bundle import configuration
from runtime import running, unique_sleep

pytestmark = [pytest.mark.duration(6), pytest.mark.needs("root", "busybox")]

# Stage: whether it runs in the container's namespaces, the status in the state that it reads. The specification gives the hooks
# of `create` "creating"; `prestart` runs at the same time; startContainer runs when the container is created.
STAGES = {
    "prestart": (False, ("creating", "created")),
    "createRuntime": (False, ("creating", "created")),
    "createContainer": (True, ("creating", "created")),
    "startContainer": (True, ("created",)),
    "poststart": (False, ("running",)),
    "poststop": (False, ("stopped",)),
}

# Runs in the host's root or in the container's, so both have it at the same path. It appends a line to its log.
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
    """Bundles whose hooks write what they see to a directory that is also mounted in the container."""

    def __init__(self, runtime, roots):
        self.runtime, self.roots, self.directory, self.count = runtime, roots, runtime.states.parent, 0

    def bundle(self, hooks, args=("/bin/sh", "-c", 'echo program >>"$LOG/order"; sleep 0.2; exit 7')):
        """A bundle with these hooks, `{stage: [hook]}`, in which LOG is replaced with the log directory."""
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
        # startContainer's path is a path in the container, the same as outside.
        inner = place / "rootfs" / str(place).lstrip("/")
        inner.mkdir(parents=True)
        (inner / "hook").write_text(HOOK)
        (inner / "hook").chmod(0o755)
        (inner / "log").mkdir()
        config["hooks"] = json.loads(json.dumps(config["hooks"]).replace("HOOK", str(place / "hook")))
        (place / "config.json").write_text(json.dumps(config))
        return place, log, f"hooks-{os.getpid()}-{self.count}"


@pytest.fixture(scope="module")
def case(runtime, roots):
    return Hooks(runtime, roots)


def test_every_stage_has_its_order_namespaces_state_and_environment(case):
    hooks = {stage: [{"path": "HOOK", "args": ["hook", "LOG", stage], "env": ["PATH=/bin:/usr/bin", f"STAGE={stage}"]}]
             for stage in STAGES}
    place, log, name = case.bundle(hooks)
    result = case.runtime.run(place, name)
    assert result.returncode == 7, f"exit code is {result.returncode}: {result.stderr.strip()}"
    order = lines(log / "order")
    wanted = ["prestart", "createRuntime", "createContainer", "startContainer", "program", "poststart", "poststop"]
    # The program and poststart run at the same time.
    assert sorted(order, key=wanted.index) == wanted, f"these ran: {order}"
    assert [word for word in order if word != "program"] == [word for word in wanted if word != "program"], f"the order is {order}"
    own = os.readlink("/proc/self/ns/mnt")
    for stage, (inside, statuses) in STAGES.items():
        assert (log / f"{stage}.state").exists(), f"{stage} did not run"
        state = json.loads((log / f"{stage}.state").read_text() or "null")
        assert state is not None, f"{stage} gets no state"
        for key, value in (("id", name), ("bundle", str(place)), ("annotations", {"org.example.kept": "yes"})):
            assert state.get(key) == value, f"{stage}: `{key}` in its state is {state.get(key)!r}"
        assert state.get("status") in statuses, f"{stage}: the status is {state.get('status')!r}, not {' or '.join(statuses)}"
        assert state.get("status") not in ("created", "running") or state.get("pid"), f"{stage}: its state has no pid"
        assert not inside or state.get("pid") in (None, 0, 1), f"{stage}: the pid is {state['pid']}, not the container's own view of it"
        seen = lines(log / f"{stage}.ns")[0] != own
        # crun and unshare: the test's own mount namespace is not the runtime's there, so only `inside` is certain.
        assert not inside or seen, f"{stage} runs outside the container's namespaces"
        environment = (log / f"{stage}.env").read_text().split()
        unexpected = [entry for entry in environment if entry.split("=")[0] not in ("PATH", "STAGE", "PWD", "SHLVL", "_", "OLDPWD")]
        assert not unexpected and f"STAGE={stage}" in environment, f"{stage}: its environment is {environment}"


def test_the_hooks_of_a_stage_run_in_their_order(case):
    hooks = {"createRuntime": [{"path": "HOOK", "args": ["hook", "LOG", f"n{number}"]} for number in range(5)]}
    place, log, name = case.bundle(hooks)
    case.runtime.run(place, name)
    assert lines(log / "order")[:5] == [f"n{number}" for number in range(5)], f"the order is {lines(log / 'order')}"


def test_a_createContainer_hook_begins_in_the_containers_root(case):
    """A createContainer hook begins in the container's root, as with runc: it names what it mounts by paths below it."""
    place, log, name = case.bundle({"createContainer": [{"path": "/bin/sh", "args": ["sh", "-c", "pwd >LOG/cwd; touch ./tmp/here"]}]})
    case.runtime.run(place, name)
    assert lines(log / "cwd") == [str(place / "rootfs")] and (place / "rootfs/tmp/here").exists(), f"it begins in {lines(log / 'cwd')}"


def test_a_startContainer_hook_has_the_programs_filter_and_capabilities(case):
    """A startContainer hook is a program of the image: it gets the program's filter and capabilities, and not the right to load the filter."""
    place, log, name = case.bundle({"startContainer": [{"path": "/bin/sh", "args": [
        "sh", "-c", "mkdir LOG/made 2>LOG/err; grep -E '^(CapPrm|CapEff|Seccomp):' /proc/self/status >LOG/status"]}]})
    config = json.loads((place / "config.json").read_text())
    config["process"]["noNewPrivileges"] = False
    config["linux"]["seccomp"] = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO"}]}
    (place / "config.json").write_text(json.dumps(config))
    result = case.runtime.run(place, name)
    assert result.returncode == 7, f"exit code {result.returncode}, stderr {result.stderr.strip()!r}"
    seen = dict(line.split() for line in lines(log / "status"))
    assert not (log / "made").exists() and seen.get("Seccomp:") == "2", f"it has no filter: {seen}"
    assert not (int(seen.get("CapPrm:", "0"), 16) | int(seen.get("CapEff:", "0"), 16)) & 1 << 21, f"it has CAP_SYS_ADMIN: {seen}"


def test_a_hook_without_env_gets_the_runtimes_environment(case):
    """A hook on the host without `env` gets the runtime's environment, as with runc and crun; a program of the image does not."""
    hook = {"path": "/bin/sh", "args": ["sh", "-c", "echo \"$LEAKED\" >LOG/STAGE"]}
    hooks = {stage: [json.loads(json.dumps(hook).replace("STAGE", stage))] for stage in STAGES}
    hooks["createRuntime"].append({"path": "/bin/sh", "args": ["sh", "-c", "echo \"$LEAKED\" >LOG/own"], "env": ["OWN=1"]})
    place, log, name = case.bundle(hooks)
    case.runtime.call("run", "--bundle", str(place), name, env=os.environ | {"LEAKED": "yes"})
    for stage, (inside, _) in STAGES.items():
        assert lines(log / stage) == ["" if inside else "yes"], f"{stage}: {lines(log / stage)}"
    assert lines(log / "own") == [""], "a hook with `env` gets more than that"


def test_a_startContainer_hook_without_env_has_that_of_the_process(case):
    """As with runc. With `env`, it has that alone."""
    hook = {"path": "/bin/sh", "args": ["sh", "-c", "echo \"$MINE\" >LOG/none"]}
    own = {"path": "/bin/sh", "args": ["sh", "-c", "echo \"$MINE$OWN\" >LOG/own"], "env": ["OWN=1"]}
    place, log, name = case.bundle({"startContainer": [hook, own]})
    config = json.loads((place / "config.json").read_text())
    config["process"]["env"] = [*config["process"].get("env", []), "MINE=7"]
    (place / "config.json").write_text(json.dumps(config))
    case.runtime.run(place, name)
    assert (lines(log / "none"), lines(log / "own")) == (["7"], ["1"])


@pytest.mark.parametrize("stage", ["prestart", "createRuntime", "createContainer", "startContainer"])
def test_a_failing_hook_ends_the_start(case, stage):
    place, log, name = case.bundle({stage: [{"path": "/bin/sh", "args": ["sh", "-c", "echo why >&2; exit 9"]}],
                                    "poststop": [{"path": "HOOK", "args": ["hook", "LOG", "poststop"]}]})
    result = case.runtime.run(place, name)
    assert result.returncode not in (0, 7), f"the container starts: exit code {result.returncode}"
    assert case.runtime.name != "ours" or result.returncode == 1, f"exit code is {result.returncode}, not 1: {result.stderr.strip()}"
    assert "program" not in lines(log / "order"), "the program ran"
    assert result.stderr.strip(), "there is no message"
    if case.runtime.name == "ours":
        assert "why" in result.stderr and stage in result.stderr, f"neither the stage nor the hook's output is in the message: {result.stderr.strip()!r}"
    assert case.runtime.state(name) is None, "its state is left"


@pytest.mark.parametrize("stage", ["poststart", "poststop"])
def test_a_failing_hook_after_the_start_is_reported(case, stage):
    """After the program has started, a failure must be reported; whether the container ends depends on the specification's version."""
    place, log, name = case.bundle({stage: [{"path": "/bin/sh", "args": ["sh", "-c", "exit 9"]}]})
    result = case.runtime.run(place, name)
    assert result.stderr.strip(), "there is no message"
    assert "program" in lines(log / "order") or stage != "poststop", "the program did not run"
    assert case.runtime.state(name) is None, "its state is left"


@pytest.mark.parametrize("stage", ["prestart", "createRuntime", "createContainer"])
def test_a_hook_that_takes_too_long_is_killed_with_its_processes(case, stage):
    """A hook that takes longer than its timeout is killed, with all processes that it started."""
    place, log, name = case.bundle({stage: [{"path": "/bin/sh", "args": ["sh", "-c", f"{unique_sleep(3)} & {unique_sleep(3)}"], "timeout": 1}]})
    started_at = time.monotonic()
    result = case.runtime.run(place, name, seconds=15)
    assert time.monotonic() - started_at <= 8, "its timeout of 1 s is not enforced"
    assert "program" not in lines(log / "order"), "the program ran"
    assert result.returncode not in (0, 7), f"exit code is {result.returncode}"
    time.sleep(0.1)
    left = running(unique_sleep(3))
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left, "processes of the hook were still running"


def test_a_missing_program_of_a_hook_is_reported(case):
    place, log, name = case.bundle({"createRuntime": [{"path": "/not/there"}]})
    result = case.runtime.run(place, name)
    assert result.returncode not in (0, 7) and "/not/there" in result.stderr, f"exit code {result.returncode}, stderr {result.stderr.strip()!r}"


def test_a_hook_need_not_read_its_state(case):
    place, log, name = case.bundle({"createRuntime": [{"path": "/bin/true"}]})
    config = json.loads((place / "config.json").read_text())
    config["annotations"] = {f"org.example.{number}": "x" * 1000 for number in range(200)}
    (place / "config.json").write_text(json.dumps(config))
    result = case.runtime.run(place, name, seconds=10)
    assert result.returncode == 7, f"exit code {result.returncode}, stderr {result.stderr.strip()!r}"


def lines(path):
    return path.read_text().splitlines() if path.exists() else []
