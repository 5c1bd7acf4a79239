"""Tests a Job of Kubernetes that is submitted as it is, and as the job file that `jobc import` writes."""

import pytest

pytestmark = pytest.mark.duration(10)
MANIFEST = """\
apiVersion: batch/v1
kind: Job
metadata: {name: imported}
spec:
  completions: 2
  parallelism: 2
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: main
          image: busybox:1.36
          command: [sh, -c, echo hello]
          env: [{name: MODE, value: fast}]
          resources: {limits: {cpu: "1", memory: 64Mi}}
"""


@pytest.mark.parametrize("source", ["manifest.yaml", "job.yaml"])
def test_a_job_of_kubernetes_is_submitted(place, source):
    place.write("manifest.yaml", MANIFEST)
    place.run("import", "manifest.yaml", "-o", "job.yaml")
    handle = place.submit(source)
    place.run("wait", handle)
    job, = place.cluster.all("jobs")
    pod = job["spec"]["template"]["spec"]
    container = pod["containers"][0]
    assert job["spec"]["completions"] == job["spec"]["parallelism"] == 2 and container["image"] == "busybox:1.36", job
    assert container["resources"]["limits"]["memory"] in ("64Mi", "65536Ki", "67108864"), container["resources"]
    assert {"name": "MODE", "value": "fast"} in container["env"]
    assert "hello" in place.run("logs", handle)[0]
