#!/usr/bin/env python3
"""The container image: built by jobc from the programs, run by podman with a job file, and without anything but jobc in it."""

import os
import tarfile
from pathlib import Path

from releases import PACKAGING, REPOSITORY, Harness, expect, ran, scratch

BINARIES = Path(os.environ.get("JOBC_BINARIES") or REPOSITORY / "target/release")


def podman(archive, directory):
    """podman loads the archive into a store of its own and checks a job, a good one and a bad one."""
    work = directory / "work"
    work.mkdir()
    good = (REPOSITORY / "examples/hello-cpu/job.yaml").read_text()
    command = ["podman", "--root", directory / "store", "--runroot", directory / "run", "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs"]
    # podman's default limits are above those of a host that is itself a container.
    (directory / "containers.conf").write_text('[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]\n')
    os.environ["CONTAINERS_CONF"] = str(directory / "containers.conf")
    loaded = ran([*command, "load", "--quiet", "--input", archive])
    yield from expect(loaded, 0, "jobc:")
    name = loaded.stdout.strip().removeprefix("Loaded image: ")
    for text, code, output in ((good, 0, ""), (good.replace("instances:", "intances:"), 1, "unknown key `intances`")):
        (work / "job.yaml").write_text(text)
        started = ran([*command, "run", "--rm", "--network", "none", "--cgroups", "disabled", "--volume", f"{work}:/work:ro", name,
                       "check", "job.yaml"])
        yield from expect(started, code, output)
    yield from expect(ran([*command, "rmi", "--force", name]))
    ran([*command, "system", "reset", "--force"])


def main():
    harness = Harness("image", __doc__)
    harness.parse()
    if os.getuid() != 0:
        harness.skip("needs root")
    harness.tool("podman")
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
        harness.check("podman", podman(archive, directory))
    harness.end()


main()
