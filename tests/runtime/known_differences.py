"""Differences between runtimes that are correct, each with its reason.

The specification decides; where it is silent, what programs in containers rely on decides.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """A known difference: its cases, runtimes and fields, and the reason."""

    case: str
    peer: str
    field: str
    why: str
    ours: str = ".*"
    theirs: str = ".*"


RULES = [
    # Mounts
    Rule(".*", "crun", r"mounts\./proc/(bus|fs|irq|sys)", "ours and runc keep nosuid, nodev and noexec of /proc on a read-only path below it"),
    Rule(".*", ".*", r"mounts\./(proc/acpi|sys/firmware|secrets)", "a masked directory is an empty read-only tmpfs; ours adds nosuid, nodev, noexec"),
    Rule(".*", "crun", r"mounts\./(proc/keys|proc/timer_list|secret)", "a masked file is the null device; crun binds that of the host, ours and runc that of the container"),
    Rule(".*", "runc", r"mounts\./sys", "sysfs is read-only by its mount; runc also makes the superblock read-only, which the host shares"),
    Rule(".*", ".*", r"mounts\./sys/fs/cgroup", "the tmpfs above the controllers: read-only with `ro`; crun and runc leave it writable"),
    Rule(".*", "crun", "writable", "crun leaves the tmpfs above the controllers writable", theirs=".*/sys/fs/cgroup.*"),
    Rule("cgroup-writable", "runc", "writable", "without `ro` the tmpfs above the controllers can be written, as the options say", ours=".*/sys/fs/cgroup.*"),
    Rule("tmpfs-options", "crun", r"mounts\./mnt/(18|19)", "the last of contradictory options counts, as for mount(8) and runc"),
    Rule("bind-recursive-options", "crun", "failed", "crun 1.8 gives mount_setattr(2) an access-time mode without clearing the old one"),
    Rule("propagation-r?(shared|unbindable)", "crun", r"mounts\./volume", "crun 1.8 makes every mount private after that; the option requests more"),
    Rule("root-propagation-r?shared", "runc", r"mounts\./", "runc 1.1 does not honor `shared` for the root", ours=".*shared.*"),
    Rule("root-propagation-rshared", "crun", r"mounts\./.+", "the property is that of the root's mount; crun shares the container's other mounts too",
         theirs=".*shared.*"),
    Rule(".*", "runc", r"mounts\./(dev/(full|fuse|null|random|tty|urandom|zero)|proc/keys|proc/timer_list|secret)",
         "a device that is bound from the host, in a user namespace, is nosuid and noexec, as with crun", ours=".*noexec,nosuid.*"),
    Rule("terminal.*", "crun", r"mounts\./dev/console", "ours and runc keep the options of /dev/pts on the console"),
    # /dev
    Rule(".*", "crun", r"dev\.'/dev/core' -> '/proc/kcore'", "not among the links that the specification lists (config-linux.md, default filesystems)"),
    Rule("user-namespace.*", "runc", r"dev\./dev/mqueue", "runc leaves its group unmapped"),
    Rule("user-namespace-devices", "crun", r"(dev\.|mounts\.)/dev/fuse", "ours and runc bind the host's node, crun a new one"),
    Rule("terminal", "crun|runc", "terminal", "crun 1.8 gives no size to a terminal without `consoleSize`; runc gives it after the start, "
         "and a program that reads the size at once may see none", theirs="(?!.*33 101).*"),
    Rule("terminal-size", "crun|runc", "terminal", "the size is that of the user's terminal; `consoleSize` is for a container without one. "
         "runc starts with `consoleSize`, and a program that reads the size at once may see it", theirs=r".*\n20 70\n.*"),
    # Cgroups
    Rule(".*", "crun", r"outside\.cgroup\.", "crun does not see the v2 half of a hybrid tree here; ours keeps a cgroup there for kill and freeze"),
    Rule(".*", ".*", r"outside\.cgroup\.devices/devices.list", "the default devices of the specification, /dev/console among them; runc has /dev/net/tun instead",
         theirs=".*"),
    Rule("cgroup-namespace-shared", "crun", "cgroup\\.?", "crun does not see the v2 half of a hybrid tree here"),
    Rule("memory-unlimited", "crun", "failed", "crun 1.8 writes a pids limit of -1 as a number"),
    Rule("cpu-shares-min", "crun", "failed", "crun 1.8 writes a quota of -1 as an unsigned number"),
    # The rest
    Rule(".*", ".*", r"state\.ociVersion", "the version of the specification that the runtime follows"),
    Rule(".*", ".*", r"state\.annotations", "there are none, which may be an empty object or absent", ours="{}", theirs="None"),
    Rule("unknown-capability", ".*", "stderr", "the words of the warning; crun gives none", ours="warning: config.json: /process/capabilities: .*"),
    Rule("personality", "runc", r"identity\.personality", "runc 1.1 does not know `linux.personality`"),
]


def find(case, peer, field, mine, other):
    """The rule for a difference, if there is one; all patterns of a rule match the whole text."""
    for rule in RULES:
        texts = ((rule.case, case), (rule.peer, peer), (rule.field, field), (rule.ours, str(mine)), (rule.theirs, str(other)))
        if all(re.fullmatch(pattern, text, re.DOTALL) for pattern, text in texts):
            return rule
    return None
