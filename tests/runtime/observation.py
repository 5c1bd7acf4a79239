"""Observes a container, field by field: the output of the probe inside, and the kernel's files outside.

Everything that differs between runs (mount ids, names of pipes, the bundle's path) is normalized, so that two
observations of equal containers are equal.
"""

import os
import re
from pathlib import Path

NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts")
LIMIT_FILES = {
    "memory": ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.soft_limit_in_bytes", "memory.swappiness",
               "memory.oom_control"),
    "cpu": ("cpu.shares", "cpu.cfs_quota_us", "cpu.cfs_period_us"),
    "cpuset": ("cpuset.cpus", "cpuset.mems"),
    "pids": ("pids.max",),
    "devices": ("devices.list",),
    "": ("memory.max", "memory.low", "memory.swap.max", "pids.max", "cpu.max", "cpu.weight", "cpuset.cpus"),
}


def inside(output, bundle):
    """The probe's sections as `section.name` -> value."""
    fields, section = {}, None
    lines = {}
    for line in output.split("\n"):
        if line.startswith("== "):
            section = line[3:]
            lines[section] = []
        elif section:
            lines[section].append(line.rstrip("\r"))
    for section, body in lines.items():
        while body and not body[-1]:
            body.pop()
        for name, value in PARSERS.get(section, as_lines)(body, str(bundle)):
            fields[f"{section}.{name}" if name else section] = value
    return fields


def as_lines(body, bundle):
    yield "", "\n".join(line.replace(bundle, "BUNDLE") for line in body)


def as_words(body, _):
    for line in body:
        name, _, value = line.partition(" ")
        yield name.rstrip(":"), value if name != "pid" or value == "1" else "the host's"


def as_status(body, _):
    for line in body:
        name, _, value = line.partition(":\t")
        if name != "NSpid" or "\t" in value:
            yield name, value.strip()


def as_limits(body, _):
    for line in body[1:]:
        name, soft, hard = line[:26].strip(), *line[26:].split()[:2]
        yield name, f"{soft} {hard}"


def as_mounts(body, bundle):
    """In the order of mounting: path, root in the file system, type, options and propagation."""
    places = {}
    for line in body:
        fields, _, rest = line.partition(" - ")
        fields, rest = fields.split(" "), rest.split(" ")
        place, root, options, optional = fields[4], fields[3], fields[5], fields[6:]
        kind = rest[0]
        places[place] = places.get(place, 0) + 1
        name = place if places[place] == 1 else f"{place}#{places[place]}"
        root = re.sub(r"^.*/(rootfs|volumes)\b", r"BUNDLE/\1", root).replace(bundle, "BUNDLE")
        # The path begins at its file system, which may be mounted above the bundle.
        root = re.sub(rf"^.*/{re.escape(os.path.basename(bundle))}$", "BUNDLE", root)
        root = re.sub(r"^/docker/.*|^/process_api/\w+", "/OWN", root)
        passed = sorted(re.sub(r":\d+", "", word) for word in optional)
        if root.startswith("/probe-") or root.startswith("/check-"):
            root = "/CGROUP"
        super_options = sorted(option for option in rest[2].split(",") if kind not in ("ext4", "overlay", "devtmpfs"))
        yield name, f"{root} {kind} {','.join(sorted(options.split(',')))} [{','.join(super_options)}] {passed}"


def as_nodes(body, _):
    for line in body:
        name, _, rest = line.partition("|")
        yield name, rest


def as_descriptors(body, _):
    """The open file descriptors, and the type of each."""
    for line in body:
        before, _, target = line.partition(" -> ")
        number = before.rpartition(" ")[2]
        if target in ("/probe", ""):
            continue
        yield number, re.sub(r":?\[\d+\]|/\d+$", "", target)


def as_groups(body, _):
    for line in body:
        _, controllers, path = line.split(":", 2)
        yield controllers, re.sub(r"^/process_api/\w+", "/OWN", path)


def as_table(body, _):
    yield "", "\n".join(" ".join(line.split()) for line in body)


PARSERS = {"clocks": as_table, "maps": as_table, "status": as_status, "identity": as_words, "mounts": as_mounts,
           "limits": as_limits, "dev": as_nodes, "fds": as_descriptors, "cgroup": as_groups, "masked": as_words, "sysctl": as_words, "volume": as_nodes}


def outside(pid, cgroups_path):
    """What the host's /proc says about the container's first process."""
    fields = {}
    for name in NAMESPACES:
        shared = os.readlink(f"/proc/{pid}/ns/{name}") == os.readlink(f"/proc/self/ns/{name}")
        fields[f"namespace.{name}"] = "shared" if shared else "own"
    fields["oom_score_adj"] = text(pid, "oom_score_adj")
    fields["coredump_filter"] = text(pid, "coredump_filter")
    fields["command line"] = text(pid, "cmdline").replace("\0", " ").strip()
    fields["session"] = str(field(pid, 5) == pid)
    fields["scheduler"] = str(os.sched_getscheduler(pid))
    fields["affinity"] = str(sorted(os.sched_getaffinity(pid)))
    for line in text(pid, "cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        root = Path("/sys/fs/cgroup") if os.path.exists("/sys/fs/cgroup/cgroup.controllers") else \
            Path("/sys/fs/cgroup", controllers.removeprefix("name=") or "unified")
        wanted = cgroups_path or ""
        place = "in its cgroup" if wanted and path.endswith(wanted) else "elsewhere" if path != "/" else "/"
        fields[f"cgroup.{controllers}"] = place
        for name in LIMIT_FILES.get(controllers, ()):
            file = Path(f"{root}{path}", name)
            if file.exists():
                lines = file.read_text().splitlines()
                fields[f"cgroup.{controllers or 'v2'}/{name}"] = ", ".join(sorted(lines))
    return fields


def text(pid, name):
    return Path(f"/proc/{pid}/{name}").read_text(errors="surrogateescape").strip()


def field(pid, number):
    """A field of /proc/PID/stat, numbered from 1 as in proc(5)."""
    rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(rest[number - 2])
