"""Tests `jobc submit` and `jobc targets` against a stand-in cluster: what is created, what is refused and where."""

import base64
import hashlib
import json
import os
import shutil
import subprocess
import threading
import time

import pytest
from cluster import Handler, Script
from place import ONE, TARGETS, until

pytestmark = pytest.mark.duration(20)
# A public key; its private key was deleted.
KEY = """\
-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEXU6fbp+UpCKyRi+OPz0OuMoEM0Pk
sPzWmGordgXC75Hdi/QuUJ3+fGPYOZoXYDC7muoGMEUnvfn3XnZGPb+z3A==
-----END PUBLIC KEY-----
"""
BUILT = """\
version: 1
name: built
image:
  from: busybox
  steps: [{run: echo hi}]
roles:
  main: {run: echo hello}
"""
SECRET = """\
version: 1
name: hidden
image: busybox
secrets:
  token: {env: TEST_TOKEN}
roles:
  main:
    env: {TOKEN: "${{ secrets.token }}"}
    run: echo hello
"""
VOLUME = """\
version: 1
name: volume
image: busybox
data:
  corpus: {source: "pvc:absent", mount: /data}
roles:
  main: {run: echo hello}
"""
MATRIX = """\
version: 1
name: sweep
image: busybox
matrix: {lr: [1, 2, 3]}
roles:
  main: {run: "echo ${{ matrix.lr }}"}
"""

INDEXED = """\
version: 1
name: indexed
image: busybox
roles:
  main: {instances: 2, run: echo hello}
"""


CODE = """\
version: 1
name: {name}
image: python:3.12
code: src
roles:
  main: {{run: python train.py}}
"""


def code_of(place):
    """The ConfigMaps with code, by name, and the archive that they hold together."""
    maps = sorted((value for value in place.cluster.all("configmaps") if "jobc.dev/code" in value["metadata"]["labels"]),
                  key=lambda value: value["metadata"]["name"])
    pieces = [base64.b64decode(piece) for value in maps for piece in value["binaryData"].values()]
    return {value["metadata"]["name"]: value for value in maps}, b"".join(pieces)


def created(place, since=0):
    """The names of the ConfigMaps with code that were sent since a request."""
    return [path for method, path in place.cluster.requests[since:] if method == "POST" and "/configmaps" in path]


def test_code_is_sent_once_and_belongs_to_all_jobs_with_it(place):
    """In pieces that unpack to the same files, also names that are not UTF-8; another job with the same code sends nothing of it, and
    the last of them to be removed removes it."""
    place.write("src/train.py", "print(1)\n")
    place.write("src/模型/empty.py", "")
    place.write("src/.git/config", "")
    (place.directory / "src/large").write_bytes(os.urandom(400_000))
    (place.directory / "src").joinpath(os.fsdecode(b"\xff")).write_text("odd")
    (place.directory / "src/none").mkdir()
    for name in ("first", "second"):
        place.write(f"{name}.yaml", CODE.format(name=name))
    first = place.submit("first.yaml")
    maps, archive = code_of(place)
    assert len(maps) == 3 and len(created(place)) == 3 and all(value["immutable"] for value in maps.values()), list(maps)
    listed = subprocess.run(["tar", "-tzf", "-"], input=archive, capture_output=True, check=True).stdout.split()
    assert {b"large", b"none", b"train.py"} <= {name.rstrip(b"/") for name in listed} and len(listed) == 6, listed
    since = len(place.cluster.requests)
    second = place.submit("second.yaml")
    assert place.submit("first.yaml") == first and not created(place, since), created(place, since)
    owners = [len(value["metadata"]["ownerReferences"]) for value in code_of(place)[0].values()]
    assert owners == [2, 2, 2], owners
    place.run("rm", "--force", first)
    assert len(code_of(place)[0]) == 3
    place.run("rm", "--force", second)
    assert not code_of(place)[0]


def test_an_edit_is_another_job_with_code_of_its_own(place):
    place.write("src/train.py", "print(1)\n")
    place.write("one.yaml", CODE.format(name="one"))
    first = place.submit()
    assert place.submit() == first
    place.write("src/train.py", "print(2)\n")
    second = place.submit()
    assert second != first and len(code_of(place)[0]) == 2, (first, second)
    # What the ignore file names does not count.
    place.write("src/.jobcignore", "*.log\n")
    third = place.submit()
    place.write("src/a.log", "x")
    assert place.submit() == third


def test_code_that_cannot_go_with_a_job_is_refused_at_its_line(place):
    place.write("one.yaml", CODE.format(name="one"))
    errors = place.run("submit", "one.yaml", code=1)[1]
    assert "one.yaml:4:7" in errors and "no such directory" in errors, errors
    place.write("src/train.py", "print(1)\n")
    place.write("src/runs/notes", "")
    with open(place.directory / "src/runs/last.ckpt", "wb") as file:
        file.truncate(2 << 30)
    since = time.monotonic()
    errors = place.run("submit", "one.yaml", code=1)[1]
    assert "at most 100 MiB" in errors and "`runs/last.ckpt` (2048 MiB)" in errors and time.monotonic() - since < 5, errors
    (place.directory / "src/runs/last.ckpt").write_bytes(os.urandom(5 << 20))
    errors = place.run("submit", "one.yaml", code=1)[1]
    assert "one.yaml:4" in errors and "ConfigMaps hold at most 4 MiB" in errors and "`runs/last.ckpt` (5.0 MiB)" in errors, errors
    (place.directory / "src/runs/last.ckpt").unlink()
    (place.directory / "src/data").symlink_to("/mnt/data")
    handle = place.run("submit", "one.yaml")
    assert "`data` is a link to `/mnt/data`" in handle[1], handle
    assert not place.cluster.count("POST", "/secrets")


def test_creates_a_job_that_owns_the_rest(place):
    handle = place.submit()
    target, name = handle.split("/")
    assert target == "lab" and name.startswith("one-") and len(name) == len("one-") + 5, handle
    job, = place.cluster.all("jobs")
    metadata = job["metadata"]
    assert metadata["name"] == name and metadata["labels"]["jobc.dev/job"] == "one", metadata
    assert metadata["annotations"]["jobc.dev/submitted"].startswith("20") and job["spec"]["suspend"] is False, job
    for plural in ("configmaps", "services"):
        for value in place.cluster.all(plural):
            owner, = value["metadata"]["ownerReferences"]
            assert owner["uid"] == metadata["uid"] and "blockOwnerDeletion" not in owner, owner
    # Created suspended, started last.
    changes = [(method, path.split("?")[0].rsplit("/", 2)[-2:]) for method, path in place.cluster.requests
               if method != "GET" and "dryRun" not in path and "review" not in path]
    assert changes[0] == ("POST", ["ml", "jobs"]) and changes[-1] == ("PATCH", ["jobs", name]), changes
    until(lambda: place.run("wait", handle, code=None), "end")
    place.run("wait", handle)
    place.run("rm", handle)
    left = place.cluster.all("jobs") + place.cluster.all("configmaps") + place.cluster.all("services") + place.cluster.all("pods")
    assert not left, left


def test_an_interrupted_submission_is_completed(place):
    """Although the server has filled in the defaults of the job meanwhile."""
    place.write("indexed.yaml", INDEXED)
    place.cluster.fail("PATCH", "/services/[^?]*[?]fieldManager=jobc&fieldValidation", code=403)
    place.run("submit", "indexed.yaml", code=None)
    job, = place.cluster.all("jobs")
    assert job["spec"]["suspend"] is True, job
    assert place.submit("indexed.yaml") == f"lab/{job['metadata']['name']}"
    job, = place.cluster.all("jobs")
    assert job["spec"]["suspend"] is False, job


def test_submitting_twice_is_one_job(place):
    first, second = place.submit(), place.submit()
    assert first == second and len(place.cluster.all("jobs")) == 1, (first, second)
    out, errors = place.run("submit", "one.yaml")
    assert "submitted before" in errors and "--new" in errors, errors
    third = place.submit("one.yaml", "--new")
    assert third != first and len(place.cluster.all("jobs")) == 2, third
    # Another plan is another job.
    place.write("one.yaml", (place.directory / "one.yaml").read_text().replace("hello", "other"))
    fourth = place.submit()
    assert fourth not in (first, third), fourth
    fifth = place.submit("one.yaml", "--replace")
    names = [job["metadata"]["name"] for job in place.cluster.all("jobs")]
    assert names == [fifth.split("/")[1]], names


def test_commits_label_a_job_and_do_not_change_it(place):
    def git(*words):
        identity = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
        return subprocess.run(["git", "-C", place.directory, *identity, *words], check=True, capture_output=True, text=True).stdout.strip()

    git("init", "--quiet")
    git("remote", "add", "origin", "https://me:hidden@git.example/jobs.git")
    git("add", "one.yaml", "targets.yaml")
    git("commit", "--quiet", "--message=first")
    first, commit = place.submit(), git("rev-parse", "HEAD")
    for value in place.cluster.all("jobs") + place.cluster.all("configmaps") + place.cluster.all("services"):
        labels, annotations = value["metadata"]["labels"], value["metadata"]["annotations"]
        assert annotations["jobc.dev/source-revision"] == commit, annotations
        assert annotations["jobc.dev/source-url"] == "https://git.example/jobs.git" and annotations["jobc.dev/version"], annotations
        # The kubeconfig is in no commit.
        assert annotations["jobc.dev/source-dirty"] == "true", annotations
        assert annotations["jobc.dev/plan-digest"].startswith("sha256:" + labels["jobc.dev/plan"]), labels
    git("commit", "--quiet", "--allow-empty", "--message=second")
    assert place.submit() == first and len(place.cluster.all("jobs")) == 1, first
    place.submit("one.yaml", "--new", "--no-provenance")
    metadata, = [job["metadata"] for job in place.cluster.all("jobs") if job["metadata"]["name"] != first.split("/")[1]]
    assert "jobc.dev/version" not in metadata["annotations"], metadata


def test_unsigned_images_are_refused(place, registry):
    place.write("cosign.pub", KEY)
    digest = f"sha256:{'1' * 64}"
    place.write("one.yaml", (place.directory / "one.yaml").read_text().replace("busybox", f"{registry.host}/team/app@{digest}"))
    targets = (place.directory / "targets.yaml").read_text()
    place.write("targets.yaml", targets.replace("  lab:\n", "  lab:\n    policy: {require_signature: {key: cosign.pub}}\n"))
    _, errors = place.run("submit", "one.yaml", code=1)
    assert "J0504" in errors and "is not signed" in errors and "one.yaml:3:8" in errors, errors
    assert not place.cluster.all("jobs"), "a job was created"


def test_a_matrix_is_many_jobs(place):
    place.write("sweep.yaml", MATRIX)
    handles = place.submit("sweep.yaml").split()
    assert len(set(handles)) == 3 and len(place.cluster.all("jobs")) == 3, handles
    assert place.submit("sweep.yaml").split() == handles, "the same again"


def test_roles_become_a_jobset(place):
    handle = place.submit("two.yaml")
    value, = place.cluster.all("jobsets")
    assert value["metadata"]["name"] == handle.split("/")[1], value["metadata"]
    place.run("wait", handle)
    tasks = [task["task"] for task in place.json("ps", handle)]
    assert tasks == ["client-0", "client-1", "client-2", "server-0"], tasks


def test_secrets_are_created_and_owned(place):
    place.write("hidden.yaml", SECRET)
    place.run("submit", "hidden.yaml", code=2)
    assert not place.cluster.all("jobs"), "nothing without the secret"
    out, errors = place.run("submit", "hidden.yaml", "-o", "out", env={"TEST_TOKEN": "s3cret-value"})
    job, = place.cluster.all("jobs")
    secret, = place.cluster.all("secrets")
    assert base64.b64decode(secret["data"]["token"]) == b"s3cret-value" and secret["immutable"], secret
    assert secret["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"], secret["metadata"]
    encoded = base64.b64encode(b"s3cret-value").decode()
    texts = [out, errors] + [path.read_text() for path in (place.directory / "out").rglob("*") if path.is_file()]
    assert not any("s3cret" in text or encoded in text for text in texts), "the value is in the output"


def test_problems_are_shown_at_lines_of_the_job(place):
    place.cluster.reject("Job", "spec.template.spec.containers[0].image", 'Invalid value: "busybox": no such thing')
    _, errors = place.run("submit", "one.yaml", code=1)
    assert "containers[0].image" in errors and " --> one.yaml:3:8" in errors, errors
    place.write("volume.yaml", VOLUME)
    place.cluster.rejections.clear()
    _, errors = place.run("submit", "volume.yaml", code=1)
    assert "there is no PersistentVolumeClaim `absent`" in errors and " --> volume.yaml:5:" in errors, errors
    place.cluster.served = {version: kinds for version, kinds in place.cluster.served.items() if "jobset" not in version}
    _, errors = place.run("submit", "two.yaml", code=1)
    assert "does not serve `JobSet` of `jobset.x-k8s.io/v1alpha2`" in errors and " --> two.yaml:2:7" in errors, errors
    place.cluster.denied = {"create jobs"}
    _, errors = place.run("submit", "one.yaml", code=1)
    assert "you may not create `jobs.batch` in the namespace `ml`" in errors, errors
    place.cluster.denied = set()
    place.cluster.restricted = True
    _, errors = place.run("submit", "one.yaml", code=1)
    assert 'rejects the pods: violates PodSecurity "restricted:latest": runAsNonRoot != true' in errors and " --> one.yaml:" in errors, errors
    place.cluster.restricted = False
    place.write("built.yaml", BUILT)
    _, errors = place.run("submit", "built.yaml", code=1)
    assert "error[J0416]: the image `built-main:" in errors and " --> built.yaml:" in errors, errors
    assert not place.cluster.all("jobs") and not place.cluster.all("configmaps"), "something was created"


def test_a_dry_run_creates_nothing(place):
    out, errors = place.run("submit", "one.yaml", "--dry-run")
    assert out == "" or "lab/" not in out, out
    assert "accepts the job" in errors and not place.cluster.all("jobs"), errors


def test_busy_servers_and_lost_answers(place):
    place.cluster.fail("GET", "/version$", code=429, retry_after=1)
    place.cluster.fail("POST", "/jobs[?]", code=500, after=True)
    place.cluster.fail("PATCH", "/services/[^?]*[?]fieldManager=jobc&fieldValidation", cut=True, after=True)
    since = time.monotonic()
    place.submit()
    assert time.monotonic() - since >= 1, "Retry-After was not waited for"
    assert len(place.cluster.all("jobs")) == 1, "one job"
    place.cluster.fail("GET", "/version", times=100, code=503)
    _, errors = place.run("targets", "check", "lab", code=3)
    count = place.cluster.count("GET", "/version")
    assert 2 <= count <= 10 and "cannot reach the cluster" in errors, (count, errors)


def test_tokens_that_expire_are_replaced(place):
    token = place.directory / "token"
    token.write_text("good")
    plugin = place.directory / "plugin"
    plugin.write_text("#!/bin/sh\necho run >>\"$(dirname \"$0\")/runs\"\n"
                      "printf '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"%s\"}}' "
                      "\"$(cat \"$(dirname \"$0\")/token\")\"\n")
    plugin.chmod(0o755)
    place.cluster.kubeconfig({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin", "interactiveMode": "Never"}})
    place.cluster.default = Script(["hello"], late=2)
    handle = place.submit()
    runs = place.directory / "runs"
    before = len(runs.read_text().split())
    assert before == 1, f"the plugin ran {before} times"
    # It ends while a command waits: its next request is refused, and repeated with a new token.
    asked = place.cluster.count("GET", "/pods[?]")
    process = place.start("logs", "-f", handle)
    until(lambda: place.cluster.count("GET", "/pods[?]") > asked, "a first request")
    token.write_text("newer")
    place.cluster.tokens = {"newer"}
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 0 and "hello" in out, (out, errors)
    assert len(runs.read_text().split()) == before + 2, runs.read_text()
    place.cluster.tokens = {"other"}
    _, errors = place.run("ps", "--target", "lab", code=3)
    assert "does not accept your credentials" in errors, errors
    place.cluster.kubeconfig({"tokenFile": "token"})
    token.write_text("other\n")
    place.run("ps", "--target", "lab")


def test_access_is_checked(place):
    out, _ = place.run("targets", "check", "lab")
    assert "v1.36.0-stand-in" in out and "MISSING" not in out, out
    place.cluster.denied = {"get pods", "get workloads"}
    out, errors = place.run("targets", "check", "lab", code=1)
    assert "MISSING  get pods " in out and "jobc targets role lab" in errors, out + errors
    role, _ = place.run("targets", "role", "lab")
    assert "namespace: ml" in role and "jobsets" in role, role
    checks = json.loads(place.run("targets", "check", "lab", "--format", "json", code=1)[0])
    assert checks["usable"] is False, checks
    out, _ = place.run("targets", "ls")
    assert "lab" in out and "far" in out, out
    _, errors = place.run("targets", "check", "lap", code=2)
    assert "did you mean `lab`?" in errors, errors
    _, errors = place.run("targets", "check", "far", code=2)
    assert "far.kubeconfig` of the target does not exist" in errors, errors


def test_jobs_on_the_network_of_their_node_have_ports_of_their_own(place):
    """Two jobs on one node would wait for each other, or fail, with the same port."""
    text = ONE.replace("image: busybox", "image: busybox\nnetwork: host\ndistributed: {framework: torchrun, roles: [main]}").replace("run: echo hello", "run: torchrun x")
    ports = set()
    for name in ("first", "second"):
        place.write("job.yaml", text.replace("name: one", f"name: {name}"))
        name = place.submit("job.yaml").split("/")[1]
        job, = [job for job in place.cluster.all("jobs") if job["metadata"]["name"] == name]
        container, = job["spec"]["template"]["spec"]["containers"]
        port, = [port["containerPort"] for port in container["ports"]]
        variables = {variable["name"]: variable.get("value", "") for variable in container["env"]}
        assert job["spec"]["template"]["spec"]["hostNetwork"] and variables["PET_MASTER_PORT"] == str(port) and 20_000 <= port < 30_000, container
        ports.add(port)
    assert len(ports) == 2, ports


def test_large_code_is_sent_to_a_claim_once(place, monkeypatch):
    """A pod with the claim gets the archive by `exec`, and is removed; the jobs of a sweep send it once."""
    claim = place.directory / "claim"
    claim.mkdir()
    uploads, started = [], Handler.start_command

    def in_pod(self, command, *streams):
        uploads.append(command)
        root = ["bwrap", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
                "--proc", "/proc", "--dev", "/dev", "--bind", str(claim), "/jobc-code", "--"]
        return started(self, [*root, *command], *streams)

    def kubelet():
        while not done.wait(0.05):
            for pod in place.cluster.all("pods"):
                if pod["metadata"]["name"].startswith("jobc-code-upload-") and "containerStatuses" not in pod.get("status", {}):
                    pods.append(pod)
                    place.cluster.state({"name": pod["metadata"]["name"], "namespace": "ml"}, "Running", {"running": {"startedAt": "2026-01-01T00:00:00Z"}})

    monkeypatch.setattr(Handler, "start_command", in_pod)
    pods, done = [], threading.Event()
    watching = threading.Thread(target=kubelet)
    watching.start()
    try:
        place.cluster.put("v1", "persistentvolumeclaims", "ml", {"metadata": {"name": "team"}, "spec": {"accessModes": ["ReadWriteMany"]},
                                                                 "status": {"phase": "Bound"}})
        place.write("targets.yaml", TARGETS.format(kubeconfig=place.kubeconfig.name).replace("namespace: ml,", "namespace: ml, code_claim: team,", 1))
        place.write("src/noise", base64.b64encode(os.urandom(8_000_000)).decode())
        text = ONE.replace("image: busybox", "image: busybox\ncode: src")
        place.write("large.yaml", text + "matrix: {seed: [1, 2, 3]}\n")
        handles = place.submit("large.yaml").split()
        archive, = (claim / "jobc-code").iterdir()
        assert len(handles) == 3 and len(uploads) == len(pods) == 1, (uploads, pods)
        assert archive.name == f"{hashlib.sha256(archive.read_bytes()).hexdigest()}.tar.gz" and archive.stat().st_size > 4 << 20
        assert (claim / "jobc-code").stat().st_mode & 0o7777 == 0o1777 and archive.stat().st_mode & 0o777 == 0o644
        spec, = [pods[0]["spec"]]
        assert spec["volumes"][0]["persistentVolumeClaim"] == {"claimName": "team"} and "hostNetwork" not in spec
        assert not [pod for pod in place.cluster.all("pods") if pod["metadata"]["name"].startswith("jobc-code-upload-")], "it is removed"
        marker, = [value for value in place.cluster.all("configmaps") if "jobc.dev/code" in value["metadata"].get("labels", {})]
        assert len(marker["metadata"]["ownerReferences"]) == 3 and marker["metadata"]["annotations"]["jobc.dev/uploaded"] == "true", marker
        # Without the marker, what is there is not written again, unless it was changed.
        for content, is_same in ((archive.read_bytes(), True), (b"x", False)):
            place.cluster.drop(("v1", "configmaps", "ml", marker["metadata"]["name"]))
            archive.write_bytes(content)
            before = archive.stat().st_ino
            place.submit("large.yaml", "--new")
            assert (archive.stat().st_ino == before) == is_same and archive.stat().st_size > 4 << 20
        # The claim is full, or belongs to others: said as it is, and the pod is removed.
        place.cluster.drop(("v1", "configmaps", "ml", marker["metadata"]["name"]))
        shutil.rmtree(claim / "jobc-code")
        (claim / "jobc-code").write_text("a file")
        _, errors = place.run("submit", "large.yaml", "--new", code=None)
        assert "cannot upload the code to the claim `team`" in errors, errors
        assert not [pod for pod in place.cluster.all("pods") if pod["metadata"]["name"].startswith("jobc-code-upload-")], "it is removed"
    finally:
        done.set()
        watching.join()


def test_priorities_are_names_of_the_cluster(place):
    """A class of Kubernetes in the pods, or that of Kueue in a label, by the name or by the number of an entry of the target."""
    targets = (place.directory / "targets.yaml").read_text()
    lab = """\
  queued:
    backends: [kubernetes]
    kubernetes: {namespace: ml, kubeconfig: KUBECONFIG, queue: {kueue: user-queue}}
    priorities: {urgent: {value: 50, kueue: production}}
"""
    priorities = "    priorities: {idle: {value: -50, class: low}}\n"
    place.cluster.put("scheduling.k8s.io/v1", "priorityclasses", None, {"metadata": {"name": "low"}})
    place.write("targets.yaml", targets.replace("  far:", priorities + "  far:", 1) + lab.replace("KUBECONFIG", place.kubeconfig.name))
    try:
        for number, priority in enumerate(("idle", -50)):
            place.write(f"p{number}.yaml", ONE.replace("name: one", f"name: p{number}\npriority: {priority}"))
            place.submit(f"p{number}.yaml")
        classes = {job["metadata"]["labels"]["jobc.dev/job"]: job["spec"]["template"]["spec"].get("priorityClassName") for job in place.cluster.all("jobs")}
        assert classes == {"p0": "low", "p1": "low"}, classes
        place.write("kueue.yaml", ONE.replace("name: one", "name: kueue\npriority: urgent"))
        place.run("build", "--target", "queued", "kueue.yaml", "-o", "kueue-out")
        [manifest] = [path.read_text() for path in (place.directory / "kueue-out").rglob("*.yaml") if "kueue.x-k8s.io/queue-name" in path.read_text()]
        assert "kueue.x-k8s.io/priority-class: production" in manifest and "priorityClassName" not in manifest, manifest
        place.write("later.yaml", ONE.replace("name: one", "name: later\nafter: 2h"))
        _, errors = place.run("submit", "later.yaml", code=1)
        assert "later.yaml:3:1" in errors and "cannot express `after`" in errors, errors
    finally:
        place.write("targets.yaml", targets)
