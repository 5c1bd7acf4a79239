#!/usr/bin/env python3
"""Tests jobs on another machine: `jobc` runs them there, over ssh. The machine is an sshd on loopback with its own home directory, a
banner, and profiles that print.

`--kills N` kills that many submissions at random moments.
"""

import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "runtime"))

import user  # noqa: E402
from harness import REPOSITORY, Harness, scratch  # noqa: E402
from sshd import Sshd, missing  # noqa: E402

SECONDS = 60
EXAMPLES = ["local-ps", "local-handoff", "local-dag", "local-sweep"]
QUICK_EXAMPLES = ["local-handoff"]
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


class Machine:
    """A user with a directory of jobs, and the machine."""

    def __init__(self, directory, program, account=None, there="there", variables=None):
        directory.mkdir(exist_ok=True)
        self.directory, self.program = directory, program
        self.home, self.there = directory / "home", directory / there
        self.home.mkdir()
        self.run_directory = directory / "r"
        self.run_directory.mkdir(mode=0o700)
        self.lab = self.there / "lab"
        login = {"user": account.name, "login": account.prefix()} if account else {}
        self.sshd = Sshd(directory / "sshd", self.there, variables=variables, **login)
        if account:
            # The program is in a directory that only root may enter.
            self.program = shutil.copy(program, directory / "jobc")
            subprocess.run(["chown", "-R", f"{account.uid}:{account.gid}", self.there, directory / "sshd"], check=True)
        self.sshd.start()
        self.write("targets.yaml", TARGETS.format(there=self.there, program=self.program))

    def write(self, name, text):
        path = self.directory / "work" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def environment(self, more=None):
        kept = {name: value for name, value in os.environ.items() if name in ("LANG", "LLVM_PROFILE_FILE")}
        return {**kept, **self.sshd.environment(), "HOME": str(self.home), "XDG_RUNTIME_DIR": str(self.run_directory), "NO_COLOR": "1",
                "JOBC_IMAGE_ROOT": str(self.home / "images"), **(more or {})}

    def start(self, *words, env=None, cwd=None, **streams):
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
        # Without a terminal nothing can be asked.
        return subprocess.Popen([self.program, *map(str, words)], cwd=cwd or self.directory / "work",
                                env=self.environment(env), text=True, start_new_session=True, **streams)

    def run(self, *words, code=0, env=None, cwd=None, given=None, seconds=SECONDS):
        """Runs jobc; returns its stdout and stderr."""
        streams = {"stdin": subprocess.PIPE} if given is not None else {}
        with self.start(*words, env=env, cwd=cwd, **streams) as process:
            out, errors = process.communicate(given, timeout=seconds)
        if code is not None and process.returncode != code:
            raise AssertionError(f"jobc {' '.join(map(str, words))}: exit code {process.returncode}, not {code}: {out}{errors}")
        return out, errors

    def json(self, *words):
        return json.loads(self.run(*words, "--format", "json")[0])

    def submit(self, path, *words, env=None):
        return self.run("submit", path, *words, env=env)[0].strip()

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


def until(check, seconds=SECONDS):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := check():
            return found
        time.sleep(0.1)
    raise AssertionError("it did not happen")


def lifecycle(machine):
    """A job runs there with its data and its secret; output, states, events and exit codes are the same as here."""
    machine.write("code/a.txt", "from a file\n")
    machine.write("one.yaml", job("one", 'cat /code/a.txt; echo "$TOKEN" | wc -c; echo "instance $JOBC_INDEX" >&2; echo kept >/out/$JOBC_INDEX; '
                                  "exit $((JOBC_INDEX * 3))", 2,
                                  "secrets: {token: {env: TOKEN}}\nenv: {TOKEN: \"${{ secrets.token }}\"}\n"
                                  "data: {code: {source: ./code, mount: /code}}\noutputs: {out: {source: ./result, mount: /out}}"))
    secret = "not-for-anybody's-eyes"
    handle = machine.submit("one.yaml", env={"TOKEN": secret})
    if machine.submit("one.yaml", env={"TOKEN": secret}) != handle:
        yield "a second submission is another job"
    _, errors = machine.run("wait", handle, code=1)
    if "main-1: exit 3" not in machine.run("inspect", handle)[0]:
        yield machine.run("inspect", handle)[0] + errors
    lines = machine.lines(handle)
    expected = {f"main-{index}": sorted(["from a file", str(len(secret) + 1), f"instance {index}"]) for index in (0, 1)}
    if {task: sorted(text) for task, text in lines.items()} != expected:
        yield f"{lines}"
    events = machine.run("events", handle)[0]
    if "exit code: 3" not in events or "started" not in events:
        yield events
    tasks = {task["task"]: task["exit_code"] for task in machine.json("ps", handle)}
    if tasks != {"main-0": 0, "main-1": 3}:
        yield f"{tasks}"
    if "main-1" not in machine.run("report", handle, "--output", "-")[0]:
        yield "no report"
    found = subprocess.run(["grep", "-rl", secret, machine.there], capture_output=True, text=True, check=False).stdout
    if found:
        yield f"the secret is in {found}"
    name = handle.split("/")[1]
    run = machine.lab / "jobs" / name
    machine.run("rm", handle)
    kept = sorted(str(path.relative_to(run)) for path in run.rglob("*") if path.is_file())
    if kept != ["files/result/0", "files/result/1"]:
        yield f"after rm: {kept}"
    if any(entry["handle"] == handle for entry in machine.jobs()):
        yield "it is still listed"


def edits(machine):
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
    if first == second or [size for size in sent if size > 20_000] != [1 << 20]:
        yield f"{first}, {second}: sent {sent}"
    print(f"  an edit of 1 MiB was submitted in {seconds:.2f} s")
    machine.run("wait", first)
    if machine.lines(second, "-f") != {"main-0": ["20"]}:
        yield f"{machine.lines(second)}"
    machine.write("matrix.yaml", job("matrix", 'echo "$JOBC_JOB ${{ matrix.x }}"', more="matrix: {x: [1, 2, 3]}"))
    handles = machine.submit("matrix.yaml").split()
    for handle in handles:
        machine.run("wait", handle)
    found = sorted(line for handle in handles for line in machine.lines(handle)["main-0"])
    if len(set(handles)) != 3 or [line.rsplit(" ", 1)[1] for line in found] != ["1", "2", "3"]:
        yield f"{handles}: {found}"


def inside(machine):
    """Output is followed, commands run in tasks, ports are forwarded, files are copied, a job is stopped."""
    server = ("mkdir /tmp/jobc-served; cd /tmp/jobc-served; echo page >index.html; echo ready; "
              "exec python3 -m http.server --bind 127.0.0.1 $JOBC_PORT_HTTP")
    machine.write("serve.yaml", job("serve", server, resources=", ports: {http: auto}"))
    handle = machine.submit("serve.yaml")
    follower = machine.start("logs", "-f", handle)
    line = follower.stdout.readline()
    if not line.endswith("ready\n"):
        yield f"logs -f: {line!r}"
    out, _ = machine.run("exec", handle, "--", "sh", "-c", 'echo "$0"; echo e >&2; exit 7', "it's a word", code=7)
    if out != "it's a word\n":
        yield f"exec: {out!r}"
    out, _ = machine.run("exec", "-i", handle, "main-0", "--", "cat", given="typed\n")
    if out != "typed\n":
        yield f"exec -i: {out!r}"
    yield from terminal(machine, handle)
    forward = machine.start("port-forward", handle, "main:http")
    line = forward.stdout.readline()
    if not line:
        yield f"port-forward: {forward.communicate(timeout=10)}"
        return
    port = int(line.split(" ")[0].rpartition(":")[2])
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", port), 10) as connection:
            connection.settimeout(10)
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        if not answer.endswith(b"page\n"):
            yield f"port-forward: {answer!r}"
    forward.send_signal(signal.SIGINT)
    forward.communicate(timeout=10)
    if forward.returncode != 0:
        yield f"port-forward ended with {forward.returncode}"
    machine.write("put/x", "file\n")
    machine.run("copy", handle, "put", "main-0:/tmp/jobc-served/")
    machine.run("copy", handle, "main-0:/tmp/jobc-served/put/x", machine.directory / "work/got")
    if (machine.directory / "work/got").read_text() != "file\n":
        yield "copy"
    usage = machine.json("top", handle, "--no-stream")
    if [task["task"] for task in usage] != ["main-0"] or not usage[0]["memory_bytes"]:
        yield f"top: {usage}"
    machine.run("stop", handle)
    follower.communicate(timeout=SECONDS)
    if machine.run("wait", handle, code=None)[1] and "stopped" not in machine.run("ps", "--all", "--target", "box")[0]:
        yield machine.run("ps", "--all", "--target", "box")[0]
    leftover = subprocess.run(["pgrep", "-f", f"jobc.*logs.*{handle.split('/')[1]}"], capture_output=True, text=True, check=False).stdout
    if leftover:
        yield f"left: {leftover}"


def terminal(machine, handle):
    """A command gets a terminal with the size of this one, and no noise of profiles."""
    import pty
    import termios
    leader, follower = pty.openpty()
    termios.tcsetwinsize(follower, (33, 77))
    process = machine.start("exec", "-it", handle, "--", "sh", "-c", "stty size; read line; echo got $line; exit 5",
                            stdin=follower, stdout=follower, stderr=follower)
    os.close(follower)
    output = b""
    def read():
        nonlocal output
        try:
            while chunk := os.read(leader, 4096):
                output += chunk
        except OSError:
            pass
    reader = threading.Thread(target=read)
    reader.start()
    until(lambda: b"33 77" in output or process.poll() is not None)
    os.write(leader, b"word\n")
    process.wait(SECONDS)
    reader.join(SECONDS)
    os.close(leader)
    if process.returncode != 5 or b"33 77" not in output or b"got word" not in output or b"Welcome" in output:
        yield f"exec -it ended with {process.returncode}: {output!r}"


def examples(machine, names):
    """Examples end with the exit code and the output that `jobc run` has here."""
    for name in names:
        path = REPOSITORY / "examples" / name
        submitted = machine.run("submit", path / "job.yaml", "--targets", machine.directory / "work/targets.yaml", "--target", "box")[0].split()
        code, output = 0, []
        for handle in submitted:
            with machine.start("wait", handle) as process:
                process.communicate(timeout=120)
                code = max(code, process.returncode)
            output += [f"{task}: {line}" for task, lines in machine.lines(handle).items() for line in lines]
        here, _ = machine.run("run", path, "--quiet", "--no-logs", "--detach", code=None, env={"XDG_CONFIG_HOME": "/nonexistent"})
        own = []
        for one in here.split():
            machine.run("wait", one, code=None, seconds=120)
            names_here = [entry["id"] for entry in machine.json("ps", "--all") if entry["id"] == one or entry["sweep"] == one]
            own += [f"{task}: {line}" for id in names_here for task, lines in machine.lines(id).items() for line in lines]
        if code != 0 or len(output) != len(own):
            yield f"{name}: exit code {code}\nthere: {output}\nhere: {own}"


def problems(machine):
    """What keeps ssh from reaching a machine is said in one sentence, with advice."""
    machine.write("small.yaml", job("small", "true"))
    for target, message in (("stranger", "the host key of"), ("nowhere", "connection refused")):
        _, errors = machine.run("ps", "--target", target, code=None)
        if message not in errors or "help:" not in errors:
            yield f"{target}: {errors}"
    _, errors = machine.run("run", "small.yaml", "--target", "box", code=None)
    if "jobc submit --target box" not in errors:
        yield errors
    machine.write("bad.yaml", job("bad", "true", resources=", gpu: 2"))
    handle = machine.submit("bad.yaml")
    machine.run("wait", handle, code=1)
    if "GPU" not in machine.run("inspect", handle)[0]:
        yield machine.run("inspect", handle)[0]
    out, _ = machine.run("targets", "check", "box")
    if "ssh to box" not in out or "jobc " not in out:
        yield out
    # One connection served all commands, and no agent was forwarded.
    if machine.sshd.connections() > 2:
        yield f"{machine.sshd.connections()} connections\n{machine.sshd.log()[-2000:]}"
    calls = [call for call in machine.sshd.calls() if " -- box " in call and not call.startswith("-G")]
    if not calls or any("-a " not in call or "ForwardAgent=no" not in call for call in calls):
        yield f"{calls[-1:]}"


def rootless(machine):
    """A user without root logs in to a machine, and the job runs there in a rootless container."""
    machine.write("code/a.txt", "data\n")
    machine.write("own.yaml", job("own", "cat /code/a.txt; id -u; cat /proc/self/uid_map | wc -l", more="data: {code: {source: ./code, mount: /code}}"))
    # Nothing enforces the limits of this user, and the error has the command that lets such jobs run.
    _, errors = machine.run("submit", "own.yaml", code=None)
    command = re.search(r"after `(ssh box [^`]*)`", errors)
    if not command or machine.jobs():
        yield errors
        return
    subprocess.run(command[1], shell=True, env=machine.environment(), check=True, capture_output=True, timeout=SECONDS)
    handle = machine.submit("own.yaml")
    machine.run("wait", handle)
    lines = machine.lines(handle)
    owner = (machine.lab / "jobs" / handle.split("/")[1]).stat().st_uid
    if not owner or lines.get("main-0", [])[:1] != ["data"]:
        yield f"{lines}, files of user {owner}"
    machine.run("rm", handle)


def copied(machine):
    """This program is copied to the machine once, and runs jobs there."""
    machine.write("auto.yaml", job("auto", "echo copied"))
    handle = machine.submit("auto.yaml", "--target", "auto")
    machine.run("wait", handle)
    if machine.lines(handle) != {"main-0": ["copied"]}:
        yield f"{machine.lines(handle)}"
    programs = sorted((machine.there / "automatic/bin").iterdir())
    if len(programs) != 1 or programs[0].stat().st_size != Path(machine.program).stat().st_size:
        yield f"{programs}"


def odd(directory, program):
    """A home directory may have any name; a machine of another kind and a full disk are said in one sentence, with advice."""
    fakes = directory / "fakes"
    fakes.mkdir(parents=True)
    (fakes / "uname").write_text("#!/bin/sh\necho Linux riscv64\n")
    (fakes / "uname").chmod(0o755)
    machine = Machine(directory / "machine", program, there="it's a home 日本", variables={"PATH": f"{fakes}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"})
    try:
        yield from in_odd_home(machine)
        machine.write("small.yaml", job("small", "true"))
        _, errors = machine.run("submit", "small.yaml", "--target", "auto", code=None)
        if "`box` is a machine of another kind (Linux riscv64)" not in errors or "set `ssh.jobc` to its path" not in errors:
            yield errors
        if os.geteuid() == 0:
            yield from on_full_disk(machine)
    finally:
        machine.close()


def in_odd_home(machine):
    machine.write("code/a b.txt", "data\n")
    machine.write("odd.yaml", job("odd", "cat '/code/a b.txt'; echo kept >'/out/c d'; sleep 60", more="data: {code: {source: ./code, mount: /code}}\n"
                                  "outputs: {out: {source: './a result', mount: /out}}"))
    handle = machine.submit("odd.yaml", "--target", "home")
    until(lambda: machine.lines(handle) == {"main-0": ["data"]})
    out, _ = machine.run("exec", handle, "--", "cat", "/code/a b.txt")
    if out != "data\n":
        yield f"exec: {out!r}"
    machine.run("copy", handle, "main-0:/out/c d", machine.directory / "work/got it")
    machine.run("stop", handle)
    machine.run("rm", handle)
    kept = machine.there / ".local/share/jobc/submitted/jobs" / handle.split("/")[1] / "files/a result/c d"
    if kept.read_text() != "kept\n" or (machine.directory / "work/got it").read_text() != "kept\n":
        yield f"{kept}"


def on_full_disk(machine):
    machine.write("code/big", "x" * (4 << 20))
    machine.write("big.yaml", job("big", "true", more="data: {code: {source: ./code, mount: /code}}"))
    disk = machine.there / "full"
    disk.mkdir()
    subprocess.run(["mount", "--no-mtab", "-t", "tmpfs", "-o", "size=1M", "none", disk], check=True)
    try:
        _, errors = machine.run("submit", "big.yaml", "--target", "full", code=None)
        if "`box` cannot receive files" not in errors or "No space left on device" not in errors or "help: make room there" not in errors:
            yield errors
        if [*(disk / "store").glob("incoming*")] or [*(disk / "store/sha256").iterdir()]:
            yield f"left: {sorted(disk.rglob('*'))}"
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


def image(machine):
    """An image that the job builds is built here and sent; after an edit only the layer that changed is sent."""
    root = machine.directory / "root"
    for path in ("bin", "tmp", "proc", "dev", "sys", "etc"):
        (root / path).mkdir(parents=True)
    busybox = next((path for path in ("/bin/busybox", "/usr/bin/busybox") if Path(path).exists()), None)
    if not busybox:
        return
    (root / "bin/busybox").write_bytes(Path(busybox).read_bytes())
    (root / "bin/busybox").chmod(0o755)
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
        if machine.lines(handle) != {"main-0": [text]}:
            yield f"{machine.lines(handle)}"
        sent = [path.stat().st_size for path in store.iterdir() if path.name not in before]
        if text == "second" and max(sent) > 50_000:
            yield f"sent {sent}"


def kills(machine, count):
    """Submissions are killed at random moments; then the same command completes them: one job each, none lost."""
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    machine.write("kill/x", "data\n")
    since = time.monotonic()
    machine.write("kill.yaml", job("warm", "true", more="data: {kill: {source: ./kill, mount: /kill}}"))
    machine.submit("kill.yaml")
    usual = time.monotonic() - since
    handles = set()
    for number in range(count):
        machine.write("kill.yaml", job(f"kill-{number}", "cat /kill/x", more="data: {kill: {source: ./kill, mount: /kill}}"))
        process = machine.start("submit", "kill.yaml")
        try:
            process.communicate(timeout=chance.uniform(0, usual * 1.1))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        handles.add(machine.submit("kill.yaml"))
    for handle in handles:
        machine.run("wait", handle)
    there = [entry for entry in machine.jobs() if entry["job"].startswith("kill-")]
    ids = subprocess.run([machine.program, "ps", "--all", "--quiet"], env={**machine.environment(), "HOME": str(machine.there), "XDG_RUNTIME_DIR": ""},
                         capture_output=True, text=True, check=True).stdout.split()
    if len(there) != count or len(handles) != count or sum(id.startswith("kill-") for id in ids) != count:
        yield f"seed {seed}: {count} submissions, {len(handles)} handles, {len(there)} jobs, {ids}"
    if any(entry["state"] != "succeeded" for entry in there):
        yield f"seed {seed}: {[entry for entry in there if entry['state'] != 'succeeded'][:2]}"


def on_own_machine(case, directory, program):
    """A case on the machine of a user without root."""
    machine = Machine(directory, program, user.with_range())
    try:
        yield from case(machine)
    finally:
        machine.close()


def found(case):
    """The problems of a case; one that breaks off is a problem."""
    try:
        yield from case()
    except (AssertionError, subprocess.SubprocessError, OSError, ValueError, KeyError, IndexError) as error:
        yield f"{type(error).__name__}: {error}"


def main():
    harness = Harness("machine", __doc__)
    harness.parser.add_argument("--kills", type=int, default=6, help="submissions to kill at random moments")
    harness.parser.add_argument("--all", action="store_true", help="run all examples, and copy the program")
    options = harness.parse()
    if tool := missing():
        harness.missing(tool)
    program = options.runtime or str(REPOSITORY / "target/debug/jobc")
    with scratch() as directory:
        machine = Machine(Path(directory), program)
        cases = {
            "problems": lambda: problems(machine),
            "lifecycle": lambda: lifecycle(machine),
            "edits": lambda: edits(machine),
            "inside": lambda: inside(machine),
            "image": lambda: image(machine),
            "examples": lambda: examples(machine, EXAMPLES if options.all else QUICK_EXAMPLES),
            "kills": lambda: kills(machine, options.kills),
        }
        if harness.wants("rootless"):
            cases["rootless"] = lambda: on_own_machine(rootless, Path(directory) / "rootless", program)
        if harness.wants("odd"):
            cases["odd"] = lambda: odd(Path(directory) / "odd", program)
        if options.all:
            cases["copied"] = lambda: copied(machine)
        try:
            for name, case in cases.items():
                if harness.wants(name):
                    harness.check(name, found(case))
        finally:
            machine.close()
    harness.end()


if __name__ == "__main__":
    main()
