"""Tests jobs of other kinds on a stand-in cluster: a TrainJob, a Volcano Job and a Pod are submitted, followed and waited for."""

import copy
import threading
import time

import cluster as stand_in
import pytest
from cluster import Script, now
from place import until

pytestmark = pytest.mark.duration(15)
TRAINER, VOLCANO = "trainer.kubeflow.org/v1alpha1", "batch.volcano.sh/v1alpha1"
KINDS = {
    TRAINER: {"trainjobs": "TrainJob", "trainingruntimes": "TrainingRuntime"},
    VOLCANO: {"jobs": "Job"},
    "scheduling.k8s.io/v1alpha2": {"podgroups": "PodGroup"},
}
TARGETS = """\
version: 1
default: [lab]
targets:
  lab:
    backends: [kubernetes]
    kubernetes: {{namespace: ml, kubeconfig: {kubeconfig}, {settings}}}
"""
SINGLE = """\
version: 1
name: single
image: busybox
roles:
  main: {run: echo hello}
"""
TRAINED = """\
version: 1
name: trained
image: busybox
roles:
  server:
    run: sleep 1
  train:
    instances: 3
    needs: {server: started}
    files: {/etc/app.conf: {content: x}}
    run: echo hello
"""


# The controllers, beside those of Jobs and JobSets


def control(handler, key):
    place = handler.cluster
    if key[0] == TRAINER and key[1] == "trainjobs":
        once(place, key, trainjob)
    elif key[0] == VOLCANO and key[1] == "jobs":
        once(place, key, volcano)
    elif key[1] == "pods" and "jobc.dev/plan" in place.objects[key]["metadata"].get("labels", {}):
        once(place, key, pod)
    elif key[1] in ("jobs", "jobsets") and key[0] != VOLCANO:
        place.start(key)


def once(place, key, run):
    """Runs a job that is not suspended, once."""
    with place.lock:
        value = place.objects[key]
        if value["spec"].get("suspend") or "status" in value:
            return
        value["status"] = {}
        place.put(*key[:3], value)
    script = place.scripts.get(value["metadata"].get("labels", {}).get("jobc.dev/job"), place.default)
    threading.Thread(target=run, args=(place, key, script), daemon=True).start()


def create_pod(place, name, job, template, labels):
    owner = {"apiVersion": job["apiVersion"], "kind": job["kind"], "name": job["metadata"]["name"], "uid": job["metadata"]["uid"]}
    value = place.put("v1", "pods", "ml", {
        "metadata": {"name": name, "labels": {**template["metadata"]["labels"], **labels}, "ownerReferences": [owner]},
        "spec": {"nodeName": "node-1", **template["spec"]}, "status": {"phase": "Pending"}})
    return value["metadata"]["name"]


def run_pods(place, names, script):
    """Each pod runs, prints its lines and ends; returns whether they succeed."""
    def state(phase, condition):
        for name in names:
            with place.lock:
                value = place.objects.get(("v1", "pods", "ml", name))
                if value is None:
                    continue
                container = value["spec"]["containers"][0]["name"]
                value["status"] = {"phase": phase, "containerStatuses": [{"name": container, "state": condition}]}
                if script.deadline and phase == "Failed":
                    value["status"]["reason"] = "DeadlineExceeded"
                place.put("v1", "pods", "ml", value)

    time.sleep(script.late)
    state("Running", {"running": {"startedAt": now()}})
    for line in script.lines:
        time.sleep(script.pause)
        for name in names:
            place.print({"name": name}, line)
    failed = script.exit_code != 0 or script.deadline
    state("Failed" if failed else "Succeeded", {"terminated": {"exitCode": script.exit_code, "reason": "Error" if failed else "Completed"}})
    return not failed


def set_status(place, key, status):
    with place.lock:
        value = place.objects.get(key)
        if value is not None:
            value["status"] = status
            place.put(*key[:3], value)


def trainjob(place, key, script):
    job = copy.deepcopy(place.objects[key])
    name = key[3]
    runtime = place.objects[TRAINER, "trainingruntimes", "ml", job["spec"]["runtimeRef"]["name"]]
    place.put("jobset.x-k8s.io/v1alpha2", "jobsets", "ml", {
        "metadata": {"name": name, "ownerReferences": [{"apiVersion": TRAINER, "kind": "TrainJob", "name": name, "controller": True,
                                                        "uid": job["metadata"]["uid"]}]}, "spec": {}})
    roles = [(role["name"], role["template"]["spec"]) for role in runtime["spec"]["template"]["spec"]["replicatedJobs"]]
    pods = [create_pod(place, f"{name}-{role}-0-{index}-abcde", job, spec["template"],
                       {"jobset.sigs.k8s.io/jobset-name": name, "jobset.sigs.k8s.io/replicatedjob-name": role,
                        "batch.kubernetes.io/job-completion-index": str(index)})
            for role, spec in roles for index in range(spec.get("completions", 1))]
    counts = {"ready": 0, "failed": 0, "suspended": 0}
    set_status(place, key, {"jobsStatus": [{"name": role, "active": 1, "succeeded": 0, **counts} for role, _ in roles]})
    succeeded = run_pods(place, pods, script)
    condition = {"type": "Complete" if succeeded else "Failed", "status": "True", "lastTransitionTime": now(), "message": "",
                 "reason": "JobsCompleted" if succeeded else "DeadlineExceeded" if script.deadline else "FailedJobs"}
    set_status(place, key, {"conditions": [condition], "jobsStatus": [
        {"name": role, "active": 0, "succeeded": int(succeeded), **counts} for role, _ in roles]})


def volcano(place, key, script):
    job = copy.deepcopy(place.objects[key])
    name = key[3]
    pods = [create_pod(place, f"{name}-{task['name']}-{index}", job, task["template"],
                       {"volcano.sh/job-name": name, "volcano.sh/task-spec": task["name"], "volcano.sh/task-index": str(index)})
            for task in job["spec"]["tasks"] for index in range(task["replicas"])]
    set_status(place, key, {"state": {"phase": "Running"}, "running": len(pods)})
    succeeded = run_pods(place, pods, script)
    set_status(place, key, {"succeeded" if succeeded else "failed": len(pods), "state": {
        "phase": "Completed" if succeeded else "Terminated", "reason": "" if succeeded else "PodFailed", "lastTransitionTime": now()}})


def pod(place, key, script):
    run_pods(place, [key[3]], script)


# The cases


@pytest.fixture(autouse=True)
def controllers(monkeypatch):
    for version, kinds in KINDS.items():
        monkeypatch.setitem(stand_in.KINDS, version, kinds)
    monkeypatch.setattr(stand_in.Handler, "control", control)


def target(place, settings):
    place.write("targets.yaml", TARGETS.format(kubeconfig=place.kubeconfig.name, settings=settings))


def changes(place):
    """What was created and changed, in order."""
    return [(method, path.split("?")[0].rsplit("/", 2)[-2 if method == "PATCH" else -1]) for method, path in place.cluster.requests
            if method in ("POST", "PATCH") and "dryRun" not in path and "review" not in path]


def test_a_trainjob_comes_after_its_runtime(place):
    target(place, "kind: trainjob")
    place.write("trained.yaml", TRAINED)
    place.cluster.default = Script(["hello"], pause=0.3)
    handle = place.submit("trained.yaml")
    name = handle.split("/")[1]
    done = changes(place)
    assert done.index(("PATCH", "trainingruntimes")) < done.index(("POST", "trainjobs")), done
    assert done[-1] == ("PATCH", "trainjobs") and ("PATCH", "configmaps") in done, done
    job, = place.cluster.all("trainjobs")
    for plural in ("trainingruntimes", "configmaps"):
        for value in place.cluster.all(plural):
            owner, = value["metadata"]["ownerReferences"]
            assert owner["uid"] == job["metadata"]["uid"] and owner["kind"] == "TrainJob", owner
    out, _ = place.run("logs", "-f", handle)
    assert out.count("hello") == 4 and place.cluster.count("GET", "/log[?]container=node") >= 3, out
    place.run("wait", handle)
    end = place.json("inspect", handle)
    assert (end["kind"], end["state"]) == ("TrainJob", "succeeded"), end
    assert [task["task"] for task in end["tasks"]] == ["server-0", "train-0", "train-1", "train-2"], end
    assert place.submit("trained.yaml") == handle, "the same again"
    place.run("rm", handle)
    assert not place.cluster.all("trainjobs") and not place.cluster.all("trainingruntimes") and not place.cluster.all("pods"), name


def test_a_trainjob_that_fails_or_is_late(place):
    target(place, "kind: trainjob")
    for script, code, words in [(Script(exit_code=3), 1, "failed"), (Script(deadline=True), 124, "timed-out")]:
        place.cluster.default = script
        handle = place.submit("one.yaml", "--new")
        out, _ = place.run("wait", handle, code=code)
        assert words in out, out
    # The dry run of the TrainJob would fail before its runtime exists.
    dry = [path for method, path in place.cluster.requests if "dryRun" in path]
    assert any("/trainingruntimes/" in path for path in dry) and not any("/trainjobs/" in path for path in dry), dry
    target(place, "kind: trainjob, runtime: {name: torch-distributed}")
    place.run("submit", "one.yaml", "--dry-run")
    assert place.cluster.count("PATCH", "/trainjobs/.*dryRun"), "a runtime of the platform is there before"


def test_a_volcano_job(place):
    target(place, "kind: volcano, queue: {volcano: gpus}")
    place.cluster.default = Script(["hello"], pause=0.3)
    place.write("one.yaml", (place.directory / "one.yaml").read_text().replace("echo", "test -e /etc/jobc/job.json; echo"))
    handle = place.submit("one.yaml")
    done = changes(place)
    assert done.index(("PATCH", "configmaps")) < done.index(("POST", "jobs")), done
    job, = place.cluster.all("jobs")
    assert job["apiVersion"] == VOLCANO and "suspend" not in job["spec"] and job["spec"]["queue"] == "gpus", job
    files, = place.cluster.all("configmaps")
    assert files["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"], files["metadata"]
    place.run("wait", handle)
    tasks = place.json("ps", handle)
    assert [(task["task"], task["state"]) for task in tasks] == [("main-0", "succeeded"), ("main-1", "succeeded")], tasks
    out, _ = place.run("ps", "--target", "lab", "--all")
    assert handle in out and "succeeded" in out, out
    place.cluster.default = Script(["hello"], exit_code=3)
    out, errors = place.run("submit", "one.yaml", "--new", "--follow", code=1)
    assert out.count("hello") == 2 and "failed: PodFailed" in errors, (out, errors)


def test_a_pod(place):
    target(place, "kind: pod")
    place.write("single.yaml", SINGLE)
    place.cluster.default = Script(["hello"], pause=0.3)
    handle = place.submit("single.yaml")
    place.run("wait", handle)
    value, = place.cluster.all("pods")
    assert value["metadata"]["name"] == handle.split("/")[1] and value["metadata"]["annotations"]["jobc.dev/submitted"].startswith("20"), value
    assert [task["task"] for task in place.json("ps", handle)] == ["main-0"], "one task"
    assert "hello" in place.run("logs", handle)[0], "its output"
    place.cluster.default = Script(deadline=True)
    place.run("wait", place.submit("single.yaml", "--new"), code=124)
    # Pods of other jobs are no jobs.
    target(place, "kind: auto")
    place.cluster.default = Script(["hello"])
    other = place.submit("one.yaml")
    place.run("wait", other)
    names = place.run("ps", "--target", "lab", "--all", "-q")[0].split()
    assert len(names) == 3 and other in names, names


def test_a_gang_of_kubernetes(place):
    target(place, "gang: native")
    handle = place.submit("one.yaml")
    group, = place.cluster.all("podgroups")
    assert group["spec"] == {"schedulingPolicy": {"gang": {"minCount": 2}}}, group
    job, = place.cluster.all("jobs")
    assert job["spec"]["template"]["spec"]["schedulingGroup"] == {"podGroupName": handle.split("/")[1]}, job


def test_rights_are_those_of_the_target(place):
    target(place, "kind: trainjob")
    role, _ = place.run("targets", "role", "lab")
    assert "trainjobs" in role and "trainingruntimes" in role and "rayjobs" not in role, role
    out, _ = place.run("targets", "check", "lab")
    assert "kind TrainJob (trainer.kubeflow.org/v1alpha1)" in out and "Volcano" not in out, out
    place.cluster.denied = {"create trainjobs"}
    _, errors = place.run("submit", "one.yaml", code=1)
    assert "you may not create `trainjobs.trainer.kubeflow.org`" in errors, errors
    # A Role without the kinds that the target does not use.
    target(place, "kind: auto")
    role, _ = place.run("targets", "role", "lab")
    assert "trainjobs" not in role, role
    place.cluster.denied = {"GET trainjobs", "GET rayjobs"}
    handle = place.submit("one.yaml")
    out, _ = place.run("ps", "--target", "lab", "--all")
    assert handle in out, out
    place.cluster.denied = {"GET jobsets"}
    _, errors = place.run("ps", "--target", "lab", "--all", code=None)
    assert "jobsets" in errors, errors
    until(lambda: place.run("wait", handle, code=None), "the end")
