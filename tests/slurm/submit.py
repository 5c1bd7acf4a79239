#!/usr/bin/env python3
"""Tests `jobc submit` and the commands about jobs on a Slurm cluster: ends and output as `jobc run` has them, what the cluster refuses, stops."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from cluster import check, cluster, until  # noqa: E402
from harness import Harness  # noqa: E402
from place import SETTINGS, Place, lines_of, one  # noqa: E402

HARNESS = Harness("slurm submit", __doc__)


def ends(slurm):
    """Jobs end with the exit codes and the output of `jobc run`: success, failure, a time limit, retries."""
    cases = [
        ("succeeds", one("succeeds", 'echo "index $JOBC_INDEX of $JOBC_INSTANCES"\necho error >&2', 2), 0, "succeeded"),
        ("fails", one("fails", 'echo before\n[ "$JOBC_INDEX" = 0 ] || { sleep 1; exit 7; }\nsleep 60', 2), 1, "failed"),
        ("limited", one("limited", "echo before\nsleep 60", role="    timeout: 1s\n"), 1, "failed"),
        ("retried", one("retried", 'echo try\n[ -e again ] || { touch again; exit 9; }', more="",
                        role=f"    workdir: {slurm.home}\n    retry: {{max: 2, backoff: 0s}}\n"), 0, "succeeded"),
    ]
    for name, job, code, state in cases:
        place = Place(slurm, name, job)
        handle = place.submit()
        waited = place.jobc("wait", handle, code=None)
        detail = place.inspect(handle)
        if waited.returncode != code or detail["state"] != state:
            yield f"{name}: exit {waited.returncode} {waited.stdout}{waited.stderr}{detail}"
        (slurm.home / "again").unlink(missing_ok=True)
        here = place.jobc("run", "--allow-unenforced", "job.yaml", code=None)
        # What a local job writes to a file is gone with its container.
        if here.returncode != code and name != "retried":
            yield f"{name}: `jobc run` exits with {here.returncode}: {here.stderr}"
        (slurm.home / "again").unlink(missing_ok=True)
        there, local = place.jobc("logs", handle), here.stdout + here.stderr
        for task in ("main-0", "main-1") if "instances: 2" in job else ():
            said = sorted(line for line in lines_of(there, task) if not line.startswith("slurmstepd"))
            # A task that is stopped before it has begun says nothing.
            if said != sorted(lines_of(local, task)) and (said or (name, task) != ("fails", "main-0")):
                yield f"{name}: {said} and {lines_of(local, task)}"
        if name == "fails" and ("task `main-1` ended with exit code 7" not in waited.stdout or
                                ("main-1", 7) not in [(task["task"], task.get("exit_code")) for task in detail["task_list"] if task["state"] == "failed"]):
            # The other task is stopped because of it: by a signal, or before it has begun.
            yield f"{waited.stdout}{detail}"
        if name == "retried":
            states = [(task["attempt"], task["state"]) for task in detail["task_list"]]
            if states != [(1, "failed"), (2, "succeeded")]:
                yield f"{states}"
            if lines_of(place.jobc("logs", "--attempt", "2", handle), "main-0") != ["try"]:
                yield place.jobc("logs", handle)


def same(slurm):
    """The same job is one run, also for another process; `--new` and `--replace` make others; the cluster is the state."""
    place = Place(slurm, "same", one("same", "sleep 300"))
    first = place.submit()
    again = place.jobc("submit", "--target", "cluster", code=None)
    if again.stdout.strip() != first or "was submitted before" not in again.stderr:
        yield f"{first}: {again}"
    other = place.submit("--new")
    if other == first or len(place.queued()) != 2:
        yield f"{first} {other} {place.queued()}"
    comments = sorted(comment for _, comment in place.queued())
    plan = json.loads((place.run_directory(first) / "job.json").read_text())["plan"]
    expected = sorted(f"jobc:{handle.split('/')[1]}:{plan}:job" for handle in (first, other))
    if comments != expected:
        yield f"{comments} {expected}"
    listed = [handle for handle in place.jobc("ps", "--target", "cluster", "--quiet").split() if "/same-" in handle]
    if sorted(listed) != sorted([first, other]):
        yield f"{listed}"
    third = place.submit("--replace")
    until(lambda: len(place.queued()) == 1)
    if third in (first, other) or place.run_directory(first).exists():
        yield f"{third}"
    place.jobc("rm", "--force", third)
    until(lambda: not place.queued())
    if place.run_directory(third).exists() or place.jobc("inspect", third, code=None).returncode != 2:
        yield "it is still there"


def output(slurm):
    """`logs -f` shows everything once, also what a job writes while it is followed; tasks, roles and the last lines can be chosen."""
    run = 'for i in $(seq 200); do echo "$JOBC_INDEX line $i"; [ $((i % 40)) -ne 0 ] || sleep 0.2; done\nprintf unended'
    place = Place(slurm, "output", one("output", run, 3))
    handle = place.submit()
    whole = [f"line {number}" for number in range(1, 201)]
    followed = place.jobc("logs", "-f", handle)
    for index in range(3):
        expected = [f"{index} {line}" for line in whole] + ["unended"]
        if lines_of(followed, f"main-{index}") != expected:
            yield f"main-{index}: {len(lines_of(followed, f'main-{index}'))} lines"
    chosen = place.jobc("logs", "--tail", "2", handle, "main-1")
    if "main-0" in chosen or lines_of(chosen, "main-1") != ["1 line 200", "unended"]:
        yield chosen
    wrong = place.jobc("logs", handle, "other", code=None)
    if wrong.returncode != 2 or "has no task `other`" not in wrong.stderr:
        yield wrong.stderr
    both = place.jobc("submit", "--target", "cluster", "--new", "--follow")
    if len(lines_of(both, "main-2")) != 201:
        yield both[-500:]


def stops(slurm):
    """`stop` ends tasks with SIGTERM and the job with exit code 130, also one that needs longer than KillWait."""
    trap = "trap 'sleep 7 || :; echo bye; exit 0' TERM\necho up\nwhile :; do sleep 300 & wait; done"
    place = Place(slurm, "stop", one("stop", trap, role="    grace_period: 20s\n"))
    handle = place.submit("--allow-lossy")
    until(lambda: "up" in place.jobc("logs", handle))
    place.jobc("stop", handle)
    if place.jobc("wait", handle, code=130).strip() != f"{handle}: stopped" or "bye" not in place.jobc("logs", handle):
        yield f"{place.inspect(handle)} {place.jobc('logs', handle)}"


def stops_at_once(slurm):
    """A job that is stopped while it starts does not run on, also if no task had started yet that could get a signal."""
    place = Place(slurm, "stop-start", one("stop-start", "sleep 300"))
    for delay in (0, 0.1, 0.2, 0.3, 0.4):
        handle = place.submit("--new")
        time.sleep(delay)
        place.jobc("stop", handle)
        if place.inspect(handle)["state"] != "stopped":
            yield f"{delay} s: {place.inspect(handle)}"


def waits(slurm):
    """A job that waits says why, at the line of the job, and `stop` ends it, too."""
    place = Place(slurm, "stop-waiting", one("stop-waiting", "exit 0", more="timeout: 5m").replace("memory: 64MiB", "memory: 64MiB, gpu: 8"))
    slurm.write("hold.sh", "#!/bin/sh\nsleep 300\n", 0o755)
    held = slurm.submit(slurm.home, "hold.sh", "--exclusive", "--nodes=8")
    until(lambda: slurm.show(held)["JobState"] == "RUNNING")
    handle = place.submit()
    until(lambda: place.inspect(handle)["reasons"] not in ([], ["Slurm has not looked at it yet"]))
    detail = place.inspect(handle)
    if detail["state"] != "pending" or detail["reasons"] != ["job.yaml:8:45: it is next, and waits for free nodes"]:
        yield f"{detail}"
    place.jobc("stop", handle)
    if place.inspect(handle)["state"] != "stopped":
        yield f"{place.inspect(handle)}"
    slurm.user("scancel", held)


def requeue(slurm):
    """A job that Slurm starts again has another attempt of each task; a node that goes down ends one that has no retry."""
    run = 'echo "start ${SLURM_RESTART_COUNT-0}"\n[ "${SLURM_RESTART_COUNT-0}" -ge 1 ] || exit 5'
    place = Place(slurm, "requeue", one("requeue", run, 2, role="    retry: {max: 1, scope: job}\n"))
    handle = place.submit()
    number = (place.run_directory(handle) / "jobs/job").read_text().strip()
    until(lambda: slurm.show(number).get("Restarts") == "1" and slurm.show(number)["JobState"] == "PENDING", 40)
    waits = place.inspect(handle)
    if waits["state"] != "pending" or not any("Slurm lets a requeued job wait" in reason for reason in waits["reasons"]):
        yield f"{waits}"
    time.sleep(3)
    slurm.user("scontrol", "update", f"jobid={number}", "starttime=now")
    place.jobc("wait", handle)
    tasks = [(task["task"], task["attempt"], task["state"], task.get("exit_code")) for task in place.inspect(handle)["task_list"]]
    if [task for task in tasks if task[0] == "main-1"] not in (
            [("main-1", 1, "failed", 5), ("main-1", 2, "succeeded", 0)], [("main-1", 1, "failed", 143), ("main-1", 2, "succeeded", 0)]):
        yield f"{tasks}"
    if lines_of(place.jobc("logs", "--attempt", "2", handle), "main-0") != ["start 1"]:
        yield place.jobc("logs", handle)
    events = [line.split()[1:3] for line in place.jobc("events", handle).splitlines()]
    wanted = [["job", "Submitted:"], ["job", "Started:"], ["job", "Requeued:"], ["job", "Restarted:"], ["job", "Ended:"]]
    if [event for event in events if event[0] == "job"] != wanted:
        yield f"{events}"


def node_down(slurm):
    """A job whose node goes down has failed, says so, and still does when Slurm has forgotten it; nothing is left of its containers."""
    for name, settings, backends in (("down", SETTINGS, "[slurm]"), ("down-contained", "directory: {directory}", "[oci, slurm]")):
        mark = f"sleep 3{len(name)}123"
        place = Place(slurm, name, one(name, f"{mark}; exit"), settings, backends)
        handle = place.submit()
        until(lambda: place.inspect(handle)["tasks"]["active"] == 1 and left(mark))  # noqa: B023
        node = place.inspect(handle)["task_list"][0]["node"]
        subprocess.run(["scontrol", "update", f"nodename={node}", "state=down", "reason=test"], check=True, env=slurm.environment())
        try:
            waited = place.jobc("wait", handle, code=1)
            detail = place.inspect(handle)
            if "one of its nodes failed" not in waited or detail["task_list"][0]["state"] != "failed":
                yield f"{name}: {waited}{detail}"
            until(lambda: not left(mark))  # noqa: B023
        finally:
            subprocess.run(["scontrol", "update", f"nodename={node}", "state=resume"], check=False, capture_output=True, env=slurm.environment())
        # The script may have been able to write it.
        events = (place.run_directory(handle) / "events/job").read_text()
        if "verdict NODE_FAIL" not in events and "ended 143 NodeDown" not in events:
            yield f"{name}: Slurm's word is not kept: {events}"


def left(mark):
    """The processes of a command."""
    return subprocess.run(["pgrep", "--full", f"^{mark}$"], capture_output=True, text=True, check=False).stdout.split()


def matrix(slurm):
    """A matrix is one array with as many jobs at once as the job says, and each job is a run of its own."""
    run = "echo value ${{ matrix.n }} of $JOBC_JOB in $SLURM_ARRAY_JOB_ID\n[ ${{ matrix.n }} != 3 ] || exit 4"
    place = Place(slurm, "matrix", one("matrix", run, more="matrix: {axes: {n: [1, 2, 3, 4]}, max_parallel: 2}"))
    handles = place.submit().split()
    codes = [place.jobc("wait", handle, code=None).returncode for handle in handles]
    said = ["\n".join(lines_of(place.jobc("logs", handle), "main-0")) for handle in handles]
    arrays = {text.split()[-1] for text in said}
    if codes != [0, 0, 1, 0] or [text.rsplit(" ", 2)[0] for text in said] != [f"value {n} of matrix-{n - 1}" for n in (1, 2, 3, 4)] or len(arrays) != 1:
        yield f"{codes} {said}"
    if place.submit().split() != handles:
        yield "the same matrix is submitted twice"
    place.jobc("rm", *handles[:2])
    again = place.submit().split()
    numbers = [(place.run_directory(handle) / "jobs/job").read_text().split("_")[0].strip() for handle in again]
    if again[2:] != handles[2:] or numbers[2:] != [arrays.copy().pop()] * 2 or len(set(numbers)) != 3:
        yield f"two jobs that were removed: {again} {numbers}"


CHAIN = """\
version: 1
name: chain
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


def chain(slurm):
    """Several Slurm jobs are one job; none of them runs after one that failed."""
    for first, code, lines in (("echo prepare", 0, ["prepare", "train", "train", "report"]), ("exit 3", 1, [])):
        place = Place(slurm, "chain", CHAIN.format(first=first))
        handle = place.submit()
        place.jobc("wait", handle, code=code)
        detail = place.inspect(handle)
        followed = [line.split("|", 1)[1].strip() for line in place.jobc("logs", handle).splitlines() if "|" in line]
        said = [line for line in followed if not line.startswith(("jobc:", "role"))]
        if sorted(said) != sorted(lines) or len(detail["task_list"]) != 4 or detail["kind"].count(",") != 3:
            yield f"{first}: {followed} {detail}"
        states = [task["state"] for task in detail["task_list"]]
        if states != (["succeeded"] * 4 if code == 0 else ["failed"] + ["stopped"] * 3):
            yield f"{first}: {states}"


def down(slurm):
    """A controller that hangs or is gone is an error within a bounded time; output can be read meanwhile, and nothing is lost."""
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
            if done.returncode != 3 or "error: Slurm does not answer: " not in done.stderr or time.monotonic() - since > 30:
                yield f"{words} after {time.monotonic() - since:.1f} s: {done}"
        since = time.monotonic()
        if "| here" not in place.jobc("logs", handle, SLURM_CONF=str(conf)) or time.monotonic() - since > 5:
            yield f"logs after {time.monotonic() - since:.1f} s"
    finally:
        controller.send_signal(signal.SIGCONT)
    # The submission that was refused left nothing, and the job goes on until it is stopped.
    if [*place.directory.glob("runs/controller-*")] != [place.run_directory(handle)] or len(place.queued()) != 1:
        yield f"{place.queued()}"
    place.jobc("stop", handle)
    place.jobc("wait", handle, code=130)


def numbers(slurm):
    """A number that Slurm gave to another job since, or does not know any more, is not taken for that of the run."""
    slurm.write("hold.sh", "#!/bin/sh\nsleep 300\n", 0o755)
    other = slurm.submit(slurm.home, "hold.sh")
    until(lambda: slurm.show(other)["JobState"] == "RUNNING")
    for name, number, message in (("again", other, "its script was killed, and Slurm no longer knows it"),
                                  ("forgotten", "999999", "its script was killed, and Slurm no longer knows it")):
        place = Place(slurm, f"numbers-{name}", one(f"numbers-{name}", "sleep 300"))
        handle = place.submit()
        until(lambda: place.inspect(handle)["tasks"]["active"] == 1)  # noqa: B023
        run = place.run_directory(handle)
        (own,) = [own for own, _ in place.queued()]
        subprocess.run(["pkill", "-KILL", "--full", f"job0*{own}/slurm_script"], check=True)
        slurm.ends(own)
        (run / "jobs/job").write_text(f"{number}\n")
        place.jobc("stop", handle)
        detail = place.inspect(handle)
        if detail["state"] != "failed" or detail.get("message") != message:
            yield f"{name}: {detail}"
        place.jobc("rm", "--force", handle)
    if slurm.show(other)["JobState"] != "RUNNING":
        yield "a job of somebody else was stopped"
    slurm.user("scancel", other)


def refused(slurm):
    """What the cluster refuses is said before anything is created, at the line of the job or with the setting."""
    for more, settings, words in (
            ("", SETTINGS + ", partition: nowhere", ["invalid partition name", "the setting `slurm.partition` of the target"]),
            ("", SETTINGS + ", licenses: 'nothing:1'", ["license", "the setting `slurm.licenses` of the target"]),
            ("", SETTINGS + ", constraint: nothing", ["invalid feature", "the setting `slurm.constraint` of the target"]),
            ("", SETTINGS + ", extra: {{frobnicate: 1}}", ["this release has no option `--frobnicate`"]),
            ("", SETTINGS + ", extra: {{comment: mine}}", ["`comment` of `sbatch` has the name of the run", "the setting `slurm.extra.comment` of the target"]),
            ("timeout: 3h", SETTINGS + ", partition: short", ["`timeout` is 180 minutes, and the partition `short` allows 60", "job.yaml:4:10"]),
            ("", SETTINGS + ", release: '23.11'", ["the target says Slurm 23.11", "the cluster has 22.05"])):
        place = Place(slurm, "refused", one("refused", "sleep 300", more=more), settings)
        done = place.jobc("submit", "--target", "cluster", "--dry-run", code=None)
        if any(word not in done.stderr for word in words) or done.returncode != (0 if "release" in settings else 1):
            yield f"{settings}: exit {done.returncode} {done.stderr}"
    for job, words in ((one("refused", "true", 9), ["needs 9 nodes, and the partition `all` has 8", "job.yaml:7:16"]),
                       (one("refused", "true").replace("64MiB", "9TiB"), ["node configuration is not available", "job.yaml:8:"])):
        place = Place(slurm, "refused", job)
        done = place.jobc("submit", "--target", "cluster", code=None)
        if any(word not in done.stderr for word in words) or done.returncode != 1:
            yield f"exit {done.returncode} {done.stderr}"
    if [line for line in place.queued() if ":refused" in line[1]] or [*place.directory.glob("runs/refused*")]:
        yield "something was created"
    checks = place.jobc("targets", "check", "cluster", code=None)
    if checks.returncode or "slurm-wlm 22.05" not in checks.stdout or "MISSING" in checks.stdout:
        yield f"{checks}"


def queue(slurm):
    """Many queued jobs are listed by one question."""
    place = Place(slurm, "queue", one("queue", "sleep 300\necho ${{ matrix.n }}", more=f"matrix: {{axes: {{n: {list(range(200))}}}}}"))
    since = time.monotonic()
    handles = place.submit().split()
    submitted = time.monotonic() - since
    since = time.monotonic()
    listed = place.jobc("ps", "--target", "cluster", "--quiet").split()
    seconds = time.monotonic() - since
    HARNESS.note(f"200 jobs: submitted in {submitted:.2f} s, listed in {seconds:.2f} s")
    if not set(handles) <= set(listed) or len(set(handles)) != 200 or seconds > 5:
        yield f"{len(handles)} submitted, {len(listed)} listed in {seconds:.2f} s"
    slurm.user("scancel", "--user", slurm.account.name)
    until(lambda: not place.queued(), 60)


def kills(slurm):
    """A submission that is killed anywhere neither loses nor doubles its job."""
    seed = HARNESS.options.seed if HARNESS.options.seed is not None else random.randrange(1 << 32)
    random_, killed, jobs = random.Random(seed), 0, 0
    place = Place(slurm, "kills", one("kills", "sleep 600").replace("image: host", "image: host\ntimeout: 30m"))
    since = time.monotonic()
    place.submit()
    duration = time.monotonic() - since
    place.jobc("submit", "--target", "cluster", "--replace")
    while killed < HARNESS.options.kills:
        jobs += 1
        place = Place(slurm, "kills", one("kills", f"sleep 600; echo {jobs}"))
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
        name = handle.split("/")[1]
        mine = [line for line in place.queued() if line[1].startswith(f"jobc:{name}:")]
        recorded = (place.run_directory(handle) / "jobs/job").read_text().strip()
        if [number for number, _ in mine] != [recorded] or slurm.show(recorded).get("Reason") == "JobHeldUser":
            yield f"seed {seed}: after kill {killed}: {mine}, {recorded}, {slurm.show(recorded)}"
        slurm.user("scancel", *(number for number, _ in place.queued()))
        until(lambda: not place.queued())
    HARNESS.note(f"{killed} kills of submissions of {jobs} jobs, seed {seed}")


def speed(slurm):
    """A submission takes little longer than `sbatch`."""
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
    HARNESS.note(f"sbatch {alone * 1000:.0f} ms, jobc submit {ours * 1000:.0f} ms, of which checks {checked * 1000:.0f} ms")
    # The program may be a debug build on a busy host.
    if ours - alone > 1.5:
        yield f"sbatch {alone:.3f} s, jobc submit {ours:.3f} s"
    slurm.user("scancel", "--user", slurm.account.name)


CASES = [ends, kills, stops, stops_at_once, requeue, output, same, matrix, chain, refused, numbers, waits, node_down, down, queue, speed]
ALONE = {waits, node_down, down, queue, speed}
# A quick run leaves out those that take long for what they find.
SLOW = {output, chain, queue, requeue, down, numbers}


def main():
    HARNESS.parser.add_argument("--kills", type=int, default=12)
    HARNESS.parser.add_argument("--seed", type=int)
    HARNESS.parser.add_argument("--quick", action="store_true", help="leave out cases that take long")
    options = HARNESS.parse()
    with cluster(HARNESS) as slurm:
        chosen = [case for case in CASES if not (options.quick and case in SLOW)]
        # Some use all nodes, or end all jobs of the user.
        check(HARNESS, [case for case in chosen if case not in ALONE], slurm, 5)
        check(HARNESS, [case for case in chosen if case in ALONE], slurm)
    HARNESS.end()


if __name__ == "__main__":
    main()
