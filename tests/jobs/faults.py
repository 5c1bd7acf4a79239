#!/usr/bin/env python3
"""Tests what is left of jobs when something dies, fills up or cannot be written: no process and no leftovers.

It runs in its own pid and mount namespaces with its own /tmp and /run, so that it counts only its own leftovers.
`--kills 300` is the long form (`just soak`); the default takes about half a minute.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "runtime"))

import user  # noqa: E402
from harness import REPOSITORY, Harness, scratch  # noqa: E402
from leaks import describe_changes, reap, zombie  # noqa: E402
from runtime import binary  # noqa: E402

SECONDS = 20

JOB = """\
version: 1
name: {name}
image: host
network: {network}
roles:
  first:
    instances: {instances}
    run: {script}
  second:
    run: {script}
"""

STAYS = "sleep 600 & sleep 600"
FLOOD = "i=0; while [ $i -lt 60000 ]; do echo a line that is one of so many that no small disk holds them all $i; i=$((i+1)); done"


class Jobs:
    """This tree's command line, as root or as a user, in its own directory."""

    def __init__(self, program, directory, account):
        self.program, self.directory, self.account = program, directory, account
        self.home = directory / "home"
        self.names = set()
        self.home.mkdir(mode=0o700)
        if account:
            os.chown(self.home, account.uid, account.gid)
        self.group = f"check-jobs-{os.getpid()}-{int(time.time())}"

    def has_ids(self):
        """Whether containers have more than one user: as root, or with a range of ids."""
        return self.account is None or self.account.subuids is not None

    def environment(self, **more):
        own = {"PATH": os.environ["PATH"], "HOME": str(self.home), "JOBC_COLOR": "never"}
        if self.account:
            own["XDG_RUNTIME_DIR"] = str(self.home)
        return own | more

    def words(self, *words):
        return [*(self.account.prefix() if self.account else []), str(self.program), *words]

    def call(self, *words, seconds=SECONDS, cwd=None, **environment):
        try:
            return subprocess.run(self.words(*words), stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                                  env=self.environment(**environment), timeout=seconds, check=False, cwd=cwd)
        except subprocess.TimeoutExpired as timeout:
            return subprocess.CompletedProcess(timeout.cmd, 124, "", f"timed out after {seconds} s")

    def job(self, name, script=STAYS, network="host", instances=2):
        self.names.add(name)
        path = self.directory / f"{name}.yaml"
        path.write_text(JOB.format(name=name, network=network, instances=instances, script=json.dumps(script)))
        return str(path)

    def run(self, path, *words, **environment):
        """Starts `jobc run` in the foreground, and returns the process."""
        # Not every host gives users cgroups of their own; this tests what is left behind.
        if self.account:
            words = (*words, "--allow-unenforced")
        return subprocess.Popen(self.words("run", *words, path), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, errors="replace", env=self.environment(**environment))

    def record(self, name, **environment):
        answer = self.call("inspect", "--format", "json", name, **environment)
        return json.loads(answer.stdout) if answer.returncode == 0 else None

    def until(self, name, done, seconds=SECONDS):
        """Waits until `done(record)` is true, and returns the record."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            record = self.record(name)
            if record and done(record):
                return record
            time.sleep(0.05)
        raise TimeoutError(f"{name}: {record and record['state']}: {record}")

    def running(self, name):
        return self.until(name, lambda record: all(task["state"] in ("running", "ready") for task in record["tasks"]))


def copy_program(directory):
    """A copy of this tree's program where every user may run it."""
    copy = directory / "jobc"
    shutil.copy2(binary(), copy)
    copy.chmod(0o755)
    return copy


def snapshot(jobs):
    """Everything that a job may leave behind, in this test's namespaces."""
    pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    namespaces, processes = set(), []
    for pid in pids:
        with contextlib.suppress(OSError):
            processes.append(Path(f"/proc/{pid}/comm").read_text().strip() + (" (zombie)" if zombie(pid) else ""))
            namespaces |= {os.readlink(f"/proc/{pid}/ns/{name}") for name in os.listdir(f"/proc/{pid}/ns")}
    groups = groups_of(jobs, [f"/jobc/{name}." for name in jobs.names])
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=False).stdout
    places = [Path("/run/jobc/jobs"), jobs.home / "jobc/jobs", Path("/run/lock/jobc"), Path("/dev/shm"), Path("/tmp")]
    return {
        "processes": sorted(processes),
        "mounts": sorted(line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()),
        "namespaces": sorted(namespaces),
        "cgroups": sorted(groups),
        "interfaces": sorted(line.split()[1] for line in links.splitlines()),
        "files": sorted(str(path) for place in places if place.is_dir() for path in leftover_files(place)),
    }


def groups_of(jobs, names):
    """The cgroups with one of these in their paths that belong to the jobs' user: another test may run as another user."""
    found = []
    for path, _, _ in os.walk("/sys/fs/cgroup"):
        with contextlib.suppress(FileNotFoundError):
            if any(name in path for name in names) and os.stat(path).st_uid == (jobs.account.uid if jobs.account else 0):
                found.append(path)
    return found


def leftover_files(place):
    """The files of a directory, except unlocked lock files, which are kept for the next lock."""
    for path in place.rglob("*"):
        if not path.is_dir() and path.is_relative_to("/run/lock") and path.stat().st_size == 0:
            continue
        if path.is_dir() and (path == Path("/run/lock/jobc") or path.parent == Path("/run/lock/jobc")):
            continue
        if "jobc-check-" in str(path):
            continue
        yield path


def leftovers(jobs, before, seconds=8):
    """The differences, once there are none or after a timeout."""
    deadline = time.monotonic() + seconds
    while True:
        reap()
        after = snapshot(jobs)
        differences = [f"{what}: {describe_changes(before[what], after[what])}" for what in before if before[what] != after[what]]
        if not differences or time.monotonic() > deadline:
            return differences
        time.sleep(0.05)


def kill(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def still_running(pids, run, seconds=5):
    """The processes that are still running after a while; `run` is a child that the caller waits for."""
    deadline = time.monotonic() + seconds
    while True:
        reap_others(run.pid)
        still = [pid for pid in pids if is_running(pid)]
        if not still or time.monotonic() > deadline:
            return still
        time.sleep(0.02)


def is_running(pid):
    """Whether a process exists and is not a zombie; it may exit meanwhile."""
    with contextlib.suppress(OSError):
        return not zombie(pid)
    return False


def supervisor_killed(jobs, network):
    """SIGKILL to the supervisor: its tasks end at once, and the next command reports the job as lost."""
    name = f"tested-supervisor-{network}"
    run = jobs.run(jobs.job(name, network=network))
    record = jobs.running(name)
    kill(record["supervisor"]["pid"])
    still = still_running([task["process"]["pid"] for task in record["tasks"]], run)
    if still:
        yield f"tasks {still} are still running"
    out, _ = run.communicate(timeout=SECONDS)
    if run.returncode != 125:
        yield f"`jobc run` exits with {run.returncode}, not 125: {out}"
    if "lost" not in out:
        yield f"`jobc run` does not report the lost job: {out}"
    found = jobs.record(name)
    if not found or found["state"] != "lost":
        yield f"the record says {found and found['state']}"


def client_killed(jobs):
    """SIGKILL to the command in the foreground: the job is stopped."""
    name = "tested-client"
    run = jobs.run(jobs.job(name))
    jobs.running(name)
    run.kill()
    run.communicate()
    record = jobs.until(name, lambda record: record["ended"] is not None if "ended" in record else False)
    if record["state"] != "stopped":
        yield f"the job is {record['state']}: {record['end']}"


def detached(jobs):
    """With `-d`, the job outlives the command."""
    name = "tested-detached"
    run = jobs.run(jobs.job(name), "-d")
    out, _ = run.communicate(timeout=SECONDS)
    if run.returncode:
        yield f"`jobc run -d` exits with {run.returncode}: {out}"
        return
    record = jobs.running(name)
    stopped = jobs.call("stop", name)
    if stopped.returncode:
        yield f"`jobc stop` exits with {stopped.returncode}: {stopped.stderr}"
    jobs.until(name, lambda record: record["state"] == "stopped")
    if still_running([task["process"]["pid"] for task in record["tasks"]], run):
        yield "tasks are still running"


def first_process_killed(jobs):
    """SIGKILL to a task's first process: the task and the job fail, with an explanation."""
    name = "tested-first"
    run = jobs.run(jobs.job(name))
    record = jobs.running(name)
    kill(record["tasks"][1]["process"]["pid"])
    out, _ = run.communicate(timeout=SECONDS)
    if run.returncode != 1:
        yield f"`jobc run` exits with {run.returncode}, not 1: {out}"
    if "first-1: killed by SIGKILL" not in out:
        yield f"the end is not explained: {out}"


def full_disk(jobs, directory):
    """Records on a disk that is full before the job has ended: the job continues, and lost lines are reported."""
    name = "tested-full"
    small = directory / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k,mode=1777", "small", str(small)], check=True)
    try:
        run = jobs.run(jobs.job(name, FLOOD), XDG_STATE_HOME=str(small))
        out, _ = run.communicate(timeout=60)
        if run.returncode != 0:
            yield f"the job exits with {run.returncode}: {out[-2000:]}"
        record = jobs.record(name, XDG_STATE_HOME=str(small))
        if not record or not any("lost" in note for note in record.get("notes", [])):
            yield f"lost lines are not reported: {record and record.get('notes')}"
    finally:
        subprocess.run(["umount", str(small)], check=True)
        small.rmdir()


def unwritable(jobs, directory):
    """A read-only directory for records: the job is rejected before anything starts."""
    closed = directory / "closed"
    closed.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "closed", str(closed)], check=True)
    try:
        run = jobs.run(jobs.job("tested-unwritable", "true"), XDG_STATE_HOME=str(closed))
        out, _ = run.communicate(timeout=SECONDS)
        place = f"job records are in `{closed}/jobc/jobs`, whose file system is read-only; set `XDG_STATE_HOME` to"
        if run.returncode != 125 or "EROFS" not in out or place not in out:
            yield f"`jobc run` exits with {run.returncode}: {out}"
    finally:
        subprocess.run(["umount", str(closed)], check=True)
        closed.rmdir()


def no_space(jobs, directory):
    """A full disk for records: the job is rejected with the directory and the variable that moves it, and leaves nothing."""
    tiny = directory / "tiny"
    tiny.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k,mode=1777", "tiny", str(tiny)], check=True)
    try:
        run = jobs.run(jobs.job("tested-tiny", "true"), XDG_STATE_HOME=str(tiny))
        out, _ = run.communicate(timeout=SECONDS)
        place = f"job records are in `{tiny}/jobc/jobs`, whose file system is full; free space there"
        if run.returncode != 125 or "ENOSPC" not in out or place not in out or "or set `XDG_STATE_HOME` to" not in out:
            yield f"`jobc run` exits with {run.returncode}: {out}"
        if left := list((tiny / "jobc/jobs").iterdir()):
            yield f"left: {left}"
    finally:
        subprocess.run(["umount", str(tiny)], check=True)
        tiny.rmdir()


def read_only_cgroups(jobs):
    """Cgroups that are mounted read-only, as in many containers: root is told so, and nothing that only helps users."""
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines() if " - cgroup" in line]
    path = jobs.directory / "tested-read-only.yaml"
    path.write_text(JOB.format(name=path.stem, network="host", instances=1, script='"true"') + "    resources: {memory: 64MiB}\n")
    for place in mounts:
        subprocess.run(["mount", "--bind", "-o", "remount,ro", place], check=True)
    try:
        run = jobs.run(str(path))
        out, _ = run.communicate(timeout=SECONDS)
    finally:
        for place in mounts:
            subprocess.run(["mount", "--bind", "-o", "remount,rw", place], check=True)
    if run.returncode != 125 or "/sys/fs/cgroup/memory` is mounted read-only" not in out or "systemd-run" in out:
        yield f"`jobc run` exits with {run.returncode}: {out}"


def clock_jumps(jobs):
    """The wall clock is set back and forth during a job with a timeout: nothing ends early, nothing hangs."""
    name = "tested-clock"
    path = jobs.directory / f"{name}.yaml"
    path.write_text(JOB.format(name=name, network="host", instances=1, script='"sleep 8"') + "timeout: 60s\n")
    run = jobs.run(str(path))
    jobs.running(name)
    now = time.time()
    for jump in (86_400, -86_400):
        time.clock_settime(time.CLOCK_REALTIME, now + jump)
        time.sleep(0.2)
    time.clock_settime(time.CLOCK_REALTIME, now + 0.4)
    out, _ = run.communicate(timeout=SECONDS)
    if run.returncode:
        yield f"the job exits with {run.returncode}: {out}"


def random_kills(jobs, times):
    """At a random moment of a job, the supervisor, the client or any process of a task is killed."""
    rng = random.Random(11)
    for number in range(times):
        name = f"tested-random-{number % 7}"
        path = jobs.job(name, rng.choice([STAYS, "sleep 0.1", "true; sleep 0.05; false"]), rng.choice(["host", "job", "none"]))
        run = jobs.run(path, *rng.choice([(), ("-d",)]))
        time.sleep(rng.random() * 0.5)
        victims = {"client": [run.pid], "supervisor": processes_with_argument("supervise"), "process": children_of(processes_with_argument("supervise"))}
        for victim in [rng.choice(list(victims)), "supervisor"][: rng.randint(1, 2)]:
            if victims[victim]:
                kill(rng.choice(victims[victim]))
        # Kills everything that still runs, also what had not started at the first call; the next command reports what was lost.
        deadline = time.monotonic() + SECONDS
        while (run.poll() is None or processes_with_argument("supervise")) and time.monotonic() < deadline:
            jobs.call("kill", name)
            reap_others(run.pid)
            time.sleep(0.05)
        if run.poll() is None:
            yield f"run {number} hangs: {jobs.record(name)}"
            run.kill()
        run.communicate()
        if processes_with_argument("supervise"):
            yield f"run {number}: the supervisor does not end"
            for pid in processes_with_argument("supervise"):
                kill(pid)
        answer = jobs.call("ps", "--all")
        if answer.returncode:
            yield f"run {number}: `jobc ps` exits with {answer.returncode}: {answer.stderr}"
        answer = jobs.call("rm", "--force", name)
        if answer.returncode and "no job" not in answer.stderr:
            yield f"run {number}: `jobc rm` exits with {answer.returncode}: {answer.stderr}"


def reap_others(but):
    """Reaps orphans, as the first process of a pid namespace must, except the child `but`, which its caller waits for."""
    for pid in children_of([os.getpid()]):
        with contextlib.suppress(OSError):
            if pid != but and zombie(pid):
                os.waitpid(pid, os.WNOHANG)


def processes_with_argument(word):
    """The processes with a word as their first argument."""
    found = []
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if entry.isdigit() and Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")[1:2] == [word.encode()]:
                found.append(int(entry))
    return found


def children_of(parents):
    found = []
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if entry.isdigit() and int(Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[1]) in parents:
                found.append(int(entry))
    return found


def main():
    harness = Harness("faults", __doc__.split("\n", maxsplit=1)[0])
    harness.parser.add_argument("--user", choices=("root", "range", "single"), default="root")
    harness.parser.add_argument("--kills", type=int, default=20, metavar="N")
    harness.parser.add_argument("--clock", action="store_true", help="set the clock of the host: only for virtual machines")
    options = harness.parse()
    if os.geteuid() != 0:
        harness.missing("root")
    for tool in ("unshare", "setpriv", "mount", "ip"):
        harness.tool(tool)
    if os.getpid() != 1:
        unshare = ["unshare", "--pid", "--mount", "--net", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"]
        os.execvp(unshare[0], [*unshare, sys.executable, __file__, *sys.argv[1:]])
    for place in ("/tmp", "/run", "/dev/shm"):
        subprocess.run([REPOSITORY / "tests/fresh", place, "1777" if place != "/run" else "755"], check=True)
    Path("/run/lock").mkdir(mode=0o1777)
    os.chmod("/run/lock", 0o1777)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    account = {"root": None, "range": user.with_range, "single": user.without_range}[options.user]
    account = account() if account else None
    with scratch() as directory:
        jobs = Jobs(copy_program(directory), directory, account)
        # A first run creates what is left on purpose (directories, empty lock files).
        jobs.run(jobs.job("tested-warm", "true")).communicate(timeout=SECONDS)
        jobs.call("rm", "--force", "tested-warm")
        before = snapshot(jobs)
        cases = [
            ("the supervisor is killed", lambda: supervisor_killed(jobs, "host")),
            ("the supervisor is killed, job network", lambda: supervisor_killed(jobs, "job")),
            ("the client is killed", lambda: client_killed(jobs)),
            ("the client detaches", lambda: detached(jobs)),
            ("a task's first process is killed", lambda: first_process_killed(jobs)),
            ("a full disk", lambda: full_disk(jobs, directory)),
            ("a read-only directory", lambda: unwritable(jobs, directory)),
            ("no space for records", lambda: no_space(jobs, directory)),
            *([] if account else [("read-only cgroups", lambda: read_only_cgroups(jobs))]),
            ("random kills", lambda: random_kills(jobs, options.kills)),
        ]
        if options.clock:
            cases.append(("the clock jumps", lambda: clock_jumps(jobs)))
        for name, run_case in cases:
            if harness.wants(name):
                try:
                    problems = list(run_case())
                except (TimeoutError, subprocess.TimeoutExpired) as timeout:
                    problems = [f"hangs: {timeout}"]
                for word in jobs.call("ps", "--all", "--format", "json").stdout.splitlines():
                    with contextlib.suppress(ValueError, KeyError, TypeError):
                        jobs.call("rm", "--force", json.loads(word)["id"])
                harness.check(name, problems[:10] + leftovers(jobs, before))
    harness.end()


if __name__ == "__main__":
    main()
