"""Tokens, cookies, and what each of them permits."""

import json
import re
import signal
import stat
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.isolated, pytest.mark.duration(10)]


def test_link_is_for_this_user_alone(service):
    """CVE-2026-55171 is a predictable passphrase: the token has 256 bits, no log has it, and no other user can read its file."""
    file = service.home / ".local/state/jobc/serve/link"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", service.token)
    assert re.fullmatch(rf"http://127\.0\.0\.1:{service.port}/#token={service.token}", service.link)
    assert service.token not in service.log.read_text()
    words = (f"/proc/{service.process.pid}/cmdline", f"/proc/{service.process.pid}/environ")
    assert not any(service.token in open(name).read() for name in words)


def test_token_becomes_a_cookie_that_scripts_do_not_see(service):
    cookie = service.login()
    assert re.search(r"^jobc_session=[A-Za-z0-9_-]{43}; Path=/; Max-Age=\d+; HttpOnly; SameSite=Strict$", cookie)
    assert service.token not in cookie
    own = {"Cookie": cookie.partition(";")[0]}
    found = service.raw("GET", "/api/v1/session", headers=own).json()
    assert (found["access"], found["operator"], found["roots"]) == ("submit", True, [str(service.open)])
    assert service.raw("DELETE", "/api/v1/session", headers=own | {"X-Jobc-Request": "1"}).status == 204
    assert service.raw("GET", "/api/v1/session", headers=own).status == 401


def test_nothing_is_kept_by_which_one_could_log_in(service):
    cookie = service.login().partition(";")[0].partition("=")[2]
    kept = service.home / ".local/state/jobc/serve"
    for file in kept.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
        text = file.read_text()
        assert cookie not in text and (file.name == "link" or service.token not in text), file


@pytest.mark.parametrize("path", ["/session", "/jobs", "/jobs/x.1", "/jobs/x.1/logs", "/places", "/gpus", "/images", "/templates", "/doctor"])
def test_without_a_token_nothing_is_shown(service, path):
    for headers in ({}, {"Authorization": "Bearer x"}, {"Authorization": "Basic x"}, {"Cookie": "jobc_session=x"}, {"Authorization": "Bearer"}):
        answer = service.raw("GET", f"/api/v1{path}", headers=headers)
        assert answer.status == 401 and answer.headers["WWW-Authenticate"] == "Bearer", headers
        assert answer.headers["Content-Type"] == "application/problem+json"


def test_a_token_in_the_address_is_none(service):
    """Addresses are in logs and referrers."""
    for query in (f"token={service.token}", f"access_token={service.token}"):
        assert service.raw("GET", f"/api/v1/session?{query}").status == 401


def test_open_gives_the_browser_a_file_and_no_token(make):
    """CVE-2026-55169 is a secret that others can read: the words of a program are such a place."""
    service = make(start=False)
    browser = service.directory / "bin/xdg-open"
    browser.parent.mkdir()
    browser.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" >{service.directory}/opened.new; mv {service.directory}/opened.new {service.directory}/opened\n")
    browser.chmod(0o755)
    service.start("--open", environment=service.environment | {"DISPLAY": ":7", "PATH": f"{browser.parent}:{service.environment['PATH']}"})
    opened = service.directory / "opened"
    deadline = time.monotonic() + 20
    while not opened.exists():
        assert time.monotonic() < deadline, service.log.read_text()
        time.sleep(0.05)
    file = Path(opened.read_text().strip())
    assert f"url={service.link}" in file.read_text() and stat.S_IMODE(file.stat().st_mode) == 0o600
    service.stop()
    service.start("--open")
    assert "no browser was found" in service.log.read_text()


def test_guesses_are_refused_and_slowed_down(make):
    service = make()
    # On one connection, so that a busy host sends more than are let through, too.
    connection, statuses = service.connection(), []
    while 429 not in statuses and len(statuses) < 2000:
        connection.request("POST", "/api/v1/session", json.dumps({"token": "x" * 43}))
        response = connection.getresponse()
        response.read()
        statuses.append(response.status)
    assert set(statuses) == {401, 429} and len(statuses) > 200, statuses[-1]
    assert service.call("GET", "/session").status == 200, "others are not"
    assert len(service.audit()) <= len(statuses)


def test_session_outlives_a_server_that_was_killed(make):
    service = make()
    own = {"Cookie": service.login().partition(";")[0]}
    old = service.token
    service.stop(signal.SIGKILL)
    service.start()
    assert service.raw("GET", "/api/v1/session", headers=own).status == 200
    assert service.token != old
    assert service.call("GET", "/session", token=old).status == 401, "the link of the first one ended with it"


def test_shared_links_permit_less_and_end(make):
    service = make("--share", "read:1h", "--share", "submit:2s")
    shared = dict(re.findall(r"to (read|submit) for .*#token=(\S+)", service.log.read_text()))
    assert service.call("GET", "/session", token=shared["read"]).json()["user"] == "read-1"
    body = {"text": "version: 1\n"}
    assert service.call("POST", "/check", body, token=shared["read"]).status == 200
    for method, path in (("POST", "/jobs"), ("POST", "/jobs/x.1/stop"), ("DELETE", "/jobs/x.1"), ("POST", "/uploads"), ("GET", "/jobs/x.1/exec")):
        answer = service.call(method, path, body if method == "POST" else None, token=shared["read"])
        assert answer.status == 403 and "may look" in answer.json()["detail"], (path, answer.text)
    cookie = {"Cookie": service.login(shared["submit"]).partition(";")[0]}
    assert service.raw("GET", "/api/v1/session", headers=cookie).json()["access"] == "submit"
    time.sleep(2.2)
    assert service.call("GET", "/session", token=shared["submit"]).status == 401
    assert service.raw("GET", "/api/v1/session", headers=cookie).status == 401
    assert service.call("GET", "/session", token=shared["read"]).status == 200


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_at_once(make, number):
    service = make()
    stream = service.connection()
    stream.connect()
    start = time.monotonic()
    assert service.stop(number) == 0 and time.monotonic() - start < 2


def test_address_in_use_and_others_are_clear_errors(make, tmp_path):
    service = make()
    first = service.jobc("serve", "--listen", str(service.port))
    assert (first.returncode, first.stderr.splitlines()[0]) == (3, f"error: `127.0.0.1:{service.port}` is in use by another program")
    for options, error in (
        (["--listen", "0.0.0.0:0"], "an address of the network needs TLS"),
        (["--listen", "192.0.2.1:1", "--tls-cert", "x", "--tls-key", "y"], "cannot read `x`"),
        (["--listen", "unix:/proc/x"], ""),
        (["--root", "/missing"], "cannot use `/missing`"),
        (["--listen", "0", "--audit", "/dev/full"], "is not a regular file"),
        (["--listen", "0", "--trust-proxy-user", "X-User", "--proxy-account", "root"], "needs a Unix socket"),
        (["--listen", "unix:/tmp/x", "--trust-proxy-user", "X-User", "--proxy-account", "nobody-here"], "unknown user"),
    ):
        answer = service.jobc("serve", *options)
        assert answer.returncode in (2, 3) and error in answer.stderr and answer.stderr.startswith("error: "), (options, answer.stderr)
    for options in (["--listen", "x:1"], ["--share", "all"], ["--origin", "*"], ["--trust-proxy-user", "X-User"], ["--tls-cert", "x"]):
        assert service.jobc("serve", *options).returncode == 2, options
