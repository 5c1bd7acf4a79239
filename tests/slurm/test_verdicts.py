"""Tests the verdicts on tasks of Slurm jobs: by jobc on the nodes, and by Slurm's own words without it."""

import pytest

from place import Place, one

pytestmark = [pytest.mark.isolated, pytest.mark.duration(60)]


def test_a_node_judges_each_attempt_and_retries_by_it(slurm):
    """The last lines decide there as with `jobc run`; `ps`, `inspect` and `events` read what the node wrote."""
    script = f"""\
if [ ! -e {slurm.home}/judged-once ]; then touch {slurm.home}/judged-once; echo 'MemoryError: too much' >&2; exit 1; fi
echo "ModuleNotFoundError: No module named 'not_there'" >&2
exit 1"""
    job = one("judged", script) + "    retry: {max: 3, on: [out of memory], backoff: 0s}\n"
    place = Place(slurm, "judged", job, f"container: none, directory: {{directory}}, jobc: {slurm.program}")
    handle = place.submit()
    assert place.jobc("wait", handle, code=None).returncode == 1, place.jobc("logs", handle)
    [task] = place.inspect(handle)["tasks"]
    last = task["verdict"]
    assert (task["attempt"], last["kind"]) == (2, "user error") and "image.python.packages" in last["next"], task
    assert "user error" in place.jobc("ps", handle), place.jobc("ps", handle)
    assert "exit 1, verdict: out of memory" in place.jobc("events", handle), place.jobc("events", handle)


def test_slurm_alone_is_judged_by_its_exit_code(slurm):
    place = Place(slurm, "plain", one("plain", "exit 7"), "container: none, directory: {directory}")
    handle = place.submit()
    assert place.jobc("wait", handle, code=None).returncode != 0, place.jobc("logs", handle)
    [task] = place.inspect(handle)["tasks"]
    assert task["verdict"]["kind"] == "user error" and "exit 7" in task["verdict"]["evidence"], task


def test_a_failed_check_names_the_node_and_uses_up_no_retry(slurm):
    """The checks are a first step of each task: the node at fault is named, looked at again, and the command keeps its retries."""
    check = f"echo x >>{slurm.home}/count; [ $(wc -l <{slurm.home}/count) != 1 ]"
    role = f"    preflight: [{{disk: 1KiB}}, {{run: '{check}'}}]\n    retry: {{max: 1, scope: task, backoff: 0s}}\n"
    place = Place(slurm, "checked", one("checked", "echo the command; exit 5", role=role), f"container: none, directory: {{directory}}, jobc: {slurm.program}")
    handle = place.submit()
    assert place.jobc("wait", handle, code=None).returncode == 1, place.jobc("logs", handle)
    [task] = place.inspect(handle)["tasks"]
    events = place.jobc("events", handle)
    assert (task["attempt"], task["exit_code"]) == (3, 5) and "exit 86, verdict: node" in events, (task, events)
    done = place.jobc("logs", handle, code=None)
    logs = done.stdout + done.stderr
    assert f"(main-0 on {task['node']}: the node is at fault)" in logs and "free in ." in logs, logs
    assert logs.count("the command") == 2, logs


def test_a_check_that_passes_and_one_that_fails_without_jobc_on_the_nodes(slurm):
    for name, check, code in (("fit", "true", 0), ("unfit", "exit 87", 87)):
        role = f"    preflight: [{{run: '{check}'}}]\n"
        place = Place(slurm, name, one(name, "echo the command", role=role), "container: none, directory: {directory}, jobc: none")
        handle = place.submit()
        place.jobc("wait", handle, code=None)
        [task] = place.inspect(handle)["tasks"]
        logs = place.jobc("logs", handle)
        assert task["exit_code"] == code and ("the command" in logs) == (code == 0), (task, logs)
        assert ("preflight failed: run: exit 87: exit code 87 (main-0 on " in logs) == (code != 0), logs
        assert task["verdict"]["kind"] == ("success" if code == 0 else "user error"), task
        assert ("no node passes it" in task["verdict"].get("next", "")) == (code != 0), task
