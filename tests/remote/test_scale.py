"""Measures the commands about a job of 10,000 pods, and the output of 100 pods, on a stand-in cluster.

Times are printed, and no case depends on them. Those of an optimized program count: `--runtime target/release/jobc`.
"""

import signal
import time

import pytest
from cluster import Script
from place import until

pytestmark = [pytest.mark.slow, pytest.mark.duration(90)]
POD_COUNT = 10_000
EVENT_COUNT = 20_000
FOLLOWED = 100
LINES = 2_000
MAX_SECONDS = 1.0
MAX_MEBIBYTES = 100
MAX_FOLLOW_MEBIBYTES = 30
MANY = """\
version: 1
name: many
image: busybox
roles:
  main:
    instances: 100
    run: echo hello
"""


def pod(job, name, index):
    """A pod with what API servers add: default fields, service account, conditions, and the managers of its fields."""
    labels = {"batch.kubernetes.io/job-name": name, "batch.kubernetes.io/controller-uid": job["metadata"]["uid"], "job-name": name,
              "batch.kubernetes.io/job-completion-index": str(index), "jobc.dev/role": "main", "app.kubernetes.io/managed-by": "jobc"}
    fields = {f"f:field-{number}": {".": {}, f"f:part-{number}": {}} for number in range(60)}
    conditions = [{"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": "2026-01-01T00:00:00Z"}
                  for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")]
    container = {**job["spec"]["template"]["spec"]["containers"][0], "terminationMessagePath": "/dev/termination-log",
                 "terminationMessagePolicy": "File", "imagePullPolicy": "IfNotPresent"}
    return {
        "metadata": {"name": f"{name}-{index}-x7k2p", "uid": f"{index:08}-aaaa-bbbb-cccc-dddddddddddd", "labels": labels,
                     "annotations": {"batch.kubernetes.io/job-completion-index": str(index)},
                     "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": job["metadata"]["uid"]}],
                     "managedFields": [{"manager": "kubelet", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fields}]},
        "spec": {**job["spec"]["template"]["spec"], "containers": [container], "nodeName": f"node-{index // 8}", "schedulerName": "default-scheduler",
                 "tolerations": [{"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
                                 for key in ("not-ready", "unreachable")]},
        "status": {"phase": "Running", "conditions": conditions, "hostIP": "10.0.0.1", "podIP": "10.1.0.1", "startTime": "2026-01-01T00:00:00Z",
                   "containerStatuses": [{"name": "main", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}, "ready": True,
                                          "restartCount": 0, "image": "busybox", "imageID": "docker.io/library/busybox@sha256:" + "0" * 64,
                                          "containerID": "containerd://" + "0" * 64}], "qosClass": "Guaranteed"},
    }


def large_job(place):
    """A job whose pods all run; returns its handle."""
    place.cluster.default = Script(pause=0)
    handle = place.submit()
    name = handle.split("/")[1]
    place.run("wait", handle)
    job = place.cluster.all("jobs")[0]
    job["spec"]["completions"], job["status"] = POD_COUNT, {"active": POD_COUNT, "ready": POD_COUNT, "startTime": "2026-01-01T00:00:00Z"}
    place.cluster.put("batch/v1", "jobs", "ml", job)
    for old in place.cluster.all("pods"):
        place.cluster.drop(("v1", "pods", "ml", old["metadata"]["name"]))
    place.cluster.fill("v1", "pods", "ml", [pod(job, name, index) for index in range(POD_COUNT)])
    place.cluster.fill("v1", "events", "ml", [
        {"metadata": {"name": f"e{number}", "uid": f"event-{number}"}, "type": "Normal", "reason": "Started", "message": "Container started",
         "involvedObject": {"kind": "Pod", "name": f"{name if number % 2 else 'other'}-{number // 2}-x7k2p", "uid": f"{number // 2:08}"},
         "count": 1, "lastTimestamp": "2026-01-01T00:00:00Z", "source": {"component": "kubelet", "host": "node-1"}}
        for number in range(EVENT_COUNT)])
    # Serialized once, before anything is measured.
    for key in list(place.cluster.objects):
        place.cluster.serialized(key)
    return handle


def is_optimized(place):
    return any(part in ("release", "dist") for part in place.program.parts)


def most(place, words):
    """Runs a command three times; returns its least seconds and its most MiB."""
    runs = [place.peak(*words) for _ in range(3 if is_optimized(place) else 1)]
    assert all(run[0] == 0 for run in runs), (words, runs)
    return min(run[1] for run in runs), max(run[2] for run in runs)


def test_a_job_of_ten_thousand_pods(place, note):
    handle = large_job(place)
    size = len(place.cluster.serialized(next(key for key in place.cluster.objects if key[1] == "pods")))
    note(f"{POD_COUNT} pods of {size} bytes, {EVENT_COUNT} events in the namespace, of which half are of the job")
    for words in (["ps", "--target", "lab"], ["ps", handle], ["inspect", handle], ["events", handle]):
        seconds, mebibytes = most(place, words)
        note(f"{' '.join(words)}: {seconds:.2f} s, {place.cpu_seconds:.2f} s of CPU, {mebibytes:.0f} MiB (goal of an optimized program: {MAX_SECONDS} s)")
        assert mebibytes < MAX_MEBIBYTES, (words, mebibytes)
    out, _ = place.run("ps", handle)
    assert len(out.splitlines()) == POD_COUNT + 1, len(out.splitlines())
    out, _ = place.run("events", handle)
    assert len(out.splitlines()) == EVENT_COUNT // 2, len(out.splitlines())
    waiting_holds_one_watch(place, handle)
    output_is_followed_only_by_name(place, handle, note)


def waiting_holds_one_watch(place, handle):
    before = len(place.cluster.requests)
    process = place.start("wait", handle)
    until(lambda: place.cluster.count("GET", "watch=1") == 1, "a watch")
    time.sleep(1)
    requests = place.cluster.requests[before:]
    assert len(requests) <= 3 and not any("/pods" in path for _, path in requests), requests
    process.send_signal(signal.SIGKILL)
    process.communicate()


def output_is_followed_only_by_name(place, handle, note):
    started = time.monotonic()
    _, errors = place.run("logs", "-f", handle, code=2)
    assert "the job has 10000 tasks; the output of more than 100 is followed only by name" in errors, errors
    _, errors = place.run("logs", "-f", handle, "main", code=2)
    assert "cannot follow 10000 tasks at the same time; the maximum is 256" in errors, errors
    note(f"refused in {time.monotonic() - started:.1f} s")
    process = place.start("logs", "-f", handle, "main-4711")
    until(lambda: place.cluster.count("GET", "/log[?]") >= 1, "one stream")
    lists = [path for method, path in place.cluster.requests if "/pods?" in path and "index" in path]
    assert lists, "only its pod is listed"
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_the_output_of_a_hundred_pods(place, note):
    place.write("many.yaml", MANY)
    place.cluster.default = Script([f"step {number}: loss 0.{number:04}, 1234 tokens per second" for number in range(LINES)], pause=0.001)
    handle = place.submit("many.yaml")
    code, seconds, mebibytes = place.peak("logs", "-f", handle)
    note(f"logs -f of {FOLLOWED} pods with {LINES} lines each: {mebibytes:.1f} MiB, {place.cpu_seconds:.1f} s of CPU, {seconds:.1f} s at the pace of the stand-in")
    assert code == 0, code
    assert mebibytes < MAX_FOLLOW_MEBIBYTES or not is_optimized(place), mebibytes
