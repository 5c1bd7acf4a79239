"""Tests the examples that run on any host: they are run as their READMEs say, and must write what they promise."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from command_line import check_record, copy_example

pytestmark = [pytest.mark.isolated, pytest.mark.duration(15), pytest.mark.accounts("root", "single", slow="range")]
SECONDS = 60


def run(jobs, *words, **environment):
    """Runs a job in the foreground to its end, or detached."""
    answer = jobs.call("run", *jobs.unenforced, *map(str, words), seconds=SECONDS, **environment)
    assert answer.returncode == 0, answer
    return answer


def test_four_tasks_run_in_three_steps(jobs):
    """In order, with files that the next step reads."""
    copy = copy_example(jobs, "local-dag")
    answer = run(jobs, copy)
    record = jobs.record("local-dag")
    check_record(record)
    best = copy / "work/best.json"
    assert best.exists() and json.loads(best.read_text())["degree"] == 2, "the better model was not found"
    assert not jobs.account or best.stat().st_uid == jobs.account.uid, f"the output belongs to {best.stat().st_uid}"
    times = {task["task"]: (task.get("started", ""), task.get("ended", "")) for task in record["tasks"]}
    for before, after in (("prepare-0", "train-0"), ("prepare-0", "train-1"), ("train-0", "compare-0"), ("train-1", "compare-0")):
        assert times[before][1] <= times[after][0], f"{after} started before {before} had ended: {times}"
    assert "compare-0 | the best has degree 2" in answer.stdout, f"its lines were not shown: {answer.stdout[-500:]}"
    noted = [note for note in record.get("notes", []) if any(word in note for word in ("memory", "limit", "cgroup"))]
    assert bool(jobs.account) == bool(noted) or delegated(jobs), f"the notes are {record.get('notes')}"
    assert jobs.call("run", "--set", "samples=5", str(copy), seconds=SECONDS).returncode == 125
    assert jobs.record("local-dag")["id"] == record["id"], "a rejected job left a record"


def delegated(jobs):
    """Whether this user has delegated cgroups, as on a host with systemd and cgroup v2."""
    if not jobs.account:
        return False
    # Groups of other tests vanish meanwhile, which `find` passes over.
    find = ["find", "/sys/fs/cgroup", "-type", "d", "-uid", str(jobs.account.uid), "-print", "-quit"]
    return subprocess.run(find, capture_output=True, check=False).stdout != b""


def test_workers_connect_to_parameter_servers(jobs):
    """Over the job's network, where each has its own address."""
    answer = run(jobs, copy_example(jobs, "local-ps"))
    record = jobs.record("local-ps")
    check_record(record)
    addresses = {task.get("address", "") for task in record["tasks"]}
    assert len(addresses) == 5 and not any(address.startswith("127.") or not address for address in addresses)
    assert [task["task"] for task in record["tasks"] if task["state"] == "stopped"] == ["ps-0", "ps-1"], "not the servers were stopped"
    assert "talks to ps-0:4000, ps-1:4000" in answer.stdout, f"the workers did not find the servers by name: {answer.stdout[-800:]}"
    losses = [line.rpartition(" ")[2] for line in answer.stdout.splitlines() if "step 200: loss" in line]
    assert len(losses) == 3 and not any(float(loss) > 0.1 for loss in losses), f"losses: {losses}"


def test_files_of_one_role_are_served_by_the_next(jobs):
    """At its port, with a parameter from the environment."""
    answer = run(jobs, copy_example(jobs, "local-handoff"), SAMPLES="500")
    check_record(jobs.record("local-handoff"))
    for shard in (0, 1):
        assert f"shard {shard}: 250 points, y = 3.0" in answer.stdout, f"shard {shard} was not fitted: {answer.stdout[-800:]}"


def test_a_scaled_job_runs_detached(jobs):
    answer = run(jobs, "--detach", "--scale", "worker=1", copy_example(jobs, "local-ps"))
    name = answer.stdout.strip()
    waited = jobs.call("wait", name, seconds=SECONDS)
    assert waited.returncode == 0, waited
    record = jobs.record(name)
    check_record(record)
    assert len(record["tasks"]) == 3 and any("worker" in note for note in record.get("notes", [])), record


# The limits of the job file: bytes of memory, processes, and CPUs.
LIMITS = {"ps-0": (128 << 20, 64, 0.2), "worker-0": (128 << 20, 64, 0.4)}


def test_limits_are_read_back_inside_and_outside(jobs):
    """Inside the containers, and from the kernel's files outside."""
    answer = run(jobs, "--detach", "--set", "steps=10000000", copy_example(jobs, "local-ps"))
    name = answer.stdout.strip()
    record = jobs.running(name)
    if jobs.account and not delegated(jobs):
        notes = " ".join(record.get("notes", []))
        assert "memory" in notes and "cpu" in notes.lower() and "pids" in notes, f"unenforced limits are not reported: {record.get('notes')}"
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
            assert (int(found[0]), int(found[1]), found[2]) == wanted, f"{task}, {where}: {found}, not {wanted}"
    jobs.call("kill", name)


def test_five_jobs_run_two_at_a_time(jobs):
    copy = copy_example(jobs, "local-sweep")
    answer = run(jobs, copy)
    assert len(list(copy.glob("runs/*/result.json"))) == 5
    spans = []
    for number in range(5):
        record = jobs.record(f"local-sweep-{number}")
        check_record(record)
        spans.append((record.get("started", ""), record.get("ended", "")))
    for begin, _ in spans:
        concurrent = [other for other in spans if other[0] <= begin < other[1]]
        assert len(concurrent) <= 2, f"{len(concurrent)} at a time: {spans}"
    table = answer.stderr.rpartition("JOB  ")[2]
    assert table.count("  succeeded  ") == 5 and re.search(r"local-sweep-4\.1  1e-3 +0\.9 ", table) and table.count(" *") == 1, \
        f"the table: {answer.stderr[-1000:]}"
