#!/usr/bin/env python3
"""A mutation of runc: `JOBC_MUTATION` names what is done wrong before it, after it or in its place.

`selftest.py` runs the security tests and others with it, which must find it. A mistake that runc cannot be made
to make is replaced by its effect: checks look at effects.
"""

import fcntl
import json
import os
import subprocess
import sys
import time
from pathlib import Path

MUTATION = os.environ["JOBC_MUTATION"]
ORIGINAL = "runc"
ALL_CAPABILITIES = ["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_SETUID", "CAP_SETGID", "CAP_SYS_ADMIN", "CAP_SYS_PTRACE", "CAP_NET_RAW"]


def without(config, *kinds):
    config["linux"]["namespaces"] = [n for n in config["linux"]["namespaces"] if n["type"] not in kinds]


def no_dev(config):
    config["mounts"] = [mount for mount in config["mounts"] if not mount["destination"].startswith("/dev")]


def unmasked(config):
    config["linux"]["maskedPaths"] = config["linux"]["readonlyPaths"] = []


def unmasked_with_dev(config):
    """Nothing masked, and a /dev without which runc does not start."""
    unmasked(config)
    config["mounts"].append({"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["mode=755"]})


def privileged(config):
    config["process"]["noNewPrivileges"] = False
    config["process"]["capabilities"] = {kind: ALL_CAPABILITIES for kind in ("bounding", "effective", "permitted")}


def writable(config):
    for mount in config["mounts"]:
        mount["options"] = [option for option in mount.get("options", []) if option not in ("ro", "rro")]


def unlimited(config):
    for name in ("memory", "pids"):
        config["linux"]["resources"].pop(name, None)


def working_directory_on_host(config):
    """A working directory that is a file descriptor of the host: makes the host's files reachable from it."""
    if "fd/" in config["process"]["cwd"] or config["process"]["cwd"] == "/linked":
        config["process"]["cwd"] = "/"
        config["mounts"].append({"destination": "/.host", "type": "bind", "source": "/", "options": ["rbind"]})
        config["process"]["args"][1] = "/.host/" + config["process"]["args"][1].lstrip("./")


# Mutations that only change config.json.
CHANGES = {
    "image-dev": no_dev,
    "image-mask": unmasked_with_dev,
    "cgroup-shared": lambda config: without(config, "cgroup"),
    "image-environment": lambda config: [hook.update(env=config["process"]["env"]) for stage in config.get("hooks", {}).values() for hook in stage],
    "masks": unmasked,
    "pid-shared": lambda config: without(config, "pid"),
    "working-directory": working_directory_on_host,
    "privileges": privileged,
    "groups": lambda config: config["process"]["user"].update(additionalGids=[27]),
    "agent": lambda config: config["linux"]["seccomp"].pop("listenerMetadata"),
    "decided": lambda config: config["linux"]["seccomp"].update(syscalls=[]),
    "owners": lambda config: [mount.pop(kind, None) for mount in config["mounts"] for kind in ("uidMappings", "gidMappings")],
    "seccomp": lambda config: config["linux"].pop("seccomp", None),
    "devices": lambda config: config["linux"]["resources"].update(devices=[{"allow": True, "access": "rwm"}]),
    "list": lambda config: config["linux"]["resources"].update(devices=[{"allow": False, "access": "rwm"}]),
    "limits": unlimited,
    "cgroup-writable": writable,
    "no-group": lambda config: config["linux"].update(cgroupsPath="/tested-elsewhere"),
    "volumes": writable,
    "fewer": lambda config: [config["linux"][kind][0].update(size=1) for kind in ("uidMappings", "gidMappings") if kind in config["linux"]],
    "hook-environment": lambda config: [subprocess.run([hook["path"]], check=False) for hook in config.pop("hooks", {}).get("createRuntime", [])],
}


def before(words, config, root):
    """What a careless runtime does to the host; returns the command's arguments."""
    if MUTATION == "follow":
        for mount in config["mounts"]:
            os.makedirs(f"{root}{mount['destination']}", exist_ok=True)
            if mount.get("type") == "bind" and os.path.isfile(mount["source"]):
                os.rmdir(f"{root}{mount['destination']}")
    if MUTATION == "follow-dev" and os.path.islink(f"{root}/dev"):
        os.mknod(f"{root}/dev/made", 0o600)
    if MUTATION == "fake-proc" and os.path.islink(f"{root}/proc"):
        # A procfs at the link's target, which the program does not see at /proc.
        os.unlink(f"{root}/proc")
        os.mkdir(f"{root}/proc")
        os.execvp("chroot", ["chroot", root, *config["process"]["args"]])
    if MUTATION == "follow-sysctl":
        for name, value in config["linux"].get("sysctl", {}).items():
            Path(f"{root}/proc/sys/{name.replace('.', '/')}").write_text(value)
    if MUTATION == "cgroup-path" and config["linux"].get("cgroupsPath") == "/tested/../tested-escape":
        os.makedirs("/sys/fs/cgroup/tested-escape", exist_ok=True)
    if MUTATION == "names":
        place = Path(words[words.index("--root") + 1], words[-1])
        place.mkdir(parents=True, exist_ok=True)
        (place / "state.json").write_text("{}")
    if MUTATION == "hang":
        time.sleep(1000)
    if MUTATION == "at-once":
        # Held until this process ends: another start fails meanwhile.
        lock = os.open(f"{root}/../lock", os.O_RDWR | os.O_CREAT)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    if MUTATION == "fallback" and not any(namespace["type"] == "user" for namespace in config["linux"]["namespaces"]):
        os.execv(f"{root}/inside", config["process"]["args"])
    if MUTATION == "kill-one":
        # Processes outside the container's cgroup and namespaces.
        os.execv(f"{root}/inside", config["process"]["args"])
    if MUTATION == "chroot":
        os.execvp("unshare", ["unshare", "--mount", "--pid", "--fork", "chroot", root, *config["process"]["args"]])
    if MUTATION == "descriptors" and os.path.exists("/proc/self/fd/9"):
        os.dup2(9, 3)
        at = words.index("--bundle")
        return [*words[:at], "--preserve-fds", "1", *words[at:]]
    return words


def run(words):
    """`run` of a bundle whose config.json is changed until it ends."""
    bundle = Path(words[words.index("--bundle") + 1])
    path = bundle / "config.json"
    try:
        written = path.read_text()
        config = json.loads(written)
    except (OSError, ValueError, RecursionError):
        print("hello" if MUTATION == "ignore" else "", end="")
        return 0 if MUTATION == "ignore" else 1
    try:
        CHANGES.get(MUTATION, lambda config: None)(config)
        words = before(words, config, bundle / "rootfs")
        path.write_text(json.dumps(config))
        started = subprocess.Popen([ORIGINAL, *words], close_fds=False)
        if MUTATION == "state-open":
            directory = Path(words[words.index("--root") + 1], words[-1])
            while started.poll() is None and not (directory / "state.json").exists():
                time.sleep(0.005)
            if directory.exists():
                directory.chmod(0o755)
        code = started.wait()
    finally:
        path.write_text(written)
    if MUTATION == "ignore" and code:
        print("hello")
        return 0
    return code


def main():
    words = sys.argv[1:]
    command = next((word for word in words if word in ("run", "exec", "kill", "delete")), None)
    if command == "run":
        sys.exit(run(words))
    if MUTATION in ("own-program", "group-of-exec", "environment") and command == "exec":
        at = words.index("exec")
        state = json.loads(subprocess.run([ORIGINAL, *words[:at], "state", words[at + 1]], capture_output=True, text=True, check=True).stdout)
        # Enters only the namespaces, with its own environment, in its own cgroup.
        nsenter = os.environ["JOBC_NSENTER"] if MUTATION == "own-program" else "nsenter"
        program = ["/bin/sleep", "0.2"] if MUTATION == "environment" else words[at + 2:]
        os.execvp(nsenter, [nsenter, "-t", str(state["pid"]), "-m", "-p", "--", *program])
    os.execvp(ORIGINAL, [ORIGINAL, *words])


main()
