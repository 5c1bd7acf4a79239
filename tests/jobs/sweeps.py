#!/usr/bin/env python3
"""Tests sweeps: the handle of all jobs of a matrix, metrics, `--resume`, and the matrix of a role.

`--user range` and `--user single` run as an unprivileged user.
"""

import json
import re
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "runtime"))

from commands import expect  # noqa: E402
from examples import copy_example, exit_problems, record_problems, run  # noqa: E402
from isolation import jobs_of, problems  # noqa: E402
from harness import Harness  # noqa: E402

# The job of `fail` ends badly until the file `fixed` exists.
SWEEP = """\
version: 1
name: tested-sweep
image: host
matrix:
  axes:
    rate: [1e-1, 5]
    model: [small, 大]
  max_parallel: 4
outputs:
  runs: {source: "./runs/${{ matrix.rate }}-${{ matrix.model }}", mount: /output}
data:
  shared: {source: ., mount: /shared}
metrics:
  loss: {file: /output/result.json, key: eval.loss, better: lower}
roles:
  train:
    shell: sh
    run: |
      echo "step 1 error=9.5"
      echo "step 2 error=${{ matrix.rate }}"
      echo '{"eval": {"loss": ${{ matrix.rate }}}}' > /output/result.json
      echo x >> /output/attempts
      if [ ${{ matrix.rate }}-${{ matrix.model }} = 5-small ] && [ ! -e /shared/fixed ]; then echo broken >&2; exit 3; fi
"""

WAITING = """\
version: 1
name: tested-waiting
image: host
grace_period: 2s
matrix: {number: [1, 2, 3, 4]}
roles:
  train:
    shell: sh
    run: |
      trap 'exit 0' TERM
      echo begin; while :; do sleep 0.1; done
"""

LINKED = """\
version: 1
name: tested-linked
image: host
outputs:
  runs: {source: ./runs, mount: /runs}
roles:
  first:
    shell: sh
    run: rmdir /runs/b && ln -s /etc /runs/b
  second:
    needs: [first]
    matrix: {name: [b]}
    outputs: {runs: {subpath: "${{ matrix.name }}"}}
    shell: sh
    run: cat /runs/passwd
"""


def main():
    harness = Harness("sweeps", __doc__)
    with jobs_of(harness) as jobs:
        for case in (handle, stopping, resuming, refusals, linked, tune):
            if harness.wants(case.__name__):
                harness.check(case.__name__, problems(case, jobs))
    harness.end()


def prepare(jobs, text, name):
    """A job file in a directory that the jobs' user may write to."""
    directory = jobs.directory / name
    directory.mkdir(exist_ok=True)
    path = directory / "job.yaml"
    path.write_text(text)
    if jobs.account:
        for part in (directory, path):
            part.chmod(0o777)
    return path


def table(text):
    """The rows of a table by their first cell. Columns are separated by two spaces."""
    lines = [re.split(r"  +", line.strip()) for line in text.splitlines()]
    return lines[0], {line[0]: line for line in lines[1:]}


def handle(jobs):
    """One name for all jobs: `ps`, `logs`, `wait`, `report`, `rm`, with metrics of the job file and of the command line."""
    path = prepare(jobs, SWEEP, "handle")
    name = expect(jobs.call("run", "--detach", str(path)), out=r"^tested-sweep\.1\n$").stdout.strip()
    answer = expect(jobs.call("wait", name), code=1, out=r"tested-sweep\.1: 3 succeeded, 1 failed\n$", error=r"broken")
    if answer.stdout.count("\n") != 5:
        yield f"wait: {answer.stdout}"
    headings, rows = table(expect(jobs.call("ps", "tested-sweep")).stdout)
    if headings != ["JOB", "RATE", "MODEL", "STATE", "RAN", "LOSS", "END"]:
        yield f"headings: {headings}"
    wanted = {"tested-sweep-0.1": ["1e-1", "small", "succeeded", "0.1 *"], "tested-sweep-1.1": ["1e-1", "大", "succeeded", "0.1"],
              "tested-sweep-2.1": ["5", "small", "failed", "5"], "tested-sweep-3.1": ["5", "大", "succeeded", "5"]}
    found = {job: [*row[1:4], row[5]] for job, row in rows.items()}
    if found != wanted:
        yield f"table: {found}"
    if "train-0: exit 3" not in rows["tested-sweep-2.1"][-1]:
        yield f"why: {rows['tested-sweep-2.1']}"
    if expect(jobs.call("ps", "--quiet", name)).stdout.split() != list(wanted):
        yield "ps --quiet"
    for metric, better, value, best in (("error=([0-9.e-]+)", "higher", "5", "tested-sweep-2.1"), ("/output/result.json:eval.loss", "lower", "0.1", "tested-sweep-0.1"),
                                        ("loss", "higher", "5", "tested-sweep-2.1")):
        headings, rows = table(expect(jobs.call("ps", name, "--metric", metric, "--better", better)).stdout)
        marked = [job for job, row in rows.items() if row[5].endswith(" *")]
        if marked != [best] or rows[best][5] != f"{value} *":
            yield f"{metric}: {headings} {rows}"
    values = json.loads(expect(jobs.call("ps", "--format", "json", name, "--metric", "error=([0-9.e-]+)")).stdout)
    if [(one["id"], one["values"]["model"], one["metrics"]["error"]) for one in values][2] != ("tested-sweep-2.1", "small", 5.0):
        yield f"as JSON: {values}"
    logs = expect(jobs.call("logs", name)).stdout
    if logs.count("step 1 error=9.5") != 4 or "tested-sweep-3.1" not in logs:
        yield f"logs: {logs}"
    lines = expect(jobs.call("logs", "-n", "1", name, "train")).stdout
    if lines.count("step 2") != 3 or "step 1" in lines:
        yield f"logs of a role: {lines}"
    page = expect(jobs.call("report", "-o", "-", name)).stdout
    for text in ("<title>tested-sweep.1 – jobc</title>", "Lowest loss", "<figcaption>loss by rate</figcaption>", "broken"):
        if text not in page:
            yield f"report without {text}"
    page = expect(jobs.call("report", "-o", "-", name, "--metric", "error=([0-9.e-]+)")).stdout
    if "error by model" not in page or "loss by" in page:
        yield "report with --metric"
    expect(jobs.call("ps", "tested-sweep-0", "--metric", "error=([0-9.e-]+)"), out=r"ERROR.*\n.* 0\.1 ")
    expect(jobs.call("rm", "tested-sweep-1"), out=r"^tested-sweep-1\.1: removed\n$")
    expect(jobs.call("ps", name), out=r"tested-sweep-1\.1 .*removed")
    expect(jobs.call("rm", name), out=r"^tested-sweep\.1: removed\n$")
    expect(jobs.call("ps", name), code=2, error="there is no job `tested-sweep.1`")
    if "tested-sweep" in jobs.call("ps", "--all", "--quiet").stdout:
        yield "jobs are left"


def stopping(jobs):
    """`stop` ends running jobs and those that wait, so that none starts in between; `--no-wait`, `pause` and `resume`."""
    path = prepare(jobs, WAITING, "waiting")
    name = expect(jobs.call("run", "--detach", "--parallel", "2", str(path)), out=r"^tested-waiting\.\d+\n$").stdout.strip()
    for number in (0, 1):
        jobs.running(f"tested-waiting-{number}")
    states = lambda: [one["state"] for one in json.loads(jobs.call("ps", "--format", "json", name).stdout)]  # noqa: E731
    # The state of a job follows those of its tasks.
    deadline = time.monotonic() + 10
    while (before := states()) != ["running", "running", "queued", "queued"] and time.monotonic() < deadline:
        time.sleep(0.05)
    if before != ["running", "running", "queued", "queued"]:
        yield f"before: {before}"
    # Without cgroups nothing can be frozen.
    if not jobs.account:
        expect(jobs.call("pause", name), out=r"^tested-waiting-0.*paused\ntested-waiting-1.*paused\n$")
        expect(jobs.call("resume", name), out=r"resumed")
    expect(jobs.call("stop", name), out=rf"^{re.escape(name)}: 4 stopped\n$")
    if states() != ["stopped"] * 4:
        yield f"after: {states()}"
    started = [number for number in (2, 3) if jobs.record(f"tested-waiting-{number}").get("started")]
    if started:
        yield f"started while the sweep was stopped: {started}"
    expect(jobs.call("wait", name), code=130, out=rf"{re.escape(name)}: 4 stopped\n$")
    # The only running sweep needs no name.
    name = expect(jobs.call("run", "--detach", str(path))).stdout.strip()
    jobs.running("tested-waiting-0")
    expect(jobs.call("stop"), out=rf"^{re.escape(name)}: 4 stopped\n$")
    expect(jobs.call("rm", "--force", name))


def resuming(jobs):
    """`--resume` runs what has not succeeded and what is new, in the same sweep; numbers and names stay."""
    path = prepare(jobs, SWEEP, "resuming")
    expect(jobs.call("run", "--quiet", "--resume", str(path)), code=1)
    directory = path.parent
    attempts = lambda: {one.parent.name: one.read_text().count("x") for one in directory.glob("runs/*/attempts")}  # noqa: E731
    if attempts() != {"1e-1-small": 1, "1e-1-大": 1, "5-small": 1, "5-大": 1}:
        yield f"at first: {attempts()}"
    (directory / "fixed").touch()
    answer = expect(jobs.call("run", "--no-logs", "--resume", str(path)), error=r"tested-sweep-2\.2 +5 +small +succeeded")
    if attempts() != {"1e-1-small": 1, "1e-1-大": 1, "5-small": 2, "5-大": 1} or answer.stderr.count("succeeded  ") < 4:
        yield f"resumed: {attempts()}: {answer.stderr}"
    path.write_text(SWEEP.replace("[1e-1, 5]", "[7, 5.0, 0.10]"))
    expect(jobs.call("run", "--no-logs", "--resume", str(path)), error=r"tested-sweep-4\.\d+ +7 +small +succeeded")
    if attempts() != {"1e-1-small": 1, "1e-1-大": 1, "5-small": 2, "5-大": 1, "7-small": 1, "7-大": 1}:
        yield f"with new values: {attempts()}"
    expect(jobs.call("run", "--resume", str(path)), out="^$", error="all of its combinations have succeeded")
    _, rows = table(expect(jobs.call("ps", "tested-sweep")).stdout)
    if len(rows) != 6 or "tested-sweep-0.1" not in rows:
        yield f"the sweep: {rows}"
    other = prepare(jobs, SWEEP, "elsewhere")
    expect(jobs.call("run", "--resume", str(other)), code=125, error="is of another job file")
    expect(jobs.call("rm", "tested-sweep"))


def refusals(jobs):
    """Commands about one job refuse a sweep; wrong metrics and `--resume` without a matrix are errors."""
    path = prepare(jobs, WAITING, "refusals")
    name = expect(jobs.call("run", "--detach", str(path))).stdout.strip()
    for words in (["inspect", name], ["events", name], ["kill", name], ["exec", name, "true"], ["trace", name]):
        expect(jobs.call(*words), code=125 if words[0] == "exec" else 2, out="^$", error=r"is a sweep of 4 jobs(.|\n)*`jobc ps tested-waiting\.\d+` lists them")
    jobs.running("tested-waiting-0")
    expect(jobs.call("run", "--resume", str(path)), code=125, error=r"job `tested-waiting-0\.\d+` of the sweep `tested-waiting\.\d+` is running")
    expect(jobs.call("rm", name), code=1, error="is running")
    expect(jobs.call("ps", "tested-waitin"), code=2, error="did you mean `tested-waiting`")
    for metric, why in (("loss=", "put the number in"), ("(a)(b)", "2 groups"), ("/output/x.json", "write FILE:KEY"), ("a(", "unclosed group")):
        expect(jobs.call("ps", name, "--metric", metric), code=2, error=re.escape(why))
    expect(jobs.call("ps", "--metric", "loss"), code=2, error="needs a job or a sweep")
    expect(jobs.call("report", "tested-waiting-0", "--metric", "loss"), code=2, error="is one job")
    single = prepare(jobs, WAITING.replace("matrix: {number: [1, 2, 3, 4]}\n", "").replace("tested-waiting", "tested-single"), "single")
    expect(jobs.call("run", "--resume", str(single)), code=125, error="applies only to a job file with a `matrix`")
    expect(jobs.call("run", "--resume", "-"), code=125, error="cannot read the job file from stdin")
    (file,) = jobs.home.glob(f".local/state/jobc/sweeps/{name}/sweep.json")
    file.write_text("{")
    expect(jobs.call("ps", name), code=1, error=rf"is not a sweep of this version of jobc(.|\n)*`jobc rm --force {re.escape(name)}`")
    expect(jobs.call("rm", "--force", name, *[f"tested-waiting-{number}" for number in range(4)]), out=rf"{re.escape(name)}: removed")
    yield from ()


def linked(jobs):
    """A role cannot have another place of the host mounted by a link where its combination's directory is."""
    place = prepare(jobs, LINKED, "linked").parent
    answer = jobs.call("run", str(place / "job.yaml"))
    if answer.returncode == 0 or "`b` in `" not in answer.stderr or "is a symbolic link" not in answer.stderr:
        yield f"exit {answer.returncode}: {answer.stdout}{answer.stderr}"
    if "root:" in answer.stdout:
        yield "the link was followed"
    record = jobs.record("tested-linked")
    states = {task["task"]: task["state"] for task in record["tasks"]}
    if states["first-0"] != "succeeded" or states["second-m0-0"] == "succeeded":
        yield f"{states}"


def tune(jobs):
    """A matrix on a role: prepare, five groups of tasks of which two run at a time, and an evaluation of all."""
    copy = copy_example(jobs, "local-tune")
    answer = run(jobs, copy)
    yield from exit_problems(answer)
    record = jobs.record("local-tune")
    yield from record_problems(record, "local-tune")
    times = {task["task"]: (task.get("started", ""), task.get("ended", "")) for task in record["tasks"]}
    trainings = [times[f"train-m{number}-0"] for number in range(5)]
    if any(times["prepare-0"][1] > begin for begin, _ in trainings) or any(end > times["evaluate-0"][0] for _, end in trainings):
        yield f"order: {times}"
    for begin, _ in trainings:
        if sum(other[0] <= begin < other[1] for other in trainings) > 2:
            yield f"more than two at a time: {times}"
    if len(list(copy.glob("runs/rate-*-batch-*/model.json"))) != 5 or not (copy / "runs/best.json").exists():
        yield f"outputs: {sorted(copy.glob('runs/**'))}"
    losses = {one["task"]: one["value"] for one in record["metrics"] if one["name"] == "loss"}
    best = [one["value"] for one in record["metrics"] if one["name"] == "best_loss"]
    if len(losses) != 5 or len(best) != 1 or abs(min(losses.values()) - best[0]) > 1e-4:
        yield f"metrics: {record['metrics']}"
    headings, rows = table(expect(jobs.call("ps", "local-tune")).stdout)
    if headings[:2] != ["TASK", "VALUES"] or "LOSS" not in headings or rows["train-m4-0"][1] != "rate=0.01 batch=16":
        yield f"table: {headings} {rows}"
    lines = expect(jobs.call("logs", "local-tune", "train")).stdout
    if lines.count("epoch 40: loss") != 5 or "best of" in lines:
        yield f"logs of the role: {lines}"


if __name__ == "__main__":
    main()
