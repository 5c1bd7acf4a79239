"""Tests the checks before a command on Kubernetes: the init container that was built runs here, and the `podFailurePolicy` says what the
controller of Jobs makes of its end."""

import json
import os
import subprocess

import pytest
import yaml

from harness import scratch
from node import expand
from test_preemption import action_on

pytestmark = [pytest.mark.duration(20)]


def pod_of(program, directory, role, **more):
    """The Job of a role, and the template of its pods."""
    job = {"version": 1, "name": "checked", "image": "python:3.12-slim", **more,
           "roles": {"main": {"resources": {"cpu": 1, "memory": "1GiB"}, "run": ["train"], **role}}}
    (directory / "job.yaml").write_text(json.dumps(job))
    words = [program, "build", "--target", "kubernetes", "--output", directory / "out", directory / "job.yaml"]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    objects = [found for file in (directory / "out").rglob("*.yaml") if "kubernetes" in file.parts for found in yaml.safe_load_all(file.read_text())]
    [job] = [found for found in objects if found and found["kind"] == "Job"]
    return job["spec"], job["spec"]["template"]["spec"]


def started(pod, index=0, shell="dash", hosts=()):
    """The init container as the kubelet starts it, with another shell."""
    [container] = pod["initContainers"]
    given = {one["name"]: one["value"] for one in container["env"] if "value" in one}
    fields = {one["name"]: one["valueFrom"]["fieldRef"]["fieldPath"] for one in container["env"] if "valueFrom" in one}
    assert fields.pop("JOBC_NODE") == "spec.nodeName", fields
    given |= dict.fromkeys(fields, str(index)) | {"JOBC_NODE": "node-7", "PATH": os.environ["PATH"]}
    words = [expand(word, given) for word in container["command"]]
    for name in hosts:
        words[-1] = words[-1].replace(name, "localhost")
    return subprocess.Popen([*shell.split(), *words[1:]], env=given, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def ended(process):
    out, _ = process.communicate(timeout=30)
    return process.returncode, out


@pytest.mark.parametrize("shell", ("dash", "bash", "busybox sh"))
def test_each_check_passes_and_fails(program, shell):
    with scratch() as directory:
        data = directory / "data"
        data.mkdir()
        more = {"data": {"in": {"source": "pvc:in", "mount": str(data)}}}
        checks = ["data", {"disk": "1MiB", "path": str(data)}, {"run": "true"}]
        spec, pod = pod_of(program, directory, {"preflight": checks, "retry": {"max": 3, "scope": "task"}}, **more)
        code, out = ended(started(pod, shell=shell))
        assert (code, f"data: {data} has no files (main-0 on node-7: the job is at fault)" in out) == (87, True), (code, out)
        assert action_on(spec, code, False) == "FailJob", spec
        (data / "part-0").write_text("x")
        code, out = ended(started(pod, shell=shell))
        assert code == 0 and "part-0 can be read" in out and "GiB free" in out and "true succeeded" in out, (code, out)
        spec, pod = pod_of(program, directory, {"preflight": [{"disk": "8000TiB", "path": "/"}], "retry": {"max": 3, "scope": "task"}})
        code, out = ended(started(pod, shell=shell))
        assert code == 86 and "free in /, 8192000.0 GiB wanted (main-0 on node-7: the node is at fault)" in out, (code, out)
        # Another pod, on another node perhaps, which counts for nothing; the command's own failures count.
        assert (action_on(spec, code, False), action_on(spec, 1, False)) == ("Ignore", "Count"), spec


def test_pods_meet_before_the_command(program):
    peers = {"instances": 3, "preflight": [{"network": "5s"}, "clock"], "resources": {"cpu": 1, "memory": "1GiB"}}
    with scratch() as directory:
        _, pod = pod_of(program, directory, peers, distributed={"framework": "torchrun", "roles": ["main"]})
        address = ["checked-0.checked"]
        for code, out in map(ended, [started(pod, index, hosts=address) for index in range(3)]):
            assert code == 0 and "3 tasks meet at port 29500" in out and "s from the first task" in out, (code, out)
        results = list(map(ended, [started(pod, index, hosts=address) for index in (0, 2)]))
        assert results[0][0] == 86 and "rank 1 did not reach port 29500 within 5 s (main-0 on node-7: the node" in results[0][1], results
        assert results[1][0] == 86 and "is not reachable within 5 s" in results[1][1] and "main-2 on node-7" in results[1][1], results
