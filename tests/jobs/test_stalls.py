"""Tests that tasks which make no progress are found, that the rank which stopped first is named, and that healthy ones are left alone."""

import json
import os
import time
from pathlib import Path

import pytest

from command_line import SECONDS, run_roles
from gang import gang, wrote

pytestmark = [pytest.mark.isolated, pytest.mark.duration(40), pytest.mark.together(6)]
everybody = pytest.mark.accounts("root", slow="range")

# What rank 2 does in its third step, and what is seen of it.
FAULTS = {
    "stopped rank": ("os.kill(os.getpid(), signal.SIGSTOP)", "stopped by a signal"),
    "hung rank": ("time.sleep(600)", "does not wait for another task"),
}
# NCCL's service as `ncclras` sees it: a report, and the end of the connection.
RAS = r"""
import socket, sys, threading, time
def serve():
    server = socket.create_server(("127.0.0.1", 28028))
    while True:
        with server.accept()[0] as client:
            client.recv(4096)
            client.sendall(b"Communicators... (0.00s)\nGroup  Comms Status  Ranks\n0  1  MISMATCH  4\nWarnings\n  MISMATCH: rank 2 has launched 17 operations, the others 18\n")
threading.Thread(target=serve, daemon=True).start()
print("step 1", flush=True)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    pass
print("end", flush=True)
"""


# What PyTorch does: a pipe for each rank, and a dump when something is written to it.
RECORDER = r"""
import os, threading, time
rank, pipe, dump = os.environ["RANK"], os.environ["TORCH_NCCL_DEBUG_INFO_PIPE_FILE"], os.environ["TORCH_FR_DUMP_TEMP_FILE"]
os.makedirs(os.path.dirname(dump), exist_ok=True)
path = pipe + rank + ".pipe"
os.mkfifo(path, 0o666)
reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
def watch():
    while True:
        time.sleep(1)
        if os.read(reader, 128):
            with open(dump + rank, "wb") as file:
                file.write(b"collectives of rank " + rank.encode())
threading.Thread(target=watch, daemon=True).start()
print("step 1", flush=True)
time.sleep(600)
"""


# What PyTorch 2.15 does in a process that has called `torch.distributed.debug.start_debug_server`: a thread of this name waits in `accept`.
DEBUG_SERVER = r"""
import ctypes, json, os, socket, threading, time
def serve(server):
    ctypes.CDLL(None).prctl(15, b"pt_workerserver")
    while True:
        with server.accept()[0] as client:
            handler = client.recv(4096).split()[1].decode()
            entry = {"collective_seq_id": 4, "record_id": 3, "retired": False, "state": "scheduled", "profiling_name": "gloo:all_reduce", "process_group": ["0", "default_pg"]}
            body = {"/handler/dump_traceback": 'Thread 0x7f11 (most recent call first):\n  File "train.py", line 13 in <module>\n',
                    "/handler/fr_trace_json": json.dumps({"entries": [entry]})}[handler]
            client.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode())
others = [socket.create_server(("", 0)) for _ in range(2)]
server = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
threading.Thread(target=serve, args=(server,), daemon=True).start()
print("step 1", flush=True)
others[0].accept()
print("a port that is not the server's was asked", flush=True)
"""


def begun(jobs, name, roles, **more):
    path = jobs.directory / f"{name}.json"
    path.write_text(json.dumps({"version": 1, "name": name, "image": "host", "roles": roles, **more}))
    return jobs.run(str(path))


def stalls(jobs, name):
    lines = jobs.call("events", "--format", "json", name).stdout.splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == "stalled"]


@everybody
@pytest.mark.parametrize("fault", FAULTS)
def test_the_rank_that_stopped_first_is_named(all_jobs, fault):
    what, seen = FAULTS[fault]
    name = "stall-" + fault.replace(" ", "-")
    begin = time.monotonic()
    run = begun(all_jobs, name, gang(what, grace_period="1s"), stall={"after": "3s", "action": "fail"})
    text, _ = run.communicate(timeout=60)
    assert run.returncode == 1 and time.monotonic() - begin < 60, text
    record = all_jobs.record(name)
    verdict = record["end"]["verdict"]
    assert record["end"]["task"] == "rank-2" and verdict["kind"] == "stall", record["end"]
    [event] = stalls(all_jobs, name)
    assert event["task"] == "rank-2" and seen in event["detail"]["why"], event
    assert {"logs", "cpu"} <= set(event["detail"]["signs"]) and event["detail"]["action"] == "fail", event
    # What was seen of all ranks is kept, and was there before anything was done.
    with open(event["detail"]["file"]) as file:
        kept = file.read()
    assert kept.index("== rank-2") < kept.index("== rank-0") and kept.count("state ") >= 4, kept
    wrote(fault, "rank-2", verdict)
    all_jobs.call("rm", "--force", name)


def test_a_restart_is_another_attempt(all_jobs):
    """The job goes on by itself: the second attempt has no fault."""
    fault = "os.path.exists('/w/once') or (open('/w/once', 'x').close(), os.kill(os.getpid(), signal.SIGSTOP))"
    where = all_jobs.directory / "once"
    where.mkdir()
    role = gang(fault, grace_period="1s", retry={"max": 1, "backoff": "0s", "scope": "job"}, env={"STEPS": 8})
    outputs = {"w": {"source": str(where), "mount": "/w"}}
    _, record = run_roles(all_jobs, "stall-again", role, 0, "succeeded: .*", stall={"after": "3s", "action": "restart"}, outputs=outputs)
    earlier = {task["task"]: [one.get("verdict", {}).get("kind") for one in task["earlier"]] for task in record["tasks"]}
    assert earlier["rank-2"] == ["stall"] and earlier["rank-0"] == [None], earlier
    all_jobs.call("rm", "--force", "stall-again")


def test_a_slow_rank_is_reported_and_goes_on(all_jobs):
    run = begun(all_jobs, "stall-slow", gang("time.sleep(8)", env={"STEPS": 8}), stall={"after": "3s"})
    text, _ = run.communicate(timeout=60)
    assert run.returncode == 0 and "rank-2 makes no progress" in text, text
    [event] = stalls(all_jobs, "stall-slow")
    assert event["task"] == "rank-2" and event["detail"]["action"] == "report", event
    assert any("rank-2 makes no progress" in note for note in all_jobs.record("stall-slow")["notes"])
    wrote("slow rank", "rank-2", {"kind": "success", "evidence": [event["detail"]["why"]]})
    all_jobs.call("rm", "--force", "stall-slow")


HEALTHY = {
    "computes": "end = time.monotonic() + 9\nwhile time.monotonic() < end: pass",
    "writes": "end = time.monotonic() + 9\nwhile time.monotonic() < end: open(os.environ['TMP_FILE'], 'wb').write(b'x' * 100000); time.sleep(0.5)",
    "prints": "for _ in range(9): print('step', flush=True); time.sleep(1)",
    "sleeps little": "for _ in range(4): time.sleep(2); print('step', flush=True)",
}


@everybody
@pytest.mark.parametrize("what", HEALTHY)
def test_a_healthy_task_that_is_quiet_is_left_alone(all_jobs, what):
    """Longer than `after`: no line and no I/O, or no line and no CPU time, are not enough alone."""
    name = "stall-" + what.replace(" ", "-")
    role = {"run": ["python3", "-uc", "import os, time\n" + HEALTHY[what]], "env": {"TMP_FILE": "/tmp/healthy"}}
    _, record = run_roles(all_jobs, name, {"main": role}, 0, "succeeded: .*", stall={"after": "4s", "action": "fail"})
    assert not stalls(all_jobs, name), stalls(all_jobs, name)
    all_jobs.call("rm", "--force", name)


def test_nccl_is_asked_in_the_network_of_a_task_that_computes(all_jobs):
    """Ranks that wait in a collective compute all the time: NCCL's report is the second sign."""
    for network in ("job", "host"):
        name = f"stall-nccl-{network}"
        role = {"main": {"run": ["python3", "-uc", RAS, "60"], "grace_period": "1s"}}
        run = begun(all_jobs, name, role, network=network, stall={"after": "3s", "action": "fail"})
        text, _ = run.communicate(timeout=60)
        assert run.returncode == 1, text
        [event] = stalls(all_jobs, name)
        assert "nccl" in event["detail"]["signs"] and "cpu" not in event["detail"]["signs"], event
        with open(event["detail"]["file"]) as file:
            assert "rank 2 has launched 17 operations" in file.read(), event
        all_jobs.call("rm", "--force", name)


def test_dumps_of_the_flight_recorder_are_kept(all_jobs):
    """The ranks are asked for them before they are ended."""
    role = {"run": ["python3", "-uc", RECORDER], "instances": 2, "grace_period": "1s",
            "env": {"RANK": "${{ instance.index }}", "TORCH_NCCL_DEBUG_INFO_PIPE_FILE": "/tmp/fr_pipe_", "TORCH_FR_DUMP_TEMP_FILE": "/tmp/fr/comm_lib_trace_rank_"}}
    run = begun(all_jobs, "stall-recorder", {"main": role}, stall={"after": "3s", "action": "fail"})
    text, _ = run.communicate(timeout=60)
    assert run.returncode == 1, text
    [event] = stalls(all_jobs, "stall-recorder")
    report = Path(event["detail"]["file"])
    kept = {path.name: path.read_text() for path in report.with_suffix("").iterdir()}
    assert kept == {f"comm_lib_trace_rank_{rank}": f"collectives of rank {rank}" for rank in (0, 1)}, kept
    assert f"rank 0: /tmp/fr/comm_lib_trace_rank_0, written 0 s ago: {report.with_suffix('')}/comm_lib_trace_rank_0" in report.read_text(), report.read_text()
    all_jobs.call("rm", "--force", "stall-recorder")


def test_pytorchs_debug_server_is_asked_for_stacks(all_jobs):
    """At the port where its thread waits, in the network of the task; no other port of it is asked."""
    for network in ("job", "host"):
        name = f"stall-debug-{network}"
        role = {"main": {"run": ["python3", "-uc", DEBUG_SERVER], "instances": 2, "grace_period": "1s"}}
        run = begun(all_jobs, name, role, network=network, stall={"after": "3s", "action": "fail"})
        text, _ = run.communicate(timeout=60)
        assert run.returncode == 1 and "was asked" not in text, text
        [event] = stalls(all_jobs, name)
        report = Path(event["detail"]["file"])
        kept = report.read_text()
        assert kept.count('  File "train.py", line 13 in <module>') == 2 and kept.count("last collective: gloo:all_reduce of default_pg, number 4, scheduled: ") == 2, kept
        files = sorted(path.name.rsplit("-", 1)[0] for path in report.with_suffix("").iterdir())
        assert files == ["flight-recorder-main-0", "flight-recorder-main-1"], files
        all_jobs.call("rm", "--force", name)


def test_a_paused_job_does_not_stall(all_jobs):
    role = {"main": {"run": ["python3", "-uc", "import time\nfor _ in range(6): print('step', flush=True); time.sleep(1)"]}}
    run = begun(all_jobs, "stall-paused", role, stall={"after": "3s", "action": "fail"})
    all_jobs.running("stall-paused")
    assert all_jobs.call("pause", "stall-paused").returncode == 0
    time.sleep(7)
    assert all_jobs.call("resume", "stall-paused").returncode == 0
    text, _ = run.communicate(timeout=SECONDS)
    assert run.returncode == 0 and not stalls(all_jobs, "stall-paused"), text
    all_jobs.call("rm", "--force", "stall-paused")


def test_python_stacks_are_kept_if_the_image_has_py_spy(all_jobs):
    """Here a program that prints what py-spy would, in a directory of images."""
    fake = "/usr/local/bin/py-spy"
    if os.path.exists(fake):
        pytest.skip("this host has one of its own")
    with open(fake, "w") as file:
        file.write('#!/bin/sh\necho "Process $3: python3"; echo "    forward (model.py:7)"\n')
    os.chmod(fake, 0o755)
    try:
        role = {"main": {"run": ["python3", "-uc", "import time; print('step', flush=True); time.sleep(600)"], "grace_period": "1s"}}
        run = begun(all_jobs, "stall-stacks", role, stall={"after": "2s", "action": "fail"})
        text, _ = run.communicate(timeout=60)
        assert run.returncode == 1, text
        [event] = stalls(all_jobs, "stall-stacks")
        with open(event["detail"]["file"]) as file:
            kept = file.read()
        assert "forward (model.py:7)" in kept, kept
    finally:
        os.unlink(fake)
    all_jobs.call("rm", "--force", "stall-stacks")
