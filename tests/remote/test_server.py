"""Tests jobs on a real API server: Kubernetes 1.20 with its garbage collector and scheduler (`server/install`), and a node that carries
the containers out (`node.py`).

Job and JobSet have controllers of these tests' own, and the type Job the fields of newer releases (`server/fields.py`). What the server
itself decides is real: rights, validation, server-side apply and its dry run, watches, owners and their collection, quotas, placement.
"""

import base64
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
import urllib.request

import apiserver
import needs
import pytest
from controllers import Controllers
from harness import REPOSITORY
from node import Node
from place import ONE, TARGETS, Place, until

pytestmark = [pytest.mark.slow, pytest.mark.isolated, pytest.mark.needs("bwrap", "openssl"), pytest.mark.duration(60)]
CRDS = REPOSITORY.parent / "shared/schemas/kubernetes-crds"
NAMESPACES = ("ml", "serving")
CLAIMS = ("corpus", "checkpoints", "code", "work", "model", "imagenet", "notebooks")
# Programs of images: each says how it was called, and with which variables of jobc.
PROGRAM = """#!/bin/sh
echo "$(basename "$0") $*"
env | grep -E '^(JOBC|PET|OMPI|RAY)_' | sort
"""
SERVER = """#!/bin/sh
echo "$(basename "$0") $*"
exec /usr/bin/python3 -m http.server {port} --directory /tmp
"""
PROGRAMS = {name: PROGRAM for name in ("torchrun", "python", "mpirun", "horovodrun", "ray", "sshd", "image-command")} | {
    "uvicorn": SERVER.format(port=8080), "jupyter": SERVER.format(port=8888)}
JOB = """\
version: 1
name: {name}
image: host
roles:
  main:
    shell: sh
{role}
"""
TWO = """\
version: 1
name: {name}
image: host
roles:
  first:
    shell: sh
    run: {first}
  second:
    shell: sh
    instances: 2
    needs: {{first: succeeded}}
    run: {second}
"""
# Name, job, and the lines that its output must have. Each is run here and on the cluster, and both must end with the same exit code.
JOBS = [
    ("plain", JOB.format(name="plain", role="    instances: 3\n    run: echo index $JOBC_INDEX of $JOBC_INSTANCES"),
     ["index 0 of 3", "index 1 of 3", "index 2 of 3"]),
    ("failing", JOB.format(name="failing", role="    run: echo before; exit 7"), ["before"]),
    ("again", JOB.format(name="again", role="    retry: {max: 2}\n    run: echo attempt; exit 3"), ["attempt"] * 3),
    ("late", JOB.format(name="late", role="    timeout: 2s\n    grace_period: 1s\n    run: echo started; exec sleep 60"), ["started"]),
    ("overdue", JOB.format(name="overdue", role="    grace_period: 1s\n    run: echo started; exec sleep 60") + "timeout: 3s\n", ["started"]),
    ("steps", TWO.format(name="steps", first="echo one", second="echo two $JOBC_INDEX"), ["one", "two 0", "two 1"]),
    ("broken", TWO.format(name="broken", first="exit 1", second="echo never"), []),
    ("unicode", JOB.format(name="unicode", role="    env: {TEXT: 你好}\n    run: echo \"$TEXT äöü\""), ["你好 äöü"]),
]


class Lab(Place):
    """A user's directory beside a control plane."""

    def __init__(self, jobs):
        self.directory, self.program, self.jobs = jobs.directory / "user", jobs.program, jobs
        self.directory.mkdir()
        programs = self.directory / "programs"
        programs.mkdir()
        for name, text in PROGRAMS.items():
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        self.plane = apiserver.ControlPlane(jobs.directory / "plane")
        self.node = None
        try:
            for name in NAMESPACES:
                self.plane.kubectl("create", "namespace", name)
            for name in NAMESPACES:
                for claim in CLAIMS:
                    self.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": claim, "namespace": name}, "spec": {
                        "accessModes": ["ReadWriteMany"], "storageClassName": "", "volumeName": f"{name}-{claim}",
                        "resources": {"requests": {"storage": "1Gi"}}}})
                    self.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"{name}-{claim}"}, "spec": {
                        "accessModes": ["ReadWriteMany"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/tmp"},
                        "claimRef": {"namespace": name, "name": claim}}})
                    self.bind(name, claim)
            self.has_jobset = CRDS.exists()
            if self.has_jobset:
                # 1.20 knows no rules (CEL), and rejects empty defaults. Every name that has one is in our objects.
                text = re.sub(r"default: \"\"", "default: none", (CRDS / "jobset.x-k8s.io_jobsets.yaml").read_text())
                self.plane.kubectl("create", "--validate=false", "-f", "-", input=text)
                until(lambda: self.plane.admin.get("/apis/jobset.x-k8s.io/v1alpha2"), "JobSet is served")
            self.node = Node(self.plane, programs)
            self.controllers = Controllers(self.plane.admin)
        except BaseException:
            self.close()
            raise
        self.write("targets.yaml", TARGETS.format(kubeconfig=self.plane.kubeconfig))
        self.write("one.yaml", ONE)

    def bind(self, namespace, claim):
        """Says that a claim has its volume, since the controller of volumes does not run."""
        path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{claim}"
        self.plane.admin.merge(path, {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}})
        self.plane.admin.merge(f"{path}/status", {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}})

    def apply(self, value):
        return self.plane.kubectl("apply", "-f", "-", input=json.dumps(value))

    def all(self, kind, namespace="ml"):
        return json.loads(self.plane.kubectl("get", kind, "-n", namespace, "-o", "json"))["items"]

    def close(self):
        if self.node:
            self.node.close()
        self.plane.close()


@pytest.fixture(scope="module")
def strange_lab(all_jobs):
    """A control plane on which the user has no rights."""
    if not apiserver.is_installed():
        needs.missing("kube-apiserver", "`tests/remote/server/install`")
    lab = Lab(all_jobs)
    yield lab
    lab.close()


@pytest.fixture(scope="module")
def lab(strange_lab):
    """The same with the rights of the Role of `jobc targets role`."""
    for name in NAMESPACES:
        role = strange_lab.run("targets", "role", "lab")[0].replace("namespace: ml", f"namespace: {name}")
        strange_lab.plane.kubectl("apply", "-f", "-", input=role)
        if name == NAMESPACES[0]:
            wide = re.search(r"kind: ClusterRole\n *metadata:\n *name: (\S+)", role)[1]
            strange_lab.plane.kubectl("create", "clusterrolebinding", "user", f"--clusterrole={wide}", "--user=me")
        found = re.search(r"^ *name: (\S+)", role, re.M) or re.search(r"name: ([^,}\s]+)", role)
        strange_lab.plane.kubectl("create", "rolebinding", "user", "-n", name, f"--role={found[1]}", "--user=me")
    return strange_lab


def test_nothing_is_allowed_without_the_role_of_the_target(strange_lab):
    out, _ = strange_lab.run("targets", "check", "lab", code=1)
    assert re.search(r"MISSING  .*\bcreate\b.* jobs\.batch", out), out
    _, errors = strange_lab.run("submit", "one.yaml", code=None)
    assert "cannot list resource \"jobs\"" in errors or "jobs.batch" in errors, errors
    assert not strange_lab.all("jobs"), "a job was created without the right to"


def test_everything_needed_is_allowed_with_the_role(lab):
    out, _ = lab.run("targets", "check", "lab", code=None)
    missing = [line for line in out.splitlines() if line.split()[0] in ("MISSING", "no") and "kueue" not in line and "kind " not in line]
    assert not missing, out


def test_everything_goes_with_the_job(lab):
    """The job owns what was made for it: the server's garbage collector takes it when the job is removed."""
    lab.write("hidden.yaml", "version: 1\nname: hidden\nimage: busybox\nsecrets: {token: {env: TEST_TOKEN}}\nroles:\n  main:\n    shell: sh\n"
              "    files: {/etc/greeting: {content: good morning}}\n"
              "    env: {TOKEN: \"${{ secrets.token }}\"}\n    run: cat /etc/greeting; echo; test \"$TOKEN\" = s3cret-value\n")
    out, _ = lab.run("submit", "hidden.yaml", env={"TEST_TOKEN": "s3cret-value"})
    handle = out.strip()
    assert lab.run("submit", "hidden.yaml", env={"TEST_TOKEN": "s3cret-value"})[0].strip() == handle, "one job"
    lab.run("wait", handle)
    out, _ = lab.run("logs", handle)
    assert "good morning" in out, out
    secret = [each for each in lab.all("secrets") if each["metadata"].get("ownerReferences")]
    assert len(secret) == 1 and base64.b64decode(secret[0]["data"]["token"]) == b"s3cret-value", secret
    lab.run("rm", handle)

    def left():
        return [each["metadata"]["name"] for kind in ("jobs", "pods", "configmaps", "secrets", "services") for each in lab.all(kind)
                if each["metadata"]["name"].startswith("hidden")]
    until(lambda: not left(), "the collection")


def test_the_server_s_errors_are_at_lines(lab):
    """What admission refuses is refused before anything is created."""
    lab.plane.kubectl("create", "quota", "none", "-n", "ml", "--hard=count/jobs.batch=0")
    try:
        until(lambda: lab.all("resourcequotas")[0]["status"].get("hard"), "the quota")
        _, errors = lab.run("submit", "one.yaml", "--new", code=None)
        assert "quota" in errors and "count/jobs.batch" in errors, errors
        assert " --> one.yaml:" in errors, errors
        assert not [job for job in lab.all("jobs") if job["metadata"]["name"].startswith("one")], "a job was created"
    finally:
        lab.plane.kubectl("delete", "quota", "none", "-n", "ml")


def test_it_says_why_a_job_waits(lab):
    """The scheduler's own words, as a sentence."""
    lab.write("big.yaml", ONE.replace("name: one", "name: big").replace("run: echo hello", "run: echo hello\n    resources: {gpu: 500}"))
    handle = lab.submit("big.yaml")
    until(lambda: "nvidia.com/gpu" in lab.run("inspect", handle)[0], "the reason")
    out, _ = lab.run("inspect", handle)
    assert "main-0" in out, out
    out, _ = lab.run("events", handle)
    assert "FailedScheduling" in out and "Insufficient nvidia.com/gpu" in out, out
    lab.run("stop", handle)
    assert lab.json("inspect", handle)["state"] == "stopped" and not [pod for pod in lab.all("pods") if pod["metadata"]["name"].startswith("big")]
    lab.run("rm", handle)
    until(lambda: not [job for job in lab.all("jobs") if job["metadata"]["name"].startswith("big")], "the end")


def test_output_is_followed_and_stop_stops(lab):
    lab.write("long.yaml", ONE.replace("name: one", "name: long").replace(
        "run: echo hello", "shell: sh\n    run: trap 'echo asked; exit 0' TERM; i=0; while sleep 0.1; do echo line $i; i=$((i + 1)); done"))
    handle = lab.submit("long.yaml")
    process = lab.start("logs", "-f", handle)
    waiting = lab.start("wait", handle)
    until(lambda: "running" in lab.run("ps", handle)[0], "a running task")
    threading.Event().wait(2)
    lab.run("stop", handle)
    out, errors = process.communicate(timeout=60)
    for index in range(2):
        shown = [int(number) for number in re.findall(rf"^main-{index}.*line (\d+)$", out, re.M)]
        assert shown == list(range(len(shown))) and len(shown) > 5, f"main-{index}: {shown} {errors}"
    waiting.communicate(timeout=60)
    assert waiting.returncode == 130, waiting.returncode


def test_commands_reach_into_tasks(lab):
    """`exec`, `copy` and `port-forward` go through the API server's proxy to the node."""
    lab.write("served.yaml", ONE.replace("name: one", "name: served").replace(
        "run: echo hello", "shell: sh\n    resources: {ports: {http: 8000}}\n    run: cd /tmp; echo from $JOBC_ROLE-$JOBC_INDEX > page; exec python3 -m http.server $JOBC_PORT_HTTP"))
    handle = lab.submit("served.yaml")
    try:
        until(lambda: lab.run("ps", handle)[0].count("running") >= 2, "running tasks")
    except AssertionError:
        raise AssertionError(lab.run("inspect", handle)[0] + lab.run("logs", handle)[0]) from None
    out, _ = lab.run("exec", handle, "main-1", "--", "sh", "-c", "echo $JOBC_ROLE-$JOBC_INDEX in $(hostname); exit 7", code=7)
    assert out.startswith("main-1 in "), out
    lab.write("data.txt", "some data\n")
    lab.run("copy", handle, "data.txt", "main-0:/tmp/data.txt")
    out, _ = lab.run("exec", handle, "main-0", "--", "cat", "/tmp/data.txt")
    assert out == "some data\n", out
    lab.run("copy", handle, "main-0:/tmp/data.txt", "back.txt")
    assert (lab.directory / "back.txt").read_text() == "some data\n", "the copy"
    port, = apiserver.free_ports(1)
    forward = lab.start("port-forward", handle, f"{port}:main-1:http")

    def page():
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{port}/page", timeout=10).read().decode()
        except OSError:
            return ""
    until(lambda: page() == "from main-1\n", "the page")
    forward.send_signal(signal.SIGINT)
    forward.communicate(timeout=30)
    lab.run("stop", handle)


CODE = JOB.replace("image: host", "image: busybox\ncode: src").format(
    name="coded", role="    instances: 2\n    run: pwd; cat train.txt; ls -A; echo made > made-$JOBC_INDEX")


def test_an_edit_of_code_runs_within_seconds(lab, note):
    """No image is built for it. The manifests alone do the same with `kubectl apply`, also where the code has several pieces."""
    lab.write("coded.yaml", CODE)
    lab.write("src/train.txt", "version 1\n")
    lab.write("src/目录/.keep", "")
    with open(lab.directory / "src/noise", "wb") as file:
        file.write(base64.b64encode(os.urandom(400_000)))
    lab.run("wait", lab.submit("coded.yaml"))
    lab.write("src/train.txt", "version 2\n")
    since = time.monotonic()
    handle = lab.submit("coded.yaml")
    submitted = time.monotonic() - since
    until(lambda: lab.run("logs", handle)[0].count("version 2") == 2, "output of the new code")
    seconds = time.monotonic() - since
    note(f"an edit of code was submitted in {submitted:.2f} s, and its output seen after {seconds:.2f} s")
    code, errors = ended(lab, handle)
    logs, _ = lab.run("logs", handle)
    assert code == 0 and logs.count("/workspace") == 2 and "目录" in logs and "version 1" not in logs, logs + errors
    # The program may be a debug build on a busy host.
    assert seconds <= 10, f"an edit took {seconds:.1f} s"

    def pieces():
        return {value["metadata"]["name"] for value in lab.all("configmaps") if "jobc.dev/code" in value["metadata"].get("labels", {})}

    # The garbage collector removes the pieces with their last owner, and those of the first version with its job.
    lab.write("other.yaml", CODE.replace("name: coded", "name: other"))
    before = pieces()
    other = lab.submit("other.yaml")
    assert pieces() == before and len(before) >= 4, (before, pieces())
    for name in {job["metadata"]["name"] for job in lab.all("jobs") if job["metadata"]["name"].startswith("coded")}:
        lab.run("rm", "--force", f"lab/{name}")
    until(lambda: len(pieces()) == len(before) // 2, "the end of the first version")
    threading.Event().wait(1)
    assert len(pieces()) == len(before) // 2, pieces()
    lab.run("rm", "--force", other)
    until(lambda: not pieces(), "the end of the last owner")
    lab.run("build", "coded.yaml", "--target", "lab")
    lab.plane.kubectl("apply", "-n", "ml", "-f", str(lab.directory / "out/coded/lab/kubernetes"))
    until(lambda: [job for job in lab.all("jobs") if job["metadata"]["name"] == "coded" and job.get("status", {}).get("succeeded") == 2], "the applied job")


@pytest.mark.parametrize("name, text, lines", JOBS, ids=[name for name, _, _ in JOBS])
def test_a_job_ends_as_it_does_here(name, text, lines, lab):
    """The exit code and the output are the same."""
    if "needs:" in text and not lab.has_jobset:
        pytest.skip("needs the published definition of JobSet")
    lab.write(f"{name}.yaml", text)
    here = lab.jobs.call("run", str(lab.directory / f"{name}.yaml"), seconds=60)
    lab.write(f"{name}.yaml", text.replace("image: host", "image: busybox"))
    handle = lab.submit(f"{name}.yaml")
    code, errors = ended(lab, handle)
    assert here.returncode == code, f"{here.returncode} here, {code} there: {here.stderr[-800:]}{errors}"
    logs, errors = lab.run("logs", handle)
    shown = [line.split("|", 1)[-1].strip() for line in logs.splitlines()]
    for line in set(lines):
        assert shown.count(line) == lines.count(line), f"{line!r} in {logs!r} {errors}"
        assert line in here.stdout, f"{line!r} here: {here.stdout}"


def ended(lab, handle):
    """The exit code and output of `jobc wait`."""
    with lab.start("wait", handle) as waiting:
        try:
            output = "".join(waiting.communicate(timeout=60))
            return waiting.returncode, output
        except subprocess.TimeoutExpired:
            waiting.kill()
            raise AssertionError(f"{handle} does not end: {lab.run('inspect', handle)[0]}") from None


def job_file(directory):
    files = (path for path in sorted(directory.iterdir()) if path.suffix in (".yaml", ".yml", ".json"))
    return next((path for path in files if path.name != "targets.yaml"), None)


def examples():
    """The examples with a target for Kubernetes; a directory of several jobs has no job at its top."""
    for path in sorted((REPOSITORY / "examples").glob("*/targets.yaml")):
        if "backends: [kubernetes" in path.read_text() and job_file(path.parent):
            # Its first instance waits for the ssh servers of the others, which are in its image.
            marks = [pytest.mark.skip("the node has no images, and so no ssh servers")] if path.parent.name == "horovod-mpi" else []
            yield pytest.param(path.parent, marks=marks, id=path.parent.name)


@pytest.mark.parametrize("example", list(examples()))
def test_an_example_runs(example, lab, monkeypatch):
    """With programs that stand in for those of its images."""
    name, place = example.name, lab.directory / "examples" / example.name
    shutil.copytree(example, place, ignore=shutil.ignore_patterns("out"))
    config = f"kubeconfig: {lab.plane.kubeconfig}"
    # No Kueue here, and no cards by model.
    targets = re.sub(r"\n +queue: .*", "", (place / "targets.yaml").read_text())
    targets = re.sub(r"kubernetes: \{", f"kubernetes: {{{config}, ", targets)
    targets = re.sub(r"(\n +)kubernetes:\n( +)", rf"\1kubernetes:\n\2{config}\n\2", targets)
    (place / "targets.yaml").write_text(targets)
    if not lab.has_jobset and "jobset" in str(list((example / "out").rglob("*.yaml"))):
        pytest.skip("needs the published definition of JobSet")
    env = {"WANDB_API_KEY": "key", "JUPYTER_TOKEN": "token"}
    handles = lab.run("submit", str(job_file(place)), "--target", "lab", "--no-build", env=env)[0].split()
    monkeypatch.setattr(lab, "directory", place)
    for handle in handles:
        if name in ("jupyter", "gpu-slice"):
            until(lambda: "running" in lab.run("ps", handle)[0], f"{name} runs")
            until(lambda: "jupyter lab" in lab.run("logs", handle)[0] or "uvicorn serve:app" in lab.run("logs", handle)[0], f"{name} says so")
            lab.run("stop", handle)
            continue
        code, output = ended(lab, handle)
        assert code == 0, f"{output}{lab.run('inspect', handle)[0]}{lab.run('logs', handle)[0]}"
        assert re.search(r"\b(torchrun|python|mpirun|image-command|hello)\b", lab.run("logs", handle)[0])
