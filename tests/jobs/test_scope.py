"""Tests limits of an unprivileged user without delegated cgroups: `jobc run` has the user's systemd create a scope.

It runs in a virtual machine whose first process is systemd. The user has a systemd with delegated controllers, and works in a login
session: a scope from which the user cannot move processes.
"""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

import user
from harness import scratch
from limits import LIMITS, OUT_OF_MEMORY, V2
from login import NO_DEFAULT_DEPENDENCIES, Login
from runtime import binary

pytestmark = [pytest.mark.vm(cgroups="systemd"), pytest.mark.duration(60), pytest.mark.slow]
SECONDS = 60
TREE = Path("/sys/fs/cgroup")
# No `io`, as most distributions have it.
DELEGATED = "cpu memory pids"

UNLIMITED = """\
version: 1
name: tested-free
image: host
network: none
roles:
  main: {shell: sh, run: "sleep 600"}
"""

MANY = """\
version: 1
name: tested-many
image: host
network: none
roles:
  main:
    instances: 12
    shell: sh
    resources: {memory: 32MiB}
    run: "sleep 600"
  free: {shell: sh, run: "sleep 600"}
"""

# A controller that is not delegated to the user's systemd.
IO_WEIGHT = """\
version: 1
default: [here]
targets:
  here: {backends: [oci], cgroup: {io_weight: 50}}
"""


class Session:
    """This tree's command line, as the user in a login session."""

    def __init__(self, directory, account):
        self.directory, self.account = directory, account
        self.login = Login(account.uid, account.gid, DELEGATED, "tested-user", f"user.slice/user-{account.uid}.slice")
        self.session = self.login.slice / "tested-session.scope"
        self.home = directory / "home"
        self.home.mkdir(mode=0o700)
        os.chown(self.home, account.uid, account.gid)
        self.apps = self.login.group / "app.slice"
        # An environment without the user's systemd, and without jobs started with it.
        self.no_systemd = {"XDG_RUNTIME_DIR": str(self.home), "DBUS_SESSION_BUS_ADDRESS": ""}

    def start(self):
        self.login.start()
        subprocess.Popen(["systemd-run", "--quiet", "--scope", f"--unit={self.session.name}", f"--slice={self.login.slice.name}", *NO_DEFAULT_DEPENDENCIES, "sleep", "1000"])
        until(lambda: self.session.exists() and (self.session / "cgroup.procs").read_text())

    def words(self, *words, group=None):
        return ["sh", "-c", f'echo $$ >{group or self.session}/cgroup.procs && exec "$@"', "sh", *self.account.prefix(), *words]

    def environment(self, **more):
        return {"PATH": os.environ["PATH"], "HOME": str(self.home), "JOBC_COLOR": "never", "XDG_RUNTIME_DIR": str(self.login.place)} | more

    def call(self, *words, group=None, environment=None, program=None):
        command = self.words(str(program or binary()), *words, group=group)
        try:
            return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=self.environment(**environment or {}),
                                  timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired as timeout:
            return subprocess.CompletedProcess(timeout.cmd, 124, "", f"timed out after {SECONDS} s")

    def spawn(self, *words):
        return subprocess.Popen(self.words(str(binary()), *words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, env=self.environment())

    def show(self, unit, *properties):
        output = self.call("--user", "show", unit, *(f"--property={name}" for name in properties), program="systemctl").stdout
        return dict(line.split("=", 1) for line in output.splitlines())

    def job(self, text):
        path = self.directory / "job.yaml"
        path.write_text(text)
        return str(path)

    def record(self, name):
        answer = self.call("inspect", "--format", "json", name)
        return json.loads(answer.stdout) if answer.returncode == 0 else {}

    def delegated_group(self):
        """A cgroup with controllers delegated to the user, for which they need no scope."""
        group = self.login.group / "given"
        if not group.exists():
            group.mkdir()
            (self.login.group / "cgroup.subtree_control").write_text("+memory +cpu +pids")
            for path in (group, group / "cgroup.procs"):
                os.chown(path, self.account.uid, self.account.gid)
        return group

    def scopes(self):
        """The cgroups of jobc's scopes."""
        return sorted(self.apps.glob("jobc-*")) if self.apps.exists() else []


def until(true, seconds=SECONDS):
    """Waits until a condition is true; returns whether it became true."""
    deadline = time.monotonic() + seconds
    while not (done := true()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return bool(done)


def member(pid):
    """The cgroup of a process."""
    return TREE / Path(f"/proc/{pid}/cgroup").read_text().strip().removeprefix("0::/")


def check_scope_ended(session, unit):
    """Whether nothing is left of a scope after its job has ended."""
    group = session.apps / unit
    assert until(lambda: not group.exists(), 10), f"{group} is left, with {[(str(path), path.read_text()) for path in group.rglob('cgroup.procs')]}"
    assert (state := session.show(unit, "ActiveState").get("ActiveState")) == "inactive", f"{unit} is {state}"


def check(what, result, code=0, *words):
    output = result.stdout + result.stderr
    assert result.returncode == code and all(word in output for word in words), \
        f"{what}: exit code {result.returncode}, not {code} with {words}: {output[-1500:]}"


@pytest.fixture(scope="module")
def session():
    with scratch() as directory:
        session = Session(directory, user.with_range())
        session.start()
        yield session


def test_limits_of_a_scope_are_read_back(session):
    """The limits inside the task, in the kernel's files, and in `exec`; the scope's unit properties; the end."""
    started = session.call("run", "-d", session.job(LIMITS))
    # A detached job ends with the user's systemd, which is reported.
    check("`jobc run -d`", started, 0, "enable-linger")
    if started.returncode:
        return
    unit, scope = "jobc-tested-limits.1.scope", session.apps / "jobc-tested-limits.1.scope"
    until(lambda: "cpu.max" in session.call("logs", "tested-limits").stdout)
    lines = session.call("logs", "tested-limits").stdout.splitlines()
    shown = dict(line.split("| ")[-1].split(" ", 1) for line in lines if " " in line)
    for name, value in V2.items():
        assert shown.get(name) == value, f"inside, {name} is {shown.get(name)!r}, not {value!r}"
    record = session.record("tested-limits")
    group = member(record["tasks"][0]["process"]["pid"])
    assert group == scope / "jobc/tested-limits.1/main-0" and record.get("scope") == unit and not any("limit" in note for note in record["notes"]), \
        f"the task is in {group}, and the record names {record.get('scope')}, with {record.get('notes')}"
    for name, value in V2.items():
        assert (found := (group / name).read_text().strip()) == value, f"outside, {name} is {found!r}, not {value!r}"
    assert (own := member(record["supervisor"]["pid"])) == scope / "supervisor", f"the supervisor is in {own}"
    output = session.show(unit, "ActiveState", "Delegate", "Slice", "Description", "TasksMax")
    wanted = {"ActiveState": "active", "Delegate": "yes", "Slice": "app.slice", "Description": "jobc job tested-limits.1", "TasksMax": "infinity"}
    assert output == wanted, f"systemd says {output}"
    joined = session.call("exec", "tested-limits", "--", "sh", "-c", "cat /proc/self/cgroup /sys/fs/cgroup/memory.max; exit 3")
    check("`jobc exec` from the session", joined, 3, "0::/\n", V2["memory.max"])
    joined = session.call("exec", "tested-limits", "--", "cat", "/proc/self/cgroup", group=session.delegated_group())
    check("`jobc exec` from a delegated cgroup", joined, 0, "0::/\n")
    check("`jobc stats`", session.call("stats", "--no-stream", "tested-limits"), 0, "main-0", "96.0 MiB")
    # A second run has its own scope, with another name if the name is taken.
    subprocess.Popen(session.words("systemd-run", "--user", "--quiet", "--scope", "--unit=jobc-tested-limits.2", "sleep", "600"),
                     env=session.environment())
    until(lambda: len(session.scopes()) == 2)
    check("a second run", session.call("run", "-d", session.job(LIMITS)))
    second = session.record("tested-limits.2")["scope"]
    assert second == f"jobc-tested-limits.2-{session.record('tested-limits.2')['supervisor']['pid']}.scope", f"the second run is in {second}"
    for run, scope in (("tested-limits.2", second), ("tested-limits.1", unit)):
        check("`jobc stop`", session.call("stop", "--grace", "0s", run))
        check_scope_ended(session, scope)
    session.call("--user", "stop", "jobc-tested-limits.2.scope", program="systemctl")


def test_a_job_out_of_memory_ends_with_the_reason(session):
    """In the foreground: more memory than the limit kills the task, which is reported as the reason."""
    check("a job out of memory", session.call("run", session.job(OUT_OF_MEMORY)), 1, "out of memory: used 48 MiB of 48 MiB")
    check_scope_ended(session, "jobc-tested-hungry.1.scope")


def test_ctrl_c_and_systemctl_end_a_job(session):
    """Ctrl-C stops a foreground job; a scope that systemctl stops ends its job."""
    with session.spawn("run", session.job(MANY)) as running:
        until(lambda: len(list(session.apps.glob("jobc-*/jobc/*/main-*"))) == 12)
        until(lambda: list(session.apps.glob("jobc-*/jobc/*/free-0/cgroup.procs")), 10)
        # A task without limits is next to the others, with memory accounting.
        assert len(list(session.apps.glob("jobc-*/jobc/*/free-0/memory.current"))) == 1, \
            f"the task without limits is in another cgroup: {list(session.apps.rglob('free-0'))}"
        limits = {path.read_text() for path in session.apps.glob("jobc-*/jobc/*/main-*/memory.max")}
        assert limits == {f"{32 << 20}\n"}, f"the limits of many tasks are {limits}"
        time.sleep(1)
        running.send_signal(signal.SIGINT)
        output, _ = running.communicate(timeout=SECONDS)
        assert running.returncode == 130, f"after SIGINT: exit code {running.returncode}: {output[-1500:]}"
    check_scope_ended(session, "jobc-tested-many.1.scope")
    session.call("run", "-d", session.job(LIMITS))
    until(lambda: session.record("tested-limits").get("state") == "running")
    record = session.record("tested-limits")
    check("`systemctl stop`", session.call("--user", "stop", record["scope"], program="systemctl"))
    assert until(lambda: session.record(record["id"]).get("state") == "stopped"), f"its job is {session.record(record['id']).get('state')}"
    check_scope_ended(session, record["scope"])


def test_a_scope_ends_when_its_supervisor_is_killed(session):
    """When the supervisor is killed, its tasks and the scope end."""
    session.call("run", "-d", session.job(LIMITS))
    until(lambda: session.record("tested-limits").get("state") == "running")
    record = session.record("tested-limits")
    task = record["tasks"][0]["process"]["pid"]
    os.kill(record["supervisor"]["pid"], signal.SIGKILL)
    check_scope_ended(session, record["scope"])
    assert not Path(f"/proc/{task}/cgroup").exists(), "its task is still running"
    check("`jobc ps`", session.call("ps", "--all"), 0, "lost")


def test_a_bundle_and_its_hooks_are_in_a_scope(session):
    """`jobc run` of a bundle: hooks are in the scope too."""
    session.call("build", "-o", str(session.home / "built"), session.job(LIMITS.replace("sleep 600", "sleep 1")))
    found = next(session.home.rglob("oci/main-0/config.json"))
    seen = session.home / "seen"
    config = json.loads(found.read_text())
    config["hooks"] = {"createRuntime": [{"path": "/bin/sh", "args": ["sh", "-c", f"cat /proc/self/cgroup >{seen}"]}]}
    found.write_text(json.dumps(config))
    dry = session.call("run", "--dry-run", "--id", "alone", str(found.parent))
    check("`--dry-run`", dry, 0, "make the scope `jobc-alone.scope`", "app.slice/jobc-alone.scope/jobc/")
    assert not session.scopes(), f"`--dry-run` has created {session.scopes()}"
    ran = session.call("run", "--verbose", "--id", "alone", str(found.parent))
    check("a bundle", ran, 0, "jobc-alone.scope", *(f"{name} {value}" for name, value in V2.items()))
    assert seen.exists() and seen.read_text().endswith("app.slice/jobc-alone.scope/supervisor\n"), \
        f"its hook is in {seen.read_text() if seen.exists() else None}"
    check_scope_ended(session, "jobc-alone.scope")


def test_no_scope_is_created_without_limits_or_with_a_delegated_cgroup(session):
    """No scope is created without limits, or with a delegated cgroup."""
    check("a job without limits", session.call("run", "-d", session.job(UNLIMITED)))
    assert not session.scopes(), f"there are {session.scopes()}"
    session.call("stop", "--grace", "0s", "tested-free")
    result = session.call("run", session.job(OUT_OF_MEMORY), group=session.delegated_group(), environment=session.no_systemd)
    check("a user with a cgroup", result, 1, "out of memory: used 48 MiB of 48 MiB")
    # This cgroup is in a unit of the system instance, not of the user's systemd.
    session.call("run", "-d", session.job(LIMITS), group=session.delegated_group())
    until(lambda: session.record("tested-limits").get("state") == "running")
    joined = session.call("exec", "tested-limits", "--", "cat", "/proc/self/cgroup")
    check("`jobc exec` from the session", joined, 0, "0::/\n")
    session.call("stop", "--grace", "0s", "tested-limits")


def test_a_job_is_rejected_without_systemd_or_a_controller(session):
    """If systemd cannot be reached, or lacks a controller, the job is rejected with the reason and what to do."""
    refusing = {"JOBC_ALLOW_UNENFORCED": "false"}
    words = ("cannot create cgroups", "cannot reach this user's systemd", "log in by ssh", "--allow-unenforced")
    check("without systemd", session.call("run", session.job(LIMITS), environment={**session.no_systemd, **refusing}), 125, *words)
    targets = session.directory / "weighed.yaml"
    targets.write_text(IO_WEIGHT)
    weighed = ["--targets", str(targets), session.job(LIMITS)]
    words = ("does not have the controllers `io`", "Delegate=cpu cpuset io memory pids")
    lacking = session.call("run", *weighed, environment=refusing)
    check("a missing controller", lacking, 125, *words)
    assert "`memory`" not in lacking.stderr, f"an enforced limit is reported as unenforced: {lacking.stderr}"
    check("a missing controller with --allow-unenforced", session.call("run", "-d", "--allow-unenforced", *weighed))
    until(lambda: session.record("tested-limits").get("state") == "running")
    record = session.record("tested-limits")
    assert any("`io`" in note or "`blockIO`" in note for note in record.get("notes", [])), \
        f"the missing controller `io` is not reported: {record.get('notes')}"
    assert (member(record["tasks"][0]["process"]["pid"]) / "memory.max").read_text().strip() == V2["memory.max"], "the memory limit is not enforced"
    session.call("stop", "--grace", "0s", "tested-limits")
    check_scope_ended(session, record["scope"])


def test_doctor_reports_how_limits_are_enforced(session):
    """`jobc doctor` reports how limits are enforced."""
    report = json.loads(session.call("doctor", "--format", "json").stdout)
    found = next(check for check in report["checks"] if check["name"] == "cgroup.delegated")
    assert (found["status"], found["found"]) == ("ok", "this user's systemd creates a scope for each job, with memory, pids, cpu"), found
    assert report["containers"]["user"]["status"] == "ok", f"{report['containers']}"


def test_jobs_end_with_the_systemd_of_their_user(session):
    """The user's systemd is found without the variables of a login session; when it ends, so do the jobs in its scopes."""
    without = {"XDG_RUNTIME_DIR": "", "XDG_STATE_HOME": str(session.home / "state")}
    check("without variables", session.call("run", session.job(OUT_OF_MEMORY), environment=without), 1, "out of memory: used 48 MiB of 48 MiB")
    session.call("run", "-d", session.job(LIMITS))
    until(lambda: session.record("tested-limits").get("state") == "running")
    record = session.record("tested-limits")
    subprocess.run(["systemctl", "stop", f"{session.login.unit}.service"], check=True, timeout=SECONDS)
    task = Path(f"/proc/{record['tasks'][0]['process']['pid']}")
    assert until(lambda: not task.exists(), 10), "its task is still running"
    assert until(lambda: session.record("tested-limits").get("state") in ("stopped", "lost"), 10), \
        f"its job is {session.record('tested-limits').get('state')}"
    assert not session.login.group.exists(), f"{session.login.group} is left"
