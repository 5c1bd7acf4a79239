#!/usr/bin/env python3
"""Tests how a runtime applies AppArmor profiles, in a virtual machine whose kernel has AppArmor.

The profile `tested` lets a program read everything, write nothing, and execute nothing, itself included: who sets it for
anything but the last `execve` of a start does not get as far as the program.
"""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

from bundle import configuration, write
from harness import REPOSITORY, Harness, scratch
from runtime import program

SECONDS = 240
PROFILE = """
profile tested flags=(attach_disconnected) { / r, /** r, /bin/busybox mr, signal, ptrace, capability, network, unix, }
profile other flags=(attach_disconnected) { file, signal, ptrace, capability, network, unix, }
"""
TELL = "read -r profile </proc/self/attr/current; echo \"$profile\""
TRY = f"{TELL}; echo x >/tmp/x || echo write refused; /bin/busybox true || echo execute refused; for fd in /proc/self/fd/*; do echo ${{fd##*/}}; done"


def confined(_):
    """The profile `tested`."""


def users(config):
    """In a user namespace."""
    config["linux"]["namespaces"].append({"type": "user"})
    config["linux"]["uidMappings"] = config["linux"]["gidMappings"] = [{"containerID": 0, "hostID": 100000, "size": 65536}]


def plain(config):
    """Of another user, who may gain privileges, with a filter of system calls."""
    config["process"]["user"] = {"uid": 1000, "gid": 1000}
    config["process"]["noNewPrivileges"] = False
    config["linux"]["seccomp"] = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir"], "action": "SCMP_ACT_ERRNO"}]}


def hidden(config):
    """A program that does not see its own /proc."""
    config["mounts"] = [mount for mount in config["mounts"] if mount["destination"] != "/proc"]
    config["linux"].update(maskedPaths=[], readonlyPaths=[])


def unconfined(config):
    config["process"]["apparmorProfile"] = "unconfined"


def absent(config):
    config["process"]["apparmorProfile"] = "absent"


REFUSED = ["tested (enforce)", "write refused", "execute refused"]


def is_checked(said, code):
    lines = said.split("\n")
    if code != 0 or lines[:3] != REFUSED or not set(lines[3:]) <= {"0", "1", "2", "3", ""}:
        yield f"{code}: {said}"


def is_refused(said, code):
    if code == 0 or "tested" in said or "absent" not in said and "profile" not in said:
        yield f"{code}: {said}"


def says(*expected):
    def check(said, code):
        if code != 0 or [line for line in said.split("\n") if line] != list(expected):
            yield f"{code}: {said}"
    return check


HELD = "$R create --bundle . held </dev/null >/dev/null 2>&1 && $R start held && $R exec held /bin/sh -c {tell}; code=$?; $R delete --force held; (exit $code)"

# A name, how config.json is changed, the arguments of the program, what the machine does, and what must come of it.
CASES = [
    ("a profile", confined, TRY, "$R run --bundle . run", is_checked),
    ("a profile in a user namespace", users, TRY, "$R run --bundle . run", is_checked),
    ("a profile of another user", plain, TRY, "$R run --bundle . run", is_checked),
    ("a program without /proc", hidden, "echo x >/tmp/x || echo write refused", "$R run --bundle . run", says("write refused")),
    ("no profile", unconfined, TELL, "$R run --bundle . run", says("unconfined")),
    ("a profile that is not loaded", absent, TELL, "$R run --bundle . run", is_refused),
    ("a profile that is not loaded, when it is started", absent, TELL, "$R create --bundle . late </dev/null && $R start late; code=$?; $R delete --force late; (exit $code)", is_refused),
    ("a further program", confined, "while :; do read -t 1 line; done", HELD.format(tell=shlex.quote(TELL)), says("tested (enforce)")),
    ("a further program in a user namespace", users, "while :; do read -t 1 line; done", HELD.format(tell=shlex.quote(TELL)), says("tested (enforce)")),
    ("a further program with its own", confined, "while :; do read -t 1 line; done",
     HELD.format(tell=shlex.quote(TELL)).replace("exec held", "exec --apparmor other held"), says("other (enforce)")),
]


def compiled(harness, path):
    """Writes the profiles as the kernel takes them."""
    vm = REPOSITORY / ".oracles/vm"
    parser = vm / "apparmor/sbin/apparmor_parser"
    if not parser.exists():
        harness.skip("there is no parser of AppArmor's profiles; `tests/oracles/install` installs it")
    made = subprocess.run([parser, "--skip-kernel-load", "--skip-cache", "--quiet", "--stdout", "--features-file", vm / "apparmor/etc/apparmor.d/abi/3.0"],
                          input=PROFILE.encode(), capture_output=True, check=False)
    if made.returncode:
        harness.check("the profiles", [made.stderr.decode()])
        harness.end()
    path.write_bytes(made.stdout)


def main():
    harness = Harness("modules", __doc__.split("\n", maxsplit=1)[0])
    harness.parse()
    vm = REPOSITORY / "tests/vm/qemu"
    if not os.access(REPOSITORY / ".oracles/vm/vmlinuz", os.R_OK):
        harness.skip("there is no kernel; `tests/oracles/install` installs it")
    for tool in ("qemu-system-x86_64", "strip"):
        harness.tool(tool)
    busybox = harness.tool("busybox")
    with scratch() as directory:
        compiled(harness, directory / "profiles")
        # Without what debuggers read it is a tenth of what the machine has to unpack.
        small = directory / "small"
        small.mkdir()
        checked = Path(program(harness, directory))
        runtime = small / checked.name
        given = [directory / "profiles", runtime, directory / "all"]
        if checked.read_bytes()[:2] == b"#!":  # the self-test's, about runc
            shutil.copy2(checked, runtime)
            given.append(harness.tool("runc"))
        else:
            subprocess.run(["strip", "-o", runtime, checked], check=True)
        lines = [f"cat {directory}/profiles >/sys/kernel/security/apparmor/.load || exit 9", f'R="{runtime} --root /run/tested"']
        wanted = [case for case in CASES if harness.wants(case[0])]
        for number, (_, change, script, command, _) in enumerate(wanted):
            place = directory / f"bundle-{number}"
            place.mkdir()
            config = configuration()
            config["process"] |= {"args": ["/bin/sh", "-c", script], "apparmorProfile": "tested"}
            change(config)
            write(place, config)
            given.append(place / "config.json")
            lines += [f"cd {place} && mkdir rootfs && for name in bin dev proc sys tmp etc; do mkdir -m 1777 rootfs/$name; done",
                      "cp /bin/busybox rootfs/bin && ln -s busybox rootfs/bin/sh && chown -R 100000:100000 rootfs/tmp",
                      f"echo '<<<{number}'; ({command}) 2>&1; code=$?; echo; echo \">>>{number} $code\""]
        (directory / "all").write_text("\n".join([*lines, "exit 0\n"]))
        words = [word for path in given for word in ("-f", str(path))]
        ended = subprocess.run([vm, "-t", str(SECONDS), "-m", "1G", *words, busybox, "sh", directory / "all"], capture_output=True, text=True, check=False)
        for number, (name, _, _, _, check) in enumerate(wanted):
            said, found, rest = ended.stdout.partition(f"<<<{number}\n")[2].partition(f"\n>>>{number} ")
            said = "\n".join(line for line in said.split("\n") if not line.startswith("/bin/sh: "))
            code = int(rest.split("\n", 1)[0]) if found else 255
            harness.check(name, check(said.strip(), code) if found else [f"no word of it: {ended.stdout[-800:]} {ended.stderr[-400:]}"])
        shutil.rmtree(small)
    harness.end()


if __name__ == "__main__":
    main()
