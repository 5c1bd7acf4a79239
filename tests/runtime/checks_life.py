"""Checks 9, 10, 15 and 16: devices, cgroups, unsupported configurations, signals and exits."""

import contextlib
import os
import subprocess
import time
from pathlib import Path

from checks_paths import capabilities
from differential import remove_groups
from exits import running
from podman import until
from fixture import hung, rejected
from security import check

V2 = os.path.exists("/sys/fs/cgroup/cgroup.controllers")


@check(9, "a device that is not listed cannot be opened", mutations=("devices",))
def devices(fixture):
    for kind, major, minor, what in (("c", 10, 237, "loop-control"), ("c", 10, 229, "fuse"), ("b", 7, 0, "loop0"), ("b", 254, 0, "the disk")):
        result = fixture.run(["node", kind, str(major), str(minor)], lambda config: capabilities(config, "CAP_MKNOD"))
        yield from hung(result)
        if "opened" in result.stdout or "Operation not permitted" not in result.stdout:
            yield f"{what}: {result.stdout.strip()} {result.stderr.strip()}"
    if fixture.account:
        return
    result = fixture.run(["node", "c", "1", "5"], lambda config: capabilities(config, "CAP_MKNOD"))
    if "opened" not in result.stdout:
        yield f"/dev/zero, which everyone has: {result.stdout.strip()} {result.stderr.strip()}"


@check(9, "a listed device can be opened with the listed access", mutations=("list",), rootless=False)
def listed_device(fixture):
    def configure(config):
        capabilities(config, "CAP_MKNOD")
        config["linux"]["resources"]["devices"] = rules

    rules = [{"allow": False, "access": "rwm"}, {"allow": True, "type": "c", "major": 10, "minor": 229, "access": "rm"}]
    result = fixture.run(["node", "c", "10", "229"], configure)
    # Without that driver the kernel says so only if the cgroup allows the device.
    if "opened" not in result.stdout and "No such device" not in result.stdout:
        yield f"a node that is allowed: {result.stdout.strip()} {result.stderr.strip()}"
    result = fixture.run(["node", "c", "10", "237"], configure)
    if "opened" in result.stdout:
        yield "a device that is not allowed can be opened"
    # The v1 controller cannot exclude one device from all; then the rules must be rejected.
    rules = [{"allow": False, "access": "rwm"}, {"allow": True, "type": "c", "major": 10, "access": "rm"},
             {"allow": False, "type": "c", "major": 10, "minor": 229, "access": "rwm"}]
    result = fixture.run(["node", "c", "10", "229"], configure)
    if "opened" in result.stdout:
        yield "a later rule that denies is ignored"


@check(10, "limits are enforced and the cgroup cannot be left", mutations=("limits", "cgroup-writable"), rootless=False)
def limits(fixture):
    result = fixture.run(["bomb", "500"], lambda config: config["linux"]["resources"].update(pids={"limit": 20}))
    yield from hung(result)
    children = int(result.stdout.rpartition(" ")[2] or 999) if "children" in result.stdout else 999
    if children >= 20:
        yield f"20 processes are allowed and {children} started: {result.stderr.strip()}"
    result = fixture.run(["allocate", "200"], lambda config: config["linux"]["resources"].update(memory={"limit": 32 << 20, "swap": 32 << 20}))
    yield from hung(result)
    if result.returncode != 137 or "touched 48" in result.stdout:
        yield f"200 MiB could be allocated with a limit of 32: exit code {result.returncode} {result.stdout.split()} {result.stderr.strip()}"
    script = ("for f in /sys/fs/cgroup /sys/fs/cgroup/*; do mkdir $f/out && echo made $f; done; "
              "for f in /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/*/cgroup.procs /sys/fs/cgroup/*/tasks /sys/fs/cgroup/pids/pids.max "
              "/sys/fs/cgroup/pids.max; do echo $$ >$f && echo wrote $f; done; mount -o remount,rw /sys/fs/cgroup && echo remounted; cat /proc/self/cgroup")
    result = fixture.run(["/bin/sh", "-c", script])
    for word in ("made", "wrote", "remounted"):
        if word in result.stdout:
            yield f"the container's cgroups can be changed from inside: {result.stdout.split(chr(10))[:4]}"
    if "check-" in result.stdout:
        yield "the cgroup's path on the host is visible"
    remove_groups(f"check-{os.getpid()}")


@check(10, "the program is in its cgroup from its first instruction", mutations=("no-group",), rootless=False)
def first_instruction(fixture):
    started, name = fixture.start(["/bin/sh", "-c", "echo ready; exec sleep 99"],
                                lambda config: config["linux"]["resources"].update(pids={"limit": 30}, memory={"limit": 64 << 20}))
    if not started:
        yield name
        return
    # The program may start before the runtime has written the state.
    until(lambda: (fixture.runtime.state(name) or {}).get("pid"), seconds=5)
    pid = fixture.runtime.state(name)["pid"]
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if (controllers in ("memory", "pids", "devices") or V2) and not path.startswith(f"/check-{os.getpid()}/"):
            yield f"it is in `{line}`"
    fixture.end(started, name)
    remove_groups(f"check-{os.getpid()}")


@check(10, "exec enters a cgroup that the container has divided", mutations=("group-of-exec",), rootless=False, place="v2")
def divided_cgroup(fixture):
    """As systemd does in a container: it moves itself to a child cgroup and enables controllers, so its own cgroup accepts no process."""
    if not V2:
        return

    def writable(config):
        for mount in config["mounts"]:
            if mount["type"] in ("cgroup", "cgroup2"):
                mount["options"] = [option for option in mount["options"] if option != "ro"]

    script = ("cd /sys/fs/cgroup && mkdir first && echo 0 >first/cgroup.procs && echo +pids >cgroup.subtree_control && "
              "test $(cat cgroup.subtree_control) = pids && echo ready; exec sleep 99")
    started, name = fixture.start(["/bin/sh", "-c", script], writable)
    if not started:
        yield name
        return
    result = fixture.runtime.call("exec", name, "/bin/cat", "/proc/self/cgroup")
    if result.stdout.strip() != "0::/first":
        yield f"exec: exit code {result.returncode} {result.stdout.strip()} {result.stderr.strip()}"
    fixture.end(started, name)
    remove_groups(f"check-{os.getpid()}")


@check(10, "a cgroup path stays below the cgroup tree", mutations=("cgroup-path",), rootless=False)
def group_path(fixture):
    for path in ("/../../tested-escape", "tested/../../../tested-escape", "/tested/./x", "/tested/../tested-escape", "/tested//..", "..", "/.."):
        result = fixture.run(["hello"], lambda config, path=path: config["linux"].update(cgroupsPath=path))
        yield from hung(result)
        for top in ("/sys/fs/cgroup", "/sys/fs", "/sys", "/"):
            found = Path(top, "tested-escape")
            if found.exists():
                found.rmdir()
                yield f"`{path}` created {found}"
        if result.returncode == 0 and ".." in path and fixture.runtime.name not in ("runc", "crun"):
            yield f"`{path}` is accepted"
    remove_groups("tested")
    remove_groups("tested-escape")


@check(10, "no process survives a kill", mutations=("kill-one",))
def kill(fixture):
    # The last argument is unique to this process: another test may run.
    attack = ["orphans", "40", str(os.getpid())]
    started, name = fixture.start(attack)
    if not started:
        yield name
        return
    if len(running(f"/inside {' '.join(attack)}")) < 40:
        yield "the attack did not start"
    fixture.end(started, name)
    deadline = time.monotonic() + 5
    while (left := running(f"/inside {' '.join(attack)}")) and time.monotonic() < deadline:
        time.sleep(0.05)
    if left:
        yield f"{len(left)} processes are still running"
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
    remove_groups(f"check-{os.getpid()}")


# Requests that a runtime may not support: a container that starts must really have them.
UNSUPPORTED = {
    "an unknown namespace": lambda c: c["linux"]["namespaces"].append({"type": "spirit"}),
    "a namespace twice": lambda c: c["linux"]["namespaces"].append({"type": "pid"}),
    "a capability that is no text": lambda c: c["process"]["capabilities"]["bounding"].append(7),
    "an unknown rlimit": lambda c: c["process"].update(rlimits=[{"type": "RLIMIT_HOPE", "soft": 1, "hard": 1}]),
    "a soft rlimit above its hard limit": lambda c: c["process"].update(rlimits=[{"type": "RLIMIT_NOFILE", "soft": 9, "hard": 3}]),
    "an rlimit twice": lambda c: c["process"].update(rlimits=[{"type": "RLIMIT_NOFILE", "soft": 9, "hard": 9}] * 2),
    "an unknown file system": lambda c: c["mounts"].append({"destination": "/mnt", "type": "nofs", "source": "x"}),
    "an unknown mount option": lambda c: c["mounts"].append({"destination": "/mnt", "type": "tmpfs", "source": "x", "options": ["shiny"]}),
    "a bind mount of a missing source": lambda c: c["mounts"].append({"destination": "/mnt", "type": "bind", "source": "/not/there", "options": ["bind"]}),
    "a mount at a relative path": lambda c: c["mounts"].append({"destination": "mnt/../..", "type": "tmpfs", "source": "x"}),
    "an AppArmor profile": lambda c: c["process"].update(apparmorProfile="absent-profile"),
    "an SELinux label": lambda c: c["process"].update(selinuxLabel="system_u:system_r:none_t:s0"),
    "an unknown seccomp action": lambda c: c["linux"].update(seccomp={"defaultAction": "SCMP_ACT_PRAY"}),
    "an unknown seccomp operator": lambda c: c["linux"].update(seccomp={"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
        {"names": ["mkdir"], "action": "SCMP_ACT_ERRNO", "args": [{"index": 0, "value": 1, "op": "SCMP_CMP_LIKE"}]}]}),
    "an invalid seccomp argument": lambda c: c["linux"].update(seccomp={"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
        {"names": ["mkdir"], "action": "SCMP_ACT_ERRNO", "args": [{"index": 9, "value": 1, "op": "SCMP_CMP_EQ"}]}]}),
    "a seccomp listener that does not exist": lambda c: c["linux"].update(seccomp={"defaultAction": "SCMP_ACT_ALLOW", "listenerPath": "/not/there.sock", "syscalls": [
        {"names": ["mkdir"], "action": "SCMP_ACT_NOTIFY"}]}),
    "Intel RDT": lambda c: c["linux"].update(intelRdt={"closID": "tested", "l3CacheSchema": "L3:0=f"}),
    "an unknown sysctl": lambda c: c["linux"].update(sysctl={"kernel.not_there": "1"}),
    "a sysctl of the host": lambda c: c["linux"].update(sysctl={"kernel.panic": "77"}),
    "a sysctl with a path": lambda c: c["linux"].update(sysctl={"net.../../kernel/panic": "77"}),
    "a device without a type": lambda c: c["linux"].update(devices=[{"path": "/dev/x", "major": 1, "minor": 3}]),
    "a device outside the root": lambda c: c["linux"].update(devices=[{"path": "/dev/../../../x", "type": "q"}]),
    "id mappings without a user namespace": lambda c: c["linux"].update(uidMappings=[{"containerID": 0, "hostID": 5, "size": 1}]),
    "a hostname without a uts namespace": lambda c: c["linux"].update(namespaces=[n for n in c["linux"]["namespaces"] if n["type"] != "uts"]),
    "an unknown root propagation": lambda c: c["linux"].update(rootfsPropagation="wide"),
    "an unknown personality": lambda c: c["linux"].update(personality={"domain": "VMS"}),
    "a future version": lambda c: c.update(ociVersion="9.0.0"),
    "an invalid version": lambda c: c.update(ociVersion="latest"),
    "no process": lambda c: c.pop("process"),
    "no program": lambda c: c["process"].update(args=[]),
    "no root": lambda c: c.pop("root"),
    "a missing root": lambda c: c["root"].update(path="elsewhere"),
    "a working directory that is relative": lambda c: c["process"].update(cwd="tmp"),
    "a working directory that is a file": lambda c: c["process"].update(cwd="/etc/passwd"),
    "an oom score out of range": lambda c: c["process"].update(oomScoreAdj=5000),
    "a negative user": lambda c: c["process"]["user"].update(uid=-1),
    "a uid out of range": lambda c: c["process"]["user"].update(uid=1 << 33),
    "a NUL byte in an argument": lambda c: c["process"].update(args=["/inside", "hel\0lo"]),
    "a NUL byte in the environment": lambda c: c["process"]["env"].append("A=\0"),
    "a missing namespace path": lambda c: c["linux"]["namespaces"][1].update(path="/not/there"),
    "a namespace path of another type": lambda c: c["linux"]["namespaces"][1].update(path="/proc/self/ns/uts"),
    "a negative memory limit": lambda c: c["linux"].setdefault("resources", {}).update(memory={"limit": -7}),
    "processors that do not exist": lambda c: c["linux"].setdefault("resources", {}).update(cpu={"cpus": "900-901"}),
    "huge pages without a controller": lambda c: c["linux"].setdefault("resources", {}).update(
        hugepageLimits=[{"pageSize": "3MB", "limit": 1 << 20}]),
    "an RDMA device": lambda c: c["linux"].setdefault("resources", {}).update(rdma={"mlx5_1": {"hcaHandles": 3}}),
    "an unknown cgroup v2 file": lambda c: c["linux"].setdefault("resources", {}).update(unified={"memory.not_there": "1"}),
}


@check(15, "an unsupported configuration is rejected with a message", mutations=("ignore",))
def unsupported(fixture):
    panic = Path("/proc/sys/kernel/panic").read_text()
    for what, change in UNSUPPORTED.items():
        try:
            result = fixture.run(["hello"], change)
        except (ValueError, KeyError) as error:
            fixture.harness.note(f"{what}: cannot be requested here: {error}")
            continue
        yield from rejected(result, what)
    if Path("/proc/sys/kernel/panic").read_text() != panic:
        yield "a sysctl of the host was changed"
    remove_groups(f"check-{os.getpid()}")


@check(15, "an unreadable configuration is rejected", mutations=("ignore",))
def unreadable(fixture):
    place, name = fixture.bundle(["hello"])
    whole = (place / "config.json").read_text()
    for what, text in (("empty", ""), ("cut short", whole[:400]), ("a list", "[]"), ("null", "null"), ("a number", "7"), ("not JSON", "name: x"),
                       ("not UTF-8", None), ("deep", "[" * 100_000), ("wrong types", '{"ociVersion": 1, "process": []}'), ("a directory", "")):
        path = place / "config.json"
        path.unlink()
        if what == "a directory":
            path.mkdir()
        elif text is None:
            path.write_bytes(b'{"ociVersion": "\xff\xfe"}')
        else:
            path.write_text(text)
        yield from rejected(fixture.runtime.run(place, name, seconds=10), what)
    yield from rejected(fixture.runtime.run(place / "nowhere", name), "a missing bundle")


@check(16, "no start hangs and every exit is reported", mutations=("hang",))
def ends(fixture):
    place, name = fixture.bundle(["hello"])
    for number in range(fixture.harness.options.races):
        result = fixture.runtime.run(place, f"{name}-{number}", seconds=10)
        if result.returncode or result.stdout != "hello\n":
            yield f"start {number}: exit code {result.returncode} {result.stderr.strip()}"
            return


@check(16, "concurrent starts do not disturb each other", mutations=("at-once",))
def concurrent_starts(fixture):
    place, name = fixture.bundle(["hello"], lambda config: config["linux"].pop("cgroupsPath", None))
    many = [subprocess.Popen(fixture.runtime.argv("run", "--bundle", str(place), f"{name}-{number}"), stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=fixture.runtime.environment(), text=True)
            for number in range(12)]
    for number, each in enumerate(many):
        try:
            _, errors = each.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            each.kill()
            _, errors = each.communicate()
            yield f"{number} hangs"
            continue
        if each.returncode != 0 and "Device or resource busy" not in errors:
            yield f"{number}: exit code {each.returncode}: {errors.strip()}"
    remove_groups(f"check-{os.getpid()}")
