"""Tests `jobc why JOB` for jobs of this host: what it waits for, at which line, until when, and how that changed."""

import json
import os
import re
import time

import pytest

from command_line import expect

pytestmark = [pytest.mark.isolated, pytest.mark.duration(6), pytest.mark.accounts("root")]

CPUS = len(os.sched_getaffinity(0))

JOB = """\
version: 1
name: {name}
image: host
{more}
roles:
  train:
    shell: sh
    resources:
      cpu: {cpus}
    run: {run}
"""


def start(jobs, name, more="", run="exec sleep 60", cpus=CPUS):
    path = jobs.directory / f"{name}.yaml"
    path.write_text(JOB.format(name=name, more=more, run=run, cpus=cpus))
    expect(jobs.call("run", "--detach", "--queue", *jobs.unenforced, str(path), cwd=jobs.directory))


def why(jobs, name, *words):
    return expect(jobs.call("why", *words, name, cwd=jobs.directory)).stdout


def waiting(jobs, name):
    return jobs.until(name, lambda record: record["state"] == "queued" and record["reasons"])


def test_a_job_of_the_queue_says_what_it_waits_for_and_until_when(jobs):
    environment = {"JOBC_LOCK_DIR": str(jobs.home / "lock")}
    (jobs.home / "lock").mkdir(mode=0o777)
    call = jobs.call
    jobs.call = lambda *words, **more: call(*words, **(environment | more))
    start(jobs, "why-first", "timeout: 10m")
    jobs.running("why-first")
    start(jobs, "why-second", "timeout: 5m")
    waiting(jobs, "why-second")
    text = why(jobs, "why-second")
    needs = f"needs {CPUS} CPUs?, and 0 of {CPUS} are free: `why-first.1` has {CPUS} CPUs?"
    assert re.fullmatch(rf"why-second\.1: queued\nwhy-second\.1: why-second\.yaml:9:12: waits: {needs}\n"
                        r"why-second\.1: it starts in (9|10) min at the latest, at [-0-9T:.]+Z, when `why-first\.1` reaches its `timeout`\n", text), text
    start(jobs, "why-third")
    waiting(jobs, "why-third")
    text = why(jobs, "why-third")
    assert re.search(r"; place 2 of the queue\n.*it starts in (14|15) min at the latest.*when `why-second\.1` reaches", text), text
    start(jobs, "why-fourth")
    waiting(jobs, "why-fourth")
    assert "nothing limits the wait: `why-third.1` has no `timeout`" in why(jobs, "why-fourth")
    # The whole queue: who has what, and who waits for whom.
    rows = json.loads(expect(jobs.call("ps", "--queue", "--format", "json")).stdout)
    assert [(row["job"], row["place"], row["waits_for"]) for row in rows] == [
        ("why-first.1", None, []), ("why-second.1", 1, ["why-first.1"]), ("why-third.1", 2, ["why-first.1", "why-second.1"]),
        ("why-fourth.1", 3, ["why-first.1", "why-second.1", "why-third.1"])], rows
    assert 500 < rows[0]["seconds"] == rows[1]["seconds"] <= 600 and rows[2]["seconds"] > 800 and rows[3]["seconds"] is None, rows
    expect(jobs.call("ps", "--queue"), out=rf"(?m)^PLACE +JOB .*\nhas +why-first\.1 +root +0 +{CPUS} CPUs? +- +ends in .*\n1 +why-second\.1 .* why-first\.1 +starts in (9|10) min$")
    expect(jobs.call("ps", "--queue", "why-first"), code=2, error="cannot be used with")
    # The place in the queue changes, and then it has what it waits for; the time line is kept after the job.
    expect(jobs.call("stop", "why-first", "why-second"))
    jobs.running("why-third")
    expect(jobs.call("stop", "why-third"))
    jobs.running("why-fourth")
    expect(jobs.call("stop", "why-fourth"))
    answer = json.loads(why(jobs, "why-third", "--format", "json"))
    changes = [change["text"] for change in answer["changes"]]
    assert (answer["id"], answer["state"], answer["estimate"]) == ("why-third.1", "stopped", None), answer
    assert changes[0].endswith("place 2 of the queue") and "has its resources" in changes and changes[-1].startswith("stopped"), changes
    shown = why(jobs, "why-third")
    assert re.search(r"(?m)^  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \S+  has its resources$", shown), shown


def test_a_failure_is_at_its_line(jobs):
    start(jobs, "why-late", "timeout: 1s", cpus=1)
    deadline = time.monotonic() + 20
    while (text := why(jobs, "why-late")).count("timed out") == 0 and time.monotonic() < deadline:
        time.sleep(0.2)
    assert re.match(r"why-late\.1: why-late\.yaml:4:10: timed out after 1s: ", text), text
    # After an edit the line is unknown.
    path = jobs.directory / "why-late.yaml"
    path.write_text(path.read_text() + "# edited\n")
    assert why(jobs, "why-late").startswith("why-late.1: timed out after 1s"), text
