"""Peers of `tests/bench/peers` that are Python programs or servers: gflow, SkyPilot and dstack, from PyPI.

Each has a virtual environment in target/peers, and for a run a home of its own. Servers listen on loopback and end with the run.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parents[2] / "target/peers"
PINNED = {"gflow": "runqd==0.4.18", "skypilot": "skypilot==0.14.1", "dstack": "dstack[server]==0.22.5"}
PROGRAM = {"gflow": "gbatch", "skypilot": "sky", "dstack": "dstack"}
JOB = "version: 1\nname: train\nimage: python:3.12\nresources: {cpuu: 2}\nrun: python train.py\n"
SKY = "name: train\nresources:\n  cpuss: 2\nrun: python train.py\n"
DSTACK = 'type: task\nname: train\npython: "3.12"\ncommands:\n  - python train.py\nresources:\n  gpuu: 1\n'


def install():
    for name, requirement in PINNED.items():
        subprocess.run([sys.executable, "-m", "venv", HERE / name], check=True)
        subprocess.run([HERE / name / "bin/pip", "install", "--quiet", "--disable-pip-version-check", requirement], check=True)


def program(name, command=None):
    """The path of an installed program, or nothing."""
    return shutil.which(command or PROGRAM[name], path=HERE / name / "bin")


def versions():
    return {name: requirement.partition("==")[2] for name, requirement in PINNED.items() if program(name)}


def environment(home):
    ours = {"HOME": str(home), "SKYPILOT_DISABLE_USAGE_COLLECTION": "1", "DSTACK_SERVER_ADMIN_TOKEN": "token", "NO_COLOR": "1",
            "TMUX_TMPDIR": str(home)}
    return {"PATH": f"{HERE / 'gflow/bin'}:{os.environ['PATH']}", "LANG": "C.UTF-8"} | ours


def misspelled(jobc, home, ran):
    """Commands that find a field that does not exist in a job file. dstack's client needs its server for this."""
    files = {"job.yaml": JOB, "sky.yaml": SKY, "task.dstack.yml": DSTACK}
    for name, text in files.items():
        (home / name).write_text(text)
    commands = {"jobc": (jobc, "check", "job.yaml")}
    if program("skypilot"):
        commands["SkyPilot"] = (program("skypilot"), "launch", "--dryrun", "--yes", "sky.yaml")
    if program("dstack"):
        commands["dstack"] = (program("dstack"), "apply", "--yes", "--file", "task.dstack.yml")

    def finds(command):
        answer = ran(*command, env=environment(home), cwd=home)
        if not any(word in answer.stdout + answer.stderr for word in ("cpuu", "cpuss", "gpuu")):
            sys.exit(f"peers: {command[0]} does not find the field: {(answer.stdout + answer.stderr).strip()[-600:]}")
        return subprocess.CompletedProcess(command, 0, answer.stdout, answer.stderr)

    return {name: lambda _, command=command: finds(command) for name, command in commands.items()}


def gflow(home, ran):
    """A command that submits `touch` to gflow and waits for the file: gflow has no command that waits."""
    def queued(turn):
        done = home / f"done.{turn}"
        answer = ran(program("gflow"), "--auto-close", "touch", done, env=environment(home), cwd=home)
        ended = time.monotonic() + 60
        while answer.returncode == 0 and not done.exists():
            if time.monotonic() > ended:
                sys.exit("peers: gflow did not run its job within 60 seconds")
            time.sleep(0.002)
        return answer

    return queued


@contextlib.contextmanager
def started(home):
    """The servers of the installed peers, by name."""
    python = HERE / "skypilot/bin/python"
    port = {name: free() for name in ("skypilot", "dstack")}
    commands = {"gflow": [program("gflow", "gflowd")],
                "skypilot": [python, "-m", "sky.server.server", "--host=127.0.0.1", f"--port={port['skypilot']}"],
                "dstack": [program("dstack"), "server", "--port", str(port["dstack"])]}
    servers = {}
    try:
        for name, command in commands.items():
            if program(name):
                with (home / f"{name}.log").open("w") as log:
                    servers[name] = subprocess.Popen(command, env=environment(home), cwd=home, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                     start_new_session=True)
        for name in servers.keys() & port.keys():
            await_port(name, port[name])
        if servers:
            time.sleep(5)  # Until the workers of the servers have started too.
        yield servers
    finally:
        if "gflow" in servers:
            subprocess.run(["tmux", "kill-server"], env=environment(home), stderr=subprocess.DEVNULL, check=False)
        for server in servers.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def free():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def await_port(name, port):
    ended = time.monotonic() + 60
    while time.monotonic() < ended:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    sys.exit(f"peers: the server of {name} did not listen within 60 seconds")


def memory(server):
    """The memory of a server and its children in MiB, shared pages divided by those who share them."""
    members, total = {server.pid}, 0
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
    while more := {pid for pid, parent in parents.items() if parent in members} - members:
        members |= more
    for pid in members:
        with contextlib.suppress(OSError):
            total += next(int(line.split()[1]) for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines() if line.startswith("Pss:"))
    return total / 1024
