"""Sizes: idle memory, 10,000 jobs, 200 followers of a fast log."""

import json
import shutil
import socket
import threading
import time

import pytest

from runtime import binary
from service import job

pytestmark = [pytest.mark.isolated, pytest.mark.slow, pytest.mark.duration(60)]


def memory(service, what="VmRSS"):
    """MiB of the server."""
    for line in open(f"/proc/{service.process.pid}/status"):
        if line.startswith(what):
            return int(line.split()[1]) / 1024


def test_idle_memory(make, note):
    service = make()
    service.ok("GET", "/session")
    note(f"{memory(service):.0f} MiB")
    assert memory(service) < 64


def test_10000_jobs_are_listed_in_100_ms(make, note):
    service = make()
    service.ok("POST", "/jobs", {"text": job("first")})
    service.until("first.1", "succeeded")
    service.stop()
    jobs = service.home / ".local/state/jobc/jobs"
    for number in range(10_000):
        shutil.copytree(jobs / "first.1", jobs / f"many-{number}.1", symlinks=True, ignore=shutil.ignore_patterns("logs", "reserve"))
        record = jobs / f"many-{number}.1/job.json"
        record.write_text(record.read_text().replace("first", f"many-{number}"))
    service.start()
    start = time.monotonic()
    service.ok("GET", "/jobs?limit=100")
    first = time.monotonic() - start
    times = []
    for query in ("limit=100", "limit=100&q=many-77", "limit=10000"):
        start = time.monotonic()
        found = service.ok("GET", f"/jobs?{query}")
        times.append(round(time.monotonic() - start, 3))
    note(f"10,000 jobs: first {first:.3f} s, then {times} s; {memory(service):.0f} MiB, at most {memory(service, 'VmHWM'):.0f} MiB")
    assert len(found["jobs"]) == 10_000
    # A program that is not optimized takes longer.
    assert times[0] < (0.1 if "release" in str(binary()) else 1) and memory(service) < 128


def test_200_followers_of_a_fast_log(make, note):
    service = make()
    # 50 MB/s, and how long each write took.
    write = 'sys.stdout.buffer.write((b"x" * 499 + b"\\n") * 10_000), sys.stdout.flush()'
    times = 'print(time.monotonic() - since, file=times, flush=True)'
    run = ("python3 -c 'import sys, time; times = open(\"/o/times\", \"w\"); "
           f"all((since := time.monotonic(), {write}, {times}, time.sleep(0.1)) for _ in iter(int, 1))'")
    ref = service.ok("POST", "/jobs", {"text": job("fast", run) + "outputs: {o: {source: ./o, mount: /o}}\n"})["ref"]
    service.until(ref, "running")
    received, ends, connections = [0] * 200, threading.Event(), []

    def follow(number):
        connection = socket.create_connection(("127.0.0.1", service.port), timeout=30)
        connections.append(connection)
        connection.sendall((f"GET /api/v1/jobs/{ref}/logs?tail=10 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {service.token}\r\n"
                            "Accept: text/event-stream\r\n\r\n").encode())
        head = b""
        while not ends.is_set():
            data = connection.recv(1 << 16)
            if not data:
                return
            # Only lines count.
            if b"event: line" not in head:
                head += data
            received[number] += len(data) if b"event: line" in head else 0
            # One in ten reads slowly.
            time.sleep(1 if number % 10 == 0 else 0)

    threads = [threading.Thread(target=follow, args=(number,), daemon=True) for number in range(200)]
    for thread in threads:
        thread.start()
    peak = 0
    began = time.monotonic()
    deadline = began + 60
    while time.monotonic() < deadline and min(received) == 0 or time.monotonic() < deadline - 50:
        time.sleep(0.25)
        peak = max(peak, memory(service))
    writes = [float(line) for line in (service.open / "o/times").read_text().split()]
    start, sizes = time.monotonic(), sorted(received)
    service.ok("GET", "/session")
    answer = time.monotonic() - start
    ends.set()
    for connection in connections:
        connection.close()
    note(f"200 followers: {peak:.0f} MiB; received {sum(sizes) / (start - began) / 1e6:.0f} MB/s in all, {sizes[0]} to {sizes[-1]} bytes; another request {answer:.2f} s; "
         f"{len(writes)} writes of the job, the longest {max(writes):.2f} s")
    # A program that is not optimized is larger by itself.
    assert peak < (150 if "release" in str(binary()) else 200) and sizes[0] > 0 and answer < 5
    # Slow readers do not slow the job down.
    assert max(writes) < 2
    service.ok("POST", f"/jobs/{ref}/kill")
    assert json.loads(service.jobc("inspect", "--format", "json", ref).stdout)["state"] in ("failed", "stopped", "running", "stopping")
