"""Compares a running container with its configuration, by the kernel's files."""

import os
from pathlib import Path

from oci_adapt import KNOWN

NAMESPACES = {"pid": "pid", "network": "net", "ipc": "ipc", "uts": "uts", "mount": "mnt", "cgroup": "cgroup",
              "user": "user", "time": "time"}


def differences(config, pid, hostname):
    """One line for each difference of the process from its configuration."""
    process, linux = config["process"], config.get("linux", {})
    status = dict(line.split(":\t", 1) for line in text(pid, "status").splitlines() if ":\t" in line)
    mounts = mountinfo(pid)
    yield from environment(process.get("env", []), pid)
    yield from identity(process, status, pid)
    yield from namespaces(linux.get("namespaces", []), pid)
    yield from mounted(config, mounts)
    yield from shared_memory(config, pid)
    yield from hidden(linux, mounts, pid)
    yield from limits(process, pid)
    yield from controllers(linux.get("resources", {}), pid)
    if "hostname" in config:
        yield from same("hostname", config["hostname"], hostname)


def same(what, wanted, seen):
    if wanted != seen:
        yield f"{what} is {seen!r} inside, {wanted!r} in config.json"


def text(pid, name):
    return Path(f"/proc/{pid}/{name}").read_text(errors="surrogateescape")


def environment(wanted, pid):
    """The kernel's copy of the environment; a runtime may add HOME if the configuration has none."""
    seen = [entry for entry in text(pid, "environ").split("\0") if entry]
    names = [entry.partition("=")[0] for entry in wanted]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"process.env names `{name}` more than once"
    extra = [entry for entry in seen if entry not in wanted]
    if "HOME" not in names:
        extra = [entry for entry in extra if not entry.startswith("HOME=")]
    for entry in extra:
        yield f"environment has `{entry}`, which process.env does not"
    for entry in wanted:
        if entry not in seen:
            yield f"environment lacks `{entry}`"


def identity(process, status, pid):
    user = process.get("user", {})
    yield from same("uid", user.get("uid", 0), int(status["Uid"].split()[1]))
    yield from same("gid", user.get("gid", 0), int(status["Gid"].split()[1]))
    primary = {user.get("gid", 0)}
    yield from same("groups", sorted(set(user.get("additionalGids", [])) - primary),
                    sorted({int(group) for group in status["Groups"].split()} - primary))
    yield from same("cwd", process["cwd"].rstrip("/") or "/", os.readlink(f"/proc/{pid}/cwd"))
    yield from same("noNewPrivileges", int(process.get("noNewPrivileges", False)), int(status["NoNewPrivs"]))
    bits = int(status["CapBnd"], 16)
    held = sorted(name for number, name in enumerate(KNOWN) if bits >> number & 1)
    yield from same("capabilities.bounding", sorted(process.get("capabilities", {}).get("bounding", [])), held)


def namespaces(listed, pid):
    kinds = {namespace["type"] for namespace in listed}
    for kind, name in NAMESPACES.items():
        ours, theirs = (os.readlink(f"/proc/{who}/ns/{name}") for who in ("self", pid))
        if (kind in kinds) != (ours != theirs):
            yield f"{kind} namespace is {'shared' if ours == theirs else 'private'}, unlike linux.namespaces"


def mountinfo(pid):
    """Mount point -> its options and those of its file system, for the topmost mount."""
    out = {}
    for line in text(pid, "mountinfo").splitlines():
        fields, _, rest = line.partition(" - ")
        fields, rest = fields.split(), rest.split(" ")
        place = fields[4].encode().decode("unicode_escape")
        out[place] = (set(fields[5].split(",")), set(rest[2].split(",")), rest[0])
    return out


def mounted(config, mounts):
    if config["root"].get("readonly") and "ro" not in mounts["/"][0]:
        yield "root file system is writable, root.readonly is true"
    for mount in config.get("mounts", []):
        place = mount["destination"].rstrip("/")
        if place not in mounts:
            yield f"nothing is mounted at `{place}`"
            continue
        # `rro` is `ro` for the mounts below as well.
        recursive = {"rro": "ro", "rnosuid": "nosuid", "rnodev": "nodev", "rnoexec": "noexec"}
        options = [recursive.get(option, option) for option in mount.get("options", [])]
        wanted = {"ro", "nosuid", "nodev", "noexec"} & set(options)
        for name in sorted(wanted - mounts[place][0] - on_each_controller(mount, mounts)):
            yield f"mount `{place}` lacks `{name}`"
        if mount.get("type") not in (None, "bind", "none", "cgroup") and mounts[place][2] != mount["type"]:
            yield f"mount `{place}` is {mounts[place][2]}, not {mount['type']}"


def on_each_controller(mount, mounts):
    """A cgroup v1 mount is a tmpfs with one mount per controller, which have the options."""
    below = [options for place, (options, _, kind) in mounts.items()
             if kind == "cgroup" and place.startswith(mount["destination"] + "/")]
    return set.intersection(*below) if mount.get("type") == "cgroup" and below else set()


def shared_memory(config, pid):
    """The usable size of /dev/shm in bytes."""
    for mount in config.get("mounts", []):
        size = next((o[5:] for o in mount.get("options", []) if o.startswith("size=")), None)
        if mount["destination"] == "/dev/shm" and size:
            inside = f"/proc/{pid}/root/dev/shm"
            if not os.path.exists(inside):
                yield "/dev/shm cannot be seen: a later mount covers it"
                continue
            seen = os.statvfs(inside)
            wanted = amount(size)
            page = os.sysconf("SC_PAGE_SIZE")
            yield from same("size of /dev/shm", -(-wanted // page) * page, seen.f_blocks * seen.f_frsize)


def amount(size):
    """A tmpfs size, with the kernel's suffixes, in bytes."""
    factor = {"k": 2**10, "m": 2**20, "g": 2**30}.get(size[-1].lower(), 1)
    return int(size.rstrip("kKmMgG")) * factor


def hidden(linux, mounts, pid):
    for place in linux.get("maskedPaths", []):
        inside = f"/proc/{pid}/root{place}"
        if not os.path.exists(inside):
            continue
        empty = not os.listdir(inside) if os.path.isdir(inside) else not Path(inside).read_bytes()[:1]
        if not empty:
            yield f"masked path `{place}` can be read"
    for place in linux.get("readonlyPaths", []):
        if os.path.exists(f"/proc/{pid}/root{place}") and "ro" not in mounts.get(place, (set(),))[0]:
            yield f"read-only path `{place}` is not mounted read-only"


LIMITS = {"RLIMIT_NOFILE": "Max open files", "RLIMIT_MEMLOCK": "Max locked memory", "RLIMIT_STACK": "Max stack size",
          "RLIMIT_CORE": "Max core file size", "RLIMIT_NPROC": "Max processes", "RLIMIT_CPU": "Max cpu time",
          "RLIMIT_AS": "Max address space", "RLIMIT_FSIZE": "Max file size"}


def limits(process, pid):
    lines = text(pid, "limits").splitlines()
    for limit in process.get("rlimits", []):
        title = LIMITS.get(limit["type"])
        if title is None:
            continue
        soft, hard = next(line for line in lines if line.startswith(title))[len(title):].split()[:2]
        for kind, seen in (("soft", soft), ("hard", hard)):
            wanted = "unlimited" if limit[kind] >= 2**63 else str(limit[kind])
            yield from same(f"{limit['type']} {kind}", wanted, seen)


def controllers(wanted, pid):
    """The limits, read from the cgroup's files."""
    memory, cpu = wanted.get("memory", {}), wanted.get("cpu", {})
    page = os.sysconf("SC_PAGE_SIZE")
    groups = dict(line.split(":")[1:3] for line in text(pid, "cgroup").splitlines())
    if os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
        expected = {("", "memory.max"): floor(memory.get("limit"), page), ("", "pids.max"): most(wanted),
                    ("", "cpu.max"): f"{cpu['quota']} {cpu.get('period', 100000)}" if "quota" in cpu else None}
    else:
        expected = {("memory", "memory.limit_in_bytes"): floor(memory.get("limit"), page),
                    ("memory", "memory.memsw.limit_in_bytes"): floor(memory.get("swap"), page),
                    ("memory", "memory.soft_limit_in_bytes"): floor(memory.get("reservation"), page),
                    ("cpu", "cpu.cfs_quota_us"): cpu.get("quota"), ("cpu", "cpu.cfs_period_us"): cpu.get("period"),
                    ("cpu", "cpu.shares"): cpu.get("shares"), ("cpuset", "cpuset.cpus"): cpu.get("cpus"),
                    ("pids", "pids.max"): most(wanted)}
    for (controller, name), value in expected.items():
        if value is not None:
            file = Path(f"/sys/fs/cgroup/{controller}{groups.get(controller, '')}/{name}")
            seen = file.read_text().strip() if file.exists() else "absent"
            yield from same(name, str(value), seen)


def floor(size, page):
    """The kernel rounds memory to pages; a negative amount is no limit, which has several spellings."""
    return None if size is None or size < 0 else size // page * page


def most(wanted):
    limit = wanted.get("pids", {}).get("limit")
    return None if limit is None or limit <= 0 else limit
