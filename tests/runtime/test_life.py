"""Checks 9, 10, 15 and 16: devices, cgroups, unsupported configurations, signals and exits."""

import contextlib
import os
import subprocess
import time
from pathlib import Path

import pytest

from bundle import capabilities
from podman import until
from fixture import assert_ended, assert_rejected
from runtime import remove_groups, running
from security import promise
from unsupported import UNSUPPORTED

V2 = os.path.exists("/sys/fs/cgroup/cgroup.controllers")


@promise(9, mutations=("devices",))
def test_a_device_that_is_not_listed_cannot_be_opened(fixture):
    for kind, major, minor, what in (("c", 10, 237, "loop-control"), ("c", 10, 229, "fuse"), ("b", 7, 0, "loop0"), ("b", 254, 0, "the disk")):
        result = fixture.run(["node", kind, str(major), str(minor)], lambda config: capabilities(config, "CAP_MKNOD"))
        assert_ended(result)
        assert "opened" not in result.stdout and "Operation not permitted" in result.stdout, f"{what}: {result.stdout.strip()} {result.stderr.strip()}"
    if fixture.account:
        return
    result = fixture.run(["node", "c", "1", "5"], lambda config: capabilities(config, "CAP_MKNOD"))
    assert "opened" in result.stdout, f"/dev/zero, which everyone has: {result.stdout.strip()} {result.stderr.strip()}"


@promise(9, mutations=("list",), rootless=False)
def test_a_listed_device_can_be_opened_with_the_listed_access(fixture):
    def configure(config):
        capabilities(config, "CAP_MKNOD")
        config["linux"]["resources"]["devices"] = rules

    rules = [{"allow": False, "access": "rwm"}, {"allow": True, "type": "c", "major": 10, "minor": 229, "access": "rm"}]
    result = fixture.run(["node", "c", "10", "229"], configure)
    # Without that driver the kernel says so only if the cgroup allows the device.
    assert "opened" in result.stdout or "No such device" in result.stdout, f"a node that is allowed: {result.stdout.strip()} {result.stderr.strip()}"
    result = fixture.run(["node", "c", "10", "237"], configure)
    assert "opened" not in result.stdout, "a device that is not allowed can be opened"
    # The v1 controller cannot exclude one device from all; then the rules must be rejected.
    rules = [{"allow": False, "access": "rwm"}, {"allow": True, "type": "c", "major": 10, "access": "rm"},
             {"allow": False, "type": "c", "major": 10, "minor": 229, "access": "rwm"}]
    result = fixture.run(["node", "c", "10", "229"], configure)
    assert "opened" not in result.stdout, "a later rule that denies is ignored"


@promise(10, mutations=("limits", "cgroup-writable"), rootless=False)
def test_limits_are_enforced_and_the_cgroup_cannot_be_left(fixture):
    result = fixture.run(["bomb", "500"], lambda config: config["linux"]["resources"].update(pids={"limit": 20}))
    assert_ended(result)
    children = int(result.stdout.rpartition(" ")[2] or 999) if "children" in result.stdout else 999
    assert children < 20, f"20 processes are allowed and {children} started: {result.stderr.strip()}"
    result = fixture.run(["allocate", "200"], lambda config: config["linux"]["resources"].update(memory={"limit": 32 << 20, "swap": 32 << 20}))
    assert_ended(result)
    assert result.returncode == 137 and "touched 48" not in result.stdout, \
        f"200 MiB could be allocated with a limit of 32: exit code {result.returncode} {result.stdout.split()} {result.stderr.strip()}"
    script = ("for f in /sys/fs/cgroup /sys/fs/cgroup/*; do mkdir $f/out && echo made $f; done; "
              "for f in /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/*/cgroup.procs /sys/fs/cgroup/*/tasks /sys/fs/cgroup/pids/pids.max "
              "/sys/fs/cgroup/pids.max; do echo $$ >$f && echo wrote $f; done; mount -o remount,rw /sys/fs/cgroup && echo remounted; cat /proc/self/cgroup")
    result = fixture.run(["/bin/sh", "-c", script])
    for word in ("made", "wrote", "remounted"):
        assert word not in result.stdout, f"the container's cgroups can be changed from inside: {result.stdout.split(chr(10))[:4]}"
    assert "check-" not in result.stdout, "the cgroup's path on the host is visible"


@promise(10, mutations=("no-group",), rootless=False)
def test_the_program_is_in_its_cgroup_from_its_first_instruction(fixture):
    started, name = fixture.start(["/bin/sh", "-c", "echo ready; exec sleep 99"],
                                lambda config: config["linux"]["resources"].update(pids={"limit": 30}, memory={"limit": 64 << 20}))
    assert started, name
    # The program may start before the runtime has written the state.
    until(lambda: (fixture.runtime.state(name) or {}).get("pid"), seconds=5)
    pid = fixture.runtime.state(name)["pid"]
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        assert (controllers not in ("memory", "pids", "devices") and not V2) or path.startswith(f"/check-{os.getpid()}/"), f"it is in `{line}`"
    fixture.end(started, name)


@promise(10, mutations=("group-of-exec",), rootless=False, place="vm-root")
def test_exec_enters_a_cgroup_that_the_container_has_divided(fixture):
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
    assert started, name
    result = fixture.runtime.call("exec", name, "/bin/cat", "/proc/self/cgroup")
    assert result.stdout.strip() == "0::/first", f"exec: exit code {result.returncode} {result.stdout.strip()} {result.stderr.strip()}"
    fixture.end(started, name)


@promise(10, mutations=("cgroup-path",), rootless=False)
def test_a_cgroup_path_stays_below_the_cgroup_tree(fixture):
    for path in ("/../../tested-escape", "tested/../../../tested-escape", "/tested/./x", "/tested/../tested-escape", "/tested//..", "..", "/.."):
        result = fixture.run(["hello"], lambda config, path=path: config["linux"].update(cgroupsPath=path))
        assert_ended(result)
        for top in ("/sys/fs/cgroup", "/sys/fs", "/sys", "/"):
            found = Path(top, "tested-escape")
            created = found.exists()
            if created:
                found.rmdir()
            assert not created, f"`{path}` created {found}"
        assert result.returncode != 0 or ".." not in path or fixture.runtime.name in ("runc", "crun"), f"`{path}` is accepted"
    remove_groups("tested")
    remove_groups("tested-escape")


@promise(10, mutations=("kill-one",))
def test_no_process_survives_a_kill(fixture):
    # The last argument is unique to this process: another test may run.
    attack = ["orphans", "40", str(os.getpid())]
    started, name = fixture.start(attack)
    assert started, name
    assert len(running(f"/inside {' '.join(attack)}")) >= 40, "the attack did not start"
    fixture.end(started, name)
    deadline = time.monotonic() + 5
    while (left := running(f"/inside {' '.join(attack)}")) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 9)
    assert not left, f"{len(left)} processes were still running"


@promise(15, mutations=("ignore",))
def test_an_unsupported_configuration_is_rejected_with_a_message(fixture):
    panic = Path("/proc/sys/kernel/panic").read_text()
    for what, change in UNSUPPORTED.items():
        try:
            result = fixture.run(["hello"], change)
        except (ValueError, KeyError) as error:
            fixture.note(f"{what}: cannot be requested here: {error}")
            continue
        assert_rejected(result, what)
    assert Path("/proc/sys/kernel/panic").read_text() == panic, "a sysctl of the host was changed"


@promise(15, mutations=("ignore",))
def test_an_unreadable_configuration_is_rejected(fixture):
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
        assert_rejected(fixture.runtime.run(place, name, seconds=10), what)
    assert_rejected(fixture.runtime.run(place / "nowhere", name), "a missing bundle")


@promise(16, mutations=("hang",))
def test_no_start_hangs_and_every_exit_is_reported(fixture):
    place, name = fixture.bundle(["hello"])
    for number in range(fixture.races):
        result = fixture.runtime.run(place, f"{name}-{number}", seconds=10)
        assert result.returncode == 0 and result.stdout == "hello\n", f"start {number}: exit code {result.returncode} {result.stderr.strip()}"


@promise(16, mutations=("at-once",))
def test_concurrent_starts_do_not_disturb_each_other(fixture):
    place, name = fixture.bundle(["hello"], lambda config: config["linux"].pop("cgroupsPath", None))
    many = [subprocess.Popen(fixture.runtime.argv("run", "--bundle", str(place), f"{name}-{number}"), stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=fixture.runtime.environment(), text=True)
            for number in range(12)]
    for number, each in enumerate(many):
        try:
            _, errors = each.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            for one in many:
                one.kill()
            pytest.fail(f"{number} hangs")
        assert each.returncode == 0 or "Device or resource busy" in errors, f"{number}: exit code {each.returncode}: {errors.strip()}"
