"""Changes a bundle so that it can run on a host without its image, its volumes and its hardware.

Each change is counted and printed by name. Everything else in config.json is unchanged.

* process.args: the image is absent, so a busybox program runs instead, which waits until it has been checked.
* mounts: the source of a bind mount outside the bundle, unless every Linux has it, is replaced with an empty directory.
  A source inside the bundle must exist.
* hooks: a hook whose program is absent (NVIDIA's, on a host without a GPU) is removed.
* linux.resources: a controller or CPU that this host does not have is removed; amounts (memory, quota, pids) are kept.
* process: an rlimit above this host's hard limit, a capability outside its bounding set and a negative oomScoreAdj,
  which even root may not set here, are lowered or removed.
"""

import os
import resource
from pathlib import Path

EVERYWHERE = ("/dev", "/proc", "/sys", "/etc")
PROBE = "/.oracle/busybox"
ANSWER = 7
PROGRAM = f"{PROBE} hostname; echo ready; read line; exit {ANSWER}"


def adapt(config, scratch):
    """Changes the configuration in place, and returns the name of each kind of change."""
    changed = []
    process, linux = config["process"], config.get("linux", {})
    process["args"] = [PROBE, "sh", "-c", PROGRAM]
    changed.append("process.args is a waiting program")
    changed += sources(config.get("mounts", []), scratch)
    changed += hooks(config)
    changed += resources(linux.get("resources", {}))
    changed += privileges(process)
    return changed


def sources(mounts, scratch):
    for number, mount in enumerate(mounts):
        bind = mount.get("type") == "bind" or {"bind", "rbind"} & set(mount.get("options", []))
        source = mount.get("source", "")
        if not bind or not source.startswith(("/", "..")):
            continue
        if source.startswith(EVERYWHERE) and os.path.exists(source):
            continue
        directory = scratch / f"volume-{number}"
        directory.mkdir()
        directory.chmod(0o777)
        mount["source"] = str(directory)
        yield "a volume's source is an empty directory"


def hooks(config):
    for kind, listed in list(config.get("hooks", {}).items()):
        there = [hook for hook in listed if os.path.exists(hook["path"])]
        for _ in range(len(listed) - len(there)):
            yield f"hooks.{kind} without its program is removed"
        config["hooks"][kind] = there


def resources(wanted):
    unified = os.path.exists("/sys/fs/cgroup/cgroup.controllers")

    def controller(name):
        if unified:
            return name in Path("/sys/fs/cgroup/cgroup.controllers").read_text().split()
        return os.path.isdir(f"/sys/fs/cgroup/{name}")

    if wanted.get("hugepageLimits") and not controller("hugetlb"):
        del wanted["hugepageLimits"]
        yield "resources.hugepageLimits: no such controller"
    if wanted.get("rdma") and not controller("rdma"):
        del wanted["rdma"]
        yield "resources.rdma: no such controller"
    if "weight" in wanted.get("blockIO", {}) and not unified and not os.path.exists("/sys/fs/cgroup/blkio/blkio.weight"):
        del wanted["blockIO"]["weight"]
        yield "resources.blockIO.weight: no such file"
    if "cpus" in wanted.get("cpu", {}) and not numbers(wanted["cpu"]["cpus"]) <= os.sched_getaffinity(0):
        del wanted["cpu"]["cpus"]
        yield "resources.cpu.cpus: not so many CPUs"


def numbers(text):
    """The members of a kernel list such as `0-3,8`."""
    out = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        out |= set(range(int(first), int(last or first) + 1))
    return out


def privileges(process):
    for limit in process.get("rlimits", []):
        known = getattr(resource, limit["type"], None)
        hard = resource.RLIM_INFINITY if known is None else resource.getrlimit(known)[1]
        if hard != resource.RLIM_INFINITY and limit["hard"] > hard:
            limit["hard"], limit["soft"] = hard, min(limit["soft"], hard)
            yield f"process.rlimits: {limit['type']} is lowered to this host's"
    bounding = bounding_set()
    for kind, names in process.get("capabilities", {}).items():
        kept = [name for name in names if name not in KNOWN or bounding >> KNOWN.index(name) & 1]
        if kept != names:
            process["capabilities"][kind] = kept
            yield f"process.capabilities.{kind}: not available on this host"
    if process.get("oomScoreAdj", 0) < 0:
        del process["oomScoreAdj"]
        yield "process.oomScoreAdj: not this machine's to lower"


def bounding_set():
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("CapBnd")).split()[1], 16)


# capabilities(7), in the order of their numbers.
KNOWN = ["CAP_" + name for name in """
CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE
NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN
SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE
MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE
""".split()]
