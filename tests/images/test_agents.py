"""Tests SSH agents of builds (`RUN --mount=type=ssh`) with a real ssh-agent."""

import contextlib
import os
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest

from home import assert_result
from remote import BASE, Builder, agent, is_helper_of

pytestmark = [pytest.mark.duration(10), pytest.mark.accounts("root", slow=("range", "single")),
              pytest.mark.needs("root", "ssh-agent", "ssh-add", "ssh-keygen")]

CLIENT = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* client SOCKET TYPE: sends an agent request without content, writes the response without its length. */
int main(int argc, char **argv)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    unsigned char request[5] = {0, 0, 0, 1, atoi(argv[2])}, data[65536];
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    long length, done = 0, n;
    strncpy(address.sun_path, argv[1], sizeof address.sun_path - 1);
    if (argc < 3 || connect(s, (void *)&address, sizeof address) || write(s, request, 5) != 5 || read(s, data, 4) != 4)
        return 1;
    length = data[2] << 8 | data[3];
    while (done < length && (n = read(s, data + done, length - done)) > 0)
        done += n;
    return fwrite(data, 1, done, stdout) != (size_t)done;
}
"""


# Asks for the keys, removes them all, and asks again; without a C compiler only for the keys.
ASK = "RUN --mount=type=ssh /client $SSH_AUTH_SOCK 11 >/keys; /client $SSH_AUTH_SOCK 19 >/removed; /client $SSH_AUTH_SOCK 11 >/again\n"
ASK_BY_NC = "RUN --mount=type=ssh test -S $SSH_AUTH_SOCK && printf '\\000\\000\\000\\001\\013' | nc -w 3 local:$SSH_AUTH_SOCK >/keys; touch /removed /again\n"


@pytest.fixture(scope="module")
def module_builder(shared, account):
    """A builder, with a static program that speaks with an agent, if it can be made."""
    directory = shared / (account.name if account else "root")
    directory.mkdir()
    builder = Builder(directory, account)
    source = directory / "client.c"
    source.write_text(CLIENT)
    words = ["cc", "-static", "-O", "-o", builder.context / "client", source]
    builder.client = shutil.which("cc") and subprocess.run(words, capture_output=True, check=False).returncode == 0
    with agent(directory, account) as (builder.agent, builder.key):
        builder.sock = {"SSH_AUTH_SOCK": str(builder.agent)}
        yield builder


@pytest.fixture
def builder(module_builder):
    """A builder with an agent; a build leaves nothing."""
    yield module_builder
    assert not module_builder.left()


@pytest.mark.parametrize("value", ["default", "default={agent}", "default={key}"], ids=["the_users_agent", "socket", "key"])
def test_a_command_has_the_keys_but_cannot_change_the_agent(builder, note, value):
    if not builder.client:
        note("no C compiler, so nothing in the build speaks with the agent")
    text = BASE + (f"COPY client /client\n{ASK}" if builder.client else ASK_BY_NC)
    value = value.format(agent=builder.agent, key=builder.key)
    result = builder.run(text, "--no-cache", "--ssh", value, **(builder.sock if value == "default" else {}))
    assert_result(result)
    files = {path: content for path, (_, content) in builder.files(result).items()}
    if builder.client:
        assert b"of-test" in files["keys"] and b"of-test" in files["again"] and files["removed"] == b"\x05"
    assert not [path for path in files if "agent" in path or "buildkit" in path or "ssh" in path]
    listed = subprocess.run(["ssh-add", "-l"], env={"PATH": os.environ["PATH"], **builder.sock}, capture_output=True, text=True, check=False)
    assert "of-test" in listed.stdout, listed.stdout + listed.stderr


def test_an_agent_has_the_id_target_and_mode_of_its_mount(builder):
    text = "RUN --mount=type=ssh,id=deploy,target=/run/own.sock,mode=0666 test \"$SSH_AUTH_SOCK\" = /run/own.sock && test -S /run/own.sock\n"
    assert_result(builder.run(BASE + text, "--ssh", f"deploy={builder.agent}"))


@pytest.mark.accounts("root", slow="range")
def test_another_user_has_a_socket(builder):
    other = BASE.replace("FROM base\n", "FROM base\nUSER 1000:1000\n") + "RUN --mount=type=ssh,uid=1000,gid=1000 test -w $SSH_AUTH_SOCK\n"
    assert_result(builder.run(other, "--ssh", f"default={builder.agent}"))


def test_an_agent_is_needed_only_if_required(builder):
    assert_result(builder.run(BASE + "RUN --mount=type=ssh test -z \"$SSH_AUTH_SOCK\"\n"))
    assert_result(builder.run(BASE + "RUN --mount=type=ssh,required true\n"), 1, "the SSH agent `default` is missing", "--ssh default")
    assert_result(builder.run(BASE, "--ssh", "default"), 2, "`SSH_AUTH_SOCK` is not set")


def test_an_agent_that_has_ended_is_reported(builder):
    with agent(builder.home.directory, builder.account) as (path, _):
        pass
    gone = builder.run(BASE + "RUN --mount=type=ssh true\n", "--ssh", f"default={path}")
    assert_result(gone, gone.returncode or 1, "cannot connect to the SSH agent")


def test_a_killed_build_leaves_no_process(builder):
    """The command has an agent and a network."""
    (builder.context / "Dockerfile").write_text(BASE + "RUN --mount=type=ssh echo started; sleep 60\n")
    prefix = builder.account.prefix() if builder.account else []
    temporary = builder.home.directory / "tmp"
    temporary.mkdir()
    if builder.account:
        os.chown(temporary, builder.account.uid, builder.account.gid)
    words = ["image", "build", "--builder", "embedded", "--no-cache", "--ssh", f"default={builder.key}", str(builder.context)]
    process = subprocess.Popen([*prefix, builder.program, *words], env=builder.home.environment | {"TMPDIR": str(temporary)},
                               cwd=builder.home.directory, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    timer = threading.Timer(30, process.kill)
    timer.start()
    started = any("] started" in line for line in process.stderr)
    process.kill()
    process.wait()
    timer.cancel()
    assert started, "the command did not start"
    deadline = time.monotonic() + 5
    while (left := remains(builder, temporary)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left
    assert_result(builder.run(BASE + "RUN true\n"))  # which removes what the killed build left in the store


def remains(builder, temporary):
    """Processes and files of a build."""
    left = [f"{path} is left" for path in temporary.iterdir()]
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if str(temporary).encode() in path.read_bytes() or is_helper_of(path.parent / "comm", builder):
                left.append(f"process {path.parent.name}: {path.read_bytes()!r}")
    return left
