"""A server of this tree's `jobc serve`, and callers of it."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from runtime import binary

SECONDS = 30
HOST = "version: 1\nname: {name}\nimage: host\nroles:\n  main:\n    shell: sh\n    run: |\n      {run}\n"


def job(name, run="echo hello"):
    return HOST.format(name=name, run=run)


class Answer:
    def __init__(self, response):
        self.status, self.headers, self.bytes = response.status, response.headers, response.read()

    @property
    def text(self):
        return self.bytes.decode()

    def json(self):
        return json.loads(self.bytes)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=SECONDS)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(SECONDS)
        self.sock.connect(str(self.path))


class Service:
    """A server with a home directory and an open directory of its own."""

    def __init__(self, directory, *options, listen="0", start=True):
        self.directory, self.options, self.listen = Path(directory), options, listen
        self.home, self.open = self.directory / "home", self.directory / "open"
        for path in (self.home, self.open):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "JOBC_COLOR": "never"}
        self.process, self.program, self.account = None, binary(), None
        if start:
            self.start()

    def start(self, *more, environment=None):
        self.log = self.directory / "log"
        prefix = self.account.prefix() if self.account else []
        words = [*prefix, str(self.program), "serve", "--listen", self.listen, "--root", str(self.open), *self.options, *more]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment or self.environment, cwd=self.open)
        deadline = time.monotonic() + SECONDS
        while "listening on" not in self.log.read_text():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"exit {self.process.poll()}: {self.log.read_text()}")
            time.sleep(0.01)
        text = self.log.read_text()
        if self.listen.startswith("unix:"):
            self.socket = self.listen.removeprefix("unix:")
            return
        self.port = int(re.search(r"listening on \S+:(\d+)", text)[1])
        self.link = Path(re.search(r"link is in `(.*)`", text)[1]).read_text().strip()
        self.token = self.link.partition("#token=")[2]

    def stop(self, number=signal.SIGTERM):
        if self.process and self.process.poll() is None:
            self.process.send_signal(number)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise
        return self.process and self.process.returncode

    def connection(self):
        if self.listen.startswith("unix:"):
            return UnixConnection(self.socket)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)

    def raw(self, method, path, body=None, headers=None):
        """A request with these headers alone, apart from Host and the length."""
        connection = self.connection()
        try:
            connection.request(method, path, body=body, headers=headers or {})
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def call(self, method, path, body=None, token=None, **headers):
        """A request of a program that has the token."""
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if not self.listen.startswith("unix:"):
            headers.setdefault("Authorization", f"Bearer {token or self.token}")
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
            headers.setdefault("Content-Type", "application/json")
        return self.raw(method, f"/api/v1{path}", body, headers)

    def ok(self, method, path, body=None, **headers):
        answer = self.call(method, path, body, **headers)
        assert answer.status in (200, 201, 204), f"{method} {path}: {answer.status} {answer.text}"
        return answer.json() if answer.bytes else None

    def login(self, token=None):
        """The cookie of a new session."""
        answer = self.raw("POST", "/api/v1/session", json.dumps({"token": token or self.token}))
        assert answer.status == 204, answer.text
        return answer.headers["Set-Cookie"]

    def stream(self, path, **headers):
        return Stream(self, path, headers)

    def audit(self):
        file = self.home / ".local/state/jobc/serve/audit.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()]

    def jobc(self, *words, **options):
        """This tree's command line for the same user."""
        return subprocess.run([str(binary()), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, env=self.environment,
                              timeout=SECONDS, check=False, cwd=self.open, **options)

    def until(self, ref, *states, seconds=SECONDS):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = self.ok("GET", f"/jobs/{ref}")
            if found["state"] in states:
                return found
            time.sleep(0.05)
        raise TimeoutError(f"{ref}: {found['state']}")


class Stream:
    """Server-sent events."""

    def __init__(self, service, path, headers):
        self.connection = service.connection()
        own = {"Authorization": f"Bearer {service.token}", "Accept": "text/event-stream"}
        self.connection.request("GET", f"/api/v1{path}", headers=own | headers)
        self.response = self.connection.getresponse()
        assert self.response.status == 200, (self.response.status, self.response.read())

    def events(self):
        """Pairs of the ID, the name and the data of each event until the stream ends."""
        found = {}
        while line := self.response.readline():
            line = line.decode().rstrip("\n")
            if not line:
                if "event" in found:
                    yield found.get("id"), found["event"], json.loads(found["data"])
                found = {}
            elif not line.startswith(":"):
                name, _, value = line.partition(": ")
                found[name] = value

    def until_end(self):
        events = []
        for event in self.events():
            events.append(event)
            if event[1] == "end":
                return events
        raise AssertionError(f"it ended without an end: {events[-3:]}")

    def close(self):
        self.connection.close()


def remove(path):
    shutil.rmtree(path, ignore_errors=True)
