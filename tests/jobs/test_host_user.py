"""Tests of commands on the files of the host: whose they are, and what becomes of the files that they write."""

import os
import pwd
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from command_line import expect

pytestmark = [pytest.mark.isolated, pytest.mark.duration(20), pytest.mark.accounts("root", "range", "single")]

# A group that no user of the host is in.
GROUP = 54321


@pytest.fixture
def home(jobs):
    """An empty home directory, which is not below /tmp: a container's is its own."""
    entry = pwd.getpwuid(jobs.account.uid if jobs.account else 0)
    directory = Path(tempfile.mkdtemp(prefix="jobc-test-", dir=entry.pw_dir))
    project = directory / "project"
    project.mkdir()
    for path in (directory, project):
        os.chown(path, entry.pw_uid, entry.pw_gid)
    yield directory
    shutil.rmtree(directory)


def run(jobs, home, *words, **more):
    return jobs.call("run", *words, cwd=home / "project", HOME=str(home), XDG_STATE_HOME=str(jobs.home / ".local/state"), **more)


def owner(path):
    status = path.stat()
    return status.st_uid, status.st_gid


def test_a_command_runs_as_its_caller(jobs, home):
    entry = pwd.getpwuid(jobs.account.uid if jobs.account else 0)
    ids = f"{entry.pw_uid} {entry.pw_gid} {entry.pw_name} {home}\n"
    script = 'echo "$(id -u) $(id -g) $(whoami) $HOME"; touch file; mkdir directory; stat -c %U ~'
    expect(run(jobs, home, "--", "sh", "-c", script), out=f"^{re.escape(ids)}{entry.pw_name}\n$")
    if jobs.account:
        expect(run(jobs, home, "-e", "PATH", "--", "sh", "-c", script.replace("mkdir directory;", "")), out=f"^{re.escape(ids)}{entry.pw_name}\n$")
    for name in ("file", "directory"):
        assert owner(home / "project" / name) == (entry.pw_uid, entry.pw_gid), name
    # The network of a job belongs to a user namespace, which the container joins.
    expect(run(jobs, home, "--network", "job", "--", "sh", "-c", script.replace("mkdir directory;", "")), out=f"^{re.escape(ids)}")
    job = home / "project/job.yaml"
    job.write_text("version: 1\nname: owned\nimage: host\noutputs: {o: {source: ./out, mount: /out}}\nroles: {main: {shell: sh, run: id -u; touch /out/file}}\n")
    expect(run(jobs, home, str(job)), out=rf"^{entry.pw_uid}\n$")
    assert owner(home / "project/out/file") == (entry.pw_uid, entry.pw_gid)
    # So does a further process.
    name = expect(run(jobs, home, "--detach", "--", "sleep", "600"), out=r"^sleep\.\d+\n$").stdout.strip()
    environment = {"HOME": str(home), "XDG_STATE_HOME": str(jobs.home / ".local/state")}
    jobs.until(name, lambda record: record["tasks"][0]["state"] == "running")
    expect(jobs.call("exec", name, "main-0", "--", "id", "-u", **environment), out=rf"^{entry.pw_uid}\n$")
    expect(jobs.call("kill", name, **environment))


@pytest.mark.parametrize("directory", ("/tmp", "/var/tmp"))
def test_a_command_writes_temporary_files(jobs, home, directory):
    name = f"{directory}/jobc-test-{os.getpid()}"
    expect(run(jobs, home, "--", "sh", "-c", f"mkdir {name} && echo x > {name}/file && cat {name}/file && touch {name}.txt"), out="^x\n$")
    assert not Path(name).exists(), "the file is on the host"


def test_a_command_can_be_root(jobs, home):
    uid = jobs.account.uid if jobs.account else 0
    expect(run(jobs, home, "--user", "0", "--", "sh", "-c", "id -u; touch file"), out="^0\n$")
    assert (home / "project/file").stat().st_uid == uid, "the file is not the caller's"


@pytest.mark.accounts("range", "single")
def test_a_command_keeps_groups(jobs, home):
    data = home / "data"
    data.write_text("shared\n")
    os.chown(data, 0, GROUP)
    data.chmod(0o640)
    words = [word for word in jobs.words("run", "--", "cat", str(data)) if word != "--clear-groups"]
    words.insert(words.index(str(jobs.program)), f"--groups={GROUP}")
    answer = subprocess.run(words, cwd=home / "project", env=jobs.environment(HOME=str(home)), capture_output=True, text=True, check=False, timeout=20)
    expect(answer, out="^shared\n$")
    expect(run(jobs, home, "--", "cat", str(data)), code=1, error="Permission denied")


def test_discarded_files_are_named_with_how_to_keep_them(jobs, home):
    cache, runs = home / ".cache/huggingface", home / "runs"
    write = f"mkdir -p {cache}/hub && head -c 3000000 /dev/zero > {cache}/hub/model && echo 1 > {cache}/token && mkdir -p ~/runs && echo 2 > ~/runs/1.txt"
    first = expect(run(jobs, home, "--", "sh", "-c", write), out="^$")
    lines = [line.removeprefix("jobc: ") for line in first.stderr.partition("note: files ")[2].splitlines()]
    assert lines == [
        "outside the mounted directories were discarded:",
        "  ~/.cache/huggingface: 2.8 MiB in 2 files",
        "  ~/runs: 2 B in 1 file",
        f"to keep ~/.cache/huggingface and ~/runs, run `mkdir -p {cache} {runs}` and add `-v {cache}:{cache} -v {runs}:{runs}` before `--`",
    ], first.stderr
    assert not cache.exists() and not runs.exists()
    # As advised.
    commands = re.findall("`([^`]*)`", lines[-1])
    subprocess.run([*jobs.words()[:-1], *commands[0].split()], check=True)
    kept = expect(run(jobs, home, *commands[1].split(), "--", "sh", "-c", write))
    assert (cache / "hub/model").stat().st_size == 3000000 and (runs / "1.txt").exists() and "discarded" not in kept.stderr, kept.stderr
    job = home / "project/job.yaml"
    job.write_text(f"version: 1\nname: lost\nimage: host\nroles: {{main: {{shell: sh, run: 'mkdir -p {home}/big; head -c 5000000 /dev/zero > {home}/big/x'}}}}\n")
    advice = expect(run(jobs, home, str(job)), error="mount it in the job file").stderr
    field = re.search("`(data: .*)`", advice).group(1)
    subprocess.run([*jobs.words()[:-1], "mkdir", "-p", home / "big"], check=True)
    job.write_text(job.read_text() + field + "\n")
    answer = expect(run(jobs, home, str(job)))
    assert (home / "big/x").stat().st_size == 5000000 and "discarded" not in answer.stderr, answer.stderr


def test_a_run_without_discarded_files_prints_no_note(jobs, home):
    write = "echo x > here; echo x > /tmp/x; echo x > ~/x.pyc; : > ~/empty; mkdir -p ~/.config/tool; echo x > ~/.config/tool/settings"
    for words in ([], ["--quiet"]):
        answer = expect(run(jobs, home, *words, "--", "sh", "-c", write))
        assert "discarded" not in answer.stderr, answer.stderr
    answer = expect(run(jobs, home, "--quiet", "--", "sh", "-c", "mkdir ~/runs; echo x > ~/runs/x"))
    assert answer.stderr == "", answer.stderr
