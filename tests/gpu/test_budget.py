"""Tests `budget` on a simulated host: a job is asked to leave when its attempts together have used that much."""

import json
import re

import pytest
from test_leases import Host, cleaned, expect

pytestmark = [pytest.mark.isolated, pytest.mark.duration(40), pytest.mark.accounts("root", slow=("range", "single"))]

# It saves when it is asked to leave, and says so.
LEAVES = "trap 'echo saved >> /out/saved; exit 85' TERM; echo begun >> /out/begun; while :; do sleep 0.1; done"


@pytest.fixture(scope="module")
def simulated(all_jobs):
    return Host(all_jobs)


@pytest.fixture
def host(simulated, jobs):
    simulated.answer(*(f"gpu.{card}.energy=5000000 100000" for card in (0, 1)))
    return cleaned(simulated)


def job(host, name, budget, run=LEAVES, prices=None, **more):
    """The path of a job with a budget."""
    path = host.file(name, run=run, **more)
    with open(path) as file:
        text = json.load(file)
    text |= {"budget": budget, "preemption": {"exit_codes": [85], "grace": "5s"}}
    with open(path, "w") as file:
        json.dump(text, file)
    if prices:
        targets = {"version": 1, "default": ["here"], "targets": {"here": {"backends": ["oci"], "prices": prices}}}
        with open(path.replace("job.json", "targets.yaml"), "w") as file:
            json.dump(targets, file)
    return path


def ran(host, name):
    """Seconds of each attempt, and the record."""
    record = host.json("inspect", name)
    task = record["tasks"][0]
    def seconds(time):
        hours, minutes, rest = re.search(r"T(\d+):(\d+):([\d.]+)Z", time).groups()
        return int(hours) * 3600 + int(minutes) * 60 + float(rest)
    return [seconds(one["ended"]) - seconds(one["started"]) for one in [*task.get("earlier", []), task]], record


def test_gpu_hours_of_all_attempts_count(host):
    """Two GPUs for 6 s are 12 s: the first attempt has 3 of them, and the second is asked to leave after the other 3."""
    script = f"[ -e /out/begun ] || {{ echo begun >> /out/begun; sleep 3; exit 1; }}; {LEAVES}"
    path = job(host, "hours", {"gpu_hours": round(12 / 3600, 6)}, run=script, gpu=2, retry={"max": 3, "backoff": "1s"})
    answer = host.run(path)
    expect(answer, 124, r"its budget is used up, 0\.003\d* of 0\.003333 GPU-hours")
    seconds, record = ran(host, "hours")
    assert len(seconds) == 2 and 5.5 < sum(seconds) < 8, seconds
    assert host.read_output("saved") == "saved\n", "it was not asked to leave"
    assert (record["state"], record["end"]["verdict"]["kind"]) == ("timed-out", "timeout"), record["end"]
    assert "--retry-of" in record["end"]["verdict"]["next"], record["end"]


def test_energy_is_a_limit(host):
    """100 W for 4 s are 400 J."""
    expect(host.run(job(host, "joules", {"energy": "400J"})), 124, r"its budget is used up, 4\d\d J of 400 J")
    seconds, record = ran(host, "joules")
    assert 3.5 < seconds[0] < 8 and host.read_output("saved") == "saved\n", seconds
    assert record["tasks"][0]["energy"]["gpu_millijoules"] >= 390_000, record["tasks"][0]


def test_cost_is_a_limit_and_in_the_history(host):
    """A card costs a cent in 10 ms."""
    path = job(host, "cost", {"cost": 4}, prices={"currency": "EUR", "gpu": 3600})
    plan = host.call("plan", path)
    assert re.search(r"(?m)^cost +at most 4\.00 EUR by the budget, 3600\.00 EUR in an hour$", plan.stdout), plan.stdout
    expect(host.run(path), 124, r"its budget is used up, 4\.\d\d of 4\.00 EUR")
    seconds, _ = ran(host, "cost")
    assert 3.5 < seconds[0] < 8, seconds
    usage = host.json("history", "cost")[0]["usage"]
    assert usage["cost"] == {"amount": pytest.approx(seconds[0], abs=0.1), "currency": "EUR"}, usage
    assert re.search(r"COST.*\n.* [3-7]\.\d\d EUR", host.call("history", "cost").stdout)


def test_a_job_within_its_budget_is_left_alone(host):
    """It ends by itself; what it used is nothing that anybody is told."""
    budget = {"gpu_hours": 1, "energy": "1kWh", "cost": 4000}
    expect(host.run(job(host, "within", budget, run="sleep 1", prices={"currency": "EUR", "gpu": 3600, "energy": 0.3})), 0)


def test_an_energy_that_nothing_counts_is_named(host):
    """A budget of energy on a card without a counter ends nothing, and the record says so."""
    host.answer("gpu.0.energy=!3", "gpu.1.energy=!3")
    expect(host.run(job(host, "uncounted", {"energy": "1J"}, run="sleep 12")), 0)
    notes = host.json("inspect", "uncounted")["notes"]
    assert any("is not counted completely" in note for note in notes), notes
