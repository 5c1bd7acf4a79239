"""Tests what is told of jobs after them: `jobc history`, its suggestions, `jobc metrics`, and traces. Readers that others wrote judge both."""

import json
import os
import re
import shutil
import subprocess
import time

import needs
import pytest

from command_line import expect

pytestmark = [pytest.mark.isolated, pytest.mark.duration(9), pytest.mark.accounts("root", slow="single")]

# Two tasks that hold 40 MiB, and use 0.6 s of CPU time.
WORK = """\
version: 1
name: tested-history
image: host
roles:
  train:
    instances: 2
    resources:
      cpu: 1
      memory: 1GiB  # more than it needs
    run:
      - python3
      - -c
      - |
        import time
        block = bytearray(40 << 20)
        while time.process_time() < 0.6: pass
        time.sleep(0.6)
  idle:
    shell: sh
    run: exit 0
"""

LONG = """\
version: 1
name: tested-metrics
image: host
metrics:
  loss: {log: "loss=([0-9.]+)"}
roles:
  "say":
    shell: sh
    resources: {memory: 256MiB}
    run: |
      echo loss=0.25
      exec sleep 60
"""


def write(jobs, name, text):
    path = jobs.directory / name
    path.write_text(text)
    if jobs.account:
        os.chown(path, jobs.account.uid, jobs.account.gid)
    return str(path)


def test_what_was_used_is_compared_with_what_was_requested(jobs):
    path = write(jobs, "work.yaml", WORK)
    expect(jobs.call("run", *jobs.unenforced, path))
    (job,) = json.loads(expect(jobs.call("history", "--format", "json")).stdout)
    assert (job["id"], job["state"], job["usage"]["gpu_seconds"]) == ("tested-history.1", "succeeded", 0)
    assert 1 <= job["ran_seconds"] <= 20
    roles = {role["role"]: role for role in job["usage"]["roles"]}
    train = roles["train"]
    assert (train["tasks"], train["attempts"], train["asked"]) == (2, 2, {"cpu_millis": 1000, "memory_bytes": 1 << 30, "gpus": 0})
    assert 40 << 20 <= train["used"]["memory_peak_bytes"] < 200 << 20, train
    assert 20 <= train["used"]["cpu_millis_mean"] <= 1000 and job["usage"]["cpu_seconds"] >= 1, train
    expect(jobs.call("history", "tested-history"), out=r"(?s)JOB +STATE .*tested-history.1 +succeeded .*train x 2 .* of 1 .* of 1 GiB")
    # Filters.
    for options, found in [(["--state", "succeeded"], 1), (["--state", "failed"], 0), (["--since", "1h"], 1), (["-n", "0"], 0),
                           (["--since", "2100-01-01T00:00:00Z"], 0), (["--user", str(os.getuid() if not jobs.account else jobs.account.uid)], 1), (["--user", "nobody-x"], 0)]:
        assert len(json.loads(expect(jobs.call("history", "--format", "json", *options)).stdout)) == found, options
    expect(jobs.call("history", "tested-histor"), code=2, error="did you mean `tested-history`")
    expect(jobs.call("history", "--state", "succeeds"), code=2, error="did you mean `succeeded`")


def test_smaller_limits_are_a_patch_that_applies(jobs):
    path = write(jobs, "suggested.yaml", WORK.replace("tested-history", "tested-suggest"))
    expect(jobs.call("history", "--suggest", "--state", "failed"), out="^$", error="no job has succeeded yet")
    expect(jobs.call("run", *jobs.unenforced, path))
    patch = expect(jobs.call("history", "--suggest", "tested-suggest", cwd=jobs.directory), error=r"suggested.yaml:9: role `train`: memory: asked 1 GiB, used [0-9.]+ MiB in 1 run; write `\d+MiB`")
    assert re.search(r"(?m)^-      memory: 1GiB  # more than it needs$", patch.stdout) and re.search(r"(?m)^\+      memory: \d+MiB  # more than it needs$", patch.stdout), patch.stdout
    applied = subprocess.run(["patch", "-p0"], input=patch.stdout, capture_output=True, text=True, check=False, cwd=jobs.directory)
    assert applied.returncode == 0, applied
    expect(jobs.call("check", path))
    # It still runs with them, and what the file has by now is not changed again.
    expect(jobs.call("run", *jobs.unenforced, path))
    write(jobs, "suggested.yaml", WORK.replace("1GiB", "3GiB"))
    expect(jobs.call("history", "--suggest", "tested-suggest.1"), error="the job file has `3GiB` by now")


def test_metrics_are_what_prometheus_reads(jobs):
    parser = needs.package("prometheus_client.parser", "prometheus-client")
    path = write(jobs, "long.yaml", LONG)
    expect(jobs.call("run", "--detach", *jobs.unenforced, path))
    jobs.until("tested-metrics", lambda record: record.get("metrics"))
    text = expect(jobs.call("metrics")).stdout
    families = {family.name: family for family in parser.text_string_to_metric_families(text)}

    def value(name):
        return {tuple(sample.labels.values()): sample.value for sample in families[name].samples}

    assert value("jobc_jobs")[("running",)] == 1 and value("jobc_jobs")[("lost",)] == 0
    assert value("jobc_job_tasks") == {("tested-metrics", "tested-metrics.1", "running"): 1}
    assert value("jobc_job_metric") == {("tested-metrics", "tested-metrics.1", "say-0", "loss"): 0.25}
    assert value("jobc_task_memory_limit_bytes") == {("tested-metrics", "tested-metrics.1", "say", "say-0"): 256 << 20}
    assert families["jobc_task_cpu_seconds"].type == "counter" and 0 <= time.time() - next(iter(value("jobc_job_started_timestamp_seconds").values())) < 60
    if promtool := shutil.which("promtool"):
        checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
        assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", ""), checked
    # In a directory of the node exporter.
    directory = jobs.home / "textfile"
    directory.mkdir()
    if jobs.account:
        os.chown(directory, jobs.account.uid, jobs.account.gid)
    expect(jobs.call("metrics", "--write", str(directory)), out="^$")
    assert [entry.name for entry in directory.iterdir()] == ["jobc.prom"] and (directory / "jobc.prom").stat().st_mode & 0o777 == 0o644
    expect(jobs.call("metrics", "--write", str(directory / "none")), code=3, error="no such file or directory")
    expect(jobs.call("stop", "tested-metrics"))


def test_traces_are_opentelemetry(jobs):
    trace = needs.package("opentelemetry.proto.trace.v1.trace_pb2", "opentelemetry-proto")
    json_format = needs.package("google.protobuf.json_format", "protobuf")
    path = write(jobs, "retried.yaml", """\
version: 1
name: tested-traces
image: host
retry: {max: 1, backoff: 0s}
roles:
  train:
    shell: sh
    run: if [ ${{ instance.attempt }} = 1 ]; then exit 3; fi
""".replace("${{ instance.attempt }}", "$JOBC_ATTEMPT"))
    jobs.call("run", *jobs.unenforced, path)
    file = jobs.home / "run.otlp.json"
    expect(jobs.call("report", "tested-traces", "--traces", "-o", str(file)), out="run.otlp.json")
    # An unknown field is an error.
    data = json_format.Parse(file.read_text(), trace.TracesData())
    spans = data.resource_spans[0].scope_spans[0].spans
    root, *below = spans
    # OTLP writes ids in hexadecimal, which is read as base64 here: 24 and 12 bytes.
    assert (root.name, len(root.trace_id), len(root.span_id), root.parent_span_id) == ("tested-traces", 24, 12, b"")
    assert {span.parent_span_id for span in below} == {root.span_id} and {span.trace_id for span in spans} == {root.trace_id}
    assert all(root.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano for span in spans)
    attempts = [span for span in below if span.name == "train-0"]
    assert {span.name for span in below} == {"queued", "preparing", "train-0"} and len(attempts) == 2, below
    assert attempts[0].status.code == trace.Status.STATUS_CODE_ERROR and [event.name for event in root.events][0] == "submitted"
    expect(jobs.call("report", "tested-traces", "--traces", "--jobs"), code=2, error="cannot be used with")
