"""Tests the checks before a command: what each says when it passes and when it fails, whose fault that is, and that it uses up no retry."""

import os

import pytest

from command_line import run_roles

pytestmark = [pytest.mark.isolated, pytest.mark.duration(30)]
everybody = pytest.mark.accounts("root", slow="range")

# Another clock for the second task: Python imports a module of this name as it starts.
CLOCK = """
import os, time
real = time.time
if os.environ.get("jobc_task") == "train-1":
    time.time = lambda: real() + 5
"""


def lines_of(jobs, name):
    answer = jobs.call("logs", name)
    return [line for line in (answer.stderr + answer.stdout).splitlines() if "preflight" in line or "command" in line]


def fails(jobs, name, checks, kind, said, roles=None, **more):
    """Runs a job whose checks fail, and returns its events; the evidence has the task, the node and what was measured."""
    roles = roles or {"train": {"run": "echo the command"}}
    roles = {role: {**what, "preflight": checks} for role, what in roles.items()}
    events, record = run_roles(jobs, name, roles, 1, "failed: .*", **more)
    verdict = record["end"]["verdict"]
    evidence = "; ".join(verdict["evidence"])
    fault = "node" if kind == "node" else "job"
    assert verdict["kind"] == kind and said in evidence, verdict
    assert f"({record['end']['task']} on {os.uname().nodename}: the {fault} is at fault)" in evidence, verdict
    assert f"{record['end']['task']} | the command" not in jobs.call("logs", name).stdout
    jobs.call("rm", "--force", name)
    return events


@everybody
def test_checks_pass_before_the_command(all_jobs):
    jobs = all_jobs
    (jobs.directory / "data").mkdir(exist_ok=True)
    (jobs.directory / "data/file").write_text("x")
    checks = ["data", {"disk": "1MiB"}, {"disk": "1KiB", "path": "/"}, {"run": "echo \"it's fine\" >&2", "timeout": "5s"}]
    roles = {"train": {"run": "echo the command $0; exit 3", "preflight": checks}}
    data = {"in": {"source": str(jobs.directory / "data"), "mount": "/mnt"}}
    _, record = run_roles(jobs, "checked", roles, 1, "failed: train-0: exit 3", data=data)
    assert record["end"]["verdict"]["kind"] == "user error", record["end"]
    lines = lines_of(jobs, "checked")
    assert "data: /mnt/file can be read" in lines[0] and "GiB free in ." in lines[1] and "free in /" in lines[2], lines
    assert "the command" in lines[-1], lines
    jobs.call("rm", "--force", "checked")


@everybody
def test_a_failed_check_names_task_node_and_value(all_jobs):
    jobs = all_jobs
    fails(jobs, "small", [{"disk": "8000TiB"}], "node", "disk: ")
    fails(jobs, "sick", [{"run": "exit 4"}], "node", "run: exit 4: exit code 4")
    fails(jobs, "slow", [{"run": "sleep 20", "timeout": "1s"}], "node", "run: sleep 20: no end within 1 s")
    fails(jobs, "wrong", [{"run": "no-such-program"}], "user error", "run: no-such-program: exit code 127")
    fails(jobs, "mine", [{"run": "exit 87"}], "user error", "run: exit 87: exit code 87")
    (jobs.directory / "empty").mkdir(exist_ok=True)
    data = {"in": {"source": str(jobs.directory / "empty"), "mount": "/mnt"}}
    fails(jobs, "empty", ["data"], "user error", "data: /mnt has no files", data=data)


@everybody
def test_failed_checks_use_up_no_retry(all_jobs):
    """A node's fault is looked at again, as often as the command may be tried; the job's own fault is not."""
    jobs = all_jobs
    again = {"train": {"run": "echo the command", "retry": {"max": 2, "backoff": "0s"}}}
    events = fails(jobs, "again", [{"run": "exit 1"}], "node", "exit code 1", again)
    assert [event["event"] for event in events].count("retried") == 2, events
    events = fails(jobs, "final", [{"run": "exit 87"}], "user error", "exit code 87", again)
    assert "retried" not in [event["event"] for event in events], events
    # The second attempt of the checks passes, and the command has both of its own.
    where = jobs.directory / "counted"
    where.mkdir(mode=0o777, exist_ok=True)
    where.chmod(0o777)
    (where / "count").unlink(missing_ok=True)
    check = "echo x >>/o/count; [ $(wc -l </o/count) != 1 ]"
    roles = {"train": {"run": "echo the command; exit 5", "preflight": [{"run": check}], "retry": {"max": 1, "backoff": "0s"}}}
    _, record = run_roles(jobs, "both", roles, 1, "failed: train-0, attempt 3: exit 5",
                          outputs={"o": {"source": str(where), "mount": "/o"}})
    assert record["tasks"][0]["attempt"] == 3, record["tasks"]
    jobs.call("rm", "--force", "both")


@pytest.mark.parametrize("network", ("host", "job"))
@pytest.mark.accounts("root", slow="range")
def test_tasks_meet_and_compare_their_clocks(all_jobs, network):
    jobs = all_jobs
    peers = {"instances": 3, "preflight": ["network", "clock"], "run": "echo the command"}
    more = {"distributed": {"framework": "torchrun", "roles": ["train"]}, "network": network}
    _, record = run_roles(jobs, "meets", {"train": peers}, 0, "succeeded: .*", **more)
    lines = "\n".join(lines_of(jobs, "meets"))
    assert lines.count("3 tasks meet at port") == 3 and lines.count("s from the first task") == 3, lines
    assert lines.count("the command") == 3 and record["state"] == "succeeded", lines
    jobs.call("rm", "--force", "meets")


@everybody
def test_a_task_that_does_not_come_is_named(all_jobs):
    jobs = all_jobs
    # The second task comes too late, because of a check before.
    roles = {"train": {"instances": 2, "run": "echo the command", "preflight": [{"run": "[ \"$jobc_task\" = train-0 ] || sleep 60"}, {"network": "1s"}]}}
    _, record = run_roles(jobs, "alone", roles, 1, "failed: .*", distributed={"framework": "torchrun", "roles": ["train"]})
    assert "network: rank 1 did not reach port" in "; ".join(record["end"]["verdict"]["evidence"]), record["end"]
    jobs.call("rm", "--force", "alone")


@everybody
def test_a_clock_that_differs(all_jobs):
    jobs = all_jobs
    train = {"train": {"instances": 2, "run": "echo the command", "env": {"PYTHONPATH": "/tested"},
                       "files": {"/tested/sitecustomize.py": {"content": CLOCK}}}}
    more = {"distributed": {"framework": "torchrun", "roles": ["train"]}}
    fails(jobs, "skewed", [{"clock": "2s"}], "node", "s ahead of that of the first task, 2 s allowed", train, **more)


@everybody
def test_what_the_image_lacks_is_the_fault_of_the_job(all_jobs):
    train = {"train": {"instances": 2, "run": "echo the command", "env": {"PYTHONPATH": "/tested"},
                       "files": {"/tested/torch.py": {"content": "raise ImportError('libtorch is missing')\n"}}}}
    more = {"distributed": {"framework": "torchrun", "roles": ["train"]}}
    fails(all_jobs, "bare", ["allreduce"], "user error", "allreduce: the image has no PyTorch: libtorch is missing", train, **more)
