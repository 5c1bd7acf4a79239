"""What the tests check: the output of `jobc build` for every example and every case of tests/providers and tests/kinds, or the
directories that JOBC_BUILT names, separated by colons.

Copies of the examples and cases are built in target/oracles, with JOBC or the debug build. A case is a snapshot whose first sections are
files. A job that is refused is an error, except for cases whose expected findings are errors.
"""

import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
BUILT = REPOSITORY / "target/oracles"
SOURCES = {"examples": REPOSITORY / "examples", "providers": REPOSITORY / "tests/providers", "kinds": REPOSITORY / "tests/kinds"}
# What `jobc build` and the tests keep beside a job.
KEPT = ("out", "golden")
# The sections of a case that are written to files: the job, its targets, and the findings.
FILES = ("job.yaml", "targets.yaml", "short")
TIMEOUT = 120
# Examples without a targets file that are built for more than this host.
TARGETS = {"hello-cpu": ["local", "kubernetes", "openpai"]}


def program():
    """The path of jobc, or None if it is not built."""
    path = Path(os.environ.get("JOBC", REPOSITORY / "target/debug/jobc")).resolve()
    return path if path.exists() else None


def roots():
    """The directories with built output, and whether they are those that are built here."""
    if os.environ["JOBC_BUILT"] == str(BUILT):
        return [BUILT / root for root in SOURCES], True
    return [Path(root).resolve() for root in os.environ["JOBC_BUILT"].split(":")], False


def jobs():
    """Every job file of the copies; plug-ins are built by their own test."""
    found = [path for root in SOURCES for path in (BUILT / root).rglob("job.*") if path.suffix in (".yaml", ".json")]
    return sorted(path for path in found if "plugins" not in path.parts)


def build(job):
    """What is wrong with the build of one job, or None."""
    # No configuration of the user, and no job's own variables.
    env = {"PATH": os.environ["PATH"], "HOME": str(BUILT / "home")}
    targets = [option for name in TARGETS.get(job.parent.name, []) for option in ("--target", name)]
    done = subprocess.run([program(), "build", *targets, job], env=env, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    findings = job.with_name("short")
    if findings.exists() and " error[" in findings.read_text():
        return None if done.returncode == 1 else f"{job}: exit code {done.returncode}, but its findings are errors"
    return f"{job}: exit code {done.returncode}: {done.stderr}" if done.returncode else None


def unpack(snapshot, directory):
    """Writes the files of a case, and its findings as `short`."""
    directory.mkdir(parents=True)
    for section in re.split("^==== ", snapshot.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        name, _, text = section.partition("\n")
        if name in FILES:
            (directory / name).write_text(text, encoding="utf-8")


def build_all():
    """Builds everything anew; returns what is wrong."""
    shutil.rmtree(BUILT, ignore_errors=True)
    for root, source in SOURCES.items():
        if root == "examples":
            shutil.copytree(source, BUILT / root, ignore=shutil.ignore_patterns(*KEPT))
        for snapshot in [] if root == "examples" else source.glob("*.snap"):
            unpack(snapshot, BUILT / root / snapshot.stem)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [problem for problem in pool.map(build, jobs()) if problem]
