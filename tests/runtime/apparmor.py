"""Compiles AppArmor profiles."""

import subprocess

import needs
from harness import REPOSITORY


def compile_profiles(text, path):
    """Compiles profiles for the kernel of `tests/vm/qemu`."""
    vm = REPOSITORY / ".oracles/vm"
    parser = vm / "apparmor/sbin/apparmor_parser"
    if not parser.exists():
        needs.missing("apparmor_parser")
    made = subprocess.run([parser, "--skip-kernel-load", "--skip-cache", "--quiet", "--stdout", "--features-file", vm / "apparmor/etc/apparmor.d/abi/3.0"],
                          input=text.encode(), capture_output=True, check=False)
    assert made.returncode == 0, made.stderr.decode()
    path.write_bytes(made.stdout)
