"""The host that rows run on: jobc's command line, on this host or on a simulated one."""

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ANSWERS = "usr/lib/x86_64-linux-gnu/nvml.answers"


class NotAvailable(Exception):
    """A row that cannot run on this host, and why."""


class Failed(Exception):
    """A row with a wrong result."""


class Host:
    """The command line, on this host or on a simulated one, whose files are in the directory `fake`."""

    def __init__(self, jobc, directory, fake, image):
        self.jobc, self.directory, self.fake, self.image = jobc, directory, fake, image
        self.environment = os.environ | {"JOBC_COLOR": "never", "XDG_STATE_HOME": str(directory / "state"), "XDG_DATA_HOME": str(directory / "data")}
        self.variables = {}
        if fake:
            # Of the simulated driver, and of modules that stand for PyTorch.
            self.variables = {"PYTHONPATH": str(HERE.parent / "fake/torch"), "LD_LIBRARY_PATH": str(fake / "usr/lib/x86_64-linux-gnu")}
            self.environment |= {"JOBC_DRIVER_ROOT": str(fake)}
        self.jobs = 0

    def call(self, *words, seconds=120, stdin=None):
        try:
            return subprocess.run([self.jobc, *words], capture_output=True, text=True, errors="replace", env=self.environment, input=stdin,
                                  timeout=seconds, check=False, **({} if stdin else {"stdin": subprocess.DEVNULL}))
        except subprocess.TimeoutExpired as timeout:
            return subprocess.CompletedProcess(timeout.cmd, 124, "", f"timed out after {seconds} s")

    def json(self, *words):
        answer = self.call(*words, "--format", "json")
        if answer.returncode:
            raise Failed(last_lines(answer))
        return json.loads(answer.stdout.splitlines()[0] if words[0] == "stats" and answer.stdout else answer.stdout or "{}")

    def job(self, roles, **more):
        """A job file with these roles, which run shell scripts on the host's own files."""
        self.jobs += 1
        name = f"gpu-{self.jobs}"
        path = self.directory / f"{name}.json"
        roles = {role: {"shell": "sh", "env": self.variables, **settings} for role, settings in roles.items()}
        path.write_text(json.dumps({"version": 1, "name": name, "image": "host", "roles": roles, **more}))
        return str(path)

    def task(self, script, gpu, **more):
        """A job file with one task."""
        return self.job({"main": {"run": script, "resources": {"gpu": gpu}}}, **more)

    def run(self, script, gpu, *words, seconds=120):
        """The output of a job with one task, which must succeed."""
        return self.run_file(self.task(script, gpu), *words, seconds=seconds)

    def run_file(self, path, *words, seconds=120):
        """The output of a job, which must succeed."""
        answer = self.call("run", *words, path, seconds=seconds)
        if answer.returncode:
            raise Failed(f"exit {answer.returncode}: {last_lines(answer)}")
        return answer.stdout

    @contextlib.contextmanager
    def detached(self, path, *words):
        """A job that runs meanwhile, by its id, once its tasks run."""
        answer = self.call("run", "--detach", *words, path)
        if answer.returncode:
            raise Failed(last_lines(answer))
        job = answer.stdout.strip()
        try:
            self.until(lambda: self.json("inspect", job)["state"] == "running", f"{job} does not run")
            if self.fake:
                self.answer(*(f"gpu.0.{line}" for line in self.simulated_use(job)))
            yield job
        finally:
            self.call("kill", job)
            self.call("wait", job)
            if self.fake:
                self.answer("gpu.0.processes=", "gpu.0.utilization=0 0")

    def simulated_use(self, job):
        """What the simulated driver is to report of a job's processes, which a real one knows."""
        processes = [task["process"]["pid"] for task in self.json("inspect", job)["tasks"] if task.get("process")]
        return ["processes=" + " ".join(f"{pid}:{2 << 30}" for pid in processes), "utilization=97 5"]

    def answer(self, *lines):
        """Appends answers of the simulated NVML; the last line of a name counts."""
        with (self.fake / ANSWERS).open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    def until(self, what, why, seconds=60):
        deadline = time.monotonic() + seconds
        while not (found := what()):
            if time.monotonic() > deadline:
                raise Failed(f"{why} within {seconds} s")
            time.sleep(0.1)
        return found

    def output(self, name):
        """A directory that tasks write to, and the job's setting that mounts it to /out."""
        directory = self.directory / name
        directory.mkdir(exist_ok=True)
        return directory, {"outputs": {"out": {"source": str(directory), "mount": "/out"}}}

    def record(self, job):
        """The record directory of a job."""
        return self.directory / "state/jobc/jobs" / job

    def listed(self):
        return self.json("gpu", "ls")

    def card(self):
        """The first of NVIDIA's cards that are not partitioned by MIG."""
        return self.whole_cards()[0]

    def whole_cards(self):
        """NVIDIA's cards that are not partitioned by MIG."""
        cards = [gpu for gpu in self.listed()["gpus"] if gpu["vendor"] == "nvidia" and not (gpu["mig"] or {}).get("enabled")]
        if not cards:
            raise NotAvailable("every card is partitioned by MIG")
        return cards

    def processes(self):
        """The processes on the cards, by PID."""
        pids = [process["pid"] for gpu in self.listed()["gpus"] for process in gpu["processes"]]
        # The simulated driver reports what it was told, of processes that have ended too.
        return {pid for pid in pids if not self.fake or is_alive(pid)}

    def needs_driver(self):
        if self.fake:
            raise NotAvailable("the host is simulated")

    def needs_mps(self):
        if not self.program("nvidia-cuda-mps-control"):
            raise NotAvailable("nvidia-cuda-mps-control is not installed")

    def needs_torch(self):
        """PyTorch of the Python that runs this script."""
        check = "import torch; assert torch.cuda.is_available()"
        if subprocess.run([sys.executable, "-c", check], capture_output=True, env=os.environ | self.variables, check=False).returncode:
            raise NotAvailable("python3 on this host has no PyTorch with CUDA")

    def program(self, name):
        """The path of a driver program: on `PATH`, or where clusters mount it."""
        if self.fake:
            return shutil.which(name, path=str(self.fake / "usr/bin"))
        return shutil.which(name) or shutil.which(name, path="/usr/local/nvidia/bin:/opt/nvidia/bin")


def is_alive(pid):
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def last_lines(answer):
    lines = [line for line in (answer.stdout + answer.stderr).splitlines() if line.strip()]
    return " / ".join(lines[-6:])


def python(text):
    """A script that runs a program with this Python interpreter, which may not be on a container's `PATH`."""
    return f"exec {shlex.quote(sys.executable)} - <<'END_OF_PROGRAM'\n{text}\nEND_OF_PROGRAM\n"


def numbers(pattern, text):
    """The numbers that a pattern finds in a text."""
    return [float(number) for number in re.findall(pattern, text)]
