"""Attacks of NVIDIA's container toolkit that advisories describe: the image has links where the driver's files are mounted or looked for."""

import json
import os
import shutil
import subprocess
import sys
import time

import pytest

from harness import REPOSITORY
from test_injection import LIBRARIES, host, simulated  # noqa: F401 (fixtures)

pytestmark = [pytest.mark.isolated, pytest.mark.duration(20), pytest.mark.accounts("single", slow=("range", "root"))]

SECRET = "of the host\n"
COMPAT = "usr/local/cuda/compat"
# What NVIDIA's package for forward compatibility has, newer than the simulated driver.
NEWER = "libcuda.so.999"
SCRIPT = f"""
set +e
cat /{COMPAT}/* /{LIBRARIES}/secret /usr/lib64/secret /etc/secret /etc/ld.so.conf.d/* 2>/dev/null
(echo x >/{COMPAT}/made) 2>/dev/null
(echo x >/{LIBRARIES}/made) 2>/dev/null
cat /proc/self/mountinfo
loads >/dev/null 2>&1
true
"""


@pytest.fixture
def victim(host):  # noqa: F811
    """Files of the host that look like what a toolkit takes from the image."""
    victim = host.jobs.directory / f"victim-{time.monotonic_ns()}"
    (victim / "compat").mkdir(parents=True)
    for name in ("secret", NEWER, "libcuda.so.1", "compat/libcuda.so.1", f"compat/{NEWER}"):
        (victim / name).write_text(SECRET)
    if host.jobs.account:
        # Theirs, so that only the links are in the way.
        subprocess.run(["chown", "-R", f"{host.jobs.account.uid}:{host.jobs.account.gid}", victim], check=True)
    return victim


def digest(directory):
    return sorted((str(path), path.lstat().st_mtime_ns, path.read_text() if path.is_file() else "") for path in directory.rglob("*"))


def image(host, prepare):  # noqa: F811
    """A copy of the root file system with an attack."""
    root = host.jobs.directory / f"root-{time.monotonic_ns()}"
    shutil.copytree(host.files, root, symlinks=True)
    prepare(root)
    if host.jobs.account:
        subprocess.run(["chown", "-hR", f"{host.jobs.account.uid}:{host.jobs.account.gid}", root], check=True)
    return root


def link(root, path, to):
    at = root / path
    at.parent.mkdir(parents=True, exist_ok=True)
    if at.is_dir() and not at.is_symlink():
        shutil.rmtree(at)
    at.symlink_to(to)


def assert_nothing_leaks(answer, victim, before, what):
    assert answer.returncode == 0 and "/proc" in answer.stdout or answer.stderr.strip(), f"{what}: fails without a message"
    assert SECRET not in answer.stdout, f"{what}: the host's files can be read"
    # The fourth word is what is mounted; the fifth, where, is a path inside.
    mounted = [line for line in answer.stdout.splitlines() if " - " in line and victim.name in line.split()[3]]
    assert not mounted, f"{what}: the host's directory is mounted: {mounted}"
    assert digest(victim) == before, f"{what}: the host's files are changed"


def test_no_link_of_the_image_brings_in_files_of_the_host(host, victim):  # noqa: F811
    """CVE-2024-0132: a toolkit mounts the image's libraries for forward compatibility by a path that is a link, so the host's root comes in."""
    bundle = host.bundle("advisory", 1, SCRIPT)
    before = digest(victim)
    places = ((COMPAT, victim), ("usr/local/cuda", victim), ("usr/local", victim), (LIBRARIES, victim), ("usr/lib64", victim), ("etc", victim),
              ("etc/ld.so.cache", victim / "secret"), ("etc/ld.so.conf.d", victim), (f"{COMPAT}/{NEWER}", victim / "secret"),
              (f"{LIBRARIES}/libcuda.so.1", victim / "secret"))
    for path, target in places:
        for to in (target, f"{'../' * 20}{str(target).lstrip('/')}", f"/proc/1/root{target}"):
            root = image(host, lambda root, path=path, to=to: link(root, path, to))
            if to == target:
                assert (root / path / "secret" if target == victim else root / path).read_text() == SECRET, "the test cannot fail: the link leads nowhere"
            assert_nothing_leaks(host.run(bundle, "--devices", "0", root=root), victim, before, f"`/{path}` -> `{to}`")
            shutil.rmtree(root)
    # The fault: the host's directory is mounted there.
    config = json.loads((bundle / "config.json").read_text())
    config["mounts"].append({"destination": f"/{COMPAT}", "type": "bind", "source": str(victim), "options": ["rbind"]})
    (bundle / "config.json").write_text(json.dumps(config))
    answer = host.run(bundle, "--devices", "0")
    with pytest.raises(AssertionError, match="can be read"):
        assert_nothing_leaks(answer, victim, before, "the fault")


def test_no_link_that_appears_during_a_start_brings_in_files_of_the_host(host, victim):  # noqa: F811
    """CVE-2025-23359: the same with a directory that passes the toolkit's check and is a link by the time of the mount."""
    bundle = host.bundle("advisory-race", 1, SCRIPT)
    before = digest(victim)

    def prepare(root):
        for path in (COMPAT, LIBRARIES, "etc"):
            (root / path).mkdir(parents=True, exist_ok=True)
        (root / COMPAT / NEWER).write_text("of the image\n")
        (root / COMPAT / "libcuda.so.1").write_text("of the image\n")
        link(root, "other", victim)

    for path in (COMPAT, LIBRARIES, "etc"):
        root = image(host, prepare)
        swap = subprocess.Popen([sys.executable, REPOSITORY / "tests/runtime/swap.py", root / path, root / "other", "1000"],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            for number in range(int(os.environ.get("JOBC_RACES", 40)) // 4):
                assert_nothing_leaks(host.run(bundle, "--devices", "0", root=root), victim, before, f"`/{path}` is exchanged, start {number}")
        finally:
            output, _ = swap.communicate("")
        assert int(output.split()[-1]) >= 1000, f"`/{path}` was exchanged {output.split()[-1]} times: the race was not tested"
