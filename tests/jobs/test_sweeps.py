"""Tests sweeps: the handle of all jobs of a matrix, metrics, `--resume`, and the matrix of a role."""

import json
import re
import time
from pathlib import Path

import pytest

from command_line import check_record, copy_example, expect

pytestmark = [pytest.mark.isolated, pytest.mark.duration(7), pytest.mark.accounts("root", slow="single")]

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


DETECTED = """\
version: 1
name: tested-detected
image: host
matrix: {rate: [0.5, 0.25]}
roles:
  train:
    shell: sh
    run: |
      echo "epoch 1 loss=9 acc=0.1"
      echo "epoch 2 loss=${{ matrix.rate }} acc=0.2"
"""

BUILT = """\
version: 1
name: tested-built
image: {from: scratch, copy: [{from: job.yaml, to: /job.yaml}]}
matrix: {number: [1, 2, 3]}
roles:
  train:
    run: [/none, "${{ matrix.number }}"]
"""


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


def test_one_name_stands_for_all_jobs_of_a_sweep(jobs):
    """`ps`, `logs`, `wait`, `report`, `rm`, with metrics of the job file and of the command line."""
    path = prepare(jobs, SWEEP, "handle")
    name = expect(jobs.call("run", "--detach", str(path)), out=r"^tested-sweep\.1\n$").stdout.strip()
    answer = expect(jobs.call("wait", name), code=1, out=r"tested-sweep\.1: 3 succeeded, 1 failed\n$", error=r"broken")
    assert answer.stdout.count("\n") == 5, f"wait: {answer.stdout}"
    headings, rows = table(expect(jobs.call("ps", "tested-sweep")).stdout)
    assert headings == ["JOB", "RATE", "MODEL", "STATE", "RAN", "LOSS", "END"], f"headings: {headings}"
    wanted = {"tested-sweep-0.1": ["1e-1", "small", "succeeded", "0.1 *"], "tested-sweep-1.1": ["1e-1", "大", "succeeded", "0.1"],
              "tested-sweep-2.1": ["5", "small", "failed", "5"], "tested-sweep-3.1": ["5", "大", "succeeded", "5"]}
    found = {job: [*row[1:4], row[5]] for job, row in rows.items()}
    assert found == wanted, f"table: {found}"
    assert "train-0: exit 3" in rows["tested-sweep-2.1"][-1], f"why: {rows['tested-sweep-2.1']}"
    assert expect(jobs.call("ps", "--quiet", name)).stdout.split() == list(wanted), "ps --quiet"
    for metric, better, value, best in (("error=([0-9.e-]+)", "higher", "5", "tested-sweep-2.1"), ("/output/result.json:eval.loss", "lower", "0.1", "tested-sweep-0.1"),
                                        ("loss", "higher", "5", "tested-sweep-2.1")):
        headings, rows = table(expect(jobs.call("ps", name, "--metric", metric, "--better", better)).stdout)
        marked = [job for job, row in rows.items() if row[5].endswith(" *")]
        assert marked == [best] and rows[best][5] == f"{value} *", f"{metric}: {headings} {rows}"
    values = json.loads(expect(jobs.call("ps", "--format", "json", name, "--metric", "error=([0-9.e-]+)")).stdout)
    assert [(one["id"], one["values"]["model"], one["metrics"]["error"]) for one in values][2] == ("tested-sweep-2.1", "small", 5.0), \
        f"as JSON: {values}"
    logs = expect(jobs.call("logs", name)).stdout
    assert logs.count("step 1 error=9.5") == 4 and "tested-sweep-3.1" in logs, f"logs: {logs}"
    lines = expect(jobs.call("logs", "-n", "1", name, "train")).stdout
    assert lines.count("step 2") == 3 and "step 1" not in lines, f"logs of a role: {lines}"
    page = expect(jobs.call("report", "-o", "-", name)).stdout
    for text in ("<title>tested-sweep.1 – jobc</title>", "Lowest loss", "<figcaption>loss by rate</figcaption>", "broken"):
        assert text in page, f"report without {text}"
    page = expect(jobs.call("report", "-o", "-", name, "--metric", "error=([0-9.e-]+)")).stdout
    assert "error by model" in page and "loss by" not in page, "report with --metric"
    # The log has two values of each job, and names their steps.
    assert "<desc>error by step of 4 jobs</desc>" in page and "rate=5, model=small" in page, "curves"
    report = path.with_name("report.html")
    written = expect(jobs.call("report", "--jobs", "-o", str(report), name)).stdout.split()
    assert [Path(file).name for file in written] == [*(f"{job}.html" for job in wanted), "report.html"], f"report --jobs: {written}"
    assert '<a href="tested-sweep-2.1.html">tested-sweep-2.1</a>' in report.read_text(), "no link to the report of a job"
    assert "rate=5" in path.with_name("tested-sweep-2.1.html").read_text(), "no report of a job"
    expect(jobs.call("ps", "tested-sweep-0", "--metric", "error=([0-9.e-]+)"), out=r"ERROR.*\n.* 0\.1 ")
    expect(jobs.call("rm", "tested-sweep-1"), out=r"^tested-sweep-1\.1: removed\n$")
    expect(jobs.call("ps", name), out=r"tested-sweep-1\.1 .*removed")
    expect(jobs.call("rm", name), out=r"^tested-sweep\.1: removed\n$")
    expect(jobs.call("ps", name), code=2, error="there is no job `tested-sweep.1`")
    assert "tested-sweep" not in jobs.call("ps", "--all", "--quiet").stdout, "jobs are left"


def test_a_sweep_without_metrics_is_compared_by_what_its_logs_name(jobs):
    path = prepare(jobs, DETECTED, "detected")
    expect(jobs.call("run", str(path)), error=r"LOSS +END\n.* 0\.5\n.* 0\.25 \*\n")
    headings, rows = table(expect(jobs.call("ps", "tested-detected")).stdout)
    assert headings == ["JOB", "RATE", "STATE", "RAN", "LOSS", "END"], f"headings: {headings}"
    assert [row[4] for row in rows.values()] == ["0.5", "0.25 *"], f"table: {rows}"
    headings, rows = table(expect(jobs.call("ps", "tested-detected", "--metric", "acc")).stdout)
    assert headings[4] == "ACC" and [row[4] for row in rows.values()] == ["0.2", "0.2"], f"--metric: {rows}"
    page = expect(jobs.call("report", "-o", "-", "tested-detected")).stdout
    assert "<desc>loss by epoch of 2 jobs</desc>" in page and "Lowest loss" in page and "acc by" not in page, "curves"
    expect(jobs.call("rm", "tested-detected"))


def test_an_image_of_a_sweep_is_built_once(jobs):
    path = prepare(jobs, BUILT, "built")
    answer = jobs.call("run", str(path))
    assert answer.returncode == 1 and answer.stderr.count("COPY") == 1, f"exit code {answer.returncode}: {answer.stderr}"
    expect(jobs.call("rm", "tested-built"))


def test_stop_ends_running_and_waiting_jobs(jobs):
    """So that none starts in between; `--no-wait`, `pause` and `resume`."""
    path = prepare(jobs, WAITING, "waiting")
    name = expect(jobs.call("run", "--detach", "--parallel", "2", str(path)), out=r"^tested-waiting\.\d+\n$").stdout.strip()
    for number in (0, 1):
        jobs.running(f"tested-waiting-{number}")
    states = lambda: [one["state"] for one in json.loads(jobs.call("ps", "--format", "json", name).stdout)]  # noqa: E731
    # The state of a job follows those of its tasks.
    deadline = time.monotonic() + 10
    while (before := states()) != ["running", "running", "queued", "queued"] and time.monotonic() < deadline:
        time.sleep(0.05)
    assert before == ["running", "running", "queued", "queued"], f"before: {before}"
    # Without cgroups nothing can be frozen.
    if not jobs.account:
        expect(jobs.call("pause", name), out=r"^tested-waiting-0.*paused\ntested-waiting-1.*paused\n$")
        expect(jobs.call("resume", name), out=r"resumed")
    expect(jobs.call("stop", name), out=rf"^{re.escape(name)}: 4 stopped\n$")
    assert states() == ["stopped"] * 4, f"after: {states()}"
    started = [number for number in (2, 3) if jobs.record(f"tested-waiting-{number}").get("started")]
    assert not started, f"started while the sweep was stopped: {started}"
    expect(jobs.call("wait", name), code=130, out=rf"{re.escape(name)}: 4 stopped\n$")
    # The only running sweep needs no name.
    name = expect(jobs.call("run", "--detach", str(path))).stdout.strip()
    jobs.running("tested-waiting-0")
    expect(jobs.call("stop"), out=rf"^{re.escape(name)}: 4 stopped\n$")
    expect(jobs.call("rm", "--force", name))


def test_resume_runs_what_has_not_succeeded_and_what_is_new(jobs):
    """In the same sweep; numbers and names stay."""
    path = prepare(jobs, SWEEP, "resuming")
    expect(jobs.call("run", "--quiet", "--resume", str(path)), code=1)
    directory = path.parent
    attempts = lambda: {one.parent.name: one.read_text().count("x") for one in directory.glob("runs/*/attempts")}  # noqa: E731
    assert attempts() == {"1e-1-small": 1, "1e-1-大": 1, "5-small": 1, "5-大": 1}, f"at first: {attempts()}"
    (directory / "fixed").touch()
    answer = expect(jobs.call("run", "--no-logs", "--resume", str(path)), error=r"tested-sweep-2\.2 +5 +small +succeeded")
    assert attempts() == {"1e-1-small": 1, "1e-1-大": 1, "5-small": 2, "5-大": 1} and answer.stderr.count("succeeded  ") >= 4, \
        f"resumed: {attempts()}: {answer.stderr}"
    path.write_text(SWEEP.replace("[1e-1, 5]", "[7, 5.0, 0.10]"))
    expect(jobs.call("run", "--no-logs", "--resume", str(path)), error=r"tested-sweep-4\.\d+ +7 +small +succeeded")
    assert attempts() == {"1e-1-small": 1, "1e-1-大": 1, "5-small": 2, "5-大": 1, "7-small": 1, "7-大": 1}, f"with new values: {attempts()}"
    expect(jobs.call("run", "--resume", str(path)), out="^$", error="all of its combinations have succeeded")
    _, rows = table(expect(jobs.call("ps", "tested-sweep")).stdout)
    assert len(rows) == 6 and "tested-sweep-0.1" in rows, f"the sweep: {rows}"
    other = prepare(jobs, SWEEP, "elsewhere")
    expect(jobs.call("run", "--resume", str(other)), code=125, error="is of another job file")
    expect(jobs.call("rm", "tested-sweep"))


def test_commands_about_one_job_refuse_a_sweep(jobs):
    """Wrong metrics and `--resume` without a matrix are errors."""
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


def test_a_link_does_not_mount_another_place_of_the_host(jobs):
    """A link where the directory of a role's combination is."""
    place = prepare(jobs, LINKED, "linked").parent
    answer = jobs.call("run", str(place / "job.yaml"))
    assert answer.returncode != 0 and "`b` in `" in answer.stderr and "is a symbolic link" in answer.stderr, \
        f"exit {answer.returncode}: {answer.stdout}{answer.stderr}"
    assert "root:" not in answer.stdout, "the link was followed"
    record = jobs.record("tested-linked")
    states = {task["task"]: task["state"] for task in record["tasks"]}
    assert states["first-0"] == "succeeded" and states["second-m0-0"] != "succeeded", states


def test_a_matrix_on_a_role_runs_in_groups(jobs):
    """Prepare, five groups of tasks of which two run at a time, and an evaluation of all."""
    copy = copy_example(jobs, "local-tune")
    expect(jobs.call("run", *jobs.unenforced, str(copy), seconds=60))
    record = jobs.record("local-tune")
    check_record(record)
    times = {task["task"]: (task.get("started", ""), task.get("ended", "")) for task in record["tasks"]}
    trainings = [times[f"train-m{number}-0"] for number in range(5)]
    assert not any(times["prepare-0"][1] > begin for begin, _ in trainings) and not any(end > times["evaluate-0"][0] for _, end in trainings), \
        f"order: {times}"
    for begin, _ in trainings:
        assert sum(other[0] <= begin < other[1] for other in trainings) <= 2, f"more than two at a time: {times}"
    assert len(list(copy.glob("runs/rate-*-batch-*/model.json"))) == 5 and (copy / "runs/best.json").exists(), \
        f"outputs: {sorted(copy.glob('runs/**'))}"
    losses = {one["task"]: one["value"] for one in record["metrics"] if one["name"] == "loss"}
    best = [one["value"] for one in record["metrics"] if one["name"] == "best_loss"]
    assert len(losses) == 5 and len(best) == 1 and abs(min(losses.values()) - best[0]) <= 1e-4, f"metrics: {record['metrics']}"
    headings, rows = table(expect(jobs.call("ps", "local-tune")).stdout)
    assert headings[:2] == ["TASK", "VALUES"] and "LOSS" in headings and rows["train-m4-0"][1] == "rate=0.01 batch=16", f"table: {headings} {rows}"
    lines = expect(jobs.call("logs", "local-tune", "train")).stdout
    assert lines.count("epoch 40: loss") == 5 and "best of" not in lines, f"logs of the role: {lines}"
