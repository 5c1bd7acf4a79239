"""Tests the energy of tasks on a simulated host, whose NVML counts by a clock: what is measured is compared with its own counter."""

import ctypes
import json
import re
import time

import pytest
from test_leases import SLICE, Host, cleaned, expect

pytestmark = [pytest.mark.isolated, pytest.mark.duration(40), pytest.mark.accounts("root", slow=("range", "single"))]

JUMP = 100_000  # millijoules

# The samples of a task that only waits are written seldom.
WORKS = "for second in $(seq 90); do sleep 0.1; done"


@pytest.fixture(scope="module")
def simulated(all_jobs):
    return Host(all_jobs)


@pytest.fixture
def host(simulated, jobs):
    simulated.answer(*(f"gpu.{card}.energy=5000000 71400" for card in (0, 1)))
    return cleaned(simulated)


class Nvml:
    """The simulated library, asked by this process."""

    def __init__(self, host):
        self.library = ctypes.CDLL(str(host.root / "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"))
        assert self.library.nvmlInit_v2() == 0

    def counter(self, card):
        """Millijoules of a card."""
        handle, energy = ctypes.c_void_p(), ctypes.c_ulonglong()
        assert self.library.nvmlDeviceGetHandleByIndex_v2(card, ctypes.byref(handle)) == 0
        assert self.library.nvmlDeviceGetTotalEnergyConsumption(handle, ctypes.byref(energy)) == 0
        return energy.value


def attempts(host, job):
    """The attempts of the task of a job: seconds, and energy."""
    task = host.json("inspect", job)["tasks"][0]
    return [(seconds(one["ended"]) - seconds(one["started"]), one.get("energy")) for one in [*task.get("earlier", []), task]]


def seconds(time):
    hours, minutes, rest = re.search(r"T(\d+):(\d+):([\d.]+)Z", time).groups()
    return int(hours) * 3600 + int(minutes) * 60 + float(rest)


def test_the_energy_of_a_task_is_that_of_the_counter_within_two_percent(host):
    """Two attempts of six seconds, in which the power of the card changes."""
    nvml = Nvml(host)
    before = nvml.counter(0)
    script = "[ -e /out/first ] && sleep 6 && exit; touch /out/first; sleep 6; exit 3"
    job = host.start(host.file("energy", run=script, retry={"max": 1, "backoff": "1s"}), "--devices", "0")
    host.wait_until_running(job)
    time.sleep(2)
    host.answer(f"gpu.0.energy={5_000_000 + JUMP} 71400")
    stats = host.until(lambda: (rows := host.call("stats", "--no-stream", job).stdout) and re.search(r" J\b", rows) and rows)
    assert re.search(r"(?m)ENERGY$", stats) and re.search(r"(?m)^energy\.\d+ .* \d+ J", stats), stats
    assert host.wait(job) == 0
    after = nvml.counter(0)
    (first, used), (second, used_again) = attempts(host, job)
    for ran, energy, jump in ((first, used, JUMP), (second, used_again, 0)):
        expected = ran * 71_400 + jump
        assert energy["gpu_millijoules"] == pytest.approx(expected, rel=0.02), f"{ran} s, {expected} mJ: {energy}"
    total = used["gpu_millijoules"] + used_again["gpu_millijoules"]
    assert total < after - before, "more than the card used meanwhile"
    kept = host.json("history", job)[0]["usage"]["energy"]
    assert kept["gpu_millijoules"] == total and kept["incomplete"] is False, kept
    assert re.search(rf"ENERGY.*\n.* {round(total / 1000)} J ", host.call("history", job).stdout), host.call("history", job).stdout
    report = host.jobs.directory / "energy.html"
    expect(host.call("report", job, "--output", str(report)), 0)
    assert f"{round(total / 1000)} J" in report.read_text(), "the report does not have it"


def test_what_no_counter_tells_is_absent(host):
    """Neither a card without a counter nor a slice of a card has an energy of 0, and both are named."""
    host.answer("gpu.1.energy=!3")
    job = host.start(host.file("old", run="sleep 2"), "--devices", "1")
    host.wait_until_running(job)
    stats = host.until(lambda: (rows := host.call("stats", "--no-stream", job).stdout) and "ENERGY" in rows and rows)
    assert re.search(r"(?m)^old\.\d+ .* -$", stats), stats
    assert host.wait(job) == 0
    assert [energy["gpu_millijoules"] for _, energy in attempts(host, job)] == [None]
    kept = host.json("history", job)[0]["usage"]["energy"]
    assert (kept["gpu_millijoules"], kept["incomplete"]) == (None, True), kept
    shared = host.start(host.file("slice", gpu={"count": 1, "share": SLICE}, run="sleep 2"), "--devices", "0")
    host.wait_until_running(shared)
    stats = host.until(lambda: (rows := host.call("stats", "--no-stream", shared).stdout) and "ENERGY" in rows and rows)
    assert re.search(r"(?m)^slice\.\d+ .* shared$", stats), stats
    assert host.wait(shared) == 0
    (_, energy), = attempts(host, shared)
    assert (energy["gpu_millijoules"], energy["gpu_shared"]) == (None, True), energy
    none = host.file("none", gpu=0)
    expect(host.run(none), 0)
    task = host.json("inspect", "none")["tasks"][0]
    assert "energy" not in task or task["energy"]["gpu_millijoules"] is None, task


def test_metrics_have_the_energy(host):
    """Prometheus sees joules that only grow."""
    job = host.start(host.file("watched", run=WORKS), "--devices", "0")
    host.wait_until_running(job)
    def joules():
        return [float(value) for value in re.findall(r"(?m)^jobc_task_gpu_energy_joules_total\{.*\} ([\d.]+)$", host.call("metrics").stdout)]
    first = host.until(joules)
    assert host.until(lambda: joules() > first)
    assert host.wait(job) == 0


def test_all_in_json(host):
    """`jobc stats --format json` has both numbers, null where nothing counts them."""
    job = host.start(host.file("json", run=WORKS), "--devices", "0")
    host.wait_until_running(job)
    def energy():
        lines = host.call("stats", "--no-stream", "--format", "json", job).stdout.splitlines()
        return next((found for line in lines if (found := json.loads(line).get("energy")) and found["gpu_millijoules"]), None)
    assert set(host.until(energy)) == {"gpu_millijoules", "cpu_millijoules"}
    assert host.wait(job) == 0
