"""What runtime-spec 1.3 added: the memory policy, network devices that move into a container, classes of cache and memory bandwidth."""

import json
import os
import subprocess
from pathlib import Path

import pytest

import needs
from bundle import configuration

pytestmark = [pytest.mark.duration(5), pytest.mark.needs("root", "busybox")]


class Bundles:
    """Bundles of version 1.3 that run a command of busybox's shell."""

    def __init__(self, runtime, roots):
        self.runtime, self.roots, self.count = runtime, roots, 0

    def bundle(self, script, change):
        self.count += 1
        place = self.runtime.states.parent / f"newest-{self.count}"
        place.mkdir()
        config = configuration()
        config["ociVersion"] = "1.3.0"
        config["process"]["args"] = ["/bin/sh", "-c", script]
        change(config["linux"])
        self.roots.bundle(place, config)
        return place, f"newest-{os.getpid()}-{self.count}"

    def run(self, script, change, prelude=()):
        place, name = self.bundle(script, change)
        argv = [*prelude, *self.runtime.argv("run", "--bundle", str(place), name)]
        result = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=30, check=False)
        self.runtime.delete(name)
        return result


@pytest.fixture(scope="module")
def case(runtime, roots):
    return Bundles(runtime, roots)


POLICY = "head -n 1 /proc/self/numa_maps | cut -d ' ' -f 2-"


@pytest.fixture
def numa():
    if not Path("/proc/self/numa_maps").exists():
        needs.missing("a kernel with NUMA")


@pytest.mark.parametrize("policy, seen", [
    (None, "default"),
    ({"mode": "MPOL_DEFAULT"}, "default"),
    ({"mode": "MPOL_LOCAL"}, "local"),
    ({"mode": "MPOL_PREFERRED"}, "local"),
    ({"mode": "MPOL_INTERLEAVE", "nodes": "0"}, "interleave:0"),
    ({"mode": "MPOL_WEIGHTED_INTERLEAVE", "nodes": "0"}, "weighted interleave:0"),
    ({"mode": "MPOL_PREFERRED_MANY", "nodes": "0"}, "prefer (many):0"),
    ({"mode": "MPOL_BIND", "nodes": "0", "flags": ["MPOL_F_STATIC_NODES"]}, "bind=static:0"),
    ({"mode": "MPOL_PREFERRED", "nodes": "0", "flags": ["MPOL_F_RELATIVE_NODES"]}, "prefer=relative:0"),
    ({"mode": "MPOL_BIND", "nodes": "0", "flags": ["MPOL_F_NUMA_BALANCING"]}, "bind=balancing:0"),
])
def test_the_program_has_the_memory_policy(case, numa, policy, seen):
    result = case.run(POLICY, lambda linux: policy and linux.update(memoryPolicy=policy))
    assert result.stdout.startswith(f"{seen} "), f"{policy}: {result.stdout!r} {result.stderr.strip()}"


def test_a_process_of_exec_has_the_memory_policy(case, numa):
    place, name = case.bundle("sleep 99", lambda linux: linux.update(memoryPolicy={"mode": "MPOL_INTERLEAVE", "nodes": "0"}))
    try:
        # With pipes as streams `create` would wait for their end, which is the container's.
        for words in (("create", "--bundle", str(place), name), ("start", name)):
            subprocess.run(case.runtime.argv(*words), check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        result = case.runtime.call("exec", name, "/bin/sh", "-c", POLICY)
        assert result.stdout.startswith("interleave:0 "), f"{result.stdout!r} {result.stderr.strip()}"
    finally:
        case.runtime.delete(name)


@pytest.mark.parametrize("policy, words", [
    ({"mode": "MPOL_BIND", "nodes": "999"}, ("/linux/memoryPolicy",)),
    ({"mode": "MPOL_BIND"}, ("/linux/memoryPolicy", "at least one")),
    ({"mode": "MPOL_DEFAULT", "nodes": "0-7"}, ("requires 0 nodes but got 8",)),
    ({"mode": "MPOL_BIND", "nodes": "0-9876543210"}, ("invalid memory policy node",)),
    ({"mode": "BIND", "nodes": "0"}, ("/linux/memoryPolicy/mode", "MPOL_BIND")),
    ({"mode": "MPOL_BIND", "nodes": "0", "flags": ["static"]}, ("/linux/memoryPolicy/flags/0", "MPOL_F_STATIC_NODES")),
    ({"nodes": "0"}, ("mode",)),
])
def test_a_memory_policy_that_cannot_be_is_an_error(case, numa, policy, words):
    result = case.run("echo started", lambda linux: linux.update(memoryPolicy=policy))
    assert result.returncode and "started" not in result.stdout, f"{policy} is started"
    for word in words:
        assert word in result.stderr, f"{policy}: {result.stderr.strip()}"


@pytest.fixture
def own_network():
    """Lines of sh(1) that make a network namespace with two devices, before the arguments are executed in it."""
    needs.tool("ip")
    return ["unshare", "--net", "sh", "-euc", """
        ip link add out0 type veth peer name out1
        ip link set out0 mtu 1400 address 02:11:22:33:44:55
        ip address add 192.0.2.7/24 dev out0
        ip address add 192.0.2.8/24 dev out0
        ip address add 198.51.100.1 peer 198.51.100.2 dev out0
        ip address add 2001:db8::7/64 dev out0 nodad
        ip address add 127.0.0.33/8 scope host dev out0
        ip address add 203.0.113.9/24 dev out0 valid_lft 900 preferred_lft 900
        ip link set out0 up
        ip link set out1 up
        code=0
        "$@" || code=$?
        ip -o link | sed 's/^[0-9]*: \\([^@:]*\\).*/left \\1/'
        exit $code""", "sh"]


SHOW = "ip address show dev eth0; ip link show dev eth0"


def test_a_network_device_moves_with_its_addresses(case, own_network):
    result = case.run(SHOW, lambda linux: linux.update(netDevices={"out0": {"name": "eth0"}}), own_network)
    assert result.returncode == 0, result.stderr
    for words in ("mtu 1400", "link/ether 02:11:22:33:44:55", "inet 192.0.2.7/24", "inet 192.0.2.8/24", "inet 198.51.100.1 peer 198.51.100.2/32",
                  "inet6 2001:db8::7/64", ",UP"):
        assert words in result.stdout, f"`{words}` is missing: {result.stdout}"
    for words in ("127.0.0.33", "203.0.113.9"):
        assert words not in result.stdout, f"an address that is not permanent and global: {result.stdout}"
    # Its veth peer ends with it, as the namespace does.
    assert "left out0" not in result.stdout and "left lo" in result.stdout, result.stdout


def test_a_network_device_gets_a_name_of_the_kernels(case, own_network):
    result = case.run("ls /sys/class/net", lambda linux: linux.update(netDevices={"out0": {"name": "net%d"}, "out1": {"name": "net%d"}}), own_network)
    assert {"lo", "net0", "net1"} <= set(result.stdout.split()), f"{result.stdout} {result.stderr}"


@pytest.mark.parametrize("devices, words", [
    ({"absent0": {}}, ("/linux/netDevices/absent0", "no network device `absent0`")),
    ({"out0": {"name": "lo"}}, ("/linux/netDevices/out0", "a network device `lo` already")),
    ({"out0": {"name": "a/b"}}, ("/linux/netDevices/out0/name", "not a name")),
])
def test_a_network_device_that_cannot_move_is_an_error(case, own_network, devices, words):
    result = case.run("echo started", lambda linux: linux.update(netDevices=devices), own_network)
    assert result.returncode and "started" not in result.stdout, f"{devices}: {result.stdout}"
    for word in words:
        assert word in result.stderr, f"{devices}: {result.stderr.strip()}"
    # Nothing has happened to the others.
    assert "left out0" in result.stdout and "left out1" in result.stdout, result.stdout


def test_a_network_device_needs_a_network_namespace(case):
    def shared(linux):
        linux["namespaces"] = [namespace for namespace in linux["namespaces"] if namespace["type"] != "network"]
        linux["netDevices"] = {"lo": {"name": "lo2"}}

    result = case.run("echo started", shared)
    assert result.returncode and "started" not in result.stdout and "/linux/netDevices" in result.stderr, result.stderr


def test_a_network_device_stays_in_a_namespace_that_lives_on(case, own_network):
    """The runtime moves no device back: the namespace's owner does (config-linux.md, "Namespace Lifecycle")."""
    with subprocess.Popen(["unshare", "--net", "sh", "-c", "echo ready; exec sleep 99"], stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout.readline() == "ready\n"

            def joined(linux):
                next(namespace for namespace in linux["namespaces"] if namespace["type"] == "network")["path"] = f"/proc/{holder.pid}/ns/net"
                linux["netDevices"] = {"out0": {}, "out1": {}}

            result = case.run("ip address show dev out0", joined, own_network)
            assert result.returncode == 0 and "inet 192.0.2.7/24" in result.stdout, f"{result.stdout} {result.stderr}"
            left = subprocess.run(["nsenter", "-t", str(holder.pid), "--net", "ip", "address", "show", "dev", "out0"], capture_output=True, text=True, check=False)
            assert left.returncode == 0 and "inet 192.0.2.7/24" in left.stdout, f"it is gone: {left.stderr}"
        finally:
            holder.kill()


def test_classes_of_cache_need_their_file_system(case, note):
    """Where resctrl is mounted, unit tests of the crate say what a class is; few hosts have it."""
    result = case.run("echo started", lambda linux: linux.update(intelRdt={"closID": "not-there"}))
    assert result.returncode and "started" not in result.stdout, "it is ignored"
    if "resctrl" in Path("/proc/filesystems").read_text() and os.path.ismount("/sys/fs/resctrl"):
        assert "does not exist" in result.stderr, result.stderr
    else:
        note("this kernel has no resctrl: only the error of a host without it is tested here")
        assert "/linux/intelRdt" in result.stderr and "no resctrl file system is mounted" in result.stderr, result.stderr


@pytest.mark.parametrize("flag, words", [("SCHED_FLAG_RESET_ON_FORK", ()), ("SCHED_RESET", ("/process/scheduler/flags/0", "`SCHED_FLAG_RESET_ON_FORK`", "`SCHED_FLAG_DL_OVERRUN`"))])
def test_flags_of_a_scheduler_have_the_specifications_names(case, flag, words):
    place, name = case.bundle("echo started", lambda linux: None)
    config = json.loads((place / "config.json").read_text())
    config["process"]["scheduler"] = {"policy": "SCHED_OTHER", "nice": 3, "flags": [flag]}
    (place / "config.json").write_text(json.dumps(config))
    result = case.runtime.run(place, name)
    assert (result.returncode == 0) == ("started" in result.stdout) == (not words), f"{result.stdout} {result.stderr}"
    for word in words:
        assert word in result.stderr, result.stderr


def test_a_failing_poststart_hook_deletes_the_container(case):
    """runtime.md, "Lifecycle": the runtime stops the container, destroys it, and runs the poststop hooks."""
    place, name = case.bundle("sleep 99", lambda linux: None)
    config = json.loads((place / "config.json").read_text())
    config["hooks"] = {"poststart": [{"path": "/bin/false"}], "poststop": [{"path": "/bin/sh", "args": ["sh", "-c", f"echo ran >{place}/poststop"]}]}
    (place / "config.json").write_text(json.dumps(config))
    subprocess.run(case.runtime.argv("create", "--bundle", str(place), name), check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    result = case.runtime.call("start", name)
    assert result.returncode and "poststart" in result.stderr, f"exit code {result.returncode}: {result.stderr}"
    assert case.runtime.state(name) is None, "it exists"
    assert (place / "poststop").exists(), "its poststop hook did not run"


def test_without_cgroups_their_limits_are_warnings(case):
    place, name = case.bundle("echo started; cat /proc/self/cgroup", lambda linux: linux["resources"].update(pids={"limit": 9}))
    result = subprocess.run(case.runtime.argv("run", "--bundle", str(place), name, flags=("--cgroup-manager=disabled",)), capture_output=True, text=True,
                            stdin=subprocess.DEVNULL, timeout=30, check=False)
    assert result.returncode == 0 and "started" in result.stdout and name not in result.stdout, f"{result.stdout} {result.stderr}"
    assert "/linux/resources/pids/limit" in result.stderr, f"nothing says that the limit is not enforced: {result.stderr}"


def test_containers_are_deleted_by_an_expression(case):
    names = [f"deleted-{os.getpid()}-{letter}" for letter in "abc"]
    for name in names:
        place, _ = case.bundle("sleep 99", lambda linux: None)
        subprocess.run(case.runtime.argv("create", "--bundle", str(place), name), check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    result = case.runtime.call("delete", "--force", "--regex", f"^deleted-{os.getpid()}-[ab]$")
    assert result.returncode == 0, result.stderr
    assert [case.runtime.state(name) is None for name in names] == [True, True, False]
    result = case.runtime.call("delete", "--force", "--regex", "deleted-[")
    assert result.returncode and "not a regular expression" in result.stderr, result.stderr
    case.runtime.delete(names[2])


def test_a_process_of_exec_runs_on_its_cpus(case):
    """`execCPUAffinity` of the container is that of its `exec`, and not of its first process."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        needs.missing("two CPUs")
    place, name = case.bundle("grep Cpus_allowed_list: /proc/self/status; sleep 99", lambda linux: None)
    config = json.loads((place / "config.json").read_text())
    config["process"]["execCPUAffinity"] = {"initial": str(cpus[0]), "final": str(cpus[1])}
    (place / "config.json").write_text(json.dumps(config))
    try:
        for words in (("create", "--bundle", str(place), name), ("start", name)):
            subprocess.run(case.runtime.argv(*words), check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        result = case.runtime.call("exec", name, "/bin/grep", "Cpus_allowed_list:", "/proc/1/status", "/proc/self/status")
        seen = [line.split()[-1] for line in result.stdout.splitlines()]
        assert seen[1] == str(cpus[1]) and seen[0] != seen[1], f"{result.stdout} {result.stderr}"
        config["process"]["execCPUAffinity"] = {"initial": "x"}
        (place / "process.json").write_text(json.dumps(config["process"]))
        result = case.runtime.call("exec", "--process", str(place / "process.json"), name)
        assert result.returncode and "execCPUAffinity" in result.stderr and "initial" in result.stderr, result.stderr
    finally:
        case.runtime.delete(name)


def test_a_container_joins_a_user_namespace_of_another(case):
    """What it mounts and makes belongs to the root of that namespace, whether or not config.json repeats its maps."""
    maps = [{"containerID": 0, "hostID": 100000, "size": 65536}]

    def new(linux):
        linux["namespaces"].append({"type": "user"})
        linux["uidMappings"] = linux["gidMappings"] = maps

    place, name = case.bundle("sleep 99", new)
    subprocess.run(["chown", "-hR", "100000:100000", place / "rootfs"], check=True)
    try:
        for words in (("create", "--bundle", str(place), name), ("start", name)):
            subprocess.run(case.runtime.argv(*words), check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        pid = case.runtime.state(name)["pid"]
        for repeated in (False, True):
            def joined(linux, repeated=repeated):
                linux["namespaces"].append({"type": "user", "path": f"/proc/{pid}/ns/user"})
                if repeated:
                    linux["uidMappings"] = linux["gidMappings"] = maps

            other, second = case.bundle("id -u; stat -c %u:%g /dev/pts/ptmx /dev/shm", joined)
            subprocess.run(["chown", "-hR", "100000:100000", other / "rootfs"], check=True)
            result = case.runtime.run(other, second)
            assert result.stdout.split() == ["0", "0:0", "0:0"], f"maps repeated: {repeated}: {result.stdout} {result.stderr}"
    finally:
        case.runtime.delete(name)


def test_a_container_joins_a_time_namespace_of_another(case):
    """Its process is recorded as processes outside see it, so that a later command knows it."""
    def new(linux):
        linux["namespaces"].append({"type": "time"})
        linux["timeOffsets"] = {"boottime": {"secs": 864000, "nanosecs": 5000001}}

    place, name = case.bundle("sleep 99", new)
    try:
        for words in (("create", "--bundle", str(place), name), ("start", name)):
            subprocess.run(case.runtime.argv(*words), check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        pid = case.runtime.state(name)["pid"]

        def joined(linux):
            linux["namespaces"].append({"type": "time", "path": f"/proc/{pid}/ns/time"})

        other, second = case.bundle('read -r up rest </proc/uptime; test "${up%.*}" -ge 864000 && sleep 99', joined)
        try:
            for words, status in ((("create", "--bundle", str(other), second), "created"), (("start", second), "running")):
                subprocess.run(case.runtime.argv(*words), check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
                assert case.runtime.state(second)["status"] == status, words
        finally:
            case.runtime.delete(second)
    finally:
        case.runtime.delete(name)
