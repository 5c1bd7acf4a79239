#!/usr/bin/env python3
"""Proves the rendezvous of frameworks with the frameworks themselves, which `tests/jobs/install` installs."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "runtime"))

from examples import copy_example, exit_problems, record_problems, run  # noqa: E402
from isolation import jobs_of, problems  # noqa: E402
from harness import REPOSITORY, Harness, tools_required  # noqa: E402

JAX = REPOSITORY / ".oracles/jax"


def main():
    harness = Harness("frameworks", __doc__)
    with jobs_of(harness) as jobs:
        for needed, case in ((JAX, jax_example), (JAX, jax_on_the_host_network), (JAX, jax_without_a_member)):
            if not harness.wants(case.__name__):
                continue
            if needed.exists():
                harness.check(case.__name__, problems(case, jobs))
                continue
            why = f"{needed.relative_to(REPOSITORY)} is missing; `tests/jobs/install` installs it"
            if tools_required():
                harness.skip(why)
            harness.note(f"{case.__name__}: {why}")
    harness.end()


def jax_example(jobs):
    """Four processes of JAX meet by the one call that the guide shows, and sum their gradients."""
    yield from sums_gradients(jobs, copy_example(jobs, "local-jax"))


def jax_on_the_host_network(jobs):
    """The same on the network of the host, where all have one address."""
    copy = copy_example(jobs, "local-jax")
    job = copy / "job.yaml"
    job.write_text(job.read_text().replace("network: job", "network: host"))
    yield from sums_gradients(jobs, copy)


def sums_gradients(jobs, example):
    answer = run(jobs, "--set", f"python={JAX}/bin/python", example)
    yield from exit_problems(answer)
    yield from record_problems(jobs.record("local-jax"), "local-jax")
    for rank in range(4):
        for line in (f"process {rank} of 4, 4 devices in all", f"process {rank}: slope 2.000, intercept -1.000"):
            if f"train-{rank} | {line}\n" not in answer.stdout:
                yield f"`{line}` is missing: {answer.stdout[-1600:]}{answer.stderr[-1600:]}"


def jax_without_a_member(jobs):
    """JAX gives up without the name of the process that did not come; the note has it."""
    copy = copy_example(jobs, "local-jax")
    program = copy / "code/train.py"
    text = program.read_text()
    late = text.replace("    jax.distributed.initialize(", '''    if os.environ["JAX_PROCESS_ID"] == "2":
        import time
        time.sleep(600)
    jax.distributed.initialize(
        initialization_timeout=15,''')
    if late == text:
        yield "the program does not call what is replaced"
    program.write_text(late)
    answer = run(jobs, "--set", f"python={JAX}/bin/python", copy)
    notes = jobs.record("local-jax").get("notes", [])
    wanted = re.compile(r"`train-2` had no connection to port \d+ of `train-0` when `train-[013]` failed")
    if answer.returncode == 0 or not any(wanted.fullmatch(note) for note in notes):
        yield f"exit {answer.returncode}, notes {notes}: {answer.stdout[-1600:]}{answer.stderr[-1600:]}"


if __name__ == "__main__":
    main()
