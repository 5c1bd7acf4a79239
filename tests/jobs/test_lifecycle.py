"""Tests the life cycle of jobs with real tasks: order, readiness, gangs, retries, timeouts, and how each end is reported."""

import json
import re
import time

import pytest

from command_line import SERVE, expect, run_roles as run

# It measures seconds, and once waited 20 s beside a virtual machine.
pytestmark = [pytest.mark.isolated, pytest.mark.alone, pytest.mark.duration(45), pytest.mark.accounts("root", slow=("range", "single"))]

FOREVER = "sleep 1000"
HTTP = {"ports": {"http": "auto"}}


def times(events, kind):
    """The time of the first such event of each task, by the task's name."""
    found = {}
    for event in events:
        if event["event"] == kind and "task" in event:
            found.setdefault(event["task"], event["time"])
    return found


def test_each_role_starts_when_its_needs_are_met(jobs):
    """And not before."""
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
        assert started[later] >= sooner, f"{later} started at {started[later]}, before {sooner}"
    unreachable = {"a": {"run": "exit 3", "completion": {"min_failed": "none"}}, "b": {"run": "true", "needs": ["a"]}}
    run(jobs, "tested-never", unreachable, 1, r"failed: `b` can never start: it needs `a` to have succeeded, and it failed \(a-0: exit 3\)")


def test_a_run_that_only_waits_names_what_it_waits_for(jobs):
    roles = {"ps": {"run": FOREVER}, "worker": {"run": "true", "needs": ["ps"]}}
    path = jobs.directory / "waits.json"
    path.write_text(json.dumps({"version": 1, "name": "tested-waits", "image": "host", "grace_period": "1s", "roles": roles}))
    client = jobs.run(str(path))
    jobs.until("tested-waits", lambda record: record["tasks"][0]["state"] == "running")
    waits = "role `worker` waits until `ps` has succeeded; for a server, write `needs: {ps: started}`, or `ready`\n"
    expect(jobs.call("ps", "tested-waits"), out=r"worker-0 +waiting", error=f"^jobc: {waits}$")
    expect(jobs.call("ps", "--quiet", "tested-waits"), error="^$")
    expect(jobs.call("why", "tested-waits"), out=rf"^tested-waits\.1: running\ntested-waits\.1: \S*waits\.json:1:\d+: {waits}$")
    time.sleep(11)
    jobs.call("stop", "tested-waits")
    out, _ = client.communicate(timeout=20)
    assert out.count(f"jobc: note: {waits}") == 1, out
    expect(jobs.call("why", "tested-waits"), out=r"^tested-waits\.1: stopped[^\n]*\n$")


@pytest.mark.parametrize("network", ("host", "job", "none"))
def test_tasks_become_ready(jobs, network):
    """Four kinds of readiness, each reached after a while."""
    soon = {"every": "1s", "timeout": "20s"}
    roles = {
        "port": {"run": f"sleep 0.4; {SERVE}", "resources": HTTP, "ready": {"port": "http", **soon}},
        "page": {"run": f"sleep 0.4; {SERVE}", "resources": HTTP, "ready": {"http": {"port": "http", "path": "/"}, **soon}},
        "file": {"run": f"sleep 0.4; touch /tmp/there; {FOREVER}", "ready": {"exec": ["test", "-e", "/tmp/there"], **soon}},
        "line": {"run": f"echo listening; sleep 0.4; echo listening on 80; {FOREVER}", "ready": {"log": "^listening on [0-9]+$", **soon}},
    }
    client = {"run": "true", "needs": {role: "ready" for role in roles}, "completion": {"min_succeeded": 1}}
    events, record = run(jobs, f"tested-ready-{network}", {**roles, "client": client}, 0, "succeeded: .*", network=network)
    ready, started = times(events, "ready"), times(events, "started")["client-0"]
    assert sorted(ready) == ["file-0", "line-0", "page-0", "port-0"] and max(ready.values()) <= started
    assert sum("ready" in task for task in record["tasks"]) == 4, record["tasks"]


@pytest.mark.parametrize("program, ready, why", [
    (FOREVER, {"port": "http"}, r"not ready within 2s: cannot connect to port \d+: connection refused \(ECONNREFUSED\)"),
    (FOREVER, {"exec": ["sleep", "100"]}, "not ready within 2s: `sleep` did not end within [0-9.]+s"),
    (FOREVER, {"exec": ["false"]}, "not ready within 2s: `false` ended with exit code 1"),
    (FOREVER, {"log": "never"}, "not ready within 2s: no line matches `never`"),
    (SERVE, {"http": {"port": "http", "path": "/nothing"}}, r".*`/nothing` of port \d+ answers with status 404"),
], ids=["port", "command", "exit code", "log", "page"])
def test_a_task_that_is_not_ready_in_time_has_failed(jobs, program, ready, why):
    tries = {"every": "1s", "try_timeout": "1s", "timeout": "2s"}
    run(jobs, "tested-late", {"a": {"run": program, "resources": HTTP, "ready": {**ready, **tries}}}, 1, rf"failed: a-0: {why}")


def test_a_task_that_is_not_ready_any_more_continues(jobs):
    """With `keep`; it is reported."""
    script = f"{SERVE} & sleep 2; kill $!; sleep 4; {SERVE} & sleep 3"
    roles = {"a": {"run": script, "resources": HTTP, "ready": {"port": "http", "every": "1s", "keep": True}}}
    events, _ = run(jobs, "tested-kept", roles, 0, "succeeded: its task succeeded")
    kinds = [event["event"] for event in events if event["event"] in ("ready", "not-ready")]
    assert kinds == ["ready", "not-ready", "ready"], kinds


def test_a_task_is_retried_after_a_backoff_that_doubles(jobs):
    """In a new container."""
    script = "echo $JOBC_INDEX; test ! -e /tmp/before || exit 9; touch /tmp/before; exit 7"
    roles = {"a": {"run": script, "retry": {"max": 2, "backoff": "1s"}}, "b": {"run": FOREVER}}
    started_at = time.monotonic()
    events, record = run(jobs, "tested-again", roles, 1, r"failed: a-0, attempt 3: exit 7")
    assert time.monotonic() - started_at >= 3, "it did not wait 1 and 2 seconds"
    waits = [event["detail"]["backoff_ms"] for event in events if event["event"] == "retried"]
    earlier = [attempt["exit_code"] for attempt in record["tasks"][0]["earlier"]]
    assert waits == [1000, 2000] and earlier == [7, 7], f"waits {waits}, exit codes {earlier}"
    roles["a"]["retry"]["on_exit_codes"] = [8]
    run(jobs, "tested-final", roles, 1, r"failed: a-0: exit 7")


@pytest.mark.parametrize("scope, counts", [("role", {"first": 1, "a": 2}), ("job", {"first": 2, "a": 2})])
def test_a_whole_role_or_job_is_retried(jobs, scope, counts):
    """Its output is kept."""
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
    assert wrote == counts


def test_attempts_and_jobs_have_timeouts(jobs):
    """The timeout of an attempt, which is retried, and that of the job."""
    roles = {"a": {"run": FOREVER, "timeout": "1s", "grace_period": "1s", "retry": {"max": 1, "backoff": "0s", "on_exit_codes": [124]}}}
    run(jobs, "tested-timeout", roles, 1, r"failed: a-0, attempt 2: time limit 1s reached")
    # The job's time runs while its containers are made, which on a busy host may take a second.
    roles = {"a": {"run": FOREVER, "instances": 2}, "b": {"run": "true"}}
    run(jobs, "tested-deadline", roles, 124, "timed out after 5s: 2 tasks were still running", timeout="5s")
    roles = {"a": {"run": "trap '' TERM; while :; do sleep 0.1; done", "grace_period": "2s"}}
    started_at = time.monotonic()
    run(jobs, "tested-grace", roles, 124, "timed out after 5s: 1 task was still running", timeout="5s")
    assert 6.9 < time.monotonic() - started_at < 15, f"TERM and KILL took {time.monotonic() - started_at:.1f} s"


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


TRAIN = 'python3 -c "$TRAINER"'
BEHIND = {
    "shell": f"{TRAIN}\necho done",
    "pipe": f"{TRAIN} | {{ trap '' TERM USR1; cat; }}\necho done",
    "nested": f"sh -c '{TRAIN}; true'\necho done",
    "exec": f"exec {TRAIN}",
    "background": f"{TRAIN} &\nwait",
}


@pytest.mark.parametrize("name", BEHIND)
def test_a_trainer_gets_its_signals_and_its_grace_period(jobs, name):
    """Behind a shell, a pipe, another shell or `exec` it gets TERM and USR1."""
    job = f"tested-{name}"
    path = jobs.directory / f"{job}.json"
    roles = {"a": {"shell": "sh", "run": BEHIND[name], "env": {"TRAINER": TRAINER}, "grace_period": "20s"}}
    path.write_text(json.dumps({"version": 1, "name": job, "image": "host", "roles": roles}))
    answer = jobs.call("run", "--detach", *jobs.unenforced, str(path))
    assert answer.returncode == 0, answer.stderr
    shows = lambda text: text in jobs.call("logs", job).stdout  # noqa: E731
    wait_until(lambda: shows("training"), "it does not train")
    # To whoever is left, so that the trainer is behind no signal that another one took.
    answer = jobs.call("kill", "-s", "USR1", job)
    wait_until(lambda: shows("saved on SIGUSR1"), f"USR1 did not arrive: {answer.stderr}")
    began = time.monotonic()
    answer = jobs.call("stop", job)
    took = time.monotonic() - began
    assert shows("saved on SIGTERM"), f"the checkpoint is lost: {jobs.call('logs', job).stdout!r} {answer.stderr}"
    assert took <= 10, f"it was killed after its grace period: {took:.1f} s"


# Python handles SIGINT, so that `except KeyboardInterrupt` and `finally` run, but not SIGTERM.
INTERRUPTED = """import time
print("training")
try:
    while True:
        time.sleep(0.05)
finally:
    print("saved")
"""


@pytest.mark.parametrize("run", [["python3", "-c", INTERRUPTED], 'python3 -c "$TRAINER"\necho done', 'python3 -c "$TRAINER" | cat'],
                         ids=["alone", "shell", "pipe"])
def test_a_program_without_a_handler_for_sigterm_gets_sigint(jobs, run):
    """Its lines also arrive while it runs, although its output is a pipe."""
    path = jobs.directory / "tested-interrupted.json"
    roles = {"a": {"run": run, "env": {"TRAINER": INTERRUPTED}, "grace_period": "20s"}}
    path.write_text(json.dumps({"version": 1, "name": "tested-interrupted", "image": "host", "roles": roles}))
    answer = jobs.call("run", "--detach", *jobs.unenforced, str(path))
    assert answer.returncode == 0, answer.stderr
    shows = lambda text: text in jobs.call("logs", "tested-interrupted").stdout  # noqa: E731
    wait_until(lambda: shows("training"), "its output is kept back")
    began = time.monotonic()
    jobs.call("stop", "tested-interrupted")
    took = time.monotonic() - began
    assert shows("saved") and not shows("done"), jobs.call("logs", "tested-interrupted").stdout
    assert took <= 10, f"it was killed after its grace period: {took:.1f} s"


def wait_until(condition, message):
    """Waits at most ten seconds."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, message
        time.sleep(0.05)


def test_thresholds_decide_the_result(jobs):
    """And a program that cannot be executed."""
    partial = {"a": {"run": "test $JOBC_INDEX = 0 || exit $JOBC_INDEX", "instances": 3, "completion": {"min_failed": "none"}}}
    run(jobs, "tested-allowed", partial, 0, "succeeded: all 3 tasks ended, and the 2 that failed were allowed to")
    partial["a"]["completion"] = {"min_failed": 2}
    _, record = run(jobs, "tested-some", partial, 1, r"failed: `a` reached min_failed 2 \(a-[12]: exit [12]\)")
    missing = {"a": {"run": ["nowhere-to-be-found"]}, "b": {"run": FOREVER}}
    run(jobs, "tested-missing", missing, 1, r"failed: a-0: exit 127, cannot execute `nowhere-to-be-found`: .*; it is in no directory of `PATH`.*")
    assert record["end"].get("task", "")[:2] == "a-", f"the deciding task: {record['end']}"


CRASH = "import ctypes; ctypes.string_at(0)"


ENDS = {
    "crash": (["python3", "-c", CRASH], r"killed by SIGSEGV (segmentation fault)", "SIGSEGV"),
    "behind-a-shell": (f"python3 -c '{CRASH}'; exit $?", "exit 139: a command was killed by SIGSEGV (segmentation fault)", None),
    "pipe": ("set -o pipefail; yes | head -1", "exit 141: a reader of the pipe closed (SIGPIPE)", None),
    "absent": ("nowhere-to-be-found", "exit 127: a command was not found", None),
    "plain": ("exit 3", "exit 3", None),
}


@pytest.mark.parametrize("name", ENDS)
def test_the_reason_of_an_end_is_told_once(jobs, name):
    """A signal is named, that of a shell's command too; tables do not repeat the state."""
    command, reason, signal = ENDS[name]
    job = f"tested-{name}"
    answer, record = attempt(jobs, job, {"a": {"run": command, **({"shell": "bash"} if isinstance(command, str) else {})}})
    assert record["end"]["explanation"] == f"failed: a-0: {reason}" and record["tasks"][0].get("signal") == signal, record["tasks"][0]
    assert answer.stderr.count(reason) == 1 and f"jobc: {record['id']}: failed: a-0: {reason}\n" in answer.stderr
    tables = jobs.call("ps", "--all").stdout, jobs.call("ps", job).stdout, jobs.call("inspect", job).stdout
    row = next(line for line in tables[0].splitlines() if line.startswith(record["id"]))
    assert row.endswith(f"  a-0: {reason}") and row.count("failed") == 2, f"`ps --all` repeats the state: {row}"
    assert re.search(rf"{re.escape(reason.removeprefix('exit '))} +user error\n$", tables[1]) and f"end          a-0: {reason}\n" in tables[2], tables


def test_a_second_run_that_writes_to_the_same_output_is_told(jobs):
    """Once the first has ended, there is nothing to tell."""
    place = jobs.directory / "shared-output"
    place.mkdir()
    place.chmod(0o777)
    job = jobs.directory / "shared.json"
    job.write_text(json.dumps({"version": 1, "name": "tested-shared", "image": "host", "outputs": {"out": {"source": str(place), "mount": "/output"}},
                               "roles": {"a": {"run": "sleep 600"}}}))
    run = ["run", "--detach", *jobs.unenforced, str(job)]
    first, second = jobs.call(*run), jobs.call(*run)
    told = f"note: `outputs.out.source`: `{first.stdout.strip()}`, which runs, writes to `{place}` too\n = help: stop that run"
    assert "note:" not in first.stderr and told in second.stderr, f"{first}{second}"
    for answer in (first, second):
        jobs.call("stop", answer.stdout.strip())
    third = jobs.call(*run)
    jobs.call("stop", third.stdout.strip())
    assert third.returncode == 0 and "writes to" not in third.stderr, third


def test_a_misspelled_program_is_named_with_the_one_that_was_meant(jobs):
    answer, _ = attempt(jobs, "tested-misspelled", {"a": {"run": "torchrunn train.py", "shell": "sh"}})
    assert "jobc: a-0: no program is named `torchrunn` here; did you mean `torchrun`?\n" in answer.stderr, answer.stderr


def test_the_last_lines_of_a_failed_task_are_shown(jobs):
    """After the end of a task among others, the last lines of its stderr and the command that shows all of it."""
    script = r"for i in $(seq 30); do echo to stdout; done; for i in $(seq 12); do printf '\033[31mwhy\033[0m\t%s\n' $i >&2; done; sleep 0.6; exit 3"
    roles = {"a": {"run": script, "shell": "bash"},
             "b": {"run": "for i in $(seq 100); do echo still at work; sleep 0.05; done", "shell": "bash", "instances": 2, "grace_period": "1s"}}
    for words in ((), ("--no-logs",), ("--quiet",)):
        answer, record = attempt(jobs, "tested-last", roles, *words)
        last = "".join(f"  why    {number}\n" for number in range(3, 13))
        end = (f"jobc: {record['id']}: failed: a-0: exit 3\njobc: the last lines of a-0 on stderr:\n{last}"
               f"jobc: all of its output: `jobc logs {record['id']} a-0`\n")
        assert answer.stderr.endswith(end), answer.stderr[-1500:]
        others = answer.stderr.removesuffix(end)
        stopping = "jobc: a-0: exit 3; stopping the other tasks\n" in others
        stopped = re.search(r"jobc: b-[01](, b-[01]| stopped\njobc: b-[01]) stopped\n", others)
        assert words == ("--quiet",) or (stopping and stopped), f"{words}: the others: {others[-1500:]}"
    # A job that succeeds, or is stopped, repeats nothing.
    answer, _ = attempt(jobs, "tested-well", {"a": {"run": "echo fine >&2", "shell": "sh"}}, "--no-logs", code=0)
    assert "fine" not in answer.stderr and "jobc logs" not in answer.stderr, f"after a success: {answer.stderr}"


def attempt(jobs, name, roles, *words, code=1):
    """Runs a job to its end; returns the output and the record."""
    path = jobs.directory / f"{name}.json"
    path.write_text(json.dumps({"version": 1, "name": name, "image": "host", "roles": roles}))
    answer = jobs.call("run", *words, *jobs.unenforced, str(path))
    assert answer.returncode == code, f"exit {answer.returncode}: {answer.stderr}"
    return answer, jobs.record(name)


@pytest.mark.parametrize("value", ("required", "auto"))
def test_no_program_of_a_gang_starts_before_its_last_container_is_created(jobs, value):
    roles = {"a": {"run": "sleep 0.2", "instances": 10}, "b": {"run": "sleep 0.2", "instances": 5}}
    events, _ = run(jobs, f"tested-gang-{value}", roles, 0, "succeeded: all 15 tasks succeeded", gang=value)
    created, started = times(events, "created"), times(events, "started")
    assert max(created.values()) <= min(started.values()) and len(created) == 15


def test_ports_of_a_run_that_starts_nothing_are_free_again(jobs):
    path = jobs.directory / "tested-port.json"

    def run_job(image, *words):
        role = {"run": "true", "shell": "sh", "resources": {"ports": {"web": 18888}}}
        path.write_text(json.dumps({"version": 1, "name": "tested-port", "image": image, "roles": {"main": role}}))
        return jobs.call("run", *jobs.unenforced, *words, str(path))

    expect(run_job("host", "--dry-run"))
    expect(run_job("example.com/absent:1", "--pull", "never"), code=125, error="not in the image store")
    for _ in range(2):
        expect(run_job("host"))
