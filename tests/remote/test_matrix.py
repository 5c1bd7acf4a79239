"""Tests `jobc submit` of a matrix of many jobs: busy servers, progress, interruptions, and the same command again."""

import re
import shutil
import signal
import threading
import time

import pytest
from cluster import Script
from place import ONE, until
from verbs import described

pytestmark = pytest.mark.duration(120)
MATRIX = """\
version: 1
name: sweep
image: busybox
matrix:
  lr: [{lr}]
  seed: [{seed}]
roles:
  main: {{run: "echo ${{{{ matrix.lr }}}} ${{{{ matrix.seed }}}}"}}
"""


@pytest.fixture(params=[60, pytest.param(1000, marks=pytest.mark.slow)])
def count(request, place):
    """The number of jobs of a matrix; their pods do nothing."""
    place.cluster.default = Script(late=3600)
    seeds = 20
    place.write("sweep.yaml", MATRIX.format(lr=", ".join(map(str, range(request.param // seeds))), seed=", ".join(map(str, range(seeds)))))
    return request.param


def names(place):
    return [job["metadata"]["name"] for job in place.cluster.all("jobs")]


def all_are_there(place, count):
    jobs = place.cluster.all("jobs")
    plans = {job["metadata"]["labels"]["jobc.dev/plan"] for job in jobs}
    assert len(jobs) == len(plans) == count, f"{len(jobs)} jobs of {len(plans)} plans instead of {count}"
    waiting = [job for job in jobs if job["spec"]["suspend"] or "jobc.dev/submitted" not in job["metadata"]["annotations"]]
    assert not waiting, f"{len(waiting)} are not started"
    for plural in ("configmaps", "services"):
        assert len(place.cluster.all(plural)) in (0, count), f"{len(place.cluster.all(plural))} {plural}"


def test_many_jobs_are_submitted_at_the_pace_of_the_server(place, count, note):
    place.cluster.fail("POST", "/jobs[?]", times=30, code=429, retry_after=1)
    since = time.monotonic()
    out, errors = place.run("submit", "sweep.yaml", seconds=900)
    seconds = time.monotonic() - since
    all_are_there(place, count)
    handles = out.split()
    assert len(handles) == len(set(handles)) == count, f"{len(handles)} handles"
    numbers = [int(re.fullmatch(r"lab/sweep-(\d+)-.{5}", handle)[1]) for handle in handles]
    assert numbers == sorted(numbers), "the order of the matrix"
    assert place.cluster.most_concurrent <= 8, f"{place.cluster.most_concurrent} requests at once"
    # Each of two phases says how far it is every ten seconds; compiling takes a few more.
    if seconds > 30:
        assert re.search(r"jobc: (checked|submitted) \d+ of \d+\n", errors), errors
    note(f"{count} jobs submitted in {seconds:.1f} s, {len(place.cluster.requests)} requests")
    # The same again lists once, and asks nothing about single jobs.
    place.cluster.requests.clear()
    since = time.monotonic()
    again, errors = place.run("submit", "sweep.yaml", seconds=300)
    assert again == out and f"{count} of {count} jobs were submitted before" in errors, errors
    assert len(place.cluster.requests) <= 10, place.cluster.requests
    note(f"{count} jobs submitted again in {time.monotonic() - since:.1f} s, {len(place.cluster.requests)} requests")


def test_an_interrupted_submission_goes_on(place, count):
    for number, (end, code) in enumerate([(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, 143)], 1):
        wanted, signaled = count * number // 5, threading.Event()

        def wait_for_the_signal(_, when, wanted=wanted, signaled=signaled):
            if when == "before" and len(place.cluster.all("jobs")) >= wanted:
                signaled.wait(60)

        place.cluster.on_request = wait_for_the_signal
        process = place.start("submit", "sweep.yaml")
        until(lambda: len(place.cluster.all("jobs")) >= wanted or process.poll() is not None, "some jobs", 600)
        process.send_signal(end)
        time.sleep(0.3)
        signaled.set()
        _, errors = process.communicate(timeout=60)
        place.cluster.on_request = None
        assert process.returncode == code, (process.returncode, errors)
        there = place.cluster.all("jobs")
        assert len(there) < count, "it was too late"
        if end != signal.SIGKILL:
            # Those under way were completed.
            assert f"{len(there)} of {count} jobs are submitted; the same command submits the others" in errors, errors
            assert all("jobc.dev/submitted" in job["metadata"]["annotations"] for job in there), "a job is not complete"
    out, _ = place.run("submit", "sweep.yaml", seconds=600)
    all_are_there(place, count)
    assert len(out.split()) == count, len(out.split())


def test_a_dry_run_of_many_creates_nothing(place, count, note):
    since = time.monotonic()
    out, errors = place.run("submit", "sweep.yaml", "--dry-run", seconds=600)
    assert f"the cluster accepts the {count} jobs; nothing was created" in errors and not out, errors
    assert not names(place) and place.cluster.count("GET", "/jobs[?]") <= 2 + count // 500, "it was listed more than once"
    note(f"{count} jobs checked in {time.monotonic() - since:.1f} s")


@pytest.mark.usefixtures("count")
def test_what_is_wrong_with_all_is_said_once(place):
    place.cluster.reject("Job", "spec.template", "Invalid value: no such thing")
    out, errors = place.run("submit", "sweep.yaml", code=1, seconds=300)
    assert errors.count("no such thing") == 1 and not out and not names(place), errors
    assert len([path for method, path in place.cluster.requests if method == "PATCH"]) <= 3, "the others were checked too"


def test_a_sweep_is_one_thing(place):
    """`lab/SWEEP` stands for its jobs: they are listed, waited for and stopped together, and those that failed are run again."""
    place.write("grid.yaml", MATRIX.replace("name: sweep", "name: grid").format(lr="1, 2, 3", seed="0"))
    place.cluster.scripts["grid-1"] = Script(["hello"], exit_code=3)
    handles = place.run("submit", "grid.yaml")[0].split()
    place.submit()
    out, _ = place.run("wait", "lab/grid", code=1)
    assert [line.split(":")[0] for line in out.splitlines()] == [*handles, "lab/grid"] and "lab/grid: 2 succeeded, 1 failed" in out, out
    out, errors = place.run("ps", "lab/grid")
    assert [line.split()[0] for line in out.splitlines()[1:]] == handles and errors == "jobc: lab/grid: 2 succeeded, 1 failed\n", (out, errors)
    assert place.run("ps", "-q", "lab/grid")[0].split() == handles
    assert [job["state"] for job in described("ps-sweep", place.json("ps", "lab/grid"))] == ["succeeded", "failed", "succeeded"]
    _, errors = place.run("inspect", "lab/grid", code=2)
    assert "`lab/grid` is a sweep of 3 jobs" in errors and "`jobc ps lab/grid` lists them" in errors, errors
    out, _ = place.run("logs", "lab/grid")
    assert all(f"{handle} main-0 | " in out for handle in handles), out
    # The same command again creates nothing; `--resume` another run of what failed.
    assert place.run("submit", "grid.yaml")[0].split() == handles
    place.cluster.scripts["grid-1"] = Script(["hello"], pause=120)
    again = place.run("submit", "grid.yaml", "--resume")[0].split()
    assert [again[0], again[2]] == [handles[0], handles[2]] and again[1] != handles[1] and again[1].startswith("lab/grid-1-"), again
    _, errors = place.run("ps", "lab/grid")
    assert errors == "jobc: lab/grid: 2 succeeded, 1 running\n", errors
    out, errors = place.run("wait", "lab/grid", "--timeout", "1s", code=75)
    assert "lab/grid: not ended after 1s" in errors, errors
    out, _ = place.run("stop", "lab/grid")
    assert out.startswith("lab/grid: ") and "1 stopped" in out and "2 succeeded" in out, out
    assert place.run("ps", "lab/grid")[1] == "jobc: lab/grid: 2 succeeded, 1 stopped\n"
    # The newest runs are removed; the failed one of before is what is left.
    out, _ = place.run("rm", "lab/grid")
    assert out == "lab/grid: removed\n" and [name for name in names(place) if name.startswith("grid")] == [handles[1].split("/")[1]], out
    place.run("rm", "lab/grid")
    place.run("ps", "lab/grid", code=2)
    assert len(place.cluster.all("jobs")) == 1, "other jobs stay"


def test_a_paused_job_has_no_pods(place):
    place.cluster.default = Script(["hello"], pause=120)
    handle = place.submit()
    until(lambda: sum("running" in str(pod["status"]) for pod in place.cluster.all("pods")) == 2, "running pods")
    assert place.run("pause", handle)[0] == f"{handle}: paused\n"
    assert not place.cluster.all("pods") and place.json("inspect", handle)["state"] == "suspended"
    assert place.run("resume", handle)[0] == f"{handle}: resumed\n"
    until(lambda: len(place.cluster.all("pods")) == 2, "pods again")
    # Kueue decides about the field `suspend` of its jobs.
    job, = place.cluster.all("jobs")
    job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "gpu"
    place.cluster.put("batch/v1", "jobs", "ml", job)
    _, errors = place.run("pause", handle, code=1)
    assert "Kueue has no Workload for it" in errors, errors
    place.cluster.put("kueue.x-k8s.io/v1beta2", "workloads", "ml", {
        "metadata": {"name": "job-one", "labels": {"kueue.x-k8s.io/job-uid": job["metadata"]["uid"]}}, "spec": {"active": True}})
    for pod in place.cluster.all("pods"):
        place.cluster.drop(("v1", "pods", "ml", pod["metadata"]["name"]))
    place.run("pause", handle)
    assert place.cluster.all("workloads")[0]["spec"]["active"] is False and place.cluster.all("jobs")[0]["spec"]["suspend"] is False
    place.run("resume", handle)
    assert place.cluster.all("workloads")[0]["spec"]["active"] is True


def test_a_sweep_is_compared_by_its_values_and_metrics(place):
    """The values and the rules of metrics are kept with each job, so that any host compares them; the numbers are in the output."""
    metrics = "metrics: {loss: {log: 'loss=([0-9.]+)', better: lower}}\n"
    place.write("tune.yaml", MATRIX.replace("name: sweep", "name: tune").format(lr="0.1, 1e-3, 5", seed="0") + metrics)
    for number, loss in enumerate(("0.5", "0.25", "0.75")):
        place.cluster.scripts[f"tune-{number}"] = Script(["step 1 loss=0.9", f"step 2 loss={loss}"], exit_code=3 if number == 2 else 0)
    handles = place.run("submit", "tune.yaml")[0].split()
    place.run("wait", "lab/tune", code=1)
    # Another host has no files of the submission.
    shutil.rmtree(place.directory / ".local")
    out, errors = place.run("ps", "lab/tune")
    rows = [line.split() for line in out.splitlines()]
    assert rows[0][:6] == ["JOB", "LR", "SEED", "STATE", "RAN", "LOSS"], out
    assert [row[:2] for row in rows[1:4]] == [[handle, lr] for handle, lr in zip(handles, ("0.1", "0.001", "5"))], out
    assert "0.25 *" in out.splitlines()[2] and " 0.75 " in out.splitlines()[3] and "lab/tune: 2 succeeded, 1 failed" in errors, (out, errors)
    found = described("ps-sweep", place.json("ps", "lab/tune"))
    assert [(job["values"]["lr"], job["metrics"]["loss"]) for job in found] == [(0.1, 0.5), (0.001, 0.25), (5, 0.75)], found
    # A named one is searched too, and without pods, the output that was searched before has the declared ones.
    assert " 2" in place.run("ps", "lab/tune", "--metric", "step ([0-9]+)")[0]
    place.run("report", "lab/tune", "-o", "tune.html")
    for pod in place.cluster.all("pods"):
        place.cluster.drop(("v1", "pods", "ml", pod["metadata"]["name"]))
    assert "0.25 *" in place.run("ps", "lab/tune")[0]
    page = (place.directory / "tune.html").read_text()
    for text in ("<h1>lab/tune</h1>", "Lowest loss", "0.25 with lr=0.001, seed=0", "loss by lr", "2 succeeded, 1 failed", f'id="end-{handles[2]}"',
                 "main-0: step 2 loss=0.75"):
        assert text in page, text
    out, _ = place.run("report", "lab/tune", "--jobs")
    assert out.splitlines()[-1] == "lab-tune.html" and len(out.splitlines()) == 4, out
    page = (place.directory / "lab-tune.html").read_text()
    assert f'<a href="{handles[0].replace("/", "-")}.html">' in page
    _, errors = place.run("report", handles[0], "--jobs", code=2)
    assert "is for the jobs of a sweep" in errors, errors


def test_the_report_of_a_job_has_its_metrics(place):
    place.write("one.yaml", ONE + "metrics: {loss: {log: 'loss=([0-9.]+)'}}\n")
    place.cluster.default = Script([f"step {step} loss={1 / step}" for step in range(1, 9)])
    handle = place.submit()
    place.run("wait", handle)
    page = place.run("report", handle, "-o", "-")[0]
    assert "loss" in page and "<desc>loss by step" in page, page[-5000:]
    out, _ = place.run("ps", handle, "--metric", "step ([0-9]+)")
    assert "main-1" in out and out.splitlines()[0].split()[-2:] == ["STEP", "EXIT"] and out.splitlines()[-1].split()[-2] == "8", out
