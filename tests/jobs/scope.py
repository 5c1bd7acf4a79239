#!/usr/bin/env python3
"""Tests limits of an unprivileged user without delegated cgroups: `jobc run` has the user's systemd create a scope.

The machine is User-Mode Linux on this machine's files (`tests/vm/uml -c systemd`); this file starts it and runs again in it. The user has
a systemd that was given some controllers, and works in a session: a scope of the machine's systemd, out of which the user may move nobody.
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
from limits import HUNGRY, LIMITS, V2  # noqa: E402
from login import ALONE, Login  # noqa: E402
from runtime import binary  # noqa: E402

SECONDS = 60
TREE = Path("/sys/fs/cgroup")
# No `io`, as most distributions have it.
DELEGATED = "cpu memory pids"

FREE = """\
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

# A controller that the user's systemd was not given.
WEIGHED = """\
version: 1
default: [here]
targets:
  here: {backends: [oci], cgroup: {io_weight: 50}}
"""


class Session:
    """The command line of this tree as the user has it in a session."""

    def __init__(self, directory, account):
        self.directory, self.account = directory, account
        self.login = Login(account.uid, account.gid, DELEGATED, "tested-user", f"user.slice/user-{account.uid}.slice")
        self.session = self.login.slice / "tested-session.scope"
        self.home = directory / "home"
        self.home.mkdir(mode=0o700)
        os.chown(self.home, account.uid, account.gid)
        self.apps = self.login.group / "app.slice"
        # Where no systemd is to be found, nor a job that was begun with one.
        self.nowhere = {"XDG_RUNTIME_DIR": str(self.home), "DBUS_SESSION_BUS_ADDRESS": ""}

    def begin(self):
        self.login.begin()
        subprocess.Popen(["systemd-run", "--quiet", "--scope", f"--unit={self.session.name}", f"--slice={self.login.slice.name}", *ALONE, "sleep", "1000"])
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
        except subprocess.TimeoutExpired as late:
            return subprocess.CompletedProcess(late.cmd, 124, "", f"no end within {SECONDS} s")

    def spawn(self, *words):
        return subprocess.Popen(self.words(str(binary()), *words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, env=self.environment())

    def show(self, unit, *properties):
        told = self.call("--user", "show", unit, *(f"--property={name}" for name in properties), program="systemctl").stdout
        return dict(line.split("=", 1) for line in told.splitlines())

    def job(self, text):
        path = self.directory / "job.yaml"
        path.write_text(text)
        return str(path)

    def record(self, name):
        answer = self.call("inspect", "--format", "json", name)
        return json.loads(answer.stdout) if answer.returncode == 0 else {}

    def given(self):
        """A group with controllers that the user was given, of which they need no scope."""
        group = self.login.group / "given"
        if not group.exists():
            group.mkdir()
            (self.login.group / "cgroup.subtree_control").write_text("+memory +cpu +pids")
            for path in (group, group / "cgroup.procs"):
                os.chown(path, self.account.uid, self.account.gid)
        return group

    def scopes(self):
        """The groups of scopes that are there."""
        return sorted(self.apps.glob("jobc-*")) if self.apps.exists() else []


def until(true, seconds=SECONDS):
    """Waits for something; returns whether it came."""
    deadline = time.monotonic() + seconds
    while not (came := true()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return bool(came)


def member(pid):
    """The group of a process."""
    return TREE / Path(f"/proc/{pid}/cgroup").read_text().strip().removeprefix("0::/")


def gone(session, unit):
    """What is left of a scope when its job is over."""
    group = session.apps / unit
    if not until(lambda: not group.exists(), 10):
        yield f"{group} is left, with {[(str(path), path.read_text()) for path in group.rglob('cgroup.procs')]}"
    if (state := session.show(unit, "ActiveState").get("ActiveState")) != "inactive":
        yield f"{unit} is {state}"


def fails(what, ended, code=0, *words):
    told = ended.stdout + ended.stderr
    if ended.returncode != code or not all(word in told for word in words):
        yield f"{what} ends with {ended.returncode}, not {code} and {words}: {told[-1500:]}"


def read_back(session):
    """The limits inside the task, in the kernel's files, by another program in the task; what systemd says of the scope; the end."""
    started = session.call("run", "-d", session.job(LIMITS))
    # Who leaves the job to itself is told what it hangs on.
    yield from fails("`jobc run -d`", started, 0, "enable-linger")
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
    told = session.show(unit, "ActiveState", "Delegate", "Slice", "Description", "TasksMax")
    wanted = {"ActiveState": "active", "Delegate": "yes", "Slice": "app.slice", "Description": "jobc job tested-limits.1", "TasksMax": "infinity"}
    if told != wanted:
        yield f"systemd says {told}"
    joined = session.call("exec", "tested-limits", "--", "sh", "-c", "cat /proc/self/cgroup /sys/fs/cgroup/memory.max; exit 3")
    yield from fails("`jobc exec` from the session", joined, 3, "0::/\n", V2["memory.max"])
    joined = session.call("exec", "tested-limits", "--", "cat", "/proc/self/cgroup", group=session.given())
    yield from fails("`jobc exec` from a group of the user's", joined, 0, "0::/\n")
    yield from fails("`jobc stats`", session.call("stats", "--no-stream", "tested-limits"), 0, "main-0", "96.0 MiB")
    # A second run has a scope of its own beside the first, under another name where somebody has that one.
    subprocess.Popen(session.words("systemd-run", "--user", "--quiet", "--scope", "--unit=jobc-tested-limits.2", "sleep", "600"),
                     env=session.environment())
    until(lambda: len(session.scopes()) == 2)
    yield from fails("a second run", session.call("run", "-d", session.job(LIMITS)))
    second = session.record("tested-limits.2")["scope"]
    if second != f"jobc-tested-limits.2-{session.record('tested-limits.2')['supervisor']['pid']}.scope":
        yield f"the second run is in {second}"
    for run, scope in (("tested-limits.2", second), ("tested-limits.1", unit)):
        yield from fails("`jobc stop`", session.call("stop", "--grace", "0s", run))
        yield from gone(session, scope)
    session.call("--user", "stop", "jobc-tested-limits.2.scope", program="systemctl")


def memory(session):
    """In the foreground: more memory than the limit is the end, and is told as the reason."""
    yield from fails("a hungry job", session.call("run", session.job(HUNGRY)), 1, "memory limit 48 MiB reached")
    yield from gone(session, "jobc-tested-hungry.1.scope")


def interrupted(session):
    """Ctrl-C ends a job in the foreground; a scope that is ended by systemctl ends its job."""
    with session.spawn("run", session.job(MANY)) as running:
        until(lambda: len(list(session.apps.glob("jobc-*/jobc/*/main-*"))) == 12)
        until(lambda: list(session.apps.glob("jobc-*/jobc/*/free-0/cgroup.procs")), 10)
        # A task without limits is beside the others, where what it uses is counted.
        if len(list(session.apps.glob("jobc-*/jobc/*/free-0/memory.current"))) != 1:
            yield f"the task without limits is elsewhere: {list(session.apps.rglob('free-0'))}"
        limits = {path.read_text() for path in session.apps.glob("jobc-*/jobc/*/main-*/memory.max")}
        if limits != {f"{32 << 20}\n"}:
            yield f"the limits of many tasks are {limits}"
        time.sleep(1)
        running.send_signal(signal.SIGINT)
        told, _ = running.communicate(timeout=SECONDS)
        if running.returncode != 130:
            yield f"after SIGINT it ends with {running.returncode}: {told[-1500:]}"
    yield from gone(session, "jobc-tested-many.1.scope")
    session.call("run", "-d", session.job(LIMITS))
    until(lambda: session.record("tested-limits").get("state") == "running")
    record = session.record("tested-limits")
    yield from fails("`systemctl stop`", session.call("--user", "stop", record["scope"], program="systemctl"))
    if not until(lambda: session.record(record["id"]).get("state") == "stopped"):
        yield f"its job is {session.record(record['id']).get('state')}"
    yield from gone(session, record["scope"])


def killed(session):
    """A supervisor that is killed takes its tasks and the scope with it."""
    session.call("run", "-d", session.job(LIMITS))
    until(lambda: session.record("tested-limits").get("state") == "running")
    record = session.record("tested-limits")
    task = record["tasks"][0]["process"]["pid"]
    os.kill(record["supervisor"]["pid"], signal.SIGKILL)
    yield from gone(session, record["scope"])
    if Path(f"/proc/{task}/cgroup").exists():
        yield "its task lives on"
    yield from fails("`jobc ps`", session.call("ps", "--all"), 0, "lost")


def bundle(session):
    """One bundle, by the process that attends to it; what it starts beside the container is in the scope too."""
    session.call("build", "-o", str(session.home / "built"), session.job(LIMITS.replace("sleep 600", "sleep 1")))
    found = next(session.home.rglob("oci/main-0/config.json"))
    seen = session.home / "seen"
    config = json.loads(found.read_text())
    config["hooks"] = {"createRuntime": [{"path": "/bin/sh", "args": ["sh", "-c", f"cat /proc/self/cgroup >{seen}"]}]}
    found.write_text(json.dumps(config))
    dry = session.call("run", "--dry-run", "--id", "alone", str(found.parent))
    yield from fails("`--dry-run`", dry, 0, "make the scope `jobc-alone.scope`", "app.slice/jobc-alone.scope/jobc/")
    if session.scopes():
        yield f"`--dry-run` has made {session.scopes()}"
    ran = session.call("run", "-v", "--id", "alone", str(found.parent))
    yield from fails("a bundle", ran, 0, "jobc-alone.scope", *(f"{name} {value}" for name, value in V2.items()))
    if not seen.exists() or not seen.read_text().endswith("app.slice/jobc-alone.scope/supervisor\n"):
        yield f"its hook is in {seen.read_text() if seen.exists() else None}"
    yield from gone(session, "jobc-alone.scope")


def unasked(session):
    """Nobody is asked where nothing is limited, and where the user has a group that will do."""
    yield from fails("a job without limits", session.call("run", "-d", session.job(FREE)))
    if session.scopes():
        yield f"there are {session.scopes()}"
    session.call("stop", "--grace", "0s", "tested-free")
    ended = session.call("run", session.job(HUNGRY), group=session.given(), environment=session.nowhere)
    yield from fails("a user with a group", ended, 1, "memory limit 48 MiB reached")
    # What runs there is in no unit of the user's systemd, but of the machine's: of the service that systemd is.
    session.call("run", "-d", session.job(LIMITS), group=session.given())
    until(lambda: session.record("tested-limits").get("state") == "running")
    joined = session.call("exec", "tested-limits", "--", "cat", "/proc/self/cgroup")
    yield from fails("`jobc exec` from the session", joined, 0, "0::/\n")
    session.call("stop", "--grace", "0s", "tested-limits")


def refused(session):
    """Where systemd is not to be reached, or was not given a controller, the job is refused with the reason and what to do."""
    words = ("cannot create cgroups", "cannot reach this user's systemd", "log in by ssh", "--allow-unenforced")
    yield from fails("without systemd", session.call("run", session.job(LIMITS), environment=session.nowhere), 125, *words)
    targets = session.directory / "weighed.yaml"
    targets.write_text(WEIGHED)
    weighed = ["--targets", str(targets), session.job(LIMITS)]
    words = ("does not have the controllers `io`", "Delegate=cpu cpuset io memory pids")
    lacking = session.call("run", *weighed)
    yield from fails("a lacking controller", lacking, 125, *words)
    if "`memory`" in lacking.stderr:
        yield f"what would be kept is told as lost: {lacking.stderr}"
    yield from fails("a lacking controller that is allowed", session.call("run", "-d", "--allow-unenforced", *weighed))
    until(lambda: session.record("tested-limits").get("state") == "running")
    record = session.record("tested-limits")
    if not any("`io`" in note or "`blockIO`" in note for note in record.get("notes", [])):
        yield f"nobody says that there is no `io`: {record.get('notes')}"
    if (member(record["tasks"][0]["process"]["pid"]) / "memory.max").read_text().strip() != V2["memory.max"]:
        yield "what could be kept is not"
    session.call("stop", "--grace", "0s", "tested-limits")
    yield from gone(session, record["scope"])


def doctor(session):
    """The doctor says where limits come from."""
    report = json.loads(session.call("doctor", "--format", "json").stdout)
    found = next(check for check in report["checks"] if check["name"] == "cgroup.delegated")
    if (found["status"], found["found"]) != ("ok", "this user's systemd creates a scope for each job, with memory, pids, cpu"):
        yield f"{found}"
    if report["containers"]["user"]["status"] != "ok":
        yield f"{report['containers']}"


def logged_out(session):
    """The user's systemd is found without the variables of a log-in; when it ends, so does what it keeps."""
    without = {"XDG_RUNTIME_DIR": "", "XDG_STATE_HOME": str(session.home / "state")}
    yield from fails("without variables", session.call("run", session.job(HUNGRY), environment=without), 1, "memory limit 48 MiB reached")
    session.call("run", "-d", session.job(LIMITS))
    until(lambda: session.record("tested-limits").get("state") == "running")
    record = session.record("tested-limits")
    subprocess.run(["systemctl", "stop", f"{session.login.unit}.service"], check=True, timeout=SECONDS)
    task = Path(f"/proc/{record['tasks'][0]['process']['pid']}")
    if not until(lambda: not task.exists(), 10):
        yield "its task lives on"
    if not until(lambda: session.record("tested-limits").get("state") in ("stopped", "lost"), 10):
        yield f"its job is {session.record('tested-limits').get('state')}"
    if session.login.group.exists():
        yield f"{session.login.group} is left"


CASES = [read_back, memory, interrupted, killed, bundle, unasked, refused, doctor, logged_out]


def begin(harness):
    """Starts the machine and this file in it."""
    if os.geteuid() != 0:
        harness.skip("root becomes the users")
    for tool in ("linux.uml", "dbus-daemon", "systemctl"):
        harness.tool(tool)
    if not os.access("/lib/systemd/systemd", os.X_OK):
        harness.skip("systemd is not installed; `tests/oracles/install` installs it")
    # There are no new users in the machine.
    user.with_range()
    os.environ["JOBC_IN_SYSTEMD"], os.environ["JOBC"] = "yes", str(binary())
    vm = str(REPOSITORY / "tests/vm/uml")
    os.execv(vm, [vm, "-c", "systemd", "-t", "280", "-m", "1G", sys.executable, __file__, *sys.argv[1:]])


def main():
    harness = Harness("scope", __doc__.split("\n", maxsplit=1)[0])
    harness.parse()
    if "JOBC_IN_SYSTEMD" not in os.environ:
        begin(harness)
    with scratch() as directory:
        session = Session(directory, user.with_range())
        session.begin()
        for case in CASES:
            name = case.__name__.replace("_", " ")
            if harness.wants(name):
                try:
                    harness.check(name, case(session))
                except (OSError, ValueError, KeyError, IndexError, subprocess.SubprocessError) as broken:
                    harness.check(name, [f"{type(broken).__name__}: {broken}"])
    harness.end()


if __name__ == "__main__":
    main()
