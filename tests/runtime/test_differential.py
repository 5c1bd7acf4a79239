"""Runs the same bundles with a runtime and with runc and crun, and compares the containers field by field.

A difference fails unless `known_differences.py` says why it is correct; an entry that no case needs any more also fails.
Each case also names what the specification promises for it, which every runtime must keep.
"""

import os
import subprocess
import threading

import pytest

import cases
import known_differences
import observation
from bundle import configuration, rootless
from podman import until
from runtime import on_a_terminal, remove_groups

pytestmark = [pytest.mark.duration(10), pytest.mark.needs("root", "busybox", "runc", "crun")]


def observe(runtime, case, roots, account):
    """The fields of one container, or a single field `failed` with the runtime's error."""
    place = runtime.states.parent / f"{case.name}-{runtime.name}"
    place.mkdir()
    config = configuration()
    name = f"check-{os.getpid()}-{case.name}"[:60]
    group = f"/check-{os.getpid()}/{case.name}"
    config["linux"]["cgroupsPath"] = group
    case.change(config, place)
    if config["linux"]["cgroupsPath"] is None:
        del config["linux"]["cgroupsPath"]
    if account:
        rootless(config, account)
        config["linux"].pop("cgroupsPath", None)
    owner = (account.uid, account.gid) if account else \
        cases.OWNER if any(n["type"] == "user" for n in config["linux"]["namespaces"]) else None
    roots.bundle(place, config, owner)
    os.environ["TEST_VOLUME"] = str(place / "volumes/data")
    try:
        if case.terminal:
            return observe_on_terminal(runtime, case, place, name)
        return observe_waiting(runtime, case, place, name, config["linux"].get("cgroupsPath"))
    finally:
        runtime.delete(name)
        remove_groups(f"check-{os.getpid()}")


def observe_waiting(runtime, case, place, name, group):
    extra = [os.open("/", os.O_RDONLY) for _ in range(case.descriptors)]
    kept = tuple(range(3, 3 + case.descriptors))
    prelude = list(case.prelude)
    if extra:
        moves = " ".join(f"{number}</" for number in kept)
        prelude += ["bash", "-c", f'exec "$@" {moves}', "bash"]
    started = runtime.spawn(place, name, *case.flags, prelude=prelude)
    for descriptor in extra:
        os.close(descriptor)
    guard = threading.Timer(30, started.kill)
    guard.start()
    lines = []
    for line in started.stdout:
        lines.append(line)
        if line == "== end\n":
            break
    else:
        guard.cancel()
        _, errors = started.communicate()
        return {"failed": f"exit {started.returncode}: {errors.strip()}"}
    fields = observation.inside("".join(lines), place)
    # The program may start before the runtime has written the state.
    until(lambda: (runtime.state(name) or {}).get("status") == "running", seconds=5)
    state = runtime.state(name)
    if state:
        fields |= {f"outside.{key}": value for key, value in observation.outside(state["pid"], group).items()}
        fields |= {f"state.{key}": state.get(key) for key in ("status", "ociVersion", "annotations")}
    try:
        _, errors = started.communicate("\n", timeout=30)
    except subprocess.TimeoutExpired:
        started.kill()
        _, errors = started.communicate()
    guard.cancel()
    fields["exit code"] = str(started.returncode)
    fields["stderr"] = errors.strip()
    fields["state left"] = str(runtime.state(name) is not None)
    return fields


def observe_on_terminal(runtime, case, place, name):
    code, written = on_a_terminal(runtime.argv("run", "--bundle", str(place), name), runtime.environment(),
                                  answer=(b"== end", b"\n"))
    if "== end" not in written:
        return {"failed": f"exit {code}: {written.strip()}"}
    return observation.inside(written, place) | {"exit code": str(code)}


def compare(case, ours, theirs, peer, used):
    """One line for each field in which two observations differ, unless the difference is known."""
    for field in sorted(set(ours) | set(theirs)):
        our_value, their_value = ours.get(field), theirs.get(field)
        if our_value == their_value:
            continue
        rule = known_differences.find(case.name, peer, field, our_value, their_value)
        if rule:
            used.add(rule)
        else:
            yield f"{field}: {shorten(our_value)}, with {peer} {shorten(their_value)}"


def shorten(value):
    text = "absent" if value is None else repr(value)
    return text if len(text) < 700 else text[:700] + "…"


def assert_promises(case, fields, account):
    """The container must be as the specification promises."""
    for field, wanted in case.expect.items():
        if account and field in ("writable",):
            continue
        assert fields.get(field) == wanted, f"{field} is {shorten(fields.get(field))}, the specification requires {shorten(wanted)}"
    assert fields["exit code"] == str(case.exit_code), f"exit code is {fields['exit code']}, the program's was {case.exit_code}"


def check(case, runtime, peers, roots, account, used):
    """A container must keep the promises, and be as those of the peers."""
    ours = observe(runtime, case, roots, account)
    if case.error and runtime.name == "ours":
        output = ours.get("failed", "it starts")
        assert case.error in output, f"must be rejected with `{case.error}`: {output}"
        return
    assert "failed" not in ours, ours["failed"]
    assert_promises(case, ours, account)
    for peer in peers:
        if peer.name in case.lacking:
            continue
        other = observe(peer, case, roots, account)
        if "failed" not in other:
            differences = list(compare(case, ours, other, peer.name, used))
            assert not differences, "\n".join(differences)
        elif rule := known_differences.find(case.name, peer.name, "failed", None, other["failed"]):
            used.add(rule)
        else:
            pytest.fail(f"{peer.name} does not start: {other['failed']}")


def containers(rootless):
    """A test for each container that only root can have, or that users can have too."""
    return pytest.mark.parametrize("case", [pytest.param(case, id=case.name.replace("-", "_")) for case in cases.CASES if case.rootless == rootless])


@pytest.fixture(scope="module")
def used():
    """The known differences that containers of root have shown, and the containers."""
    return set(), set()


@containers(rootless=True)
@pytest.mark.accounts("root", "range", slow="single")
def test_a_container_is_the_same_with_every_runtime(runtime, peers, roots, account, used, case):
    check(case, runtime, peers, roots, account, used[0])
    if not account:
        used[1].add(case.name)


@containers(rootless=False)
def test_a_container_of_root_is_the_same_with_every_runtime(runtime, peers, roots, account, used, case):
    check(case, runtime, peers, roots, account, used[0])
    used[1].add(case.name)


def test_every_known_difference_is_needed(runtime, used):
    if len(used[1]) < len(cases.CASES) or runtime.name != "ours":
        pytest.skip("a part of the containers shows a part of the differences")
    assert not [f"{rule.field}: {rule.why}" for rule in known_differences.RULES if rule not in used[0]]
