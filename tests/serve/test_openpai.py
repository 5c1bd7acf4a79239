"""OpenPAI's calls, as the tests of its JavaScript client record them."""

import json
import os
import shutil

import needs
import pytest

pytestmark = [pytest.mark.isolated, pytest.mark.needs("busybox"), pytest.mark.duration(30)]
# With the fields of the job that the client's tests submit, on the image of this test and without a GPU.
JOB = """\
protocolVersion: 2
name: sdk_test_job
type: job
version: '1.0'
contributor: OpenPAI
description: |
  # Serving a model
  Another line.
parameters: {modelPath: /tmp/mnist_model}
prerequisites:
  - {contributor: OpenPAI, description: An example., name: example, protocolVersion: 2, type: dockerimage, uri: 'pai/example:1', version: 1.0-r1.4}
taskRoles:
  worker:
    instances: 1
    dockerImage: example
    resourcePerInstance: {cpu: 1, gpu: 0, memoryMB: 128, ports: {model_server: 1}}
    commands:
      - 'echo serving <% $parameters.modelPath %> at $PAI_CONTAINER_HOST_model_server_PORT_LIST'
      - sleep 60
"""


@pytest.fixture(scope="module")
def pai(service):
    """A server with the image of the job."""
    root = service.directory / "root/bin"
    root.mkdir(parents=True)
    shutil.copy2(needs.tool("busybox"), root / "busybox")
    for name in ("sh", "sleep"):
        os.symlink("busybox", root / name)
    # Its jobs run in bash, which busybox is not.
    (root / "bash").write_text('#!/bin/sh\nexec sh "$@"\n')
    (root / "bash").chmod(0o755)
    assert service.jobc("image", "import", "--tag", "pai/example:1", str(root.parent)).returncode == 0
    service.user = service.ok("GET", "/session")["user"]
    return service


def call(service, method, path, body=None, kind="application/json"):
    """A request as the client sends it."""
    headers = {"Authorization": f"Bearer {service.token}", "Accept": "application/json, text/plain, */*"} | ({"Content-Type": kind} if body else {})
    return service.raw(method, f"/api/v2/jobs{path}", body, headers)


def test_recorded_calls(pai):
    """The calls of `jobClient.spec.ts` in their order, with the fields that its models and its API description require."""
    submitted = call(pai, "POST", "", JOB, "text/yaml")
    assert (submitted.status, submitted.json()) == (202, {"message": f"Update job {pai.user}~sdk-test-job successfully."}), submitted.text
    summary = {"name", "username", "virtualCluster", "state", "subState", "executionType", "retries", "retryDetails", "createdTime", "completedTime", "appExitCode",
               "totalTaskNumber", "totalGpuNumber"}
    for query in ("", f"?username={pai.user}", f"?username=other,{pai.user}&state=WAITING,RUNNING&keyword=sdk&vc=default&offset=0&limit=20&order=submissionTime,DESC"):
        job, = call(pai, "GET", query).json()
        assert summary <= job.keys() and (job["name"], job["username"]) == ("sdk-test-job", pai.user), query
    for query in ("?username=core", "?state=STOPPED", "?keyword=other", "?vc=other", "?offset=1"):
        assert call(pai, "GET", query).json() == [], query
    counted = call(pai, "GET", f"?username={pai.user}&withTotalCount=true&limit=0").json()
    assert counted == {"totalCount": 1, "data": []}

    pai.until("sdk-test-job.1", "running")
    for path in ("", "/attempts/0"):
        shown = call(pai, "GET", f"/{pai.user}~sdk_test_job{path}").json()
        status, worker = shown["jobStatus"], shown["taskRoles"]["worker"]
        assert (status["state"], status["subState"], status["executionType"], status["attemptId"]) == ("RUNNING", "AttemptRunning", "START", 0)
        assert {"appId", "appCreatedTime", "appLaunchedTime", "appCompletedTime", "appExitCode", "completedTime"} <= status.keys()
        task, = worker["taskStatuses"]
        assert worker["taskRoleStatus"] == {"name": "worker"} and (task["taskIndex"], task["taskState"], task["containerExitCode"]) == (0, "RUNNING", None)
        assert isinstance(task["containerPorts"], dict) and task["containerGpus"] is None
    assert call(pai, "GET", f"/{pai.user}~sdk_test_job/attempts/1").status == 404
    config = call(pai, "GET", f"/{pai.user}~sdk_test_job/config")
    assert config.headers["Content-Type"].startswith("text/yaml") and "protocolVersion: 2" in config.text and "taskRoles:" in config.text, config.text
    stopped = call(pai, "PUT", f"/{pai.user}~sdk_test_job/executionType", json.dumps({"value": "STOP"}))
    assert stopped.status == 202 and stopped.json() == {"message": f"Execute job {pai.user}~sdk_test_job successfully."}
    pai.until("sdk-test-job.1", "stopped")
    ended = call(pai, "GET", f"/{pai.user}~sdk_test_job").json()["jobStatus"]
    assert (ended["state"], ended["subState"], ended["executionType"]) == ("STOPPED", "Completed", "STOP") and ended["completedTime"] >= ended["createdTime"]


def test_refusals_have_its_words(pai):
    call(pai, "POST", "", JOB.replace("sdk_test_job", "twice").replace("sleep 60", "echo end"), "text/yaml")
    for expected, answer in (
        ((409, "ConflictJobError"), call(pai, "POST", "", JOB.replace("sdk_test_job", "twice"), "text/yaml")),
        ((400, "InvalidParametersError"), call(pai, "POST", "", "{", "text/yaml")),
        ((400, "InvalidParametersError"), call(pai, "POST", "", JOB.replace("taskRoles:", "roles:"), "text/yaml")),
        ((400, "InvalidParametersError"), call(pai, "PUT", f"/{pai.user}~twice/executionType", json.dumps({"value": "START"}))),
        ((404, "NoJobError"), call(pai, "GET", f"/{pai.user}~missing")),
        ((404, "NoJobError"), call(pai, "GET", "/other~twice")),
        ((404, "NoJobError"), call(pai, "GET", f"/{pai.user}~missing/config")),
    ):
        assert (answer.status, answer.json()["code"]) == expected, answer.text
