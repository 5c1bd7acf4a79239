"""Tests that a fault of one rank of a gang on a cluster is named with its task, cause and next step, as on one host."""

import contextlib
import itertools
import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from cluster import until
from gang import FAULTS, faults, fits, gang, wrote
from place import Place

pytestmark = [pytest.mark.isolated, pytest.mark.duration(60)]
TOGETHER = pytest.mark.together(4)
RESOURCES = {"cpu": 1, "memory": "64MiB"}


PORTS = itertools.count(21000)
FORMS = pytest.mark.parametrize("form", ("node", "slurm"))


def submitted(slurm, name, roles, form="node", **more):
    """A job with jobc on the nodes, or one that Slurm alone runs, whose ranks meet at a port of their own: all nodes are this host."""
    if form == "slurm":
        [role] = roles.values()
        role["resources"] = RESOURCES
        more["distributed"] = {"framework": "ddp", "roles": ["rank"], "port": next(PORTS)}
    job = {"version": 1, "name": name, "image": "host", "roles": roles, **more}
    place = Place(slurm, name, json.dumps(job), f"container: none, directory: {{directory}}, kill_wait: 30s, jobc: {slurm.program if form == 'node' else 'none'}")
    return place, place.submit()


def judged(place, handle, begin):
    """The job's end, which must come within a minute, and its tasks by name."""
    assert place.jobc("wait", handle, code=None).returncode != 0, place.jobc("logs", handle)
    assert time.monotonic() - begin < 60
    detail = place.inspect(handle)
    return detail, {task["task"]: task for task in detail["tasks"]}


@TOGETHER
@FORMS
@pytest.mark.parametrize("fault", faults())
def test_the_faulty_rank_of_a_gang_is_named(slurm, fault, form):
    begin = time.monotonic()
    roles = gang(FAULTS[fault][0], resources=RESOURCES)
    place, handle = submitted(slurm, f"fault-{form}-" + fault.lower().replace(" ", "-"), roles, form, distributed={"framework": "ddp", "roles": ["rank"]})
    detail, tasks = judged(place, handle, begin)
    assert detail["message"].startswith("task `rank-2` "), detail
    assert {name: task["state"] for name, task in tasks.items() if name != "rank-2"} == dict.fromkeys(("rank-0", "rank-1", "rank-3"), "stopped"), tasks
    fits(tasks["rank-2"]["verdict"], fault)
    wrote(f"{fault} ({form})", "rank-2", tasks["rank-2"]["verdict"])


@TOGETHER
@FORMS
def test_a_check_that_fails_names_the_node_or_the_job(slurm, form):
    begin = time.monotonic()
    for code, kind in ((1, "node"), (87, "user error")):
        role = gang(resources=RESOURCES, preflight=[{"run": f"[ $JOBC_INDEX != 2 ] || exit {code}"}])
        place, handle = submitted(slurm, f"fault-check-{form}-{code}", role, form)
        detail, tasks = judged(place, handle, begin)
        verdict = tasks["rank-2"]["verdict"]
        assert detail["message"].startswith("task `rank-2` "), detail
        assert verdict["kind"] == kind and "preflight failed: run: " in "; ".join(verdict["evidence"]), verdict
        wrote(f"failed check of the {'node' if code == 1 else 'job'} ({form})", "rank-2", verdict)
        begin = time.monotonic()


@FORMS
def test_a_lost_node_is_not_the_fault_of_the_task(slurm, form):
    """The other tasks are ended by Slurm, and the job says which node it was about."""
    roles = gang(resources=RESOURCES, env={"STEPS": 4000})
    place, handle = submitted(slurm, f"fault-lost-{form}", roles, form, distributed={"framework": "ddp", "roles": ["rank"]})
    until(lambda: place.jobc("logs", handle).count("step 5\n") == 4)
    begin = time.monotonic()
    node = place.inspect(handle)["tasks"][2]["node"]
    state = ["scontrol", "update", f"nodename={node}"]
    subprocess.run([*state, "state=down", "reason=test"], check=True, env=slurm.environment())
    try:
        detail, tasks = judged(place, handle, begin)
    finally:
        subprocess.run([*state, "state=resume"], check=False, capture_output=True, env=slurm.environment())
    kinds = {task["verdict"]["kind"] for task in tasks.values() if "verdict" in task}
    assert kinds == {"node"}, json.dumps([detail, tasks], indent=1)
    # Slurm itself names no task.
    assert detail["message"] == ("task `rank-2` ended with exit code 255" if form == "node" else "one of its nodes failed"), detail
    wrote(f"lost node ({form})", "all", next((task["verdict"] for task in tasks.values() if "verdict" in task), {"kind": "", "evidence": [detail["message"]]}))


@TOGETHER
def test_a_budget_ends_the_job(slurm):
    """Four GPUs for 3 s; they are asked to leave."""
    begin = time.monotonic()
    leaves = "trap 'echo saved; exit 85' TERM; while :; do sleep 0.1; done"
    roles = {"main": {"run": leaves, "shell": "sh", "resources": {"gpu": 4, **RESOURCES}}}
    place, handle = submitted(slurm, "fault-budget", roles, budget={"gpu_hours": round(12 / 3600, 6)}, preemption={"exit_codes": [85]})
    detail, tasks = judged(place, handle, begin)
    assert "saved" in place.jobc("logs", handle), place.jobc("logs", handle)
    assert detail["state"] == "timed-out" and "its budget is used up, 0.00" in detail["message"], detail
    assert tasks["main-0"]["state"] == "stopped" and "verdict" not in tasks["main-0"], tasks
    wrote("used up budget", "", {"kind": "timeout", "evidence": [detail["message"]]})


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
    found = []
    for path in Path("/proc").glob("[1-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if b"supervise" in (words := path.read_bytes()) and run in words:
                found.append(int(path.parent.name))
    for pid in found:
        os.kill(pid, 9)
    assert found, "no supervisor"
    detail, tasks = judged(place, handle, begin)
    kinds = {task["verdict"]["kind"] for task in tasks.values() if "verdict" in task}
    assert kinds == {"infrastructure"}, (detail, tasks)
    wrote("killed supervisor", "all", next(task["verdict"] for task in tasks.values() if "verdict" in task))
