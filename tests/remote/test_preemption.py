"""Tests that a training resumes at its step on Kubernetes: its pods run here one after another, as the controller of Jobs makes them by
the `podFailurePolicy` that was built."""

import json
import os
import signal
import subprocess

import pytest
import yaml

from harness import scratch
from resumable import TRAIN, resumed_at_their_steps

pytestmark = [pytest.mark.duration(20)]
# Without what a pod does not learn.
PROGRAM = TRAIN.replace("JOBC_ATTEMPT", "ATTEMPT").replace("JOBC_RESUME", "RESUME")


def job_of(program, directory, **more):
    """The Job of a role that trains."""
    role = {"resources": {"cpu": 1, "memory": "1GiB"}, "run": ["python3", "-uc", PROGRAM], **more}
    job = {"version": 1, "name": "trains", "image": "busybox:1.36", "roles": {"main": role},
           "preemption": {"exit_codes": [85], "checkpoint": "saved", "grace": "2m"},
           "outputs": {"saved": {"source": "pvc:saved", "mount": str(directory / "saved")}}}
    (directory / "job.yaml").write_text(json.dumps(job))
    words = [program, "build", "--target", "kubernetes", "--output", directory / "out", directory / "job.yaml"]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    objects = [found for file in (directory / "out").rglob("*.yaml") if "kubernetes" in file.parts for found in yaml.safe_load_all(file.read_text())]
    [job] = [found for found in objects if found and found["kind"] == "Job"]
    return job["spec"]


def action_on(spec, code, is_disrupted):
    """What the controller of Jobs does about a failed pod: the first rule that matches (KEP-3329), else it counts."""
    for rule in spec["podFailurePolicy"]["rules"]:
        codes = rule.get("onExitCodes")
        if codes and (code in codes["values"]) == (codes["operator"] == "In"):
            return rule["action"]
        if is_disrupted and any(condition["type"] == "DisruptionTarget" for condition in rule.get("onPodConditions", [])):
            return rule["action"]
    return "Count"


def run_pod(spec, leave_at):
    """Runs a pod to its end, or asks it to leave at a step; its exit code and output."""
    [container] = spec["template"]["spec"]["containers"]
    given = {one["name"]: one["value"] for one in container.get("env", []) if "value" in one}
    pod = subprocess.Popen(container["command"], env={"PATH": os.environ["PATH"], **given}, text=True, stdout=subprocess.PIPE)
    lines = []
    for line in pod.stdout:
        lines.append(line)
        if line == f"step {leave_at}\n":
            pod.send_signal(signal.SIGTERM)
    return pod.wait(20), "".join(lines)


def test_pods_that_leave_are_replaced_without_counting(program):
    with scratch() as directory:
        (directory / "saved").mkdir()
        spec = job_of(program, directory)
        assert spec["backoffLimit"] == 0 and spec["template"]["spec"]["terminationGracePeriodSeconds"] == 120, spec
        logs, failures = "", 0
        # One leaves by itself, and one because its node is drained: the kubelet sends the same signal.
        for leave_at, is_disrupted in ((10, False), (30, True), (None, False)):
            code, output = run_pod(spec, leave_at)
            logs += output
            if code:
                action = action_on(spec, code, is_disrupted)
                assert (code, action) == (85, "Ignore"), (code, action)
                failures += action == "Count"
        assert code == 0 and failures == 0 and resumed_at_their_steps(logs) == 3, logs
        assert action_on(spec, 1, False) == "Count" and action_on(spec, 137, True) == "Ignore", spec["podFailurePolicy"]


def test_what_a_pod_does_not_learn_is_refused_at_its_line(program):
    with scratch() as directory:
        (directory / "saved").mkdir()
        with pytest.raises(AssertionError, match="which attempt it is"):
            job_of(program, directory, shell="sh", run="train --resume \"$JOBC_RESUME\"")
