"""Each line of the threat model of `jobc serve` in SECURITY.md."""

import json
import os
import socket
import subprocess
import tempfile
import time

import pytest

import needs
from service import job

pytestmark = [pytest.mark.isolated, pytest.mark.duration(15)]
UPLOAD = {"path": "a", "size": 1, "sha256": "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"}


@pytest.fixture(scope="module")
def cookie(service):
    return {"Cookie": service.login().partition(";")[0]}


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "", "evil.example:8750"])
def test_dns_rebinding(service, host):
    answer = service.raw("GET", "/api/v1/session", headers={"Host": host, "Authorization": f"Bearer {service.token}"})
    assert answer.status in (400, 421), answer.text
    assert service.raw("GET", "/", headers={"Host": host}).status in (400, 421)


def test_own_names_are_not_rebinding(make):
    service = make("--host", "jobs.example.org")
    for host in ("localhost:1", "127.0.0.1", "[::1]:9", "jobs.example.org", "a.localhost:80"):
        assert service.raw("GET", "/api/v1/session", headers={"Host": host, "Authorization": f"Bearer {service.token}"}).status == 200, host


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "http://localhost.evil.example", "file://"])
def test_csrf_by_fetch(service, cookie, origin):
    for method, path in (("GET", "/jobs"), ("POST", "/jobs"), ("DELETE", "/jobs/x.1")):
        headers = cookie | {"Origin": origin, "X-Jobc-Request": "1", "Content-Type": "application/json"}
        answer = service.raw(method, f"/api/v1{path}", "{}" if method == "POST" else None, headers)
        assert answer.status == 403 and "Access-Control-Allow-Origin" not in answer.headers, (method, path)


def test_csrf_by_form(service, cookie):
    own = cookie | {"Origin": f"http://127.0.0.1:{service.port}"}
    for kind in ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain"):
        answer = service.raw("POST", "/api/v1/jobs", json.dumps({"text": job("x")}), own | {"Content-Type": kind})
        assert answer.status == 403 and "X-Jobc-Request" in answer.json()["detail"]
        answer = service.raw("POST", "/api/v1/jobs", json.dumps({"text": job("x")}), own | {"Content-Type": kind, "X-Jobc-Request": "1"})
        assert answer.status == 415
    assert service.ok("GET", "/jobs")["jobs"] == []


def test_requests_of_other_sites_without_an_origin(service, cookie):
    """An image or a frame of another site; a link is permitted to open the page."""
    other = {"Sec-Fetch-Site": "cross-site"}
    assert service.raw("GET", "/api/v1/jobs", headers=cookie | other | {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}).status == 403
    assert service.raw("GET", "/", headers=other | {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}).status == 403
    assert service.raw("GET", "/", headers=other | {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}).status == 200


def test_cors_is_off_unless_an_origin_is_named(make):
    for options, status, allowed in (((), 403, None), (("--origin", "https://lab.example"), 200, "https://lab.example")):
        service = make(*options)
        for origin in ("https://lab.example", "https://evil.example"):
            headers = {"Origin": origin, "Authorization": f"Bearer {service.token}"}
            answer = service.raw("GET", "/api/v1/session", headers=headers)
            expected = (status, allowed) if origin == "https://lab.example" else (403, None)
            assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == expected
            assert answer.headers["Access-Control-Allow-Credentials"] is None
            before = service.raw("OPTIONS", "/api/v1/jobs", headers={"Origin": origin, "Access-Control-Request-Method": "POST"})
            assert (before.headers["Access-Control-Allow-Methods"] is not None) == (expected[0] == 200)


def handshake(service, path, headers):
    connection = socket.create_connection(("127.0.0.1", service.port), timeout=10)
    own = {"Host": f"127.0.0.1:{service.port}", "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
           "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    text = "".join(f"{name}: {value}\r\n" for name, value in (own | headers).items())
    connection.sendall(f"GET /api/v1{path} HTTP/1.1\r\n{text}\r\n".encode())
    status = int(connection.recv(4096).split()[1])
    connection.close()
    return status


def test_websocket_of_another_site(service, cookie):
    own = f"http://127.0.0.1:{service.port}"
    assert handshake(service, "/language", cookie | {"Origin": own}) == 101
    assert handshake(service, "/language", {"Authorization": f"Bearer {service.token}"}) == 101
    assert handshake(service, "/language", {}) == 401
    for origin in ("http://evil.example", "null", own + "0"):
        for path in ("/language", "/jobs/x.1/exec"):
            assert handshake(service, path, cookie | {"Origin": origin}) == 403, origin
    assert handshake(service, "/language", cookie) == 403, "a browser sends an origin"


def test_clickjacking_and_scripts(service):
    for path in ("/", "/api/v1/session", "/missing.js", "/jobs/x"):
        headers = service.raw("GET", path).headers
        policy = dict(part.strip().partition(" ")[::2] for part in headers["Content-Security-Policy"].split(";"))
        assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
        assert policy["script-src"] == policy["connect-src"] == "'self'", "no inline scripts, nothing from elsewhere"
        assert headers["X-Frame-Options"] == "DENY" and headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer" and headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", "a//b", "./a", "a/", "..", "a\0b", ""])
def test_upload_paths_that_lead_out(service, path):
    answer = service.call("POST", "/uploads", {"files": [UPLOAD | {"path": path}]})
    assert answer.status == 400, answer.text


def test_uploads_with_other_contents_or_too_much(service):
    assert service.call("POST", "/uploads", {"files": [UPLOAD, UPLOAD]}).status == 400
    assert service.call("POST", "/uploads", {"files": [UPLOAD, UPLOAD | {"path": "a/b"}]}).status == 400
    assert service.call("POST", "/uploads", {"files": [UPLOAD | {"size": 1 << 62}]}).status == 413
    assert service.call("POST", "/uploads", {"files": [UPLOAD | {"sha256": "../../x"}]}).status == 400
    assert service.call("PUT", f"/uploads/blobs/{UPLOAD['sha256']}", b"other").status == 422
    assert service.call("PUT", "/uploads/blobs/..%2Fx", b"x").status in (400, 404)
    # Nothing that is unpacked here can be larger than what was sent.
    assert service.call("PUT", f"/uploads/blobs/{UPLOAD['sha256']}", b"x", Content_Encoding="gzip").status == 415
    assert service.call("POST", "/check", {"text": ""}, Content_Encoding="gzip").status == 415
    kept = service.home / ".cache/jobc/serve/uploads/blobs"
    assert list(kept.iterdir()) == []


def test_job_files_read_what_is_open(service):
    secret = service.directory / "secret.yaml"
    secret.write_text("password: hunter2\n")
    os.symlink(secret, service.open / "link.yaml")
    for uses in (str(secret), "../secret.yaml", "link.yaml", "/etc/passwd"):
        text = f"version: 1\nname: x\nimage: host\nroles: {{main: {{run: ls, uses: {json.dumps(uses)}}}}}\n"
        for path in ("/check", "/plan", "/build"):
            answer = service.call("POST", path, {"text": text})
            assert "hunter2" not in answer.text and "root:x:0" not in answer.text, answer.text
    for directory in ("..", "/", "/etc", "link.yaml"):
        assert service.call("POST", "/check", {"text": "", "directory": directory}).status == 403, directory


def test_environment_of_the_server_stays_its_own(make):
    service = make(start=False)
    service.start(environment=service.environment | {"SECRET_OF_SERVER": "hunter2"})
    text = "version: 1\nname: x\nparams: {p: {type: string, from_env: SECRET_OF_SERVER, default: none}}\nimage: host\nroles: {main: {run: 'echo ${{ params.p }}'}}\n"
    for path in ("/check", "/plan", "/build"):
        assert "hunter2" not in service.call("POST", path, {"text": text}).text


def test_options_are_not_taken_from_requests(service):
    for name in ("--help", "-h", "--all", "..", "x%00", "a%2Fb%2Fc", "%2Fetc", "X", "%F0%9F%98%80"):
        answer = service.call("GET", f"/jobs/{name}")
        assert answer.status == 404, (name, answer.text)
    for path in ("/jobs/x.1/logs?task=--help", "/places/--help", "/templates/--help"):
        assert service.call("GET", path).status in (400, 404), path
    answer = service.call("POST", "/check", {"text": "version: 1\n", "targets": ["--help"]})
    assert answer.status == 422 or answer.json()["diagnostics"] is not None, answer.text
    assert service.call("POST", "/jobs/x.1/kill", {"tasks": ["\0"]}).status == 400
    assert "Usage" not in answer.text


def test_slow_header_is_cut_off(service):
    slow = socket.create_connection(("127.0.0.1", service.port), timeout=30)
    slow.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
    start = time.monotonic()
    slow.recv(100)
    assert 5 < time.monotonic() - start < 20
    slow.close()


def test_large_requests_are_refused(service):
    assert service.call("POST", "/check", {"text": "x" * (5 << 20)}).status == 413
    assert service.raw("POST", "/api/v1/session", "x" * 100_000).status == 400
    connection = socket.create_connection(("127.0.0.1", service.port), timeout=10)
    connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 200_000)
    assert connection.recv(100).split()[1] in (b"431", b"400")
    deep = "[" * 100_000
    assert service.call("POST", "/check", deep, Content_Type="application/json").status == 400
    assert service.call("POST", "/check", {"text": deep}).status in (200, 422)


def test_too_many_requests_and_streams(make):
    service = make()
    assert service.ok("POST", "/jobs", {"text": job("many", "sleep 600")})["ref"] == "many.1"
    statuses, streams = [], []
    for _ in range(400):
        connection = service.connection()
        connection.request("GET", "/api/v1/jobs/many.1/events", headers={"Authorization": f"Bearer {service.token}", "Accept": "text/event-stream"})
        response = connection.getresponse()
        statuses.append(response.status)
        streams.append(connection)
        if response.status == 429:
            assert response.headers["Retry-After"] == "1"
            time.sleep(0.02)
    assert set(statuses) == {200, 429} and statuses.count(200) <= 256
    for connection in streams:
        connection.close()
    time.sleep(1.5)
    assert service.call("GET", "/session").status == 200


def test_lines_of_logs_are_data(service):
    """A line with HTML, terminal escapes or the form of an event stream is one line of JSON, and a long one arrives in parts."""
    run = r"printf '<script>alert(1)</script>\033[31mred\n\rdata: x\nevent: end\n\n'; head -c 300000 /dev/zero | tr '\0' x"
    ref = service.ok("POST", "/jobs", {"text": job("lines", run)})["ref"]
    service.until(ref, "succeeded")
    stream = service.stream(f"/jobs/{ref}/logs")
    events = stream.until_end()
    stream.close()
    texts = [data["text"] for _, name, data in events if name == "line"]
    assert texts[0] == "<script>alert(1)</script>\x1b[31mred"
    assert "event: end" in texts and [name for _, name, _ in events].count("end") == 1
    assert sum(text.count("x") for text in texts if set(text) == {"x"}) == 300_000
    assert max(map(len, texts)) <= 1 << 16
    answer = service.call("GET", f"/jobs/{ref}/logs")
    assert answer.headers["Content-Type"] == "application/json"


def open_directory():
    """A directory that every user may enter; that of the tests is root's."""
    directory = tempfile.mkdtemp(prefix="jobc-serve-")
    os.chmod(directory, 0o755)
    return directory


@pytest.mark.needs("root", "setpriv")
def test_another_local_user(make):
    """CVE-2026-55172 is about who owns a session's directory: what is in it is read by this user alone."""
    service = make()
    directory = open_directory()
    other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    for path in (service.home / ".local/state/jobc/serve", service.home / ".cache/jobc/serve"):
        assert subprocess.run([*other, "ls", path], capture_output=True, check=False).returncode != 0
    fetch = [*other, needs.tool("curl"), "--silent", "--max-time", "10", "--write-out", "%{http_code}", "--output", "/dev/null"]
    answer = subprocess.run([*fetch, f"http://127.0.0.1:{service.port}/api/v1/jobs"], capture_output=True, text=True, check=True)
    assert answer.stdout == "401"
    own = make(listen=f"unix:{directory}/own")
    assert os.stat(f"{directory}/own").st_mode & 0o777 == 0o600
    assert own.call("GET", "/session").json()["user"] == "root"
    os.chmod(f"{directory}/own", 0o666)
    answer = subprocess.run([*fetch, "--unix-socket", f"{directory}/own", "http://localhost/api/v1/jobs"], capture_output=True, text=True, check=True)
    assert answer.stdout == "403", "the kernel says who it is"


@pytest.mark.needs("root", "setpriv")
def test_forged_proxy_header(make):
    directory = open_directory()
    path = f"{directory}/socket"
    service = make("--trust-proxy-user", "X-User", "--proxy-account", "nobody", "--operator", "ops", listen=f"unix:{path}")

    def fetch(*headers, uid=65534, what="session", more=()):
        words = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", needs.tool("curl"), "--silent", "--max-time", "20", "--unix-socket", path]
        words += [word for header in headers for word in ("--header", header)]
        answer = subprocess.run([*words, "--write-out", "\n%{http_code}", *more, f"http://localhost/api/v1/{what}"], capture_output=True, text=True, check=True)
        body, _, status = answer.stdout.rpartition("\n")
        return int(status), json.loads(body) if body.startswith(("{", "[")) else body

    assert fetch("X-User: ada")[1]["user"] == "ada"
    assert fetch("X-User: ada")[1]["operator"] is False and fetch("X-User: ops")[1]["operator"] is True
    assert fetch()[0] == 401, "the proxy names no user"
    assert fetch("X-User: ada", "X-User: ops")[0] == 401
    for wrong in ("X-User: a b", "X-User: ../x", "X-User: " + "x" * 65, "X-User: a\x07"):
        assert fetch(wrong)[0] in (400, 401), wrong
    assert fetch("X-User: ada", uid=1)[0] == 403, "another user of the host"
    assert fetch("X-User: ada", uid=0)[1]["user"] == "root", "the header counts from the proxy alone"
    # Users see what they started.
    body = ["--header", "X-Jobc-Request: 1", "--json", json.dumps({"text": job("mine")})]
    assert fetch("X-User: ada", what="jobs", more=["--json", json.dumps({"text": job("mine")})])[0] == 403, "CSRF"
    status, started = fetch("X-User: ada", what="jobs", more=body)
    assert status == 201, started
    for user, count in (("ada", 1), ("eve", 0), ("ops", 1)):
        assert len(fetch(f"X-User: {user}", what="jobs")[1]["jobs"]) == count, user
    ref = started["ref"]
    for what in (ref, f"{ref}/logs", f"{ref}/events", f"{ref}/source", f"{ref}/outputs", f"{ref}/report"):
        assert fetch("X-User: eve", what=f"jobs/{what}")[0] == 404, what
        assert fetch("X-User: ada", what=f"jobs/{what}")[0] == 200, what
    assert fetch("X-User: eve", "X-Jobc-Request: 1", what=f"jobs/{ref}/stop", more=["--request", "POST"])[0] == 404
    users = [(line["user"], line["action"], line["status"]) for line in service.audit()]
    assert ("ada", "submit", 201) in users and ("eve", "stop", 404) in users


def test_secrets_are_in_no_answer(make):
    """CVE-2026-55169 is a password in a log."""
    service = make(start=False)
    service.start(environment=service.environment | {"HIDDEN": "hunter2-value"})
    text = "version: 1\nname: hidden\nimage: host\nsecrets: {key: {env: HIDDEN}}\nroles: {main: {shell: sh, env: {KEY: '${{ secrets.key }}'}, run: 'echo ${#KEY}'}}\n"
    ref = service.ok("POST", "/jobs", {"text": text})["ref"]
    service.until(ref, "succeeded", "failed")
    for path in ("", "/logs", "/events", "/source", "/reasons", "/outputs", "/report", "/artifacts"):
        answer = service.call("GET", f"/jobs/{ref}{path}")
        assert answer.status == 200 and b"hunter2-value" not in answer.bytes, (path, answer.text[:500])
    assert service.ok("GET", f"/jobs/{ref}/logs")["lines"][0]["text"] == "13"
    for file in (service.home / ".local/state/jobc/serve").iterdir():
        assert "hunter2-value" not in file.read_text()
    assert "hunter2-value" not in service.log.read_text() and service.token not in service.log.read_text()


def test_outputs_that_lead_out(service):
    (service.directory / "outside").mkdir()
    (service.directory / "outside/secret").write_text("hunter2")
    text = ("version: 1\nname: outputs\nimage: host\noutputs: {res: {source: ./res, mount: /mnt}, far: {source: ../outside, mount: /media}}\n"
            "roles: {main: {shell: sh, run: 'echo good > /mnt/a; ln -s ../../outside/secret /mnt/link; ln -s / /mnt/root; mkfifo /mnt/fifo; echo hi > \"/mnt/ü b\"'}}\n")
    ref = service.ok("POST", "/jobs", {"text": text})["ref"]
    assert service.until(ref, "succeeded", "failed")["state"] == "succeeded", service.ok("GET", f"/jobs/{ref}/logs")
    assert [file["path"] for file in service.ok("GET", f"/jobs/{ref}/outputs")["files"]] == ["res", "far"]
    assert [file["path"] for file in service.ok("GET", f"/jobs/{ref}/outputs?path=res")["files"]] == ["res/a", "res/ü b"]
    answer = service.call("GET", f"/jobs/{ref}/outputs/res/a")
    assert (answer.status, answer.bytes) == (200, b"good\n")
    assert answer.headers["Content-Disposition"].startswith("attachment") and "sandbox" in answer.headers["Content-Security-Policy"]
    assert service.call("GET", f"/jobs/{ref}/outputs/res/%C3%BC%20b").bytes == b"hi\n"
    for path in ("res/link", "res/root/etc/passwd", "res/fifo", "res/../../outside/secret", "res/%2e%2e/%2e%2e/outside/secret", "far/secret", "res", "other/a", "res/a%00"):
        answer = service.call("GET", f"/jobs/{ref}/outputs/{path}")
        assert answer.status in (400, 403, 404) and b"hunter2" not in answer.bytes and b"root:x" not in answer.bytes, (path, answer.status)


def test_actions_are_audited(make):
    service = make()
    ref = service.ok("POST", "/jobs", {"text": job("audited", "sleep 600")})["ref"]
    service.ok("POST", f"/jobs/{ref}/kill")
    service.until(ref, "failed", "stopped")
    assert service.call("POST", "/jobs/missing/stop").status == 404
    service.login()
    assert service.raw("POST", "/api/v1/session", json.dumps({"token": "wrong"})).status == 401
    assert service.raw("POST", "/api/v1/jobs", "{}").status == 401
    lines = [(line["action"], line["status"], line.get("about", "")) for line in service.audit()]
    user = service.ok("GET", "/session")["user"]
    assert ("submit", 201, "to local") in lines and ("kill", 200, ref) in lines and ("stop", 404, "missing") in lines, lines
    assert ("login", 204, "") in lines and ("login", 401, "") in lines and ("submit", 401, "/api/v1/jobs") in lines
    assert {line["user"] for line in service.audit()} == {user, ""} and all(line["from"] == "127.0.0.1" for line in service.audit())


@pytest.mark.needs("root", "mount")
def test_nothing_is_done_that_cannot_be_audited(make, tmp_path_factory):
    disk = tmp_path_factory.mktemp("disk")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", disk], check=True)
    service = make("--audit", f"{disk}/audit")
    (disk / "fill").write_bytes(b"")
    with pytest.raises(OSError), open(disk / "fill", "wb", buffering=0) as file:
        while file.write(b"x" * 512):
            pass
    answer = service.call("POST", "/jobs", {"text": job("unseen")})
    assert answer.status == 503 and "audit file" in answer.json()["detail"], answer.text
    assert service.ok("GET", "/jobs")["jobs"] == []
    (disk / "fill").unlink()
    assert service.call("POST", "/jobs", {"text": job("seen")}).status == 201
    subprocess.run(["umount", "--lazy", disk], check=True)


@pytest.mark.needs("openssl", "curl")
def test_tls_on_an_address_of_the_network(make, tmp_path_factory):
    directory = tmp_path_factory.mktemp("tls")
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "key", "-out", "cert", "-days", "1",
             "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run(words, cwd=directory, check=True, capture_output=True)
    service = make("--tls-cert", f"{directory}/cert", "--tls-key", f"{directory}/key", listen="0.0.0.0:0")
    assert service.link.startswith("https://localhost:")
    fetch = ["curl", "--silent", "--dump-header", "-", "--cacert", f"{directory}/cert", f"https://localhost:{service.port}/api/v1/session"]
    answer = subprocess.run([*fetch, "--json", json.dumps({"token": service.token})], capture_output=True, text=True, check=True).stdout
    assert "204" in answer.splitlines()[0] and "; Secure" in answer and "strict-transport-security" in answer.lower()
    plain = subprocess.run(["curl", "--silent", f"http://127.0.0.1:{service.port}/"], capture_output=True, check=False)
    assert plain.returncode != 0
