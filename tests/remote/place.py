"""A user's directory with jobs and targets, a cluster, and the program."""

import base64
import json
import os
import subprocess
import sys
import time

from cluster import Cluster

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
CODE_BYTES = 1 << 20
BUILT = """\
version: 1
name: built
image:
  from: {base}
  copy: [{{from: code, to: /workspace}}]
roles:
  main:
    run: python /workspace/train.py
"""
BUILT_TARGETS = """\
version: 1
targets:
  lab:
    backends: [kubernetes]
    registry: {host}/ml
    kubernetes: {{namespace: ml, kubeconfig: {kubeconfig}}}
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


class Place:
    """A user's directory, and a cluster."""

    def __init__(self, directory, program):
        self.directory, self.program, self.cpu_seconds = directory, program, 0.0
        self.cluster = Cluster(directory)
        self.kubeconfig = self.cluster.kubeconfig()
        self.write("targets.yaml", TARGETS.format(kubeconfig=self.kubeconfig.name))
        self.write("one.yaml", ONE)
        self.write("two.yaml", TWO)

    def write(self, name, text):
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def environment(self, more=None):
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "LLVM_PROFILE_FILE")}
        return {**kept, "HOME": str(self.directory), "NO_COLOR": "1", "JOBC_IMAGE_ROOT": str(self.directory / "images"), **(more or {})}

    def registry(self, registry):
        """Has the program speak plain HTTP with a stand-in registry."""
        self.write(".config/jobc/registries.yaml", json.dumps({"registries": {registry.host: {"plain_http": True}}}))

    def login(self, host, password):
        """Logs in to a registry, as `docker login` records it."""
        self.write(".docker/config.json", json.dumps({"auths": {host: {"auth": base64.b64encode(password.encode()).decode()}}}))

    def build_on(self, registry):
        """Writes a job with an image that is built on one of the registry and pushed there."""
        self.write("targets.yaml", BUILT_TARGETS.format(host=registry.host, kubeconfig=self.kubeconfig.name))
        self.write("built.yaml", BUILT.format(base=registry.base()))
        self.edit()

    def edit(self):
        """Changes the code of that job, which does not compress."""
        (self.directory / "code").mkdir(exist_ok=True)
        (self.directory / "code/train.py").write_bytes(os.urandom(CODE_BYTES))

    def image_of(self, handle):
        """The image of a job on the cluster."""
        job, = [job for job in self.cluster.all("jobs") if job["metadata"]["name"] == handle.split("/")[1]]
        return job["spec"]["template"]["spec"]["containers"][0]["image"]

    def start(self, *words, env=None, **more):
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen([self.program, *map(str, words)], cwd=self.directory, env=self.environment(env), text=True, **(streams | more))

    def run(self, *words, code=0, env=None, given=None, seconds=SECONDS):
        """Runs jobc; returns its stdout and stderr."""
        streams = {"stdin": subprocess.PIPE} if given is not None else {}
        with self.start(*words, env=env, **streams) as process:
            out, errors = process.communicate(given, timeout=seconds)
        if code is not None and process.returncode != code:
            raise AssertionError(f"jobc {' '.join(map(str, words))}: exit code {process.returncode}, not {code}: {out}{errors}")
        return out, errors

    def json(self, *words):
        return json.loads(self.run(*words, "--format", "json")[0])

    def submit(self, job="one.yaml", *words, env=None):
        """Submits a job; returns its handle."""
        return self.run("submit", job, *words, env=env)[0].strip()

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


def until(condition, what="", seconds=SECONDS):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"timed out: {what}"
        time.sleep(0.02)
