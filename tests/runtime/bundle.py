"""Bundles: a busybox root file system and a configuration like that of `runc spec`."""

import copy
import json
import os
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent

MASKED = ["/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
          "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware"]
READONLY = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]
CAPABILITIES = ["CAP_AUDIT_WRITE", "CAP_KILL", "CAP_NET_BIND_SERVICE"]

BASE = {
    "ociVersion": "1.0.2",
    "process": {
        "terminal": False,
        "user": {"uid": 0, "gid": 0},
        "args": ["/bin/sh", "/probe"],
        "env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TERM=xterm", "HOME=/root"],
        "cwd": "/",
        "capabilities": {kind: CAPABILITIES for kind in ("bounding", "effective", "permitted")},
        "noNewPrivileges": True,
    },
    "root": {"path": "rootfs", "readonly": False},
    "hostname": "tested",
    "mounts": [
        {"destination": "/proc", "type": "proc", "source": "proc", "options": ["nosuid", "noexec", "nodev"]},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs",
         "options": ["nosuid", "strictatime", "mode=755", "size=65536k"]},
        {"destination": "/dev/pts", "type": "devpts", "source": "devpts",
         "options": ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"]},
        {"destination": "/dev/shm", "type": "tmpfs", "source": "shm",
         "options": ["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"]},
        {"destination": "/dev/mqueue", "type": "mqueue", "source": "mqueue", "options": ["nosuid", "noexec", "nodev"]},
        {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["nosuid", "noexec", "nodev", "ro"]},
        {"destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup",
         "options": ["nosuid", "noexec", "nodev", "relatime", "ro"]},
    ],
    "linux": {
        "resources": {"devices": [{"allow": False, "access": "rwm"}]},
        "namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount", "cgroup")],
        "maskedPaths": MASKED,
        "readonlyPaths": READONLY,
    },
}


def configuration():
    """A copy of the configuration, which the caller may change."""
    return copy.deepcopy(BASE)


def rootless(config, user):
    """Changes a configuration for an unprivileged user, as `runc spec --rootless` would write it."""
    linux = config["linux"]
    linux["namespaces"] = [*linux["namespaces"], {"type": "user"}]
    linux["uidMappings"], linux["gidMappings"] = user.mappings()
    linux.pop("resources", None)
    config["mounts"] = [mount for mount in config["mounts"] if mount["destination"] != "/sys/fs/cgroup"]
    for mount in config["mounts"]:
        if mount["destination"] == "/dev/pts" and not user.subgids:
            mount["options"] = [option for option in mount["options"] if option != "gid=5"]
    return config


def capabilities(config, *names):
    """Adds capabilities to those of the program."""
    for kind in ("bounding", "effective", "permitted"):
        config["process"]["capabilities"][kind] = [*config["process"]["capabilities"][kind], *names]


class Roots:
    """Root file systems: one is created, and each bundle gets a copy, with hard links to programs."""

    def __init__(self, directory, busybox):
        self.made = Path(directory, "rootfs-template")
        bin_ = self.made / "bin"
        bin_.mkdir(parents=True)
        shutil.copy2(busybox, bin_ / "busybox")
        for applet in subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split():
            if applet != "busybox":
                os.symlink("busybox", bin_ / applet)
        for name in ("dev", "proc", "sys", "tmp", "etc", "root", "run", "var", "home", "mnt"):
            (self.made / name).mkdir()
        (self.made / "tmp").chmod(0o1777)
        (self.made / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\nworker:x:1000:1001::/home/worker:/bin/sh\n")
        (self.made / "etc/group").write_text("root:x:0:\nworker:x:1001:\ntty:x:5:\n")
        shutil.copy2(HERE / "probe.sh", self.made / "probe")

    def bundle(self, place, config, owner=None):
        """Writes a bundle and returns its directory; `owner` is the (uid, gid) that its files belong to."""
        place = Path(place)
        shutil.copytree(self.made, place / "rootfs", symlinks=True, copy_function=linked, dirs_exist_ok=True)
        place.chmod(0o755)
        write(place, config)
        if owner:
            give(place, owner)
        return place


def linked(source, target):
    """Copies a file; programs are hard links."""
    if Path(source).name == "busybox":
        os.link(source, target, follow_symlinks=False)
    else:
        shutil.copy2(source, target, follow_symlinks=False)


def write(bundle, config):
    (Path(bundle) / "config.json").write_text(json.dumps(config, indent=1))


def give(directory, owner):
    for path in [directory, *Path(directory).rglob("*")]:
        if path.name != "busybox":
            os.chown(path, *owner, follow_symlinks=False)
