"""Tests GPU discovery on simulated hosts: lists, a driver that hangs or dies, jobs that the host cannot serve,
usage of tasks, and traces of driver calls. No GPU is needed.

"""

import json
import re
import shutil
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
from fake_gpus import fake_gpus
import needs
import pytest

pytestmark = [pytest.mark.isolated, pytest.mark.duration(40), pytest.mark.accounts("root", slow=("range", "single"))]

ANSWERS = "usr/lib/x86_64-linux-gnu/nvml.answers"

# The cards of each vendor, and the number of MIG instances.
HOSTS = {"v100": ({"nvidia": 8}, 0), "a100": ({"nvidia": 4}, 11), "h100": ({"nvidia": 8}, 0), "h200": ({"nvidia": 1}, 0),
            "amd": ({"amd": 4}, 0), "intel": ({"intel": 2}, 0), "mixed": ({"nvidia": 1, "amd": 1, "intel": 1}, 0), "none": ({}, 0)}

IOCTL_LOOP = """\
import fcntl, os, time
node = os.open("/dev/nvidia0", os.O_RDWR)
while True:
    try:
        fcntl.ioctl(node, 0xc020462a, 0)
    except OSError:
        pass
    os.close(os.open("/dev/nvidiactl", os.O_RDWR))
    time.sleep(0.01)
"""


class Host:
    """A simulated host, and jobc's command line on it."""

    def __init__(self, jobs, name):
        self.jobs, self.root = jobs, jobs.directory / f"{name}-{time.monotonic_ns()}"
        subprocess.run([fake_gpus(needs), name, str(self.root), "--nodes", "null"], check=True)

    def answer(self, *lines):
        """Appends answers of the simulated NVML; the last line of a name counts."""
        with (self.root / ANSWERS).open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    def call(self, *words, **more):
        return self.jobs.call(*words, **({"JOBC_DRIVER_ROOT": str(self.root)} | more))

    def listed(self, **more):
        answer = self.call("gpu", "ls", "--format", "json", **more)
        assert answer.returncode == 0, answer.stderr
        return json.loads(answer.stdout)

    def job(self, name, more=None, **role):
        path = self.jobs.directory / f"{name}.json"
        path.write_text(json.dumps({"version": 1, "name": name, "image": "host", **(more or {}), "roles": {"main": {"shell": "sh", **role}}}))
        return str(path)

    def start(self, path):
        words = ["--allow-unenforced"] if self.jobs.account else []
        answer = self.call("run", "--detach", *words, path)
        assert answer.returncode == 0, answer.stderr
        name = answer.stdout.strip()
        self.jobs.running(name)
        return name


def test_gpu_ls_lists_the_cards_of_every_host(jobs):
    """The cards of every host, as JSON and as tables; a host without cards is no error."""
    for name, (vendors, instances) in HOSTS.items():
        host = Host(jobs, name)
        found = host.listed()
        counts = {}
        for gpu in found["gpus"]:
            counts[gpu["vendor"]] = counts.get(gpu["vendor"], 0) + 1
        instance_count = sum(len(gpu["mig"]["devices"]) for gpu in found["gpus"] if gpu["mig"])
        assert (counts, instance_count) == (vendors, instances) and not found["notes"], f"{name}: {counts}, {instance_count} instances, {found['notes']}"
        assert found["source"] == ("nvml" if "nvidia" in vendors else "none"), f"{name}: source {found['source']}"
        for words in (["ls"], ["ls", "--wide"]):
            answer = host.call("gpu", *words)
            rows = answer.stdout.splitlines()
            head = "no GPUs on this host" if not vendors else "GPU "
            assert answer.returncode == 0 and not answer.stderr and rows[0].startswith(head), f"{name}: {words}: exit {answer.returncode}: {answer.stdout}{answer.stderr}"


def test_the_state_of_cards_is_listed(jobs):
    """Temperature, power, clocks, ECC, modes as JSON and in the table; what a card does not report is null and `-`."""
    host = Host(jobs, "h100")
    host.answer("gpu.1.temperature=!3")
    host.answer("gpu.1.fan=42")
    host.answer("gpu.1.ecc_errors=2")
    first, second = (gpu["state"] for gpu in host.listed()["gpus"][:2])
    expected = {"temperature": 34, "fan_percent": None, "power_milliwatts": 71400, "power_limit_milliwatts": 350000,
                "graphics_clock_mhz": 1980, "memory_clock_mhz": 2619, "ecc": True, "ecc_uncorrected_errors": 0,
                "compute_mode": "Default", "persistence": True}
    assert first == expected, f"card 0: {first}"
    assert second == expected | {"temperature": None, "fan_percent": 42, "ecc_uncorrected_errors": 2}, f"card 1: {second}"
    rows = host.call("gpu", "ls", "--wide").stdout.splitlines()
    for word in ("34 °C", "71 / 350 W", "1980 / 2619 MHz", "on, 0 errors", "Default"):
        assert word in rows[1], f"`{word}` is not in: {rows[1]}"
    for word in ("42 %", "on, 2 errors"):
        assert any(word in row for row in rows), f"`{word}` is not in: {rows}"
    without = host.listed(JOBC_NVML="")["gpus"][0]["state"]
    assert all(value is None for value in without.values()), f"without NVML: {without}"


def test_files_are_used_if_nvml_hangs_crashes_or_fails(jobs):
    """If NVML hangs, crashes or fails, files are used instead, after a timeout. With `JOBC_NVML=` it is not called."""
    for answer, words in (("init=~", "timed out after 1 s"), ("count=~", "timed out after 1 s"), ("gpu.3.name=^", "signal: 6"), ("init=!9", "driver")):
        host = Host(jobs, "v100")
        host.answer(answer)
        start = time.monotonic()
        found = host.listed(JOBC_NVML_TIMEOUT="1")
        assert time.monotonic() - start <= 10, f"{answer}: it took {time.monotonic() - start:.1f} s"
        assert (found["source"], len(found["gpus"])) == ("proc", 8) and words in " ".join(found["notes"]), f"{answer}: {found['source']}, {len(found['gpus'])} cards, {found['notes']}"
        without = host.listed(JOBC_NVML="")
        assert (without["source"], without["notes"]) == ("proc", []), f"{answer}, without NVML: {without['source']}, {without['notes']}"


def test_jobc_nvml_next_to_the_program_calls_nvml_for_it(jobs):
    """`jobc-nvml` next to the program calls NVML for it; if it cannot run, or others can write it, the program calls NVML itself."""
    host = Host(jobs, "h100")
    directory = jobs.directory / "helper"
    directory.mkdir()
    own, program, helper = jobs.program, directory / "jobc", directory / "jobc-nvml"
    shutil.copy(own, program)
    try:
        jobs.program = program
        for script, mode, expected_helper in ((f'exec {own} gpu-nvml "$@"', 0o755, str(helper)), ("echo not here >&2; exit 127", 0o755, None), ("echo '{}'", 0o777, None)):
            helper.write_text(f"#!/bin/sh\n{script}\n")
            helper.chmod(mode)
            found = host.listed()
            assert (found["source"], len(found["gpus"]), found.get("asked_by"), found["notes"]) == ("nvml", 8, expected_helper, []), \
                f"{script}: {found['source']}, {len(found['gpus'])} cards, helper {found.get('asked_by')}, {found['notes']}"
    finally:
        jobs.program = own


def test_doctor_reports_the_same_cards(jobs):
    """`jobc doctor` reports the same."""
    report = json.loads(Host(jobs, "a100").call("doctor", "--format", "json", seconds=120).stdout)
    found = {check["name"]: check for check in report["checks"]}["gpu.nvidia"]
    assert found["status"] == "ok" and re.search("2 NVIDIA A100.* in 11 MIG instances with driver 535.104.05, CUDA 12.2", found["found"]), f"{found}"


def test_a_request_that_the_host_cannot_serve_is_rejected_at_its_line(jobs):
    """A request that the host cannot serve is rejected at its line, with what is available."""
    cases = [("v100", {"model": "A100"}, "J0327", "8 `Tesla V100"), ("v100", {"compute_capability": "8.0"}, "J0327", "compute capability 7.0"),
             ("h100", {"share": {"profile": "1g.10gb"}}, "J0327", "1g.10gb"), ("a100", {"count": 3}, "J0327", "3 GPUs of one host"),
             ("a100", {"memory": "96GiB"}, "J0327", "96GiB"), ("v100", {"cuda": "12.4"}, "J03", "470.223.02"),
             ("none", {"count": 1}, "J0327", "this host has none"), ("amd", {"count": 1}, "J0327", "NVIDIA GPUs")]
    for name, gpu, code, words in cases:
        host = Host(jobs, name)
        path = host.job("refused", run="true", resources={"gpu": gpu})
        answer = host.call("run", path)
        assert answer.returncode == 125 and f"error[{code}" in answer.stderr and words in answer.stderr and "refused.json:" in answer.stderr, \
            f"{name}, {gpu}: exit {answer.returncode}: {answer.stderr}"
    host = Host(jobs, "none")
    words = ["--allow-unenforced"] if jobs.account else []
    answer = host.call("run", *words, "--no-gpu", host.job("without", run="true", resources={"gpu": 1}))
    assert answer.returncode == 0, f"--no-gpu: exit {answer.returncode}: {answer.stderr}"


def test_an_image_that_requires_a_newer_driver_is_not_started(jobs):
    """A bundle whose image requires a newer driver is not started, unless the check is disabled."""
    host = Host(jobs, "v100")
    path = host.job("required", run="true", resources={"gpu": 1})
    out = jobs.directory / "required-out"
    subprocess.run([str(jobs.program), "build", path, "--backend", "oci", "--output", str(out)], check=True, capture_output=True)
    bundle = next(out.glob("*/oci/main-0"))
    config = json.loads((bundle / "config.json").read_text())
    own = list(config["process"]["env"])
    words = ["--allow-unenforced"] if jobs.account else []
    for variables, code in ((["NVIDIA_REQUIRE_CUDA=cuda>=12.4 brand=geforce,driver>=470"], 125), (["NVIDIA_REQUIRE_CUDA=cuda>=11.4"], 0),
                            (["NVIDIA_REQUIRE_CUDA=cuda>=12.4", "NVIDIA_DISABLE_REQUIRE=true"], 0)):
        config["process"]["env"] = own + variables
        (bundle / "config.json").write_text(json.dumps(config))
        answer = host.call("run", str(bundle), "--root", "host", "--devices", "0", *words)
        assert answer.returncode == code and (not code or "NVIDIA_REQUIRE_CUDA" in answer.stderr), f"{variables}: exit {answer.returncode}: {answer.stderr}"


def test_a_job_without_gpus_does_not_call_nvml(jobs):
    """A job without GPUs does not call NVML: it starts even if NVML hangs."""
    host = Host(jobs, "v100")
    host.answer("init=~")
    words = ["--allow-unenforced"] if jobs.account else []
    start = time.monotonic()
    answer = host.call("run", *words, host.job("unasked", run="sleep 1.5"))
    assert answer.returncode == 0 and time.monotonic() - start <= 8, f"exit {answer.returncode} after {time.monotonic() - start:.1f} s: {answer.stderr}"


def test_stats_has_the_gpu_usage_of_a_tasks_processes(jobs, note):
    """`jobc stats` has the GPU usage of a task's processes."""
    host = Host(jobs, "h200")
    name = host.start(host.job("used", run="exec sleep 60", resources={"gpu": 1}))
    pid = jobs.record(name)["tasks"][0]["process"]["pid"]
    host.answer(f"gpu.0.processes={pid}:{3 << 30}", "gpu.0.utilization=97 5")
    row = {}
    for _ in range(1 if jobs.account else 40):
        row = json.loads(host.call("stats", "--no-stream", "--format", "json", name).stdout.splitlines()[0])
        if row.get("gpu"):
            break
        time.sleep(0.5)
    if jobs.account:
        # Processes are matched to tasks by cgroup, which this user does not have here.
        note("an unprivileged user's task without cgroups has no GPU usage")
    else:
        assert [(use["memory"], use["utilization"]) for use in row.get("gpu", [])] == [(3 << 30, 97)], f"{row}"
    listed = host.listed()
    assert [lease["job"] for lease in listed["leases"]] == [name] and [process["pid"] for process in listed["gpus"][0]["processes"]] == [pid], f"{listed['leases']}, {listed['gpus'][0]['processes']}"
    assert name in host.call("gpu", "ls").stdout, "`gpu ls` does not show the job"


def idle_events(host, name):
    lines = host.call("events", name, "--format", "json").stdout.splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == "idle"]


def test_idle_gpus_are_reported_and_end_a_job(jobs):
    """`idle` counts from the last use of the job's GPUs: one job is told about, another one is stopped."""
    host = Host(jobs, "h200")
    words = ["--allow-unenforced"] if jobs.account else []
    host.answer("gpu.0.processes=", "gpu.0.utilization=97 5")
    job = host.job("idle-report", run="exec sleep 60", resources={"gpu": 1}, more={"idle": {"after": "3s"}})
    name = host.start(job)
    time.sleep(5)
    assert not idle_events(host, name), "a GPU that is used by 97 % is not idle"
    host.answer("gpu.0.processes=", "gpu.0.utilization=4 5")
    deadline = time.monotonic() + 40
    while not idle_events(host, name) and time.monotonic() < deadline:
        time.sleep(0.5)
    assert [event["detail"] for event in idle_events(host, name)] == [{"percent": 10, "seconds": 3, "action": "report"}]
    record = jobs.record(name)
    assert record["state"] == "running" and "its GPUs were used less than 10 % for 3s, by `idle`" in record["notes"], record
    host.call("stop", name)
    answer = host.call("run", *words, host.job("idle-stop", run="exec sleep 60", resources={"gpu": 1}, more={"idle": {"gpu": 5, "after": "3s", "action": "stop"}}))
    assert "its GPUs were used less than 5 % for 3s, by `idle`" in answer.stderr + answer.stdout, answer
    assert jobs.record("idle-stop")["state"] == "stopped"


def start_ioctl_loop(jobs):
    """A job that calls its card's driver."""
    host = Host(jobs, "v100")
    name = host.start(host.job("talks", run=f"exec python3 - <<'END'\n{IOCTL_LOOP}END\n", resources={"gpu": 1}))
    return host, name


def test_a_trace_counts_calls_by_device_node_and_the_task_continues(jobs):
    """Calls are counted per device node, and the task continues."""
    needs.tool("strace")
    host, name = start_ioctl_loop(jobs)
    time.sleep(1)
    answer = host.call("trace", name, "--duration", "2s", "--format", "json", seconds=60)
    assert answer.returncode == 0, f"exit {answer.returncode}: {answer.stderr}"
    report = json.loads(answer.stdout)
    rows = {(row["node"], row["call"]): row for row in report["calls"]}
    helper_program, opened = rows.get(("/dev/nvidia0", "ioctl")), rows.get(("/dev/nvidiactl", "open"))
    assert helper_program and opened and set(node for node, _ in rows) == {"/dev/nvidia0", "/dev/nvidiactl"}, f"{report}"
    assert helper_program["errors"] == helper_program["calls"] and not opened["errors"] and 0 < helper_program["longest"] <= helper_program["seconds"] and helper_program["calls"] >= 10, f"{report}"
    assert 1.5 < report["seconds"] < 6 and report["task"] == "main-0", f"{report['task']}: {report['seconds']} s"
    table = host.call("trace", name, "main-0", "--duration", "500ms").stdout
    assert re.search(r"(?m)^/dev/nvidia0 +ioctl +\d+ +[\d.]+ +\d+ ", table), table
    assert jobs.record(name)["tasks"][0]["state"] == "running", "the task did not survive the trace"


def test_an_error_says_why_a_task_cannot_be_traced(jobs):
    """If a task cannot be traced, the error says why."""
    host, name = start_ioctl_loop(jobs)
    programs = jobs.directory / "without-strace"
    programs.mkdir()
    (programs / "setpriv").symlink_to(shutil.which("setpriv"))
    answer = host.call("trace", name, PATH=str(programs))
    assert answer.returncode == 3 and "install the package `strace`" in answer.stderr, f"without strace: exit {answer.returncode}: {answer.stderr}"
    jobs.call("kill", name)
    jobs.until(name, lambda record: record["state"] in ("stopped", "failed"))
    answer = host.call("trace", name)
    assert answer.returncode == 1 and ("runs" in answer.stderr or "running" in answer.stderr), f"an ended job: exit {answer.returncode}: {answer.stderr}"
