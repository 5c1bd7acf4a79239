"""Attacks of published advisories: release agents of cgroup v1, a /proc or /dev of the image that is a link, hooks with the image's environment."""

import contextlib
import os
import subprocess
import time
from pathlib import Path

from bundle import capabilities
from fixture import assert_ended
from security import promise


def hierarchies():
    """The mounted cgroup v1 hierarchies of the host."""
    lines = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [Path(line[4]) for line in lines if line[line.index("-") + 1] == "cgroup"]


@contextlib.contextmanager
def agents_restored():
    """Reads the release agents of the host; afterwards puts back those that an attack has changed."""
    agents = [path / "release_agent" for path in hierarchies() if (path / "release_agent").exists()]
    before = {path: path.read_text() for path in agents}
    try:
        yield before
    finally:
        for path, text in before.items():
            if path.read_text() != text:
                path.write_text(text.strip() + "\n")


@promise(10, mutations=("cgroup-shared",))
def test_no_release_agent_of_the_host_can_be_written(fixture):
    """CVE-2022-0492: a program mounts a cgroup v1 hierarchy, and makes a program of the host its release agent, which the host's root runs.

    CAP_SYS_ADMIN is enough for it on any kernel, if the container is in the topmost cgroup of one hierarchy."""
    out, agent = fixture.directory / "agent-out", fixture.directory / "agent"
    agent.write_text(f"#!/bin/sh\nid >{out}\n")
    agent.chmod(0o755)
    if not hierarchies():
        fixture.note("this host has no hierarchy of cgroup v1")
        return
    for names in ((), ("CAP_SYS_ADMIN",)):
        with agents_restored() as before:
            result = fixture.run(["release-agent", str(agent)], lambda config, names=names: capabilities(config, *names))
            after = {path: path.read_text() for path in before}
        assert_ended(result)
        assert "own tried" in result.stdout and "own tried 0" not in result.stdout, f"the attack did not run: {result.stdout!r} {result.stderr.strip()}"
        assert "\nwrote" not in f"\n{result.stdout}" and after == before, f"with {names or 'no more capabilities'}: {result.stdout.strip()}"
        assert not out.exists(), f"with {names or 'no more capabilities'} the host runs the agent: {out.read_text().strip()}"


@promise(7, mutations=("fake-proc",))
def test_a_proc_that_is_a_link_into_a_shared_volume_is_no_fake_one(fixture):
    """CVE-2023-27561, CVE-2019-19921: /proc of the image is a link into a volume, in which another container exchanges directories.

    The procfs would then be elsewhere, and labels, masks and settings would be written to files of the volume."""
    volume = fixture.directory / "volume"
    for name in ("level", "level~"):
        fake = volume / name / "proc"
        (fake / "self/attr").mkdir(parents=True)
        (fake / "sys").mkdir()
        for path in ("self/attr/exec", "self/status", "sysrq-trigger"):
            (fake / path).write_text("")
    (volume / "host").symlink_to(fixture.sentinel)
    if fixture.account:
        subprocess.run(["chown", "-Rh", f"{fixture.account.uid}:{fixture.account.gid}", volume], check=True)

    def configure(config):
        config["mounts"].insert(0, {"destination": "/evil", "type": "bind", "source": str(volume), "options": ["rbind"]})

    def with_link(to):
        def planted(root):
            (root / "proc").rmdir()
            (root / "proc").symlink_to(to)
        return planted

    for other in ("level~", "host"):
        for to in ("/evil/level/proc", "evil/level"):
            place, name = fixture.bundle(["proc"], configure, with_link(to))
            with fixture.racing(f"`{to}` with `{other}`", volume / "level", volume / other) as racer:
                for number in racer.starts():
                    result = fixture.runtime.run(place, f"{name}-{number}")
                    if result.returncode:
                        fixture.runtime.delete(f"{name}-{number}")
                    assert_ended(result, f"/proc -> `{to}`, start {number}")
                    assert result.stdout in ("", "proc real\n"), f"/proc -> `{to}`, start {number}: {result.stdout.strip()}"
                    assert result.returncode == 0 or result.stderr.strip(), f"/proc -> `{to}`, start {number}: fails without a message"
                    fixture.assert_unchanged(f"/proc -> `{to}`, start {number}")


@promise(3, mutations=("follow-dev",))
def test_no_dev_that_is_a_link_leads_to_the_host(fixture):
    """CVE-2026-41579, CVE-2026-47766: /dev of the image, or a directory below it, is a link out of the root.

    Without a mount on /dev the default devices, their links and the terminal are made in the image's own."""
    device = {"path": "/dev/below/node", "type": "c", "major": 1, "minor": 3, "fileMode": 0o666, "uid": 0, "gid": 0}
    up = f"{'../' * 20}{str(fixture.sentinel).lstrip('/')}"

    def without(*destinations):
        def configure(config):
            config["mounts"] = [mount for mount in config["mounts"] if not any(mount["destination"].startswith(each) for each in destinations)]
            if not fixture.account:
                config["linux"]["devices"] = [device]
        return configure

    def with_link(path, to):
        def planted(root):
            at = root / path
            if at.is_dir():
                at.rmdir()
            at.symlink_to(to)
        return planted

    for gone in (("/dev",), ("/dev/pts",), ()):
        for path in ("dev", "dev/pts", "dev/shm", "dev/below", "dev/null", "dev/fd", "dev/console", "dev/ptmx"):
            for to in (fixture.sentinel, up, "/proc/1/root", fixture.sentinel / "new"):
                what = f"`/{path}` -> `{to}`, without mounts on {gone or 'nothing'}"
                result = fixture.run(["hello"], without(*gone) if gone else None, with_link(path, to))
                assert_ended(result, what)
                fixture.assert_unchanged(what)
                assert result.returncode == 0 or result.stderr.strip(), f"{what}: fails without a message"


LIBRARY = """
#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) static void loaded(void) {
    int out = open(OUT, O_WRONLY | O_CREAT | O_APPEND, 0666);
    char name[256];
    ssize_t n = readlink("/proc/self/exe", name, sizeof name - 1);
    if (n > 0) { name[n] = 10; if (write(out, name, n + 1) < 0) return; }
}
"""
STAGES = ("prestart", "createRuntime", "createContainer", "poststart", "poststop")


@promise(14, mutations=("image-environment",), rootless=False)
def test_no_hook_on_the_host_has_the_images_environment(fixture):
    """CVE-2025-23266: the image sets LD_PRELOAD to a library of its own, and a hook that begins in the container's root loads it as the host's root."""
    loaded, log = fixture.directory / "loaded", fixture.directory / "ran"
    library = fixture.directory / "library.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-D", f'OUT="{loaded}"', "-xc", "-", "-o", library], input=LIBRARY, text=True, check=True)
    subprocess.run(["/bin/sh", "-c", ":"], env={"LD_PRELOAD": str(library)}, check=True)
    assert loaded.exists(), "the test cannot fail: the library cannot be loaded"
    loaded.unlink()

    def configure(config):
        # The runtime under test runs in the bundle or elsewhere, and a createContainer hook in the root.
        places = ("./library.so", "/proc/self/cwd/library.so", "rootfs/library.so", str(library))
        config["process"]["env"].append(f"LD_PRELOAD={':'.join(places)}")
        config["hooks"] = {stage: [{"path": "/bin/sh", "args": ["sh", "-c", f"cat >/dev/null; echo {stage} >>{log}"]},
                                   {"path": "/bin/sh", "args": ["sh", "-c", ":"], "timeout": 10}] for stage in STAGES}

    result = fixture.run(["/bin/sh", "-c", "echo $LD_PRELOAD"], configure, lambda root: os.link(library, root / "library.so"))
    assert_ended(result)
    time.sleep(0.1)
    assert sorted(log.read_text().split()) == sorted(STAGES), f"these hooks ran: {log.read_text().split()} {result.stderr.strip()}"
    assert "library.so" in result.stdout, f"the program does not have the variable: {result.stdout!r}"
    assert not loaded.exists(), f"these programs of the host load the image's library: {loaded.read_text().split()}"
