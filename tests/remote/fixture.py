"""What the tests of remote jobs share: a directory with jobs and targets, a cluster, and the program."""

import base64
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "runtime"))

from cluster import Cluster  # noqa: E402
from harness import REPOSITORY, scratch  # noqa: E402

SECONDS = 60
ONE = """\
version: 1
name: one
image: busybox
roles:
  main:
    instances: 2
    run: echo hello
"""
TWO = """\
version: 1
name: two
image: busybox
roles:
  server:
    run: sleep 1
  client:
    instances: 3
    needs: {server: started}
    run: echo hello
"""
# A process of its own: what a large process forks counts that one's memory as its own.
MEASURE = """
import os, subprocess, sys, time
since = time.monotonic()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
print(os.waitstatus_to_exitcode(status), time.monotonic() - since, usage.ru_maxrss, usage.ru_utime + usage.ru_stime)
"""
TARGETS = """\
version: 1
default: [lab]
targets:
  lab:
    backends: [kubernetes]
    kubernetes: {{namespace: ml, kubeconfig: {kubeconfig}}}
  far:
    backends: [kubernetes]
    kubernetes: {{namespace: ml, kubeconfig: far.kubeconfig}}
"""


class Fixture:
    """A user's directory, and a cluster."""

    def __init__(self, directory, program):
        self.directory, self.program, self.cpu_seconds = directory, program, 0.0
        self.cluster = Cluster(directory)
        self.kubeconfig = self.cluster.kubeconfig()
        self.write("targets.yaml", TARGETS.format(kubeconfig=self.kubeconfig.name))
        self.write("one.yaml", ONE)
        self.write("two.yaml", TWO)

    def write(self, name, text):
        (self.directory / name).write_text(text)

    def environment(self, more=None):
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "LLVM_PROFILE_FILE")}
        return {**kept, "HOME": str(self.directory), "NO_COLOR": "1", "JOBC_IMAGE_ROOT": str(self.directory / "images"), **(more or {})}

    def registry(self, registry):
        """Has the program speak plain HTTP with a stand-in registry."""
        path = self.directory / ".config/jobc/registries.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"registries": {registry.host: {"plain_http": True}}}))

    def login(self, host, password):
        """Logs in to a registry, as `docker login` records it."""
        path = self.directory / ".docker/config.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"auths": {host: {"auth": base64.b64encode(password.encode()).decode()}}}))

    def start(self, *words, env=None):
        return subprocess.Popen([self.program, *map(str, words)], cwd=self.directory, env=self.environment(env), text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, *words, code=0, env=None, seconds=SECONDS):
        """Runs jobc; returns its stdout and stderr."""
        with self.start(*words, env=env) as process:
            out, errors = process.communicate(timeout=seconds)
        if code is not None and process.returncode != code:
            raise AssertionError(f"jobc {' '.join(map(str, words))}: exit code {process.returncode}, not {code}: {out}{errors}")
        return out, errors

    def json(self, *words):
        return json.loads(self.run(*words, "--format", "json")[0])

    def submit(self, job="one.yaml", *words):
        """Submits a job; returns its handle."""
        out, _ = self.run("submit", job, *words)
        return out.strip()

    def peak(self, *words):
        """Runs jobc; returns its exit code, the seconds it took and its peak memory in MiB, by wait4(2). Its seconds of CPU time are in
        `cpu_seconds`."""
        result = subprocess.run([sys.executable, "-c", MEASURE, self.program, *map(str, words)], cwd=self.directory, env=self.environment(),
                                capture_output=True, text=True, timeout=SECONDS, check=True)
        code, seconds, kibibytes, cpu_seconds = result.stdout.split()
        self.cpu_seconds = float(cpu_seconds)
        return int(code), float(seconds), int(kibibytes) / 1024

    def close(self):
        self.cluster.close()


@contextlib.contextmanager
def fixture(harness):
    program = Path(harness.options.runtime or REPOSITORY / "target/debug/jobc").resolve()
    if not program.exists():
        harness.missing("jobc", "`cargo build`")
    with scratch() as directory:
        fixture = Fixture(directory, program)
        try:
            yield fixture
        finally:
            fixture.close()


def until(condition, what, seconds=SECONDS):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"timed out: {what}")
        time.sleep(0.02)


def run_cases(harness, cases, at_once=1):
    """Runs each case with a cluster of its own, so many at a time: some do little but wait."""
    harness.parse()
    harness.tool("openssl")

    def problems(case):
        with fixture(harness) as place:
            try:
                return list(case(place) or [])
            except (AssertionError, KeyError, IndexError, TypeError, ValueError, subprocess.SubprocessError) as error:
                return [f"{type(error).__name__}: {error}"]

    wanted = [case for case in cases if harness.wants(case.__name__)]
    with ThreadPoolExecutor(at_once) as pool:
        for case, found in zip(wanted, pool.map(problems, wanted)):
            harness.check(case.__name__, found)
    harness.end()


def expect(condition, what):
    if not condition:
        raise AssertionError(str(what))


__all__ = ["Fixture", "expect", "fixture", "run_cases", "until", "signal"]
