"""The commands about jobs, as a user calls them: the same for a job of every place, which is the argument."""

import json
import pathlib
import time

import jsonschema

# What a task prints: the stand-in cluster is told so, the other places run it.
LINES = ["hello", "loss=0.5"]
RUN = "echo hello\necho loss=0.5\nexec sleep 120"
# Only SIGKILL ends it before its grace period has passed.
STUBBORN = "trap '' TERM\nwhile :; do sleep 1; done"


SCHEMA = json.loads((pathlib.Path(__file__).parents[2] / "schemas/output.v1.schema.json").read_text())
# A key that the schema does not name is one that it should.
for definition in SCHEMA["$defs"].values():
    if "properties" in definition:
        definition.setdefault("additionalProperties", False)


def described(command, value):
    """The value, after the schema of what a command prints was compared with it."""
    schema = {"$ref": f"#/$defs/{command}", "$defs": SCHEMA["$defs"]}
    jsonschema.validate(value, schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
    return value


def until(holds, what, seconds=30):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"{what} after {seconds} s"
        time.sleep(0.1)


def objects(text):
    return [json.loads(line) for line in text.splitlines()]


def check_looking(run, job):
    """ps, inspect, logs, events, why, stats, top and report of a job with two tasks that run."""
    listed = described("ps", json.loads(run("ps", "--all-targets", "--format", "json")[0]))
    assert [(one["state"], sum(one["tasks"].values()) > 0) for one in listed if one["id"] == job] == [("running", True)], listed
    tasks = described("ps-job", json.loads(run("ps", job, "--format", "json")[0]))
    assert [(task["task"], task["state"], task["attempt"]) for task in tasks] == [("main-0", "running", 1), ("main-1", "running", 1)], tasks
    assert run("ps", "-q", job)[0].split() == ["main-0", "main-1"]
    head, *rows = run("ps", job)[0].splitlines()
    assert head.split()[:3] == ["TASK", "STATE", "ATTEMPT"] and head.split()[-1] == "EXIT" and len(rows) == 2, (head, rows)
    out, _ = run("inspect", job)
    assert "state        running" in out and "main-1  running" in out and "submitted    20" in out, out
    detail = described("inspect", json.loads(run("inspect", job, "--format", "json")[0]))
    assert detail["state"] == "running" and [task["task"] for task in detail["tasks"]] == ["main-0", "main-1"], detail
    assert detail["id"] == job and detail["attempt"] == 1 and isinstance(detail["reasons"], list), detail
    until(lambda: run("logs", job)[0].count("loss=0.5") == 2, "the output of both tasks")
    assert sorted(run("logs", job)[0].splitlines()) == [f"main-{task} | {line}" for task in (0, 1) for line in LINES], run("logs", job)[0]
    lines = objects(run("logs", job, "main-1", "--tail", "1", "--format", "json")[0])
    assert all(described("logs", line) for line in lines)
    assert [(line["job"], line["task"], line["attempt"], line["text"]) for line in lines] == [(job, "main-1", 1, "loss=0.5")], lines
    events = objects(run("events", job, "--format", "json")[0])
    assert all(described("events", event) for event in events)
    assert all(event["time"].startswith("20") and event["event"] for event in events), events
    assert len(run("events", job)[0].splitlines()) == len(events)
    assert run("why", job)[0].startswith(f"{job}: running"), run("why", job)
    for command in ("stats", "top"):
        usage = objects(run(command, job, "--no-stream", "--format", "json")[0])
        assert all(described(command, task) for task in usage)
        assert [(task["job"], task["task"], task["state"]) for task in usage] == [(job, "main-0", "running"), (job, "main-1", "running")], usage
        assert all(task["memory"] > 0 and task["cpu_millis"] is not None for task in usage), usage
    assert len(run("stats", job, "--no-stream")[0].splitlines()) == 3
    page, _ = run("report", job, "-o", "-")
    assert f"<h1>{job} " in page and "main-1" in page and "loss=0.5" in page, page[:3000]
    row = run("ps", job, "--metric", "loss=([0-9.]+)")[0].splitlines()[1].split()
    assert "0.5" in row, row


def check_exec(run, job):
    """Commands in tasks: their code, their output for people and programs, their directory and variables."""
    assert run("exec", job, "main-0", "--", "echo", "one two")[0] == "one two\n"
    run("exec", job, "main-1", "--", "sh", "-c", "exit 3", code=3)
    line, end = objects(run("exec", "--format", "json", job, "main-1", "--", "echo", "x")[0])
    assert (line["text"], line["task"], end) == ("x", "main-1", {"job": job, "task": "main-1", "exit_code": 0}), (line, end)
    out, _ = run("exec", "-w", "/tmp", "-e", "WORD=w", job, "main-0", "sh", "-c", 'echo "$PWD $WORD"')
    assert out == "/tmp w\n", out
    _, errors = run("exec", job, "--", "true", code=None)
    assert "several tasks" in errors and "main-" in errors, errors


def check_mistakes(run, job):
    """Names that are not there, and what only other places can do."""
    _, errors = run("inspect", f"{job}x", code=2)
    assert "there is no job" in errors, errors
    for words in (["logs", job, "side"], ["exec", job, "side-0", "--", "true"]):
        _, errors = run(*words, code=None)
        assert "no task `side" in errors, (words, errors)
    _, errors = run("exec", job, "main-0", code=None)
    assert "missing command" in errors and f"jobc exec {job}" in errors, errors


def check_end(run, job):
    """wait, stop, and a job that has ended; then it is removed."""
    _, errors = run("wait", job, "--timeout", "1s", code=75)
    assert f"{job}: not ended after 1s" in errors, errors
    out, _ = run("stop", job)
    assert out.startswith(f"{job}: stop"), out
    described("wait", json.loads(run("wait", job, "--format", "json", code=130)[0]))
    detail = json.loads(run("inspect", job, "--format", "json")[0])
    assert detail["state"] == "stopped", detail
    assert run("logs", job)[0].count("hello") == 2
    assert run("stop", job)[0].startswith(f"{job}: stopped")
    assert run("rm", job)[0] == f"{job}: removed\n"
    run("inspect", job, code=2)


def check_kill(run, job, sends=True):
    """kill, of a job with two tasks: a signal, if the place sends any, then the end without a grace period."""
    until(lambda: run("ps", job)[0].count("running") == 2, "two running tasks")
    out, errors = run("kill", "--signal", "CONT", job, code=0 if sends else 2)
    assert out == f"{job}: sent CONT\n" if sends else "does not send SIGCONT" in errors and "jobc exec" in errors, (out, errors)
    begun = time.monotonic()
    assert run("kill", job)[0].startswith(f"{job}: ")
    run("wait", job, code=130)
    assert time.monotonic() - begun < 25, "a grace period is 30 s"
    assert json.loads(run("inspect", job, "--format", "json")[0])["state"] == "stopped"
    run("rm", job)


def check_all(run, job):
    """All of it, of a job with two tasks that run."""
    until(lambda: run("ps", job)[0].count("running") == 2, "two running tasks")
    check_looking(run, job)
    check_exec(run, job)
    check_mistakes(run, job)
    check_end(run, job)
