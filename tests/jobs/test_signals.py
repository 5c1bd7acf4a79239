"""Tests which signals end a task, its process 1, its stdin, and the report of processes that the kernel kills for memory."""

import json
import re
import shlex
import signal
import subprocess
import time

import pytest

from command_line import expect

pytestmark = [pytest.mark.isolated, pytest.mark.duration(40), pytest.mark.accounts("root", slow="single")]

# Ends on TERM, USR1 and QUIT, each with its own code, and goes on after INT.
TRAPS = "trap 'echo got INT' INT; trap 'echo got TERM; exit 3' TERM; trap 'echo got USR1; exit 4' USR1; echo training; while :; do sleep 0.1; done"
PYTHON = """import time
print("training", flush=True)
try:
    time.sleep(60)
except KeyboardInterrupt:
    print("got INT", flush=True)
    time.sleep(2.5)
    print("saved", flush=True)
"""
TERM_ALONE = "trap 'echo got TERM; exit 3' TERM; echo training; while :; do sleep 0.1; done"


def write(jobs, name, **role):
    path = jobs.directory / f"{name}.json"
    shell = {"shell": "sh"} if isinstance(role["run"], str) else {}
    path.write_text(json.dumps({"version": 1, "name": name, "image": "host", "grace_period": "4s", "roles": {"a": {**shell, **role}}}))
    return str(path)


def interrupted(jobs, path):
    """Runs a job in the foreground, interrupts it when it trains; returns its output and how long it took."""
    client = jobs.run(path)
    lines = []
    while not lines or "training" not in lines[-1]:
        lines.append(client.stdout.readline())
        assert lines[-1], f"it ended before it trained: {lines}"
    time.sleep(0.3)
    began = time.monotonic()
    client.send_signal(signal.SIGINT)
    out, _ = client.communicate(timeout=30)
    return "".join(lines) + out, time.monotonic() - began


@pytest.mark.parametrize("run, shown, least, most", [
    (["sh", "-c", TRAPS], ["got INT", "got TERM"], 1.8, 3.5),
    (["python3", "-c", PYTHON], ["got INT", "saved"], 2.4, 3.9),
    ('python3 -c "$TRAINER"\ntrue', ["got INT", "saved"], 2.4, 3.9),
    (TERM_ALONE, ["got TERM"], 0, 1.8),
    ("echo training; sleep 60; echo no", [], 0, 1.8),
    (["perl", "-e", '$|=1; print "training\n"; sleep 60'], [], 0, 1.8),
], ids=["both", "python", "behind-a-shell", "term-alone", "neither-in-a-shell", "neither"])
def test_ctrl_c_is_sigint_and_later_the_stop_signal(jobs, run, shown, least, most):
    """Who handles one of both alone gets that at once, and nothing else."""
    out, took = interrupted(jobs, write(jobs, "tested-interrupt", run=run, env={"TRAINER": PYTHON}))
    assert re.findall(r"got \w+|saved", out) == shown and not re.search(r"\bno$", out, re.MULTILINE), out
    assert least <= took <= most, f"it took {took:.1f} s: {out}"


@pytest.mark.parametrize("stop, shown, run", [("usr1", "got USR1", TRAPS), (None, "got TERM", TRAPS), ("SIGQUIT", "got INT", ["python3", "-c", PYTHON])])
def test_a_role_names_its_stop_signal(jobs, stop, shown, run):
    """For `jobc stop` and timeouts. Who does not handle it and handles SIGINT gets that."""
    chosen = {"stop_signal": stop} if stop else {}
    path = write(jobs, "tested-stop", run=run, **chosen)
    answer = jobs.call("run", "--detach", *jobs.unenforced, path)
    assert answer.returncode == 0, answer.stderr
    jobs.until("tested-stop", lambda record: "training" in jobs.call("logs", "tested-stop").stdout)
    jobs.call("stop", "tested-stop")
    assert re.findall(r"got \w+", jobs.call("logs", "tested-stop").stdout) == [shown]
    out = jobs.call("run", *jobs.unenforced, write(jobs, "tested-late", run=run, timeout="1s", **chosen)).stdout
    assert re.findall(r"got \w+", out) == [shown], out


def test_an_unknown_signal_is_an_error_at_its_place(jobs):
    answer = jobs.call("check", write(jobs, "tested-unknown", run="true", stop_signal="SIGUSER1"))
    assert answer.returncode == 1 and re.search(r"error\[J0360\]: unknown signal `SIGUSER1`", answer.stdout + answer.stderr), answer


def output(jobs, *words, **role):
    answer = jobs.call("run", *jobs.unenforced, *words, write(jobs, "tested-first", **role))
    return answer.returncode, answer.stdout


def test_a_task_has_an_init(jobs):
    """It reaps orphans, and a signal to process 1 reaches the program."""
    orphans = "(sleep 0.1 &) ; (sleep 0.1 &) ; sleep 0.5; cat /proc/[0-9]*/status | grep -c '^State:.Z'"
    assert output(jobs, run=f"cat /proc/1/comm; {orphans} || true")[1].split() == ["jobc-init", "0"]
    assert output(jobs, run="echo $$", resources={"pids": 2})[1].split() == ["2"]
    assert output(jobs, run="echo $$", resources={"pids": 1})[1].split() == ["1"]
    assert output(jobs, run="trap 'echo asked' USR1; kill -USR1 1; sleep 0.3")[1] == "asked\n"
    code, _ = output(jobs, run="exit 7")
    record = jobs.record("tested-first")
    assert (code, record["tasks"][0]["exit_code"]) == (1, 7)
    output(jobs, run=["sh", "-c", "kill -SEGV $$"])
    task = jobs.record("tested-first")["tasks"][0]
    assert (task["exit_code"], task["signal"]) == (139, "SIGSEGV"), task


def test_an_init_needs_none(jobs):
    """By `init: false`, and where the program is one."""
    assert output(jobs, run=["sh", "-c", "echo $$"], init=False)[1] == "1\n"
    tini = jobs.directory / "tini"
    tini.write_text("#!/bin/sh\necho $$\n")
    tini.chmod(0o755)
    data = {"here": {"source": str(jobs.directory), "mount": "/here"}}
    path = jobs.directory / "tini.json"
    path.write_text(json.dumps({"version": 1, "name": "tested-tini", "image": "host", "data": data, "roles": {"a": {"run": ["/here/tini"]}}}))
    assert jobs.call("run", *jobs.unenforced, str(path)).stdout == "1\n"


def test_the_program_is_in_the_foreground_of_its_terminal(jobs):
    """It is its own process group, so that keys do not reach it twice."""
    command = shlex.join(jobs.words("run", "--plain", *jobs.unenforced, "-t", "--", "sh", "-c", "ps -o pid=,pgid=,tpgid= -p $$"))
    ran = subprocess.run(["script", "-qec", command, "/dev/null"], stdin=subprocess.DEVNULL, env=jobs.environment(), cwd=jobs.directory,
                         capture_output=True, text=True, timeout=30, check=False)
    assert re.search(r"^\s*2\s+2\s+2\s*$", ran.stdout, re.MULTILINE), ran.stdout


def events(jobs, name):
    return [json.loads(line) for line in jobs.call("events", "--format", "json", name).stdout.splitlines()]


BYTES = bytes(range(256)) * 300


def test_a_pipe_reaches_a_command(jobs):
    """Unchanged, with its end; not where there are several tasks, or none is in the foreground."""
    def piped(*words):
        ran = subprocess.run(jobs.words("run", *jobs.unenforced, *words), input=BYTES, env=jobs.environment(), cwd=jobs.directory,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=30, check=False)
        return ran.stdout

    assert BYTES.hex().encode() in piped("--", "sh", "-c", "od -An -v -tx1 | tr -d ' \\n'; echo")
    several = write(jobs, "tested-several", run="wc -c", instances=2)
    assert b"needs a job of one task" in piped("-i", several)
    assert piped("-i", write(jobs, "tested-piped", run="wc -c")).count(str(len(BYTES)).encode()) == 1
    assert str(len(BYTES)).encode() not in piped(write(jobs, "tested-unpiped", run="wc -c"))


WORKER = """import subprocess, sys, time
code = subprocess.run([sys.executable, "-c", "b = []\\nfor _ in range(512): b.append(bytearray(1 << 20))"]).returncode
print("worker", code, flush=True)
time.sleep(float(sys.argv[1]))
"""


@pytest.mark.parametrize("seconds", ["0", "3"])
def test_a_worker_that_is_killed_for_memory_is_reported(jobs, seconds):
    """Although the task goes on and succeeds."""
    name = f"tested-memory-{seconds}"
    path = write(jobs, name, run=["python3", "-c", WORKER, seconds], resources={"memory": "64MiB"})
    client = jobs.run(path)
    if float(seconds):
        task = jobs.until(name, lambda record: record["tasks"][0].get("oom_kills") or record["tasks"][0].get("unenforced"))["tasks"][0]
        if task.get("unenforced"):
            client.communicate(timeout=30)
            pytest.skip("nothing enforces limits of memory here")
        expect(jobs.call("ps", name), out=r"a-0 +running .* out of memory: the kernel killed 1 process\n")
    out, _ = client.communicate(timeout=30)
    if jobs.record(name)["tasks"][0].get("unenforced"):
        pytest.skip("nothing enforces limits of memory here")
    assert client.returncode == 0 and "a-0: out of memory: the kernel killed 1 process\n" in out, out
    assert re.search(r"succeeded: .*; out of memory: the kernel killed processes of a-0\n", out), out
    kills = [event["detail"] for event in events(jobs, name) if event["event"] == "oom-killed"]
    assert kills == [{"kills": 1}]
    expect(jobs.call("ps", name), out=r"a-0 +succeeded .* 0, out of memory: the kernel killed 1 process\n")
