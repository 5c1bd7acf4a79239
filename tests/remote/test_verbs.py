"""Tests the commands that reach into jobs on a stand-in cluster: exec, port-forward and copy over WebSocket, top, report, followed
events, kept output, completion, and why jobs wait."""

import contextlib
import fcntl
import json
import os
import pty
import select
import shlex
import signal
import socket
import struct
import subprocess
import termios
import threading
import time

import pytest
from cluster import Script
from place import until

pytestmark = pytest.mark.duration(40)
LONG = Script(["hello"], pause=120)
GPU = """\
version: 1
name: gpu
image: busybox
roles:
  main:
    instances: 2
    run: echo hello
    resources: {gpu: 1}
"""
PORTS = """\
version: 1
name: ports
image: busybox
roles:
  server:
    instances: 2
    run: sleep 100
    resources: {ports: {http: HTTP, metrics: 9090}}
"""


def running(place, job="one.yaml", pods=2):
    """A job whose tasks run until it is removed; returns its handle."""
    place.cluster.default = LONG
    handle = place.submit(job, "--new")
    until(lambda: sum("running" in str(pod["status"]) for pod in place.cluster.all("pods")) >= pods, "running pods")
    return handle


def exec_(place, *words, stdin=None, code=0, text=True):
    """Runs `jobc exec`; returns stdout and stderr."""
    process = subprocess.run([place.program, "exec", *words], cwd=place.directory, env=place.environment(), input=stdin,
                             stdin=subprocess.DEVNULL if stdin is None else None, capture_output=True, text=text, timeout=60)
    if process.returncode != code:
        raise AssertionError(f"exec {words}: exit code {process.returncode}, not {code}: {process.stdout}{process.stderr}")
    return process.stdout, process.stderr


def test_the_exit_code_is_that_of_the_command(place):
    handle = running(place)
    out, errors = exec_(place, handle, "main-0", "--", "sh", "-c", "echo out; echo errors >&2; exit 42", code=42)
    assert (out, errors) == ("out\n", "errors\n"), (out, errors)
    exec_(place, handle, "main-0", "true")
    exec_(place, handle, "main-1", "sh", "-c", "kill -9 $$", code=137)
    _, errors = exec_(place, handle, "main-0", "--", "no-such-program", code=127)
    assert "executable file not found" in errors, errors
    out, _ = exec_(place, "-e", "GREETING=hi there", "-w", "/", handle, "main-0", "--", "sh", "-c", 'echo "$GREETING"; pwd')
    assert out == "hi there\n/\n", out
    _, errors = exec_(place, handle, "--", "true", code=125)
    assert "several tasks of job" in errors and "main-0" in errors, errors
    _, errors = exec_(place, handle, "main-7", "--", "true", code=125)
    assert "has no task `main-7`" in errors, errors
    _, errors = exec_(place, "-u", "1", handle, "main-0", "--", "true", code=125)
    assert "`--user` does not apply" in errors, errors
    place.cluster.default = Script(["hello"])
    ended = place.submit("one.yaml", "--new")
    place.run("wait", ended)
    _, errors = exec_(place, ended, "main-0", "--", "true", code=125)
    assert "is succeeded, not running" in errors, errors
    exec_(place, "lab/none", "main-0", "--", "true", code=125)


def test_input_ends_and_output_goes_on(place):
    handle = running(place)
    data = os.urandom(3 << 20)
    place.cluster.fragments = 5
    out, _ = exec_(place, "-i", handle, "main-0", "--", "cat", stdin=data, text=False)
    assert out == data, f"{len(out)} of {len(data)} bytes"
    # After the end of the input the command still writes.
    out, _ = exec_(place, "-i", handle, "main-0", "--", "sh", "-c", "wc -c; sleep 0.3; echo after", stdin=b"12345", text=False)
    assert out.split() == [b"5", b"after"], out
    # Without -i there is no input.
    out, _ = exec_(place, handle, "main-0", "--", "sh", "-c", "wc -c", stdin=b"12345", text=False)
    assert out.split() == [b"0"], out
    # A reader that goes away ends the command here.
    shell = f"{shlex.quote(str(place.program))} exec {handle} main-0 -- yes | head -1"
    out = subprocess.run(["bash", "-c", shell], cwd=place.directory, env=place.environment(), capture_output=True, text=True, timeout=30)
    assert out.stdout == "y\n", out


def test_an_older_server_has_no_half_close(place):
    handle = running(place)
    place.cluster.exec_protocols = ("v4.channel.k8s.io",)
    out, _ = exec_(place, handle, "main-0", "--", "echo", "hello")
    assert out == "hello\n", out
    out, _ = exec_(place, "-i", handle, "main-0", "--", "head", "-c", "5", stdin=b"12345", text=False)
    assert out == b"12345", out
    (place.directory / "file").write_text("x")
    _, errors = place.run("copy", handle, "file", "main-0:/tmp/", code=2)
    assert "needs Kubernetes 1.30" in errors, errors
    place.cluster.exec_protocols = ()
    _, errors = exec_(place, handle, "main-0", "--", "true", code=125)
    assert "Upgrade request required" in errors, errors


def test_a_terminal_is_raw_and_has_the_size_of_ours(place):
    handle = running(place)
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 111, 0, 0))
    before = termios.tcgetattr(slave)
    process = subprocess.Popen([place.program, "exec", "-it", handle, "main-0", "--", "sh"], cwd=place.directory, stdin=slave, stdout=slave,
                               stderr=slave, env=place.environment({"TERM": "dumb"}), start_new_session=True,
                               preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    seen = b""

    def read(text, what):
        nonlocal seen
        deadline = time.monotonic() + 20
        while text not in seen:
            if not select.select([master], [], [], max(0, deadline - time.monotonic()))[0]:
                raise AssertionError(f"{what}: {seen}")
            seen += os.read(master, 4096)

    until(lambda: place.cluster.sizes == [(111, 33)], "the size at the start")
    os.write(master, b"echo $((40+2)); tty\n")
    read(b"/dev/pts/", "a terminal")
    assert b"42" in seen, seen
    assert not termios.tcgetattr(slave)[3] & termios.ICANON, "raw mode"
    # Ctrl-C goes to the command, and the shell lives on.
    os.write(master, b"sleep 50\n")
    time.sleep(0.5)
    os.write(master, b"\x03")
    time.sleep(0.3)
    os.write(master, b"echo still-$((1+1))\n")
    read(b"still-2", "the shell after Ctrl-C")
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 90, 0, 0))
    process.send_signal(signal.SIGWINCH)
    until(lambda: place.cluster.sizes[-1] == (90, 50), "the new size")
    os.write(master, b"stty size; exit 7\n")
    read(b"50 90", "the new size in the task")
    assert process.wait(20) == 7, process.returncode
    assert termios.tcgetattr(slave) == before, "the terminal is as it was"
    os.close(master)
    os.close(slave)


def test_ctrl_c_without_a_terminal_ends_the_connection(place):
    handle = running(place)
    process = place.start("exec", handle, "main-0", "--", "sh", "-c", "echo begun; sleep 60")
    assert process.stdout.readline() == "begun\n", "begun"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 130, process.returncode


def test_expired_credentials_and_missing_rights(place):
    handle = running(place)
    token = place.directory / "token"
    token.write_text("old")
    place.cluster.kubeconfig({"tokenFile": str(token)})
    # Reads the file again, which has a new token meanwhile.
    place.cluster.tokens = {"good", "new"}
    token.write_text("new")
    exec_(place, handle, "main-0", "--", "true")
    place.cluster.denied.add("GET pods/exec")
    _, errors = exec_(place, handle, "main-0", "--", "true", code=125)
    assert "cannot run a command in task `main-0`" in errors and "jobc targets check" in errors, errors


@contextlib.contextmanager
def service(answer):
    """A service on loopback; `answer(connection)` serves one connection."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    def serve(connection):
        with connection:
            answer(connection)
    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.close()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


def read_all(connection):
    data = b""
    while piece := connection.recv(1 << 16):
        data += piece
    return data


def count_after_the_end(connection):
    """Answers only when the client has ended its side."""
    connection.sendall(b"%d bytes" % len(read_all(connection)))


@contextlib.contextmanager
def forwarded(place, handle, *ports):
    process = place.start("port-forward", handle, *ports)
    try:
        lines = [process.stdout.readline() for _ in ports]
        if not all(lines):
            raise AssertionError(process.communicate(timeout=20))
        yield process, [int(line.split(" ")[0].split(":")[1]) for line in lines], lines
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)


def test_ports_are_forwarded_with_half_close(place):
    with service(count_after_the_end) as port:
        place.write("ports.yaml", PORTS.replace("HTTP", str(port)))
        handle = running(place, "ports.yaml")
        # The pod is this host: at the same number, the forwarded port would lead to itself.
        with forwarded(place, handle, "server-0:http", "server-1:http", f"{free_port()}:server:metrics") as (process, local, lines):
            assert f"is port {port} of server-0" in lines[0] and "server-1" in lines[1], lines
            assert "port 9090 of server-0" in lines[2], lines
            # 20 connections at once, each of which ends its side before it gets its answer.
            sizes = [0, 1, 5, 100_000, 1 << 20] * 4
            connections = [socket.create_connection(("127.0.0.1", local[number % 2])) for number in range(len(sizes))]

            def send(connection, size):
                connection.sendall(b"x" * size)
                connection.shutdown(socket.SHUT_WR)
            threads = [threading.Thread(target=send, args=pair) for pair in zip(connections, sizes)]
            for thread in threads:
                thread.start()
            for connection, size in zip(connections, sizes):
                connection.settimeout(30)
                assert read_all(connection) == b"%d bytes" % size, size
                connection.close()
            assert len(place.cluster.tunnels) == 2, "one WebSocket for each"
            # Nothing listens there in the pod.
            refused = socket.create_connection(("127.0.0.1", local[2]))
            refused.settimeout(20)
            assert refused.recv(10) == b"", "closed"
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=20)
            assert process.returncode == 0 and "server-0: error forwarding port 9090" in errors, (process.returncode, errors)


def test_a_lost_tunnel_is_opened_again(place):
    def talk(connection):
        while data := connection.recv(100):
            connection.sendall(data.upper())
    with service(talk) as port:
        place.write("ports.yaml", PORTS.replace("HTTP", str(port)))
        handle = running(place, "ports.yaml")
        with forwarded(place, handle, "server-0:http") as (process, local, _):
            for number in range(2):
                with socket.create_connection(("127.0.0.1", local[0])) as connection:
                    connection.settimeout(20)
                    for _ in range(3):
                        connection.sendall(b"hello")
                        assert connection.recv(100) == b"HELLO", number
                    place.cluster.tunnels[-1].shutdown(socket.SHUT_RDWR)
                    assert connection.recv(10) == b"", "closed with its tunnel"
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=20)
            assert errors.count("server-0: the connection broke off") == 2, errors
    _, errors = place.run("port-forward", handle, "server-0:htp", code=2)
    assert "has no port `htp`" in errors and "`http`, `metrics`" in errors, errors
    place.run("port-forward", handle, "http", code=2)
    taken = socket.create_server(("127.0.0.1", 0))
    _, errors = place.run("port-forward", handle, f"{taken.getsockname()[1]}:server-0:http", code=3)
    assert "cannot listen on 127.0.0.1" in errors, errors
    taken.close()


def test_files_are_copied_both_ways(place):
    handle = running(place)
    source = place.directory / "source"
    (source / "deep/er").mkdir(parents=True)
    (source / "file").write_bytes(os.urandom(1 << 20))
    (source / "deep/script").write_text("#!/bin/sh\n")
    (source / "deep/script").chmod(0o755)
    (source / "deep/link").symlink_to("../file")
    os.mkfifo(source / "pipe")
    task = place.directory / "task"
    task.mkdir()
    out, errors = place.run("copy", handle, "source", f"main-0:{task}/")
    assert out == f"copied 6 files, {(1 << 20) + 10} bytes\n", out
    assert "not copied: `source/pipe` is not a file" in errors, errors
    assert (task / "source/file").read_bytes() == (source / "file").read_bytes(), "the file"
    assert (task / "source/deep/script").stat().st_mode & 0o777 == 0o755, "the mode"
    assert os.readlink(task / "source/deep/link") == "../file", "the link"
    # Under another name, and back.
    place.run("copy", handle, "source/file", f"main-0:{task}/renamed")
    assert (task / "renamed").stat().st_size == 1 << 20, "renamed"
    place.run("copy", handle, f"main-0:{task}/source", "back")
    assert (place.directory / "back/deep/link").read_bytes() == (source / "file").read_bytes(), "back"
    assert (place.directory / "back/deep/er").is_dir(), "an empty directory"
    (place.directory / "directory").mkdir()
    copied = place.json("copy", handle, f"main-0:{task}/renamed", "directory")
    assert copied == {"entries": 1, "bytes": 1 << 20}, copied
    assert (place.directory / "directory/renamed").exists(), "into a directory"
    _, errors = place.run("copy", handle, f"main-0:{task}/none", "x", code=3)
    assert "`tar` in task `main-0` failed" in errors and "none" in errors and not (place.directory / "x").exists(), errors
    _, errors = place.run("copy", handle, "source", f"main-0:{task}/no/such", code=3)
    assert "`tar` in task `main-0` failed" in errors, errors
    place.run("copy", handle, "none", f"main-0:{task}", code=3)
    place.run("copy", handle, "a", "b", code=2)
    # A link that leads out of the copy is left out.
    (task / "source/out").symlink_to("/etc")
    _, errors = place.run("copy", handle, f"main-0:{task}/source", "again")
    assert "the link `out` leads out of the copy: `/etc`" in errors and not (place.directory / "again/out").is_symlink(), errors


def test_the_use_of_tasks_is_shown(place):
    handle = running(place)
    del place.cluster.served["metrics.k8s.io/v1beta1"]
    try:
        _, errors = place.run("top", handle, "--no-stream", code=2)
        assert "does not serve `metrics.k8s.io`" in errors and "metrics-server" in errors, errors
    finally:
        place.cluster.served["metrics.k8s.io/v1beta1"] = {"pods": "PodMetrics"}
    pods = sorted(place.cluster.all("pods"), key=lambda pod: pod["metadata"]["name"])
    for number, pod in enumerate(pods):
        place.cluster.put("metrics.k8s.io/v1beta1", "pods", "ml", {
            "metadata": {"name": pod["metadata"]["name"], "labels": pod["metadata"]["labels"]}, "timestamp": "2026-01-01T00:00:00Z",
            "containers": [{"name": "main", "usage": {"cpu": f"{number + 1}500m", "memory": "2048Ki"}}]})
    out, _ = place.run("top", handle, "--no-stream")
    assert [line.split()[1:3] for line in out.splitlines()[1:]] == [["main-0", "150%"], ["main-1", "250%"]] and "2.0 MiB" in out, out
    usage = [json.loads(line) for line in place.run("stats", handle, "--no-stream", "--format", "json")[0].splitlines()]
    assert [task["memory"] for task in usage] == [2 << 20] * 2 and "gpu" not in usage[0], usage


def test_the_use_of_gpus_is_read_in_the_tasks(place, monkeypatch):
    """Commands in tasks run on this host, which has a stand-in for nvidia-smi."""
    programs = place.directory / "bin"
    programs.mkdir()
    (programs / "nvidia-smi").write_text("#!/bin/sh\nprintf '97, 40536\\n[N/A], 13\\n'\n")
    (programs / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    place.cluster.served["metrics.k8s.io/v1beta1"] = {"pods": "PodMetrics"}
    place.write("gpus.yaml", place.directory.joinpath("one.yaml").read_text().replace("instances: 2", "resources: {gpu: 2}"))
    handle = running(place, "gpus.yaml", 1)
    for pod in place.cluster.all("pods"):
        place.cluster.put("metrics.k8s.io/v1beta1", "pods", "ml", {
            "metadata": {"name": pod["metadata"]["name"], "labels": pod["metadata"]["labels"]}, "timestamp": "2026-01-01T00:00:00Z",
            "containers": [{"name": "main", "usage": {"cpu": "1", "memory": "2048Ki"}}]})
    out, _ = place.run("top", handle, "--no-stream")
    assert "97% 39.5 GiB, 13.0 MiB" in out, out
    usage = place.json("top", handle, "--no-stream")
    assert usage["gpu"] == [{"utilization": 97, "memory": 40536 << 20}, {"memory": 13 << 20}], usage


def event(place, number, reason="Pulling", message="m", count=1, kind="Normal"):
    pod = place.cluster.all("pods")[0]
    place.cluster.put("v1", "events", "ml", {
        "metadata": {"name": f"e{number}"}, "type": kind, "reason": reason, "message": message, "count": count,
        "involvedObject": {"kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]},
        "lastTimestamp": f"2026-01-01T00:00:{number:02}Z"})


def test_events_are_followed_until_the_end(place):
    place.cluster.default = Script(["hello"], late=2, pause=4)
    handle = place.submit()
    until(lambda: place.cluster.all("pods"), "pods")
    event(place, 1)
    place.cluster.put("v1", "events", "ml", {"metadata": {"name": "other"}, "reason": "Stranger", "message": "m",
                                             "involvedObject": {"kind": "Pod", "name": "other-0", "uid": "x"}})
    process = place.start("events", "-f", handle)
    assert "  Pulling        m\n" in process.stdout.readline(), "the first event"
    event(place, 2, "BackOff")
    assert "  BackOff        m\n" in process.stdout.readline(), "the second event"
    # After 410 everything is listed again, and shown once.
    place.cluster.forget()
    event(place, 2, "BackOff", count=2)
    assert "  BackOff        m (2 times)\n" in process.stdout.readline(), "it happened again"
    rest, errors = process.communicate(timeout=40)
    assert process.returncode == 0 and rest == "" and "Stranger" not in rest, (rest, errors)


def test_output_is_kept_without_loss_or_doubles(place):
    place.cluster.default = Script([f"line {number:02} of @" for number in range(30)], pause=0.05)
    place.cluster.log_cut = 11
    handle = place.submit()
    target, name = handle.split("/")
    # Broken off in the middle, and again from the beginning.
    process = place.start("logs", "-f", handle)
    until(lambda: "line 05" in process.stdout.readline(), "some output")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    place.run("logs", "-f", handle)
    place.run("logs", handle)
    place.run("logs", handle, "--tail", "3")
    kept = place.directory / f".local/state/jobc/clusters/{target}/{name}/logs"
    for index in range(2):
        files = sorted((kept / f"main-{index}").iterdir())
        lines = [line.split(" ", 4) for path in files for line in path.read_text().splitlines()]
        assert [line[4] for line in lines] == [f"line {number:02} of {index}" for number in range(30)], lines
        assert all(len(line[0]) == 27 and line[1:4] == ["stdout", "F", "1"] for line in lines), lines[:2]
    assert kept.stat().st_mode & 0o77 == 0, "for the user only"
    # The report has the last lines, though the pods are gone.
    for pod in place.cluster.all("pods"):
        place.cluster.drop(("v1", "pods", "ml", pod["metadata"]["name"]))
    place.run("report", handle, "-o", "report.html")
    page = (place.directory / "report.html").read_text()
    assert handle in page and "succeeded" in page, page[:3000]
    place.run("rm", handle)
    assert not kept.exists(), "removed with the job"


def test_attempts_are_kept_apart(place):
    place.cluster.default = Script(["only"], exit_code=1)
    handle = place.submit()
    place.run("wait", handle, code=1)
    pod = next(pod for pod in place.cluster.all("pods") if pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] == "0")
    again = json.loads(json.dumps(pod))
    again["metadata"] |= {"name": pod["metadata"]["name"] + "x", "uid": "again", "creationTimestamp": "2099-01-01T00:00:00Z"}
    place.cluster.put("v1", "pods", "ml", again)
    place.cluster.print({"name": again["metadata"]["name"]}, "second")
    out, errors = place.run("logs", handle)
    assert "attempt 2" in out + errors, out + errors
    kept = place.directory / f".local/state/jobc/clusters/{handle}/logs/main-0/000001.log"
    lines = [line.split(" ", 1)[1] for line in kept.read_text().splitlines()]
    assert lines == ["stdout F 1 only", "stdout F 2 second"], lines
    place.run("report", handle, "-o", "report.html")
    page = (place.directory / "report.html").read_text()
    assert "second" in page and "exit code 1" in page and "BackoffLimitExceeded" in page, page[:3000]


def complete(place, *words):
    """The candidates for the last word."""
    env = {"JOBC_COMPLETE": "bash", "_CLAP_IFS": "\n", "_CLAP_COMPLETE_INDEX": str(len(words))}
    out, _ = place.run("--", "jobc", *words, env=env)
    return out.splitlines()


def test_handles_are_completed(place):
    place.cluster.default = Script(["hello"])
    first, second = place.submit("one.yaml"), place.submit("two.yaml")
    place.run("wait", first)
    place.run("logs", first)
    requests = len(place.cluster.requests)
    for words in (["inspect", "lab/"], ["logs", ""], ["stop", "la"], ["port-forward", ""], ["report", ""], ["wait", ""]):
        found = complete(place, *words)
        assert first in found and second in found, (words, found)
    assert complete(place, "logs", first, "ma") == ["main-0", "main-1"], complete(place, "logs", first, "ma")
    assert "main-1" in complete(place, "exec", "-it", first, ""), "tasks of exec"
    assert first in complete(place, "kill", "") and first not in complete(place, "trace", ""), "trace is for jobs on this host"
    assert len(place.cluster.requests) == requests, "no cluster is asked"


def test_it_says_why_at_the_line_of_the_job(place):
    place.write("gpu.yaml", GPU)
    place.cluster.default = Script(waiting=("ImagePullBackOff", 'Back-off pulling image "busybox"'))
    handle = place.submit("gpu.yaml")
    until(lambda: any("waiting" in str(pod) for pod in place.cluster.all("pods")), "waiting pods")
    expected = 'gpu.yaml:3:8: main-0, main-1: cannot get the image: Back-off pulling image "busybox"; the cluster tries again without end'
    out, _ = place.run("inspect", handle)
    assert expected in out, out
    _, errors = place.run("ps", handle)
    assert f"jobc: {expected}" in errors, errors
    out, _ = place.run("why", handle)
    assert out == f"{handle}: pending\n{handle}: {expected}\n", out
    process = place.start("wait", handle)
    assert expected in process.stderr.readline(), "wait says it"
    process.kill()
    process.communicate()
    message = "0/8 nodes are available: 8 Insufficient nvidia.com/gpu. preemption: none"
    for pod in place.cluster.all("pods"):
        pod["status"] = {"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]}
        pod["spec"].pop("nodeName")
        place.cluster.put("v1", "pods", "ml", pod)
    event(place, 1, "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached")
    reasons = place.json("inspect", handle)["reasons"]
    assert reasons[0] == "gpu.yaml:8:22: main-0, main-1: no node fits: 0/8 nodes are available: 8 Insufficient nvidia.com/gpu", reasons
    assert reasons[1].endswith("none fits: the autoscaler has no node for it: 1 max node group size reached"), reasons


def test_the_place_in_the_queue_is_shown(place):
    place.cluster.default = Script(waiting=("ContainerCreating", ""))
    handle = place.submit()
    job = place.cluster.all("jobs")[0]
    job["spec"]["suspend"] = True
    job["status"] = {}
    place.cluster.put("batch/v1", "jobs", "ml", job)
    place.cluster.put("kueue.x-k8s.io/v1beta2", "workloads", "ml", {
        "metadata": {"name": "own", "labels": {"kueue.x-k8s.io/job-uid": job["metadata"]["uid"]}}, "spec": {"queueName": "gpu"},
        "status": {"conditions": [{"type": "QuotaReserved", "status": "False", "reason": "WaitingForQuota",
                                   "message": "insufficient unused quota for nvidia.com/gpu in flavor a100, 4 more needed"}]}})
    place.cluster.queue = ["other"] * 1503 + ["own"]
    out, _ = place.run("inspect", handle)
    assert "insufficient unused quota for nvidia.com/gpu in flavor a100, 4 more needed; it is 1504th in the queue `gpu`" in out, out
