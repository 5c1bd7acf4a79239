"""Images and containers as tutorials have them: an archive of a root file system, and lines of `docker run`."""

import contextlib
import os
import pty
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import needs

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "images"))
from home import Home  # noqa: E402
from runtime import binary  # noqa: E402


class Place(Home):
    """A home directory with `rootfs/`, a root file system of busybox."""

    def __init__(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="jobc-texts-")
        super().__init__(self.temporary.name)
        # Records of jobs are below the home directory of an unprivileged user.
        self.environment |= {"XDG_STATE_HOME": str(self.directory / "state"), "TERM": "xterm"}
        tools = self.directory / "rootfs/bin"
        tools.mkdir(parents=True)
        for name in ("etc", "tmp", "proc", "sys", "dev", "root"):
            (self.directory / "rootfs" / name).mkdir()
        shutil.copy(needs.tool("busybox"), tools / "busybox")
        for name in ("sh", "cat", "ls", "echo", "id", "pwd", "df", "sleep", "env", "tty", "nc", "true"):
            (tools / name).symlink_to("busybox")
        (tools / "bash").write_text('#!/bin/sh\nexec /bin/sh "$@"\n')
        (tools / "bash").chmod(0o755)
        (self.directory / "rootfs/etc/passwd").write_text("root:x:0:0::/root:/bin/sh\n")
        subprocess.run(["tar", "-czf", "rootfs.tar.gz", "rootfs"], cwd=self.directory, check=True)

    def ran(self, *words, code=0, **options):
        ran = self.run(*words, **options)
        assert ran.returncode == code, f"{words}: {ran.returncode}\n{ran.stdout}{ran.stderr}"
        return ran


NOTE = "is in its directory `rootfs`, which is used as the root file system"
RUN = ("run", "--allow-unenforced", "--image", "rootfs.tar.gz")


def test_an_archive_with_one_top_directory():
    place = Place()
    imported = place.ran("image", "import", "rootfs.tar.gz", "--tag", "base:1")
    assert f"all of `rootfs.tar.gz` {NOTE}" in imported.stderr, imported.stderr
    assert "hi" in place.ran("run", "--allow-unenforced", "--image", "base:1", "--", "bash", "-c", "echo hi").stdout
    by_root = place.ran("run", "--allow-unenforced", "--root", "rootfs.tar.gz", "--image", "base:1",
                        "--", "bash", "-c", "echo hi")
    assert "hi" in by_root.stdout and NOTE in by_root.stderr, by_root.stderr
    (place.directory / "job.yaml").write_text(
        "version: 1\nname: one\nimage: ./rootfs.tar.gz\nroles: {main: {shell: sh, run: echo hi from a job}}\n")
    assert "hi from a job" in place.ran("run", "--allow-unenforced", "job.yaml").stdout
    assert not list(place.store_problems())


def test_an_archive_from_stdin():
    place = Place()
    with (place.directory / "rootfs.tar.gz").open("rb") as archive:
        ran = subprocess.run([binary(), "image", "import", "-", "--tag", "base:1"], stdin=archive,
                             env=place.environment, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0 and "base:1" in ran.stdout and NOTE in ran.stderr, ran.stderr
    assert not list(place.store_problems())


def test_a_single_directory_of_something_else():
    place = Place()
    (place.directory / "app/bin").mkdir(parents=True)
    (place.directory / "app/bin/serve").write_text("x")
    subprocess.run(["tar", "-cf", "app.tar", "app"], cwd=place.directory, check=True)
    imported = place.ran("image", "import", "app.tar", "--tag", "app:1")
    assert "does not look like a root file system: its files are in `/app`" in imported.stderr, imported.stderr


def test_volumes_variables_and_limits():
    place = Place()
    (place.directory / "data").mkdir()
    (place.directory / "data/word").write_text("a word\n")
    script = "cat /data/word; pwd; id -u; echo $A $B $MY_TOKEN; df -k /dev/shm | tail -n 1; echo x > /data/new"
    ran = place.ran(*RUN, "--rm", "-v", "./data:/data", "-w", "/data", *(["-u", "7"] if os.geteuid() == 0 else []), "-e", "A=1", "-e", "B",
                    "-e", "MY_TOKEN", "--shm-size", "64m", "--", "sh", "-c",
                    script.replace("| tail -n 1", "").replace("echo x > /data/new", "true"),
                    B="two", MY_TOKEN="a-secret-value")
    lines = ran.stdout.splitlines()
    assert lines[:3] == ["a word", "/data", "7" if os.geteuid() == 0 else "0"], ran.stdout
    assert lines[3].startswith("1 two ") and "a-secret-value" not in ran.stdout, ran.stdout
    assert "65536" in ran.stdout, ran.stdout
    place.ran(*RUN, "-v", "./data:/data", "--", "sh", "-c", "echo x > /data/new")
    assert (place.directory / "data/new").read_text() == "x\n"
    refused = place.ran(*RUN, "-v", "./data:/data:ro", "--", "sh", "-c", "echo x > /data/other", code=1)
    assert "Read-only file system" in refused.stdout + refused.stderr, refused.stderr
    absent = place.ran(*RUN, "-v", "./absent:/data", "--", "true", code=125)
    assert "cannot mount `./absent`: no such file" in absent.stderr, absent.stderr


def test_exit_codes_and_signals():
    place = Place()
    place.ran(*RUN, "--", "true")
    place.ran(*RUN, "--", "sh", "-c", "exit 7", code=7)
    place.ran(*RUN, "--", "sh", "-c", "sh -c 'kill -9 $$'; exit $?", code=137)
    running = subprocess.Popen([binary(), *RUN, "--", "sh", "-c", "trap 'exit 3' TERM INT; echo up; sleep 60 & wait"],
                               env=place.environment, cwd=place.directory, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
    assert running.stdout.readline() == "up\n"
    running.send_signal(signal.SIGINT)
    assert running.wait(60) == 130
    running.stdout.close()


def test_a_terminal():
    place = Place()
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(place.directory)
        os.execve(binary(), [binary(), "run", "--allow-unenforced", "-it", "--image", "rootfs.tar.gz", "--", "bash"],
                  place.environment)
    output, asked, end = b"", False, time.monotonic() + 60
    while time.monotonic() < end:
        try:
            output += os.read(terminal, 4096)
        except OSError:
            break
        if not asked and (b"# " in output or b"$ " in output):
            asked = True
            os.write(terminal, b"tty; exit 5\n")
    os.close(terminal)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    assert code == 5 and b"/dev/pts/" in output, (code, output)


def test_a_published_port():
    place = Place()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    running = subprocess.run(
        [binary(), *RUN, "-p", f"{port}:80", "-d", "--", "sh", "-c", "while true; do echo hello | nc -l -p 80; done"],
        env=place.environment, cwd=place.directory, capture_output=True, text=True, timeout=60, check=False)
    if running.returncode == 125 and "network" in running.stderr:
        needs.missing("a network of its own", running.stderr)
    assert running.returncode == 0, running.stderr
    job = running.stdout.strip()
    try:
        answer, deadline = b"", time.monotonic() + 20
        while not answer and time.monotonic() < deadline:
            # The port is published before the program listens.
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=2) as client:
                answer = client.recv(100)
            time.sleep(0.1)
        assert answer == b"hello\n", (answer, place.run("logs", job).stdout)
    finally:
        place.run("rm", "--force", job)


def test_stdin_without_a_terminal():
    place = Place()
    for option, words in [("-i", ("not a tty", "one", "two")), ("--rm", ("not a tty",))]:
        line = [binary(), *RUN, option, "--", "sh", "-c", "tty; cat; exit 3"]
        ran = subprocess.run(line, env=place.environment, cwd=place.directory, input="one\ntwo\n", capture_output=True, text=True,
                             timeout=60, check=False)
        assert ran.returncode == 3 and all(word in ran.stdout for word in words), ran
        assert ("two" in ran.stdout) == (option == "-i"), ran
    refused = place.ran(*RUN, "-i", "-d", "--", "cat", code=125)
    assert "--detach" in refused.stderr, refused.stderr


def test_options_that_docker_has():
    place = Place()
    for words, text in [
        (("--ipc", "host"), "write `--shm-size SIZE`"),
        (("--runtime", "nvidia"), "write `--gpus N`"),
        (("--restart", "always"), "write `retry: {max: N}`"),
        (("--mount", "type=bind,src=/a,dst=/b"), "write `-v HOST:CONTAINER[:ro]`"),
    ]:
        refused = place.ran(*RUN, *words, "--", "true", code=125)
        assert text in refused.stderr, refused.stderr
    forgotten = place.ran("run", "--image", "ubuntu:24.04", "bash", code=125)
    assert "jobc run --image ubuntu:24.04 -- bash" in forgotten.stderr, forgotten.stderr


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print(f"ok: {name}")
