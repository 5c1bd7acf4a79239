#!/usr/bin/env python3
"""Tests `jobc submit` and `jobc targets` against a stand-in cluster: what is created, what is refused and where."""

import base64
import json
import subprocess
import time

from cluster import Script
from fixture import expect, run_cases, until
from harness import Harness
from registry import Registry

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


def creates_a_job_that_owns_the_rest(place):
    handle = place.submit()
    target, name = handle.split("/")
    expect(target == "lab" and name.startswith("one-") and len(name) == len("one-") + 5, handle)
    job, = place.cluster.all("jobs")
    metadata = job["metadata"]
    expect(metadata["name"] == name and metadata["labels"]["jobc.dev/job"] == "one", metadata)
    expect(metadata["annotations"]["jobc.dev/submitted"] == "true" and job["spec"]["suspend"] is False, job)
    for plural in ("configmaps", "services"):
        for value in place.cluster.all(plural):
            owner, = value["metadata"]["ownerReferences"]
            expect(owner["uid"] == metadata["uid"] and "blockOwnerDeletion" not in owner, owner)
    # Created suspended, started last.
    changes = [(method, path.split("?")[0].rsplit("/", 2)[-2:]) for method, path in place.cluster.requests
               if method != "GET" and "dryRun" not in path and "review" not in path]
    expect(changes[0] == ("POST", ["ml", "jobs"]) and changes[-1] == ("PATCH", ["jobs", name]), changes)
    until(lambda: place.run("wait", handle, code=None), "end")
    place.run("wait", handle)
    place.run("rm", handle)
    left = place.cluster.all("jobs") + place.cluster.all("configmaps") + place.cluster.all("services") + place.cluster.all("pods")
    expect(not left, left)


def submitting_twice_is_one_job(place):
    first, second = place.submit(), place.submit()
    expect(first == second and len(place.cluster.all("jobs")) == 1, (first, second))
    out, errors = place.run("submit", "one.yaml")
    expect("submitted before" in errors and "--new" in errors, errors)
    third = place.submit("one.yaml", "--new")
    expect(third != first and len(place.cluster.all("jobs")) == 2, third)
    # Another plan is another job.
    place.write("one.yaml", (place.directory / "one.yaml").read_text().replace("hello", "other"))
    fourth = place.submit()
    expect(fourth not in (first, third), fourth)
    fifth = place.submit("one.yaml", "--replace")
    names = [job["metadata"]["name"] for job in place.cluster.all("jobs")]
    expect(names == [fifth.split("/")[1]], names)


def commits_label_a_job_and_do_not_change_it(place):
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
        expect(annotations["jobc.dev/source-revision"] == commit, annotations)
        expect(annotations["jobc.dev/source-url"] == "https://git.example/jobs.git" and annotations["jobc.dev/version"], annotations)
        # The kubeconfig is in no commit.
        expect(annotations["jobc.dev/source-dirty"] == "true", annotations)
        expect(annotations["jobc.dev/plan-digest"].startswith("sha256:" + labels["jobc.dev/plan"]), labels)
    git("commit", "--quiet", "--allow-empty", "--message=second")
    expect(place.submit() == first and len(place.cluster.all("jobs")) == 1, first)
    place.submit("one.yaml", "--new", "--no-provenance")
    metadata, = [job["metadata"] for job in place.cluster.all("jobs") if job["metadata"]["name"] != first.split("/")[1]]
    expect("jobc.dev/version" not in metadata["annotations"], metadata)


def unsigned_images_are_refused(place):
    registry = Registry()
    try:
        place.registry(registry)
        place.write("cosign.pub", KEY)
        digest = f"sha256:{'1' * 64}"
        place.write("one.yaml", (place.directory / "one.yaml").read_text().replace("busybox", f"{registry.host}/team/app@{digest}"))
        targets = (place.directory / "targets.yaml").read_text()
        place.write("targets.yaml", targets.replace("  lab:\n", "  lab:\n    policy: {require_signature: {key: cosign.pub}}\n"))
        _, errors = place.run("submit", "one.yaml", code=1)
        expect("J0504" in errors and "is not signed" in errors and "one.yaml:3:8" in errors, errors)
        expect(not place.cluster.all("jobs"), "a job was created")
    finally:
        registry.close()


def a_matrix_is_many_jobs(place):
    place.write("sweep.yaml", MATRIX)
    handles = place.submit("sweep.yaml").split()
    expect(len(set(handles)) == 3 and len(place.cluster.all("jobs")) == 3, handles)
    expect(place.submit("sweep.yaml").split() == handles, "the same again")


def roles_become_a_jobset(place):
    handle = place.submit("two.yaml")
    value, = place.cluster.all("jobsets")
    expect(value["metadata"]["name"] == handle.split("/")[1], value["metadata"])
    place.run("wait", handle)
    tasks = [task["task"] for task in place.json("ps", handle)]
    expect(tasks == ["client-0", "client-1", "client-2", "server-0"], tasks)


def secrets_are_created_and_owned(place):
    place.write("hidden.yaml", SECRET)
    place.run("submit", "hidden.yaml", code=2)
    expect(not place.cluster.all("jobs"), "nothing without the secret")
    out, errors = place.run("submit", "hidden.yaml", "-o", "out", env={"TEST_TOKEN": "s3cret-value"})
    job, = place.cluster.all("jobs")
    secret, = place.cluster.all("secrets")
    expect(base64.b64decode(secret["data"]["token"]) == b"s3cret-value" and secret["immutable"], secret)
    expect(secret["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"], secret["metadata"])
    encoded = base64.b64encode(b"s3cret-value").decode()
    texts = [out, errors] + [path.read_text() for path in (place.directory / "out").rglob("*") if path.is_file()]
    expect(not any("s3cret" in text or encoded in text for text in texts), "the value is in the output")


def problems_are_shown_at_lines_of_the_job(place):
    place.cluster.reject("Job", "spec.template.spec.containers[0].image", 'Invalid value: "busybox": no such thing')
    _, errors = place.run("submit", "one.yaml", code=1)
    expect("containers[0].image" in errors and " --> one.yaml:3:8" in errors, errors)
    place.write("volume.yaml", VOLUME)
    place.cluster.rejections.clear()
    _, errors = place.run("submit", "volume.yaml", code=1)
    expect("there is no PersistentVolumeClaim `absent`" in errors and " --> volume.yaml:5:" in errors, errors)
    place.cluster.served = {version: kinds for version, kinds in place.cluster.served.items() if "jobset" not in version}
    _, errors = place.run("submit", "two.yaml", code=1)
    expect("does not serve `JobSet` of `jobset.x-k8s.io/v1alpha2`" in errors and " --> two.yaml:2:7" in errors, errors)
    place.cluster.denied = {"create jobs"}
    _, errors = place.run("submit", "one.yaml", code=1)
    expect("you may not create `jobs.batch` in the namespace `ml`" in errors, errors)
    place.cluster.denied = set()
    place.cluster.restricted = True
    _, errors = place.run("submit", "one.yaml", code=1)
    expect('rejects the pods: violates PodSecurity "restricted:latest": runAsNonRoot != true' in errors and " --> one.yaml:" in errors, errors)
    place.cluster.restricted = False
    place.write("built.yaml", BUILT)
    _, errors = place.run("submit", "built.yaml", code=1)
    expect("the nodes cannot get the image" in errors and " --> built.yaml:" in errors, errors)
    expect(not place.cluster.all("jobs") and not place.cluster.all("configmaps"), "something was created")


def a_dry_run_creates_nothing(place):
    out, errors = place.run("submit", "one.yaml", "--dry-run")
    expect(out == "" or "lab/" not in out, out)
    expect("accepts the job" in errors and not place.cluster.all("jobs"), errors)


def busy_servers_and_lost_answers(place):
    place.cluster.fail("GET", "/apis/batch/v1$", code=429, retry_after=1)
    place.cluster.fail("POST", "/jobs[?]", code=500, after=True)
    place.cluster.fail("PATCH", "/services/[^?]*[?]fieldManager=jobc&fieldValidation", cut=True, after=True)
    since = time.monotonic()
    place.submit()
    expect(time.monotonic() - since >= 1, "Retry-After was not waited for")
    expect(len(place.cluster.all("jobs")) == 1, "one job")
    place.cluster.fail("GET", "/version", times=100, code=503)
    _, errors = place.run("targets", "check", "lab", code=3)
    count = place.cluster.count("GET", "/version")
    expect(2 <= count <= 10 and "cannot reach the cluster" in errors, (count, errors))


def tokens_that_expire_are_replaced(place):
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
    expect(before == 1, f"the plugin ran {before} times")
    # It ends while a command waits: its next request is refused, and repeated with a new token.
    process = place.start("logs", "-f", handle)
    time.sleep(0.5)
    token.write_text("newer")
    place.cluster.tokens = {"newer"}
    out, errors = process.communicate(timeout=60)
    expect(process.returncode == 0 and "hello" in out, (out, errors))
    expect(len(runs.read_text().split()) == before + 2, runs.read_text())
    place.cluster.tokens = {"other"}
    _, errors = place.run("ps", "--target", "lab", code=3)
    expect("does not accept your credentials" in errors, errors)
    place.cluster.kubeconfig({"tokenFile": "token"})
    token.write_text("other\n")
    place.run("ps", "--target", "lab")


def access_is_checked(place):
    out, _ = place.run("targets", "check", "lab")
    expect("v1.36.0-stand-in" in out and "MISSING" not in out, out)
    place.cluster.denied = {"get pods", "get workloads"}
    out, errors = place.run("targets", "check", "lab", code=1)
    expect("MISSING  get pods " in out and "jobc targets role lab" in errors, out + errors)
    role, _ = place.run("targets", "role", "lab")
    expect("namespace: ml" in role and "jobsets" in role, role)
    checks = json.loads(place.run("targets", "check", "lab", "--format", "json", code=1)[0])
    expect(checks["usable"] is False, checks)
    out, _ = place.run("targets", "ls")
    expect("lab" in out and "far" in out, out)
    _, errors = place.run("targets", "check", "lap", code=2)
    expect("did you mean `lab`?" in errors, errors)
    _, errors = place.run("targets", "check", "far", code=2)
    expect("far.kubeconfig` of the target does not exist" in errors, errors)


if __name__ == "__main__":
    run_cases(Harness("submit", __doc__), [
        creates_a_job_that_owns_the_rest, submitting_twice_is_one_job, commits_label_a_job_and_do_not_change_it,
        unsigned_images_are_refused, a_matrix_is_many_jobs, roles_become_a_jobset,
        secrets_are_created_and_owned, problems_are_shown_at_lines_of_the_job, a_dry_run_creates_nothing,
        busy_servers_and_lost_answers, tokens_that_expire_are_replaced, access_is_checked,
    ])
