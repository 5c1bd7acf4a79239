"""Tests what a job says of faults of its GPUs, by a simulated NVML: errors of the driver, of memory and links, reduced clocks, hung collectives."""

import json
import time

import pytest

from gang import wrote
from test_discovery import ANSWERS
from test_discovery import Host as SharedHost

pytestmark = [pytest.mark.isolated, pytest.mark.duration(30), pytest.mark.accounts("root", slow=("range", "single")), pytest.mark.together(4)]
# As a CUDA program that loses its card: the driver knows a moment before the program does.
DIES = "sleep 2; echo gpu.0.event.0=8 {xid} >>/driver/nvml.answers; echo 'RuntimeError: CUDA error: unspecified launch failure' >&2; exit 1"


class Host(SharedHost):
    """Each has a ledger of its own, since the GPUs of all have the same names."""

    def __init__(self, jobs, name):
        super().__init__(jobs, name)
        self.ledger = self.root / "ledger"
        self.ledger.mkdir()
        self.ledger.chmod(0o1777)

    def call(self, *words, **more):
        return super().call(*words, JOBC_LOCK_DIR=str(self.ledger), **more)


def faults(host, name):
    lines = host.call("events", name, "--format", "json").stdout.splitlines()
    return [event["detail"] | {"task": event["task"]} for event in map(json.loads, lines) if event["event"] == "gpu-fault"]


def until(what, seconds=30):
    deadline = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.2)
    return found


@pytest.mark.parametrize("xid, kind, words", [
    (79, "node", ("fallen off the bus", "drained")),
    pytest.param(94, "node", ("error that ended the program", "run it again"), marks=pytest.mark.slow),
    (31, "user error", ("exit 1", "")),
], ids=["lost", "memory", "program"])
def test_an_error_of_the_driver_decides_whose_fault_it_is(all_jobs, xid, kind, words):
    """It comes just before the end. What a program does wrong is its own fault."""
    host = Host(all_jobs, "h200")
    answers = host.root / ANSWERS
    answers.chmod(0o666)
    driver = {"outputs": {"driver": {"source": str(answers.parent), "mount": "/driver"}}}
    name = host.start(host.job(f"xid-{xid}", driver, run=DIES.format(xid=xid), resources={"gpu": 1}))
    all_jobs.until(name, lambda record: record.get("end"))
    record = all_jobs.record(name)
    verdict = record["end"]["verdict"]
    assert verdict["kind"] == kind and words[0] in "; ".join(verdict["evidence"]) and words[1] in verdict.get("next", ""), verdict
    [fault] = faults(host, name)
    assert (fault["gpu"], fault["xid"], fault["task"]) == ("GPU 0", xid, "main-0"), fault
    assert f"GPU 0: XID {xid}: " in host.call("events", name).stdout
    assert any(note.startswith(f"main-0: GPU 0: XID {xid}: ") for note in record["notes"]), record["notes"]
    if xid == 79:
        wrote("GPU off the bus (XID 79)", "main-0", verdict)


def test_old_errors_and_those_of_other_gpus_are_not_the_jobs(all_jobs):
    host = Host(all_jobs, "h100")
    host.answer("gpu.0.ecc_errors=7", "gpu.0.link_errors=100", "gpu.0.event.0=8 43")
    job = host.job("own-gpu", run="sleep 3; exit 5", resources={"gpu": 1})
    name = host.call("run", "--detach", "--devices", "1", *(["--allow-unenforced"] if all_jobs.account else []), job).stdout.strip()
    time.sleep(1.5)
    host.answer("gpu.0.event.1=8 79", "gpu.2.ecc_errors=1")
    all_jobs.until(name, lambda record: record.get("end"))
    assert faults(host, name) == [] and all_jobs.record(name)["end"]["verdict"]["kind"] == "user error", all_jobs.record(name)


def test_counters_and_clocks_are_events_of_a_job_that_goes_on(all_jobs):
    host = Host(all_jobs, "h200")
    host.answer("gpu.0.ecc_errors=2", "gpu.0.link_errors=5")
    name = host.start(host.job("counted", run="exec sleep 60", resources={"gpu": 1}))
    time.sleep(2)
    assert faults(host, name) == []
    host.answer("gpu.0.ecc_errors=3", "gpu.0.link_errors=45", "gpu.0.throttle=72")
    found = until(lambda: len(faults(host, name)) == 3 and faults(host, name))
    assert [fault["what"] for fault in found] == [
        "1 error of its memory could not be corrected", "40 errors of its NVLinks", "its clocks are reduced: it is too hot (hardware)"], found
    assert all_jobs.record(name)["state"] == "running"
    host.call("stop", name)


HANGS = "echo step 1; while :; do :; done"


def test_gpus_at_full_use_with_low_power_are_a_sign_of_a_stall(all_jobs):
    """The program computes while it waits for them. With much power they work, whatever else is quiet."""
    host = Host(all_jobs, "h200")
    stall = {"stall": {"after": "4s", "action": "fail"}}
    host.answer("gpu.0.utilization=100 0", "gpu.0.power=330000")
    quiet = host.start(host.job("spins-not", stall, run="exec sleep 12", resources={"gpu": 1}, grace_period="1s"))
    all_jobs.until(quiet, lambda record: record.get("end"), 30)
    assert all_jobs.record(quiet)["state"] == "succeeded", all_jobs.record(quiet)["end"]
    host.answer("gpu.0.utilization=100 0", "gpu.0.power=90000")
    name = host.start(host.job("spins", stall, run=HANGS, resources={"gpu": 1}, grace_period="1s"))
    all_jobs.until(name, lambda record: record.get("end"), 40)
    verdict = all_jobs.record(name)["end"]["verdict"]
    assert verdict["kind"] == "stall" and "GPUs at full use with low power" in verdict["evidence"][0], verdict
    wrote("hung collective, with `stall`", "main-0", verdict)


def test_a_wrong_driver_is_refused_before_anything_runs(all_jobs):
    host = Host(all_jobs, "v100")
    answer = host.call("run", host.job("driver", run="true", resources={"gpu": {"count": 1, "driver": "550"}}))
    assert answer.returncode != 0 and "470.223.02" in answer.stderr and "550" in answer.stderr, answer
    wrote("older driver than `gpu: {driver: \"550\"}`", "", {"kind": "(refused)", "evidence": [answer.stderr.splitlines()[0]]})


def test_a_suspended_job_gives_its_gpu_back(all_jobs):
    """Another job has it meanwhile, and the lease is there again after `resume`."""
    host = Host(all_jobs, "h200")
    words = ["--allow-unenforced"] if all_jobs.account else []
    leave = "trap 'exit 85' TERM; while :; do sleep 0.1; done"
    name = host.start(host.job("leaves", {"preemption": {"exit_codes": [85], "grace": "5s"}}, run=leave, resources={"gpu": 1}))

    def leases():
        return [lease["job"] for lease in host.listed()["leases"]]

    assert leases() == [name]
    other = host.job("takes", run="sleep 1", resources={"gpu": 1})
    refused = host.call("run", *words, other)
    assert refused.returncode == 125 and f"`{name}` has GPU 0" in refused.stderr, refused
    assert host.call("suspend", name).returncode == 0
    all_jobs.until(name, lambda record: record["state"] == "suspended" and record["tasks"][0]["state"] == "retrying")
    until(lambda: leases() == [])
    taken = host.call("run", *words, other)
    assert taken.returncode == 0, taken
    assert host.call("resume", name).returncode == 0
    all_jobs.running(name)
    until(lambda: leases() == [name])
    host.call("stop", name)
