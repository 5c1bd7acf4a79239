"""Tests `share: {time: true}` on a simulated host: jobs take turns on a card, and no frozen one is left behind.

Each program writes the time of the host's clock at every step, so that its file says when it ran. A turn is a second.
"""

import json
import os
import re
import signal
import time

import pytest
from test_leases import Host, cleaned, expect

pytestmark = [pytest.mark.isolated, pytest.mark.duration(90), pytest.mark.accounts("root")]

TURN = 1
# A program that runs makes a step in this time; after a longer one it was frozen.
STEP, GAP = 0.02, 0.5


class TurnsHost(Host):
    """The simulated host, with a ledger of its own in which turns are short."""

    def __init__(self, jobs):
        super().__init__(jobs)
        self.lock = jobs.directory / "lock"
        self.lock.mkdir()
        self.lock.chmod(0o1777)
        (self.lock / "queue.yaml").write_text(f"turn: {TURN}s\n")

    def environment(self, **more):
        return super().environment(JOBC_LOCK_DIR=str(self.lock), **more)

    def steps(self, name, count, memory="20GiB", gpu=1, trap=None, **more):
        """The path of a job that makes that many steps on its cards."""
        run = f"for ((i = 0; i < {count}; i++)); do echo $EPOCHREALTIME >> /out/{name}; sleep {STEP}; done"
        share = {"count": gpu, "share": {"time": True, "memory": memory}}
        return self.file(name, gpu=share, run=f"trap '{trap}' TERM; {run}" if trap else run, **more)

    def ran(self, name):
        """When the program of a job ran: begin and end of each stretch."""
        stretches = []
        for moment in map(float, self.read_output(name).split()):
            if stretches and moment - stretches[-1][1] < GAP:
                stretches[-1][1] = moment
            else:
                stretches.append([moment, moment])
        return stretches

    def state(self, name):
        return self.json("inspect", name)["state"]

    def finish(self, name):
        self.call("kill", name)
        self.wait(name)


@pytest.fixture(scope="module")
def simulated(all_jobs):
    return TurnsHost(all_jobs)


# The names of jobs are those of cgroups, which tests at the same time share.
@pytest.fixture
def host(simulated, jobs):
    yield cleaned(simulated)
    simulated.call("kill", "--all")


def changes(host, *jobs):
    """How often the steps of some jobs change from one to another; at every step, if they run at the same time."""
    names = [job.split(".")[0] for job in jobs]
    steps = sorted((float(moment), name) for name in names for moment in host.read_output(name).split())
    return sum(before[1] != after[1] for before, after in zip(steps, steps[1:]))


def turns(host, *jobs):
    """How often their turns began: the first without an event."""
    return sum(1 + len(re.findall("resumed +its turn", host.call("events", job).stdout)) for job in jobs)


def test_two_jobs_alternate_and_never_run_at_the_same_time(host):
    """Both end, with all of their steps, and their events say whose turn it was."""
    first = host.start(host.steps("one", 100), "--devices", "0")
    host.wait_until_running(first)
    second = host.start(host.steps("two", 100), "--devices", "0")
    waits = host.until(lambda: "paused" in host.state(second) and host.call("why", second).stdout)
    assert "waits: its turn on GPU 0, which `one.1` has" in waits, waits
    assert "it has its turn on GPU 0; waiting for theirs: `two." in host.call("why", first).stdout
    assert "in turns with other jobs" in host.call("inspect", first).stdout
    assert host.wait(first) == host.wait(second) == 0
    assert len(host.read_output("one").split()) == len(host.read_output("two").split()) == 100
    assert 3 <= changes(host, first, second) <= turns(host, first, second), (host.ran("one"), host.ran("two"))
    events = host.call("events", second).stdout
    assert re.search(r"paused +waits for its turn on GPU 0", events) and re.search(r"resumed +its turn on GPU 0", events), events
    assert host.json("gpu", "leases") == {"leases": [], "waiting": []}


def test_a_job_that_is_alone_keeps_its_turn(host):
    """Also where others take turns on another card."""
    alone = host.start(host.steps("alone", 100), "--devices", "1")
    others = [host.start(host.steps(name, 60), "--devices", "0") for name in ("left", "right")]
    assert [host.wait(job) for job in (alone, *others)] == [0, 0, 0]
    assert "paused" not in host.call("events", alone).stdout
    assert len(host.ran("alone")) == 1, host.ran("alone")


def test_a_job_prefers_a_card_of_its_own(host):
    """As long as one is free; the third shares."""
    jobs = [host.start(host.steps(name, 10_000)) for name in ("prefers-1", "prefers-2", "prefers-3")]
    host.until(lambda: all(host.devices_of(job) for job in jobs))
    devices = [host.devices_of(job)[0] for job in jobs]
    assert sorted(devices[:2]) == ["0", "1"] and devices[2] in devices[:2], devices


def test_three_jobs_have_about_equal_turns(host):
    names = ["equal-1", "equal-2", "equal-3"]
    jobs = [host.start(host.steps(name, 10_000), "--devices", "0") for name in names]
    host.until(lambda: min(len(host.ran(name)) for name in names) >= 3, 60)
    counts = [len(host.ran(name)) for name in names]
    changed = changes(host, *jobs)
    assert changed <= turns(host, *jobs) and max(counts) - min(counts) <= 1, (changed, counts)
    for job in jobs:
        host.finish(job)
    for name in names:
        # The second of each is a whole turn: the first began when the job came.
        begin, end = host.ran(name)[1]
        assert 0.5 * TURN < end - begin < 2 * TURN, (name, host.ran(name))


@pytest.mark.parametrize("victim", ["running", "paused"])
def test_a_killed_supervisor_holds_up_no_other(host, victim):
    """Whether it had the turn or waited for it, the other has the card for itself from then on."""
    names = [f"{victim}-{number}" for number in (1, 2)]
    jobs = [host.start(host.steps(name, 10_000), "--devices", "0") for name in names]
    host.until(lambda: all(host.ran(name) for name in names))
    killed = host.until(lambda: next((job for job in jobs if host.state(job) == victim), None))
    other = next(job for job in jobs if job != killed)
    os.kill(host.supervisor(killed), signal.SIGKILL)
    host.until(lambda: host.state(killed) == "lost")
    name = other.split(".")[0]
    host.until(lambda: host.state(other) == "running", 5)
    begin = len(host.read_output(name).split())
    time.sleep(2.5 * TURN)
    assert len(host.read_output(name).split()) > begin + 0.5 * 2.5 * TURN / STEP / 4
    assert len(host.ran(name)[-1:]) == 1 and host.state(other) == "running"


def test_a_frozen_job_is_stopped_paused_and_entered_as_others_are(host):
    """A stop does not wait for the turn; a pause keeps the job frozen in its turns; a program in it is refused."""
    left = "echo left >> /out/left; exit 0"
    holder = host.start(host.steps("holder", 10_000), "--devices", "0")
    host.wait_until_running(holder)
    frozen = host.start(host.steps("frozen", 10_000, trap=left), "--devices", "0")
    host.until(lambda: host.ran("frozen"))
    host.until(lambda: host.state(frozen) == "paused")
    refused = host.call("exec", frozen, "--", "true")
    if host.state(frozen) == "paused":
        expect(refused, refused.returncode, r"is frozen until its turn: waits: its turn on GPU 0, which `holder\.\d+` has")
    host.until(lambda: host.state(frozen) == "paused")
    expect(host.call("pause", frozen), 0)
    host.until(lambda: not host.call("why", holder).stdout.count("waiting for theirs"))
    steps = host.read_output("frozen")
    time.sleep(3 * TURN)
    assert host.read_output("frozen") == steps and len(host.ran("holder")) and host.state(frozen) == "paused"
    expect(host.call("resume", frozen), 0)
    host.until(lambda: host.read_output("frozen") != steps)
    host.until(lambda: host.state(frozen) == "paused")
    began = time.monotonic()
    expect(host.call("stop", frozen), 0)
    host.wait(frozen)
    assert host.read_output("left") == "left\n" and host.state(frozen) == "stopped" and time.monotonic() - began < 5
    assert host.state(holder) == "running"


def test_memory_that_does_not_fit_is_refused(host):
    """The GPU memory of the jobs that take turns on a card adds up to no more than it has; a job without turns does not join."""
    first = host.start(host.steps("holds", 10_000, memory="50GiB"), "--devices", "0")
    host.wait_until_running(first)
    large = host.steps("large", 1, memory="40GiB")
    expect(host.run(large, "--devices", "0"), 125, r"needs 1 GPU of 40 GiB in turns among 0 for `main`, and 0 of 1 that match are free: `holds\.\d+` has 50 GiB of GPU 0 in turns")
    expect(host.run(host.steps("huge", 1, memory="100GiB")), 125, "J0327", "requests a slice of 100GiB, and this host has 2 `NVIDIA A100-SXM4-80GB` of 80GiB")
    expect(host.run(host.file("whole"), "--devices", "0"), 125, r"`holds\.\d+` has 50 GiB of GPU 0 in turns")
    expect(host.run(host.steps("small", 1, memory="20GiB"), "--devices", "0"), 0)
    expect(host.run(host.steps("many", 1, instances=3)), 125, "`main` needs 3 GPUs of 20 GiB in turns, this host has 2")


def test_a_job_on_two_cards_has_both_turns_or_none(host):
    """It runs when neither of the others does, and all three end."""
    one = host.start(host.steps("card-0", 60), "--devices", "0")
    other = host.start(host.steps("card-1", 60), "--devices", "1")
    for job in (one, other):
        host.wait_until_running(job)
    both = host.start(host.steps("cards", 60, gpu=2), "--devices", "0,1")
    assert [host.wait(job) for job in (one, other, both)] == [0, 0, 0]
    for job in (one, other):
        assert 1 <= changes(host, job, both) <= turns(host, job, both), (host.ran("cards"), host.ran("card-0"), host.ran("card-1"))


@pytest.mark.accounts("range")
def test_a_task_that_cannot_be_frozen_is_refused(host):
    """Without root and without delegated cgroups a job cannot take turns, and does not start without them."""
    expect(host.run(host.steps("loose", 1), "--devices", "0"), 125, "the task has no cgroup that can be frozen", "jobc doctor")
    assert not host.ran("loose")


LEAVES = "ls /dev | grep -c 'nvidia[0-9]' >> /out/{name}; trap 'exit 85' TERM; [ -e /out/end ] || while :; do sleep 0.1; done"


def growing(host, name, **settings):
    """The path of a job that asks for one GPU and takes two; it writes how many it sees, and ends once /out/end exists."""
    path = host.file(name, gpu={"count": 1, "share": {"grow": 2}}, run=LEAVES.format(name=name))
    with open(path) as file:
        job = json.load(file)
    with open(path, "w") as file:
        json.dump(job | {"preemption": {"exit_codes": [85], "grace": "5s"}} | settings, file)
    return path


def test_a_job_grows_and_gives_back_what_another_waits_for(host):
    """It leaves by the contract and goes on with one GPU; the other has what it waited for; nothing counts as a retry."""
    grown = host.start(growing(host, "grown"))
    host.until(lambda: host.read_output("grown") == "2\n")
    assert sorted(host.devices_of(grown)) == ["0", "1"]
    other = host.start(host.steps("grown-other", 10_000), "--queue")
    host.until(lambda: host.ran("grown-other"))
    host.until(lambda: host.read_output("grown") == "2\n1\n")
    assert len(host.devices_of(grown)) == 1 == len(host.devices_of(other))
    record = host.json("inspect", grown)
    assert record["state"] == "running" and any("gave GPUs back" in note and other in note for note in record["notes"]), record["notes"]
    assert record["tasks"][0]["earlier"][0]["verdict"]["kind"] == "preempted"
    # What is free again is not taken while it runs.
    host.finish(other)
    time.sleep(2)
    assert len(host.devices_of(grown)) == 1
    (host.output / "end").touch()
    expect(host.call("suspend", grown), 0)
    host.until(lambda: host.state(grown) == "suspended")
    expect(host.call("resume", grown), 0)
    assert host.wait(grown) == 0
    assert host.read_output("grown") == "2\n1\n2\n"


def test_a_job_does_not_grow_onto_what_others_wait_for(host):
    """It starts with what it asks for."""
    holder = host.start(host.file("modest-holder", run="sleep 60"), "--devices", "0")
    host.wait_until_running(holder)
    both = host.start(host.file("modest-both", gpu=2), "--queue")
    host.until(lambda: host.json("gpu", "leases")["waiting"])
    (host.output / "end").touch()
    # It has the priority, so it passes the one that waits.
    expect(host.run(growing(host, "modest", priority=9), "--queue"), 0)
    assert host.read_output("modest") == "1\n"
    host.finish(holder)
    assert host.wait(both) == 0
