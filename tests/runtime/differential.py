#!/usr/bin/env python3
"""Runs the same bundles under a runtime and under runc and crun, and compares what each container is, field by field.

A difference is refused unless `explained.py` says why it is right; an explanation that no case needs any longer is
refused too. Each case also names what the specification promises for it, which every runtime is held to.
"""

import os
import subprocess
import sys
import threading

import cases
import explained
import observation
import user
from bundle import Roots, configuration, rootless
from harness import Harness, scratch
from podman import until
from runtime import Runtime, on_a_terminal, program

PEERS = ("runc", "crun")


def observed(runtime, case, roots, directory, account):
    """The fields of one container, or a single `failed` with what the runtime said."""
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
            return seen_on_a_terminal(runtime, case, place, name)
        return seen_while_it_waits(runtime, case, place, name, config["linux"].get("cgroupsPath"))
    finally:
        runtime.delete(name)
        remove_groups(f"check-{os.getpid()}")


def seen_while_it_waits(runtime, case, place, name, group):
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
    # The program may be a moment ahead of what the runtime writes down of it.
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
    fields["said"] = errors.strip()
    fields["left"] = str(runtime.state(name) is not None)
    return fields


def seen_on_a_terminal(runtime, case, place, name):
    code, written = on_a_terminal(runtime.argv("run", "--bundle", str(place), name), runtime.environment(),
                                  answer=(b"== end", b"\n"))
    if "== end" not in written:
        return {"failed": f"exit {code}: {written.strip()}"}
    return observation.inside(written, place) | {"exit code": str(code)}


def remove_groups(name):
    """What runtimes leave above a container's own group."""
    for top in ("/sys/fs/cgroup", *(f"/sys/fs/cgroup/{each}" for each in os.listdir("/sys/fs/cgroup"))):
        for directory, _, _ in os.walk(os.path.join(top, name), topdown=False):
            try:
                os.rmdir(directory)
            except OSError:
                pass


def compared(case, ours, theirs, peer, used):
    """One line for each field in which two observations differ and nothing explains it."""
    for field in sorted(set(ours) | set(theirs)):
        mine, other = ours.get(field), theirs.get(field)
        if mine == other:
            continue
        rule = explained.find(case.name, peer, field, mine, other)
        if rule:
            used.add(rule)
        else:
            yield f"{field}: {shown(mine)}, under {peer} {shown(other)}"


def shown(value):
    text = "absent" if value is None else repr(value)
    return text if len(text) < 700 else text[:700] + "…"


def main():
    harness = Harness("differential", __doc__.split("\n", maxsplit=1)[0])
    harness.parser.add_argument("--user", choices=("root", "range", "single"), default="root",
                              help="run as root, as a user with a range of ids, or as one with its own id alone")
    harness.parser.add_argument("--peer", action="append", help="compare with this one only")
    harness.parser.add_argument("--show", action="store_true", help="print every field that the runtime under test gave")
    options = harness.parse()
    if os.geteuid() != 0:
        harness.skip("root makes the bundles, also those of an unprivileged user")
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
            mine = observed(runtime, case, roots, directory, account)
            if options.show:
                print("\n".join(f"{case.name}: {key}: {value!r}" for key, value in mine.items()))
            if case.refused and runtime.name == "ours":
                said = mine.get("failed", "it starts")
                harness.check(case.name, [] if case.refused in said else [f"is to be refused with `{case.refused}`: {said}"])
                continue
            problems = [mine["failed"]] if "failed" in mine else list(promised(case, mine, account))
            for peer in peers:
                if peer.name in case.lacking or "failed" in mine:
                    continue
                other = observed(peer, case, roots, directory, account)
                if "failed" in other:
                    rule = explained.find(case.name, peer.name, "failed", None, other["failed"])
                    if rule:
                        used.add(rule)
                    else:
                        problems.append(f"{peer.name} does not start: {other['failed']}")
                    continue
                problems += compared(case, mine, other, peer.name, used)
            harness.check(case.name, problems)
    if options.only is None and runtime.name == "ours" and not account:
        for rule in explained.RULES:
            if rule not in used:
                harness.check(f"explained.py: {rule.field}", [f"no case needs it any longer: {rule.why}"])
    harness.end()


def promised(case, fields, account):
    """What the specification says of the case and the container is not."""
    for field, wanted in case.expect.items():
        if account and field in ("writable",):
            continue
        if fields.get(field) != wanted:
            yield f"{field} is {shown(fields.get(field))}, the specification asks for {shown(wanted)}"
    if fields["exit code"] != str(case.exit_code):
        yield f"exit code is {fields['exit code']}, the program's was {case.exit_code}"


if __name__ == "__main__":
    sys.exit(main())
