"""Tests what a job says when something happens to its host: a task without network, a clock that is set, a claim that is removed."""

import json
import os
import subprocess
import time

import needs
import pytest

from command_line import SECONDS, expect
from gang import gang, wrote

pytestmark = [pytest.mark.isolated, pytest.mark.duration(40), pytest.mark.accounts("root"), pytest.mark.together(3)]
# A clock that is ahead by the seconds in a file.
CLOCK = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *out) {
    int result = (int)syscall(SYS_clock_gettime, clock, out);
    FILE *file = clock == CLOCK_REALTIME ? fopen(getenv("AHEAD"), "r") : NULL;
    long ahead = 0;
    if (file != NULL) {
        if (fscanf(file, "%ld", &ahead) == 1) out->tv_sec += ahead;
        fclose(file);
    }
    return result;
}
"""


def events(jobs, name, kind, **more):
    lines = jobs.call("events", "--format", "json", name, **more).stdout.splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == kind]


def test_the_task_that_has_lost_its_network_is_named(all_jobs):
    """All ranks wait for data, but what this one sends is not acknowledged."""
    needs.tool("nsenter")
    path = all_jobs.directory / "network.json"
    role = gang(grace_period="1s", env={"STEPS": 4000})
    path.write_text(json.dumps({"version": 1, "name": "network", "image": "host", "network": "job", "roles": role, "stall": {"after": "4s", "action": "fail"}}))
    begin = time.monotonic()
    run = all_jobs.run(str(path))
    all_jobs.until("network", lambda _: "step 5" in all_jobs.call("logs", "network").stdout)
    pid = next(task["process"]["pid"] for task in all_jobs.record("network")["tasks"] if task["task"] == "rank-2")
    inside = ["nsenter", "--target", str(pid), "--net", "ip"]
    links = json.loads(subprocess.run([*inside, "-json", "link"], check=True, capture_output=True).stdout)
    [name] = [link["ifname"] for link in links if link["ifname"] != "lo" and "UP" in link["flags"]]
    subprocess.run([*inside, "link", "set", name, "down"], check=True)
    text, _ = run.communicate(timeout=60)
    assert run.returncode == 1 and time.monotonic() - begin < 60, text
    record = all_jobs.record("network")
    verdict = record["end"]["verdict"]
    assert record["end"]["task"] == "rank-2" and verdict["kind"] == "stall", record["end"]
    assert "what it sends over the network is not acknowledged" in verdict["evidence"][0], verdict
    [event] = events(all_jobs, "network", "stalled")
    with open(event["detail"]["file"]) as file:
        kept = file.read()
    # What was on its way to it may not be acknowledged either.
    assert kept.index("not acknowledged: to ") < kept.index("== rank-0"), kept
    wrote("lost network of one task, with `stall`", "rank-2", verdict)


@pytest.mark.parametrize("seconds", (86400, pytest.param(-3600, marks=pytest.mark.slow)))
def test_a_clock_that_is_set_ends_nothing(all_jobs, seconds):
    """Time limits, readiness and stalls go by a clock that cannot be set."""
    needs.tool("cc")
    ahead, library = all_jobs.directory / f"ahead{seconds}", all_jobs.directory / f"clock{seconds}.so"
    ahead.write_text("0")
    source = all_jobs.directory / f"clock{seconds}.c"
    source.write_text(CLOCK)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    name = f"clock-{seconds}".replace("--", "-")
    path = all_jobs.directory / f"{name}.json"
    role = gang(env={"PACE": 0.5, "STEPS": 20}, timeout="30m")
    path.write_text(json.dumps({"version": 1, "name": name, "image": "host", "roles": role, "stall": {"after": "10m", "action": "fail"}}))
    run = all_jobs.run(str(path), LD_PRELOAD=str(library), AHEAD=str(ahead))
    all_jobs.until(name, lambda _: "step 5" in all_jobs.call("logs", name).stdout)
    ahead.write_text(str(seconds))
    text, _ = run.communicate(timeout=60)
    assert run.returncode == 0, text
    [event] = events(all_jobs, name, "clock-set")
    assert abs(event["detail"]["seconds"] - seconds) <= 1, event
    words = "the clock of this host was set " + ("forward by 1d" if seconds > 0 else "back by 1h")
    record = all_jobs.record(name)
    [note] = [note for note in record["notes"] if note.startswith("the clock of this host was set")]
    assert words.rsplit(" ", 1)[0] in note, note
    assert {task["verdict"]["kind"] for task in record["tasks"]} == {"success"}, record["tasks"]
    if seconds > 0:
        wrote("clock that is set", "", {"kind": "success", "evidence": [note]})


def test_a_claim_that_was_removed_is_written_anew(all_jobs):
    """Others see it again, and cannot take what the job has."""
    cpus = len(os.sched_getaffinity(0))
    lock = all_jobs.directory / "lock"
    lock.mkdir(mode=0o777)
    lock.chmod(0o1777)
    here = {"JOBC_LOCK_DIR": str(lock)}
    job = {"version": 1, "image": "host", "roles": {"main": {"shell": "sh", "run": "exec sleep 60", "resources": {"cpu": cpus}}}}
    for name in ("claims", "wants"):
        (all_jobs.directory / f"{name}.json").write_text(json.dumps(job | {"name": name}))
    run = all_jobs.run(str(all_jobs.directory / "claims.json"), **here)
    all_jobs.running("claims")
    for file in lock.iterdir():
        file.unlink()
    deadline = time.monotonic() + SECONDS
    while not events(all_jobs, "claims", "claim-lost"):
        assert time.monotonic() < deadline, all_jobs.record("claims")
        time.sleep(0.2)
    [note] = [note for note in all_jobs.record("claims")["notes"] if "ledger" in note]
    assert note.endswith("it was written anew"), note
    assert "claims.1" in all_jobs.call("ps", "--queue", **here).stdout
    refused = all_jobs.call("run", str(all_jobs.directory / "wants.json"), **here)
    expect(refused, code=125, error="claims.1")
    wrote("removed claim", "", {"kind": "(goes on)", "evidence": [note]})
    expect(all_jobs.call("stop", "claims"))
    run.communicate(timeout=SECONDS)
    assert not [file for file in lock.iterdir() if file.name.startswith("admitted")], list(lock.iterdir())
