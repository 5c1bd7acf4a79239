"""Tests the commands about jobs on a stand-in cluster: states, exit codes, output over cut connections, watches, and
deletion."""

import json
import signal
import time

import pytest
from cluster import Cluster, Script
from place import until

pytestmark = pytest.mark.duration(30)


def test_exit_codes_are_those_of_a_local_job(place):
    for script, code, words in [
        (Script(["hello"]), 0, "succeeded"),
        (Script(["hello"], exit_code=3), 1, "failed: BackoffLimitExceeded: the stand-in says so"),
        (Script(["hello"], deadline=True, exit_code=1), 124, "timed-out"),
    ]:
        place.cluster.default = script
        handle = place.submit("one.yaml", "--new")
        out, _ = place.run("wait", handle, code=code)
        assert f"{handle}: {words}" in out, out
        end = json.loads(place.run("wait", handle, "--format", "json", code=code)[0])
        assert end["handle"] == handle, end
    place.cluster.default = Script(["hello"], pause=30)
    handle = place.submit("one.yaml", "--new")
    process = place.start("wait", handle)
    until(lambda: place.cluster.count("GET", "watch=1"), "a watch")
    out, _ = place.run("stop", handle)
    assert out == f"{handle}: stopped\n", out
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 130 and "stopped" in out, out
    assert place.cluster.count("GET", "watch=1") == 1, "one watch"
    place.run("wait", "lab/none", code=2)
    place.run("wait", "lab/", code=2)
    place.run("wait", "lap/none", code=2)


def test_a_failed_jobset_that_was_late_timed_out(place):
    place.cluster.default = Script(["hello"], exit_code=1)
    handle = place.submit("two.yaml")
    name = handle.split("/")[1]
    until(lambda: place.cluster.all("jobsets")[0]["status"].get("conditions"), "the end")
    place.run("wait", handle, code=1)
    place.cluster.put("batch/v1", "jobs", "ml", {
        "metadata": {"name": f"{name}-server-0", "labels": {"jobset.sigs.k8s.io/jobset-name": name}}, "spec": {},
        "status": {"conditions": [{"type": "Failed", "status": "True", "reason": "DeadlineExceeded"}]}})
    place.run("wait", handle, code=124)


def test_output_survives_cut_connections(place):
    lines = [f"line {number:03} of @" for number in range(60)]
    place.cluster.default = Script(lines, pause=0.03)
    place.cluster.log_cut = 17
    handle = place.submit()
    out, errors = place.run("logs", "-f", handle)
    for index in range(2):
        shown = [line.split("line ")[1] for line in out.splitlines() if line.startswith(f"main-{index}")]
        assert shown == [f"{number:03} of {index}" for number in range(60)], f"main-{index}: {shown}\n{errors}"
    assert place.cluster.count("GET", "/log[?].*sinceTime") >= 4, "it was cut"
    out, _ = place.run("logs", handle, "main-1", "--tail", "2")
    assert [line.split("line ")[1] for line in out.splitlines()] == ["058 of 1", "059 of 1"], out
    line = json.loads(place.run("logs", handle, "main-0", "--format", "json")[0].splitlines()[0])
    assert (line["task"], line["attempt"], line["text"]) == ("main-0", 1, "line 000 of 0"), line
    _, errors = place.run("logs", handle, "man-0", code=2)
    assert "the job has no task `man-0`" in errors and "`main`" in errors, errors


def test_lost_lines_are_reported(place):
    """The server rotates the output while the connection is cut: what it has then begins after the last line."""
    place.cluster.default = Script(["first", "second", "third"], pause=1.1)
    place.cluster.log_cut, place.cluster.rotates = 1, True
    out, errors = place.run("submit", "one.yaml", "--follow")
    assert out.count("first") == 2 and out.count("third") == 2, (out, errors)
    assert "the server no longer has all lines before" in errors, errors


def test_a_watch_that_expired_goes_on(place):
    place.cluster.default = Script(["hello"], late=3)
    handle = place.submit()
    process = place.start("wait", handle)
    until(lambda: place.cluster.count("GET", "watch=1") == 1, "a watch")
    place.cluster.forget()
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 0 and "succeeded" in out, out + errors
    assert place.cluster.count("GET", "watch=1") >= 2, "it was watched again"


def test_it_says_why_a_job_waits(place):
    place.cluster.default = Script(waiting=("ImagePullBackOff", 'Back-off pulling image "busybox"'))
    handle = place.submit()
    until(lambda: any("waiting" in str(pod) for pod in place.cluster.all("pods")), "waiting pods")
    out, _ = place.run("inspect", handle)
    assert 'main-0, main-1: cannot get the image: Back-off pulling image "busybox"' in out and "pending" in out, out
    pod = place.cluster.all("pods")[0]
    place.cluster.put("v1", "events", "ml", {
        "metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]},
        "type": "Warning", "reason": "Failed", "message": "Error: ImagePullBackOff", "count": 7, "lastTimestamp": "2026-01-01T00:00:00Z"})
    out, _ = place.run("events", handle)
    assert "  Failed         Error: ImagePullBackOff (7 times)" in out and out.startswith("2026-01-01T00:00:00Z  pod/one-"), out
    detail = place.json("inspect", handle)
    assert detail["state"] == "pending" and len(detail["tasks"]) == 2, detail
    process = place.start("submit", "one.yaml", "--follow")
    time.sleep(9)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 130 and "cannot get the image" in errors, (process.returncode, errors)
    assert f"jobc stop {handle}" in errors and len(place.cluster.all("jobs")) == 1, errors


def test_following_ends_with_the_job(place):
    place.cluster.default = Script(["one", "two"], exit_code=1, pause=0.2)
    out, errors = place.run("submit", "one.yaml", "--follow", code=1)
    assert out.count("one") >= 2 and out.count("two") == 2 and "failed: BackoffLimitExceeded" in errors, (out, errors)


def test_jobs_of_all_targets_are_listed(place):
    far = Cluster(place.directory, "far")
    try:
        far.kubeconfig()
        first, second = place.submit("one.yaml", "--target", "lab"), place.submit("one.yaml", "--target", "far")
        place.run("wait", first)
        place.run("wait", second)
        out, _ = place.run("ps", "-A", "--all")
        assert first in out and second in out and "succeeded" in out, out
        out, _ = place.run("ps", "-A")
        assert first not in out, out
        names = place.run("ps", "--target", "far", "--all", "-q")[0].split()
        assert names == [second], names
        place.run("rm", first, second)
    finally:
        far.close()
    place.submit("one.yaml", "--target", "lab")
    out, errors = place.run("ps", "-A", "--all")
    assert "lab/one-" in out and "target `far`" in errors, out + errors


def test_stop_returns_when_the_pods_have_ended(place):
    """Until then they write to the outputs of the job: `--replace` creates nothing before, and says what it waits for."""
    place.cluster.default, place.cluster.lingering = Script(["hello"], pause=120), 4
    first = place.submit()
    until(lambda: sum("running" in str(pod["status"]) for pod in place.cluster.all("pods")) == 2, "running pods")
    begun = time.monotonic()
    second, errors = place.run("submit", "one.yaml", "--replace")
    assert time.monotonic() - begun >= 4, "the pods have ended"
    name = first.split("/")[1]
    assert f"job `{name}` is being deleted; waiting for main-0 on node-1, main-1 on node-1 to end (grace period" in errors, errors
    assert "Ctrl-C ends only the wait" in errors and f"deleted `{name}`" in errors, errors
    second = second.strip()
    until(lambda: sum("running" in str(pod["status"]) for pod in place.cluster.all("pods")) == 2, "running pods")
    begun = time.monotonic()
    out, _ = place.run("stop", "--no-wait", second)
    assert out == f"{second}: stopping\n" and time.monotonic() - begun < 4 and len(place.cluster.all("pods")) == 2, out
    until(lambda: not place.cluster.all("pods"), "the end of the pods")
    third = place.submit("one.yaml", "--new")
    until(lambda: sum("running" in str(pod["status"]) for pod in place.cluster.all("pods")) == 2, "running pods")
    process = place.start("stop", third)
    until(lambda: all("deletionTimestamp" in pod["metadata"] for pod in place.cluster.all("pods")), "the deletion of the pods")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode in (130, -signal.SIGINT), process.returncode
    until(lambda: not place.cluster.all("pods"), "the pods end all the same")


def test_kill_waits_for_no_grace_period(place):
    place.cluster.default, place.cluster.lingering = Script(["hello"], lasting=120), 60
    handle = place.submit()
    until(lambda: sum(len(lines) for lines in place.cluster.output.values()) == 2, "output")
    begun = time.monotonic()
    assert place.run("kill", handle)[0] == f"{handle}: killed\n"
    assert time.monotonic() - begun < 20 and not place.cluster.all("pods"), "the pods linger for 60 s"
    assert place.cluster.count("DELETE", "/pods/") == 2
    assert place.json("inspect", handle)["state"] == "stopped" and place.run("logs", handle)[0].count("hello") == 2
    # One that may not delete pods has stopped it all the same.
    place.cluster.denied = {"DELETE pods"}
    other = place.submit("one.yaml", "--new")
    until(lambda: len(place.cluster.all("pods")) == 2, "pods")
    _, errors = place.run("kill", other, code=None)
    assert "cannot kill job" in errors and "jobc targets" in errors, errors


def test_a_stopped_job_stays_with_its_output_until_it_is_removed(place):
    place.cluster.default = Script(["one", "two"], pause=0.1)
    place.cluster.scripts["one"] = Script(["first", "second", *["later"] * 9], pause=1)
    handle = place.submit()
    until(lambda: sum(len(lines) for lines in place.cluster.output.values()) >= 4, "output")
    assert place.run("stop", handle)[0] == f"{handle}: stopped\n"
    assert not place.cluster.all("pods") and place.cluster.all("jobs")[0]["spec"]["suspend"] is True
    detail = place.json("inspect", handle)
    assert detail["state"] == "stopped" and detail["ended"], detail
    assert handle in place.run("ps", "--target", "lab", "--all")[0] and handle not in place.run("ps", "--target", "lab")[0]
    out, errors = place.run("logs", handle)
    assert out.count("first") == 2 and out.count("second") == 2 and "kept on this host" in errors, (out, errors)
    place.run("wait", handle, code=130)
    assert place.run("stop", handle)[0] == f"{handle}: stopped already\n"
    _, errors = place.run("resume", handle, code=1)
    assert "was stopped" in errors, errors
    # The same job again is this run, unless another one is asked for.
    assert "was stopped; `--new` creates another run" in place.run("submit", "one.yaml")[1]
    again = place.submit("one.yaml", "--resume")
    assert again != handle and len(place.cluster.all("jobs")) == 2, again
    place.run("rm", handle)
    assert [job["metadata"]["name"] for job in place.cluster.all("jobs")] == [again.split("/")[1]]
    place.run("logs", handle, code=2)


def failed_create(place, kind, name, reason="FailedCreate"):
    message = 'Error creating: pods "x" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=8'
    objects = place.cluster.all("jobs") + place.cluster.all("jobsets")
    uid = next(each["metadata"]["uid"] for each in objects if each["metadata"]["name"] == name)
    place.cluster.put("v1", "events", "ml", {
        "metadata": {"name": f"e-{name}"}, "involvedObject": {"kind": kind, "name": name, "uid": uid},
        "type": "Warning", "reason": reason, "message": message, "count": 3, "lastTimestamp": "2026-01-01T00:00:00Z"})


def test_it_says_why_some_pods_are_missing(place):
    """Of a job that runs: some of its pods exist, and others cannot be created. An event about a pod that exists by now is not told."""
    place.cluster.default = Script(["hello"], pause=120)
    handle = place.submit()
    until(lambda: sum("running" in str(pod["status"]) for pod in place.cluster.all("pods")) == 2, "running pods")
    job, = place.cluster.all("jobs")
    failed_create(place, "Job", job["metadata"]["name"])
    assert "exceeded quota" not in place.run("inspect", handle)[0], "all pods are there"
    place.cluster.drop(("v1", "pods", "ml", place.cluster.all("pods")[1]["metadata"]["name"]))
    job["status"] |= {"active": 1, "ready": 1}
    place.cluster.put("batch/v1", "jobs", "ml", job)
    expected = "1 of 2 pods cannot be created: exceeded quota: gpus, requested: requests.nvidia.com/gpu=8"
    assert expected in place.run("inspect", handle)[0]
    assert expected in place.run("ps", handle)[1]
    assert "state        running" in place.run("inspect", handle)[0]
    process = place.start("wait", handle)
    line = process.stderr.readline()
    process.kill()
    process.communicate()
    assert expected in line, line
    assert "FailedCreate" in place.run("events", handle)[0]


def test_what_is_lost_with_deleted_pods_is_said(place):
    """Kubernetes deletes the pods of a job that is too late, and an eviction the pod of a task; events outlive them."""
    place.cluster.default = Script(["hello"], pause=120)
    handle = place.submit()
    until(lambda: sum("running" in str(pod["status"]) for pod in place.cluster.all("pods")) == 2, "running pods")
    job, pod = place.cluster.all("jobs")[0], place.cluster.all("pods")[0]
    place.cluster.put("v1", "events", "ml", {
        "metadata": {"name": "evicted"}, "involvedObject": {"kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]},
        "type": "Warning", "reason": "Evicted", "message": "The node was low on resource: memory. ", "lastTimestamp": "2026-01-01T00:00:00Z"})
    for each in place.cluster.all("pods"):
        place.cluster.drop(("v1", "pods", "ml", each["metadata"]["name"]))
    ended = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "Job has reached the specified backoff limit"}
    job["status"] = {"startTime": job["status"]["startTime"], "failed": 2, "conditions": [ended]}
    place.cluster.put("batch/v1", "jobs", "ml", job)
    out, _ = place.run("inspect", handle)
    assert "its pods are gone, and their output with them: they were deleted while they ran" in out, out
    assert f"pod `{pod['metadata']['name']}`, which is gone: evicted by its node: The node was low on resource: memory" in out, out
    ended |= {"reason": "DeadlineExceeded", "message": "Job was active longer than specified deadline"}
    place.cluster.put("batch/v1", "jobs", "ml", job)
    out, _ = place.run("inspect", handle)
    assert "timed-out" in out and "Kubernetes deletes the pods that run when the time of a job is over" in out, out
    _, errors = place.run("logs", handle)
    assert "its pods are gone, and their output with them" in errors, errors


def test_kept_output_is_shown_when_the_cluster_has_none(place):
    handle = place.submit()
    place.run("wait", handle)
    before, _ = place.run("logs", handle)
    for each in place.cluster.all("pods"):
        place.cluster.drop(("v1", "pods", "ml", each["metadata"]["name"]))
    out, errors = place.run("logs", handle)
    assert out == before and "kept on this host" in errors, (out, errors)
    assert place.run("logs", handle, "main-1")[0].splitlines() == [line for line in before.splitlines() if line.startswith("main-1")]
    # Deleted by somebody else, with its object.
    place.cluster.drop(("batch/v1", "jobs", "ml", handle.split("/")[1]))
    out, errors = place.run("logs", handle)
    assert out == before and "kept on this host" in errors, (out, errors)
    place.run("logs", "lab/one-00000", code=2)


def test_following_survives_a_restart_of_the_server(place):
    """Until it has read its rules again, it answers 403."""
    lines = [f"line {number:02}" for number in range(12)]
    place.cluster.default, place.cluster.log_cut = Script(lines, pause=0.5), 3
    handle = place.submit()
    until(lambda: any(place.cluster.output.values()), "output")
    followers = [place.start("logs", "-f", handle), place.start("wait", handle)]
    until(lambda: place.cluster.count("GET", "/log[?]") >= 2 and place.cluster.count("GET", "watch=1"), "followers")
    place.cluster.fail("GET", "/log[?]|/pods[?]|/jobs/|watch=1", times=9, code=403, message="forbidden: RBAC: not ready")
    out, errors = followers[0].communicate(timeout=60)
    for index in range(2):
        shown = [line.split("line ")[1] for line in out.splitlines() if line.startswith(f"main-{index}") and "line " in line]
        assert shown == [f"{number:02}" for number in range(12)], (index, out, errors)
    assert "trying again for 2 min" in errors and errors.count("trying again for") <= 4, errors
    _, errors = followers[1].communicate(timeout=60)
    assert [each.returncode for each in followers] == [0, 0], errors


def test_a_missing_right_is_not_waited_for(place):
    place.cluster.default = Script(["hello"], pause=20)
    handle = place.submit()
    until(lambda: sum("running" in str(pod["status"]) for pod in place.cluster.all("pods")) == 2, "running pods")
    place.cluster.denied = {"GET pods"}
    begun = time.monotonic()
    _, errors = place.run("logs", "-f", handle, code=None)
    assert "jobc targets role" in errors and time.monotonic() - begun < 10, errors
