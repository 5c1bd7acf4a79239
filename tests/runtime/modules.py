#!/usr/bin/env python3
"""Tests how a runtime applies AppArmor profiles, in a virtual machine whose kernel has AppArmor.

The profile `tested` lets a program read everything, write nothing, and execute nothing, not even itself. A runtime that sets it
before the last `execve` of a start cannot start the program.
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
PRINT_PROFILE = "read -r profile </proc/self/attr/current; echo \"$profile\""
TRY_ACCESS = f"{PRINT_PROFILE}; echo x >/tmp/x || echo write refused; /bin/busybox true || echo execute refused; for fd in /proc/self/fd/*; do echo ${{fd##*/}}; done"


def profile_set(_):
    """The profile `tested`."""


def in_user_namespace(config):
    """In a user namespace."""
    config["linux"]["namespaces"].append({"type": "user"})
    config["linux"]["uidMappings"] = config["linux"]["gidMappings"] = [{"containerID": 0, "hostID": 100000, "size": 65536}]


def as_other_user(config):
    """As another user, who may gain privileges, with a seccomp filter."""
    config["process"]["user"] = {"uid": 1000, "gid": 1000}
    config["process"]["noNewPrivileges"] = False
    config["linux"]["seccomp"] = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir"], "action": "SCMP_ACT_ERRNO"}]}


def without_proc(config):
    """A program without /proc."""
    config["mounts"] = [mount for mount in config["mounts"] if mount["destination"] != "/proc"]
    config["linux"].update(maskedPaths=[], readonlyPaths=[])


def unconfined(config):
    config["process"]["apparmorProfile"] = "unconfined"


def missing_profile(config):
    config["process"]["apparmorProfile"] = "absent"


CONFINED_OUTPUT = ["tested (enforce)", "write refused", "execute refused"]


def is_confined(output, code):
    lines = output.split("\n")
    if code != 0 or lines[:3] != CONFINED_OUTPUT or not set(lines[3:]) <= {"0", "1", "2", "3", ""}:
        yield f"{code}: {output}"


def is_rejected(output, code):
    if code == 0 or "tested" in output or "absent" not in output and "profile" not in output:
        yield f"{code}: {output}"


def expect_output(*expected):
    def check(output, code):
        if code != 0 or [line for line in output.split("\n") if line] != list(expected):
            yield f"{code}: {output}"
    return check


EXEC_AFTER_CREATE = "$R create --bundle . held </dev/null >/dev/null 2>&1 && $R start held && $R exec held /bin/sh -c {tell}; code=$?; $R delete --force held; (exit $code)"

# A name, the change of config.json, the script in the container, the command in the virtual machine, the expected output.
CASES = [
    ("a profile", profile_set, TRY_ACCESS, "$R run --bundle . run", is_confined),
    ("a profile in a user namespace", in_user_namespace, TRY_ACCESS, "$R run --bundle . run", is_confined),
    ("a profile of another user", as_other_user, TRY_ACCESS, "$R run --bundle . run", is_confined),
    ("a program without /proc", without_proc, "echo x >/tmp/x || echo write refused", "$R run --bundle . run", expect_output("write refused")),
    ("no profile", unconfined, PRINT_PROFILE, "$R run --bundle . run", expect_output("unconfined")),
    ("a profile that is not loaded", missing_profile, PRINT_PROFILE, "$R run --bundle . run", is_rejected),
    ("a profile that is not loaded, with create and start", missing_profile, PRINT_PROFILE, "$R create --bundle . late </dev/null && $R start late; code=$?; $R delete --force late; (exit $code)", is_rejected),
    ("exec", profile_set, "while :; do read -t 1 line; done", EXEC_AFTER_CREATE.format(tell=shlex.quote(PRINT_PROFILE)), expect_output("tested (enforce)")),
    ("exec in a user namespace", in_user_namespace, "while :; do read -t 1 line; done", EXEC_AFTER_CREATE.format(tell=shlex.quote(PRINT_PROFILE)), expect_output("tested (enforce)")),
    ("exec with another profile", profile_set, "while :; do read -t 1 line; done",
     EXEC_AFTER_CREATE.format(tell=shlex.quote(PRINT_PROFILE)).replace("exec held", "exec --apparmor other held"), expect_output("other (enforce)")),
]


def compile_profiles(harness, path, text=PROFILE):
    """Compiles the profiles for the kernel."""
    vm = REPOSITORY / ".oracles/vm"
    parser = vm / "apparmor/sbin/apparmor_parser"
    if not parser.exists():
        harness.missing("apparmor_parser")
    made = subprocess.run([parser, "--skip-kernel-load", "--skip-cache", "--quiet", "--stdout", "--features-file", vm / "apparmor/etc/apparmor.d/abi/3.0"],
                          input=text.encode(), capture_output=True, check=False)
    if made.returncode:
        harness.check("the profiles", [made.stderr.decode()])
        harness.end()
    path.write_bytes(made.stdout)


def main():
    harness = Harness("modules", __doc__.split("\n", maxsplit=1)[0])
    harness.parse()
    vm = REPOSITORY / "tests/vm/qemu"
    if not os.access(REPOSITORY / ".oracles/vm/vmlinuz", os.R_OK):
        harness.missing("vmlinuz")
    for tool in ("qemu-system-x86_64", "strip"):
        harness.tool(tool)
    busybox = harness.tool("busybox")
    with scratch() as directory:
        compile_profiles(harness, directory / "profiles")
        # Without debug information the virtual machine has a tenth to unpack.
        small = directory / "small"
        small.mkdir()
        tested = Path(program(harness, directory))
        runtime = small / tested.name
        files = [directory / "profiles", runtime, directory / "all"]
        if tested.read_bytes()[:2] == b"#!":  # a mutation of runc
            shutil.copy2(tested, runtime)
            files.append(harness.tool("runc"))
        else:
            subprocess.run(["strip", "-o", runtime, tested], check=True)
        lines = [f"cat {directory}/profiles >/sys/kernel/security/apparmor/.load || exit 9", f'R="{runtime} --root /run/tested"']
        wanted = [case for case in CASES if harness.wants(case[0])]
        for number, (_, change, script, command, _) in enumerate(wanted):
            place = directory / f"bundle-{number}"
            place.mkdir()
            config = configuration()
            config["process"] |= {"args": ["/bin/sh", "-c", script], "apparmorProfile": "tested"}
            change(config)
            write(place, config)
            files.append(place / "config.json")
            lines += [f"cd {place} && mkdir rootfs && for name in bin dev proc sys tmp etc; do mkdir -m 1777 rootfs/$name; done",
                      "cp /bin/busybox rootfs/bin && ln -s busybox rootfs/bin/sh && chown -R 100000:100000 rootfs/tmp",
                      f"echo '<<<{number}'; ({command}) 2>&1; code=$?; echo; echo \">>>{number} $code\""]
        (directory / "all").write_text("\n".join([*lines, "exit 0\n"]))
        words = [word for path in files for word in ("-f", str(path))]
        result = subprocess.run([vm, "-t", str(SECONDS), "-m", "1G", *words, busybox, "sh", directory / "all"], capture_output=True, text=True, check=False)
        for number, (name, _, _, _, check) in enumerate(wanted):
            output, found, rest = result.stdout.partition(f"<<<{number}\n")[2].partition(f"\n>>>{number} ")
            output = "\n".join(line for line in output.split("\n") if not line.startswith("/bin/sh: "))
            code = int(rest.split("\n", 1)[0]) if found else 255
            harness.check(name, check(output.strip(), code) if found else [f"no output of it: {result.stdout[-800:]} {result.stderr[-400:]}"])
        shutil.rmtree(small)
    harness.end()


if __name__ == "__main__":
    main()
