"""Writes a task's cgroup files to a cgroup of this kernel and reads them back; a controller, device or CPU that it lacks is noted and skipped."""

import errno
import os
from pathlib import Path

TREE = Path("/sys/fs/cgroup")
UNIFIED = (TREE / "cgroup.controllers").exists()
# Files whose order matters come first, in that order; the kernel checks each against what is there already.
FIRST = ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "cpu.cfs_period_us", "devices.deny", "devices.allow",
         "cpuset.cpus", "cpuset.mems"]
KNOWN = set("cpu cpuacct cpuset memory hugetlb pids blkio io devices freezer rdma misc net_cls net_prio".split())
# Files that depend on how a kernel was built; any other that is absent is a wrong name.
OPTIONAL = {"io.weight", "io.bfq.weight", "blkio.weight", "blkio.bfq.weight"}
LACKING = {errno.ENODEV: "no such device here", errno.ENXIO: "no such device here"}


def available_controllers():
    """The controllers that a cgroup can have; enables them for child cgroups of the root in a v2 tree."""
    if not UNIFIED:
        return {entry.name for entry in TREE.iterdir() if entry.is_dir()}
    here = (TREE / "cgroup.controllers").read_text().split()
    (TREE / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in here))
    return set(here)


def write_task(directory, available, note):
    """Creates a cgroup in each controller of the files, writes them in order, compares, and returns the problems."""
    name = f"jobc-oracle-{os.getpid()}"
    problems, made = [], set()
    files = sorted((path for path in directory.rglob("*") if path.is_file()),
                   key=lambda path: (FIRST.index(path.name) if path.name in FIRST else len(FIRST), path.name))
    try:
        for path in files:
            controller = path.name.partition(".")[0]
            if controller not in KNOWN | {"cgroup"}:
                problems.append(f"{path.name}: unknown controller")
                continue
            if controller not in available | {"cgroup"}:
                note(f"{controller}: no such controller here")
                continue
            group = TREE / name if UNIFIED else TREE / controller / name
            group.mkdir(exist_ok=True)
            made.add(group)
            problems += write(path, group / path.name, note)
    finally:
        for group in made:
            group.rmdir()
    return problems


def write(source, file, note):
    lines = [line for line in source.read_text().splitlines() if line.strip()]
    if not lines:
        return [f"{source.name} is empty"]
    if not file.exists():
        if file.name not in OPTIONAL:
            return [f"{file.name}: the kernel has no such file"]
        note(f"{file.name}: not in this kernel")
        return []
    for line in lines:
        try:
            file.write_text(line + "\n")
        except OSError as error:
            if file.name.startswith("cpuset") and error.errno == errno.ERANGE:
                note(f"{file.name}: not so many CPUs here")
            elif error.errno in LACKING:
                note(f"{file.name}: {LACKING[error.errno]}")
            else:
                return [f"{file.name}: the kernel refuses `{line}`: {os.strerror(error.errno)}"]
            return []
    return compare(file, lines)


def compare(file, lines):
    if file.name == "devices.deny":
        return []
    if file.name == "devices.allow":
        seen = set((file.parent / "devices.list").read_text().splitlines())
        return [f"devices.allow: `{line}` is not in devices.list" for line in lines if line not in seen]
    seen = file.read_text().strip().splitlines()
    if all(line.lstrip("-").isdigit() for line in lines + seen) and len(lines) == len(seen) == 1:
        page = os.sysconf("SC_PAGE_SIZE")
        same = int(seen[0]) in (int(lines[0]), int(lines[0]) // page * page)
        return [] if same else [f"{file.name}: wrote {lines[0]}, reads back {seen[0]}"]
    missing = [line for line in lines if line not in seen and f"default {line}" not in seen]
    return [f"{file.name}: wrote `{line}`, reads back {seen}" for line in missing]
