"""Tests that a training resumes at its step on a cluster that needs its nodes for another job, or whose time limit is reached."""

import json
import time

import pytest

from cluster import until
from place import Place
from resumable import TRAIN, resumed_at_their_steps

pytestmark = [pytest.mark.isolated, pytest.mark.duration(90)]

JOB = """\
version: 1
name: {name}
image: host
preemption: {{exit_codes: [85], checkpoint: saved, grace: 20s}}
outputs:
  saved: {{source: {saved}, mount: {saved}}}
roles:
  main:
    resources: {{cpu: 1, memory: 64MiB}}
    env: {{STEPS: "{steps}", PACE: "0.1"}}
    run: {run}
{more}"""


def training(slurm, name, steps, more="", settings=""):
    saved = slurm.home / "shared" / f"{name}-saved"
    job = JOB.format(name=name, saved=saved, steps=steps, run=json.dumps(["python3", "-uc", TRAIN]), more=more)
    return Place(slurm, name, job, "container: none, directory: {directory}, kill_wait: 30s" + settings)


def number_of(place, handle):
    return (place.run_directory(handle) / "jobs/job").read_text().strip()


def is_resumed(slurm, place, handle, number):
    """Lets the cluster start it at once, and compares the steps of its attempts."""
    until(lambda: slurm.show(number)["JobState"] == "PENDING", 60)
    assert "saved at step" in place.jobc("logs", handle), place.jobc("logs", handle)
    time.sleep(3)
    slurm.user("scontrol", "update", f"jobid={number}", "starttime=now")
    assert place.jobc("wait", handle, code=None).returncode == 0, place.jobc("logs", handle)
    logs = place.jobc("logs", handle)
    assert resumed_at_their_steps(logs) == 2 and "attempt 2 resume '1'" in logs and '"step": ' in logs, logs


@pytest.mark.parametrize("form", ("slurm", "node"))
def test_a_training_resumes_after_another_job_took_its_place(slurm, form):
    more = "  other:\n    resources: {cpu: 1, memory: 64MiB}\n    run: sleep 1\n" if form == "node" else ""
    place = training(slurm, f"moved-{form}", 80, more, ", partition: low")
    handle = place.submit()
    until(lambda: "step 20" in place.jobc("logs", handle), 60)
    script = (place.run_directory(handle) / "target/slurm/job.sbatch").read_text()
    assert ("node job.json" in script) == (form == "node") and "#SBATCH --requeue" in script, script
    slurm.write("urgent.sh", "#!/bin/sh\nsleep 5\n", 0o755)
    urgent = slurm.submit(slurm.home, "urgent.sh", "--partition=high", "--exclusive", f"--nodes={slurm.nodes}")
    number = number_of(place, handle)
    until(lambda: slurm.show(number)["JobState"] == "PENDING", 60)
    slurm.ends(urgent)
    is_resumed(slurm, place, handle, number)


@pytest.mark.parametrize("form", ("slurm", "node"))
def test_a_training_that_is_told_to_leave_is_started_again(slurm, form):
    """As at the end of its time limit, which Slurm announces by the same signal."""
    more = "  other:\n    resources: {cpu: 1, memory: 64MiB}\n    run: sleep 1\n" if form == "node" else ""
    place = training(slurm, f"late-{form}", 80, more)
    handle = place.submit()
    until(lambda: "step 20" in place.jobc("logs", handle), 60)
    number = number_of(place, handle)
    slurm.user("scancel", *(["--batch"] if form == "node" else []), "--signal=TERM", number)
    is_resumed(slurm, place, handle, number)


SCRIPT = r"""#!/bin/bash
#SBATCH --job-name=own
#SBATCH --ntasks=1
#SBATCH --time=30
#SBATCH --signal=B:USR2@60
trap 'echo leaving; kill -USR2 "$training"; wait "$training"; scontrol requeue "$SLURM_JOB_ID"' USR2
python3 -uc '
import os, signal, time
asked = []
signal.signal(signal.SIGUSR2, lambda *_: asked.append(1))
where = "own-state"
print("from", os.path.exists(where), flush=True)
for _ in range(600):
    if asked or os.path.exists(where):
        break
    time.sleep(0.1)
open(where, "w").close()
' &
training=$!
wait "$training"
"""


def test_a_script_that_starts_itself_again_does_so_when_it_is_imported(slurm):
    place = Place(slurm, "own", "", "container: none, directory: {directory}, kill_wait: 1m")
    slurm.write("own/train.sbatch", SCRIPT)
    place.jobc("import", "train.sbatch", "-o", "job.yaml", "--force")
    handle = place.submit()
    until(lambda: "from False" in place.jobc("logs", handle), 60)
    number = number_of(place, handle)
    # As at the end of its time limit.
    slurm.user("scancel", "--batch", "--signal=TERM", number)
    until(lambda: slurm.show(number)["JobState"] == "PENDING", 60)
    time.sleep(3)
    slurm.user("scontrol", "update", f"jobid={number}", "starttime=now")
    assert place.jobc("wait", handle, code=None).returncode == 0, place.jobc("logs", handle)
    logs = place.jobc("logs", handle)
    assert "leaving" in logs and "from True" in logs, logs
