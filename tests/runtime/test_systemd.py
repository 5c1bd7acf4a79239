"""Tests cgroups that a runtime has systemd create, in a virtual machine whose first process is systemd.

runc is the reference: for the same bundle the unit must have the same properties, and its cgroup the same files.
"""

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

import needs
from bundle import configuration, rootless
from login import NO_DEFAULT_DEPENDENCIES, Login
from podman import Podman, expect, image

pytestmark = [pytest.mark.slow, pytest.mark.vm(cgroups="systemd"), pytest.mark.duration(20), pytest.mark.needs("busybox", "runc", "podman")]

TREE = Path("/sys/fs/cgroup")
MEGABYTE = 1 << 20
# What systemd has, and what the kernel has.
PROPERTIES = ["Slice", "Delegate", "DefaultDependencies", "MemoryMax", "MemoryLow", "MemorySwapMax", "CPUWeight", "CPUQuotaPerSecUSec",
              "CPUQuotaPeriodUSec", "TasksMax", "MemoryAccounting", "CPUAccounting", "TasksAccounting", "ControlGroup"]
FILES = ["memory.max", "memory.low", "cpu.weight", "cpu.max", "pids.max"]
LIMITS = {"memory": {"limit": 64 * MEGABYTE, "swap": 80 * MEGABYTE, "reservation": 16 * MEGABYTE},
          "cpu": {"shares": 512, "quota": 25000, "period": 50000}, "pids": {"limit": 33}}
SLEEP = ["/bin/sleep", "600"]


class Machine:
    """The runtimes and the bundles in this virtual machine."""

    def __init__(self, runtime, roots):
        self.directory, self.program, self.roots, self.made = runtime.states.parent, runtime.program, roots, 0

    def bundle(self, path, args=None, **change):
        self.made += 1
        config = configuration()
        config["process"]["args"] = args or SLEEP
        config["linux"]["cgroupsPath"] = path
        config["linux"]["resources"].update(LIMITS)
        for key, value in change.items():
            config[key] = value
        return self.roots.bundle(self.directory / f"bundle-{self.made}", config)

    def call(self, *words, program=None, flags=("--systemd-cgroup",), prefix=(), **more):
        name = Path(program or self.program).name
        command = [*prefix, str(program or self.program), "--root", f"/run/tested-{name}", *flags, *words]
        more = {"stdin": subprocess.DEVNULL, "timeout": 120} | more
        return subprocess.run(command, capture_output=True, text=True, check=False, **more)

    def detached(self, bundle, name, **more):
        """Starts a detached container, with files as its streams."""
        with open(self.directory / f"{name}.out", "w+") as out:
            command = [str(more.get("program") or self.program), "--root", f"/run/tested-{Path(more.get('program') or self.program).name}",
                       "--systemd-cgroup", "run", "--detach", "--bundle", str(bundle), name]
            code = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False, timeout=120).returncode
            out.seek(0)
            return code, out.read()


@pytest.fixture(scope="module")
def machine(runtime, roots):
    return Machine(runtime, roots)


def show(unit, *properties):
    output = subprocess.run(["systemctl", "show", unit, *(f"--property={name}" for name in properties)], capture_output=True, text=True, check=False)
    return dict(line.split("=", 1) for line in output.stdout.splitlines())


def files(group):
    return {name: (group / name).read_text().strip() if (group / name).exists() else None for name in FILES}


def assert_has(what, found, wanted):
    for key in wanted:
        assert found.get(key) == wanted[key], f"{what}: {key} is {found.get(key)!r}, not {wanted[key]!r}"


def reload():
    subprocess.run(["systemctl", "daemon-reload"], check=True, timeout=120)


def assert_gone(unit, group):
    for _ in range(100):
        # A slice stays loaded after it was stopped; a failed scope would stay too.
        if not group.exists() and show(unit, "ActiveState").get("ActiveState") == "inactive":
            return
        time.sleep(0.1)
    pytest.fail(f"{unit} is {show(unit, 'LoadState', 'ActiveState', 'Result')}, its cgroup {'exists' if group.exists() else 'is removed'}")


def test_a_unit_has_the_same_limits_as_with_runc(machine):
    """The unit's properties and its cgroup's files, compared with runc: new, after daemon-reload, after an update."""
    runc = needs.tool("runc")
    unit, group = "jobc-limited.scope", TREE / "system.slice/jobc-limited.scope"
    seen = {}
    for program in (runc, machine.program):
        bundle = machine.bundle("system.slice:jobc:limited")
        code, output = machine.detached(bundle, "limited", program=program)
        assert not code, f"{program}: {output}"
        stages = seen[str(program)] = {}
        stages["new"] = show(unit, *PROPERTIES) | files(group)
        reload()
        stages["after a reload"] = show(unit, *PROPERTIES) | files(group)
        changed = machine.call("update", "--memory", str(32 * MEGABYTE), "--memory-swap", str(40 * MEGABYTE), "--pids-limit", "44", "--cpu-quota", "10000",
                               "--cpu-period", "50000", "--cpu-share", "256", "limited", program=program)
        assert changed.returncode == 0, f"{program}: update: {changed.stderr}"
        reload()
        stages["changed, after a reload"] = show(unit, *PROPERTIES) | files(group)
        machine.call("delete", "--force", "limited", program=program)
        assert_gone(unit, group)
    for stage, wanted in seen[str(runc)].items():
        assert_has(stage, seen[str(machine.program)][stage], wanted)
    wanted = {"memory.max": str(64 * MEGABYTE), "pids.max": "33", "cpu.max": "25000 50000", "MemoryMax": str(64 * MEGABYTE)}
    assert_has("requested limits", seen[str(machine.program)]["after a reload"], wanted)


def test_cpu_time_need_not_be_a_whole_percentage(machine):
    """CPU time that is not a whole percentage: the kernel has it exactly, and a reload does not reduce it."""
    bundle = machine.bundle("system.slice:jobc:fraction")
    config = json.loads((bundle / "config.json").read_text())
    config["linux"]["resources"]["cpu"] = {"quota": 33333, "period": 100000}
    (bundle / "config.json").write_text(json.dumps(config))
    code, output = machine.detached(bundle, "fraction")
    group = TREE / "system.slice/jobc-fraction.scope"
    assert not code, output
    assert files(group)["cpu.max"] == "33333 100000", f"cpu.max is {files(group)['cpu.max']}"
    reload()
    assert int(files(group)["cpu.max"].split()[0]) >= 33333, f"cpu.max is {files(group)['cpu.max']} after a reload"
    machine.call("delete", "--force", "fraction")


def test_cgroup_paths_name_units(machine):
    for path, unit, group in [
        ("", None, "system.slice"),
        (":jobc:plain", "jobc-plain.scope", "system.slice"),
        ("x-y.slice:jobc:deep", "jobc-deep.scope", "x.slice/x-y.slice"),
        ("system.slice:jobc:up-down.slice", "up-down.slice", "up.slice"),
    ]:
        code, output = machine.detached(machine.bundle(path), "named")
        unit = unit or ("runc-named.scope" if "runc" in Path(machine.program).name else "jobc-named.scope")
        found = show(unit, "ControlGroup").get("ControlGroup")
        assert not code and found == f"/{group}/{unit}", f"{path!r}: {found}: {output}"
        group = TREE / group / unit
        held = (group / "cgroup.procs").read_text().split() if group.exists() else []
        listed = machine.call("ps", "--format", "json", "named", flags=())
        assert held and json.loads(listed.stdout or "[]") == [int(pid) for pid in held], f"{path!r}: its cgroup has {held}, `ps` lists {listed}"
        machine.call("delete", "--force", "named")
        assert_gone(unit, group)


def test_a_container_lives_in_the_cgroup_of_its_unit(machine):
    """create, start, pause, resume, exec, ps, events, kill, delete: all in the unit's cgroup."""
    unit, group = "jobc-living.scope", TREE / "system.slice/jobc-living.scope"
    bundle = machine.bundle("system.slice:jobc:living")
    with open(machine.directory / "living.out", "w") as out:
        created = subprocess.run([str(machine.program), "--root", f"/run/tested-{Path(machine.program).name}", "--systemd-cgroup", "create", "--bundle", str(bundle), "living"],
                                 stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False, timeout=120)
    assert created.returncode == 0, (machine.directory / "living.out").read_text()
    for words in (["start", "living"], ["pause", "living"], ["resume", "living"]):
        result = machine.call(*words, flags=())
        assert result.returncode == 0, f"{words[0]}: {result.stderr}"
        frozen = (group / "cgroup.events").read_text()
        assert ("frozen 1" in frozen) == (words[0] == "pause"), f"after {words[0]} cgroup.events is {frozen}"
    joined = machine.call("exec", "living", "/bin/sh", "-c", "cat /proc/self/cgroup; exit 3", flags=())
    assert joined.returncode == 3 and joined.stdout == "0::/\n", f"exec: {joined}"
    listed = machine.call("ps", "--format", "json", "living", flags=())
    assert sorted(json.loads(listed.stdout or "[]")) == sorted(int(pid) for pid in (group / "cgroup.procs").read_text().split()), f"ps: {listed}"
    used = machine.call("events", "--stats", "living", flags=())
    assert used.returncode == 0 and json.loads(used.stdout)["data"]["pids"]["limit"] == 33, f"events: {used}"
    machine.call("kill", "living", "KILL", flags=())
    for _ in range(100):
        if json.loads(machine.call("state", "living", flags=()).stdout)["status"] == "stopped":
            break
        time.sleep(0.1)
    else:
        pytest.fail("its state is not stopped")
    deleted = machine.call("delete", "living", flags=())
    assert deleted.returncode == 0, f"delete: {deleted.stderr}"
    assert_gone(unit, group)


def test_a_unit_is_removed_with_its_container(machine):
    """A unit is removed with its container: at its exit, out of memory, and when it cannot start."""
    unit, group = "jobc-ending.scope", TREE / "system.slice/jobc-ending.scope"
    result = machine.call("run", "--bundle", str(machine.bundle("system.slice:jobc:ending", ["/bin/sh", "-c", "exit 5"])), "ending")
    assert result.returncode == 5, f"run: {result}"
    assert_gone(unit, group)
    greedy = machine.bundle("system.slice:jobc:ending", ["/bin/tail", "/dev/zero"])
    greedy = machine.call("run", "--bundle", str(greedy), "ending")
    assert greedy.returncode == 137, f"run out of memory: {greedy}"
    assert_gone(unit, group)
    for _ in range(2):  # a failed start must not block the name
        absent = machine.call("run", "--bundle", str(machine.bundle("system.slice:jobc:ending", ["/not/there"])), "ending")
        assert absent.returncode != 0, f"run: {absent}"
        assert_gone(unit, group)


def test_a_unit_ends_with_its_foreground_command(machine):
    """When the foreground command is killed, its container and the unit end, and `delete` removes the rest."""
    unit, group = "jobc-killed.scope", TREE / "system.slice/jobc-killed.scope"
    bundle = machine.bundle("system.slice:jobc:killed")
    with subprocess.Popen([str(machine.program), "--root", f"/run/tested-{Path(machine.program).name}", "--systemd-cgroup", "run", "--bundle", str(bundle), "killed"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as attending:
        for _ in range(200):
            if group.exists() and show(unit, "ActiveState").get("ActiveState") == "active":
                break
            time.sleep(0.1)
        else:
            pytest.fail("it does not start")
        time.sleep(1)
        attending.kill()
    assert_gone(unit, group)
    deleted = machine.call("delete", "--force", "killed", flags=())
    assert deleted.returncode == 0, f"delete: {deleted.stderr}"


def test_a_rejected_container_creates_nothing(machine):
    """A rejected container creates nothing, and does not affect others."""
    code, output = machine.detached(machine.bundle("system.slice:jobc:first"), "first")
    assert not code, output
    group = TREE / "system.slice/jobc-first.scope"
    for path, change, words in [
        ("system.slice:jobc:first", {}, "jobc-first.scope"),
        ("/jobc/first", {}, "does not name a unit"),
        ("system.slice:jobc:second", {"annotations": {"org.systemd.property.NoSuch": "1"}}, "NoSuch"),
        ("system.slice:jobc:second", {"annotations": {"org.systemd.property.KillSignal": "?"}}, "KillSignal"),
    ]:
        result = machine.call("run", "--bundle", str(machine.bundle(path, ["/bin/true"], **change)), "second")
        assert result.returncode != 0 and words in result.stderr, f"{path}: {result}"
        assert machine.call("state", "second", flags=()).returncode != 0, f"{path}: a container is left"
    assert (group / "cgroup.procs").read_text().split(), "the container whose unit was requested again is gone"
    machine.call("delete", "--force", "first", flags=())


def test_annotations_are_properties_of_the_unit(machine):
    named = {"org.systemd.property.TimeoutStopUSec": "uint64 7000000", "org.systemd.property.KillSignal": "3"}
    code, output = machine.detached(machine.bundle("system.slice:jobc:named", annotations=named), "annotated")
    found = show("jobc-named.scope", "TimeoutStopUSec", "KillSignal")
    assert not code and found == {"TimeoutStopUSec": "7s", "KillSignal": "3"}, f"{found}: {output}"
    machine.call("delete", "--force", "annotated")


class NobodyUser(Login):
    """The user `nobody`, whose only id is root in their containers."""

    subgids = None

    def __init__(self):
        super().__init__(65534, 65534)

    def mappings(self):
        return ([{"containerID": 0, "hostID": self.uid, "size": 1}],) * 2

    def prefix(self):
        # Like a login session: a cgroup of the system instance, from which this user cannot move processes.
        return ["systemd-run", "--quiet", "--collect", "--pipe", "--wait", *NO_DEFAULT_DEPENDENCIES, *self.identity()]


def test_a_users_own_systemd_makes_the_cgroup(machine):
    """A user without a delegated cgroup has their systemd create one, with limits, and runs exec in it."""
    user = NobodyUser()
    user.start()
    bundle = machine.bundle("")
    config = rootless(json.loads((bundle / "config.json").read_text()), user)
    config["linux"]["resources"] = LIMITS
    (bundle / "config.json").write_text(json.dumps(config))
    states = Path(f"/run/tested-{Path(machine.program).name}")
    shutil.rmtree(states, ignore_errors=True)
    states.mkdir(mode=0o700)
    os.chown(states, user.uid, user.gid)
    group = TREE / "system.slice/nobody.service/user.slice/jobc-mine.scope"
    alone = machine.call("run", "--bundle", str(bundle), "alone", flags=(), prefix=user.prefix())
    assert alone.returncode != 0 and "--systemd-cgroup" in alone.stderr, f"without a cgroup: {alone}"
    started = machine.call("run", "--detach", "--bundle", str(bundle), "mine", prefix=[*user.prefix(), "sh", "-c", 'exec "$@" >$XDG_RUNTIME_DIR/said 2>&1', "sh"])
    assert started.returncode == 0, Path(f"/run/user/{user.uid}/said").read_text()
    assert_has("its cgroup", files(group), {"memory.max": str(64 * MEGABYTE), "pids.max": "33"})
    joined = machine.call("exec", "mine", "/bin/true", flags=(), prefix=user.prefix())
    assert joined.returncode == 0, f"exec: {joined}"
    inside = machine.call("exec", "mine", "/bin/cat", "/proc/self/cgroup", flags=(), prefix=user.prefix())
    assert "jobc-mine.scope" in inside.stdout or inside.stdout == "0::/\n", f"exec: {inside}"
    changed = machine.call("update", "--pids-limit", "44", "mine", flags=(), prefix=user.prefix())
    assert changed.returncode == 0 and files(group)["pids.max"] == "44", f"update: {changed}"
    deleted = machine.call("delete", "--force", "mine", flags=(), prefix=user.prefix())
    assert deleted.returncode == 0 and not group.exists(), f"delete: {deleted}"


def test_podman_uses_the_systemd_cgroup_manager(machine):
    """podman with the systemd cgroup manager: a limit, exec, removal."""
    directory = machine.directory / "podman"
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/var/cache"], check=True)
    podman = Podman(needs, directory, machine.program)
    conf = Path(podman.environment["CONTAINERS_CONF"])
    conf.write_text(conf.read_text().replace('cgroup_manager = "cgroupfs"', 'cgroup_manager = "systemd"'))
    tarball = directory / "busybox.tar"
    image(needs.tool("busybox"), tarball)
    made = podman("import", str(tarball), "localhost/busybox")
    assert made.returncode == 0, made.stderr
    expect(podman.run("--memory", "64m", "--pids-limit", "55", "--cgroupns", "host", "busybox", "cat", "/proc/self/cgroup"), 0, ".scope")
    started = podman("run", "--detach", "--name", "staying", "--network", "none", "--memory", "64m", "busybox", "sleep", "600")
    expect(started, 0)
    unit = f"libpod-{started.stdout.strip()}.scope"
    assert_has(unit, show(unit, "MemoryMax", "ActiveState", "Slice"), {"MemoryMax": str(64 * MEGABYTE), "ActiveState": "active", "Slice": "machine.slice"})
    expect(podman("exec", "staying", "cat", "/proc/self/cgroup"), 0)
    expect(podman("rm", "--force", "--time", "0", "staying"), 0)
    assert_gone(unit, TREE / "machine.slice" / unit)
