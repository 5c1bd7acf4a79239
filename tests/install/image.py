#!/usr/bin/env python3
"""The container image: built by jobc from the programs, run by podman with a job file, and without anything but jobc in it."""

import os
import tarfile
from pathlib import Path

from releases import PACKAGING, REPOSITORY, Harness, expect, ran, scratch

from podman import Podman

BINARIES = Path(os.environ.get("JOBC_BINARIES") or REPOSITORY / "target/release")


def run_by_podman(archive, directory, harness):
    """podman loads the archive into a store of its own and checks a job, a good one and a bad one."""
    work = directory / "work"
    work.mkdir()
    podman = Podman(harness, directory, harness.tool("crun"))
    good = (REPOSITORY / "examples/hello-cpu/job.yaml").read_text()
    loaded = podman("load", "--quiet", "--input", str(archive))
    yield from expect(loaded, 0, "jobc:")
    name = loaded.stdout.strip().removeprefix("Loaded image: ")
    for text, code, output in ((good, 0, ""), (good.replace("instances:", "intances:"), 1, "unknown key `intances`")):
        (work / "job.yaml").write_text(text)
        yield from expect(podman.run("--volume", f"{work}:/work:ro", name, "check", "job.yaml"), code, output)
    yield from expect(podman("rmi", "--force", name))


def main():
    harness = Harness("image", __doc__)
    harness.parse()
    if os.getuid() != 0:
        harness.skip("needs root")
    if not (BINARIES / "jobc").exists():
        harness.skip(f"no programs in `{BINARIES}`")
    with scratch() as directory:
        out = directory / "out"
        harness.check("built", expect(ran([PACKAGING / "image", BINARIES, out])))
        archive, = out.iterdir()
        with tarfile.open(archive) as opened:
            names = opened.getnames()
        harness.check("archive", [] if {"index.json", "oci-layout", "manifest.json"} <= set(names) else [f"{names}"])
        harness.note(f"{archive.name}: {archive.stat().st_size / 1e6:.1f} MB")
        harness.check("podman", run_by_podman(archive, directory, harness))
    harness.end()


main()
