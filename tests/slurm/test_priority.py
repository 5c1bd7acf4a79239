"""Tests that `priority` and `after` reach Slurm: a lower priority, a quality of service, a start time."""

import datetime
import re

import pytest

from cluster import until
from place import SETTINGS, Place, one

pytestmark = [pytest.mark.isolated, pytest.mark.duration(60)]


def submitted(slurm, name, more, run="echo ran", priorities=""):
    """The job's place, its handle, what Slurm knows of it, and its script."""
    named = priorities.replace("{", "{{").replace("}", "}}")
    place = Place(slurm, name, one(name, run, more=more), SETTINGS + (f"}}}}\n    priorities: {{{{{named}" if named else ""))
    handle = place.submit()
    number = (place.run_directory(handle) / "jobs/job").read_text().strip()
    return place, handle, slurm.show(number), (place.run_directory(handle) / "target/slurm/job.sbatch").read_text()


def test_a_job_with_a_lower_priority_comes_after_one_without(slurm):
    _, _, usual, script = submitted(slurm, "usual", "")
    assert usual["Nice"] == "0" and "--nice" not in script, usual
    place, handle, low, script = submitted(slurm, "low", "priority: -50")
    assert low["Nice"] == "5000" and "#SBATCH --nice=5000\n" in script, low
    assert place.jobc("wait", handle, code=None).returncode == 0, place.jobc("logs", handle)


def test_a_name_is_a_quality_of_service_of_the_target(slurm):
    """Without an accounting database Slurm keeps none; the option must be one that sbatch takes."""
    place, handle, found, script = submitted(slurm, "urgent", "priority: urgent", priorities="urgent: {value: 50, qos: high}")
    assert "#SBATCH --qos=high\n" in script and "--nice" not in script and found["QOS"] in ("high", "N/A", "(null)"), found
    assert place.jobc("wait", handle, code=None).returncode == 0, place.jobc("logs", handle)
    _, _, _, script = submitted(slurm, "numbered", "priority: 50", priorities="urgent: {value: 50, qos: high}")
    assert "#SBATCH --qos=high\n" in script, script


@pytest.mark.parametrize("after", ("2h", "later"))
def test_a_job_begins_at_its_time(slurm, after):
    """`why` says what it waits for, and that there is a time."""
    begin = datetime.datetime.now() + datetime.timedelta(hours=2)
    text = after if after == "2h" else f'"{begin:%Y-%m-%dT%H:%M}"'
    place, handle, found, script = submitted(slurm, f"begins-{after}", f"after: {text}")
    assert "#SBATCH --begin=" in script, script
    at = datetime.datetime.fromisoformat(found["StartTime"])
    assert abs((at - begin).total_seconds()) < 120 and (found["JobState"], found["Reason"]) == ("PENDING", "BeginTime"), found
    why = place.jobc("why", handle)
    assert re.search(r"start|begin", why) and place.inspect(handle)["state"] == "pending", why
    number = (place.run_directory(handle) / "jobs/job").read_text().strip()
    slurm.user("scontrol", "update", f"jobid={number}", "starttime=now")
    until(lambda: place.inspect(handle)["state"] == "succeeded", 30)
