#!/usr/bin/env python3
"""Runs validation programs that need what hosts do not have in a virtual machine: AppArmor, cgroup v1 with huge pages, net_cls and
net_prio, and root with every capability.
"""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from peer import PEERS, REPOSITORY, Suite, scratch
from validation import problems

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from apparmor import compile_profiles  # noqa: E402

# The programs ask for the state once a second, and two of them start 32 containers.
SECONDS = 700
PROGRAMS = ["linux_cgroups_hugetlb", "linux_cgroups_network", "linux_cgroups_relative_hugetlb", "linux_cgroups_relative_network",
            "linux_process_apparmor_profile", "process_capabilities"]
# The profile that the program names, and a second network interface, which the tests of net_prio look for.
PROFILE = "profile acme_secure_profile flags=(attach_disconnected) { file, signal, ptrace, capability, network, mount, unix, }"
PREPARE = """
insmod {vm}/dummy.ko
ip link add dummy0 type dummy
cat {profiles} >/sys/kernel/security/apparmor/.load || exit 9
mkdir /w
cd /w
cp {tests}/runtimetest {tests}/rootfs-*.tar.gz .
"""
RUN = """
echo '<<<{runtime} {name}'; RUNTIME={program} timeout 300 {tests}/programs/{name} 2>/w/err; code=$?
echo; echo ">>>{runtime} {name} $code"; tail -n 5 /w/err; echo '==={runtime} {name}'
"""


def main():
    suite = Suite("validation_vm", __doc__.split("\n", maxsplit=1)[0])
    # The virtual machine has the files at their real paths.
    tests, vm = (PEERS / "validation").resolve(), (REPOSITORY / ".oracles/vm").resolve()
    if not (tests / "programs").exists():
        suite.missing("the peers\' tests", "`tests/runtime/peers/install`")
    for file in ("vmlinuz", "dummy.ko"):
        if not os.access(vm / file, os.R_OK):
            suite.missing(f"{file} of the virtual machine")
    for tool in ("qemu-system-x86_64", "strip"):
        suite.tool(tool)
    busybox = suite.tool("busybox")
    with scratch() as directory:
        profiles, script = directory / "profiles", directory / "script"
        compile_profiles(suite, PROFILE, profiles)
        files = [vm / "dummy.ko", profiles, script, tests / "runtimetest", *tests.glob("rootfs-*.tar.gz"), *(tests / "programs" / name for name in PROGRAMS)]
        runtimes = {}
        # Others would use the same cgroups, and so run one after the other.
        for name, program in suite.runtimes(directory, references=False).items():
            # Without debug information the virtual machine has a tenth to unpack.
            runtimes[name] = directory / "small" / name
            runtimes[name].parent.mkdir(exist_ok=True)
            subprocess.run(["strip", "-o", runtimes[name], program], check=True)
        cases = [(runtime, name) for name in PROGRAMS for runtime in runtimes if suite.wants(name)]
        script.write_text("".join([PREPARE.format(vm=vm, profiles=profiles, tests=tests),
                                   *(RUN.format(runtime=runtime, name=name, program=runtimes[runtime], tests=tests) for runtime, name in cases)]))
        words = [word for path in [*files, *runtimes.values()] for word in ("-f", str(path))]
        ran = subprocess.run([REPOSITORY / "tests/vm/qemu", "-c", "v1", "-t", str(SECONDS), "-m", "2G", *words, busybox, "sh", script],
                             capture_output=True, text=True, errors="replace", check=False)
        for runtime, name in cases:
            output, found, rest = ran.stdout.partition(f"<<<{runtime} {name}\n")[2].partition(f"\n>>>{runtime} {name} ")
            code, _, errors = rest.partition(f"==={runtime} {name}")[0].partition("\n")
            result = SimpleNamespace(stdout=output, returncode=int(code) if found else 255, stderr=errors)
            suite.result(runtime, name, problems(result) if found else [f"no output of it: {ran.stdout[-200:]} {ran.stderr[-200:]}"])
    suite.finish()


if __name__ == "__main__":
    main()
