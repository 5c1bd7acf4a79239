"""Tests the queue of a host: `priority` and `after` of jobs, and the limits and the fair share of `queue.yaml`."""

import json
import re
import time

import pytest

from command_line import expect
from test_why import CPUS, JOB

pytestmark = [pytest.mark.isolated, pytest.mark.duration(8), pytest.mark.accounts("root")]


@pytest.fixture
def host(jobs):
    """A host with a ledger of its own."""
    lock = jobs.home / "lock"
    lock.mkdir(mode=0o777)
    call = jobs.call
    jobs.call = lambda *words, **more: call(*words, **({"JOBC_LOCK_DIR": str(lock)} | more))
    yield jobs
    jobs.call("kill", "--all")
    jobs.call = call
    for file in lock.iterdir():
        file.unlink()
    lock.rmdir()


def start(jobs, name, more="", cpus=CPUS, seconds=60, queue=True):
    path = jobs.directory / f"{name}.yaml"
    path.write_text(JOB.format(name=name, more=more, cpus=cpus, run=f"exec sleep {seconds}"))
    return jobs.call("run", "--detach", *(["--queue"] if queue else []), *jobs.unenforced, str(path), cwd=jobs.directory)


def waiting(jobs, name):
    return jobs.until(name, lambda record: record["state"] == "queued" and record["reasons"])


def rows(jobs):
    return json.loads(expect(jobs.call("ps", "--queue", "--format", "json")).stdout)


def test_a_higher_priority_passes_those_that_wait(host):
    expect(start(host, "first"))
    host.running("first")
    for name, priority in (("low", "priority: -5"), ("usual", ""), ("high", "priority: 50")):
        expect(start(host, name, priority))
        waiting(host, name)
    assert [(row["job"], row["place"], row["priority"]) for row in rows(host)] == [
        ("first.1", None, 0), ("high.1", 1, 50), ("usual.1", 2, 0), ("low.1", 3, -5)]
    expect(host.call("ps", "--queue"), out=r"(?m)^1 +high\.1 +root +50 +\d+ CPUs? +first\.1 +-$")
    # The supervisor writes its reason anew when the ledger has changed.
    host.until("low", lambda record: "place 3 of the queue" in json.dumps(record["reasons"]))
    expect(host.call("why", "low"), out="place 3 of the queue")
    expect(host.call("stop", "first"))
    host.running("high")
    assert host.record("usual")["state"] == "queued"


def test_limits_of_the_host_hold(host):
    (host.home / "lock" / "queue.yaml").write_text("limits: {users: {root: {jobs: 1, priority: 0}}}\n")
    expect(start(host, "one", cpus=0.1))
    host.running("one")
    why = "user `root` has 1 of 1 running jobs: `one.1`"
    refused = start(host, "two", cpus=0.1, queue=False)
    deadline = time.monotonic() + 20
    while host.record("two")["state"] != "failed" and time.monotonic() < deadline:
        time.sleep(0.1)
    assert refused.returncode in (0, 125) and why in json.dumps(host.record("two"))
    expect(start(host, "three", "priority: 9", cpus=0.1))
    waiting(host, "three")
    expect(host.call("why", "three"), out=re.escape(why))
    assert [(row["job"], row["priority"], row["waits_for"]) for row in rows(host)] == [("one.1", 0, []), ("three.1", 0, ["one.1"])]
    expect(host.call("stop", "one"))
    host.running("three")
    (host.home / "lock" / "queue.yaml").write_text("limits: {users: {root: {gpu: 1}}}\n")
    expect(start(host, "four", cpus=0.1), code=125, error=r"queue\.yaml`: unknown field `gpu`")


def test_past_use_is_shown_where_it_counts(host):
    (host.home / "lock" / "queue.yaml").write_text("fair_share: {half_life: 7d}\n")
    expect(start(host, "used", cpus=CPUS, seconds=3))
    host.until("used", lambda record: record["state"] == "succeeded")
    expect(start(host, "next", cpus=0.1))
    host.running("next")
    assert [2 <= row["used_seconds"] <= 8 for row in rows(host)] == [True], rows(host)


def test_a_job_starts_at_its_time_and_not_before(host):
    began = time.time()
    expect(start(host, "later", "after: 4s", cpus=0.1, seconds=0, queue=False))
    waiting(host, "later")
    expect(host.call("why", "later"), out=r"waits: its start time, [-0-9T:.]+Z, by `after`")
    record = host.until("later", lambda record: record["state"] == "succeeded")
    assert time.time() - began >= 4, record
    expect(start(host, "day", "after: '2030-02-30T10:00'", cpus=0.1), code=125, error=r"J0639.*not a day of the calendar\n --> .*day\.yaml:4:8")
    expect(start(host, "never", "after: '2100-01-01T00:00Z'", cpus=0.1))
    waiting(host, "never")
    expect(host.call("stop", "never"))
    assert host.record("never")["state"] == "stopped"
