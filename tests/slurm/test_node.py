"""Tests jobs whose tasks jobc runs on the nodes: the same life cycle as with `jobc run`, its records, and the signals of Slurm."""

import contextlib
import json
import os
import re
import signal
import time
from pathlib import Path

import pytest

from cluster import until
from place import Place, lines_of, one

pytestmark = [pytest.mark.isolated, pytest.mark.duration(60), pytest.mark.together(4)]

# Writes down each SIGTERM, and takes a while to end.
SAVES = """\
import os, signal, sys, time
def save(*_):
    open(sys.argv[1], "a").write("saved\\n")
    time.sleep(1)
    os._exit(0)
signal.signal(signal.SIGTERM, save)
print("up", flush=True)
time.sleep(300)
"""


# Counts from what it has saved, and saves the count at SIGTERM, which takes a while.
TRAINS = """\
import os, signal, sys, time
path = sys.argv[1]
step = int(open(path).read()) if os.path.exists(path) else 0
print("from", step, flush=True)
def save(*_):
    time.sleep(3)
    open(path, "w").write(str(step))
    print("saved", flush=True)
    # Slurm alone takes an end for that of the job.
    time.sleep(60 if sys.argv[2] == "slurm" else 0)
    os._exit(0)
signal.signal(signal.SIGTERM, save)
while step < 1 or not os.path.exists(path):
    print("step", step, flush=True)
    step += 1
    time.sleep(1)
"""
node = Place


def record_of(place, handle, start=1):
    """The record of a start of the Slurm job, which has the form of those of `jobc run`."""
    return json.loads((place.run_directory(handle) / f"records/job.{start}/job.json").read_text())


def saves(slurm, name, instances, more="", role=""):
    """A job whose program notes each signal, behind a shell that waits for it."""
    program = slurm.write(f"{name}-program/saves.py", SAVES)
    run = f"python3 {program} {slurm.home}/{name}-$JOBC_INDEX\necho after"
    return node(slurm, name, one(name, run, instances, more, role or "    retry: {max: 1, on_exit_codes: [99]}\n"))


def notes(slurm, name):
    return [path.read_text() for path in sorted(slurm.home.glob(f"{name}-[0-9]*"))]


def is_up(place, handle, count):
    return place.jobc("logs", handle).count("up") == count


def test_roles_wait_until_others_are_ready(slurm):
    """The batch script is the request and one line; each verb reads the records."""
    job = """\
version: 1
name: serve
image: host
roles:
  server:
    resources: {cpu: 1, memory: 64MiB, ports: {http: auto}}
    ready: {port: http, every: 1s}
    run: |
      sleep 2
      exec python3 -m http.server "$JOBC_PORT_HTTP"
  client:
    needs: {server: ready}
    resources: {cpu: 1, memory: 64MiB}
    run: |
      python3 -c "import urllib.request; print(urllib.request.urlopen('http://${{ hosts.server[0] }}:${{ ports.server.http }}/').status)"
    completion: {min_succeeded: all}
"""
    place = node(slurm, "serve", job)
    handle = place.submit()
    code = place.jobc("wait", handle, code=None).returncode
    logs = place.jobc("logs", handle)
    assert code == 0, logs + (place.run_directory(handle) / "out/job.log").read_text()
    assert "200" in lines_of(place.jobc("logs", handle, "client"), "client-0"), logs
    script = (place.run_directory(handle) / "target/slurm/job.sbatch").read_text()
    own = [line for line in script.splitlines() if not line.startswith("#")]
    program = next(path for path in (place.directory / "bin").iterdir() if path.is_symlink())
    assert [line for line in own if line] == ["export SLURM_EXPORT_ENV=ALL PATH", f'exec {program} node job.json "$@"'], script
    assert program.resolve().name.startswith(program.name + "-") and len(list(program.parent.iterdir())) == 2, list(program.parent.iterdir())
    tasks = {task["task"]: task for task in place.inspect(handle)["tasks"]}
    assert tasks["client-0"]["state"] == "succeeded" and tasks["server-0"]["node"] != tasks["client-0"]["node"], tasks
    record = record_of(place, handle)
    assert record["state"] == "succeeded" and record["tasks"][0]["ready"], record
    events = place.jobc("events", handle)
    assert "client-0" in events, events
    shown = [json.loads(line) for line in place.jobc("events", "--format", "json", handle).splitlines()]
    kinds = {event["event"] for event in shown if event.get("task") == "client-0"}
    assert {"started", "ended"} <= kinds, shown


def test_a_task_is_tried_again_by_its_exit_code(slurm):
    """The other goes on; each attempt has its own output."""
    run = 'echo "try $JOBC_INDEX"\nif [ "$JOBC_INDEX" = 1 ] && [ ! -e "$TRIED" ]; then touch "$TRIED"; exit 9; fi'
    job = one("again", f"TRIED={slurm.home}/tried\n{run}", 2) + "    retry: {max: 2, on_exit_codes: [9], backoff: 0s}\n"
    place = node(slurm, "again", job)
    handle = place.submit()
    assert place.jobc("wait", handle, code=None).returncode == 0, place.jobc("logs", handle)
    attempts = {task["task"]: task["attempt"] for task in place.inspect(handle)["tasks"]}
    assert attempts == {"main-0": 1, "main-1": 2}, attempts
    assert place.jobc("logs", "--attempt", "2", handle).count("try 1") == 1, place.jobc("logs", handle)
    assert place.jobc("logs", handle).count("try") == 3, place.jobc("logs", handle)
    earlier = record_of(place, handle)["tasks"][1]["earlier"]
    assert [attempt["exit_code"] for attempt in earlier] == [9], earlier


def test_an_exit_code_that_is_not_named_is_final(slurm):
    """The job ends with the code of the task, and the others end with it."""
    job = one("final", 'if [ "$JOBC_INDEX" = 1 ]; then exit 8; fi\nsleep 300', 2) + "    retry: {max: 2, on_exit_codes: [9]}\n"
    place = node(slurm, "final", job)
    handle = place.submit()
    assert place.jobc("wait", handle, code=None).returncode == 1, place.jobc("logs", handle)
    assert slurm.show((place.run_directory(handle) / "jobs/job").read_text().strip())["ExitCode"] == "8:0"
    states = {task["task"]: task["state"] for task in place.inspect(handle)["tasks"]}
    assert states == {"main-0": "stopped", "main-1": "failed"}, states
    assert "main-1" in (place.run_directory(handle) / "out/job.log").read_text()


@pytest.mark.parametrize("how", ("scancel", "batch", "stop"))
def test_each_program_gets_sigterm_once(slurm, how):
    """Slurm tells the script, and each task as well; the shell lives until its program has saved."""
    place = saves(slurm, f"once-{how}", 3)
    handle = place.submit()
    until(lambda: is_up(place, handle, 3), 40)
    if how == "stop":
        place.jobc("stop", handle)
    else:
        number = (place.run_directory(handle) / "jobs/job").read_text().strip()
        slurm.user("scancel", *(["--batch", "--signal=TERM"] if how == "batch" else []), number)
    until(lambda: place.inspect(handle)["state"] == "stopped", 40)
    assert notes(slurm, f"once-{how}") == ["saved\n"] * 3, place.jobc("logs", handle)


@pytest.mark.slow
def test_no_signal_is_lost_at_load(slurm):
    """Of many jobs at once, each program gets SIGTERM once: by the script, or by its step as well."""
    count = int(os.environ.get("JOBC_JOBS", "60"))
    program = slurm.write("many-program/saves.py", SAVES)
    run = f"python3 {program} {slurm.home}/many-$SLURM_JOB_ID\necho after"
    directory = slurm.build("many", one("many", run) + "    retry: {max: 1, on_exit_codes: [99]}\n")
    jobs = [slurm.user("sbatch", "--parsable", "job.sbatch", cwd=directory).stdout.strip() for _ in range(count)]
    until(lambda: all("up" in slurm.output(job) for job in jobs), 240)
    half = count // 2
    slurm.user("scancel", "--batch", "--signal=TERM", *jobs[:half])
    slurm.user("scancel", "--full", "--signal=TERM", *jobs[half:])
    for job in jobs:
        slurm.ends(job, 120)
    found = [path.read_text() if (path := slurm.home / f"many-{job}").exists() else "" for job in jobs]
    assert found == ["saved\n"] * count, {text: found.count(text) for text in set(found)}


def test_a_job_that_starts_again_goes_on_with_its_records(slurm):
    """A preemption requeues it: the attempts are counted on, and none of them used up a retry."""
    run = 'echo "start ${SLURM_RESTART_COUNT-0}"\n[ "${SLURM_RESTART_COUNT-0}" -ge 1 ] || sleep 300'
    place = node(slurm, "resumed", one("resumed", run) + "    retry: {max: 1, scope: job, on_exit_codes: [99]}\n")
    handle = place.submit()
    until(lambda: "start 0" in place.jobc("logs", handle), 40)
    number = (place.run_directory(handle) / "jobs/job").read_text().strip()
    slurm.user("scontrol", "requeue", number)
    until(lambda: slurm.show(number)["JobState"] == "PENDING", 40)
    time.sleep(3)
    slurm.user("scontrol", "update", f"jobid={number}", "starttime=now")
    assert place.jobc("wait", handle, code=None).returncode == 0, place.jobc("logs", handle)
    assert "start 1" in place.jobc("logs", "--attempt", "2", handle), place.jobc("logs", handle)
    assert [task["attempt"] for task in place.inspect(handle)["tasks"]] == [2]
    assert record_of(place, handle, 2)["state"] == "succeeded"


@pytest.mark.slow
@pytest.mark.parametrize("form", ("node", "slurm"))
def test_a_program_saves_when_another_job_takes_its_place(slurm, form):
    """It has the grace of its partition, starts again with what it saved, and no retry is used up."""
    state = slurm.home / f"preempted-{form}"
    program = slurm.write(f"preempted-{form}-program/train.py", TRAINS)
    run = f"python3 {program} {state}-$JOBC_INDEX {form}" + ("\necho after" if form == "node" else "")
    place = Place(slurm, f"preempted-{form}", one(f"preempted-{form}", run, 2, role="    retry: {max: 1, scope: job}\n    grace_period: 20s\n"),
                  "container: none, directory: {directory}, partition: low, kill_wait: 30s")
    handle = place.submit()
    until(lambda: place.jobc("logs", handle).count("step 0") == 2, 40)
    assert ("node job.json" in (place.run_directory(handle) / "target/slurm/job.sbatch").read_text()) == (form == "node")
    slurm.write("urgent.sh", "#!/bin/sh\nsleep 5\n", 0o755)
    urgent = slurm.submit(slurm.home, "urgent.sh", "--partition=high", "--exclusive", f"--nodes={slurm.nodes}")
    number = (place.run_directory(handle) / "jobs/job").read_text().strip()
    with contextlib.suppress(TimeoutError):
        until(lambda: slurm.show(number)["JobState"] == "PENDING", 40)
    assert slurm.show(number)["JobState"] == "PENDING", (slurm.show(number), place.jobc("logs", handle))
    saved = {path.name: path.read_text() for path in slurm.home.glob(f"preempted-{form}-[01]")}
    assert len(saved) == 2 and all(text.isdigit() and int(text) > 0 for text in saved.values()), (saved, place.jobc("logs", handle))
    assert place.inspect(handle)["state"] == "pending", place.inspect(handle)
    slurm.ends(urgent)
    time.sleep(3)
    slurm.user("scontrol", "update", f"jobid={number}", "starttime=now")
    assert place.jobc("wait", handle, code=None).returncode == 0, place.jobc("logs", handle)
    logs = place.jobc("logs", handle)
    assert all(f"from {step}" in logs for step in saved.values()) and logs.count("saved") >= 2, logs


def test_nothing_runs_on_without_its_supervisor(slurm):
    """It is killed, and so are the programs; the job has failed."""
    place = saves(slurm, "killed", 2)
    handle = place.submit()
    until(lambda: is_up(place, handle, 2), 40)
    os.kill(record_of(place, handle)["supervisor"]["pid"], signal.SIGKILL)
    until(lambda: place.inspect(handle)["state"] == "failed", 40)
    assert not [path for path in os.listdir("/proc") if path.isdigit() and "killed-program" in command_line(path)]


def command_line(pid):
    try:
        with open(f"/proc/{pid}/cmdline") as file:
            return file.read()
    except OSError:
        return ""


OLD = Path(__file__).parent / "old-run"


@pytest.mark.parametrize("is_over", (True, False))
def test_a_run_of_an_earlier_form_is_read(slurm, is_over):
    """Its scripts had a supervisor of their own, which wrote other files."""
    place = Place(slurm, f"old-{is_over}", one("old", "true"))
    run = place.directory / "runs" / f"old-{is_over}".lower()
    for path in sorted(OLD.rglob("*")):
        if path.is_file() and (is_over or path.name != "stopped"):
            text = path.read_text()
            if not is_over and path.parts[-2:] in (("events", "job"), ("tasks", "server-0")):
                # Before it was stopped.
                text = "".join(line for line in text.splitlines(keepends=True) if "ended" not in line)
            slurm.write((run / path.relative_to(OLD)).relative_to(slurm.home), text)
    if not is_over:
        slurm.write("old.sbatch", "#!/bin/bash\nsleep 300\n")
        number = slurm.user("sbatch", "--parsable", "--job-name=old", f"--comment=jobc:{run.name}:p:job", "old.sbatch").stdout.strip()
        slurm.write((run / "jobs/job").relative_to(slurm.home), f"{number}\n")
        until(lambda: slurm.show(number)["JobState"] == "RUNNING")
    handle = f"cluster/{run.name}"
    shown = json.loads(place.jobc("ps", "--format", "json", handle))
    states = {task["task"]: (task["state"], task["attempt"]) for task in place.inspect(handle)["tasks"]}
    assert states == {"server-0": ("stopped" if is_over else "running", 1), "client-0": ("succeeded", 1), "client-1": ("succeeded", 2)}, (states, shown)
    logs = place.jobc("logs", handle)
    assert lines_of(logs, "client-0") == ["try of 0"] and lines_of(logs, "server-0")[0] == "serving", logs
    assert lines_of(place.jobc("logs", "--attempt", "2", handle), "client-1") == ["try of 1"], logs
    assert "attempt 2 on n2" in place.jobc("events", handle)
    if not is_over:
        place.jobc("stop", handle)
        assert place.inspect(handle)["state"] == "stopped"


def test_what_needs_jobc_is_refused_where_there_is_none(slurm):
    """At the line that asks for it."""
    place = Place(slurm, "without", one("without", "exit 8") + "    retry: {max: 2, on_exit_codes: [9]}\n",
                  "container: none, directory: {directory}, jobc: none")
    done = place.jobc("build", "--target", "cluster", code=None)
    assert done.returncode == 1 and re.search(r"job.yaml:11:5", done.stdout + done.stderr) and "J0444" in done.stdout + done.stderr, done
