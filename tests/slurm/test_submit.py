"""Tests `jobc submit` and the commands about jobs on a Slurm cluster: ends and output as `jobc run` has them, what the cluster refuses, stops."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import time

import pytest

from cluster import until
from place import CONTAINED, SETTINGS, SUPERVISED, Place, lines_of, one

# Those without `together` use all nodes, or end all jobs of the user.
pytestmark = [pytest.mark.isolated, pytest.mark.duration(60)]
TOGETHER = pytest.mark.together(5)
CHAIN = """\
version: 1
name: {name}
image: host
roles:
  prepare: {{run: "{first}", resources: {{cpu: 1}}}}
  train:
    needs: {{prepare: succeeded}}
    matrix: {{n: [1, 2]}}
    run: echo train
    resources: {{cpu: 1}}
  report: {{needs: {{train: succeeded}}, run: "echo report", resources: {{cpu: 2}}}}
"""


RETRIED = one("retried", 'echo try\n[ -e again ] || { touch again; exit 9; }', role="    workdir: HOME\n    retry: {max: 2, backoff: 0s}\n")


@TOGETHER
@pytest.mark.parametrize("name, job, code, state", [
    ("succeeds", one("succeeds", 'echo "index $JOBC_INDEX of $JOBC_INSTANCES"\necho error >&2', 2), 0, "succeeded"),
    ("fails", one("fails", 'echo before\n[ "$JOBC_INDEX" = 0 ] || { sleep 1; exit 7; }\nsleep 60', 2), 1, "failed"),
    ("limited", one("limited", "echo before\nsleep 60", role=f"    timeout: 1s\n{SUPERVISED}"), 1, "failed"),
    ("retried", RETRIED, 0, "succeeded")], ids=["succeeds", "fails", "limited", "retried"])
def test_jobs_end_as_with_jobc_run(slurm, name, job, code, state):
    """They have its exit codes and its output: success, failure, a time limit, retries."""
    place = Place(slurm, name, job.replace("HOME", str(slurm.home)))
    handle = place.submit()
    waited = place.jobc("wait", handle, code=None)
    detail = place.inspect(handle)
    assert waited.returncode == code and detail["state"] == state, f"{waited.stdout}{waited.stderr}{detail}"
    if name == "retried":
        (slurm.home / "again").unlink()
    here = place.jobc("run", "--allow-unenforced", "--queue", "job.yaml", code=None)
    # What a local job writes to a file is gone with its container.
    assert here.returncode == code or name == "retried", here.stderr
    there, local = place.jobc("logs", handle), here.stdout + here.stderr
    for task in ("main-0", "main-1") if "instances: 2" in job else ():
        # A shell outlives its program, and may say how that ended.
        said = sorted(line for line in lines_of(there, task) if not line.startswith(("slurmstepd", "Terminated")))
        # A task that is stopped before it has begun says nothing.
        assert said == sorted(lines_of(local, task)) or not said and (name, task) == ("fails", "main-0")
    if name == "fails":
        # The other task is stopped because of it: by a signal, or before it has begun.
        failed = [(task["task"], task.get("exit_code")) for task in detail["tasks"] if task["state"] == "failed"]
        assert "task `main-1` ended with exit code 7" in waited.stdout and ("main-1", 7) in failed
    if name == "retried":
        task, = detail["tasks"]
        assert (task["attempt"], task["state"], len(task["earlier"])) == (2, "succeeded", 1), task
        assert lines_of(place.jobc("logs", "--attempt", "2", handle), "main-0") == ["try"], place.jobc("logs", handle)


@TOGETHER
@pytest.mark.parametrize("settings, backends", [(SETTINGS, "[slurm]"), (CONTAINED, "[oci, slurm]")], ids=["bare", "contained"])
def test_code_is_that_of_the_submission(slurm, settings, backends):
    """Also for groups of roles that Slurm starts later; without a container commands start in it."""
    name = f"coded-{backends.count('oci')}"
    place = Place(slurm, name, CHAIN.format(name=name, first="cat train.txt; touch handed").replace("echo train", "cat train.txt; ls")
                  .replace("roles:", "code: src\nroles:", 1), settings, backends)
    slurm.write(f"{name}/src/train.txt", "submitted\n")
    handle = place.submit()
    slurm.write(f"{name}/src/train.txt", "edited\n")
    assert place.jobc("wait", handle, code=None).returncode == 0, place.jobc("logs", handle)
    logs = place.jobc("logs", handle)
    assert logs.count("submitted") == 3 and "edited" not in logs and logs.count("handed") == 2, logs
    assert place.submit() != handle


@TOGETHER
def test_the_same_job_is_one_run(slurm):
    """Also for another process; `--new` and `--replace` make others; the cluster is the state."""
    place = Place(slurm, "same", one("same", "sleep 300"))
    first = place.submit()
    again = place.jobc("submit", "--target", "cluster", code=None)
    assert again.stdout.strip() == first and "was submitted before" in again.stderr, f"{first}: {again}"
    other = place.submit("--new")
    assert other != first and len(place.queued()) == 2, f"{first} {other} {place.queued()}"
    comments = sorted(comment for _, comment in place.queued())
    plan = json.loads((place.run_directory(first) / "job.json").read_text())["plan"]
    expected = sorted(f"jobc:{handle.split('/')[1]}:{plan}:job" for handle in (first, other))
    assert comments == expected, f"{comments} {expected}"
    listed = [handle for handle in place.jobc("ps", "--target", "cluster", "--quiet").split() if "/same-" in handle]
    assert sorted(listed) == sorted([first, other]), listed
    third = place.submit("--replace")
    until(lambda: len(place.queued()) == 1)
    assert third not in (first, other) and not place.run_directory(first).exists(), third
    place.jobc("rm", "--force", third)
    until(lambda: not place.queued())
    assert not place.run_directory(third).exists() and place.jobc("inspect", third, code=None).returncode == 2, "it is still there"


@pytest.mark.slow
@TOGETHER
def test_logs_show_everything_once(slurm):
    """Also what a job writes while it is followed; tasks, roles and the last lines can be chosen."""
    run = 'for i in $(seq 200); do echo "$JOBC_INDEX line $i"; [ $((i % 40)) -ne 0 ] || sleep 0.2; done\nprintf unended'
    place = Place(slurm, "output", one("output", run, 3))
    handle = place.submit()
    whole = [f"line {number}" for number in range(1, 201)]
    followed = place.jobc("logs", "-f", handle)
    for index in range(3):
        expected = [f"{index} {line}" for line in whole] + ["unended"]
        assert lines_of(followed, f"main-{index}") == expected, f"main-{index}: {len(lines_of(followed, f'main-{index}'))} lines"
    chosen = place.jobc("logs", "--tail", "2", handle, "main-1")
    assert "main-0" not in chosen and lines_of(chosen, "main-1") == ["1 line 200", "unended"], chosen
    wrong = place.jobc("logs", handle, "other", code=None)
    assert wrong.returncode == 2 and "has no task `other`" in wrong.stderr, wrong.stderr
    both = place.jobc("submit", "--target", "cluster", "--new", "--follow")
    assert len(lines_of(both, "main-2")) == 201, both[-500:]


@TOGETHER
def test_stop_ends_tasks_with_sigterm(slurm):
    """The job's exit code is 130, also of one that needs longer than KillWait."""
    trap = "trap 'sleep 7 || :; echo bye; exit 0' TERM\necho up\nwhile :; do sleep 300 & wait; done"
    place = Place(slurm, "stop", one("stop", trap, role="    grace_period: 20s\n"))
    handle = place.submit("--allow-lossy")
    until(lambda: "up" in place.jobc("logs", handle))
    place.jobc("stop", handle)
    assert place.jobc("wait", handle, code=130).strip() == f"{handle}: stopped" and "bye" in place.jobc("logs", handle), \
        f"{place.inspect(handle)} {place.jobc('logs', handle)}"


@TOGETHER
def test_a_replaced_run_has_ended_before_the_new_one_is_created(slurm):
    """Both write to one file. What is waited for is said; `--no-wait` leaves the run stopping."""
    trap = f"echo up $$ >>{slurm.home}/turns\ntrap 'sleep 9; echo down $$ >>{slurm.home}/turns; exit 0' TERM\nwhile :; do sleep 300 & wait; done"
    place = Place(slurm, "replaced", one("replaced", trap, role="    grace_period: 20s\n"))
    turns = slurm.home / "turns"
    first = place.submit("--allow-lossy")
    until(lambda: turns.exists() and "up" in turns.read_text())
    done = place.jobc("submit", "--target", "cluster", "--allow-lossy", "--replace", code=None)
    assert done.returncode == 0 and f"waiting until the tasks of job `{first.split('/')[1]}` have ended (grace period 20 s)" in done.stderr, done
    until(lambda: turns.read_text().count("up") == 2)
    words = [line.split()[0] for line in turns.read_text().splitlines()]
    assert words == ["up", "down", "up"], turns.read_text()
    second = done.stdout.strip()
    assert place.jobc("stop", "--no-wait", second).strip() == f"{second}: stopping" and turns.read_text().count("down") == 1, turns.read_text()
    place.jobc("wait", second, code=130)
    assert turns.read_text().count("down") == 2, turns.read_text()


@TOGETHER
@pytest.mark.parametrize("delay", (0, 0.1, 0.2, 0.3, 0.4))
def test_a_job_that_is_stopped_while_it_starts_does_not_run_on(slurm, delay):
    """Also if no task had started yet that could get a signal."""
    name = f"stop-start-{delay * 10:.0f}"
    place = Place(slurm, name, one(name, "sleep 300"))
    handle = place.submit()
    time.sleep(delay)
    place.jobc("stop", handle)
    assert place.inspect(handle)["state"] == "stopped", place.inspect(handle)


def test_a_job_that_waits_says_why(slurm):
    """The reason is at the line of the job, and `stop` ends it, too."""
    place = Place(slurm, "stop-waiting", one("stop-waiting", "exit 0", more="timeout: 5m").replace("memory: 64MiB", "memory: 64MiB, gpu: 8"))
    slurm.write("hold.sh", "#!/bin/sh\nsleep 300\n", 0o755)
    held = slurm.submit(slurm.home, "hold.sh", "--exclusive", "--nodes=8")
    until(lambda: slurm.show(held)["JobState"] == "RUNNING")
    handle = place.submit()
    until(lambda: place.inspect(handle)["reasons"] not in ([], ["Slurm has not looked at it yet"]))
    detail = place.inspect(handle)
    assert detail["state"] == "pending" and detail["reasons"] == ["job.yaml:8:45: it is next, and waits for free nodes"], detail
    assert place.jobc("pause", handle).strip() == f"{handle}: paused" and place.inspect(handle)["state"] == "suspended", place.inspect(handle)
    assert place.jobc("resume", handle).strip() == f"{handle}: resumed" and place.inspect(handle)["state"] == "pending", place.inspect(handle)
    place.jobc("stop", handle)
    assert place.inspect(handle)["state"] == "stopped", f"{place.inspect(handle)}"
    slurm.user("scancel", held)


@pytest.mark.slow
def test_a_job_that_runs_is_paused_as_far_as_its_user_may(slurm):
    """Without the right to suspend it, one that may start again ends now, and starts again when it is resumed."""
    place = Place(slurm, "pause-once", one("pause-once", "sleep 100"))
    handle = place.submit()
    until(lambda: place.inspect(handle)["state"] == "running")
    failed = place.jobc("pause", handle, code=None)
    assert failed.returncode != 0 and "only operators suspend what runs" in failed.stderr and "retry: {max: 1, scope: job}" in failed.stderr, failed
    assert place.inspect(handle)["state"] == "running", "it goes on"
    place.jobc("stop", handle)
    run = "trap 'echo saved >> state; exit 143' TERM\nif [ -e state ]; then cat state; exit 0; fi\necho begun > state\nsleep 100 & wait"
    place = Place(slurm, "pause-again", one("pause-again", run, role="    retry: {max: 1, scope: job}\n", more=f"env: {{PLACE: {slurm.home}}}")
                  .replace("      trap", "      cd $PLACE\n      trap"))
    handle = place.submit()
    until(lambda: (slurm.home / "state").exists())
    assert place.jobc("pause", handle).strip() == f"{handle}: paused"
    number = (place.run_directory(handle) / "jobs/job").read_text().strip()
    assert place.inspect(handle)["state"] == "suspended", (place.inspect(handle)["reasons"], place.slurm.show(number), (place.run_directory(handle) / "events/job").read_text())
    assert place.jobc("resume", handle).strip() == f"{handle}: resumed"
    number = (place.run_directory(handle) / "jobs/job").read_text().strip()
    time.sleep(2)
    slurm.user("scontrol", "update", f"jobid={number}", "starttime=now")
    place.jobc("wait", handle)
    assert "saved" in place.jobc("logs", handle), place.jobc("logs", handle)


@pytest.mark.slow
@TOGETHER
def test_a_requeued_job_has_another_attempt_of_each_task(slurm):
    run = 'echo "start ${SLURM_RESTART_COUNT-0}"\n[ "${SLURM_RESTART_COUNT-0}" -ge 1 ] || sleep 300'
    place = Place(slurm, "requeue", one("requeue", run, 2, role="    retry: {max: 1, scope: job}\n"))
    handle = place.submit()
    number = (place.run_directory(handle) / "jobs/job").read_text().strip()
    until(lambda: place.jobc("logs", handle).count("start 0") == 2)
    slurm.user("scontrol", "requeue", number)
    until(lambda: slurm.show(number).get("Restarts") == "1" and slurm.show(number)["JobState"] == "PENDING", 40)
    waits = place.inspect(handle)
    assert waits["state"] == "pending" and any("Slurm lets a requeued job wait" in reason for reason in waits["reasons"]), waits
    time.sleep(3)
    slurm.user("scontrol", "update", f"jobid={number}", "starttime=now")
    place.jobc("wait", handle)
    task = next(task for task in place.inspect(handle)["tasks"] if task["task"] == "main-1")
    before, = task["earlier"]
    assert (task["attempt"], task["state"], task["exit_code"]) == (2, "succeeded", 0) and before["exit_code"] == 143, task
    assert lines_of(place.jobc("logs", "--attempt", "2", handle), "main-0") == ["start 1"], place.jobc("logs", handle)
    events = [line.split()[1:3] for line in place.jobc("events", handle).splitlines()]
    wanted = [["job", "Submitted"], ["job", "Started"], ["job", "Requeued"], ["job", "Restarted"], ["job", "Ended"]]
    assert [event for event in events if event[0] == "job"] == wanted, events


@pytest.mark.parametrize("name, settings, backends", [("down", SETTINGS, "[slurm]"), ("down-contained", CONTAINED, "[oci, slurm]")])
def test_a_job_whose_node_goes_down_has_failed(slurm, name, settings, backends):
    """It says so, and still does when Slurm has forgotten it; nothing is left of its containers."""
    mark = f"sleep 3{len(name)}123"
    place = Place(slurm, name, one(name, f"{mark}; exit"), settings, backends)
    handle = place.submit()
    until(lambda: place.running(handle) == 1 and left(mark))
    node = place.inspect(handle)["tasks"][0]["node"]
    subprocess.run(["scontrol", "update", f"nodename={node}", "state=down", "reason=test"], check=True, env=slurm.environment())
    try:
        waited = place.jobc("wait", handle, code=1)
        detail = place.inspect(handle)
        assert "one of its nodes failed" in waited and detail["tasks"][0]["state"] == "failed", f"{waited}{detail}"
        until(lambda: not left(mark))
    finally:
        subprocess.run(["scontrol", "update", f"nodename={node}", "state=resume"], check=False, capture_output=True, env=slurm.environment())
    # The script may have been able to write it.
    events = (place.run_directory(handle) / "events/job").read_text()
    assert "verdict NODE_FAIL" in events or "ended 143 NodeDown" in events, f"Slurm's word is not kept: {events}"


def left(mark):
    """The processes of a command."""
    return subprocess.run(["pgrep", "--full", f"^{mark}$"], capture_output=True, text=True, check=False).stdout.split()


@TOGETHER
def test_a_matrix_is_an_array_of_runs(slurm):
    """As many jobs run at once as the job says, and each job is a run of its own."""
    run = "echo value ${{ matrix.n }} of $JOBC_JOB in $SLURM_ARRAY_JOB_ID\n[ ${{ matrix.n }} != 3 ] || exit 4"
    place = Place(slurm, "matrix", one("matrix", run, more="matrix: {axes: {n: [1, 2, 3, 4]}, max_parallel: 2}\nmetrics: {last: {log: 'value ([0-9]+)'}}"))
    handles = place.submit().split()
    codes = [place.jobc("wait", handle, code=None).returncode for handle in handles]
    said = ["\n".join(lines_of(place.jobc("logs", handle), "main-0")) for handle in handles]
    arrays = {text.split()[-1] for text in said}
    assert codes == [0, 0, 1, 0] and [text.rsplit(" ", 2)[0] for text in said] == [f"value {n} of matrix-{n - 1}" for n in (1, 2, 3, 4)] and len(arrays) == 1, \
        f"{codes} {said}"
    assert place.submit().split() == handles, "the same matrix is submitted twice"
    table = [line.split() for line in place.jobc("ps", "cluster/matrix").splitlines()]
    assert [row[:2] + row[5:6] for row in table[1:5]] == [[handle, str(n), str(n)] for n, handle in enumerate(handles, 1)], table
    place.jobc("rm", *handles[:2])
    again = place.submit().split()
    numbers = [(place.run_directory(handle) / "jobs/job").read_text().split("_")[0].strip() for handle in again]
    assert again[2:] == handles[2:] and numbers[2:] == [arrays.copy().pop()] * 2 and len(set(numbers)) == 3, \
        f"two jobs that were removed: {again} {numbers}"


@TOGETHER
def test_a_matrix_above_the_limit_is_several_arrays(slurm):
    """One after another, so that `max_parallel` holds for all."""
    run = "echo $SLURM_ARRAY_JOB_ID.$SLURM_ARRAY_TASK_ID $(squeue --noheader --me --name=limited --states=RUNNING | wc -l)"
    job = one("limited", run, more="matrix: {axes: {n: [1, 2, 3, 4, 5]}, max_parallel: 1}")
    place = Place(slurm, "limited", job, settings=SETTINGS + ", max_array: 2")
    handles = place.submit().split()
    codes = [place.jobc("wait", handle, code=None).returncode for handle in handles]
    said = [lines_of(place.jobc("logs", handle), "main-0")[0].split() for handle in handles]
    tasks = [task.split(".") for task, _ in said]
    assert codes == [0] * 5 and [number for _, number in tasks] == ["0", "1", "0", "1", "0"], f"{codes} {said}"
    assert len({array for array, _ in tasks}) == 3 and {running for _, running in said} == {"1"}, said
    assert place.submit().split() == handles, "the same matrix is submitted twice"


@pytest.mark.slow
@TOGETHER
@pytest.mark.parametrize("name, first, code, lines", [("chain", "echo prepare", 0, ["prepare", "train", "train", "report"]), ("broken-chain", "exit 3", 1, [])])
def test_several_slurm_jobs_are_one_job(slurm, name, first, code, lines):
    """None of them runs after one that failed."""
    place = Place(slurm, name, CHAIN.format(name=name, first=first))
    handle = place.submit()
    place.jobc("wait", handle, code=code)
    detail = place.inspect(handle)
    followed = [line.split("|", 1)[1].strip() for line in place.jobc("logs", handle).splitlines() if "|" in line]
    said = [line for line in followed if not line.startswith(("jobc:", "role"))]
    assert sorted(said) == sorted(lines) and len(detail["tasks"]) == 4 and detail["kind"].count(",") == 3, f"{followed} {detail}"
    states = [task["state"] for task in detail["tasks"]]
    assert states == (["succeeded"] * 4 if code == 0 else ["failed"] + ["stopped"] * 3)


@pytest.mark.slow
def test_a_controller_that_hangs_is_an_error_in_bounded_time(slurm):
    """Output can be read meanwhile, and nothing is lost."""
    place = Place(slurm, "controller", one("controller", "echo here; sleep 300"))
    handle = place.submit()
    until(lambda: "here" in place.jobc("logs", handle))
    # The cluster's configuration with a shorter timeout.
    conf = slurm.write("slurm.conf", slurm.configuration.read_text() + "MessageTimeout=2\n")
    controller = next(process for process in slurm.running if process.args[0] == "slurmctld")
    controller.send_signal(signal.SIGSTOP)
    try:
        for words in (("ps", "--target", "cluster"), ("submit", "--target", "cluster", "--new"), ("stop", handle)):
            since = time.monotonic()
            done = place.jobc(*words, code=None, SLURM_CONF=str(conf))
            assert done.returncode == 3 and "error: Slurm does not answer: " in done.stderr and time.monotonic() - since <= 30, \
                f"{words} after {time.monotonic() - since:.1f} s: {done}"
        since = time.monotonic()
        assert "here" in place.jobc("logs", handle, SLURM_CONF=str(conf)) and time.monotonic() - since <= 5, \
            f"logs after {time.monotonic() - since:.1f} s"
    finally:
        controller.send_signal(signal.SIGCONT)
    # The submission that was refused left nothing, and the job goes on until it is stopped.
    assert [*place.directory.glob("runs/controller-*")] == [place.run_directory(handle)] and len(place.queued()) == 1, f"{place.queued()}"
    place.jobc("stop", handle)
    place.jobc("wait", handle, code=130)


@TOGETHER
@pytest.mark.parametrize("own", ("", ", account: physics"))
def test_the_account_of_the_users_own_commands_is_charged(slurm, own):
    """Unless the target names one."""
    name = f"account-{len(own)}"
    place = Place(slurm, name, one(name, "true"), f"container: none, directory: {{directory}}{own}")
    handle = place.submit(SBATCH_ACCOUNT="vision")
    number = (place.run_directory(handle) / "jobs/job").read_text().strip()
    assert slurm.show(number)["Account"] == ("physics" if own else "vision"), slurm.show(number)
    place.jobc("wait", handle)


@pytest.mark.slow
@TOGETHER
@pytest.mark.parametrize("name", ("again", "forgotten"))
def test_a_number_of_another_job_is_not_taken_for_that_of_the_run(slurm, name):
    """Slurm gave it to another job since, or does not know it any more."""
    slurm.write("hold.sh", "#!/bin/sh\nsleep 300\n", 0o755)
    other = slurm.submit(slurm.home, "hold.sh")
    until(lambda: slurm.show(other)["JobState"] == "RUNNING")
    place = Place(slurm, f"numbers-{name}", one(f"numbers-{name}", "sleep 300", role=SUPERVISED))
    handle = place.submit()
    until(lambda: place.running(handle) == 1)
    run = place.run_directory(handle)
    (own,) = [own for own, _ in place.queued()]
    slurm.user("scancel", "--batch", "--signal=KILL", own)
    slurm.ends(own)
    (run / "jobs/job").write_text(f"{other if name == 'again' else 999999}\n")
    place.jobc("stop", handle)
    detail = place.inspect(handle)
    assert detail["state"] == "failed" and detail.get("message") == "its script was killed, and Slurm no longer knows it", detail
    place.jobc("rm", "--force", handle)
    assert slurm.show(other)["JobState"] == "RUNNING", "a job of somebody else was stopped"
    slurm.user("scancel", other)


REFUSED = {
    "partition": ({}, "partition: nowhere", ["invalid partition name", "the setting `slurm.partition` of the target"]),
    "licenses": ({}, "licenses: 'nothing:1'", ["license", "the setting `slurm.licenses` of the target"]),
    "constraint": ({}, "constraint: nothing", ["invalid feature", "the setting `slurm.constraint` of the target"]),
    "extra": ({}, "extra: {{frobnicate: 1}}", ["this release has no option `--frobnicate`"]),
    "comment": ({}, "extra: {{comment: mine}}", ["`comment` of `sbatch` has the name of the run", "the setting `slurm.extra.comment` of the target"]),
    "timeout": ({"more": "timeout: 3h"}, "partition: short", ["`timeout` is 180 minutes, and the partition `short` allows 60", "job.yaml:4:10"]),
    "release": ({}, "release: '23.11'", ["the target says Slurm 23.11", "the cluster has 22.05"]),
    "nodes": ({"instances": 9}, "", ["needs 9 nodes, and the partition `all` has 8", "job.yaml:7:16"]),
    "memory": ({"memory": "9TiB"}, "", ["node configuration is not available", "job.yaml:8:"]),
}


@TOGETHER
@pytest.mark.parametrize("name", REFUSED)
def test_what_the_cluster_refuses_is_an_error_before_anything_is_created(slurm, name):
    """It is at the line of the job, or with the setting."""
    more, settings, words = REFUSED[name]
    more = dict(more)
    memory = more.pop("memory", "64MiB")
    place = Place(slurm, f"refused-{name}", one(f"refused-{name}", "sleep 300", **more).replace("64MiB", memory), f"{SETTINGS}, {settings}" if settings else "")
    done = place.jobc("submit", "--target", "cluster", *(["--dry-run"] if settings else []), code=None)
    assert all(word in done.stderr for word in words) and done.returncode == (0 if name == "release" else 1), done
    assert not place.queued() and not [*place.directory.glob(f"runs/refused-{name}*")], "something was created"


@TOGETHER
def test_a_job_for_a_drained_node_is_queued_with_a_warning(slurm):
    """As `sbatch` does, which `sbatch --test-only` refuses."""
    node = f"n{slurm.nodes - 1}"
    place = Place(slurm, "drained", one("drained", "true"), f"{SETTINGS}, extra: {{{{nodelist: {node}}}}}")
    root = {"PATH": os.environ["PATH"], "SLURM_CONF": str(slurm.configuration)}
    state = ["scontrol", "update", f"nodename={node}"]
    subprocess.run([*state, "state=drain", "reason=test"], env=root, check=True)
    try:
        done = place.jobc("submit", "--target", "cluster", code=None)
        assert done.returncode == 0 and "the job may have to wait: nodes are down or drained: " in done.stderr, done
    finally:
        subprocess.run([*state, "state=resume"], env=root, check=True)
    assert place.jobc("wait", done.stdout.strip(), code=None).returncode == 0


@TOGETHER
def test_a_dry_run_where_slurm_does_not_answer_says_what_would_be_submitted(slurm):
    place = Place(slurm, "absent", one("absent", "true"))
    done = slurm.user(slurm.program, "submit", "--target", "cluster", "--dry-run", "job.yaml", cwd=place.cwd, SLURM_CONF="/dev/null")
    assert done.returncode == 0 and done.stdout == "absent: would create script `job.sbatch` on `cluster`\n", done
    assert "jobc: the cluster was not asked: " in done.stderr and done.stderr.endswith("; nothing was created\n"), done


@TOGETHER
def test_targets_free_shows_partitions(slurm):
    place = Place(slurm, "free", one("free", "true"))
    shown = json.loads(slurm.user(slurm.program, "targets", "free", "cluster", "--format", "json", cwd=place.cwd).stdout)
    every, = [row for row in shown if row["name"] == "partition all"]
    assert every["nodes"]["total"] == 8 and every["gpus"]["total"] >= 8 and every["gpus"]["free"] <= every["gpus"]["total"] and every["cpus"]["total"] > 0, shown


@TOGETHER
def test_targets_check_finds_the_cluster(slurm):
    checks = slurm.user(slurm.program, "targets", "check", "cluster", cwd=Place(slurm, "checked", one("checked", "true")).cwd)
    assert checks.returncode == 0 and "slurm-wlm 22.05" in checks.stdout and "MISSING" not in checks.stdout, checks


@TOGETHER
@pytest.mark.parametrize("written", ("~/jobs-of-team", "{directory}/%u"), ids=("home", "user"))
def test_a_directory_of_each_user_is_named_as_slurm_and_shells_do(slurm, written):
    name = "in-home" if "~" in written else "in-user"
    place = Place(slurm, name, one(name, "echo hi"), f"container: none, directory: {written}")
    handle = place.submit()
    place.jobc("wait", handle)
    directory = slurm.home / "jobs-of-team" if "~" in written else place.directory / slurm.account.name
    assert (directory / "runs" / handle.split("/")[1] / "job.json").is_file() and lines_of(place.jobc("logs", handle), "main-0") == ["hi"]


@TOGETHER
def test_the_cluster_is_asked_before_an_image_is_built(slurm):
    """What Slurm refuses is not found after minutes of pulling and building: here nothing could be pulled."""
    job = one("asked", "true").replace("image: host", "image: {from: 'localhost:1/none:1', run: ['true']}")
    place = Place(slurm, "asked", job, "directory: {directory}, partition: nowhere", "[oci, slurm]")
    done = place.jobc("submit", "--target", "cluster", code=None)
    assert done.returncode == 1 and "invalid partition name" in done.stderr and "localhost:1" not in done.stderr, done


@TOGETHER
def test_a_team_shares_a_targets_file(slurm):
    """Each user has a directory, and an error in one target is about that one."""
    place = Place(slurm, "team", one("team", "echo hi"), "container: none, directory: {directory}/$USER")
    handle = place.submit()
    place.jobc("wait", handle)
    assert (place.directory / slurm.account.name / "runs" / handle.split("/")[1] / "job.json").is_file()
    assert lines_of(place.jobc("logs", handle), "main-0") == ["hi"]
    targets = place.cwd / "targets.yaml"
    targets.write_text(targets.read_text() + "  bad: {backends: [slurm], slurm: {directory: here}}\n"
                       "  full: {backends: [slurm], slurm: {container: none, directory: /proc/x}}\n")
    done = place.jobc("ps", "--target", "cluster", "--all", "--quiet", code=None)
    # Jobs of other tests are the same user's.
    assert handle in done.stdout.split() and "the target `bad` has errors" in done.stderr, done
    done = place.jobc("ps", "--target", "bad", code=None)
    assert done.returncode == 2 and "`here` is not an absolute path" in done.stdout + done.stderr, done
    done = place.jobc("targets", "check", "full", code=None)
    assert done.returncode == 1 and re.search("MISSING *writable directory /proc/x: no such file or directory", done.stdout), done


@pytest.mark.slow
def test_many_queued_jobs_are_listed_by_one_question(slurm, note):
    place = Place(slurm, "queue", one("queue", "sleep 300\necho ${{ matrix.n }}", more=f"matrix: {{axes: {{n: {list(range(200))}}}}}"))
    since = time.monotonic()
    handles = place.submit().split()
    submitted = time.monotonic() - since
    since = time.monotonic()
    listed = place.jobc("ps", "--target", "cluster", "--quiet").split()
    seconds = time.monotonic() - since
    note(f"200 jobs: submitted in {submitted:.2f} s, listed in {seconds:.2f} s")
    assert set(handles) <= set(listed) and len(set(handles)) == 200 and seconds <= 5, \
        f"{len(handles)} submitted, {len(listed)} listed in {seconds:.2f} s"
    slurm.user("scancel", "--user", slurm.account.name)
    until(lambda: not place.queued(), 60)


@TOGETHER
@pytest.mark.parametrize("kills", (5, pytest.param(int(os.environ.get("JOBC_KILLS", 300)), marks=[pytest.mark.slow, pytest.mark.duration(500)])))
def test_a_killed_submission_neither_loses_nor_doubles_its_job(slurm, kills):
    """JOBC_KILLS is how many are killed in the long form, JOBC_SEED repeats a run."""
    seed = int(os.environ.get("JOBC_SEED") or random.randrange(1 << 32))
    random_, killed, jobs = random.Random(seed), 0, 0
    name = f"kills-{kills}"
    place = Place(slurm, name, one(name, "sleep 600").replace("image: host", "image: host\ntimeout: 30m"))
    since = time.monotonic()
    place.submit()
    duration = time.monotonic() - since
    place.jobc("submit", "--target", "cluster", "--replace")
    while killed < kills:
        jobs += 1
        place = Place(slurm, name, one(name, f"sleep 600; echo {jobs}"))
        while True:
            process = subprocess.Popen([*slurm.account.prefix(), slurm.program, "submit", "--target", "cluster"], cwd=place.cwd, env=slurm.environment(),
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
            whole = random_.random() < 0.5
            since = time.monotonic()
            try:
                process.wait(random_.uniform(0, duration * 1.1))
                # The host is busy now and then: kills are to be spread over all of it.
                duration = (duration + time.monotonic() - since) / 2
                break
            except subprocess.TimeoutExpired:
                # The client alone, or with the commands that it runs.
                (os.killpg if whole else os.kill)(process.pid, signal.SIGKILL)
                process.wait()
                killed += 1
                duration *= 1.05
        handle = place.submit()
        mine = [line for line in place.queued() if line[1].startswith(f"jobc:{handle.split('/')[1]}:")]
        recorded = (place.run_directory(handle) / "jobs/job").read_text().strip()
        assert [number for number, _ in mine] == [recorded] and slurm.show(recorded).get("Reason") != "JobHeldUser", \
            f"seed {seed}: after kill {killed}: {mine}, {recorded}, {slurm.show(recorded)}"
        slurm.user("scancel", *(number for number, _ in place.queued()))
        until(lambda: not place.queued())


def test_a_submission_takes_little_longer_than_sbatch(slurm, note):
    def measure(action, times=5):
        measured = []
        for _ in range(times):
            since = time.monotonic()
            action()
            measured.append(time.monotonic() - since)
        return sorted(measured)[times // 2]

    place = Place(slurm, "speed", one("speed", "true"))
    slurm.write("true.sh", "#!/bin/sh\ntrue\n", 0o755)
    place.submit()
    alone = measure(lambda: slurm.submit(slurm.home, "true.sh", "--hold"))
    checked = measure(lambda: place.submit("--new", "--dry-run"))
    ours = measure(lambda: place.submit("--new"))
    note(f"sbatch {alone * 1000:.0f} ms, jobc submit {ours * 1000:.0f} ms, of which checks {checked * 1000:.0f} ms")
    # The program may be a debug build on a busy host.
    assert ours - alone <= 1.5, f"sbatch {alone:.3f} s, jobc submit {ours:.3f} s"
    slurm.user("scancel", "--user", slurm.account.name)


@TOGETHER
@pytest.mark.parametrize("setting, gpu, shown", [
    ("memory: per-cpu", "", {"MinMemoryCPU": "64M"}),
    ("memory: per-gpu", ", gpu: 1", {"MemPerTres": "gres:gpu:64"}),
    ("gpu: per-task", ", gpu: 1", {"TresPerTask": "gres:gpu:1"}),
], ids=["memory-per-cpu", "memory-per-gpu", "gpu-per-task"])
def test_a_held_job_has_the_form_of_its_site_and_runs_when_it_is_resumed(slurm, setting, gpu, shown):
    name = setting.replace(": ", "-")
    job = one(name, "echo done").replace("memory: 64MiB", f"memory: 64MiB{gpu}")
    place = Place(slurm, name, job, f"{SETTINGS}, {setting}, extra: {{{{hold: true}}}}")
    handle = place.submit()
    (number, _), = place.queued()
    said = slurm.show(number)
    assert said["JobState"] == "PENDING" and said["Reason"] == "JobHeldUser", said
    assert {field: said.get(field) for field in shown} == shown, said
    assert place.inspect(handle)["state"] == "suspended", place.inspect(handle)
    place.jobc("resume", handle)
    until(lambda: slurm.show(number)["JobState"] == "COMPLETED")
    assert "done" in place.jobc("logs", handle)


@TOGETHER
def test_a_controller_that_goes_away_within_a_matrix_is_no_refusal_of_the_job(slurm):
    """Arrays that were submitted before go on, and the rest is submitted by the same command later."""
    place = Place(slurm, "leaves", one("leaves", "echo ${{ matrix.n }}", more="matrix: {axes: {n: [1, 2, 3, 4]}}"), SETTINGS + ", max_array: 2")
    calls = slurm.home / "leaves/calls"
    away = "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)"
    wrapper = slurm.write("leaves/bin/sbatch", f"""\
#!/bin/sh
case "$*" in *--test-only*) exec {shutil.which("sbatch")} "$@";; esac
echo call >>{calls}
[ "$(wc -l <{calls})" -ne 2 ] || {{ echo '{away}' >&2; exit 1; }}
exec {shutil.which("sbatch")} "$@"
""")
    wrapper.chmod(0o755)
    path = f"{wrapper.parent}:{os.environ['PATH']}"
    done = place.jobc("submit", "--target", "cluster", code=None, PATH=path)
    assert done.returncode == 3 and "Slurm does not answer: " in done.stderr and "rejects" not in done.stderr, done
    done = place.jobc("submit", "--target", "cluster", code=None, PATH=path)
    handles = done.stdout.split()
    assert done.returncode == 0 and len(set(handles)) == 4 and "2 of 4 jobs were submitted before" in done.stderr, done
    assert [place.jobc("wait", handle, code=None).returncode for handle in handles] == [0] * 4
