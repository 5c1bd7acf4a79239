"""A web server on loopback, with or without TLS: files with validators, faults, and git repositories by `git http-backend`."""

import hashlib
import os
import ssl
import subprocess
import threading
import time
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODIFIED = 1_000_000_000


class Web:
    """Serves `files` (path: content); `git` is a directory of repositories. `requests` are method, path, headers and status."""

    def __init__(self, certificates=None, git=None):
        self.files, self.hooks, self.git, self.requests = {}, {}, git, []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        if certificates:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificates / "server.pem", certificates / "server.key")
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        scheme = "https" if certificates else "http"
        self.url = f"{scheme}://localhost:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def statuses(self, path):
        """The statuses of the requests for a path since the last call."""
        found = [status for requested, status in self.requests if requested == path]
        self.requests = [entry for entry in self.requests if entry[0] != path]
        return found

    def handler(web):
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self, status, content=b"", **headers):
                web.requests.append((self.path, status))
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.end_headers()
                if status != 304:
                    self.wfile.write(content)

            def do_GET(self):
                path = self.path.split("?")[0]
                if path in web.hooks:
                    return web.hooks[path](self)
                if path.startswith("/git/") and web.git:
                    return backend(self, web)
                if path not in web.files:
                    return self.answer(404, b"nothing\n")
                content = web.files[path]
                tag = '"' + hashlib.sha256(content).hexdigest()[:16] + '"'
                if self.headers.get("If-None-Match") == tag:
                    return self.answer(304, ETag=tag)
                return self.answer(200, content, ETag=tag, Last_Modified=formatdate(MODIFIED, usegmt=True))

            do_POST = do_GET

        return Handler


def backend(request, web):
    """Runs git's CGI program (git-http-backend(1))."""
    path, _, query = request.path.partition("?")
    body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
    program = subprocess.run(["git", "--exec-path"], capture_output=True, text=True, check=True).stdout.strip()
    environment = {
        "PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": str(web.git), "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path.removeprefix("/git"),
        "QUERY_STRING": query, "REQUEST_METHOD": request.command, "CONTENT_TYPE": request.headers.get("Content-Type") or "",
        "GIT_PROTOCOL": request.headers.get("Git-Protocol") or "", "HTTP_CONTENT_ENCODING": request.headers.get("Content-Encoding") or "",
        "CONTENT_LENGTH": str(len(body)), "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
    }
    done = subprocess.run([f"{program}/git-http-backend"], input=body, env=environment, capture_output=True, check=False)
    head, _, content = done.stdout.partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
    status = int(headers.pop("Status", "200 OK").split()[0])
    request.answer(status, content, **{name.replace("-", "_"): value for name, value in headers.items()})


def redirect(location):
    return lambda request: request.answer(302, Location=location)


def truncated(request):
    """Announces more than it sends."""
    request.send_response(200)
    request.send_header("Content-Length", "100")
    request.end_headers()
    request.wfile.write(b"part")
    request.close_connection = True


def huge(request):
    """Announces more than any download may have."""
    request.send_response(200)
    request.send_header("Content-Length", str(1 << 50))
    request.end_headers()
    request.close_connection = True


def slow(request):
    """Sends a byte at a time, for ten seconds."""
    request.send_response(200)
    request.send_header("Content-Length", "1000")
    request.end_headers()
    for _ in range(100):
        try:
            request.wfile.write(b"x")
        except OSError:
            return
        time.sleep(0.1)
    request.close_connection = True
