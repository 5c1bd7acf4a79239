#!/usr/bin/env python3
"""The container image: built by jobc from the programs, and run by podman and dockerd with a job file; it has nothing but jobc in it."""

import os
import shutil
import sys
import tarfile
from pathlib import Path

from releases import PACKAGING, REPOSITORY, Harness, expect, ran, scratch

sys.path.insert(0, str(REPOSITORY / "tests/runtime/peers"))

from docker import Docker  # noqa: E402
from podman import Podman  # noqa: E402

BINARIES = Path(os.environ.get("JOBC_BINARIES") or REPOSITORY / "target/release")


def checks(run, work):
    """A container checks a job, a good one and a bad one."""
    good = (REPOSITORY / "examples/hello-cpu/job.yaml").read_text()
    work.mkdir()
    for text, code, output in ((good, 0, ""), (good.replace("instances:", "intances:"), 1, "unknown key `intances`")):
        (work / "job.yaml").write_text(text)
        yield from expect(run("--volume", f"{work}:/work:ro"), code, output)


def run_by_podman(archive, directory, harness):
    """podman loads the archive into a store of its own."""
    podman = Podman(harness, directory, harness.tool("crun"))
    loaded = podman("load", "--quiet", "--input", str(archive))
    yield from expect(loaded, 0, "jobc:")
    name = loaded.stdout.strip().removeprefix("Loaded image: ")
    yield from checks(lambda *options: podman.run(*options, name, "check", "job.yaml"), directory / "work-podman")
    yield from expect(podman("rmi", "--force", name))


def run_by_docker(archive, directory, harness):
    """A private dockerd, with runc, loads the same archive."""
    docker = Docker(directory, harness.tool("runc"))
    docker.start()
    try:
        loaded = docker("load", "--quiet", "--input", str(archive))
        yield from expect(loaded, 0, "jobc:")
        name = loaded.stdout.strip().removeprefix("Loaded image: ")
        yield from checks(lambda *options: docker.run(*options, name, "check", "job.yaml"), directory / "work-docker")
    finally:
        docker.daemon.terminate()
        docker.daemon.wait()


def main():
    harness = Harness("image", __doc__)
    harness.parse()
    if os.getuid() != 0:
        harness.missing("root")
    if not (BINARIES / "jobc").exists():
        harness.missing("built programs", "`tests/install/run`")
    with scratch() as directory:
        out = directory / "out"
        harness.check("built", expect(ran([PACKAGING / "image", BINARIES, out])))
        archive, = out.iterdir()
        with tarfile.open(archive) as opened:
            names = opened.getnames()
        harness.check("archive", [] if {"index.json", "oci-layout", "manifest.json"} <= set(names) else [f"{names}"])
        harness.note(f"{archive.name}: {archive.stat().st_size / 1e6:.1f} MB")
        harness.check("podman", run_by_podman(archive, directory, harness))
        if shutil.which("dockerd"):
            harness.check("docker", run_by_docker(archive, directory, harness))
        else:
            harness.note("`dockerd` is not installed; `tests/runtime/peers/install` installs it")
    harness.end()


main()
