"""A stand-in for a registry, on loopback without TLS, that takes images and gives them: the OCI distribution specification 1.1.

A real one, `docker-registry` in `tests/images`, can neither be told which requests to fail (`fail`) or to hold back, nor counts the bytes
of blobs that it receives. This one refuses a manifest whose blobs it lacks.
"""

import base64
import json
import re
import sys
import threading
import time
import uuid
from http.server import ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "images"))
import fake_registry  # noqa: E402
from fake_registry import Image, digest as digest_of  # noqa: E402

PATH = re.compile(r"/v2/(?P<name>.+)/(?P<what>manifests|blobs/uploads|blobs)/(?P<rest>[^/]*)")


class Registry:
    """The state of a registry: what each repository has."""

    def __init__(self, password=None):
        self.password, self.lock = password, threading.Lock()
        self.blobs, self.manifests, self.tags, self.uploads = {}, {}, {}, {}
        self.requests, self.received, self.faults, self.on_request, self.delay = [], 0, [], None, 0.0
        self.http = Server(("127.0.0.1", 0), Handler)
        self.http.registry = self
        self.host = f"127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()

    def fail(self, method, path, code, times=1, retry_after=None):
        """The next so many requests that match are refused."""
        self.faults.append({"method": method, "path": re.compile(path), "code": code, "times": times, "retry_after": retry_after})

    def add(self, name, tag, image):
        """Adds an image in memory, as if it had been pushed."""
        for digest, content in image.blobs.items():
            self.blobs[name, digest] = content
        digest = digest_of(image.manifest)
        self.manifests[name, digest] = ("application/vnd.oci.image.manifest.v1+json", image.manifest)
        self.tags[name, tag] = digest

    def base(self, name="base", sizes=(200_000,)):
        """Adds an image to build on; returns its name."""
        self.add(name, "1", Image(sizes))
        return f"{self.host}/{name}:1"

    def forget(self):
        """Forgets the requests and the bytes that came."""
        with self.lock:
            self.requests.clear()
            self.received = 0

    def count(self, method, path):
        pattern = re.compile(path)
        return sum(1 for known, at in list(self.requests) if known == method and pattern.search(at))

    def image(self, reference):
        """The manifest and the configuration of `HOST/NAME@DIGEST`; a KeyError if not all of it is there."""
        name, digest = reference.removeprefix(f"{self.host}/").split("@")
        manifest = json.loads(self.manifests[name, digest][1])
        blobs = [self.blobs[name, layer["digest"]] for layer in manifest["layers"]]
        return manifest, json.loads(self.blobs[name, manifest["config"]["digest"]]), blobs


class Server(ThreadingHTTPServer):
    daemon_threads, request_queue_size = True, 128

    def handle_error(self, request, client_address):
        pass


class Handler(fake_registry.Handler):
    def refuse(self, status, code, **headers):
        self.reject(status, code, "the stand-in says so", **headers)

    def do_GET(self):
        registry = self.server.registry
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with registry.lock:
            registry.requests.append((self.command, self.path))
        if registry.on_request:
            registry.on_request("before")
        wanted = registry.password and "Basic " + base64.b64encode(registry.password.encode()).decode()
        if wanted and self.headers.get("Authorization") != wanted:
            return self.refuse(401, "UNAUTHORIZED", WWW_Authenticate='Basic realm="stand-in"')
        for fault in registry.faults:
            if fault["times"] > 0 and fault["method"] == self.command and fault["path"].search(self.path):
                fault["times"] -= 1
                more = {"Retry_After": str(fault["retry_after"])} if fault["retry_after"] is not None else {}
                return self.refuse(fault["code"], "DENIED", **more)
        self.route(urlsplit(self.path))
        if registry.on_request:
            registry.on_request("after")
        return None

    do_HEAD = do_POST = do_PUT = do_PATCH = do_GET

    def route(self, url):
        registry, query = self.server.registry, {key: values[-1] for key, values in parse_qs(url.query).items()}
        found = PATH.fullmatch(url.path)
        if not found:
            return self.answer(200, b"{}") if url.path == "/v2/" else self.refuse(404, "NAME_UNKNOWN")
        name, what, rest = found["name"], found["what"], found["rest"]
        if what == "manifests" and self.command == "PUT":
            return self.put_manifest(name, rest)
        if what == "manifests":
            digest = rest if rest.startswith("sha256:") else registry.tags.get((name, rest))
            if (name, digest) not in registry.manifests:
                return self.refuse(404, "MANIFEST_UNKNOWN")
            media_type, content = registry.manifests[name, digest]
            return self.answer(200, content, media_type, Docker_Content_Digest=digest)
        if what == "blobs":
            content = registry.blobs.get((name, rest))
            return self.refuse(404, "BLOB_UNKNOWN") if content is None else self.answer(200, content, "application/octet-stream")
        if self.command == "POST":
            source = (query.get("from"), query.get("mount"))
            if source in registry.blobs:
                registry.blobs[name, source[1]] = registry.blobs[source]
                return self.answer(201, Location=f"/v2/{name}/blobs/{source[1]}")
            upload = uuid.uuid4().hex
            registry.uploads[upload] = name
            return self.answer(202, Location=f"/v2/{name}/blobs/uploads/{upload}")
        if registry.uploads.pop(rest, None) != name or digest_of(self.body) != query.get("digest"):
            return self.refuse(400, "DIGEST_INVALID")
        time.sleep(registry.delay)
        with registry.lock:
            registry.received += len(self.body)
            registry.blobs[name, query["digest"]] = self.body
        return self.answer(201, Location=f"/v2/{name}/blobs/{query['digest']}")

    def put_manifest(self, name, rest):
        registry, document, digest = self.server.registry, json.loads(self.body), digest_of(self.body)
        blobs = [part["digest"] for part in [document["config"], *document["layers"]]]
        if not all((name, blob) in registry.blobs for blob in blobs):
            return self.refuse(400, "MANIFEST_BLOB_UNKNOWN")
        registry.manifests[name, digest] = (self.headers["Content-Type"], self.body)
        if not rest.startswith("sha256:"):
            registry.tags[name, rest] = digest
        return self.answer(201, Location=f"/v2/{name}/manifests/{digest}", Docker_Content_Digest=digest)
