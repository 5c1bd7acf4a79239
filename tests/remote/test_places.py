"""Tests that the commands about jobs do and print the same at every place: this host, a cluster, a machine behind ssh."""

import pytest
from cluster import Script
from place import until
from test_machine import job, machine  # noqa: F401 - a fixture
from verbs import LINES, RUN, STUBBORN, check_all, check_kill

pytestmark = [pytest.mark.isolated, pytest.mark.needs("root"), pytest.mark.duration(60)]


def test_a_job_on_this_host(machine):  # noqa: F811
    machine.write("here/targets.yaml", "version: 1\ntargets: {local: {backends: [oci]}}\n")
    machine.write("here/job.yaml", job("here", RUN, instances=2))
    check_all(machine.run, machine.run("run", "--detach", "here/job.yaml")[0].strip())
    machine.write("here/stubborn.yaml", job("stubborn", STUBBORN, instances=2))
    check_kill(machine.run, machine.run("run", "--detach", "here/stubborn.yaml")[0].strip())


def test_a_job_on_a_cluster(place):
    place.cluster.default = Script(LINES, lasting=120)
    handle = place.submit()
    until(lambda: len(place.cluster.all("pods")) == 2, "pods")
    for pod in place.cluster.all("pods"):
        place.cluster.put("metrics.k8s.io/v1beta1", "pods", "ml", {
            "metadata": {"name": pod["metadata"]["name"], "labels": pod["metadata"]["labels"]}, "timestamp": "2026-01-01T00:00:00Z",
            "containers": [{"name": "main", "usage": {"cpu": "1", "memory": "2048Ki"}}]})
    place.cluster.served["metrics.k8s.io/v1beta1"] = {"pods": "PodMetrics"}
    check_all(place.run, handle)
    check_kill(place.run, place.submit(), sends=False)


def test_a_job_on_a_machine_behind_ssh(machine):  # noqa: F811
    machine.write("there.yaml", job("there", RUN, instances=2))
    check_all(machine.run, machine.submit("there.yaml"))
    machine.write("stubborn.yaml", job("stubborn", STUBBORN, instances=2))
    check_kill(machine.run, machine.submit("stubborn.yaml"))
