"""Tests what is left of jobs when something dies, fills up or cannot be written: no process and no leftovers.

JOBC_KILLS=300 is the long form (`just soak`); the default takes some seconds.
"""

import os
import random
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from command_line import JOB, SECONDS, STAYS
from leftovers import children_of, kill, leftovers, processes_with_argument, reap_others, snapshot, still_running

pytestmark = [pytest.mark.isolated, pytest.mark.duration(15)]
everybody = pytest.mark.accounts("root", slow="range")
FLOOD = "i=0; while [ $i -lt 60000 ]; do echo a line that is one of so many that no small disk holds them all $i; i=$((i+1)); done"


@pytest.fixture(scope="module")
def before(all_jobs):
    """What was there after a first run, which creates what is left on purpose (directories, empty lock files)."""
    all_jobs.run(all_jobs.job("faults-warm", "true")).communicate(timeout=SECONDS)
    all_jobs.call("rm", "--force", "faults-warm")
    return snapshot(all_jobs, "faults-")


@pytest.fixture
def jobs(all_jobs, before):
    """Jobs whose tests must leave nothing."""
    yield all_jobs
    for name in all_jobs.call("ps", "--all", "--quiet").stdout.split():
        all_jobs.call("rm", "--force", name)
    assert not (left := leftovers(all_jobs, "faults-", before)), "\n".join(left)


@contextmanager
def small_disk(jobs, options):
    """A file system in memory for records."""
    place = jobs.directory / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "disk", str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)
        place.rmdir()


@everybody
@pytest.mark.parametrize("network", ("host", "job"))
def test_a_job_is_lost_when_its_supervisor_is_killed(jobs, network):
    """Its tasks end at once, and the next command reports the job as lost."""
    name = f"faults-supervisor-{network}"
    run = jobs.run(jobs.job(name, network=network))
    record = jobs.running(name)
    kill(record["supervisor"]["pid"])
    still = still_running([task["process"]["pid"] for task in record["tasks"]], run)
    assert not still, f"tasks {still} are still running"
    out, _ = run.communicate(timeout=SECONDS)
    assert run.returncode == 125, f"`jobc run` exits with {run.returncode}, not 125: {out}"
    assert "lost" in out, f"`jobc run` does not report the lost job: {out}"
    found = jobs.record(name)
    assert found and found["state"] == "lost", f"the record says {found and found['state']}"


@everybody
def test_a_job_is_stopped_when_its_client_is_killed(jobs):
    name = "faults-client"
    run = jobs.run(jobs.job(name))
    jobs.running(name)
    run.kill()
    run.communicate()
    record = jobs.until(name, lambda record: record["ended"] is not None if "ended" in record else False)
    assert record["state"] == "stopped", f"the job is {record['state']}: {record['end']}"


@everybody
def test_a_detached_job_outlives_its_client(jobs):
    name = "faults-detached"
    run = jobs.run(jobs.job(name), "-d")
    out, _ = run.communicate(timeout=SECONDS)
    assert run.returncode == 0, f"`jobc run -d` exits with {run.returncode}: {out}"
    record = jobs.running(name)
    stopped = jobs.call("stop", name)
    assert stopped.returncode == 0, f"`jobc stop` exits with {stopped.returncode}: {stopped.stderr}"
    jobs.until(name, lambda record: record["state"] == "stopped")
    assert not still_running([task["process"]["pid"] for task in record["tasks"]], run), "tasks are still running"


@everybody
def test_a_task_fails_when_its_first_process_is_killed(jobs):
    """And the job, with an explanation."""
    name = "faults-first"
    run = jobs.run(jobs.job(name))
    record = jobs.running(name)
    kill(record["tasks"][1]["process"]["pid"])
    out, _ = run.communicate(timeout=SECONDS)
    assert run.returncode == 1, f"`jobc run` exits with {run.returncode}, not 1: {out}"
    assert "first-1: killed by SIGKILL" in out, f"the end is not explained: {out}"


@everybody
def test_a_job_continues_on_a_full_disk(jobs):
    """The disk of its records is full before it has ended; lost lines are reported."""
    with small_disk(jobs, "size=600k,mode=1777") as disk:
        run = jobs.run(jobs.job("faults-full", FLOOD), XDG_STATE_HOME=str(disk))
        out, _ = run.communicate(timeout=60)
        assert run.returncode == 0, out[-2000:]
        record = jobs.record("faults-full", XDG_STATE_HOME=str(disk))
        assert record and any("lost" in note for note in record.get("notes", [])), record


@everybody
def test_a_read_only_directory_for_records_is_an_error(jobs):
    """The job is rejected before anything starts."""
    with small_disk(jobs, "ro") as disk:
        run = jobs.run(jobs.job("faults-unwritable", "true"), XDG_STATE_HOME=str(disk))
        out, _ = run.communicate(timeout=SECONDS)
        place = f"job records are in `{disk}/jobc/jobs`, whose file system is read-only; set `XDG_STATE_HOME` to"
        assert run.returncode == 125 and "EROFS" in out and place in out, out


@everybody
def test_a_full_disk_for_records_is_an_error(jobs):
    """The job is rejected with the directory and the variable that moves it, and leaves nothing."""
    with small_disk(jobs, "size=32k,mode=1777") as disk:
        run = jobs.run(jobs.job("faults-tiny", "true"), XDG_STATE_HOME=str(disk))
        out, _ = run.communicate(timeout=SECONDS)
        place = f"job records are in `{disk}/jobc/jobs`, whose file system is full; free space there"
        assert run.returncode == 125 and "ENOSPC" in out and place in out and "or set `XDG_STATE_HOME` to" in out, out
        assert not list((disk / "jobc/jobs").iterdir())


def test_read_only_cgroups_are_an_error_for_root(jobs):
    """As in many containers: root is told so, and nothing that only helps users."""
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines() if " - cgroup" in line]
    path = jobs.directory / "faults-read-only.yaml"
    path.write_text(JOB.format(name=path.stem, network="host", instances=1, script='"true"') + "    resources: {memory: 64MiB, enforce: true}\n")
    for place in mounts:
        subprocess.run(["mount", "--bind", "-o", "remount,ro", place], check=True)
    try:
        run = jobs.run(str(path))
        out, _ = run.communicate(timeout=SECONDS)
    finally:
        for place in mounts:
            subprocess.run(["mount", "--bind", "-o", "remount,rw", place], check=True)
    assert run.returncode == 125 and "/sys/fs/cgroup/memory` is mounted read-only" in out and "systemd-run" not in out, \
        f"`jobc run` exits with {run.returncode}: {out}"


@pytest.mark.slow
@pytest.mark.vm
@pytest.mark.parametrize("machine", ["vm"])
def test_nothing_ends_early_when_the_clock_jumps(jobs, machine):
    """The wall clock is set back and forth during a job with a timeout; nothing hangs."""
    name = "faults-clock"
    path = jobs.directory / f"{name}.yaml"
    path.write_text(JOB.format(name=name, network="host", instances=1, script='"sleep 8"') + "timeout: 60s\n")
    run = jobs.run(str(path))
    jobs.running(name)
    now = time.time()
    for jump in (86_400, -86_400):
        time.clock_settime(time.CLOCK_REALTIME, now + jump)
        time.sleep(0.2)
    time.clock_settime(time.CLOCK_REALTIME, now + 0.4)
    out, _ = run.communicate(timeout=SECONDS)
    assert run.returncode == 0, f"the job exits with {run.returncode}: {out}"


@everybody
def test_random_kills_leave_nothing(jobs):
    """At a random moment of a job, the supervisor, the client or any process of a task is killed."""
    rng = random.Random(11)
    for number in range(int(os.environ.get("JOBC_KILLS") or (5 if jobs.account else 20))):
        name = f"faults-random-{number % 7}"
        path = jobs.job(name, rng.choice([STAYS, "sleep 0.1", "true; sleep 0.05; false"]), rng.choice(["host", "job", "none"]))
        run = jobs.run(path, *rng.choice([(), ("-d",)]))
        time.sleep(rng.random() * 0.5)
        victims = {"client": [run.pid], "supervisor": processes_with_argument("supervise"), "process": children_of(processes_with_argument("supervise"))}
        for victim in [rng.choice(list(victims)), "supervisor"][: rng.randint(1, 2)]:
            if victims[victim]:
                kill(rng.choice(victims[victim]))
        # Kills everything that still runs, also what had not started at the first call; the next command reports what was lost.
        deadline = time.monotonic() + SECONDS
        while (run.poll() is None or processes_with_argument("supervise")) and time.monotonic() < deadline:
            jobs.call("kill", name)
            reap_others(run.pid)
            time.sleep(0.05)
        hangs, left = run.poll() is None, processes_with_argument("supervise")
        for pid in left:
            kill(pid)
        run.kill()
        run.communicate()
        assert not hangs, f"run {number} hangs: {jobs.record(name)}"
        assert not left, f"run {number}: the supervisor does not end"
        answer = jobs.call("ps", "--all")
        assert answer.returncode == 0, f"run {number}: `jobc ps` exits with {answer.returncode}: {answer.stderr}"
        answer = jobs.call("rm", "--force", name)
        assert answer.returncode == 0 or "no job" in answer.stderr, f"run {number}: `jobc rm` exits with {answer.returncode}: {answer.stderr}"
