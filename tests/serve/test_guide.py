"""What docs/guides/serve.md tells users to do, done."""

import http.client
import json
import os
import re
import socket
import subprocess
import sys
import time

import pytest

from harness import REPOSITORY, scratch
from runtime import binary

pytestmark = [pytest.mark.isolated, pytest.mark.duration(20)]
GUIDE = (REPOSITORY / "docs/guides/serve.md").read_text()


@pytest.mark.needs("systemd-analyze")
def test_systemd_unit():
    unit = re.search(r"```ini\n(.*?)```", GUIDE, re.S)[1]
    with scratch() as directory:
        program = directory / ".local/bin/jobc"
        program.parent.mkdir(parents=True)
        program.symlink_to(binary())
        file = directory / "jobc-serve.service"
        file.write_text(unit)
        environment = os.environ | {"HOME": str(directory), "XDG_RUNTIME_DIR": str(directory)}
        checked = subprocess.run(["systemd-analyze", "--user", "verify", str(file)], capture_output=True, text=True, check=False, env=environment)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


@pytest.mark.needs("root", "ssh", "ssh-keygen", "sshd")
def test_ssh_forwards_to_a_server_that_ends_with_it():
    sys.path.append(str(REPOSITORY / "tests/remote"))
    from sshd import Sshd

    command = re.search(r"^ssh (-t -L) (8750):127.0.0.1:8750 box (jobc serve --root work)$", GUIDE, re.M)
    with scratch() as directory:
        (directory / "bin").mkdir()
        (directory / "bin/jobc").symlink_to(binary())
        box = Sshd(directory / "ssh", directory / "home", variables={"PATH": f"{directory}/bin:/usr/bin:/bin"})
        (box.home / "work").mkdir()
        box.start()
        # Both ends are on this host, so they have ports of their own.
        with socket.socket() as one, socket.socket() as other:
            ports = []
            for free in (one, other):
                free.bind(("127.0.0.1", 0))
                ports.append(free.getsockname()[1])
        # `-tt`, for this process has no terminal.
        words = ["ssh", *command[1].replace("-t", "-tt").split(), f"{ports[0]}:127.0.0.1:{ports[1]}", "box", f"cd && {command[3]} --listen {ports[1]}"]
        tunnel = subprocess.Popen(words, env=os.environ | box.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            text = ""
            while not (link := re.search(rf"http://127\.0\.0\.1:{ports[1]}/#token=(\S+)", text)):
                line = tunnel.stdout.readline()
                assert line, text
                text += line
            laptop = http.client.HTTPConnection("127.0.0.1", ports[0], timeout=10)
            laptop.request("POST", "/api/v1/session", json.dumps({"token": link[1]}), {"Origin": f"http://127.0.0.1:{ports[0]}", "Content-Type": "application/json"})
            answer = laptop.getresponse()
            assert (answer.status, answer.read()) == (204, b"")
            laptop.request("GET", "/api/v1/session", headers={"Cookie": answer.headers["Set-Cookie"].partition(";")[0]})
            assert json.loads(laptop.getresponse().read())["roots"] == [str(box.home / "work")]
        finally:
            tunnel.terminate()
            tunnel.wait(10)
        deadline = time.monotonic() + 10
        while socket.socket().connect_ex(("127.0.0.1", ports[1])) == 0:
            assert time.monotonic() < deadline, "the server outlives the connection"
            time.sleep(0.1)
        box.close(directory / "sockets")
