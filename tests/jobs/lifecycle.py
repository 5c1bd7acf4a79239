#!/usr/bin/env python3
"""Tests the life cycle of jobs with real tasks: order, readiness, gangs, retries, timeouts, and how each end is reported.

`--user range` and `--user single` run as an unprivileged user.
"""

import json
import re
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "runtime"))

from isolation import jobs_of, problems  # noqa: E402
from harness import Harness  # noqa: E402

FOREVER = "sleep 1000"
SERVE = "python3 -m http.server $JOBC_PORT_HTTP >/dev/null 2>&1"
HTTP = {"ports": {"http": "auto"}}


def main():
    harness = Harness("lifecycle", __doc__)
    with jobs_of(harness) as jobs:
        for case in (order, readiness, not_ready, keep_ready, retries, retry_scopes, timeouts, grace, results, ends, last_lines, gang):
            if harness.wants(case.__name__):
                harness.check(case.__name__, problems(case, jobs))
    harness.end()


def run(jobs, name, roles, code, end, **more):
    """Runs a job to its end, which must be `code` and `end`; returns its events and its record."""
    roles = {role: {**({"shell": "sh"} if isinstance(what["run"], str) else {}), **what} for role, what in roles.items()}
    path = jobs.directory / f"{name}.json"
    path.write_text(json.dumps({"version": 1, "name": name, "image": "host", "roles": roles, **more}))
    words = ["--allow-unenforced"] if jobs.account else []
    answer = jobs.call("run", *words, str(path))
    record = jobs.record(name)
    assert record and record.get("end"), f"it did not end: exit {answer.returncode}\n{answer.stderr}"
    explanation = record["end"]["explanation"]
    assert answer.returncode == code and re.fullmatch(end, explanation), f"exit {answer.returncode}: {explanation}\n{answer.stderr}"
    assert explanation in answer.stderr, f"not reported: {answer.stderr}"
    lines = jobs.call("events", "--format", "json", name).stdout.splitlines()
    return [json.loads(line) for line in lines], record


def times(events, kind):
    """The time of the first such event of each task, by the task's name."""
    found = {}
    for event in events:
        if event["event"] == kind and "task" in event:
            found.setdefault(event["task"], event["time"])
    return found


def order(jobs):
    """Each role starts when its `needs` are met, and not before."""
    roles = {
        "last": {"run": "true", "needs": {"left": "succeeded", "right": "started"}},
        "left": {"run": "sleep 0.3", "needs": ["first"]},
        "right": {"run": FOREVER, "needs": ["first"]},
        "first": {"run": "sleep 0.2", "instances": 2},
    }
    roles["last"]["completion"] = {"min_succeeded": 1}
    events, _ = run(jobs, "tested-order", roles, 0, r"succeeded: last-0 succeeded")
    started, ended = times(events, "started"), times(events, "ended")
    for later, sooner in (("left-0", ended["first-0"]), ("right-0", ended["first-1"]), ("last-0", ended["left-0"]),
                          ("last-0", started["right-0"])):
        if started[later] < sooner:
            yield f"{later} started at {started[later]}, before {sooner}"
    unreachable = {"a": {"run": "exit 3", "completion": {"min_failed": "none"}}, "b": {"run": "true", "needs": ["a"]}}
    run(jobs, "tested-never", unreachable, 1, r"failed: `b` can never start: it needs `a` to have succeeded, and it failed \(a-0: exit 3\)")


def readiness(jobs):
    """Four kinds of readiness, each reached after a while."""
    soon = {"every": "1s", "timeout": "20s"}
    for network in ("host", "job", "none"):
        name = f"tested-ready-{network}"
        roles = {
            "port": {"run": f"sleep 0.4; {SERVE}", "resources": HTTP, "ready": {"port": "http", **soon}},
            "page": {"run": f"sleep 0.4; {SERVE}", "resources": HTTP, "ready": {"http": {"port": "http", "path": "/"}, **soon}},
            "file": {"run": f"sleep 0.4; touch /tmp/there; {FOREVER}", "ready": {"exec": ["test", "-e", "/tmp/there"], **soon}},
            "line": {"run": f"echo listening; sleep 0.4; echo listening on 80; {FOREVER}", "ready": {"log": "^listening on [0-9]+$", **soon}},
        }
        client = {"run": "true", "needs": {role: "ready" for role in roles}, "completion": {"min_succeeded": 1}}
        events, record = run(jobs, name, {**roles, "client": client}, 0, "succeeded: .*", network=network)
        ready, start_times = times(events, "ready"), times(events, "started")["client-0"]
        if sorted(ready) != ["file-0", "line-0", "page-0", "port-0"] or max(ready.values()) > start_times:
            yield f"{network}: ready at {ready}, started at {start_times}"
        if sum("ready" in task for task in record["tasks"]) != 4:
            yield f"{network}: {record['tasks']}"


def not_ready(jobs):
    """A task that is not ready in time has failed, with the reason."""
    tries = {"every": "1s", "try_timeout": "1s", "timeout": "2s"}
    for ready, why in (
        ({"port": "http"}, r"cannot connect to port \d+: connection refused \(ECONNREFUSED\)"),
        ({"exec": ["sleep", "100"]}, "`sleep` did not end within [0-9.]+s"),
        ({"exec": ["false"]}, "`false` ended with exit code 1"),
        ({"log": "never"}, "no line matches `never`"),
    ):
        roles = {"a": {"run": FOREVER, "resources": HTTP, "ready": {**ready, **tries}}}
        run(jobs, "tested-late", roles, 1, rf"failed: a-0: not ready within 2s: {why}")
    roles = {"a": {"run": f"{SERVE}", "resources": HTTP, "ready": {"http": {"port": "http", "path": "/nothing"}, **tries}}}
    run(jobs, "tested-late", roles, 1, r"failed: .*`/nothing` of port \d+ answers with status 404")
    yield from ()


def keep_ready(jobs):
    """With `keep`, a task that is not ready any more continues, and is reported."""
    script = f"{SERVE} & sleep 2; kill $!; sleep 4; {SERVE} & sleep 3"
    roles = {"a": {"run": script, "resources": HTTP, "ready": {"port": "http", "every": "1s", "keep": True}}}
    events, _ = run(jobs, "tested-kept", roles, 0, "succeeded: its task succeeded")
    kinds = [event["event"] for event in events if event["event"] in ("ready", "not-ready")]
    if kinds != ["ready", "not-ready", "ready"]:
        yield kinds


def retries(jobs):
    """A task is retried in a new container, after a backoff that doubles."""
    script = "echo $JOBC_INDEX; test ! -e /tmp/before || exit 9; touch /tmp/before; exit 7"
    roles = {"a": {"run": script, "retry": {"max": 2, "backoff": "1s"}}, "b": {"run": FOREVER}}
    started_at = time.monotonic()
    events, record = run(jobs, "tested-again", roles, 1, r"failed: a-0, attempt 3: exit 7")
    if time.monotonic() - started_at < 3:
        yield "it did not wait 1 and 2 seconds"
    waits = [event["detail"]["backoff_ms"] for event in events if event["event"] == "retried"]
    earlier = [attempt["exit_code"] for attempt in record["tasks"][0]["earlier"]]
    if waits != [1000, 2000] or earlier != [7, 7]:
        yield f"waits {waits}, exit codes {earlier}"
    roles["a"]["retry"]["on_exit_codes"] = [8]
    run(jobs, "tested-final", roles, 1, r"failed: a-0: exit 7")


def retry_scopes(jobs):
    """A whole role, and a whole job, are retried; their output is kept."""
    for scope, counts in (("role", {"first": 1, "a": 2}), ("job", {"first": 2, "a": 2})):
        place = jobs.directory / f"again-{scope}"
        place.mkdir()
        place.chmod(0o777)
        script = "echo x >> /output/a-$JOBC_INDEX; test $JOBC_INDEX = 0 || sleep 0.5; test $(wc -l < /output/a-0) = 2 || exit 1"
        roles = {
            "first": {"run": "echo x >> /output/first"},
            "a": {"run": script, "instances": 2, "needs": ["first"], "retry": {"max": 1, "scope": scope, "backoff": "1s"}},
        }
        outputs = {"out": {"source": str(place), "mount": "/output"}}
        run(jobs, f"tested-{scope}", roles, 0, "succeeded: all 3 tasks succeeded", outputs=outputs)
        wrote = {role: len((place / file).read_text().split()) for role, file in (("first", "first"), ("a", "a-0"))}
        if wrote != counts:
            yield f"{scope}: {wrote}"


def timeouts(jobs):
    """The timeout of an attempt, which is retried, and that of the job."""
    roles = {"a": {"run": FOREVER, "timeout": "1s", "grace_period": "1s", "retry": {"max": 1, "backoff": "0s", "on_exit_codes": [124]}}}
    run(jobs, "tested-timeout", roles, 1, r"failed: a-0, attempt 2: time limit 1s reached")
    # The job's time runs while its containers are made, which on a busy host may take a second.
    roles = {"a": {"run": FOREVER, "instances": 2}, "b": {"run": "true"}}
    run(jobs, "tested-deadline", roles, 124, "timed out after 5s: 2 tasks were still running", timeout="5s")
    roles = {"a": {"run": "trap '' TERM; while :; do sleep 0.1; done", "grace_period": "2s"}}
    started_at = time.monotonic()
    run(jobs, "tested-grace", roles, 124, "timed out after 5s: 1 task was still running", timeout="5s")
    if not 6.9 < time.monotonic() - started_at < 15:
        yield f"TERM and KILL took {time.monotonic() - started_at:.1f} s"


# Saves a checkpoint on TERM and on USR1, as trainers do; says when it listens.
TRAINER = """import signal, sys, time
def save(number, frame):
    print("saved on", signal.Signals(number).name, flush=True)
    if number == signal.SIGTERM:
        sys.exit(0)
signal.signal(signal.SIGTERM, save)
signal.signal(signal.SIGUSR1, save)
print("training", flush=True)
while True:
    time.sleep(0.05)
"""


def grace(jobs):
    """A trainer behind a shell, a pipe, another shell or `exec` gets TERM and USR1, and its grace period."""
    train = 'python3 -c "$TRAINER"'
    runs = {
        "shell": f"{train}\necho done",
        "pipe": f"{train} | {{ trap '' TERM USR1; cat; }}\necho done",
        "nested": f"sh -c '{train}; true'\necho done",
        "exec": f"exec {train}",
        "background": f"{train} &\nwait",
    }
    for name, script in runs.items():
        job = f"tested-{name}"
        path = jobs.directory / f"{job}.json"
        roles = {"a": {"shell": "sh", "run": script, "env": {"TRAINER": TRAINER}, "grace_period": "20s"}}
        path.write_text(json.dumps({"version": 1, "name": job, "image": "host", "roles": roles}))
        words = ["--allow-unenforced"] if jobs.account else []
        answer = jobs.call("run", "--detach", *words, str(path))
        assert answer.returncode == 0, answer.stderr
        shows = lambda text: text in jobs.call("logs", job).stdout  # noqa: E731
        wait_until(lambda: shows("training"), f"{name}: it does not train")
        # To whoever is left, so that the trainer is behind no signal that another one took.
        answer = jobs.call("kill", "-s", "USR1", job)
        wait_until(lambda: shows("saved on SIGUSR1"), f"{name}: USR1 did not arrive: {answer.stderr}")
        began = time.monotonic()
        answer = jobs.call("stop", job)
        took = time.monotonic() - began
        if not shows("saved on SIGTERM"):
            yield f"{name}: the checkpoint is lost: {jobs.call('logs', job).stdout!r} {answer.stderr}"
        if took > 10:
            yield f"{name}: it was killed after its grace period: {took:.1f} s"


def wait_until(condition, message):
    """Waits at most ten seconds."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, message
        time.sleep(0.05)


def results(jobs):
    """Thresholds, and a program that cannot be executed."""
    partial = {"a": {"run": "test $JOBC_INDEX = 0 || exit $JOBC_INDEX", "instances": 3, "completion": {"min_failed": "none"}}}
    run(jobs, "tested-allowed", partial, 0, "succeeded: all 3 tasks ended, and the 2 that failed were allowed to")
    partial["a"]["completion"] = {"min_failed": 2}
    _, record = run(jobs, "tested-some", partial, 1, r"failed: `a` reached min_failed 2 \(a-[12]: exit [12]\)")
    missing = {"a": {"run": ["nowhere-to-be-found"]}, "b": {"run": FOREVER}}
    run(jobs, "tested-missing", missing, 1, r"failed: a-0: exit 127, .*cannot execute `nowhere-to-be-found`.*")
    if record["end"].get("task", "")[:2] != "a-":
        yield f"the deciding task: {record['end']}"


CRASH = "import ctypes; ctypes.string_at(0)"


def ends(jobs):
    """A signal is named, that of a shell's command too; the reason is told once, and tables do not repeat the state."""
    cases = {
        "crash": (["python3", "-c", CRASH], r"killed by SIGSEGV (segmentation fault)", "SIGSEGV"),
        "behind-a-shell": (f"python3 -c '{CRASH}'; exit $?", "exit 139: a command was killed by SIGSEGV (segmentation fault)", None),
        "pipe": ("set -o pipefail; yes | head -1", "exit 141: a reader of the pipe closed (SIGPIPE)", None),
        "absent": ("nowhere-to-be-found", "exit 127: a command was not found", None),
        "plain": ("exit 3", "exit 3", None),
    }
    for name, (command, reason, signal) in cases.items():
        job = f"tested-{name}"
        roles = {"a": {"run": command, **({"shell": "bash"} if isinstance(command, str) else {})}}
        answer, record = attempt(jobs, job, roles)
        if record["end"]["explanation"] != f"failed: a-0: {reason}" or record["tasks"][0].get("signal") != signal:
            yield f"{name}: {record['end']}, {record['tasks'][0]}"
        if answer.stderr.count(reason) != 1 or f"jobc: {record['id']}: failed: a-0: {reason}\n" not in answer.stderr:
            yield f"{name}: not told once: {answer.stderr}"
        tables = jobs.call("ps", "--all").stdout, jobs.call("ps", job).stdout, jobs.call("inspect", job).stdout
        row = next(line for line in tables[0].splitlines() if line.startswith(record["id"]))
        if not row.endswith(f"  a-0: {reason}") or row.count("failed") != 2:
            yield f"{name}: `ps --all` repeats the state: {row}"
        if not tables[1].rstrip().endswith(reason.removeprefix("exit ")) or f"end          a-0: {reason}\n" not in tables[2]:
            yield f"{name}: {tables}"


def last_lines(jobs):
    """After the end of a task among others, the last lines of its stderr and the command that shows all of it."""
    script = r"for i in $(seq 30); do echo to stdout; done; for i in $(seq 12); do printf '\033[31mwhy\033[0m\t%s\n' $i >&2; done; sleep 0.6; exit 3"
    roles = {"a": {"run": script, "shell": "bash"},
             "b": {"run": "for i in $(seq 100); do echo still at work; sleep 0.05; done", "shell": "bash", "instances": 2, "grace_period": "1s"}}
    for words in ((), ("--no-logs",), ("--quiet",)):
        answer, record = attempt(jobs, "tested-last", roles, *words)
        last = "".join(f"  why    {number}\n" for number in range(3, 13))
        end = (f"jobc: {record['id']}: failed: a-0: exit 3\njobc: the last lines of a-0 on stderr:\n{last}"
               f"jobc: all of its output: `jobc logs {record['id']} a-0`\n")
        if not answer.stderr.endswith(end):
            yield f"{words}: {answer.stderr[-1500:]}"
        others = answer.stderr.removesuffix(end)
        stopping = "jobc: a-0: exit 3; stopping the other tasks\n" in others
        stopped = re.search(r"jobc: b-[01](, b-[01]| stopped\njobc: b-[01]) stopped\n", others)
        if words != ("--quiet",) and not (stopping and stopped):
            yield f"{words}: the others: {others[-1500:]}"
    # A job that succeeds, or is stopped, repeats nothing.
    answer, _ = attempt(jobs, "tested-well", {"a": {"run": "echo fine >&2", "shell": "sh"}}, "--no-logs", code=0)
    if "fine" in answer.stderr or "jobc logs" in answer.stderr:
        yield f"after a success: {answer.stderr}"


def attempt(jobs, name, roles, *words, code=1):
    """Runs a job to its end; returns the output and the record."""
    path = jobs.directory / f"{name}.json"
    path.write_text(json.dumps({"version": 1, "name": name, "image": "host", "roles": roles}))
    answer = jobs.call("run", *words, *(["--allow-unenforced"] if jobs.account else []), str(path))
    assert answer.returncode == code, f"exit {answer.returncode}: {answer.stderr}"
    return answer, jobs.record(name)


def gang(jobs):
    """No program of a gang starts before its last container is created."""
    for value, together in (("required", True), ("auto", True)):
        roles = {"a": {"run": "sleep 0.2", "instances": 10}, "b": {"run": "sleep 0.2", "instances": 5}}
        events, _ = run(jobs, f"tested-gang-{value}", roles, 0, "succeeded: all 15 tasks succeeded", gang=value)
        made, start_times = times(events, "created"), times(events, "started")
        if together and max(made.values()) > min(start_times.values()):
            yield f"{value}: made until {max(made.values())}, begun from {min(start_times.values())}"
        if len(made) != 15:
            yield f"{value}: {len(made)} made"


if __name__ == "__main__":
    main()
