"""Tests jobs on a Slurm cluster whose login node is reached by ssh, as another user without root: files are sent, all commands act on the jobs.

The login node is an sshd on loopback with a banner and profiles that print. The client has no Slurm: nothing names a cluster to it, and the
users of the cluster cannot read its files.
"""

import contextlib
import json
import os
import re
import subprocess
import time
from pathlib import Path

import needs
import pytest

from cluster import mount
from place import one
from reach import check_forwarding, check_terminal
from sshd import Sshd, missing

pytestmark = [pytest.mark.isolated, pytest.mark.duration(30)]
SECONDS = 60
TARGETS = """\
version: 1
default: [cluster]
targets:
  cluster: {{backends: [oci, slurm], ssh: {{host: login}}, slurm: {{directory: {directory}}}}}
  bare: {{backends: [slurm], ssh: {{host: login}}, slurm: {{directory: {directory}, container: none}}}}
  closed: {{backends: [slurm], ssh: {{host: login}}, slurm: {{directory: {directory}, container: none, jobc: none}}}}
  nowhere: {{backends: [slurm], ssh: {{host: ssh://127.0.0.1:1}}, slurm: {{container: none}}}}
"""


class Client:
    """A user of another host, with a directory of jobs, and the login node that ssh reaches."""

    def __init__(self, slurm, directory):
        self.slurm, self.directory, self.program = slurm, directory, slurm.program
        self.shared = slurm.home / "shared"
        self.home, self.run_directory, self.work = directory / "home", directory / "r", directory / "work"
        for path in (directory, self.home, self.run_directory, self.work):
            path.mkdir(mode=0o700)
        account = slurm.account
        keys = slurm.home / "sshd"
        # A server of root, which alone makes terminals; and the account has no password, which is not to be locked.
        shadow = slurm.place / "shadow"
        shadow.write_text(re.sub(rf"^{account.name}:[^:]*:", f"{account.name}:*:", Path("/etc/shadow").read_text(), flags=re.MULTILINE))
        shadow.chmod(0o600)
        mount(shadow, "/etc/shadow")
        self.sshd = Sshd(keys, slurm.home, account.name, name="login", variables={"SLURM_CONF": slurm.configuration})
        subprocess.run(["chown", "-R", f"{account.uid}:{account.gid}", slurm.home], check=True)
        self.sshd.start()
        self.write("targets.yaml", TARGETS.format(directory=self.shared))

    def write(self, name, text):
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def environment(self, **more):
        kept = {name: value for name, value in os.environ.items() if name in ("LANG", "LLVM_PROFILE_FILE")}
        return {**kept, **self.sshd.environment(), "HOME": str(self.home), "XDG_RUNTIME_DIR": str(self.run_directory), "JOBC_COLOR": "never", **more}

    def start(self, *words, streams=None, **more):
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **(streams or {})}
        # Without a terminal nothing can be asked.
        return subprocess.Popen([self.program, *map(str, words)], cwd=self.work, env=self.environment(**more), text=True, start_new_session=True, **streams)

    def jobc(self, *words, code=0, given=None, **more):
        """Runs jobc; returns its stdout and stderr, after a check of the exit code."""
        with self.start(*words, streams={"stdin": subprocess.PIPE} if given is not None else None, **more) as process:
            try:
                out, errors = process.communicate(given, timeout=SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        if code is not None and process.returncode != code:
            raise ValueError(f"jobc {' '.join(map(str, words))}: exit {process.returncode}\n{out}{errors}")
        return out, errors

    def submit(self, path, *words, **more):
        return self.jobc("submit", path, *words, **more)[0].strip()

    def json(self, *words):
        return json.loads(self.jobc(*words, "--format", "json")[0])

    def lines(self, handle, *words):
        """The lines of a job's output, by task."""
        found = {}
        for line in self.jobc("logs", handle, *words, "--format", "json")[0].splitlines():
            line = json.loads(line)
            # Nothing enforces the limits of a job here, and its containers say so; Slurm says when it ends a step.
            if "task" in line and not line.get("text", "").startswith(("warning: ", "slurmstepd")):
                found.setdefault(line["task"], []).append(line.get("text"))
        return found

    def run_of(self, handle):
        return self.shared / "runs" / handle.split("/")[1]

    def close(self):
        with contextlib.suppress(ValueError, subprocess.TimeoutExpired):
            for handle in self.jobc("ps", "--target", "cluster", "--quiet")[0].split():
                self.jobc("rm", "--force", handle, code=None)
        self.sshd.close(self.run_directory / "jobc-ssh")


@pytest.fixture(scope="module")
def client(slurm):
    if tool := missing():
        needs.missing(tool)
    client = Client(slurm, slurm.home.parent / "client")
    yield client
    client.close()


def test_a_job_runs_there_with_its_data_and_its_secret(client):
    """What it writes stays there; the same job again is the same run."""
    client.write("code/a.txt", "from a file\n")
    secret = "not-for-anybody's-eyes"
    run = 'cat /code/a.txt; printf %s "$TOKEN" | wc -c; echo "index $JOBC_INDEX" >&2; echo kept >/out/$JOBC_INDEX; sleep 1; exit $((JOBC_INDEX * 3))'
    more = ("secrets: {token: {env: TOKEN}}\nenv: {TOKEN: \"${{ secrets.token }}\"}\n"
            "data: {code: {source: ./code, mount: /code}}\noutputs: {out: {source: ./result, mount: /out}}")
    client.write("life.yaml", one("life", run, 2, more))
    handle = client.submit("life.yaml", TOKEN=secret)
    assert client.submit("life.yaml", TOKEN=secret) == handle, "a second submission is another job"
    followed = client.lines(handle, "-f")
    expected = {f"main-{index}": sorted(["from a file", str(len(secret)), f"index {index}"]) for index in (0, 1)}
    assert {task: sorted(lines) for task, lines in followed.items() if task in expected} == expected, followed
    client.jobc("wait", handle, code=1)
    detail = client.json("inspect", handle)
    assert detail["state"] == "failed" and detail["message"] == "task `main-1` ended with exit code 3", detail
    events = client.jobc("events", handle)[0]
    assert "Submitted" in events and "Ended" in events, events
    result = client.shared / "outputs/life/result"
    assert f"output {result}" in re.sub(" +", " ", client.jobc("inspect", handle)[0]), client.jobc("inspect", handle)[0]
    client.jobc("copy", handle, "main-1:/out/1", client.work / "kept")
    assert (client.work / "kept").read_text() == "kept\n", "an output after the end"
    refused = client.jobc("copy", handle, "main-1:/etc/hostname", client.work / "kept", code=None)[1]
    assert "does not run" in refused, refused
    assert handle in client.jobc("ps", "--all", "--target", "cluster", "--quiet")[0].split(), "it is not listed"
    assert "main-1" in client.jobc("report", handle, "--output", "-")[0], "no report"
    owners = {path.stat().st_uid for path in client.run_of(handle).rglob("*") if path.is_file()}
    assert owners == {client.slurm.account.uid}, f"files of users {owners}"
    client.jobc("rm", handle)
    kept = sorted(str(path.relative_to(client.shared)) for path in (client.shared / "outputs").rglob("*") if path.is_file())
    assert kept == ["outputs/life/result/0", "outputs/life/result/1"] and not client.run_of(handle).exists(), f"after rm: {kept}"


def test_commands_act_on_the_job(client):
    """Output is followed, commands run beside tasks, ports are forwarded, files are copied, a job is stopped."""
    client.write("serve.yaml", one("serve", 'mkdir -p "$HOME/served"; cd "$HOME/served"; echo page >index.html; echo ready; '
                                   'trap "echo bye; exit 0" TERM; python3 -m http.server --bind 127.0.0.1 "$JOBC_PORT_HTTP" & while :; do wait; sleep 1; done')
                 .replace("memory: 64MiB", "memory: 64MiB, ports: {http: auto}").replace("image: host", f"image: host\nenv: {{HOME: {client.slurm.home}}}"))
    handle = client.submit("serve.yaml", "--target", "bare")
    follower = client.start("logs", "-f", handle)
    line = follower.stdout.readline()
    assert "ready" in line, f"logs -f: {line!r}"
    out, _ = client.jobc("exec", handle, "--", "sh", "-c", 'echo "$0 $JOBC_PORT_HTTP"; echo e >&2; exit 7', "it's a word", code=7)
    assert re.fullmatch(r"it's a word \d+\n", out), f"exec: {out!r}"
    out, _ = client.jobc("exec", "-i", handle, "main-0", "--", "cat", given="typed\n")
    assert out == "typed\n", f"exec -i: {out!r}"
    def start(*words, **streams):
        return client.start(*words, streams=streams)

    check_terminal(start, handle)
    check_forwarding(start, handle)
    client.write("put/x", "file\n")
    client.jobc("copy", handle, "put", "main-0:./")
    client.jobc("copy", handle, "main-0:put/x", client.work / "got")
    assert (client.work / "got").read_text() == "file\n", "copy"
    usage = client.json("top", handle, "--no-stream")
    assert usage["task"] == "main-0" and 1 << 20 < usage["memory"] < 1 << 30, f"top: {usage}"
    client.jobc("stop", handle)
    follower.communicate(timeout=SECONDS)
    client.jobc("wait", handle, code=130)
    assert "bye" in client.jobc("logs", handle)[0], client.jobc("logs", handle)[0]


def test_code_is_sent_once(client):
    """In an archive that runs share by its digest; each run unpacks a copy of its own."""
    for name in ("first", "second"):
        client.write(f"{name}.yaml", one(name, "pwd; cat train.txt; echo changed >train.txt", more="code: {from: src, mount: /project}"))
    client.write("src/train.txt", "one\n")
    store = client.shared / "store/sha256"
    before = set(store.iterdir()) if store.exists() else set()
    handles = [client.submit("first.yaml"), client.submit("second.yaml", "--target", "bare")]
    sent = set(store.iterdir()) - before
    assert len(sent) == 1, sent
    for handle in handles:
        client.jobc("wait", handle)
        run = client.run_of(handle)
        place = "/project" if handle is handles[0] else str(run / "code")
        assert client.lines(handle)["main-0"] == [place, "one"] and (run / "code/train.txt").read_text() == "changed\n", client.lines(handle)
        client.jobc("rm", handle)


def test_only_files_that_changed_are_sent(client, note):
    """After an edit it is another job; a matrix is one array there, too."""
    for number in range(20):
        client.write(f"big/{number}", os.urandom(32 << 10).hex())
    client.write("edit.yaml", one("edit", "ls /big | wc -l; wc -c </big/3", more="data: {big: {source: ./big, mount: /big}}"))
    first = client.submit("edit.yaml")
    store = client.shared / "store/sha256"
    before = {path.name for path in store.iterdir()}
    client.write("big/3", "x" * (1 << 20))
    since = time.monotonic()
    second = client.submit("edit.yaml")
    seconds = time.monotonic() - since
    sent = sorted(path.stat().st_size for path in store.iterdir() if path.name not in before)
    assert first != second and sent == [1 << 20], f"{first}, {second}: sent {sent}"
    note(f"an edit of 1 MiB was submitted in {seconds:.2f} s")
    # The program may be a debug build on a busy host.
    assert seconds <= 5, f"an edit of 1 MiB took {seconds:.1f} s"
    for handle, size in ((first, 1 << 16), (second, 1 << 20)):
        client.jobc("wait", handle)
        assert client.lines(handle) == {"main-0": ["20", str(size)]}, f"{client.lines(handle)}"
    client.write("matrix.yaml", one("matrix", 'echo "$JOBC_JOB ${{ matrix.x }}"', more="matrix: {x: [1, 2, 3]}"))
    handles = client.submit("matrix.yaml").split()
    for handle in handles:
        client.jobc("wait", handle)
    numbers = {(client.run_of(handle) / "jobs/job").read_text().split("_")[0] for handle in handles}
    found = sorted(line for handle in handles for line in client.lines(handle)["main-0"])
    assert len(set(handles)) == 3 and [line.rsplit(" ", 1)[1] for line in found] == ["1", "2", "3"] and len(numbers) == 1, \
        f"{handles}: {found}, arrays {numbers}"


def test_one_connection_serves_all_commands(client):
    """No agent is forwarded, and what keeps ssh from the login node is said in a sentence."""
    checks, _ = client.jobc("targets", "check", "cluster")
    assert "slurm-wlm 22.05" in checks and "MISSING" not in checks, checks
    # The first command of several may open one each.
    assert client.sshd.connections() <= 1, f"{client.sshd.connections()} connections\n{client.sshd.log()[-2000:]}"
    calls = [call for call in client.sshd.calls() if " -- login " in call and not call.startswith("-G")]
    assert calls and all("-a " in call and "ForwardAgent=no" in call for call in calls), f"{calls[-1:]}"
    _, errors = client.jobc("ps", "--target", "closed", code=None)
    assert "slurm.jobc" in errors and "may not run on the cluster" in errors, errors
    _, errors = client.jobc("ps", "--target", "nowhere", code=None)
    assert "connection refused" in errors and "help:" in errors, errors
