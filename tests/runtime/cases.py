"""The containers that `differential.py` compares: each is the base configuration with a change.

`expect` has what the specification promises for a case (field of the observation -> value), so that a mistake that all three
runtimes make is found. `lacking` names the runtimes without the feature. `error` is the error message where ours rejects the
configuration on purpose.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Case:
    """A container to compare."""

    name: str
    change: object
    expect: dict = field(default_factory=dict)
    lacking: tuple = ()
    rootless: bool = False
    terminal: bool = False
    flags: tuple = ()
    descriptors: int = 0
    prelude: tuple = ()
    exit_code: int = 7
    error: str = ""


CASES = []


def case(name, **more):
    """Registers a case: a function that changes (config, the bundle's future directory)."""
    def register(change):
        CASES.append(Case(name, change, **more))
        return change
    return register


def root_of(place):
    return Path(place, "rootfs")


def volume(place, name="data", mode=0o777):
    """A directory outside the root file system with a file in it."""
    directory = Path(place, "volumes", name)
    directory.mkdir(parents=True)
    (directory / "file").write_text("kept\n")
    directory.chmod(mode)
    return directory


def bind(config, source, destination, *options, kind="bind"):
    config["mounts"].append({"destination": destination, "type": kind, "source": str(source), "options": list(options)})


@case("plain", rootless=True, expect={"identity.user": "0:0", "identity.hostname": "tested", "identity.pid": "1",
                                      "status.NoNewPrivs": "1", "identity.cwd": "/"})
def plain(config, place):
    pass


@case("ids", expect={"identity.user": "1000:1001", "status.Groups": "10 20 1001", "identity.umask": "0027",
                     "status.Uid": "1000\t1000\t1000\t1000", "status.CapEff": "0000000000000000"})
def ids(config, place):
    config["process"]["user"] = {"uid": 1000, "gid": 1001, "additionalGids": [20, 10, 1001], "umask": 0o27}


@case("groups-absent", expect={"status.Groups": ""})
def groups_absent(config, place):
    config["process"]["user"] = {"uid": 7, "gid": 7}


@case("root-capabilities", rootless=True, expect={"status.CapEff": "00000000200004e1", "status.CapBnd": "00000000200004e1",
                                   "status.CapInh": "0000000000000400", "status.CapAmb": "0000000000000400"})
def root_capabilities(config, place):
    names = ["CAP_CHOWN", "CAP_KILL", "CAP_SETGID", "CAP_SETUID", "CAP_NET_BIND_SERVICE", "CAP_AUDIT_WRITE"]
    sets = {kind: names for kind in ("bounding", "effective", "permitted")}
    config["process"]["capabilities"] = sets | {"inheritable": names[4:5], "ambient": names[4:5]}


@case("no-capabilities", rootless=True, expect={"status.CapEff": "0" * 16, "status.CapBnd": "0" * 16, "status.CapPrm": "0" * 16})
def no_capabilities(config, place):
    config["process"]["capabilities"] = {}


@case("user-capabilities", expect={"status.CapEff": "0" * 16, "status.CapPrm": "0" * 16, "status.CapBnd": "0000000020000420"})
def user_capabilities(config, place):
    config["process"]["user"] = {"uid": 1000, "gid": 1000}


@case("ambient-capabilities", expect={"status.CapEff": "0000000000000400", "status.CapAmb": "0000000000000400"})
def ambient_capabilities(config, place):
    config["process"]["user"] = {"uid": 1000, "gid": 1000}
    for kind in ("inheritable", "ambient"):
        config["process"]["capabilities"][kind] = ["CAP_NET_BIND_SERVICE"]


@case("ambient-capabilities-of-runc-spec", rootless=True, expect={"status.CapAmb": "0" * 16, "stderr": ""})
def ambient_capabilities_of_runc_spec(config, place):
    config["process"]["capabilities"]["ambient"] = ["CAP_KILL", "CAP_NET_BIND_SERVICE"]


@case("unknown-capability", rootless=True, expect={"status.CapEff": "0000000020000420"})
def unknown_capability(config, place):
    for kind in ("bounding", "effective", "permitted"):
        config["process"]["capabilities"][kind] = [*config["process"]["capabilities"][kind], "CAP_FLY"]


@case("user-absent", rootless=True, expect={"identity.user": "0:0"})
def user_absent(config, place):
    del config["process"]["user"]


@case("user-without-group", expect={"identity.user": "7:0"})
def user_without_group(config, place):
    config["process"]["user"] = {"uid": 7}


@case("new-privileges", rootless=True, expect={"status.NoNewPrivs": "0"})
def new_privileges(config, place):
    config["process"]["noNewPrivileges"] = False


@case("tmpfs-options")
def tmpfs_options(config, place):
    for number, options in enumerate([
            ["nosuid"], ["nodev"], ["noexec"], ["ro"], ["rw", "suid", "dev", "exec"], ["noatime"], ["nodiratime"],
            ["relatime"], ["strictatime"], ["sync"], ["dirsync"], ["size=64k"], ["mode=0700"], ["nr_inodes=17"],
            ["uid=12", "gid=13", "mode=750"], ["lazytime"], ["noatime", "nodiratime", "ro"], [],
            ["ro", "rw"], ["nosuid", "suid"]]):
        config["mounts"].append({"destination": f"/mnt/{number:02}", "type": "tmpfs", "source": "tmpfs", "options": options})


@case("default-options", lacking=("runc",))
def default_options(config, place):
    config["mounts"].append({"destination": "/mnt/d", "type": "tmpfs", "source": "t", "options": ["defaults", "nodev"]})


@case("nosymfollow", lacking=("crun",))
def nosymfollow(config, place):
    config["mounts"].append({"destination": "/mnt/n", "type": "tmpfs", "source": "t", "options": ["nosymfollow"]})


@case("dev-read-only", rootless=True)
def dev_read_only(config, place):
    config["mounts"][1]["options"] = [*config["mounts"][1]["options"], "ro"]


@case("no-options")
def no_options(config, place):
    config["mounts"].append({"destination": "/mnt/plain", "type": "tmpfs", "source": "tmpfs"})


@case("bind-writable", rootless=True)
def bind_writable(config, place):
    bind(config, volume(place), "/volume", "bind", "rw")


@case("bind-read-only", rootless=True)
def bind_read_only(config, place):
    bind(config, volume(place), "/volume", "bind", "ro", "nosuid", "nodev", "noexec")


@case("bind-as-type-none")
def bind_as_type_none(config, place):
    bind(config, volume(place), "/volume", "rbind", "ro", kind="none")


@case("bind-relative-source")
def bind_relative_source(config, place):
    volume(place)
    bind(config, "volumes/data", "/volume", "bind", "ro")


@case("bind-file", rootless=True)
def bind_file(config, place):
    bind(config, volume(place) / "file", "/file", "bind", "ro")


@case("bind-nested-target")
def bind_nested_target(config, place):
    bind(config, volume(place), "/nested/place", "rbind")


# A file system mounted below a volume's source, in a mount namespace that ends with the runtime.
BELOW = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs below "$TEST_VOLUME/sub"; exec "$@"', "sh")


@case("bind-not-recursive", prelude=BELOW)
def bind_not_recursive(config, place):
    (volume(place) / "sub").mkdir()
    bind(config, Path(place, "volumes/data"), "/volume", "bind", "ro")


@case("bind-recursive", prelude=BELOW)
def bind_recursive(config, place):
    (volume(place) / "sub").mkdir()
    bind(config, Path(place, "volumes/data"), "/volume", "rbind", "rw")


@case("bind-recursive-top-read-only", prelude=BELOW)
def bind_recursive_top_read_only(config, place):
    (volume(place) / "sub").mkdir()
    bind(config, Path(place, "volumes/data"), "/volume", "rbind", "ro")


@case("bind-recursive-read-only", prelude=BELOW, expect={"writable": "/\n/tmp\n/dev\n/root"})
def bind_recursive_read_only(config, place):
    (volume(place) / "sub").mkdir()
    bind(config, Path(place, "volumes/data"), "/volume", "rbind", "rro")


@case("bind-recursive-options", prelude=BELOW)
def bind_recursive_options(config, place):
    (volume(place) / "sub").mkdir()
    bind(config, Path(place, "volumes/data"), "/volume", "rbind", "rnosuid", "rnodev", "rnoexec", "rnoatime")


def owned(place):
    """A volume of root with a directory of 1000:1001."""
    directory = volume(place)
    (directory / "sub").mkdir()
    os.chown(directory / "sub", 1000, 1001)
    return directory


def mapped(config, source, users, groups, *options):
    """A bind mount at /volume with id mappings, each as (id in the file system, id in the container, size)."""
    bind(config, source, "/volume", "rbind", *options)
    for kind, extents in (("uidMappings", users), ("gidMappings", groups)):
        config["mounts"][-1][kind] = [dict(zip(("containerID", "hostID", "size"), extent)) for extent in extents]


# runc 1.1 ignores the mappings and the options; crun 1.8 omits mounts below such a mount.
@case("owners-mapped", lacking=("runc",), expect={"volume./volume": "drwxrwxrwx 7 8", "volume./volume/sub": "drwxr-xr-x 0 0"})
def owners_mapped(config, place):
    mapped(config, owned(place), [(0, 7, 1), (1000, 0, 1)], [(0, 8, 1), (1001, 0, 1)], "idmap")


@case("owners-mapped-without-option", lacking=("runc",), expect={"volume./volume/sub": "drwxr-xr-x 0 65534"})
def owners_mapped_without_option(config, place):
    mapped(config, owned(place), [(0, 7, 1), (1000, 0, 1)], [(0, 8, 1)], "ro")


@case("owners-mapped-below", prelude=BELOW, lacking=("runc", "crun"), expect={"volume./volume/sub": "drwxrwxrwt 7 7"})
def owners_mapped_below(config, place):
    mapped(config, owned(place), [(0, 7, 1)], [(0, 7, 1)], "ridmap", "rro")


@case("owners-not-mapped-below", prelude=BELOW, lacking=("runc", "crun"), expect={"volume./volume/sub": "drwxrwxrwt 0 0"})
def owners_not_mapped_below(config, place):
    mapped(config, owned(place), [(0, 7, 1)], [(0, 7, 1)], "idmap")


@case("owners-mapped-in-user-namespace", lacking=("runc",), expect={"volume./volume": "drwxrwxrwx 7 7"})
def owners_mapped_in_user_namespace(config, place):
    in_user_namespace(config)
    mapped(config, owned(place), [(OWNER[0], OWNER[0] + 7, 1)], [(OWNER[1], OWNER[1] + 7, 1)], "idmap")


@case("owners-mapped-as-the-container", lacking=("runc",), expect={"volume./volume": "drwxrwxrwx 0 0", "outside.namespace.user": "own"})
def owners_mapped_as_the_container(config, place):
    in_user_namespace(config)
    # Next to the bundle, which belongs to the container's root: this one belongs to the host's root.
    directory = Path(f"{place}-of-root/volumes")
    directory.mkdir(parents=True)
    directory.chmod(0o777)
    bind(config, directory, "/volume", "rbind", "idmap")


for propagation in ("private", "rprivate", "slave", "rslave", "shared", "rshared", "unbindable", "runbindable"):
    @case(f"propagation-{propagation}")
    def propagation_of_a_bind(config, place, propagation=propagation):
        bind(config, volume(place), "/volume", "rbind", propagation)

for propagation in ("private", "rprivate", "slave", "rslave", "shared", "rshared"):
    @case(f"root-propagation-{propagation}")
    def propagation_of_the_root(config, place, propagation=propagation):
        config["linux"]["rootfsPropagation"] = propagation


@case("copied-up")
def copied_up(config, place):
    (root_of(place) / "copied").mkdir(parents=True)
    (root_of(place) / "copied/one").write_text("1")
    config["mounts"].append({"destination": "/copied", "type": "tmpfs", "source": "tmpfs", "options": ["tmpcopyup"]})


@case("masked", rootless=True, expect={"masked./secret": "0 bytes", "masked./secrets": "0 entries"})
def masked(config, place):
    root = root_of(place)
    (root / "secrets").mkdir(parents=True)
    (root / "secrets/one").write_text("1")
    (root / "secret").write_text("hidden")
    config["linux"]["maskedPaths"] = [*config["linux"]["maskedPaths"], "/secret", "/secrets", "/not/there"]


@case("read-only-paths", rootless=True)
def read_only_paths(config, place):
    (root_of(place) / "readonly").mkdir(parents=True)
    config["linux"]["readonlyPaths"] = [*config["linux"]["readonlyPaths"], "/readonly", "/not/there"]


@case("nothing-masked")
def nothing_masked(config, place):
    del config["linux"]["maskedPaths"], config["linux"]["readonlyPaths"]


@case("read-only-root", rootless=True, expect={"writable": "/dev"})
def read_only_root(config, place):
    config["root"]["readonly"] = True


@case("devices")
def devices(config, place):
    config["linux"]["devices"] = [
        {"path": "/dev/zero-again", "type": "c", "major": 1, "minor": 5, "fileMode": 0o640, "uid": 4, "gid": 5},
        {"path": "/dev/plain", "type": "c", "major": 1, "minor": 3},
        {"path": "/dev/block", "type": "b", "major": 7, "minor": 0, "fileMode": 0o600},
        {"path": "/dev/deep/er/node", "type": "u", "major": 1, "minor": 7, "fileMode": 0o666},
        {"path": "/dev/pipe", "type": "p", "fileMode": 0o622},
    ]


@case("device-rules")
def device_rules(config, place):
    config["linux"]["resources"]["devices"] = [
        {"allow": False, "access": "rwm"},
        {"allow": True, "type": "c", "major": 10, "minor": 229, "access": "rwm"},
        {"allow": True, "type": "b", "major": 7, "access": "r"},
    ]


@case("hostname-absent")
def hostname_absent(config, place):
    del config["hostname"]


@case("domainname", lacking=("runc",), expect={"identity.domainname": "example.org"})
def domainname(config, place):
    config["domainname"] = "example.org"


@case("rlimits", rootless=True, expect={"limits.Max open files": "1000 2000", "limits.Max core file size": "0 0",
                         "limits.Max cpu time": "50 60"})
def rlimits(config, place):
    config["process"]["rlimits"] = [
        {"type": "RLIMIT_NOFILE", "soft": 1000, "hard": 2000}, {"type": "RLIMIT_CORE", "soft": 0, "hard": 0},
        {"type": "RLIMIT_CPU", "soft": 50, "hard": 60}, {"type": "RLIMIT_FSIZE", "soft": 1 << 40, "hard": 1 << 41},
        {"type": "RLIMIT_STACK", "soft": 1 << 20, "hard": 1 << 30}, {"type": "RLIMIT_SIGPENDING", "soft": 10, "hard": 11},
        {"type": "RLIMIT_MSGQUEUE", "soft": 1000, "hard": 1000}, {"type": "RLIMIT_LOCKS", "soft": 5, "hard": 5},
        {"type": "RLIMIT_AS", "soft": 1 << 33, "hard": 1 << 34}, {"type": "RLIMIT_RTTIME", "soft": 7, "hard": 8},
        {"type": "RLIMIT_NPROC", "soft": 5000, "hard": 6000}, {"type": "RLIMIT_DATA", "soft": 1 << 34, "hard": 1 << 34},
        {"type": "RLIMIT_NICE", "soft": 0, "hard": 0}, {"type": "RLIMIT_RTPRIO", "soft": 0, "hard": 0},
        {"type": "RLIMIT_RSS", "soft": 1 << 34, "hard": 1 << 34}, {"type": "RLIMIT_MEMLOCK", "soft": 4096, "hard": 8192}]


@case("memory-and-pids", expect={"outside.cgroup.memory/memory.limit_in_bytes": str(64 << 20),
                                 "outside.cgroup.pids/pids.max": "77"})
def memory_and_pids(config, place):
    config["linux"]["resources"] |= {
        "memory": {"limit": 64 << 20, "swap": 96 << 20, "reservation": 32 << 20, "swappiness": 10}, "pids": {"limit": 77}}


@case("memory-odd-size")
def memory_odd_size(config, place):
    config["linux"]["resources"]["memory"] = {"limit": (64 << 20) + 1, "disableOOMKiller": False}


@case("memory-unlimited")
def memory_unlimited(config, place):
    config["linux"]["resources"] |= {"memory": {"limit": -1, "swap": -1}, "pids": {"limit": -1}}


@case("cpu", expect={"outside.affinity": "[0]", "outside.cgroup.cpu/cpu.cfs_quota_us": "30000"})
def cpu(config, place):
    config["linux"]["resources"]["cpu"] = {"shares": 512, "quota": 30000, "period": 60000, "cpus": "0", "mems": "0"}


@case("cpu-shares-min")
def cpu_shares_min(config, place):
    config["linux"]["resources"]["cpu"] = {"shares": 2, "quota": -1}


@case("cgroup-writable")
def cgroup_writable(config, place):
    config["mounts"][-1]["options"] = ["nosuid", "noexec", "nodev", "relatime"]


@case("cgroup-namespace-shared")
def cgroup_namespace_shared(config, place):
    config["linux"]["namespaces"] = [n for n in config["linux"]["namespaces"] if n["type"] != "cgroup"]
    config["mounts"].pop()


@case("oom-score", expect={"outside.oom_score_adj": "500"})
def oom_score(config, place):
    config["process"]["oomScoreAdj"] = 500


@case("sysctl", expect={"sysctl.kernel/msgmax": "12345", "sysctl.net/ipv4/ip_forward": "1"})
def sysctl(config, place):
    config["linux"]["sysctl"] = {"kernel.msgmax": "12345", "kernel.shm_rmid_forced": "1", "net.ipv4.ip_forward": "1",
                                 "net/ipv4/ping_group_range": "5 6"}


@case("environment", rootless=True,
      expect={"env": "PATH=/bin\nEMPTY=\nA=b=c\nWORDS=one two  three\nNAME=élan\nHOME=/home"})
def environment(config, place):
    config["process"]["env"] = ["PATH=/bin", "EMPTY=", "A=b=c", "WORDS=one two  three", "NAME=élan", "HOME=/home"]


@case("home-absent", expect={"env": "PATH=/bin\nHOME=/root"})
def home_absent(config, place):
    config["process"]["env"] = ["PATH=/bin"]


@case("home-absent-of-a-user", expect={"env": "PATH=/bin\nHOME=/home/worker"})
def home_absent_of_a_user(config, place):
    config["process"]["env"] = ["PATH=/bin"]
    config["process"]["user"] = {"uid": 1000, "gid": 1001}


@case("program-by-path")
def program_by_path(config, place):
    config["process"]["args"] = ["sh", "/probe", "one", "", "two words"]


@case("working-directory", expect={"identity.cwd": "/home"})
def working_directory(config, place):
    config["process"]["cwd"] = "/home"


@case("working-directory-of-another-user", expect={"identity.cwd": "/closed", "identity.user": "1000:1001"})
def working_directory_of_another_user(config, place):
    directory = root_of(place) / "closed"
    directory.mkdir(parents=True)
    directory.chmod(0o700)
    config["process"]["user"] = {"uid": 1000, "gid": 1001}
    config["process"]["cwd"] = "/closed"


@case("working-directory-absent", expect={"identity.cwd": "/made/for/it"})
def working_directory_absent(config, place):
    config["process"]["cwd"] = "/made/for/it"


@case("script", expect={"arguments": "/script\none"})
def script(config, place):
    root_of(place).mkdir(parents=True)
    script = root_of(place) / "script"
    script.write_text("#!/bin/sh\n. /probe\n")
    script.chmod(0o755)
    config["process"]["args"] = ["/script", "one"]


@case("terminal", terminal=True, expect={"terminal": "/dev/pts/0\n33 101\ncrw--w---- 88"}, rootless=True)
def terminal(config, place):
    config["process"]["terminal"] = True


@case("terminal-size", terminal=True)
def terminal_size(config, place):
    config["process"] |= {"terminal": True, "consoleSize": {"height": 20, "width": 70}}


@case("user-namespace", expect={"identity.user": "0:0", "outside.namespace.user": "own"})
def user_namespace(config, place):
    in_user_namespace(config)


@case("user-namespace-ids", expect={"identity.user": "1000:1001", "status.Groups": "20"})
def user_namespace_ids(config, place):
    in_user_namespace(config)
    config["process"]["user"] = {"uid": 1000, "gid": 1001, "additionalGids": [20]}


@case("user-namespace-devices")
def user_namespace_devices(config, place):
    in_user_namespace(config)
    config["linux"]["devices"] = [{"path": "/dev/fuse", "type": "c", "major": 10, "minor": 229, "fileMode": 0o666}]


OWNER = (100_000, 100_000)


def in_user_namespace(config):
    linux = config["linux"]
    linux["namespaces"].append({"type": "user"})
    for kind in ("uidMappings", "gidMappings"):
        linux[kind] = [{"containerID": 0, "hostID": OWNER[0], "size": 65536}]


@case("time-namespace", lacking=("runc", "crun"), expect={"clocks": "monotonic 3600 0\nboottime 7200 500",
                                                          "outside.namespace.time": "own"})
def time_namespace(config, place):
    config["ociVersion"] = "1.1.0"
    config["linux"]["namespaces"].append({"type": "time"})
    config["linux"]["timeOffsets"] = {"monotonic": {"secs": 3600}, "boottime": {"secs": 7200, "nanosecs": 500}}


@case("network-shared", expect={"outside.namespace.net": "shared"})
def network_shared(config, place):
    without(config, "network")


@case("pid-shared", expect={"outside.namespace.pid": "shared"})
def pid_shared(config, place):
    without(config, "pid")


@case("ipc-and-uts-shared", expect={"outside.namespace.ipc": "shared", "outside.namespace.uts": "shared"})
def ipc_and_uts_shared(config, place):
    without(config, "ipc", "uts")
    del config["hostname"]


def without(config, *kinds):
    config["linux"]["namespaces"] = [n for n in config["linux"]["namespaces"] if n["type"] not in kinds]


@case("namespace-by-path", prelude=("unshare", "--net", "sh", "-c",
                                     'touch "$TEST_VOLUME/net"; exec "$@"', "sh"), expect={"network": "lo"})
def namespace_by_path(config, place):
    volume(place)
    for namespace in config["linux"]["namespaces"]:
        if namespace["type"] == "network":
            namespace["path"] = "/proc/self/ns/net"


@case("target-through-links")
def target_through_links(config, place):
    root = root_of(place)
    (root / "var").mkdir(parents=True)
    (root / "var/link").symlink_to("/run")
    bind(config, volume(place), "/var/link/place", "bind")


@case("mount-over-mount")
def mount_over_mount(config, place):
    config["mounts"] += [{"destination": "/mnt", "type": "tmpfs", "source": "one", "options": ["size=1m"]},
                         {"destination": "/mnt/in", "type": "tmpfs", "source": "two", "options": ["size=2m"]},
                         {"destination": "/mnt", "type": "tmpfs", "source": "three", "options": ["size=3m"]}]


@case("personality", expect={"identity.personality": "00000008"})
def personality(config, place):
    config["linux"]["personality"] = {"domain": "LINUX32"}


@case("descriptors-kept", descriptors=2, flags=("--preserve-fds", "2"))
def descriptors_kept(config, place):
    pass


def passed_on(process):
    """Socket activation: `LISTEN_PID` names the process that becomes the runtime, or another one."""
    return ("env", "LISTEN_FDS=2", "sh", "-c", f'export LISTEN_PID={process}; exec "$@"', "sh")


# crun 1.8 keeps `LISTEN_PID` as it was.
@case("sockets-passed-on", descriptors=2, prelude=passed_on("$$"), lacking=("crun",), expect={"fds.5": None})
def sockets_passed_on(config, place):
    config["process"]["env"] = ["PATH=/bin", "HOME=/"]


@case("sockets-for-another-process", descriptors=2, prelude=passed_on("1"), lacking=("crun",), expect={"fds.3": None})
def sockets_for_another_process(config, place):
    config["process"]["env"] = ["PATH=/bin", "HOME=/"]


@case("descriptors-closed", descriptors=3, expect={"fds.3": None, "fds.4": None, "fds.5": None}, rootless=True)
def descriptors_closed(config, place):
    pass


@case("seccomp", rootless=True, expect={"status.Seccomp": "2"})
def seccomp(config, place):
    config["linux"]["seccomp"] = {
        "defaultAction": "SCMP_ACT_ALLOW",
        "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32", "SCMP_ARCH_AARCH64"],
        "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 95},
                     {"names": ["unshare"], "action": "SCMP_ACT_ERRNO",
                      "args": [{"index": 0, "value": 0x10000000, "op": "SCMP_CMP_EQ"}]}]}


@case("seccomp-default-profile", expect={"status.Seccomp": "2"})
def seccomp_default_profile(config, place):
    from profile import docker
    config["linux"]["seccomp"] = docker(config["process"]["capabilities"]["bounding"])


@case("seccomp-new-privileges", expect={"status.Seccomp": "2", "status.NoNewPrivs": "0"})
def seccomp_new_privileges(config, place):
    seccomp(config, place)
    config["process"]["noNewPrivileges"] = False


def bundle_as_root(config, path):
    """The bundle's own directory as the root: what others have in it is in `rootfs` there."""
    config["root"]["path"] = path
    config["process"] |= {"args": ["/rootfs/bin/sh", "/rootfs/probe"], "env": ["PATH=/rootfs/bin", "HOME=/"]}


@case("root-is-the-bundle", rootless=True, expect={"identity.cwd": "/"})
def root_is_the_bundle(config, place):
    bundle_as_root(config, ".")


@case("root-is-the-bundle-by-path", expect={"identity.cwd": "/"})
def root_is_the_bundle_by_path(config, place):
    bundle_as_root(config, str(place))


@case("seccomp-new-privileges-of-a-user", expect={"status.Seccomp": "2", "status.CapEff": "0000000000000020",
                                                  "status.CapInh": "0000000000000020", "status.CapBnd": "0000000020000420"})
def seccomp_new_privileges_of_a_user(config, place):
    seccomp_new_privileges(config, place)
    config["process"]["user"] = {"uid": 1000, "gid": 1001}
    config["process"]["capabilities"] |= {"inheritable": ["CAP_KILL"], "ambient": ["CAP_KILL"]}


@case("cgroups-path-absent")
def cgroups_path_absent(config, place):
    config["linux"]["cgroupsPath"] = None


@case("cgroups-path-nested")
def cgroups_path_nested(config, place):
    config["linux"]["cgroupsPath"] += "/deeper/still"
    config["linux"]["resources"]["pids"] = {"limit": 99}
