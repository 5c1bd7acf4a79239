#!/usr/bin/env python3
"""Builds what the checks read: every example, and every case of tests/providers and tests/kinds, in target/oracles.

It builds copies of them with JOBC or the debug build, and prints the directory. A job that is refused is an error, except
for cases whose expected findings are errors.
"""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
BUILT = REPOSITORY / "target/oracles"
ROOTS = ("examples", "providers", "kinds")
TIMEOUT = 120


def sources():
    """The directory of each root."""
    return {root: REPOSITORY / ("examples" if root == "examples" else f"tests/{root}") for root in ROOTS}


def jobs():
    """Every job file of the copies; plug-ins are built by the check of that name."""
    found = [path for root in ROOTS for path in (BUILT / root).rglob("job.*") if path.suffix in (".yaml", ".json")]
    return sorted(path for path in found if "plugins" not in path.parts)


def is_refused(job):
    """Whether the case expects errors."""
    findings = job.with_name("says")
    return findings.exists() and " error[" in findings.read_text()


def build(jobc, job):
    """What is wrong with the build of one job, or nothing."""
    # No configuration of the user, and no job's own variables.
    env = {"PATH": os.environ["PATH"], "HOME": str(BUILT / "home")}
    done = subprocess.run([jobc, "build", job], env=env, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    if is_refused(job):
        return None if done.returncode == 1 else f"{job}: exit code {done.returncode}, but its findings are errors"
    return f"{job}: exit code {done.returncode}: {done.stderr}" if done.returncode else None


def build_all():
    """Builds everything anew; the directory, or an error."""
    jobc = Path(os.environ.get("JOBC", REPOSITORY / "target/debug/jobc")).resolve()
    if not jobc.exists():
        sys.exit(f"oracles: {jobc} does not exist; `cargo build --package jobc` builds it, or set JOBC")
    shutil.rmtree(BUILT, ignore_errors=True)
    for root, source in sources().items():
        shutil.copytree(source, BUILT / root, ignore=shutil.ignore_patterns("out", "golden"))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        failed = [problem for problem in pool.map(lambda job: build(jobc, job), jobs()) if problem]
    if failed:
        sys.exit("oracles: " + "\n".join(failed))
    return BUILT


if __name__ == "__main__":
    print(build_all())
