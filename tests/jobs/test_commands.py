"""Tests the job commands in a pipe: output for people and programs, exit codes, and effects."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from command_line import LONG_JOB, expect

pytestmark = [pytest.mark.isolated, pytest.mark.duration(23), pytest.mark.accounts("root", slow="single")]

SHORT_JOB = """\
version: 1
name: tested-short
image: host
roles:
  only:
    shell: sh
    run: read line || true; echo "got <$line>"; exit 3
"""

TRAINING = """\
import os, sys
print(sys.argv[1:], os.getcwd(), sys.prefix, os.environ.get("COLOR"), os.environ.get("SSH_AUTH_SOCK"))
print("key", os.environ["WANDB_API_KEY"])
print("shm", os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize >> 20)
open("out.txt", "w").write("done")
"""


@pytest.fixture
def jobs(jobs):
    (jobs.directory / "long.yaml").write_text(LONG_JOB)
    (jobs.directory / "short.yaml").write_text(SHORT_JOB)
    return jobs


def start(jobs, *words):
    """Starts the long job, and returns its id after every task has printed a line."""
    path = jobs.directory / "long.yaml"
    name = expect(jobs.call("run", "--detach", *words, *jobs.unenforced, str(path)), out=r"^tested-long\.\d+\n$").stdout.strip()
    jobs.running(name)
    deadline = time.monotonic() + 10
    while jobs.call("logs", name).stdout.count("hello") < 2:
        assert time.monotonic() < deadline, "the tasks printed nothing"
        time.sleep(0.05)
    return name


@pytest.mark.parametrize("number, ending", [(signal.SIGINT, "bye from 1"), (signal.SIGTERM, "bye from 0")])
def test_a_signal_stops_a_job_in_the_foreground(jobs, number, ending):
    client = jobs.run(str(jobs.directory / "long.yaml"))
    jobs.running("tested-long")
    time.sleep(0.3)
    client.send_signal(number)
    out, _ = client.communicate(timeout=20)
    assert client.returncode == 130 and ending in out, f"exit {client.returncode}: {out}"
    assert jobs.record("tested-long")["state"] == "stopped", jobs.record("tested-long")["end"]


def test_a_job_is_stopped_when_its_client_is_killed(jobs):
    client = jobs.run(str(jobs.directory / "long.yaml"))
    jobs.running("tested-long")
    client.kill()
    client.communicate(timeout=20)
    record = jobs.until("tested-long", lambda record: record["state"] in ("stopped", "lost"))
    assert record["state"] == "stopped", record["end"]


def test_a_failure_is_reported_with_its_reason_and_last_lines(jobs):
    """The job ends with the program; it has no standard input."""
    answer = jobs.call("run", str(jobs.directory / "short.yaml"))
    end = r"jobc: tested-short\.\d+: failed: only-0: exit 3\n"
    more = r"jobc: all of its output: `jobc logs tested-short\.\d+ only-0`\n$"
    # Its only line is right above.
    expect(answer, code=1, out="got <>", error=end + more)
    last = r"jobc: the last lines of only-0 on stdout:\n  got <>\n" + more
    expect(jobs.call("wait", "tested-short"), code=1, out=r"^tested-short\.\d+: failed: only-0: exit 3\n$", error="^" + last)
    quiet = jobs.call("run", "--quiet", str(jobs.directory / "short.yaml"))
    expect(quiet, code=1, out="^$", error="^" + end + last)
    without = jobs.call("run", "--no-logs", str(jobs.directory / "short.yaml"))
    expect(without, code=1, out="^$", error=end + last)
    lines = expect(jobs.call("run", "--format", "json", str(jobs.directory / "short.yaml")), code=1).stdout.splitlines()
    assert [json.loads(line)["text"] for line in lines] == ["got <>"], f"as JSON: {lines}"
    stdin = subprocess.run(jobs.words("run", "-"), input=SHORT_JOB, capture_output=True, text=True, env=jobs.environment(), timeout=20, check=False,
                           cwd=jobs.directory)
    expect(stdin, code=1, out="got <>")


def test_a_command_runs_in_the_directory_of_its_caller(jobs):
    """With the virtual environment and the variables, whose values are in no file. It can be saved as a job file, which does the same."""
    project, key = jobs.directory / "project", "wandb-0123456789"
    venv = project / ".venv"
    # One that every user may run, unlike one in the home directory of root.
    python = shutil.which("python3", path=os.defpath) or "python3"
    subprocess.run([python, "-m", "venv", "--without-pip", venv], check=True)
    (project / "train.py").write_text(TRAINING)
    uid = jobs.account.uid if jobs.account else 0
    os.chown(project, uid, -1)
    here = {"cwd": project, "VIRTUAL_ENV": str(venv), "PATH": f"{venv}/bin:{os.environ['PATH']}", "COLOR": "blue", "WANDB_API_KEY": key,
            "SSH_AUTH_SOCK": "/run/agent"}
    size = os.statvfs("/dev/shm")
    lines = rf"^\['a \$\{{{{ b }}}}', '1'\] {project} {venv} blue None\nkey (?!{key}).*\nshm {size.f_blocks * size.f_frsize >> 20}\n$"
    command = ("python", "train.py", "a ${{ b }}", "1")
    expect(jobs.call("run", "--save", "job.yaml", "--", *command, **here), out=lines, error=r"^jobc: wrote `job.yaml`; .*\n(.*\n)*.*train\.\d+: succeeded")
    written = project / "out.txt"
    assert written.read_text() == "done" and written.stat().st_uid == uid, f"{written} is not the caller's"
    saved = (project / "job.yaml").read_text()
    expect(jobs.call("run", **here), out=lines)
    expect(jobs.call("run", "--save", "job.yaml", "--", "true", **here), code=125, out="^$", error="`job.yaml`: file exists")
    assert (project / "job.yaml").read_text() == saved, "`--save` replaced a file"
    # The directory is that where the job is started, not that of the job file.
    expect(jobs.call("run", "project/job.yaml", **here | {"cwd": jobs.directory}), code=1, error=r"(?s)can.t open file.*train\.\d+: failed")
    # In the background too.
    name = expect(jobs.call("run", "--detach", "--name", "own", "-e", "WANDB_API_KEY", "-e", "COLOR=red", "--", *command, **here), out=r"^own\.\d+\n$").stdout.strip()
    expect(jobs.call("wait", name))
    expect(jobs.call("logs", name), out=lines.replace("blue", "red"))
    state = jobs.home / "jobc" if jobs.account else Path("/run/jobc")
    places = [path for root in (state, jobs.home, project) for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
    assert not [path for path in places if key.encode() in path.read_bytes()], "the value of a variable is there"
    assert len(places) >= 20, f"only {len(places)} files were searched"
    expect(jobs.call("run", "--", "sh", "-c", "exit 3", **here), code=1, error=r"sh\.\d+: failed: main-0: exit 3\n")
    if not jobs.account:
        expect(jobs.call("run", "--memory", "64MiB", "--", "python", "-c", "x = bytearray(10 ** 9)", **here), code=1, error="out of memory: used 64 MiB of 64 MiB")
    del here["WANDB_API_KEY"]
    expect(jobs.call("run", "-e", "WANDB_API_KEY", "--", *command, **here), code=125, error="`image.host.env`: the environment variable `WANDB_API_KEY` is not set")
    expect(jobs.call("run", "--gpus", "2", **here), code=125, error=r"^error: `--gpus` needs a command\n = help: .*`jobc run --gpus … -- ")
    expect(jobs.call("run", "job.yaml", "--", "true", **here), code=125, error="^error: both `job.yaml` and a command after `--` are named\n")
    expect(jobs.call("run", "--scale", "main=1", "--", "true", **here), code=125, error="^error: `--scale` does not apply to a command")


CODE = """\
version: 1
name: coded
image: host
code: {from: src, mount: /project, roles: [train]}
roles:
  train: {shell: sh, workdir: /project/lib, run: "pwd; cat ../train.txt; echo made >made"}
  board: {shell: sh, run: "test ! -e /project && pwd"}
"""


def test_code_is_mounted_where_commands_start(jobs):
    """Here it is the directory itself: what a task writes is there."""
    project = jobs.directory / "coded"
    (project / "src/lib").mkdir(parents=True)
    (project / "src/train.txt").write_text("text\n")
    (project / "job.yaml").write_text(CODE)
    for path in (project, project / "src", project / "src/lib"):
        path.chmod(0o777)
    done = expect(jobs.call("run", "coded/job.yaml", cwd=jobs.directory), out="(?s)/project/lib\n.*text\n", error="coded.1: succeeded")
    assert "/\n" in done.stdout and (project / "src/lib/made").read_text() == "made\n", done.stdout
    (project / "src").rename(project / "gone")
    expect(jobs.call("run", "coded/job.yaml", cwd=jobs.directory), code=125, error=r"job.yaml:4:14\n(.*\n)*.*name a directory")


@pytest.mark.accounts(slow="single")
def test_limits_that_cannot_be_enforced_are_rejected_once(jobs):
    """For all tasks and jobs, before anything is created."""
    text = LONG_JOB.replace("    shell: sh", "    resources: {cpu: 1, memory: 1GiB, enforce: true}\n    shell: sh") + "matrix: {axes: {number: [1, 2]}}\n"
    (jobs.directory / "limited.yaml").write_text(text.replace("tested-long", "tested-limited"))
    steps = "loud-0, and the same for loud-1(.*\n)*.*execute /bin/sh"
    for words, code, out, start in (([], 125, "^$", "error: "), (["--dry-run"], 0, steps, "note: without `--dry-run` this is refused: ")):
        answer = expect(jobs.call("run", *words, str(jobs.directory / "limited.yaml")), code=code, out=out,
                        error=rf"\A{start}limits on .*\n = help: .*`--allow-unenforced`")
        assert answer.stderr.count("are not enforced:") == 1 and "`memory`, `cpu`" in answer.stderr and "config.json" not in answer.stderr, \
            f"{words}: {answer.stderr}"
    assert "tested-limited" not in jobs.call("ps", "--all", "--quiet").stdout, "a rejected job left a record"


def test_settings_of_the_user_and_the_project_replace_options(jobs):
    """A project decides nothing about its user's host, and errors are at their lines."""
    project, own = jobs.directory / "checkout", jobs.home / ".config/jobc/config.toml"
    for directory in (project / ".git", project / "below", project / ".jobc"):
        directory.mkdir(parents=True)
    theirs = project / ".jobc/config.toml"
    (project / "below/job.yaml").write_text(SHORT_JOB.replace("exit 3", "exit 0"))
    (project / "targets.yaml").write_text("version: 1\ntargets:\n  near: {backends: [oci]}\n  lab: {backends: [oci]}\n")
    here = {"cwd": project / "below"}
    expect(jobs.call("run", **here), code=125, error="several targets are possible: `near` and `lab`")
    expect(jobs.call("config", "set", "allow-unenforced", "true", **here), error=f"^jobc: wrote `{own}`\n$")
    expect(jobs.call("config", "set", "target", "near", **here))
    expect(jobs.call("run", **here), out="^got <>\n$")
    limited = ("run", "--memory", "64MiB", "--", "true")
    expect(jobs.call(*limited, **here), error=r"true\.\d+: succeeded")
    if jobs.account:
        expect(jobs.call(*limited, JOBC_ALLOW_UNENFORCED="0", **here), code=125, error="limits on `memory` are not enforced")
    theirs.write_text('target = "lab"\n')
    expect(jobs.call("config", **here), out=rf"allow-unenforced +true +{own}:1\n(.*\n)*target +lab +{theirs}:1\n$")
    expect(jobs.call("config", JOBC_TARGET="near", **here), out=r"target +near +JOBC_TARGET\n$")
    theirs.write_text('target = "lap"\n')
    expect(jobs.call("run", **here), code=125, error=f"unknown target `lap`(.*\n)*.*did you mean `lab`(.*\n)*.*set by `{theirs}:1`")
    expect(jobs.call("run", "--target", "near", **here), out="^got <>\n$")
    theirs.write_text('\nimage-root = "/tmp/elsewhere"\n')
    for words, code in ((("run",), 125), (("check",), 2), (("image", "ls"), 2)):
        expect(jobs.call(*words, **here), code=code, out="^$", error=rf"^error: {theirs}:2:1: `image-root` cannot be set by a project\n = help: .*`{own}`")
    # A job can be stopped in any directory.
    expect(jobs.call("ps", **here))
    theirs.unlink()
    own.write_text("allow_unenforced = true\n")
    expect(jobs.call("run", **here), code=125, error=rf"^error: {own}:1:1: unknown setting `allow_unenforced`\n = help: write `allow-unenforced`\n$")
    own.unlink()


def test_a_dry_run_shows_what_would_be_done(jobs):
    """It does nothing."""
    before = jobs.call("ps", "--all", "--quiet").stdout
    answer = expect(jobs.call("run", "--dry-run", *jobs.unenforced, str(jobs.directory / "long.yaml")), out="loud-0, and the same for loud-1")
    assert "execute /bin/sh" in answer.stdout and "network: host" in answer.stdout, answer.stdout
    assert jobs.call("ps", "--all", "--quiet").stdout == before, "a dry run left a job"
    many = LONG_JOB.replace("instances: 2", "instances: 1000").replace("tested-long", "tested-many")
    (jobs.directory / "many.yaml").write_text(many)
    answer = expect(jobs.call("run", "--dry-run", *jobs.unenforced, str(jobs.directory / "many.yaml")), out="loud-0, and the same for loud-1 to loud-999")
    assert answer.stdout.count("execute /bin/sh") == 1, f"{answer.stdout.count('execute /bin/sh')} lists for a thousand equal tasks"


def test_commands_show_a_job_without_a_client(jobs):
    name = start(jobs)
    expect(jobs.call("ps"), out=rf"(?m)^JOB +STATE +TASKS .*\n{re.escape(name)} +running +2 running")
    expect(jobs.call("ps", "--quiet"), out=rf"^{re.escape(name)}\n$")
    expect(jobs.call("ps", name), out=r"(?m)^TASK +STATE .*\nloud-0 +running +1 +\d+")
    expect(jobs.call("inspect", name), out="description +訓練 of something")
    expect(jobs.call("logs", name), out=r"(?m)^loud-\d \| hello from \d$")
    expect(jobs.call("logs", "--tail", "2", "tested-long", "loud-1"), out="^hello from 1\n$", error="^trouble from 1\n$")
    expect(jobs.call("events", name), out="started")
    expect(jobs.call("stats", "--no-stream", name), out="loud-0")
    top = subprocess.run(["timeout", "2", *jobs.words("top", name)], capture_output=True, text=True, env=jobs.environment(), check=False,
                         stdin=subprocess.DEVNULL)
    expect(top, code=124, out="loud-0")
    listed = json.loads(expect(jobs.call("ps", "--format", "json")).stdout)
    assert [(job["id"], job["state"], job["tasks"]) for job in listed] == [(name, "running", {"running": 2})], f"ps as JSON: {listed}"
    tasks = json.loads(expect(jobs.call("ps", "--format", "json", name)).stdout)
    assert [task["task"] for task in tasks] == ["loud-0", "loud-1"], f"ps of one as JSON: {tasks}"
    whole = json.loads(expect(jobs.call("inspect", "--format", "json", name)).stdout)
    assert whole["plan"]["name"] == "tested-long" and Path(whole["files"]["record"]).is_dir(), f"inspect as JSON: {list(whole)}"
    for line in expect(jobs.call("events", "--format", "json", name)).stdout.splitlines():
        json.loads(line)
    page = jobs.home / "page.html"
    expect(jobs.call("report", name, "-o", str(page)))
    assert page.exists() and "tested-long" in page.read_text(), "report wrote no page"
    stopped = expect(jobs.call("stop", "--format", "json", name)).stdout
    assert json.loads(stopped)["state"] == "stopped", stopped
    expect(jobs.call("stop", name), out="stopped")
    expect(jobs.call("wait", name), code=130)
    expect(jobs.call("ps"), out="^JOB[^\n]*\n$")
    expect(jobs.call("ps", "--all"), out=re.escape(name))


def test_exec_has_streams_exit_code_user_and_directory(jobs):
    name = start(jobs)
    expect(jobs.call("exec", name, "loud-1", "--", "sh", "-c", "echo out; echo err >&2; exit 7"), code=7, out="^out\n$", error="^err\n$")
    expect(jobs.call("exec", "-w", "/usr", "-e", "A=b c", name, "loud-0", "sh", "-c", "pwd; echo $A"), out="^/usr\nb c\n$")
    expect(jobs.call("exec", name, "--", "true"), code=125, error="has several tasks; name one")
    expect(jobs.call("exec", name, "loud-2", "--", "true"), code=125, error="has no task `loud-2`; did you mean `loud-")
    expect(jobs.call("exec", name, "loud-0", "absent-program"), code=127)
    if not jobs.account or jobs.account.subuids:
        expect(jobs.call("exec", "-u", "nobody", name, "loud-0", "id", "-un"), out="^nobody\n$")
    piped = subprocess.run(jobs.words("exec", "-i", name, "loud-0", "cat"), input="through\n", capture_output=True, text=True,
                           env=jobs.environment(), timeout=20, check=False)
    expect(piped, out="^through\n$")
    expect(jobs.call("exec", name, "loud-0", "cat"), out="^$")
    shown = expect(jobs.call("exec", "--format", "json", name, "loud-1", "--", "sh", "-c", "echo out; printf err >&2; sleep 60 & exit 7"), code=7).stdout
    *lines, end = map(json.loads, shown.splitlines())
    assert sorted((line["task"], line["stream"], line["text"], line["ends"]) for line in lines) == [
        ("loud-1", "stderr", "err", True), ("loud-1", "stdout", "out", True)] and end == {"job": name, "task": "loud-1", "exit_code": 7}, shown
    large = expect(jobs.call("exec", "--format", "json", name, "loud-0", "--", "sh", "-c", "yes | head -c 300000; head -c 100000 /dev/zero")).stdout
    texts = [json.loads(line)["text"] for line in large.splitlines()[:-1]]
    assert texts.count("y") == 150_000 and sum(map(len, texts)) == 250_000, \
        f"exec loses the end of the output: {len(texts)} lines, {sum(map(len, texts))} characters"
    expect(jobs.call("exec", "-t", "--format", "json", name, "loud-0", "true"), code=2)
    terminal = subprocess.run(["script", "-qec", " ".join(jobs.words("exec", "-t", name, "loud-0", "tty")), "/dev/null"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, env=jobs.environment(), timeout=20, check=False)
    assert "/dev/" in terminal.stdout, f"no terminal: {terminal}"


def test_the_output_of_a_readiness_command_goes_to_no_log(jobs):
    """Neither to the task's log nor to the supervisor's."""
    text = LONG_JOB.replace("tested-long", "tested-probed") + "    ready: {exec: [sh, -c, 'echo probe; echo probe >&2'], every: 1s}\n"
    (jobs.directory / "probed.yaml").write_text(text)
    name = expect(jobs.call("run", "--detach", *jobs.unenforced, str(jobs.directory / "probed.yaml"))).stdout.strip()
    jobs.until(name, lambda record: all(task["state"] == "ready" for task in record["tasks"]))
    record = json.loads(expect(jobs.call("inspect", "--format", "json", name)).stdout)["files"]["record"]
    logs = [path for path in Path(record).rglob("*.log") if "probe" in path.read_text()]
    assert not logs, f"it is in {logs}"


@pytest.mark.accounts("root")
def test_paused_tasks_do_nothing_until_they_are_resumed(jobs):
    name = start(jobs)
    expect(jobs.call("pause", name), out=f"^{re.escape(name)}: paused\n$")
    expect(jobs.call("ps"), out="paused")
    expect(jobs.call("ps", name), out=r"\nloud-0 +paused .*\nloud-1 +paused ")
    expect(jobs.call("exec", name, "loud-0", "true"), code=125, error=f"jobc resume {re.escape(name)}")
    # Without a name, the only one that can be meant.
    expect(jobs.call("pause"), code=1, error="^error: no job is running\n")
    expect(jobs.call("resume"), out=f"^{re.escape(name)}: resumed")
    second = start(jobs)
    expect(jobs.call("pause"), code=2, error="2 jobs are running; name those that are meant")
    expect(jobs.call("stop", second))
    expect(jobs.call("exec", name, "loud-0", "true"))
    expect(jobs.call("stop", "tested-long"), out="stopped")
    expect(jobs.call("pause", name), code=1, error="was stopped")


def test_signals_reach_one_task_and_all(jobs):
    """A supervisor that is killed leaves a lost job, which the next command reports."""
    name = start(jobs)
    expect(jobs.call("kill", "-s", "TERM", name, "loud-1"), out="sent TERM")
    jobs.until(name, lambda record: record["tasks"][1]["state"] in ("succeeded", "stopped"))
    expect(jobs.call("kill", "-s", "NONSENSE", name), code=2, error="unknown signal `NONSENSE`")
    expect(jobs.call("kill", name), out=f"^{re.escape(name)}: ")
    name = start(jobs)
    os.kill(jobs.record(name)["supervisor"]["pid"], signal.SIGKILL)
    time.sleep(0.3)
    expect(jobs.call("ps", "--all"), out=rf"{re.escape(name)} +lost", error=f"job `{re.escape(name)}` is lost")
    expect(jobs.call("wait", name), code=125, out="lost")
    name = start(jobs)
    expect(jobs.call("kill", "--force", name), out="lost")


def test_a_job_with_a_damaged_record_can_be_stopped(jobs):
    """It is listed, and can be killed too. Its supervisor writes the record anew."""
    for words, state in ((["stop"], "stopped"), (["kill"], "stopped"), (["kill", "--force"], "lost")):
        name = start(jobs)
        path = next(jobs.directory.rglob(f"jobs/{name}/job.json"))
        whole = path.read_bytes()
        for length in (len(whole) // 2, 0):
            path.write_bytes(whole[:length])
            expect(jobs.call("ps"), out=rf"{re.escape(name)} +running", error=f"the record of job `{re.escape(name)}` is damaged")
        expect(jobs.call(*words, name), out=f"^{re.escape(name)}: ")
        assert json.loads(path.read_text())["state"] == state, f"{words}: {path.read_text()}"
    # Ended, and damaged after that.
    path.write_bytes(whole[:len(whole) // 2])
    expect(jobs.call("ps", "--all"), out=rf"{re.escape(name)} +lost")


def test_an_unknown_name_is_an_error_with_a_suggestion(jobs):
    start(jobs)
    for words in (["inspect", "tested-lon"], ["logs", "tested-lon"], ["stop", "tested-lon"], ["wait", "tested-lon"], ["ps", "tested-lon"]):
        expect(jobs.call(*words), code=2, error="there is no job `tested-lon`; did you mean `tested-long`?")
    expect(jobs.call("kill", "tested-long", "lou-1"), code=2, error="has no task `lou-1`; did you mean `loud-")
    for words, text in ((["--root", "nope=host"], "unknown role `nope`"), (["--root", "/absent"], "cannot use the root `/absent`"),
                        (["--publish", "80:loud-0:http"], "has no port `http`"), (["--publish", "80"], "not exactly one task has the port 80"), (["--publish", "http"], "too few parts"),
                        (["-t", "loud-7"], "unknown task `loud-7`"), (["--scale", "loud=0"], "write ROLE=N"),
                        (["--id", "x"], "`--id` does not apply to a job")):
        expect(jobs.call("run", *words, str(jobs.directory / "long.yaml")), code=125, error=re.escape(text))


def test_commands_without_a_name_take_the_newest_job(jobs):
    """Or the newest that runs; `stop` never chooses among several."""
    for command in ("stop", "exec"):
        expect(jobs.call(command, *(["--", "true"] if command == "exec" else [])), code=125 if command == "exec" else 1,
               error="^error: no job is running\n")
    first = start(jobs)
    jobs.call("run", str(jobs.directory / "short.yaml"))
    # The newest job has ended; the newest that runs is older.
    expect(jobs.call("logs"), out="^got <>\n$")
    expect(jobs.call("logs", "only-0"), out="^got <>\n$")
    expect(jobs.call("logs", "loud-0"), code=2, error="there is no job `loud-0`")
    expect(jobs.call("events"), out=r"ended +failed: only-0: exit 3, verdict: user error\n$")
    expect(jobs.call("inspect"), out=r"^job +tested-short\.\d+\n")
    expect(jobs.call("report", "-o", "-"), out="only-0: exit 3")
    expect(jobs.call("exec", "--", "true"), code=125, error=f"job `{first}` has several tasks; name one")
    expect(jobs.call("exec", "--", "loud-1", "hostname"), out="^loud-1\n$")
    expect(jobs.call("exec", "--", "loud-1", "--", "sh", "-c", "echo $#", "--", "x"), out="^1\n$")
    second = start(jobs)
    expect(jobs.call("stop"), code=2, error=f"2 jobs are running; name those to stop\n = help: they are `{second}` and `{first}`\n")
    expect(jobs.call("stop", first), out=f"^{first}: stopped")
    waiting = subprocess.Popen(jobs.words("wait"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=jobs.environment())
    time.sleep(0.3)
    assert waiting.poll() is None, f"`wait` does not wait for {second}: {waiting.communicate()}"
    expect(jobs.call("stop"), out=f"^{second}: stopped")
    out, _ = waiting.communicate(timeout=20)
    assert waiting.returncode == 130 and out.startswith(f"{second}: stopped"), f"`wait` exits with {waiting.returncode}: {out}"
    # Nothing runs: the newest job has this end already.
    expect(jobs.call("wait"), code=130, out=f"^{second}: stopped")
    for word in ("kill", "rm"):
        expect(jobs.call(word), code=2, error="required arguments were not provided")


def refuse(jobs):
    """The file of a job that no host has the CPUs for, and what is printed about it."""
    roles = {"only": {"run": "sleep 600", "resources": {"cpu": 10000}}}
    big = jobs.directory / "big.json"
    big.write_text(json.dumps({"version": 1, "name": "tested-long", "image": "host", "roles": roles}))
    return str(big), re.compile(r"^jobc: tested-long\.\d+: could not start: .*CPUs", re.MULTILINE)


def test_a_job_in_the_background_that_cannot_start_is_reported(jobs):
    """As in the foreground."""
    big, refused = refuse(jobs)
    for words in ([], ["--detach"], ["--quiet"], ["--detach", "--quiet"]):
        expect(jobs.call("run", *words, *jobs.unenforced, big), code=125, out="^$", error=refused)


def test_a_name_stops_its_newest_run_that_has_not_ended(jobs):
    """And the others are named."""
    first, second = start(jobs), start(jobs)
    expect(jobs.call("run", *jobs.unenforced, refuse(jobs)[0]), code=125)
    expect(jobs.call("stop", "tested-long"), out=f"^{second}: stopped", error=f"^jobc: `{first}` still runs; `jobc stop {first}` stops it\n$")
    expect(jobs.call("stop", "tested-long"), out=f"^{first}: stopped", error="^$")
    expect(jobs.call("stop", "tested-long"), out=r"^tested-long\.\d+: could not start", error="^$")


def test_a_path_that_the_command_does_not_see_is_named(jobs):
    """The host's /tmp is hidden from an unprivileged user's command, and if it is a file system of its own."""
    path = jobs.directory / "short.yaml"
    answer = jobs.call("run", *jobs.unenforced, "--", "cat", str(path), cwd=jobs.home)
    assert (f"jobc: note: the command does not see `{path}`" in answer.stderr) == (answer.returncode == 1), answer.stderr
    mount = re.search("add `(-v [^`]*)`", answer.stderr)
    words = mount[1].split() if mount else []
    expect(jobs.call("run", *jobs.unenforced, *words, "--", "cat", str(path), cwd=jobs.home), out="^version: 1")


def test_records_are_removed_on_request(jobs):
    """Not before the job has ended."""
    name = start(jobs)
    jobs.call("run", str(jobs.directory / "short.yaml"))
    expect(jobs.call("rm", name), code=1, error="is running")
    expect(jobs.call("rm", "--force", name), out="removed")
    expect(jobs.call("inspect", name), code=2)
    expect(jobs.call("gc", "--dry-run"), out="^0 jobs")
    expect(jobs.call("gc", "--dry-run", "--older-than", "0s"), out="would remove tested-")
    expect(jobs.call("gc", "--older-than", "0s"), out="removed tested-")
    expect(jobs.call("ps", "--all", "--quiet"), out="^$")
