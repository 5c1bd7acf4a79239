"""Measures jobs on Slurm: `jobc submit` beside `sbatch`, and a warm start of a container in a step beside its floor (`floor.c`).

JOBC names the program, which should be an optimized one on a quiet host; JOBC_ROUNDS is how often each is measured. It prints medians, and
fails only if something is beyond all reason: the goals are a submission within 150 ms of `sbatch`, and a start of at most 1.6 floors,
whatever the size of the image.
"""

import os
import statistics
import subprocess
import time
from pathlib import Path

import needs
import pytest

from place import LOOP, Place, one

pytestmark = [pytest.mark.isolated, pytest.mark.duration(60), pytest.mark.slow]
ROUNDS = int(os.environ.get("JOBC_ROUNDS", 20))
JOB = """\
version: 1
name: start
image: example.org/tools:1
roles:
  main:
    resources: {cpu: 1, memory: 64MiB}
    shell: sh
    run: "true"
"""
FILES, GIBIBYTES = 20_000, 10


def test_submit_beside_sbatch(slurm, note):
    place = Place(slurm, "speed", one("speed", "true"))
    slurm.write("true.sh", "#!/bin/sh\ntrue\n", 0o755)
    place.submit()
    times = {"sbatch": [], "submit": []}
    for _ in range(ROUNDS):
        for name, action in (("sbatch", lambda: slurm.submit(slurm.home, "true.sh", "--hold")), ("submit", lambda: place.submit("--new"))):
            since = time.monotonic()
            action()
            times[name].append((time.monotonic() - since) * 1000)
    sbatch, ours = (statistics.median(times[name]) for name in ("sbatch", "submit"))
    note(f"sbatch {sbatch:.0f} ms, jobc submit {ours:.0f} ms, {ours - sbatch:.0f} ms more (goal: 150)")
    slurm.user("scancel", "--user", slurm.account.name)
    assert ours - sbatch <= 5000, f"sbatch {sbatch:.0f} ms, jobc submit {ours:.0f} ms"


def large(root):
    """Makes an image as large as those of frameworks: many files, and one that is mostly a hole."""
    for number in range(FILES):
        directory = root / f"lib/{number // 200}"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"{number}.py").write_text("import os\n")
    with (root / "lib/weights").open("wb") as file:
        file.truncate(GIBIBYTES << 30)


def test_a_warm_start_beside_its_floor(slurm, note):
    """A warm start in a step, of an image of a program and of one of 10 GiB, beside the floor."""
    roots = {}
    for name in ("small", "large"):
        root = roots[name] = slurm.home / f"images-{name}/example.org_tools_1"
        slurm.user("mkdir", "-p", root / "bin", root / "tmp", root / "etc", root / "lib")
        slurm.user("cp", "/bin/busybox", root / "bin/busybox")
        for program in ("sh", "true"):
            slurm.user("ln", "-s", "busybox", root / "bin" / program)
    large(roots["large"])
    subprocess.run(["chown", "-R", f"{slurm.account.uid}:{slurm.account.gid}", roots["large"]], check=True)
    floor = slurm.place / "floor"
    subprocess.run([needs.tool("gcc"), "-O2", "-static", "-o", floor, Path(__file__).with_name("floor.c")], check=True)
    bundle = slurm.build("start", JOB, "container: jobc", backends="[oci, slurm]").parent / "oci/main-0"
    jobc = f"{slurm.program} run --cgroup inherited --image-root {slurm.home}/store --id start"
    commands = [f"{floor} {roots['small']} -- /bin/sh -eu -c true", *(f"{jobc} --root {root} {bundle}" for root in roots.values())]
    done = slurm.user("srun", "--mem=64M", "bash", "-c", LOOP, "bash", ROUNDS + 2, *commands, seconds=300)
    times = [[int(word) / 1000 for word in line.split()] for line in done.stdout.splitlines()]
    assert done.returncode == 0 and len(times) == ROUNDS + 2, f"exit {done.returncode}: {done.stdout}{done.stderr}"
    bare, small, of_large = (statistics.median(each) for each in zip(*times[2:]))
    note(f"warm start in a step {small:.1f} ms, floor {bare:.1f} ms, {small / bare:.2f} times (goal: 1.6)")
    note(f"with an image of {GIBIBYTES} GiB and {FILES} files {of_large:.1f} ms, {of_large / small:.2f} times the small one")
    assert of_large <= 1000 and of_large <= 3 * small + 20, f"a warm start of a large image takes {of_large:.0f} ms, of a small one {small:.0f} ms"
