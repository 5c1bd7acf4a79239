"""A registry on the loopback address with configurable faults.

Images are created in memory. Faults are hooks: `before(request)` may answer instead of the registry,
`blob(request, content)` sends a blob.
"""

import base64
import gzip
import hashlib
import io
import json
import os
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


def digest(content):
    return "sha256:" + hashlib.sha256(content).hexdigest()


def layer(name, size):
    """A layer with one incompressible file: its blob and its diff id."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        entry = tarfile.TarInfo(name)
        entry.size = size
        tar.addfile(entry, io.BytesIO(os.urandom(size)))
    plain = archive.getvalue()
    return gzip.compress(plain, 1, mtime=0), digest(plain)


class Image:
    """An image in memory: its blobs by digest, and its manifest."""

    def __init__(self, sizes=(1000, 3_000_000, 20_000), architecture="amd64", **changes):
        layers = [layer(f"file-{number}", size) for number, size in enumerate(sizes)]
        config = json.dumps({"architecture": architecture, "os": "linux", "config": {},
                             "rootfs": {"type": "layers", "diff_ids": [plain for _, plain in layers]}}).encode()
        self.layers = [blob for blob, _ in layers]
        self.blobs = {digest(blob): blob for blob in [config, *self.layers]}
        self.config = digest(config)
        body = {"schemaVersion": 2, "mediaType": MANIFEST,
                "config": self.descriptor(config, CONFIG), "layers": [self.descriptor(blob, LAYER) for blob in self.layers]}
        body.update(changes)
        self.manifest = json.dumps(body).encode()
        self.largest = max(self.layers, key=len)

    @staticmethod
    def descriptor(content, media_type, **more):
        return {"mediaType": media_type, "digest": digest(content), "size": len(content), **more}


class Handler(BaseHTTPRequestHandler):
    # As servers do: otherwise each answer waits 40 ms for an acknowledgement between its headers and its body.
    protocol_version, disable_nagle_algorithm = "HTTP/1.1", True

    def log_message(self, *_):
        pass

    def answer(self, status, content=b"", media_type="application/json", **headers):
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def reject(self, status, code, message, **headers):
        self.answer(status, json.dumps({"errors": [{"code": code, "message": message}]}).encode(), **headers)


class FakeRegistry:
    """A registry with one repository, `team/app`, that serves until it is closed."""

    def __init__(self, image=None, before=None, blob=None):
        self.before, self.blob, self.requests, self.lock = before, blob, [], threading.Lock()
        self.documents, self.blobs, self.sent = {}, {}, 0
        if image is not None:
            self.add(image)
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.host = f"127.0.0.1:{self.port}"
        self.name = f"{self.host}/team/app:1"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def add(self, image, tag="1"):
        self.blobs.update(image.blobs)
        self.put(tag, MANIFEST, image.manifest)

    def put(self, tag, media_type, content):
        self.documents[tag] = self.documents[digest(content)] = (media_type, content)

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def requests_for(self, word):
        """The requests whose path contains a word."""
        with self.lock:
            return [request for request in self.requests if word in request["path"]]

    def handler(fake):
        class FaultyHandler(Handler):
            def handle_one_request(self):
                try:
                    super().handle_one_request()
                except (ConnectionError, ValueError):
                    self.close_connection = True

            def disconnect(self):
                """Closes the connection at once."""
                self.wfile.flush()
                self.close_connection = True
                self.connection.shutdown(2)

            def blob(self, content):
                """Sends a blob without a fault: all of it, or the requested range."""
                byte_range = self.headers.get("Range")
                if byte_range is None:
                    return self.answer(200, content, "application/octet-stream")
                start = int(byte_range.removeprefix("bytes=").split("-")[0])
                if start >= len(content):
                    return self.reject(416, "RANGE_INVALID", "no such part")
                return self.answer(206, content[start:], "application/octet-stream",
                                   Content_Range=f"bytes {start}-{len(content) - 1}/{len(content)}")

            def do_GET(self):
                length = int(self.headers.get("Content-Length") or 0)
                self.body = self.rfile.read(length)
                with fake.lock:
                    fake.requests.append({"method": self.command, "path": self.path, "headers": {name.lower(): value for name, value in self.headers.items()},
                                          "body": self.body.decode(errors="replace")})
                if fake.before is not None and fake.before(self):
                    return None
                kind, _, name = self.path.removeprefix("/v2/team/app/").partition("/")
                if kind == "manifests" and name in fake.documents:
                    media_type, content = fake.documents[name]
                    return self.answer(200, content, media_type, Docker_Content_Digest=digest(content))
                if kind == "blobs" and name in fake.blobs:
                    content = fake.blobs[name]
                    return (fake.blob or FaultyHandler.blob)(self, content)
                return self.reject(404, "NAME_UNKNOWN", "there is no such thing")

            do_HEAD = do_POST = do_PUT = do_GET

        return FaultyHandler


def basic(user, password):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
