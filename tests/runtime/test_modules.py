"""Tests how a runtime applies AppArmor profiles, in a virtual machine whose kernel has AppArmor.

The profile `tested` lets a program read everything, write nothing, and execute nothing, not even itself. A runtime that sets it
before the last `execve` of a start cannot start the program.
"""

import os
import shlex
import shutil
import subprocess

import pytest

import needs
from apparmor import compile_profiles
from bundle import configuration, write
from harness import REPOSITORY

pytestmark = [pytest.mark.slow, pytest.mark.duration(60), pytest.mark.needs("qemu-system-x86_64", "strip", "busybox")]

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


def assert_confined(output, code):
    lines = output.split("\n")
    assert code == 0 and lines[:3] == CONFINED_OUTPUT and set(lines[3:]) <= {"0", "1", "2", "3", ""}, f"{code}: {output}"


def assert_rejected(output, code):
    assert code != 0 and "tested" not in output and ("absent" in output or "profile" in output), f"{code}: {output}"


def expect_output(*expected):
    def check(output, code):
        assert code == 0 and [line for line in output.split("\n") if line] == list(expected), f"{code}: {output}"
    return check


EXEC_AFTER_CREATE = "$R create --bundle . held </dev/null >/dev/null 2>&1 && $R start held && $R exec held /bin/sh -c {tell}; code=$?; $R delete --force held; (exit $code)"

# A name, the change of config.json, the script in the container, the command in the virtual machine, the expected output.
CASES = [
    ("a profile", profile_set, TRY_ACCESS, "$R run --bundle . run", assert_confined),
    ("a profile in a user namespace", in_user_namespace, TRY_ACCESS, "$R run --bundle . run", assert_confined),
    ("a profile of another user", as_other_user, TRY_ACCESS, "$R run --bundle . run", assert_confined),
    ("a program without /proc", without_proc, "echo x >/tmp/x || echo write refused", "$R run --bundle . run", expect_output("write refused")),
    ("no profile", unconfined, PRINT_PROFILE, "$R run --bundle . run", expect_output("unconfined")),
    ("a profile that is not loaded", missing_profile, PRINT_PROFILE, "$R run --bundle . run", assert_rejected),
    ("a profile that is not loaded, with create and start", missing_profile, PRINT_PROFILE, "$R create --bundle . late </dev/null && $R start late; code=$?; $R delete --force late; (exit $code)", assert_rejected),
    ("exec", profile_set, "while :; do read -t 1 line; done", EXEC_AFTER_CREATE.format(tell=shlex.quote(PRINT_PROFILE)), expect_output("tested (enforce)")),
    ("exec in a user namespace", in_user_namespace, "while :; do read -t 1 line; done", EXEC_AFTER_CREATE.format(tell=shlex.quote(PRINT_PROFILE)), expect_output("tested (enforce)")),
    ("exec with another profile", profile_set, "while :; do read -t 1 line; done",
     EXEC_AFTER_CREATE.format(tell=shlex.quote(PRINT_PROFILE)).replace("exec held", "exec --apparmor other held"), expect_output("other (enforce)")),
]


@pytest.fixture(scope="module")
def ran(request, runtime, directory):
    """The result of all selected cases in one virtual machine."""
    selected = {item.callspec.params["number"] for item in request.session.items if item.path == request.path}
    if not os.access(REPOSITORY / ".oracles/vm/vmlinuz", os.R_OK):
        needs.missing("vmlinuz")
    compile_profiles(PROFILE, directory / "profiles")
    # Without debug information the virtual machine has a tenth to unpack.
    small = directory / "small" / runtime.program.name
    small.parent.mkdir()
    files = [directory / "profiles", small, directory / "all"]
    if runtime.program.read_bytes()[:2] == b"#!":  # a mutation of runc
        shutil.copy2(runtime.program, small)
        files.append(needs.tool("runc"))
    else:
        subprocess.run(["strip", "-o", small, runtime.program], check=True)
    lines = [f"cat {directory}/profiles >/sys/kernel/security/apparmor/.load || exit 9", f'R="{small} --root /run/tested"']
    for number in selected:
        _, change, script, command, _ = CASES[number]
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
    return subprocess.run([REPOSITORY / "tests/vm/qemu", "-t", str(SECONDS), "-m", "1G", *words, needs.tool("busybox"), "sh", directory / "all"],
                          capture_output=True, text=True, check=False)


@pytest.mark.parametrize("number", range(len(CASES)), ids=[case[0].replace(" ", "_").replace(",", "").replace("/", "") for case in CASES])
def test_a_profile_confines_the_program_from_its_first_instruction(ran, number):
    output, found, rest = ran.stdout.partition(f"<<<{number}\n")[2].partition(f"\n>>>{number} ")
    assert found, f"no output of it: {ran.stdout[-800:]} {ran.stderr[-400:]}"
    output = "\n".join(line for line in output.split("\n") if not line.startswith("/bin/sh: "))
    CASES[number][-1](output.strip(), int(rest.split("\n", 1)[0]))
