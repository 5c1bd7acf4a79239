"""Tests that tasks leave by the contract of `preemption` and resume at their step, and that a suspended job gives its resources back."""

import json
import os
import subprocess

import pytest

from command_line import SECONDS, expect
from resumable import TRAIN, resumed_at_their_steps

pytestmark = [pytest.mark.isolated, pytest.mark.duration(30)]
everybody = pytest.mark.accounts("root", slow="range")


def training(jobs, name, contract=None, **more):
    """The path of a job that trains, and the directory of its checkpoints."""
    saved = jobs.directory / f"{name}-saved"
    saved.mkdir()
    saved.chmod(0o777)
    role = {"run": ["python3", "-uc", TRAIN], **more}
    job = {"version": 1, "name": name, "image": "host", "preemption": {"exit_codes": [85], "checkpoint": "saved", "grace": "10s", **(contract or {})},
           "outputs": {"saved": {"source": str(saved), "mount": "/saved"}}, "roles": {"main": role}}
    path = jobs.directory / f"{name}.json"
    path.write_text(json.dumps(job))
    return str(path), saved


def steps(jobs, name, count):
    """Waits until a task has made that many steps."""
    jobs.until(name, lambda _: f"step {count}\n" in jobs.call("logs", name).stdout)


def alone(**more):
    """The last line of a training that nothing interrupts."""
    environment = {**os.environ, "JOBC_CHECKPOINT_DIR": "/nowhere", "PACE": "0", **more}
    script = TRAIN.replace("\nsave()", "\n")
    return subprocess.run(["python3", "-uc", script], env=environment, check=True, capture_output=True, text=True).stdout.splitlines()[-1]


@everybody
def test_a_suspended_job_gives_its_resources_back_and_resumes_at_its_step(all_jobs):
    """Twice; another job has all CPUs meanwhile. Nothing of it uses up a retry, and the result is that of an uninterrupted training."""
    cpus = len(os.sched_getaffinity(0))
    path, _ = training(all_jobs, "preempt-suspend", resources={"cpu": cpus})
    run = all_jobs.run(path)
    for number in (1, 2):
        steps(all_jobs, "preempt-suspend", 15 * number)
        expect(all_jobs.call("suspend", "preempt-suspend"))
        all_jobs.until("preempt-suspend", lambda record: record["state"] == "suspended" and record["tasks"][0]["state"] == "retrying")
        queue = all_jobs.call("ps", "--queue").stdout
        assert "preempt-suspend" not in queue, queue
        other = all_jobs.directory / f"other-{number}.json"
        role = {"run": "true", "shell": "sh", "resources": {"cpu": cpus}}
        other.write_text(json.dumps({"version": 1, "name": f"preempt-other-{number}", "image": "host", "roles": {"main": role}}))
        expect(all_jobs.call("run", *all_jobs.unenforced, str(other)))
        expect(all_jobs.call("resume", "preempt-suspend"))
    text, _ = run.communicate(timeout=SECONDS)
    assert run.returncode == 0, text
    record = all_jobs.record("preempt-suspend")
    logs = "".join(all_jobs.call("logs", "--attempt", str(number), "preempt-suspend").stdout for number in (1, 2, 3))
    assert resumed_at_their_steps(logs) == 3 and "attempt 2 resume '1'" in logs and "attempt 3 resume '1'" in logs, logs
    assert logs.splitlines()[-1] == alone(), (logs.splitlines()[-1], alone())
    verdicts = [one["verdict"]["kind"] for one in record["tasks"][0]["earlier"]]
    assert verdicts == ["preempted", "preempted"], record["tasks"]
    events = all_jobs.call("events", "preempt-suspend").stdout
    assert events.count("suspended") >= 2 and events.count("resumed") >= 2, events
    all_jobs.call("rm", "--force", "preempt-suspend")


@everybody
def test_a_task_that_saves_and_leaves_is_resumed_without_a_retry(all_jobs):
    """It is told to leave by the signal of the contract, by whoever wants its place."""
    path, _ = training(all_jobs, "preempt-leaves", {"signal": "SIGUSR2"}, retry={"max": 0, "backoff": "0s"})
    run = all_jobs.run(path)
    steps(all_jobs, "preempt-leaves", 10)
    expect(all_jobs.call("kill", "--signal", "USR2", "preempt-leaves"))
    text, _ = run.communicate(timeout=SECONDS)
    assert run.returncode == 0, text
    logs = "".join(all_jobs.call("logs", "--attempt", str(number), "preempt-leaves").stdout for number in (1, 2))
    assert resumed_at_their_steps(logs) == 2 and logs.splitlines()[-1] == alone(), logs
    first = all_jobs.record("preempt-leaves")["tasks"][0]["earlier"][0]
    assert first["verdict"]["kind"] == "preempted" and first["exit_code"] == 85, first
    all_jobs.call("rm", "--force", "preempt-leaves")


@everybody
def test_only_a_job_with_a_contract_is_suspended(all_jobs):
    run = all_jobs.run(all_jobs.job("preempt-without", "sleep 60"))
    all_jobs.running("preempt-without")
    answer = all_jobs.call("suspend", "preempt-without")
    expect(answer, code=answer.returncode, error="does not say how its tasks are resumed")
    assert answer.returncode != 0 and "jobc pause" in answer.stderr, answer
    expect(all_jobs.call("stop", "preempt-without"))
    run.communicate(timeout=SECONDS)
    all_jobs.call("rm", "--force", "preempt-without")


@everybody
def test_a_suspended_job_can_be_stopped(all_jobs):
    path, saved = training(all_jobs, "preempt-stop")
    run = all_jobs.run(path)
    steps(all_jobs, "preempt-stop", 3)
    expect(all_jobs.call("suspend", "preempt-stop"))
    all_jobs.until("preempt-stop", lambda record: record["tasks"][0]["state"] == "retrying")
    expect(all_jobs.call("stop", "preempt-stop"))
    run.communicate(timeout=SECONDS)
    assert all_jobs.record("preempt-stop")["state"] == "stopped" and (saved / "state-0.json").exists()
    all_jobs.call("rm", "--force", "preempt-stop")
