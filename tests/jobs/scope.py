#!/usr/bin/env python3
"""Tests limits of an unprivileged user without delegated cgroups: `jobc run` has the user's systemd create a scope.

The virtual machine is User-Mode Linux on this host's files (`tests/vm/uml -c systemd`); this file starts it and runs again in it. The
user has a systemd with delegated controllers, and works in a login session: a scope from which the user cannot move processes.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "runtime"))

import user  # noqa: E402
from harness import REPOSITORY, Harness, scratch  # noqa: E402
from limits import OUT_OF_MEMORY, LIMITS, V2  # noqa: E402
from login import NO_DEFAULT_DEPENDENCIES, Login  # noqa: E402
from runtime import binary  # noqa: E402

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


def scope_left(session, unit):
    """What is left of a scope after its job has ended."""
    group = session.apps / unit
    if not until(lambda: not group.exists(), 10):
        yield f"{group} is left, with {[(str(path), path.read_text()) for path in group.rglob('cgroup.procs')]}"
    if (state := session.show(unit, "ActiveState").get("ActiveState")) != "inactive":
        yield f"{unit} is {state}"


def unexpected_result(what, result, code=0, *words):
    output = result.stdout + result.stderr
    if result.returncode != code or not all(word in output for word in words):
        yield f"{what}: exit code {result.returncode}, not {code} with {words}: {output[-1500:]}"


def read_back(session):
    """The limits inside the task, in the kernel's files, and in `exec`; the scope's unit properties; the end."""
    started = session.call("run", "-d", session.job(LIMITS))
    # A detached job ends with the user's systemd, which is reported.
    yield from unexpected_result("`jobc run -d`", started, 0, "enable-linger")
    if started.returncode:
        return
    unit, scope = "jobc-tested-limits.1.scope", session.apps / "jobc-tested-limits.1.scope"
    until(lambda: "cpu.max" in session.call("logs", "tested-limits").stdout)
    lines = session.call("logs", "tested-limits").stdout.splitlines()
    shown = dict(line.split("| ")[-1].split(" ", 1) for line in lines if " " in line)
    for name, value in V2.items():
        if shown.get(name) != value:
            yield f"inside, {name} is {shown.get(name)!r}, not {value!r}"
    record = session.record("tested-limits")
    group = member(record["tasks"][0]["process"]["pid"])
    if group != scope / "jobc/tested-limits.1/main-0" or record.get("scope") != unit or any("limit" in note for note in record["notes"]):
        yield f"the task is in {group}, and the record names {record.get('scope')}, with {record.get('notes')}"
    for name, value in V2.items():
        if (found := (group / name).read_text().strip()) != value:
            yield f"outside, {name} is {found!r}, not {value!r}"
    if (own := member(record["supervisor"]["pid"])) != scope / "supervisor":
        yield f"the supervisor is in {own}"
    output = session.show(unit, "ActiveState", "Delegate", "Slice", "Description", "TasksMax")
    wanted = {"ActiveState": "active", "Delegate": "yes", "Slice": "app.slice", "Description": "jobc job tested-limits.1", "TasksMax": "infinity"}
    if output != wanted:
        yield f"systemd says {output}"
    joined = session.call("exec", "tested-limits", "--", "sh", "-c", "cat /proc/self/cgroup /sys/fs/cgroup/memory.max; exit 3")
    yield from unexpected_result("`jobc exec` from the session", joined, 3, "0::/\n", V2["memory.max"])
    joined = session.call("exec", "tested-limits", "--", "cat", "/proc/self/cgroup", group=session.delegated_group())
    yield from unexpected_result("`jobc exec` from a delegated cgroup", joined, 0, "0::/\n")
    yield from unexpected_result("`jobc stats`", session.call("stats", "--no-stream", "tested-limits"), 0, "main-0", "96.0 MiB")
    # A second run has its own scope, with another name if the name is taken.
    subprocess.Popen(session.words("systemd-run", "--user", "--quiet", "--scope", "--unit=jobc-tested-limits.2", "sleep", "600"),
                     env=session.environment())
    until(lambda: len(session.scopes()) == 2)
    yield from unexpected_result("a second run", session.call("run", "-d", session.job(LIMITS)))
    second = session.record("tested-limits.2")["scope"]
    if second != f"jobc-tested-limits.2-{session.record('tested-limits.2')['supervisor']['pid']}.scope":
        yield f"the second run is in {second}"
    for run, scope in (("tested-limits.2", second), ("tested-limits.1", unit)):
        yield from unexpected_result("`jobc stop`", session.call("stop", "--grace", "0s", run))
        yield from scope_left(session, scope)
    session.call("--user", "stop", "jobc-tested-limits.2.scope", program="systemctl")


def memory(session):
    """In the foreground: more memory than the limit kills the task, which is reported as the reason."""
    yield from unexpected_result("a job out of memory", session.call("run", session.job(OUT_OF_MEMORY)), 1, "out of memory: used 48 MiB of 48 MiB")
    yield from scope_left(session, "jobc-tested-hungry.1.scope")


def interrupted(session):
    """Ctrl-C stops a foreground job; a scope that systemctl stops ends its job."""
    with session.spawn("run", session.job(MANY)) as running:
        until(lambda: len(list(session.apps.glob("jobc-*/jobc/*/main-*"))) == 12)
        until(lambda: list(session.apps.glob("jobc-*/jobc/*/free-0/cgroup.procs")), 10)
        # A task without limits is next to the others, with memory accounting.
        if len(list(session.apps.glob("jobc-*/jobc/*/free-0/memory.current"))) != 1:
            yield f"the task without limits is in another cgroup: {list(session.apps.rglob('free-0'))}"
        limits = {path.read_text() for path in session.apps.glob("jobc-*/jobc/*/main-*/memory.max")}
        if limits != {f"{32 << 20}\n"}:
            yield f"the limits of many tasks are {limits}"
        time.sleep(1)
        running.send_signal(signal.SIGINT)
        output, _ = running.communicate(timeout=SECONDS)
        if running.returncode != 130:
            yield f"after SIGINT: exit code {running.returncode}: {output[-1500:]}"
    yield from scope_left(session, "jobc-tested-many.1.scope")
    session.call("run", "-d", session.job(LIMITS))
    until(lambda: session.record("tested-limits").get("state") == "running")
    record = session.record("tested-limits")
    yield from unexpected_result("`systemctl stop`", session.call("--user", "stop", record["scope"], program="systemctl"))
    if not until(lambda: session.record(record["id"]).get("state") == "stopped"):
        yield f"its job is {session.record(record['id']).get('state')}"
    yield from scope_left(session, record["scope"])


def killed(session):
    """When the supervisor is killed, its tasks and the scope end."""
    session.call("run", "-d", session.job(LIMITS))
    until(lambda: session.record("tested-limits").get("state") == "running")
    record = session.record("tested-limits")
    task = record["tasks"][0]["process"]["pid"]
    os.kill(record["supervisor"]["pid"], signal.SIGKILL)
    yield from scope_left(session, record["scope"])
    if Path(f"/proc/{task}/cgroup").exists():
        yield "its task is still running"
    yield from unexpected_result("`jobc ps`", session.call("ps", "--all"), 0, "lost")


def run_bundle(session):
    """`jobc run` of a bundle: hooks are in the scope too."""
    session.call("build", "-o", str(session.home / "built"), session.job(LIMITS.replace("sleep 600", "sleep 1")))
    found = next(session.home.rglob("oci/main-0/config.json"))
    seen = session.home / "seen"
    config = json.loads(found.read_text())
    config["hooks"] = {"createRuntime": [{"path": "/bin/sh", "args": ["sh", "-c", f"cat /proc/self/cgroup >{seen}"]}]}
    found.write_text(json.dumps(config))
    dry = session.call("run", "--dry-run", "--id", "alone", str(found.parent))
    yield from unexpected_result("`--dry-run`", dry, 0, "make the scope `jobc-alone.scope`", "app.slice/jobc-alone.scope/jobc/")
    if session.scopes():
        yield f"`--dry-run` has created {session.scopes()}"
    ran = session.call("run", "--verbose", "--id", "alone", str(found.parent))
    yield from unexpected_result("a bundle", ran, 0, "jobc-alone.scope", *(f"{name} {value}" for name, value in V2.items()))
    if not seen.exists() or not seen.read_text().endswith("app.slice/jobc-alone.scope/supervisor\n"):
        yield f"its hook is in {seen.read_text() if seen.exists() else None}"
    yield from scope_left(session, "jobc-alone.scope")


def scope_not_needed(session):
    """No scope is created without limits, or with a delegated cgroup."""
    yield from unexpected_result("a job without limits", session.call("run", "-d", session.job(UNLIMITED)))
    if session.scopes():
        yield f"there are {session.scopes()}"
    session.call("stop", "--grace", "0s", "tested-free")
    result = session.call("run", session.job(OUT_OF_MEMORY), group=session.delegated_group(), environment=session.no_systemd)
    yield from unexpected_result("a user with a cgroup", result, 1, "out of memory: used 48 MiB of 48 MiB")
    # This cgroup is in a unit of the system instance, not of the user's systemd.
    session.call("run", "-d", session.job(LIMITS), group=session.delegated_group())
    until(lambda: session.record("tested-limits").get("state") == "running")
    joined = session.call("exec", "tested-limits", "--", "cat", "/proc/self/cgroup")
    yield from unexpected_result("`jobc exec` from the session", joined, 0, "0::/\n")
    session.call("stop", "--grace", "0s", "tested-limits")


def unavailable(session):
    """If systemd cannot be reached, or lacks a controller, the job is rejected with the reason and what to do."""
    words = ("cannot create cgroups", "cannot reach this user's systemd", "log in by ssh", "--allow-unenforced")
    yield from unexpected_result("without systemd", session.call("run", session.job(LIMITS), environment=session.no_systemd), 125, *words)
    targets = session.directory / "weighed.yaml"
    targets.write_text(IO_WEIGHT)
    weighed = ["--targets", str(targets), session.job(LIMITS)]
    words = ("does not have the controllers `io`", "Delegate=cpu cpuset io memory pids")
    lacking = session.call("run", *weighed)
    yield from unexpected_result("a missing controller", lacking, 125, *words)
    if "`memory`" in lacking.stderr:
        yield f"an enforced limit is reported as unenforced: {lacking.stderr}"
    yield from unexpected_result("a missing controller with --allow-unenforced", session.call("run", "-d", "--allow-unenforced", *weighed))
    until(lambda: session.record("tested-limits").get("state") == "running")
    record = session.record("tested-limits")
    if not any("`io`" in note or "`blockIO`" in note for note in record.get("notes", [])):
        yield f"the missing controller `io` is not reported: {record.get('notes')}"
    if (member(record["tasks"][0]["process"]["pid"]) / "memory.max").read_text().strip() != V2["memory.max"]:
        yield "the memory limit is not enforced"
    session.call("stop", "--grace", "0s", "tested-limits")
    yield from scope_left(session, record["scope"])


def doctor(session):
    """`jobc doctor` reports how limits are enforced."""
    report = json.loads(session.call("doctor", "--format", "json").stdout)
    found = next(check for check in report["checks"] if check["name"] == "cgroup.delegated")
    if (found["status"], found["found"]) != ("ok", "this user's systemd creates a scope for each job, with memory, pids, cpu"):
        yield f"{found}"
    if report["containers"]["user"]["status"] != "ok":
        yield f"{report['containers']}"


def log_out(session):
    """The user's systemd is found without the variables of a login session; when it ends, so do the jobs in its scopes."""
    without = {"XDG_RUNTIME_DIR": "", "XDG_STATE_HOME": str(session.home / "state")}
    yield from unexpected_result("without variables", session.call("run", session.job(OUT_OF_MEMORY), environment=without), 1, "out of memory: used 48 MiB of 48 MiB")
    session.call("run", "-d", session.job(LIMITS))
    until(lambda: session.record("tested-limits").get("state") == "running")
    record = session.record("tested-limits")
    subprocess.run(["systemctl", "stop", f"{session.login.unit}.service"], check=True, timeout=SECONDS)
    task = Path(f"/proc/{record['tasks'][0]['process']['pid']}")
    if not until(lambda: not task.exists(), 10):
        yield "its task is still running"
    if not until(lambda: session.record("tested-limits").get("state") in ("stopped", "lost"), 10):
        yield f"its job is {session.record('tested-limits').get('state')}"
    if session.login.group.exists():
        yield f"{session.login.group} is left"


CASES = [read_back, memory, interrupted, killed, run_bundle, scope_not_needed, unavailable, doctor, log_out]


def start_vm(harness):
    """Starts the virtual machine, and this file in it."""
    if os.geteuid() != 0:
        harness.needs("root")
    for tool in ("linux.uml", "dbus-daemon", "systemctl"):
        harness.tool(tool)
    if not os.access("/lib/systemd/systemd", os.X_OK):
        harness.needs("systemd")
    # Users cannot be created in the virtual machine.
    user.with_range()
    os.environ["JOBC_IN_SYSTEMD"], os.environ["JOBC"] = "yes", str(binary())
    vm = str(REPOSITORY / "tests/vm/uml")
    os.execv(vm, [vm, "-c", "systemd", "-t", "280", "-m", "1G", sys.executable, __file__, *sys.argv[1:]])


def main():
    harness = Harness("scope", __doc__.split("\n", maxsplit=1)[0])
    harness.parse()
    if "JOBC_IN_SYSTEMD" not in os.environ:
        start_vm(harness)
    with scratch() as directory:
        session = Session(directory, user.with_range())
        session.start()
        for case in CASES:
            name = case.__name__.replace("_", " ")
            if harness.wants(name):
                try:
                    harness.check(name, case(session))
                except (OSError, ValueError, KeyError, IndexError, subprocess.SubprocessError) as error:
                    harness.check(name, [f"{type(error).__name__}: {error}"])
    harness.end()


if __name__ == "__main__":
    main()
