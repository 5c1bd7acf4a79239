"""Interrupts builds with SIGINT and SIGTERM at every kind of moment: they end within a second, with the exit code of the signal, and
nothing that is left counts as complete."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest

from home import Home, assert_result
from registry import free_port
from runtime import binary

pytestmark = [pytest.mark.duration(60), pytest.mark.needs("root", "busybox"), pytest.mark.slow]

# As the issue has it, with room for a busy host.
LIMIT = 1.5
BASE = "FROM scratch\nCOPY busybox /bin/sh\n"
CASES = {
    # What is built, and when it is interrupted: a function of the home that is true then.
    "run": (BASE + "RUN echo begun; while :; do :; done\n", lambda home, lines: any("begun" in line for line in lines)),
    "read": ("FROM scratch\nCOPY large /large\n", lambda home, lines: any("1/2" in line for line in lines)),
    "copy": ("FROM scratch\nCOPY large /large\n", lambda home, lines: any(home.store.glob("cache/work/*/*/upper/large"))),
    "pack": ("FROM scratch\nCOPY large /large\n", lambda home, lines: any(path.stat().st_size for path in home.store.glob("partial/new-*"))),
}


@pytest.fixture(scope="module")
def context(shared):
    context = shared / "context"
    context.mkdir()
    shutil.copy(shutil.which("busybox"), context / "busybox")
    with open(context / "large", "wb") as large:
        for _ in range(700):
            large.write(os.urandom(1 << 20))
    return context


@pytest.fixture(scope="module")
def kept(shared):
    return Home(shared / "home")


def interrupt(process, name, when, home, number):
    """Sends the signal at the moment, and returns how long the process goes on and what it printed."""
    lines = []

    def collect():
        for line in process.stderr:
            lines.append(line)
    reader = threading.Thread(target=collect, daemon=True)
    reader.start()
    until = time.monotonic() + 60
    while not when(home, lines):
        assert process.poll() is None and time.monotonic() < until, f"{name}: the moment did not come: {''.join(lines)}"
        time.sleep(0.005)
    begun = time.monotonic()
    process.send_signal(number)
    process.wait(timeout=60)
    reader.join(5)
    return time.monotonic() - begun, "".join(lines)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
@pytest.mark.parametrize("name", CASES)
def test_a_build_ends_when_it_is_interrupted(kept, context, name, number):
    text, when = CASES[name]
    (context / "Dockerfile").write_text(text)
    words = ["image", "build", "--builder", "embedded", "--no-cache", "--network", "none", "-t", name, context]
    if name == "read":
        # Its digest would be known.
        os.utime(context / "large")
    process = subprocess.Popen([binary(), *map(str, words)], env=kept.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    seconds, output = interrupt(process, name, when, kept, number)
    assert process.returncode == 128 + number, output
    assert seconds < LIMIT, f"it went on for {seconds:.1f} s: {output}"
    assert "interrupted; no image was built" in output or seconds > 0.6, output
    assert f"docker.io/library/{name}:latest" not in kept.names()
    # The next build takes nothing of it for whole, and removes what is left.
    (context / "Dockerfile").write_text("FROM scratch\nCOPY busybox /b\n")
    assert_result(kept.run("image", "build", "--builder", "embedded", "-t", "next", context))
    assert not list(kept.store.glob("partial/new-*")) and not list(kept.store.glob("cache/work/*"))
    assert not list(kept.store_problems())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_an_output_that_is_interrupted_is_not_there(kept, context, number):
    (context / "Dockerfile").write_text("FROM scratch\nCOPY large /large\n")
    assert_result(kept.run("image", "build", "--builder", "embedded", "-t", "large", context, seconds=300))
    out = kept.directory / "out"
    for kind, dest in (("oci", out / "x.tar"), ("tar", out / "y.tar")):
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        process = subprocess.Popen([binary(), "image", "build", "--builder", "embedded", "-o", f"type={kind},dest={dest}", str(context)],
                                   env=kept.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        begun = lambda home, lines: any(path.stat().st_size for path in out.glob("*.part-*"))  # noqa: E731
        seconds, output = interrupt(process, kind, begun, kept, number)
        assert process.returncode == 128 + number and seconds < LIMIT, f"{process.returncode} after {seconds:.1f} s: {output}"
        assert not dest.exists(), f"{dest} is incomplete"


@contextlib.contextmanager
def stalled_registry():
    """A registry that takes connections, and never answers a blob."""
    port = free_port()
    with socket.create_server(("127.0.0.1", port)) as server:
        held = []

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    held.append(server.accept()[0])
        threading.Thread(target=serve, daemon=True).start()
        yield f"localhost:{port}", held
        for connection in held:
            connection.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_push_ends_when_it_is_interrupted(kept, context, number):
    (context / "Dockerfile").write_text("FROM scratch\nCOPY busybox /b\n")
    with stalled_registry() as (host, held):
        process = subprocess.Popen([binary(), "image", "build", "--builder", "embedded", "--plain-http", "--push", "-t", f"{host}/x:1", str(context)],
                                   env=kept.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        seconds, output = interrupt(process, "push", lambda home, lines: bool(held), kept, number)
        assert process.returncode == 128 + number and seconds < LIMIT, f"{process.returncode} after {seconds:.1f} s: {output}"
