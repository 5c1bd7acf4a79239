#!/usr/bin/env python3
"""Runs the same bundles with a runtime and with runc and crun, and compares the containers field by field.

A difference fails unless `known_differences.py` says why it is correct; an entry that no case needs any more also fails.
Each case also names what the specification promises for it, which every runtime must keep.
"""

import os
import subprocess
import sys
import threading

import cases
import known_differences
import observation
import user
from bundle import Roots, configuration, rootless
from harness import Harness, scratch
from podman import until
from runtime import Runtime, on_a_terminal, program

PEERS = ("runc", "crun")


def observe(runtime, case, roots, directory, account):
    """The fields of one container, or a single field `failed` with the runtime's error."""
    place = directory / f"{case.name}-{runtime.name}"
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


def remove_groups(name):
    """Removes the cgroups that runtimes leave above a container's cgroup."""
    for top in ("/sys/fs/cgroup", *(f"/sys/fs/cgroup/{each}" for each in os.listdir("/sys/fs/cgroup"))):
        for directory, _, _ in os.walk(os.path.join(top, name), topdown=False):
            try:
                os.rmdir(directory)
            except OSError:
                pass


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


def main():
    harness = Harness("differential", __doc__.split("\n", maxsplit=1)[0])
    harness.parser.add_argument("--user", choices=("root", "range", "single"), default="root",
                              help="run as root, or as a user with or without a range of ids")
    harness.parser.add_argument("--peer", action="append", help="compare only with this runtime")
    harness.parser.add_argument("--show", action="store_true", help="print every field that the runtime under test gave")
    options = harness.parse()
    if os.geteuid() != 0:
        harness.missing("root")
    account = {"root": None, "range": user.with_range, "single": user.without_range}[options.user]
    account = account() if account else None
    used = set()
    with scratch() as directory:
        roots = Roots(directory, harness.tool("busybox"))
        runtime = Runtime(program(harness, directory), directory, account)
        peers = [Runtime(harness.tool(name), directory, account) for name in options.peer or PEERS if name != runtime.name]
        for case in cases.CASES:
            if not harness.wants(case.name) or runtime.name in case.lacking or account and not case.rootless:
                continue
            ours = observe(runtime, case, roots, directory, account)
            if options.show:
                print("\n".join(f"{case.name}: {key}: {value!r}" for key, value in ours.items()))
            if case.error and runtime.name == "ours":
                output = ours.get("failed", "it starts")
                harness.check(case.name, [] if case.error in output else [f"must be rejected with `{case.error}`: {output}"])
                continue
            problems = [ours["failed"]] if "failed" in ours else list(unmet_promises(case, ours, account))
            for peer in peers:
                if peer.name in case.lacking or "failed" in ours:
                    continue
                other = observe(peer, case, roots, directory, account)
                if "failed" in other:
                    rule = known_differences.find(case.name, peer.name, "failed", None, other["failed"])
                    if rule:
                        used.add(rule)
                    else:
                        problems.append(f"{peer.name} does not start: {other['failed']}")
                    continue
                problems += compare(case, ours, other, peer.name, used)
            harness.check(case.name, problems)
    if options.only is None and runtime.name == "ours" and not account:
        for rule in known_differences.RULES:
            if rule not in used:
                harness.check(f"known_differences.py: {rule.field}", [f"no case needs it any more: {rule.why}"])
    harness.end()


def unmet_promises(case, fields, account):
    """The promises of the specification that the container does not keep."""
    for field, wanted in case.expect.items():
        if account and field in ("writable",):
            continue
        if fields.get(field) != wanted:
            yield f"{field} is {shorten(fields.get(field))}, the specification requires {shorten(wanted)}"
    if fields["exit code"] != str(case.exit_code):
        yield f"exit code is {fields['exit code']}, the program's was {case.exit_code}"


if __name__ == "__main__":
    sys.exit(main())
