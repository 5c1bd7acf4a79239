"""Tests `notify`: who hears of the start and the end of a job of this host, and that no job waits for it."""

import http.server
import json
import os
import socket
import threading
import time

import pytest

from command_line import expect

pytestmark = [pytest.mark.isolated, pytest.mark.duration(8), pytest.mark.accounts("root")]

JOB = """\
version: 1
name: {name}
image: host
{more}
roles:
  main:
    shell: sh
    run: '{run}'
"""


class Server:
    """A web server that keeps what it gets, and answers with a status."""

    def __init__(self, status=204):
        requests = self.requests = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                requests.append((self.path, self.headers["Content-Type"], json.loads(body)))
                self.send_response(status)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, path):
        return f"http://127.0.0.1:{self.server.server_port}/{path}"


def run(jobs, name, more, run="exit 3", **variables):
    """Runs a job; returns how long the command took."""
    path = jobs.directory / f"{name}.yaml"
    path.write_text(JOB.format(name=name, more=more, run=run))
    began = time.monotonic()
    jobs.call("run", *jobs.unenforced, str(path), cwd=jobs.directory, **variables)
    return time.monotonic() - began


def notified(jobs, name, count):
    """The events about the notices of a job, once there are that many."""
    deadline = time.monotonic() + 45
    while True:
        lines = expect(jobs.call("events", name, "--format", "json")).stdout.splitlines()
        events = [json.loads(line) for line in lines if '"notified"' in line]
        if len(events) >= count or time.monotonic() > deadline:
            assert len(events) == count, events
            return [event["detail"] for event in events]
        time.sleep(0.1)


def test_a_webhook_gets_the_end_and_its_address_stays_secret(jobs):
    server = Server()
    more = "secrets: {hook: {env: HOOK}}\nnotify:\n  - {on: [failed, started], webhook: hook}\n  - {on: [succeeded], webhook: hook}"
    run(jobs, "hook", more, HOOK=server.url("key-4711"))
    details = notified(jobs, "hook", 2)
    assert sorted((detail["on"], detail["to"]) for detail in details) == [("failed", "webhook `hook`"), ("started", "webhook `hook`")], details
    assert {(path, kind) for path, kind, _ in server.requests} == {("/key-4711", "application/json")}
    started, failed = sorted((body for _, _, body in server.requests), key=lambda body: body["on"] == "failed")
    assert started["text"] == f"hook.1 on {socket.gethostname()}: started" and started["state"] == "running", started
    assert failed["text"].endswith(": failed: main-0: exit 3") and failed["content"] == failed["text"], failed
    assert (failed["job"], failed["state"], failed["explanation"]) == ("hook.1", "failed", "failed: main-0: exit 3"), failed
    record = jobs.home / ".local/state/jobc/jobs/hook.1"
    files = [path for path in record.rglob("*") if path.is_file()]
    assert files and not [path for path in files if b"key-4711" in path.read_bytes()]


def test_no_job_waits_for_a_server_that_is_gone_or_silent(jobs):
    with socket.socket() as silent, socket.socket() as gone:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        gone.bind(("127.0.0.1", 0))
        urls = {f"HOOK_{number}": f"http://127.0.0.1:{one.getsockname()[1]}/" for number, one in enumerate((silent, gone))}
        refused = Server(status=500)
        more = "secrets: {silent: {env: HOOK_0}, gone: {env: HOOK_1}, broken: {env: HOOK_2}}\nnotify:\n" + "".join(
            f"  - {{on: [succeeded], webhook: {name}}}\n" for name in ("silent", "gone", "broken"))
        assert run(jobs, "dead", more, "true", HOOK_2=refused.url(""), **urls) < 10
        details = {detail["to"]: detail["error"] for detail in notified(jobs, "dead", 3)}
    assert "timed out after" in details["webhook `silent`"], details
    assert "connect to" in details["webhook `gone`"] and details["webhook `broken`"].endswith("error: 500"), details
    shown = expect(jobs.call("events", "dead")).stdout
    assert "succeeded, webhook `gone`: failed: " in shown, shown
    state = json.loads(expect(jobs.call("ps", "dead", "--format", "json")).stdout)
    assert "succeeded" in json.dumps(state), state


def test_a_command_and_a_mail(jobs):
    programs = jobs.directory / "programs"
    programs.mkdir()
    mail = programs / "sendmail"
    mail.write_text(f"#!/bin/sh\necho \"$@\" >{programs}/words; cat >{programs}/mail\n")
    mail.chmod(0o755)
    more = """notify:
  - {on: [failed], email: ada@example.com}
  - {on: [failed], run: 'echo "$JOBC_NOTICE_ON $JOBC_JOB $JOBC_STATE $JOBC_NOTICE" >said'}
  - {on: [failed], run: "echo out of order >&2; exit 7"}"""

    run(jobs, "words", more, PATH=f"{programs}:{os.environ['PATH']}")
    details = notified(jobs, "words", 3)
    assert {detail.get("error") for detail in details} == {None, "out of order"}, details
    said = (jobs.directory / "said").read_text()
    assert said == f"failed words.1 failed words.1 on {socket.gethostname()}: failed: main-0: exit 3\n"
    assert (programs / "words").read_text() == "-i -- ada@example.com\n"
    head, _, body = (programs / "mail").read_text().partition("\n\n")
    assert "To: ada@example.com\n" in head and "Subject: jobc: words.1 on" in head and body.endswith("main-0: exit 3\n")


def test_a_webhook_is_an_address_of_https(jobs):
    path = jobs.directory / "plain.yaml"
    path.write_text(JOB.format(name="plain", run="true", more="secrets: {hook: {env: HOOK}}\nnotify: [{on: [failed], webhook: hook}]"))
    expect(jobs.call("run", *jobs.unenforced, str(path), HOOK="http://example.com/", cwd=jobs.directory), code=125,
           error="the webhook of the secret `hook` is not an address of https")
