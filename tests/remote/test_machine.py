"""Tests jobs on another machine: `jobc` runs them there, over ssh. The machine is an sshd on loopback with its own home directory, a
banner, and profiles that print.
"""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import needs
import pytest
import user
from harness import REPOSITORY
from place import SECONDS, Place, until
from reach import check_forwarding, check_terminal
from resumable import TRAIN, resumed_at_their_steps
from sshd import Sshd, missing

pytestmark = [pytest.mark.isolated, pytest.mark.needs("root"), pytest.mark.duration(60)]
TARGETS = """\
version: 1
default: [box]
targets:
  box: {{backends: [oci], ssh: {{host: box, directory: "{there}/lab", jobc: {program}}}}}
  auto: {{backends: [oci], ssh: {{host: box, directory: "{there}/automatic"}}}}
  home: {{backends: [oci], ssh: {{host: box, jobc: {program}}}}}
  full: {{backends: [oci], ssh: {{host: box, directory: "{there}/full", jobc: {program}}}}}
  stranger: {{backends: [oci], ssh: {{host: stranger}}}}
  nowhere: {{backends: [oci], ssh: {{host: ssh://127.0.0.1:1}}}}
"""
JOB = """\
version: 1
name: {name}
image: host
{more}
roles:
  main:
    instances: {instances}
    shell: sh
    resources: {{cpu: 0.1, memory: 64MiB{resources}}}
    run: |
{run}
"""


def job(name, run, instances=1, more="", resources=""):
    lines = "\n".join(f"      {line}" for line in run.splitlines())
    return JOB.format(name=name, run=lines, instances=instances, more=more, resources=resources)


class Machine(Place):
    """A user with a directory of jobs, and the machine."""

    def __init__(self, top, program, account=None, there="there", variables=None):
        self.directory, self.program, self.home, self.there = top / "work", program, top / "home", top / there
        self.home.mkdir(parents=True)
        self.run_directory, self.lab = top / "r", self.there / "lab"
        self.run_directory.mkdir(mode=0o700)
        login = {"user": account.name, "login": account.prefix()} if account else {}
        self.sshd = Sshd(top / "sshd", self.there, variables=variables, **login)
        if account:
            # The program is in a directory that only root may enter.
            self.program = shutil.copy(program, top / "jobc")
            subprocess.run(["chown", "-R", f"{account.uid}:{account.gid}", self.there, top / "sshd"], check=True)
        self.sshd.start()
        self.write("targets.yaml", TARGETS.format(there=self.there, program=self.program))

    def environment(self, more=None):
        kept = {name: value for name, value in os.environ.items() if name in ("LANG", "LLVM_PROFILE_FILE")}
        return {**kept, **self.sshd.environment(), "HOME": str(self.home), "XDG_RUNTIME_DIR": str(self.run_directory), "NO_COLOR": "1",
                "JOBC_IMAGE_ROOT": str(self.home / "images"), **(more or {})}

    def start(self, *words, **more):
        # Without a terminal nothing can be asked.
        return super().start(*words, start_new_session=True, **more)

    def jobs(self, target="box"):
        return self.json("ps", "--all", "--target", target)

    def lines(self, handle, *words):
        """The lines of a job's output, by task."""
        found = {}
        for line in self.run("logs", handle, *words, "--format", "json")[0].splitlines():
            line = json.loads(line)
            found.setdefault(line["task"], []).append(line["text"])
        return found

    def close(self):
        for entry in self.jobs():
            self.run("rm", entry["handle"], "--force", code=None)
        self.sshd.close(self.run_directory / "jobc-ssh")


def made(*arguments, **settings):
    """A machine, which is removed after the tests."""
    if tool := missing():
        needs.missing(tool)
    machine = Machine(*arguments, **settings)
    yield machine
    machine.close()


@pytest.fixture(scope="module")
def machine(program, shared):
    yield from made(shared / "machine", program)


@pytest.fixture(scope="module")
def own_machine(program, shared):
    """The machine of a user without root."""
    yield from made(shared / "rootless", program, user.with_range())


@pytest.fixture(scope="module")
def odd_machine(program, shared):
    """A machine whose home directory has an odd name, of another kind than this one."""
    fakes = shared / "fakes"
    fakes.mkdir()
    (fakes / "uname").write_text("#!/bin/sh\necho Linux riscv64\n")
    (fakes / "uname").chmod(0o755)
    yield from made(shared / "odd", program, there="it's a home 日本", variables={"PATH": f"{fakes}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"})


def test_what_keeps_ssh_from_a_machine_is_said_with_advice(machine):
    """What keeps ssh from reaching a machine is said in one sentence, with advice."""
    machine.write("small.yaml", job("small", "true"))
    for target, message in (("stranger", "the host key of"), ("nowhere", "connection refused")):
        _, errors = machine.run("ps", "--target", target, code=None)
        assert message in errors and "help:" in errors, f"{target}: {errors}"
    _, errors = machine.run("run", "small.yaml", "--target", "box", code=None)
    assert "jobc submit --target box" in errors, errors
    machine.write("bad.yaml", job("bad", "true", resources=", gpu: 2"))
    _, errors = machine.run("submit", "bad.yaml", code=3)
    assert "could not start: the job needs 2 GPUs" in errors, errors
    out, _ = machine.run("targets", "check", "box")
    assert "ssh to box" in out and "jobc " in out, out
    # One connection served all commands, and no agent was forwarded.
    assert machine.sshd.connections() <= 2, f"{machine.sshd.connections()} connections\n{machine.sshd.log()[-2000:]}"
    calls = [call for call in machine.sshd.calls() if " -- box " in call and not call.startswith("-G")]
    assert calls and not any("-a " not in call or "ForwardAgent=no" not in call for call in calls), calls[-1:]


def test_a_job_runs_there_with_its_data_and_secret(machine):
    """A job runs there with its data and its secret; output, states, events and exit codes are the same as here."""
    machine.write("code/a.txt", "from a file\n")
    machine.write("one.yaml", job("one", 'cat /code/a.txt; echo "$TOKEN" | wc -c; echo "instance $JOBC_INDEX" >&2; echo kept >/out/$JOBC_INDEX; '
                                  "exit $((JOBC_INDEX * 3))", 2,
                                  "secrets: {token: {env: TOKEN}}\nenv: {TOKEN: \"${{ secrets.token }}\"}\n"
                                  "data: {code: {source: ./code, mount: /code}}\noutputs: {out: {source: ./result, mount: /out}}"))
    secret = "not-for-anybody's-eyes"
    handle = machine.submit("one.yaml", env={"TOKEN": secret})
    assert machine.submit("one.yaml", env={"TOKEN": secret}) == handle, "a second submission is another job"
    _, errors = machine.run("wait", handle, code=1)
    assert "main-1: exit 3" in machine.run("inspect", handle)[0], machine.run("inspect", handle)[0] + errors
    lines = machine.lines(handle)
    expected = {f"main-{index}": sorted(["from a file", str(len(secret) + 1), f"instance {index}"]) for index in (0, 1)}
    assert {task: sorted(text) for task, text in lines.items()} == expected, lines
    events = machine.run("events", handle)[0]
    assert "exit 3" in events and "started" in events, events
    tasks = {task["task"]: task["exit_code"] for task in machine.json("ps", handle)}
    assert tasks == {"main-0": 0, "main-1": 3}, tasks
    assert "main-1" in machine.run("report", handle, "--output", "-")[0], "no report"
    found = subprocess.run(["grep", "-rl", secret, machine.there], capture_output=True, text=True, check=False).stdout
    assert not found, f"the secret is in {found}"
    name = handle.split("/")[1]
    run = machine.lab / "jobs" / name
    machine.run("rm", handle)
    kept = sorted(str(path.relative_to(run)) for path in run.rglob("*") if path.is_file())
    assert kept == ["files/result/0", "files/result/1"], f"after rm: {kept}"
    assert not any(entry["handle"] == handle for entry in machine.jobs()), "it is still listed"


def test_after_an_edit_only_the_files_that_changed_are_sent(machine, note):
    """After an edit only the files that changed are sent, and it is another job; a matrix has a job for each combination."""
    for number in range(20):
        machine.write(f"big/{number}", os.urandom(32 << 10).hex())
    machine.write("edit.yaml", job("edit", "ls /big | wc -l", more="data: {big: {source: ./big, mount: /big}}"))
    first = machine.submit("edit.yaml")
    store = machine.lab / "store/sha256"
    before = {path.name for path in store.iterdir()}
    machine.write("big/3", "x" * (1 << 20))
    since = time.monotonic()
    second = machine.submit("edit.yaml")
    seconds = time.monotonic() - since
    sent = sorted(path.stat().st_size for path in store.iterdir() if path.name not in before)
    assert first != second and [size for size in sent if size > 20_000] == [1 << 20], f"{first}, {second}: sent {sent}"
    note(f"an edit of 1 MiB was submitted in {seconds:.2f} s")
    machine.run("wait", first)
    assert machine.lines(second, "-f") == {"main-0": ["20"]}, machine.lines(second)
    machine.write("matrix.yaml", job("matrix", 'echo "$JOBC_JOB ${{ matrix.x }}"', more="matrix: {x: [1, 2, 3]}"))
    handles = machine.submit("matrix.yaml").split()
    for handle in handles:
        machine.run("wait", handle)
    found = sorted(line for handle in handles for line in machine.lines(handle)["main-0"])
    assert len(set(handles)) == 3 and [line.rsplit(" ", 1)[1] for line in found] == ["1", "2", "3"], f"{handles}: {found}"


def test_a_job_there_is_suspended_and_resumes_at_its_step(machine):
    """It has no process meanwhile; the next attempt begins where the last one saved."""
    saved = machine.directory / "saved"
    saved.mkdir()
    more = f"preemption: {{exit_codes: [85], checkpoint: saved, grace: 20s}}\noutputs: {{saved: {{source: {saved}, mount: /saved}}}}"
    text = job("leaves", "exec python3 -u train.py", more=f"code: train\n{more}")
    machine.write("train/train.py", TRAIN)
    machine.write("leaves.yaml", text)
    handle = machine.submit("leaves.yaml")
    until(lambda: "step 10" in machine.run("logs", handle)[0], "steps")
    out, _ = machine.run("suspend", handle)
    assert out == f"{handle}: suspended\n", out
    until(lambda: machine.json("inspect", handle)["tasks"][0]["state"] == "retrying", "a job without processes")
    assert machine.json("inspect", handle)["state"] == "suspended"
    out, _ = machine.run("resume", handle)
    assert out == f"{handle}: resumed\n", out
    machine.run("wait", handle)
    logs = "".join(machine.run("logs", handle, "--attempt", str(number))[0] for number in (1, 2))
    assert resumed_at_their_steps(logs) == 2 and "attempt 2 resume '1'" in logs, logs
    _, errors = machine.run("suspend", handle, code=None)
    assert "succeeded" in errors, errors


def test_code_goes_with_a_job_and_only_edited_files_are_sent(machine):
    """The job may write to its copy, which is not this host's; what the ignore file names stays here."""
    machine.write("code.yaml", job("code", "pwd; cat train.txt; ls -A; touch made; rm train.txt", more="code: {from: ../project, mount: /project}"))
    project = machine.directory.parent / "project"
    for name, text in (("train.txt", "one\n"), ("lib/large", "x" * 100_000), (".jobcignore", "*.log\n"), ("a.log", "")):
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    handle = machine.submit("code.yaml")
    machine.run("wait", handle)
    assert machine.lines(handle) == {"main-0": ["/project", "one", ".jobcignore", "lib", "train.txt"]}, machine.lines(handle)
    store = machine.lab / "store/sha256"
    before = {path.name for path in store.iterdir()}
    (project / "train.txt").write_text("two\n")
    second = machine.submit("code.yaml")
    machine.run("wait", second)
    assert second != handle and "two" in machine.lines(second)["main-0"], machine.lines(second)
    assert machine.submit("code.yaml") == second and (project / "train.txt").exists() and not (project / "made").exists()
    sent = [path.stat().st_size for path in store.iterdir() if path.name not in before]
    assert sent and max(sent) < 100_000, sent


def test_commands_reach_into_tasks(machine):
    """Output is followed, commands run in tasks, ports are forwarded, files are copied, a job is stopped."""
    server = ("mkdir /tmp/jobc-served; cd /tmp/jobc-served; echo page >index.html; echo ready; "
              "exec python3 -m http.server --bind 127.0.0.1 $JOBC_PORT_HTTP")
    machine.write("serve.yaml", job("serve", server, resources=", ports: {http: auto}"))
    handle = machine.submit("serve.yaml")
    follower = machine.start("logs", "-f", handle)
    line = follower.stdout.readline()
    assert line.endswith("ready\n"), f"logs -f: {line!r}"
    out, _ = machine.run("exec", handle, "--", "sh", "-c", 'echo "$0"; echo e >&2; exit 7', "it's a word", code=7)
    assert out == "it's a word\n", f"exec: {out!r}"
    out, _ = machine.run("exec", "-i", handle, "main-0", "--", "cat", given="typed\n")
    assert out == "typed\n", f"exec -i: {out!r}"
    check_terminal(machine.start, handle)
    check_forwarding(machine.start, handle)
    machine.write("put/x", "file\n")
    machine.run("copy", handle, "put", "main-0:/tmp/jobc-served/")
    machine.run("copy", handle, "main-0:/tmp/jobc-served/put/x", machine.directory / "got")
    assert (machine.directory / "got").read_text() == "file\n", "copy"
    usage = machine.json("top", handle, "--no-stream")
    assert usage["task"] == "main-0" and usage["memory"], f"top: {usage}"
    machine.run("stop", handle)
    follower.communicate(timeout=SECONDS)
    assert not machine.run("wait", handle, code=None)[1] or "stopped" in machine.run("ps", "--all", "--target", "box")[0]
    leftover = subprocess.run(["pgrep", "-f", f"jobc.*logs.*{handle.split('/')[1]}"], capture_output=True, text=True, check=False).stdout
    assert not leftover, f"left: {leftover}"


@pytest.mark.parametrize("name", ["local-handoff", *(pytest.param(name, marks=pytest.mark.slow) for name in ("local-ps", "local-dag", "local-sweep"))])
def test_an_example_ends_as_it_does_here(machine, name):
    """With the same exit code, and as much output."""
    if name == "local-sweep" and len(os.sched_getaffinity(0)) < 3:
        pytest.skip("needs three processors: its five jobs start there at once")
    path = REPOSITORY / "examples" / name
    output, own = [], []
    for handle in machine.run("submit", path / "job.yaml", "--targets", machine.directory / "targets.yaml", "--target", "box")[0].split():
        machine.run("wait", handle, seconds=120)
        output += [f"{task}: {line}" for task, lines in machine.lines(handle).items() for line in lines]
    here, _ = machine.run("run", path, "--quiet", "--no-logs", "--detach", code=None, env={"XDG_CONFIG_HOME": "/nonexistent"})
    for one in here.split():
        machine.run("wait", one, code=None, seconds=120)
        names = [entry["id"] for entry in machine.json("ps", "--all") if entry["id"] == one or entry["sweep"] == one]
        own += [f"{task}: {line}" for id in names for task, lines in machine.lines(id).items() for line in lines]
    assert len(output) == len(own), (output, own)


def test_a_user_without_root_runs_rootless_containers(own_machine):
    machine = own_machine
    """A user without root logs in to a machine, and the job runs there in a rootless container."""
    machine.write("code/a.txt", "data\n")
    run, data = "cat /code/a.txt; id -u; cat /proc/self/uid_map | wc -l", "data: {code: {source: ./code, mount: /code}}"
    # Nothing enforces the limits of this user, and the error has the command that lets jobs run without a message.
    machine.write("own.yaml", job("own", run, more=data, resources=", enforce: true"))
    _, errors = machine.run("submit", "own.yaml", code=None)
    command = re.search(r"without `enforce: true`, after `(ssh box [^`]*)`", errors)
    assert command and not machine.jobs(), errors
    machine.write("own.yaml", job("own", run, more=data))
    subprocess.run(command[1], shell=True, env=machine.environment(), check=True, capture_output=True, timeout=SECONDS)
    handle, errors = machine.run("submit", "own.yaml")
    assert "enforced" not in errors, errors
    handle = handle.strip()
    machine.run("wait", handle)
    lines = machine.lines(handle)
    owner = (machine.lab / "jobs" / handle.split("/")[1]).stat().st_uid
    assert owner and lines.get("main-0", [])[:1] == ["data"], f"{lines}, files of user {owner}"
    machine.run("rm", handle)


@pytest.mark.slow
def test_the_program_is_copied_once(machine):
    """This program is copied to the machine once, and runs jobs there."""
    machine.write("auto.yaml", job("auto", "echo copied"))
    handle = machine.submit("auto.yaml", "--target", "auto")
    machine.run("wait", handle)
    assert machine.lines(handle) == {"main-0": ["copied"]}, machine.lines(handle)
    programs = sorted((machine.there / "automatic/bin").iterdir())
    assert len(programs) == 1 and programs[0].stat().st_size == Path(machine.program).stat().st_size, programs


def test_a_home_directory_may_have_any_name(odd_machine):
    machine = odd_machine
    machine.write("code/a b.txt", "data\n")
    machine.write("odd.yaml", job("odd", "cat '/code/a b.txt'; echo kept >'/out/c d'; sleep 60", more="data: {code: {source: ./code, mount: /code}}\n"
                                  "outputs: {out: {source: './a result', mount: /out}}"))
    handle = machine.submit("odd.yaml", "--target", "home")
    until(lambda: machine.lines(handle) == {"main-0": ["data"]})
    out, _ = machine.run("exec", handle, "--", "cat", "/code/a b.txt")
    assert out == "data\n", f"exec: {out!r}"
    machine.run("copy", handle, "main-0:/out/c d", machine.directory / "got it")
    machine.run("stop", handle)
    machine.run("rm", handle)
    kept = machine.there / ".local/share/jobc/submitted/jobs" / handle.split("/")[1] / "files/a result/c d"
    assert kept.read_text() == "kept\n" and (machine.directory / "got it").read_text() == "kept\n", kept


def test_a_machine_of_another_kind_is_an_error_with_advice(odd_machine):
    odd_machine.write("small.yaml", job("small", "true"))
    _, errors = odd_machine.run("submit", "small.yaml", "--target", "auto", code=None)
    assert "`box` is a machine of another kind (Linux riscv64)" in errors and "set `ssh.jobc` to its path" in errors


def test_a_full_disk_is_an_error_with_advice(odd_machine):
    machine = odd_machine
    machine.write("code/big", "x" * (4 << 20))
    machine.write("big.yaml", job("big", "true", more="data: {code: {source: ./code, mount: /code}}"))
    disk = machine.there / "full"
    disk.mkdir()
    subprocess.run(["mount", "--no-mtab", "-t", "tmpfs", "-o", "size=1M", "none", disk], check=True)
    try:
        _, errors = machine.run("submit", "big.yaml", "--target", "full", code=None)
        assert "`box` cannot receive files" in errors and "No space left on device" in errors and "help: make room there" in errors, errors
        assert not [*(disk / "store").glob("incoming*")] and not [*(disk / "store/sha256").iterdir()], f"left: {sorted(disk.rglob('*'))}"
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


def test_an_image_is_built_here_and_only_layers_that_changed_are_sent(machine):
    """An image that the job builds is built here and sent; after an edit only the layer that changed is sent."""
    root = machine.directory / "root"
    for path in ("bin", "tmp", "proc", "dev", "sys", "etc"):
        (root / path).mkdir(parents=True)
    shutil.copy(needs.tool("busybox"), root / "bin/busybox")
    (root / "bin/sh").symlink_to("busybox")
    (root / "bin/cat").symlink_to("busybox")
    machine.run("image", "import", root, "--tag", "base:1")
    machine.write("built.yaml", job("built", "cat /text").replace("image: host", "image: {from: 'base:1', copy: [{from: text, to: /text}]}"))
    store = machine.lab / "store/sha256"
    for text in ("first", "second"):
        machine.write("text", text + "\n")
        before = {path.name for path in store.iterdir()} if store.exists() else set()
        handle = machine.submit("built.yaml")
        machine.run("wait", handle)
        assert machine.lines(handle) == {"main-0": [text]}, machine.lines(handle)
        sent = [path.stat().st_size for path in store.iterdir() if path.name not in before]
        assert text != "second" or max(sent) <= 50_000, f"sent {sent}"


@pytest.mark.parametrize("count", [6, pytest.param(60, marks=[pytest.mark.slow, pytest.mark.duration(200)])])
def test_killed_submissions_are_completed_by_the_same_command(machine, count):
    """They are killed at random moments: one job each, none lost."""
    seed, name = int(os.environ.get("JOBC_SEED") or random.randrange(1 << 32)), f"kill{count}"
    chance = random.Random(seed)
    machine.write("kill/x", "data\n")
    since = time.monotonic()
    machine.write("kill.yaml", job("warm", "true", more="data: {kill: {source: ./kill, mount: /kill}}"))
    machine.submit("kill.yaml")
    usual = time.monotonic() - since
    handles = set()
    for number in range(count):
        machine.write("kill.yaml", job(f"{name}-{number}", "cat /kill/x", more="data: {kill: {source: ./kill, mount: /kill}}"))
        process = machine.start("submit", "kill.yaml")
        try:
            process.communicate(timeout=chance.uniform(0, usual * 1.1))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        handles.add(machine.submit("kill.yaml"))
    for handle in handles:
        machine.run("wait", handle)
    there = [entry for entry in machine.jobs() if entry["job"].startswith(f"{name}-")]
    ids = subprocess.run([machine.program, "ps", "--all", "--quiet"], env={**machine.environment(), "HOME": str(machine.there), "XDG_RUNTIME_DIR": ""},
                         capture_output=True, text=True, check=True).stdout.split()
    started = sum(id.startswith(f"{name}-") for id in ids)
    assert (len(there), len(handles), started) == (count, count, count), f"seed {seed}: {ids}"
    assert not [entry for entry in there if entry["state"] != "succeeded"], f"seed {seed}"
