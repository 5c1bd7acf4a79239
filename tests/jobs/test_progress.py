"""Tests `progress`: how far a job is, by lines of its log or by a file, and the time that is left."""

import json
import os
import re
import time

import pytest

from command_line import expect

pytestmark = [pytest.mark.isolated, pytest.mark.duration(8), pytest.mark.accounts("root")]

LOG = """\
version: 1
name: tested-steps
image: host
progress: {log: "step (?P<done>[0-9]+)/(?P<total>[0-9]+)"}
roles:
  train:
    instances: 2
    shell: sh
    run: |
      [ $JOBC_INDEX = 0 ] || exec sleep 60
      # It resumes at 500.
      echo step 500/1000; sleep 2; printf 'step 510/1000\\rstep 600/1000\\n'; exec sleep 60
"""

FILE = """\
version: 1
name: tested-state
image: host
outputs:
  runs: {source: ./runs, mount: /output}
roles:
  train:
    shell: sh
    progress: {file: /output/state.json, done: trainer.step, total: trainer.steps}
    run: |
      echo '{"trainer": {"step": 250, "steps": 1000}}' > /output/state.json; exec sleep 60
"""


def start(jobs, name, text):
    path = jobs.directory / f"{name}.yaml"
    path.write_text(text.replace("$JOBC_INDEX", "${{ instance.index }}"))
    expect(jobs.call("run", "--detach", *jobs.unenforced, str(path)))


def listed(jobs, name):
    return next(job for job in json.loads(jobs.call("ps", "--all", "--format", "json").stdout) if job["job"] == name)


def test_lines_of_the_log_say_how_far_it_is(jobs):
    start(jobs, "tested-steps", LOG)
    jobs.until("tested-steps", lambda record: any(metric["value"] == 600 for metric in record.get("metrics", [])))
    progress = listed(jobs, "tested-steps")["progress"]
    assert (progress["role"], progress["done"], progress["total"], progress["percent"]) == ("train", 600, 1000, 60)
    # 100 in 2 s: 400 take 8 s more, and not less because of the 500 before.
    assert 5 <= progress["left_seconds"] <= 10, progress
    expect(jobs.call("ps"), out=r"PROGRESS +END\ntested-steps\.1 +running .* 60%, [0-9.]+ s left")
    tasks = expect(jobs.call("ps", "tested-steps"), out="PROGRESS").stdout
    assert re.search(r"(?m)^train-0 .* 60%, ", tasks) and not re.search(r"(?m)^train-1 .*%", tasks) and "PROGRESS.DONE" not in tasks, tasks
    expect(jobs.call("inspect", "tested-steps"), out=r"progress +60%, [0-9.]+ s left \(600 of 1000\)")
    expect(jobs.call("metrics"), out=r'jobc_role_progress_done\{name="tested-steps",run="tested-steps\.1",role="train"\} 600')
    page = expect(jobs.call("report", "tested-steps", "-o", "-")).stdout
    assert re.search(r"<small>Progress</small> <span>60%, [0-9.]+ s left \(600 of 1000\)</span>", page)
    expect(jobs.call("stop", "tested-steps"))
    assert listed(jobs, "tested-steps")["progress"]["left_seconds"] is None


def test_a_file_says_how_far_it_is(jobs):
    start(jobs, "tested-state", FILE)
    jobs.until("tested-state", lambda record: len(record.get("metrics", [])) == 2)
    progress = listed(jobs, "tested-state")["progress"]
    assert progress == {"role": "train", "done": 250, "total": 1000, "percent": 25, "left_seconds": None}
    expect(jobs.call("stop", "tested-state"))


def test_a_notice_at_the_end(jobs):
    """By notify-send, which a desktop has; a pipe gets none, and one that hangs is left behind."""
    path = jobs.job("tested-notice", script="exit 3", instances=1)
    tools = jobs.directory / "tools"
    tools.mkdir()
    told = jobs.directory / "told"

    def run(script):
        (tools / "notify-send").write_text(f"#!/bin/sh\n{script}\n")
        (tools / "notify-send").chmod(0o755)
        environment = {"PATH": f"{tools}:{os.environ['PATH']}", "DISPLAY": ":9", "TERM": "xterm-kitty"}
        began = time.monotonic()
        answer = jobs.call("run", "--notify", *jobs.unenforced, path, **environment)
        assert answer.returncode == 1 and "\x1b]9" not in answer.stderr, answer
        return time.monotonic() - began

    run(f'printf "%s\\n" "$@" > {told}')
    words = told.read_text().splitlines()
    assert words[:3] == ["--app-name=jobc", "--", "tested-notice.1"] and words[3].startswith("failed: "), words
    expect(jobs.call("wait", "--notify", "tested-notice"), code=1)
    assert run("exec sleep 60") < 15
