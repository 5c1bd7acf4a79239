"""Tests the verdict on each kind of end: faults of one rank in a gang of four, named with the right task, cause and next step.

docs/guides/operate.md has a table of what was said for each; `WROTE=FILE` writes its rows.
"""

import json
import os
import time

import pytest

from command_line import SECONDS, run_roles
from gang import FAULTS, faults, fits, gang, wrote

pytestmark = [pytest.mark.isolated, pytest.mark.duration(30)]
everybody = pytest.mark.accounts("root", slow="range")


def end_of(jobs, name, roles, code=1, end=r"failed: .*", **more):
    """Runs a job to its bad end; returns the verdict on it, the seconds that it took, and its record."""
    begin = time.monotonic()
    events, record = run_roles(jobs, name, roles, code, end, **more)
    seconds = time.monotonic() - begin
    assert seconds < 60, f"{seconds} s"
    verdict = record["end"]["verdict"]
    last = events[-1]["detail"]
    assert last["verdict"] == verdict, last
    jobs.call("rm", "--force", name)
    return verdict, seconds, record


@everybody
@pytest.mark.together(3)
@pytest.mark.parametrize("fault", faults())
def test_the_faulty_rank_of_a_gang_is_named(all_jobs, fault):
    name = "verdict-" + fault.lower().replace(" ", "-")
    verdict, _, record = end_of(all_jobs, name, gang(FAULTS[fault][0]), distributed={"framework": "ddp", "roles": ["rank"]})
    assert record["end"]["task"] == "rank-2", record["end"]
    fits(verdict, fault)
    wrote(fault, "rank-2", verdict)


@pytest.mark.together(3)
@pytest.mark.parametrize("code, kind", [(1, "node"), (87, "user error")])
def test_a_failed_check_names_the_node_or_the_job(all_jobs, code, kind):
    role = gang(preflight=[{"run": f"[ $JOBC_INDEX != 2 ] || exit {code}"}])
    verdict, _, record = end_of(all_jobs, f"verdict-check-{code}", role)
    assert record["end"]["task"] == "rank-2" and verdict["kind"] == kind, record["end"]
    assert f"preflight failed: run: [ $JOBC_INDEX != 2 ] || exit {code}: exit code {code} (rank-2 on " in "; ".join(verdict["evidence"]), verdict
    wrote(f"failed check of the {kind}", "rank-2", verdict)


@everybody
def test_each_attempt_keeps_its_verdict(all_jobs):
    """Also those before the last one; tasks that were stopped for another have none."""
    role = {"run": "echo x >> $JOBC_JOB.$JOBC_INDEX; if [ $(wc -l < $JOBC_JOB.$JOBC_INDEX) = 1 ]; then import_; fi; sleep 0.5", "retry": {"max": 1, "backoff": "0s"}}
    where = all_jobs.directory / "w"
    where.mkdir(mode=0o777, exist_ok=True)
    where.chmod(0o777)
    role["workdir"], role["outputs"] = "/w", ["w"]
    _, record = run_roles(all_jobs, "verdict-attempts", {"main": role}, 0, "succeeded: .*", outputs={"w": {"source": str(where), "mount": "/w"}})
    task = record["tasks"][0]
    assert task["earlier"][0]["verdict"]["kind"] == "user error", task
    assert task["verdict"] == {"kind": "success"}, task
    shown = all_jobs.call("inspect", "verdict-attempts").stdout
    assert "main-0, attempt 1: exit 127: a command was not found (user error)" in shown, shown
    all_jobs.call("rm", "--force", "verdict-attempts")


@everybody
def test_a_time_limit_and_a_missing_program_are_told_apart(all_jobs):
    slow = {"main": {"run": "sleep 60", "timeout": "1s", "grace_period": "1s"}}
    verdict, _, _ = end_of(all_jobs, "verdict-slow", slow)
    assert (verdict["kind"], verdict["evidence"]) == ("timeout", ["time limit 1s reached"]), verdict
    wrote("time limit", "main-0", verdict)
    absent = {"main": {"run": ["no-such-program"]}}
    verdict, _, _ = end_of(all_jobs, "verdict-absent", absent, end=r".*")
    assert verdict["kind"] == "user error" and "no-such-program" in verdict["evidence"][0], verdict
    wrote("missing program", "main-0", verdict)


def test_used_up_memory_is_seen_by_the_kernels_counter(all_jobs):
    """Whatever the program makes of it."""
    role = gang("data = bytearray(200 << 20)", resources={"memory": "64MiB"})
    verdict, _, record = end_of(all_jobs, "verdict-memory", role)
    assert record["end"]["task"] == "rank-2" and verdict["kind"] == "out of memory", record["end"]
    assert "64 MiB" in verdict["evidence"][0] and "resources.memory" in verdict["next"], verdict
    wrote("memory used up", "rank-2", verdict)


@everybody
def test_a_lost_job_is_the_fault_of_who_killed_it(all_jobs):
    run = all_jobs.run(all_jobs.job("verdict-lost"))
    record = all_jobs.running("verdict-lost")
    os.kill(record["supervisor"]["pid"], 9)
    run.communicate(timeout=SECONDS)
    record = all_jobs.until("verdict-lost", lambda record: record["state"] == "lost")
    verdict = record["end"]["verdict"]
    assert verdict["kind"] == "infrastructure" and "supervisor" in verdict["next"], verdict
    assert {task["verdict"]["kind"] for task in record["tasks"]} == {"infrastructure"}, record["tasks"]
    wrote("killed supervisor", "all", verdict)
    all_jobs.call("rm", "--force", "verdict-lost")


@everybody
def test_people_and_programs_read_the_same(all_jobs):
    run = all_jobs.call("run", *all_jobs.unenforced, all_jobs.job("verdict-shown", "import_x", instances=1))
    assert "user error; " in run.stderr, run.stderr
    table = all_jobs.call("ps", "verdict-shown").stdout
    assert table.splitlines()[0].endswith("VERDICT") and "user error" in table, table
    waited = all_jobs.call("wait", "verdict-shown")
    assert waited.stdout.count("\n") == 1 and "user error; " in waited.stderr, waited
    printed = all_jobs.call("wait", "--format", "json", "verdict-shown").stdout
    assert json.loads(printed)["end"]["verdict"]["kind"] == "user error", printed
    events = all_jobs.call("events", "verdict-shown").stdout
    assert ", verdict: user error" in events, events
    where = all_jobs.directory / "report"
    where.mkdir()
    where.chmod(0o777)
    report = where / "report.html"
    all_jobs.call("report", "-o", str(report), "verdict-shown")
    assert "user error" in report.read_text(), report
    all_jobs.call("rm", "--force", "verdict-shown")


@everybody
def test_healthy_gangs_succeed_without_a_word(all_jobs):
    verdicts = set()
    for number in range(3):
        name = f"verdict-healthy-{number}"
        _, record = run_roles(all_jobs, name, gang(env={"STEPS": 5}), 0, "succeeded: .*")
        verdicts |= {task["verdict"]["kind"] for task in record["tasks"]}
        assert "verdict" not in record["end"], record["end"]
        all_jobs.call("rm", "--force", name)
    assert verdicts == {"success"}


def test_memory_grows_after_an_attempt_that_ran_out_of_it(all_jobs):
    """The limit of the cgroup is that of the record, and other failures are final."""
    script = "python3 -c 'data = bytearray(100 << 20)' || true; exit 7"
    role = {"run": script, "resources": {"memory": "64MiB"}, "retry": {"max": 3, "on": ["out of memory"], "memory": 1.5, "max_memory": "120MiB", "backoff": "0s"}}
    _, record = run_roles(all_jobs, "verdict-grows", {"main": role}, 1, "failed: main-0, attempt 3: exit 7")
    task = record["tasks"][0]
    assert [one["verdict"]["kind"] for one in [*task["earlier"], task]] == ["out of memory", "out of memory", "user error"], task
    assert task["limits"]["memory_bytes"] == 120 << 20, task
    assert "of 96 MiB" in task["earlier"][1]["reason"], task
    assert record["claim"]["memory_bytes"] == 120 << 20, record["claim"]
    all_jobs.call("rm", "--force", "verdict-grows")


@everybody
def test_a_run_is_repeated_with_its_differences(all_jobs):
    path = all_jobs.directory / "verdict-again.yaml"
    path.write_text("""\
version: 1
name: verdict-again
image: host
params: {code: 3}
roles:
  main:
    resources: {ports: {http: auto}}
    run: exit ${{ params.code }}
""")
    assert all_jobs.call("run", str(path)).returncode == 1
    answer = all_jobs.call("run", "--retry-of", "verdict-again.1", "--set", "code=0")
    assert answer.returncode == 0, answer.stderr
    shown = answer.stderr.split("jobc: main-0 started")[0]
    assert "changes since verdict-again.1" in shown and "exit 3" in shown and "exit 0" in shown, answer.stderr
    assert "port" not in shown, answer.stderr
    same = all_jobs.call("run", str(path), "--retry-of", "verdict-again.1", "--dry-run")
    assert same.returncode == 0 and "no difference from `verdict-again.1`" in same.stderr, same.stderr
    unknown = all_jobs.call("run", "--retry-of", "verdict-nothing")
    assert unknown.returncode != 0 and "verdict-nothing" in unknown.stderr, unknown.stderr
    path.unlink()
    gone = all_jobs.call("run", "--retry-of", "verdict-again.1")
    assert gone.returncode != 0 and "is not there" in gone.stderr, gone.stderr
    for run in ("verdict-again.1", "verdict-again.2"):
        all_jobs.call("rm", "--force", run)
