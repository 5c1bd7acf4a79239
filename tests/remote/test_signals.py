"""Tests that SIGTERM of a kubelet reaches the program behind a pod's shell: the container's command runs as the first process of
a PID namespace, as the kubelet starts it."""

import json
import signal
import subprocess
import time

import pytest
import yaml

from harness import scratch

# It saves for a second when it is told to end. A worker, which inherits the handler, must not save as well.
PROGRAM = """\
import os, signal, sys, time
def save(*_):
    print("saving", flush=True); time.sleep(1); print("saved" if os.getpid() == main else "worker saved", flush=True); sys.exit(0)
main = os.getpid()
signal.signal(signal.SIGTERM, save)
if os.fork() == 0: time.sleep(2); os._exit(0)
print("up", flush=True)
time.sleep(60)
"""
SCRIPTS = {
    "one": "python3 save.py",
    "redirection": "python3 save.py 2>&1",
    "variable": "A=1 python3 save.py",
    "last": "export A=1\npython3 save.py",
    "first": "python3 save.py\necho after",
    "pipe": "python3 save.py | cat",
    "list": "cd . && python3 save.py",
    "function": "main() { python3 save.py; }\nmain",
}

pytestmark = [pytest.mark.duration(20), pytest.mark.needs("root", "unshare", "bash", "dash")]


def command_of(program, directory, shell, script):
    """The command of the only container of a job's pod, as the kubelet expands it where it names no variable."""
    job = {"version": 1, "name": "signal", "image": "busybox", "roles": {"main": {"shell": shell, "run": script}}}
    (directory / "job.yaml").write_text(json.dumps(job))
    subprocess.run([program, "build", "--target", "kubernetes", "--output", directory / "out", directory / "job.yaml"], check=True, capture_output=True)
    objects = [found for file in (directory / "out").rglob("*.yaml") if "kubernetes" in file.parts for found in yaml.safe_load_all(file.read_text())]
    [pod] = [found["spec"]["template"]["spec"] for found in objects if found and found["kind"] == "Job"]
    return [word.replace("$$", "$") for word in pod["containers"][0]["command"]]


@pytest.mark.parametrize("shell", ["bash", "sh"])
@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_the_program_behind_a_shell_saves_at_sigterm(program, shell, script):
    with scratch() as directory:
        (directory / "save.py").write_text(PROGRAM)
        command = command_of(program, directory, shell, script)
        pod = subprocess.Popen(["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", *command], cwd=directory, text=True, stdout=subprocess.PIPE)
        try:
            assert pod.stdout.readline() == "up\n"
            [first] = subprocess.run(["pgrep", "--parent", str(pod.pid)], capture_output=True, text=True, check=True).stdout.split()
            time.sleep(0.1)
            subprocess.run(["kill", "-s", str(int(signal.SIGTERM)), first], check=True)
            out, _ = pod.communicate(timeout=10)
        finally:
            pod.kill()
            pod.wait()
    assert out == "saving\nsaved\n" + ("after\n" if "after" in script else ""), out


def test_a_shell_without_such_a_program_ends_at_sigterm(program):
    with scratch() as directory:
        command = command_of(program, directory, "bash", "echo up\nsleep 60\necho after")
        pod = subprocess.Popen(["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", *command], cwd=directory, text=True, stdout=subprocess.PIPE)
        try:
            assert pod.stdout.readline() == "up\n"
            [first] = subprocess.run(["pgrep", "--parent", str(pod.pid)], capture_output=True, text=True, check=True).stdout.split()
            subprocess.run(["kill", first], check=True)
            out, _ = pod.communicate(timeout=5)
        finally:
            pod.kill()
            pod.wait()
    assert out == "" and pod.returncode == 128 + signal.SIGTERM
