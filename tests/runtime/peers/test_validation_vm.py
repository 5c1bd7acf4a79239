"""Runs validation programs that need what hosts do not have in a virtual machine: AppArmor, cgroup v1 with huge pages, net_cls and
net_prio, and root with every capability.
"""

import os
import subprocess
from types import SimpleNamespace

import pytest
from peer import PEERS
from test_validation import problems

import needs
from apparmor import compile_profiles
from harness import REPOSITORY

# Others would use the same cgroups, and so run one after the other.
RUNTIMES = ["jobc"]
INSTALLED = PEERS / "validation/programs"
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
echo '<<<{name}'; RUNTIME={program} timeout 300 {tests}/programs/{name} 2>/w/err; code=$?
echo; echo ">>>{name} $code"; tail -n 5 /w/err; echo '==={name}'
"""


@pytest.mark.duration(150)
@pytest.mark.needs("qemu-system-x86_64", "strip", "busybox")
def test_validation_programs_pass_in_a_virtual_machine(runtime, program, tmp_path, compare):
    # The virtual machine has the files at their real paths.
    tests, vm = INSTALLED.parent.resolve(), (REPOSITORY / ".oracles/vm").resolve()
    for file in ("vmlinuz", "dummy.ko"):
        if not os.access(vm / file, os.R_OK):
            needs.missing(f"{file} of the virtual machine")
    profiles, script, small = tmp_path / "profiles", tmp_path / "script", tmp_path / runtime
    compile_profiles(PROFILE, profiles)
    # Without debug information the virtual machine has a tenth to unpack.
    subprocess.run(["strip", "-o", small, program], check=True)
    script.write_text(PREPARE.format(vm=vm, profiles=profiles, tests=tests)
                      + "".join(RUN.format(name=name, program=small, tests=tests) for name in PROGRAMS))
    files = [small, vm / "dummy.ko", profiles, script, tests / "runtimetest", *tests.glob("rootfs-*.tar.gz"), *(tests / "programs" / name for name in PROGRAMS)]
    words = [word for path in files for word in ("-f", str(path))]
    ran = subprocess.run([REPOSITORY / "tests/vm/qemu", "-c", "v1", "-t", str(SECONDS), "-m", "2G", *words, needs.tool("busybox"), "sh", script],
                         capture_output=True, text=True, errors="replace", check=False)
    results = {}
    for name in PROGRAMS:
        output, found, rest = ran.stdout.partition(f"<<<{name}\n")[2].partition(f"\n>>>{name} ")
        code, _, errors = rest.partition(f"==={name}")[0].partition("\n")
        result = SimpleNamespace(stdout=output, returncode=int(code) if found else 255, stderr=errors)
        results[name] = list(problems(result)) if found else [f"no output of it: {ran.stdout[-200:]} {ran.stderr[-200:]}"]
    compare(results)
