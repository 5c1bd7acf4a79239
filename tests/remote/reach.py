"""Checks of commands that reach into a task. `start` starts jobc with words and streams."""

import contextlib
import os
import pty
import signal
import socket
import termios
import threading
import time

SECONDS = 60


def check_terminal(start, handle):
    """A command gets a terminal with the size of this one, and no noise of profiles."""
    leader, follower = pty.openpty()
    termios.tcsetwinsize(follower, (33, 77))
    process = start("exec", "-it", handle, "--", "sh", "-c", "stty size; read line; echo got $line; exit 5",
                    stdin=follower, stdout=follower, stderr=follower)
    os.close(follower)
    output, deadline = bytearray(), time.monotonic() + SECONDS

    def read():
        with contextlib.suppress(OSError):
            while chunk := os.read(leader, 4096):
                output.extend(chunk)

    reader = threading.Thread(target=read)
    reader.start()
    while b"33 77" not in output and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    os.write(leader, b"word\n")
    process.wait(SECONDS)
    reader.join(SECONDS)
    os.close(leader)
    assert process.returncode == 5 and b"33 77" in output and b"got word" in output and b"Welcome" not in output, \
        f"exec -it ended with {process.returncode}: {bytes(output)!r}"


def check_forwarding(start, handle):
    """The port `http` of a task answers here with a page, several times."""
    forward = start("port-forward", handle, "main:http")
    line = forward.stdout.readline()
    assert line, f"port-forward: {forward.communicate(timeout=10)}"
    port = int(line.split(" ")[0].rpartition(":")[2])
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", port), 10) as connection:
            connection.settimeout(10)
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        assert answer.endswith(b"page\n"), f"port-forward: {answer!r}"
    forward.send_signal(signal.SIGINT)
    forward.communicate(timeout=20)
    assert forward.returncode == 0, f"port-forward ended with {forward.returncode}"
