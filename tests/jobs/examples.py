#!/usr/bin/env python3
"""Tests the examples that run on any host: they are run as their READMEs say, and must write what they promise.

`--user range` and `--user single` run as an unprivileged user. Without delegated cgroups, that user's limits are not enforced, so
`--allow-unenforced` is given, and the record must say so.
"""

import json
import os
import re
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "runtime"))

from isolation import jobs_of, problems  # noqa: E402
from harness import REPOSITORY, Harness  # noqa: E402

SECONDS = 60


def main():
    harness = Harness("examples", __doc__)
    with jobs_of(harness) as jobs:
        for case in (dag, parameter_servers, handoff, scaled, limits, sweep):
            if harness.wants(case.__name__):
                harness.check(case.__name__, problems(case, jobs))
    harness.end()


def copy_example(jobs, example):
    """A copy of an example that its user may write to, without its golden output."""
    copy = jobs.directory / example
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(REPOSITORY / "examples" / example, copy, ignore=shutil.ignore_patterns("out"))
    if jobs.account:
        for path in [copy, *copy.rglob("*")]:
            os.chown(path, jobs.account.uid, jobs.account.gid)
    return copy


def run(jobs, *words):
    """Runs a job in the foreground to its end."""
    unenforced = ["--allow-unenforced"] if jobs.account else []
    return jobs.call("run", *unenforced, *map(str, words), seconds=SECONDS)


def exit_problems(answer, code=0):
    """The difference from the expected exit code."""
    if answer.returncode != code:
        yield f"exit {answer.returncode}, not {code}: {answer.stdout[-800:]}{answer.stderr[-1600:]}"


def record_problems(record, name):
    """The problems of a job's record, for any user."""
    if record is None:
        return [f"{name}: there is no record"]
    problems = [f"{name}: {task['task']} is {task['state']}" for task in record["tasks"] if task["state"] not in ("succeeded", "stopped")]
    if record["end"]["exit_code"] != 0 or record["state"] != "succeeded":
        problems.append(f"{name}: {record['end']}")
    return problems


def dag(jobs):
    """Four tasks in three steps, in order, with files that the next step reads."""
    copy = copy_example(jobs, "local-dag")
    answer = run(jobs, copy)
    yield from exit_problems(answer)
    record = jobs.record("local-dag")
    yield from record_problems(record, "local-dag")
    best = copy / "work/best.json"
    if not best.exists() or json.loads(best.read_text())["degree"] != 2:
        yield "the better model was not found"
    elif jobs.account and best.stat().st_uid != jobs.account.uid:
        yield f"the output belongs to {best.stat().st_uid}"
    times = {task["task"]: (task.get("started", ""), task.get("ended", "")) for task in record["tasks"]}
    for before, after in (("prepare-0", "train-0"), ("prepare-0", "train-1"), ("train-0", "compare-0"), ("train-1", "compare-0")):
        if times[before][1] > times[after][0]:
            yield f"{after} started before {before} had ended: {times}"
    if "compare-0 | the best has degree 2" not in answer.stdout:
        yield f"its lines were not shown: {answer.stdout[-500:]}"
    noted = [note for note in record.get("notes", []) if "memory" in note or "limit" in note or "cgroup" in note or "cgroup" in note]
    enforced = not noted
    if bool(jobs.account) == enforced and not delegated(jobs):
        yield f"limits of {jobs.account.name if jobs.account else 'root'}: the notes are {record.get('notes')}"
    rejected = jobs.call("run", "--set", "samples=5", str(copy), seconds=SECONDS)
    yield from exit_problems(rejected, 125)
    if jobs.record("local-dag")["id"] != record["id"]:
        yield "a rejected job left a record"


def delegated(jobs):
    """Whether this user has delegated cgroups, as on a host with systemd and cgroup v2."""
    return jobs.account and any(os.stat(path).st_uid == jobs.account.uid for path, _, _ in os.walk("/sys/fs/cgroup"))


def parameter_servers(jobs):
    """Parameter servers and workers that connect over the job's network, where each has its own address."""
    answer = run(jobs, copy_example(jobs, "local-ps"))
    yield from exit_problems(answer)
    record = jobs.record("local-ps")
    yield from record_problems(record, "local-ps")
    if record:
        addresses = {task.get("address", "") for task in record["tasks"]}
        if len(addresses) != 5 or any(address.startswith("127.") or not address for address in addresses):
            yield f"addresses: {addresses}"
        stopped = [task["task"] for task in record["tasks"] if task["state"] == "stopped"]
        if stopped != ["ps-0", "ps-1"]:
            yield f"{stopped} were stopped, not the servers"
    if "talks to ps-0:4000, ps-1:4000" not in answer.stdout:
        yield f"the workers did not find the servers by name: {answer.stdout[-800:]}"
    losses = [line.rpartition(" ")[2] for line in answer.stdout.splitlines() if "step 200: loss" in line]
    if len(losses) != 3 or any(float(loss) > 0.1 for loss in losses):
        yield f"losses: {losses}"


def handoff(jobs):
    """Files of one role, served by the next at its port, with a parameter from the environment."""
    unenforced = ["--allow-unenforced"] if jobs.account else []
    answer = jobs.call("run", *unenforced, str(copy_example(jobs, "local-handoff")), seconds=SECONDS, SAMPLES="500")
    yield from exit_problems(answer)
    yield from record_problems(jobs.record("local-handoff"), "local-handoff")
    for shard in (0, 1):
        if f"shard {shard}: 250 points, y = 3.0" not in answer.stdout:
            yield f"shard {shard} was not fitted: {answer.stdout[-800:]}"


def scaled(jobs):
    """The same with one worker, detached."""
    answer = run(jobs, "--detach", "--scale", "worker=1", copy_example(jobs, "local-ps"))
    yield from exit_problems(answer)
    name = answer.stdout.strip()
    waited = jobs.call("wait", name, seconds=SECONDS)
    yield from exit_problems(waited)
    record = jobs.record(name)
    yield from record_problems(record, name)
    if record and (len(record["tasks"]) != 3 or not any("worker" in note for note in record.get("notes", []))):
        yield f"{len(record['tasks'])} tasks, notes {record.get('notes')}"


# The limits of the job file: bytes of memory, processes, and CPUs.
LIMITS = {"ps-0": (128 << 20, 64, 0.2), "worker-0": (128 << 20, 64, 0.4)}


def limits(jobs):
    """The limits of the job file, read back inside the containers and from the kernel's files outside."""
    answer = run(jobs, "--detach", "--set", "steps=10000000", copy_example(jobs, "local-ps"))
    yield from exit_problems(answer)
    name = answer.stdout.strip()
    record = jobs.running(name)
    if jobs.account and not delegated(jobs):
        notes = " ".join(record.get("notes", []))
        if "memory" not in notes or "cpu" not in notes.lower() or "pids" not in notes:
            yield f"unenforced limits are not reported: {record.get('notes')}"
        jobs.call("kill", name)
        return
    for task, wanted in LIMITS.items():
        pid = next(known["process"]["pid"] for known in record["tasks"] if known["task"] == task)
        groups = dict(line.split(":", 2)[1:] for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines())

        def inside(controller, file, task=task):
            directory = f"/sys/fs/cgroup/{controller}".rstrip("/")
            return jobs.call("exec", name, task, "--", "cat", f"{directory}/{file}").stdout.strip()

        def outside(controller, file, groups=groups):
            mounts = {words: path for words, path in groups.items() if controller in words.split(",")}
            (words, path), = mounts.items()
            return Path(f"/sys/fs/cgroup/{words}{path}/{file}").read_text().strip()

        for where, read in (("inside", inside), ("outside", outside)):
            if "" in groups and len(groups) == 1:
                quota, period = read("", "cpu.max").split()
                found = (read("", "memory.max"), read("", "pids.max"), int(quota) / int(period))
            else:
                quota, period = read("cpu", "cpu.cfs_quota_us"), read("cpu", "cpu.cfs_period_us")
                found = (read("memory", "memory.limit_in_bytes"), read("pids", "pids.max"), int(quota) / int(period))
            if (int(found[0]), int(found[1]), found[2]) != wanted:
                yield f"{task}, {where}: {found}, not {wanted}"
    jobs.call("kill", name)


def sweep(jobs):
    """Five jobs, two at a time."""
    copy = copy_example(jobs, "local-sweep")
    answer = run(jobs, copy)
    yield from exit_problems(answer)
    results = sorted(copy.glob("runs/*/result.json"))
    if len(results) != 5:
        yield f"{len(results)} results"
    spans = []
    for number in range(5):
        record = jobs.record(f"local-sweep-{number}")
        yield from record_problems(record, f"local-sweep-{number}")
        spans.append((record.get("started", ""), record.get("ended", "")))
    for begin, _ in spans:
        concurrent = [other for other in spans if other[0] <= begin < other[1]]
        if len(concurrent) > 2:
            yield f"{len(concurrent)} at a time: {spans}"
    table = answer.stderr.rpartition("JOB  ")[2]
    if table.count("  succeeded  ") != 5 or not re.search(r"local-sweep-4\.1  1e-3 +0\.9 ", table) or table.count(" *") != 1:
        yield f"the table: {answer.stderr[-1000:]}"


if __name__ == "__main__":
    main()
