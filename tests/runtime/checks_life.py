"""Checks 9, 10, 15 and 16: devices, cgroups, failing closed, signals and ends."""

import contextlib
import os
import subprocess
import time
from pathlib import Path

from checks_paths import capabilities
from differential import remove_groups
from exits import running
from podman import until
from scene import hung, refused
from security import check

V2 = os.path.exists("/sys/fs/cgroup/cgroup.controllers")


@check(9, "a device that is not listed cannot be opened", mutations=("devices",))
def devices(scene):
    for kind, major, minor, what in (("c", 10, 237, "loop-control"), ("c", 10, 229, "fuse"), ("b", 7, 0, "loop0"), ("b", 254, 0, "the disk")):
        ended = scene.run(["node", kind, str(major), str(minor)], lambda config: capabilities(config, "CAP_MKNOD"))
        yield from hung(ended)
        if "opened" in ended.stdout or "Operation not permitted" not in ended.stdout:
            yield f"{what}: {ended.stdout.strip()} {ended.stderr.strip()}"
    if scene.account:
        return
    ended = scene.run(["node", "c", "1", "5"], lambda config: capabilities(config, "CAP_MKNOD"))
    if "opened" not in ended.stdout:
        yield f"/dev/zero, which everyone has: {ended.stdout.strip()} {ended.stderr.strip()}"


@check(9, "a device on the list can be opened, in the way it says", mutations=("list",), rootless=False)
def listed_device(scene):
    def asked(config):
        capabilities(config, "CAP_MKNOD")
        config["linux"]["resources"]["devices"] = rules

    rules = [{"allow": False, "access": "rwm"}, {"allow": True, "type": "c", "major": 10, "minor": 229, "access": "rm"}]
    ended = scene.run(["node", "c", "10", "229"], asked)
    # A kernel without that driver says so only to whom the cgroup lets through.
    if "opened" not in ended.stdout and "No such device" not in ended.stdout:
        yield f"a node that is allowed: {ended.stdout.strip()} {ended.stderr.strip()}"
    ended = scene.run(["node", "c", "10", "237"], asked)
    if "opened" in ended.stdout:
        yield "a node beside the one that is allowed can be opened"
    # The v1 controller cannot take one number out of all; then the rules must be refused.
    rules = [{"allow": False, "access": "rwm"}, {"allow": True, "type": "c", "major": 10, "access": "rm"},
             {"allow": False, "type": "c", "major": 10, "minor": 229, "access": "rwm"}]
    ended = scene.run(["node", "c", "10", "229"], asked)
    if "opened" in ended.stdout:
        yield "a later rule that denies does not count"


@check(10, "limits hold and the group cannot be left", mutations=("limits", "cgroup-writable"), rootless=False)
def limits(scene):
    ended = scene.run(["bomb", "500"], lambda config: config["linux"]["resources"].update(pids={"limit": 20}))
    yield from hung(ended)
    children = int(ended.stdout.rpartition(" ")[2] or 999) if "children" in ended.stdout else 999
    if children >= 20:
        yield f"20 processes are allowed and {children} started: {ended.stderr.strip()}"
    ended = scene.run(["allocate", "200"], lambda config: config["linux"]["resources"].update(memory={"limit": 32 << 20, "swap": 32 << 20}))
    yield from hung(ended)
    if ended.returncode != 137 or "touched 48" in ended.stdout:
        yield f"200 MiB of 32 could be had: exit code {ended.returncode} {ended.stdout.split()} {ended.stderr.strip()}"
    script = ("for f in /sys/fs/cgroup /sys/fs/cgroup/*; do mkdir $f/out && echo made $f; done; "
              "for f in /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/*/cgroup.procs /sys/fs/cgroup/*/tasks /sys/fs/cgroup/pids/pids.max "
              "/sys/fs/cgroup/pids.max; do echo $$ >$f && echo wrote $f; done; mount -o remount,rw /sys/fs/cgroup && echo remounted; cat /proc/self/cgroup")
    ended = scene.run(["/bin/sh", "-c", script])
    for word in ("made", "wrote", "remounted"):
        if word in ended.stdout:
            yield f"the container's groups can be changed from inside: {ended.stdout.split(chr(10))[:4]}"
    if "check-" in ended.stdout:
        yield "the group's place on the host is seen"
    remove_groups(f"check-{os.getpid()}")


@check(10, "the program is in its group from its first instruction", mutations=("no-group",), rootless=False)
def in_its_group(scene):
    started, name = scene.start(["/bin/sh", "-c", "echo ready; exec sleep 99"],
                                lambda config: config["linux"]["resources"].update(pids={"limit": 30}, memory={"limit": 64 << 20}))
    if not started:
        yield name
        return
    # The program may be a moment ahead of what the runtime writes down of it.
    until(lambda: (scene.runtime.state(name) or {}).get("pid"), seconds=5)
    pid = scene.runtime.state(name)["pid"]
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if (controllers in ("memory", "pids", "devices") or V2) and not path.startswith(f"/check-{os.getpid()}/"):
            yield f"it is in `{line}`"
    scene.end(started, name)
    remove_groups(f"check-{os.getpid()}")


@check(10, "a further program enters a group that the container has divided", mutations=("group-of-exec",), rootless=False, place="v2")
def divided(scene):
    """As systemd does in a container: it moves itself one down and passes controllers on, so its own group takes nobody any more."""
    if not V2:
        return

    def writable(config):
        for mount in config["mounts"]:
            if mount["type"] in ("cgroup", "cgroup2"):
                mount["options"] = [option for option in mount["options"] if option != "ro"]

    script = ("cd /sys/fs/cgroup && mkdir first && echo 0 >first/cgroup.procs && echo +pids >cgroup.subtree_control && "
              "test $(cat cgroup.subtree_control) = pids && echo ready; exec sleep 99")
    started, name = scene.start(["/bin/sh", "-c", script], writable)
    if not started:
        yield name
        return
    ended = scene.runtime.call("exec", name, "/bin/cat", "/proc/self/cgroup")
    if ended.stdout.strip() != "0::/first":
        yield f"a further program: exit code {ended.returncode} {ended.stdout.strip()} {ended.stderr.strip()}"
    scene.end(started, name)
    remove_groups(f"check-{os.getpid()}")


@check(10, "a group's path stays below the tree", mutations=("cgroup-path",), rootless=False)
def group_path(scene):
    for path in ("/../../tested-escape", "tested/../../../tested-escape", "/tested/./x", "/tested/../tested-escape", "/tested//..", "..", "/.."):
        ended = scene.run(["hello"], lambda config, path=path: config["linux"].update(cgroupsPath=path))
        yield from hung(ended)
        for top in ("/sys/fs/cgroup", "/sys/fs", "/sys", "/"):
            found = Path(top, "tested-escape")
            if found.exists():
                found.rmdir()
                yield f"`{path}` made {found}"
        if ended.returncode == 0 and ".." in path and scene.runtime.name not in ("runc", "crun"):
            yield f"`{path}` is taken"
    remove_groups("tested")
    remove_groups("tested-escape")


@check(10, "nothing survives a kill", mutations=("kill-one",))
def kill(scene):
    # The last argument is unique to this process: another test may run.
    attack = ["orphans", "40", str(os.getpid())]
    started, name = scene.start(attack)
    if not started:
        yield name
        return
    if len(running(f"/inside {' '.join(attack)}")) < 40:
        yield "the attack did not start"
    scene.end(started, name)
    deadline = time.monotonic() + 5
    while (left := running(f"/inside {' '.join(attack)}")) and time.monotonic() < deadline:
        time.sleep(0.05)
    if left:
        yield f"{len(left)} processes live on"
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
    remove_groups(f"check-{os.getpid()}")


# What asks for something that may not be known or not be had: a container that starts must really have it.
STRANGE = {
    "a namespace of no kind": lambda c: c["linux"]["namespaces"].append({"type": "spirit"}),
    "a namespace twice": lambda c: c["linux"]["namespaces"].append({"type": "pid"}),
    "a capability of no name": lambda c: c["process"]["capabilities"]["bounding"].append("CAP_FLY"),
    "a resource limit of no name": lambda c: c["process"].update(rlimits=[{"type": "RLIMIT_HOPE", "soft": 1, "hard": 1}]),
    "a resource limit above its own": lambda c: c["process"].update(rlimits=[{"type": "RLIMIT_NOFILE", "soft": 9, "hard": 3}]),
    "a resource limit twice": lambda c: c["process"].update(rlimits=[{"type": "RLIMIT_NOFILE", "soft": 9, "hard": 9}] * 2),
    "a file system of no kind": lambda c: c["mounts"].append({"destination": "/mnt", "type": "nofs", "source": "x"}),
    "a mount option of no name": lambda c: c["mounts"].append({"destination": "/mnt", "type": "tmpfs", "source": "x", "options": ["shiny"]}),
    "a bind of what is not there": lambda c: c["mounts"].append({"destination": "/mnt", "type": "bind", "source": "/not/there", "options": ["bind"]}),
    "a mount at a relative place": lambda c: c["mounts"].append({"destination": "mnt/../..", "type": "tmpfs", "source": "x"}),
    "an AppArmor profile": lambda c: c["process"].update(apparmorProfile="absent-profile"),
    "an SELinux label": lambda c: c["process"].update(selinuxLabel="system_u:system_r:none_t:s0"),
    "a mount label": lambda c: c["linux"].update(mountLabel="system_u:object_r:none_t:s0"),
    "a seccomp action of no name": lambda c: c["linux"].update(seccomp={"defaultAction": "SCMP_ACT_PRAY"}),
    "a seccomp operator of no name": lambda c: c["linux"].update(seccomp={"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
        {"names": ["mkdir"], "action": "SCMP_ACT_ERRNO", "args": [{"index": 0, "value": 1, "op": "SCMP_CMP_LIKE"}]}]}),
    "a seccomp argument that is none": lambda c: c["linux"].update(seccomp={"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
        {"names": ["mkdir"], "action": "SCMP_ACT_ERRNO", "args": [{"index": 9, "value": 1, "op": "SCMP_CMP_EQ"}]}]}),
    "a listener for seccomp": lambda c: c["linux"].update(seccomp={"defaultAction": "SCMP_ACT_ALLOW", "listenerPath": "/not/there.sock", "syscalls": [
        {"names": ["mkdir"], "action": "SCMP_ACT_NOTIFY"}]}),
    "cache and bandwidth": lambda c: c["linux"].update(intelRdt={"closID": "tested", "l3CacheSchema": "L3:0=f"}),
    "a kernel value of no name": lambda c: c["linux"].update(sysctl={"kernel.not_there": "1"}),
    "a kernel value of the host's": lambda c: c["linux"].update(sysctl={"kernel.panic": "77"}),
    "a kernel value that leads out": lambda c: c["linux"].update(sysctl={"net.../../kernel/panic": "77"}),
    "a device without a type": lambda c: c["linux"].update(devices=[{"path": "/dev/x", "major": 1, "minor": 3}]),
    "a device outside": lambda c: c["linux"].update(devices=[{"path": "/dev/../../../x", "type": "q"}]),
    "mappings without a namespace": lambda c: c["linux"].update(uidMappings=[{"containerID": 0, "hostID": 5, "size": 1}]),
    "a hostname without a namespace": lambda c: c["linux"].update(namespaces=[n for n in c["linux"]["namespaces"] if n["type"] != "uts"]),
    "a root propagation of no name": lambda c: c["linux"].update(rootfsPropagation="wide"),
    "a personality of no name": lambda c: c["linux"].update(personality={"domain": "VMS"}),
    "a version to come": lambda c: c.update(ociVersion="9.0.0"),
    "a version of nonsense": lambda c: c.update(ociVersion="latest"),
    "no process": lambda c: c.pop("process"),
    "no program": lambda c: c["process"].update(args=[]),
    "no root": lambda c: c.pop("root"),
    "a root that is not there": lambda c: c["root"].update(path="elsewhere"),
    "a working directory that is relative": lambda c: c["process"].update(cwd="tmp"),
    "a working directory that is a file": lambda c: c["process"].update(cwd="/etc/passwd"),
    "an oom score out of range": lambda c: c["process"].update(oomScoreAdj=5000),
    "a negative user": lambda c: c["process"]["user"].update(uid=-1),
    "a number too great": lambda c: c["process"]["user"].update(uid=1 << 33),
    "a zero byte in an argument": lambda c: c["process"].update(args=["/inside", "hel\0lo"]),
    "a zero byte in the environment": lambda c: c["process"]["env"].append("A=\0"),
    "a namespace that is not there": lambda c: c["linux"]["namespaces"][1].update(path="/not/there"),
    "a namespace of another kind": lambda c: c["linux"]["namespaces"][1].update(path="/proc/self/ns/uts"),
    "a memory limit of no sense": lambda c: c["linux"].setdefault("resources", {}).update(memory={"limit": -7}),
    "processors that are not there": lambda c: c["linux"].setdefault("resources", {}).update(cpu={"cpus": "900-901"}),
    "huge pages without a controller": lambda c: c["linux"].setdefault("resources", {}).update(
        hugepageLimits=[{"pageSize": "3MB", "limit": 1 << 20}]),
    "a domain of remote memory": lambda c: c["linux"].setdefault("resources", {}).update(rdma={"mlx5_1": {"hcaHandles": 3}}),
    "a file of the unified tree that is not there": lambda c: c["linux"].setdefault("resources", {}).update(unified={"memory.not_there": "1"}),
}


@check(15, "what cannot be kept is refused, in words", mutations=("ignore",))
def closed(scene):
    panic = Path("/proc/sys/kernel/panic").read_text()
    for what, change in STRANGE.items():
        try:
            ended = scene.run(["hello"], change)
        except (ValueError, KeyError) as error:
            scene.harness.note(f"{what}: cannot be asked for here: {error}")
            continue
        yield from refused(ended, what)
    if Path("/proc/sys/kernel/panic").read_text() != panic:
        yield "a value of the host's kernel was changed"
    remove_groups(f"check-{os.getpid()}")


@check(15, "a configuration that cannot be read is refused", mutations=("ignore",))
def unreadable(scene):
    place, name = scene.bundle(["hello"])
    whole = (place / "config.json").read_text()
    for what, text in (("empty", ""), ("cut short", whole[:400]), ("a list", "[]"), ("null", "null"), ("a number", "7"), ("no JSON", "name: x"),
                       ("not UTF-8", None), ("deep", "[" * 100_000), ("wrong types", '{"ociVersion": 1, "process": []}'), ("a directory", "")):
        path = place / "config.json"
        path.unlink()
        if what == "a directory":
            path.mkdir()
        elif text is None:
            path.write_bytes(b'{"ociVersion": "\xff\xfe"}')
        else:
            path.write_text(text)
        yield from refused(scene.runtime.run(place, name, seconds=10), what)
    yield from refused(scene.runtime.run(place / "nowhere", name), "a bundle that is not there")


@check(16, "no start hangs and every end is told", mutations=("hang",))
def ends(scene):
    place, name = scene.bundle(["hello"])
    for number in range(scene.harness.options.races):
        ended = scene.runtime.run(place, f"{name}-{number}", seconds=10)
        if ended.returncode or ended.stdout != "hello\n":
            yield f"start {number}: exit code {ended.returncode} {ended.stderr.strip()}"
            return


@check(16, "many at once do not disturb each other", mutations=("at-once",))
def at_once(scene):
    place, name = scene.bundle(["hello"], lambda config: config["linux"].pop("cgroupsPath", None))
    many = [subprocess.Popen(scene.runtime.argv("run", "--bundle", str(place), f"{name}-{number}"), stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=scene.runtime.environment(), text=True)
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
