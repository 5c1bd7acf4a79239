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
