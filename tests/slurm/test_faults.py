"""Tests that a fault of one rank of a gang on a cluster is named with its task, cause and next step, as on one host."""

import json
import os
import time
from pathlib import Path

import pytest

from cluster import until
from gang import FAULTS, faults, fits, gang, wrote
from place import Place

pytestmark = [pytest.mark.isolated, pytest.mark.duration(60)]
TOGETHER = pytest.mark.together(4)
RESOURCES = {"cpu": 1, "memory": "64MiB"}


def submitted(slurm, name, roles, **more):
    job = {"version": 1, "name": name, "image": "host", "roles": roles, **more}
    place = Place(slurm, name, json.dumps(job), f"container: none, directory: {{directory}}, jobc: {slurm.program}")
    return place, place.submit()


def judged(place, handle, begin):
    """The job's end, which must come within a minute, and its tasks by name."""
    assert place.jobc("wait", handle, code=None).returncode != 0, place.jobc("logs", handle)
    assert time.monotonic() - begin < 60
    detail = place.inspect(handle)
    return detail, {task["task"]: task for task in detail["tasks"]}


@TOGETHER
@pytest.mark.parametrize("fault", faults())
def test_the_faulty_rank_of_a_gang_is_named(slurm, fault):
    begin = time.monotonic()
    roles = gang(FAULTS[fault][0], resources=RESOURCES)
    place, handle = submitted(slurm, "fault-" + fault.lower().replace(" ", "-"), roles, distributed={"framework": "ddp", "roles": ["rank"]})
    detail, tasks = judged(place, handle, begin)
    assert detail["message"].startswith("task `rank-2` "), detail
    assert {name: task["state"] for name, task in tasks.items() if name != "rank-2"} == dict.fromkeys(("rank-0", "rank-1", "rank-3"), "stopped"), tasks
    fits(tasks["rank-2"]["verdict"], fault)
    wrote(fault, "rank-2", tasks["rank-2"]["verdict"])


@TOGETHER
@pytest.mark.parametrize("name, role, kind, words", [
    ("time limit", {"run": "sleep 60", "timeout": "1s", "retry": {"max": 1, "on_exit_codes": [99]}}, "timeout", "time limit 1s reached"),
    # The exit code is that of srun.
    ("missing program", {"run": ["no-such-program"]}, "user error", "exit 2"),
], ids=["time limit", "missing program"])
def test_other_ends_of_a_task_are_told_apart(slurm, name, role, kind, words):
    begin = time.monotonic()
    place, handle = submitted(slurm, "fault-" + name.replace(" ", "-"), {"main": {"resources": RESOURCES, **role}})
    _, tasks = judged(place, handle, begin)
    verdict = tasks["main-0"]["verdict"]
    assert verdict["kind"] == kind and words in "; ".join(verdict["evidence"]), verdict
    wrote(name, "main-0", verdict)


@TOGETHER
def test_a_killed_supervisor_is_not_the_fault_of_the_tasks(slurm):
    begin = time.monotonic()
    place, handle = submitted(slurm, "fault-supervisor", gang(resources=RESOURCES, env={"STEPS": 4000}))
    until(lambda: place.jobc("logs", handle).count("step 5\n") == 4)
    run = str(place.run_directory(handle)).encode()
    names = [path for path in Path("/proc").iterdir() if path.name.isdigit()]
    found = [int(path.name) for path in names if b"supervise" in (words := (path / "cmdline").read_bytes()) and run in words]
    for pid in found:
        os.kill(pid, 9)
    assert found, "no supervisor"
    detail, tasks = judged(place, handle, begin)
    kinds = {task["verdict"]["kind"] for task in tasks.values() if "verdict" in task}
    assert kinds == {"infrastructure"}, (detail, tasks)
    wrote("killed supervisor", "all", next(task["verdict"] for task in tasks.values() if "verdict" in task))
