#!/usr/bin/env python3
"""Tests pulling from a faulty registry, and from one that requires retries, tokens or passwords: the right result, a clear message,
and a valid store.
"""

import contextlib
import gzip
import io
import json
import os
import random
import signal
import subprocess
import tarfile
import time
import urllib.parse
from pathlib import Path

from fake_registry import CONFIG, INDEX, MANIFEST, FakeRegistry, Image, basic, digest
from home import Home
from harness import Harness, needs, scratch

DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


def pull(home, fake, *words, seconds=60):
    return home.run("image", "pull", "--plain-http", *words, fake.name, seconds=seconds)


def pulled(home, result, fake, image=None):
    """The problems of a pull that must have succeeded."""
    if result.returncode != 0:
        yield f"exit code {result.returncode}: {result.stderr}"
        return
    if fake.name not in home.names():
        yield f"the names are {home.names()}"
    if image is not None and not set(image.blobs) <= home.blobs():
        yield "blobs are missing"
    yield from home.store_problems()


def rejected(home, result, *words, code=3):
    """The problems of a pull that must have failed with this text and left no name and no wrong blob."""
    if result.returncode != code:
        yield f"exit code {result.returncode}, not {code}: {result.stderr}"
    yield from (f"`{word}` is not in the output: {result.stderr}" for word in words if word not in result.stderr)
    if home.names():
        yield f"names are left: {home.names()}"
    yield from home.store_problems()


def first_times(image, times, how):
    """A hook that sends the largest blob with `how`, the first `times` times."""
    remaining = [times]

    def blob(request, content):
        if content == image.largest and remaining[0] > 0:
            remaining[0] -= 1
            return how(request, content)
        return request.blob(content)

    return blob


def truncated(request, content):
    """Announces the whole content, and closes the connection in the middle."""
    start = int((request.headers.get("Range") or "bytes=0-").removeprefix("bytes=").split("-")[0])
    rest = content[start:]
    request.send_response(206 if start else 200)
    request.send_header("Content-Length", str(len(rest)))
    if start:
        request.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
    request.end_headers()
    request.wfile.write(rest[: len(rest) // 2])
    request.disconnect()


def unpacked_problems(home, image, complete):
    """The problems of the layers as directories: incomplete ones, other content, and with `complete` missing ones."""
    unpacked = {path.name: path for kind in (home.store / "unpacked").glob("*") for path in kind.iterdir()}
    partial = [name for name in unpacked if name.endswith(".part")]
    if partial:
        yield f"incomplete layers are left: {partial}"
    for blob in image.layers:
        plain = gzip.decompress(blob)
        path = unpacked.get(digest(plain).removeprefix("sha256:"))
        with tarfile.open(fileobj=io.BytesIO(plain)) as archive:
            for entry in archive if path else []:
                if (path / "files" / entry.name).read_bytes() != archive.extractfile(entry).read():
                    yield f"{entry.name} has other content"
        if complete and not path:
            yield "a layer is not unpacked"


def ranges(fake):
    return [int(request["headers"]["range"][6:-1]) for request in fake.requests_for("/blobs/") if "range" in request["headers"]]


# ---- faults of the network ----------------------------------------------------------------------------------------------

def no_fault(home):
    image = Image()
    with FakeRegistry(image) as fake:
        yield from pulled(home, pull(home, fake), fake, image)
        first = len(fake.requests_for("/blobs/"))
        if first != 4:
            yield f"{first} blobs were requested, not 4"
        yield from pulled(home, pull(home, fake), fake, image)
        if len(fake.requests_for("/blobs/")) != first:
            yield "stored blobs were requested again"


def resumed(home):
    image = Image()
    with FakeRegistry(image, blob=first_times(image, 3, truncated)) as fake:
        yield from pulled(home, pull(home, fake), fake, image)
        starts = ranges(fake)
        if len(starts) != 3 or starts != sorted(starts) or abs(starts[0] - len(image.largest) // 2) > 1:
            yield f"it resumed at {starts} of {len(image.largest)}"


def truncated_without_ranges(home):
    image = Image()

    def complete(request, content):
        del request.headers["Range"]
        return request.blob(content)

    truncate = first_times(image, 1, truncated)

    def blob(request, content):
        return complete(request, content) if request.headers.get("Range") else truncate(request, content)

    with FakeRegistry(image, blob=blob) as fake:
        yield from pulled(home, pull(home, fake), fake, image)


def wrong_range(home):
    image = Image()
    first = first_times(image, 1, truncated)

    def blob(request, content):
        if request.headers.get("Range"):
            return request.answer(206, content[7:], Content_Range=f"bytes 7-{len(content) - 1}/{len(content)}")
        return first(request, content)

    with FakeRegistry(image, blob=blob) as fake:
        yield from pulled(home, pull(home, fake), fake, image)


def always_truncated(home):
    image = Image()

    def nothing(request, content):
        request.send_response(200)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.disconnect()

    with FakeRegistry(image, blob=first_times(image, 99, nothing)) as fake:
        yield from rejected(home, pull(home, fake), fake.host)
        tries = len(fake.requests_for(digest(image.largest)))
        if tries != 6:
            yield f"it was tried {tries} times, not 6"


def unreachable(home):
    with FakeRegistry(Image()) as fake:
        name = fake.name
    started = time.monotonic()
    yield from rejected(home, home.run("image", "pull", "--plain-http", name), "cannot reach the registry", "connection refused")
    if time.monotonic() - started > 3:
        yield "it waited for an unreachable registry"


# ---- faults of the registry --------------------------------------------------------------------------------------------

def other_bytes(home):
    image = Image()

    def blob(request, content):
        return request.blob(content if content != image.largest else bytes(len(content)))

    with FakeRegistry(image, blob=blob) as fake:
        yield from rejected(home, pull(home, fake), "does not match", digest(image.largest))
        if digest(image.largest) in home.blobs():
            yield "the blob is in the store"
        fake.blob = None
        yield from pulled(home, pull(home, fake), fake, image)


def other_bytes_in_front(home):
    """The part of an earlier pull is wrong: it is detected at the end, and pulled again."""
    image = Image()
    partial = home.store / "partial"
    partial.mkdir(parents=True)
    (partial / digest(image.largest).replace(":", "-")).write_bytes(bytes(1000))
    with FakeRegistry(image) as fake:
        yield from pulled(home, pull(home, fake), fake, image)
        if ranges(fake) != [1000] or len(fake.requests_for(digest(image.largest))) != 2:
            yield f"it resumed at {ranges(fake)}, in {len(fake.requests_for(digest(image.largest)))} requests"


def swapped(home):
    image = Image(sizes=(5000, 5000))
    one, two = image.layers
    size = min(len(one), len(two))

    def blob(request, content):
        return request.blob({one: two, two: one}.get(content, content))

    with FakeRegistry(image, blob=blob) as fake:
        yield from rejected(home, pull(home, fake), "does not match")
        if size and {digest(one), digest(two)} & home.blobs():
            yield "a blob is in the store"


def longer(home):
    image = Image()
    with FakeRegistry(image, blob=first_times(image, 99, lambda request, content: request.blob(content + b"more"))) as fake:
        yield from rejected(home, pull(home, fake), "does not match", f"{len(image.largest) + 4} bytes")


def shorter(home):
    image = Image()
    with FakeRegistry(image, blob=first_times(image, 99, lambda request, content: request.blob(content[:-1]))) as fake:
        yield from rejected(home, pull(home, fake), "does not match", f"{len(image.largest) - 1} bytes")


def endless(home):
    """An endless blob without a length: no more is read than the manifest says."""
    image = Image()

    def blob(request, _):
        request.send_response(200)
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        while True:
            request.wfile.write(b"10000\r\n" + bytes(0x10000) + b"\r\n")

    with FakeRegistry(image, blob=first_times(image, 99, blob)) as fake:
        yield from rejected(home, pull(home, fake), "does not match", "more bytes")


def manifest_of_another_digest(home):
    image = Image()
    with FakeRegistry(image) as fake:
        wanted = digest(b"something")
        fake.documents[wanted] = (MANIFEST, image.manifest)
        result = home.run("image", "pull", "--plain-http", f"{fake.host}/team/app@{wanted}")
        yield from rejected(home, result, "does not match", wanted, digest(image.manifest))


def manifest_of_another_promise(home):
    image = Image()

    def before(request):
        if "/manifests/" in request.path:
            request.answer(200, image.manifest, MANIFEST, Docker_Content_Digest=digest(b"something"))
            return True
        return False

    with FakeRegistry(image, before=before) as fake:
        yield from rejected(home, pull(home, fake), "does not match")


def documents(home):
    """Documents that are not images are rejected with a message, before blobs are requested."""
    image = Image()
    foreign = Image.descriptor(image.layers[0], "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip")
    config = Image.descriptor(b"{}", "application/vnd.example.model.v1+json")
    known = Image.descriptor(b"{}", CONFIG)
    odd = Image.descriptor(b"x", "application/vnd.example.layer")
    for media_type, body, words, code in [
        ("application/vnd.docker.distribution.manifest.v1+prettyjws", {"schemaVersion": 1}, "schema 1", 3),
        (MANIFEST, {"schemaVersion": 2, "config": known, "layers": [foreign]}, "registries may not distribute", 3),
        (MANIFEST, {"schemaVersion": 2, "config": known, "layers": [odd]}, "a layer of kind `application/vnd.example.layer`", 3),
        (MANIFEST, {"schemaVersion": 2, "config": config, "layers": []}, "is an artifact of type", 3),
        (MANIFEST, {"schemaVersion": 2, "manifests": []}, "looks like another type", 3),
        (INDEX, {"schemaVersion": 2, "manifests": []}, "is for nothing, and not for", 3),
        ("text/html", "<html>", "is not a manifest", 3),
        (MANIFEST, {"schemaVersion": 2, "config": known, "layers": [], "x": "y" * (5 << 20)}, "exceeds the limit of 4194304 bytes", 3),
    ]:
        with FakeRegistry() as fake:
            content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            fake.put("1", media_type, content)
            for problem in rejected(home, pull(home, fake), words, code=code):
                yield f"{words}: {problem}"
            if fake.requests_for("/blobs/"):
                yield f"{words}: blobs were requested"


def docker_kinds(home):
    image = Image()
    body = json.loads(image.manifest)
    body["mediaType"] = DOCKER_MANIFEST
    body["config"]["mediaType"] = "application/vnd.docker.container.image.v1+json"
    for entry in body["layers"]:
        entry["mediaType"] = "application/vnd.docker.image.rootfs.diff.tar.gzip"
    with FakeRegistry(image) as fake:
        fake.put("1", DOCKER_MANIFEST, json.dumps(body).encode())
        yield from pulled(home, pull(home, fake), fake, image)


def platforms(home):
    mine, other = Image(sizes=(100,)), Image(sizes=(200,), architecture="arm64")
    with FakeRegistry(mine) as fake:
        fake.add(other)
        entries = [Image.descriptor(image.manifest, MANIFEST, platform={"os": "linux", "architecture": name})
                   for image, name in ((other, "arm64"), (mine, "amd64"))]
        entries.append(Image.descriptor(b"{}", MANIFEST, platform={"os": "unknown", "architecture": "unknown"}))
        index = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}).encode()
        fake.put("1", INDEX, index)
        result = pull(home, fake)
        yield from pulled(home, result, fake, mine)
        if digest(index) not in result.stdout:
            yield f"the digest of the list is not printed: {result.stdout}"
        if set(other.blobs) & home.blobs():
            yield "the other platform was fetched"
        yield from pulled(home, pull(home, fake, "--platform", "linux/arm64"), fake, other)
        result = pull(home, fake, "--platform", "linux/s390x")
        if result.returncode != 3 or "`linux/arm64`, `linux/amd64`" not in result.stderr:
            yield f"a missing platform: {result.returncode} {result.stderr}"
        mine_by_digest = f"{fake.host}/team/app@{digest(mine.manifest)}"
        asked = len(fake.requests_for(""))
        result = home.run("image", "pull", "--plain-http", mine_by_digest)
        if result.returncode != 0 or len(fake.requests_for("")) != asked:
            yield f"a stored digest was requested: {result.stderr}"


def unknown(home):
    with FakeRegistry() as fake:
        yield from rejected(home, pull(home, fake), "has no `", "there is no such thing (NAME_UNKNOWN)", code=1)


# ---- requirements of the registry -----------------------------------------------------------------------------------------

def retry_after(home):
    image, remaining = Image(), {"429": 1, "503": 2}

    def before(request):
        if "/blobs/" in request.path and remaining["503"] > 0:
            remaining["503"] -= 1
            request.reject(503, "UNAVAILABLE", "later")
            return True
        if "/manifests/" in request.path and remaining["429"] > 0:
            remaining["429"] -= 1
            request.reject(429, "TOOMANYREQUESTS", "slowly", Retry_After="2")
            return True
        return False

    with FakeRegistry(image, before=before) as fake:
        started = time.monotonic()
        yield from pulled(home, pull(home, fake), fake, image)
        if time.monotonic() - started < 2:
            yield "it did not wait"


def long_retry_after(home):
    def before(request):
        request.reject(429, "TOOMANYREQUESTS", "slowly", Retry_After="86400")
        return True

    with FakeRegistry(Image(), before=before) as fake:
        yield from rejected(home, pull(home, fake), "429", "slowly (TOOMANYREQUESTS)", "a retry after 86400 s")
        if len(fake.requests_for("")) != 1:
            yield "it was requested again"


def redirected(home):
    """Blobs are on another host, which must not get the credentials."""
    image = Image()
    with FakeRegistry(image) as storage:
        def before(request):
            if request.headers.get("Authorization") != basic("me", "secret"):
                request.reject(401, "UNAUTHORIZED", "who are you", WWW_Authenticate='Basic realm="x"')
                return True
            if "/blobs/" in request.path:
                request.answer(307, Location=f"http://localhost:{storage.port}{request.path}")
                return True
            return False

        storage.blob = first_times(image, 1, truncated)
        with FakeRegistry(image, before=before) as fake:
            home.login(**{fake.host.replace(":", "__"): {"auth": basic("me", "secret")[6:]}})
            yield from pulled(home, pull(home, fake), fake, image)
            if any("authorization" in request["headers"] for request in storage.requests):
                yield "the other host got the password"
            if len(ranges(storage)) != 1:
                yield "the other host was not asked for the remaining range"


def tokens(home):
    """A token service, without credentials, with a password, and with an identity token; and a token that expires during a pull."""
    for credential in (None, "password", "identity", "wrong"):
        image, given, used = Image(), [], [0]

        def before(request, credential=credential, given=given, used=used):
            url = urllib.parse.urlparse(request.path)
            if url.path == "/token":
                fields = urllib.parse.parse_qs(request.body.decode() if request.command == "POST" else url.query)
                right = {
                    None: request.command == "GET" and "Authorization" not in request.headers,
                    "password": request.headers.get("Authorization") == basic("me", "secret"),
                    "identity": fields.get("refresh_token") == ["id"] and fields.get("grant_type") == ["refresh_token"],
                    "wrong": False,
                }[credential]
                if not right or fields.get("service") != ["a b"] or "repository:team/app:pull" not in fields["scope"][0].split():
                    request.reject(401, "UNAUTHORIZED", "not with that")
                    return True
                given.append(f"token-{len(given)}")
                request.answer(200, json.dumps({"token": given[-1], "expires_in": 300}).encode())
                return True
            # The first token expires after two requests.
            used[0] += 1
            if not given or request.headers.get("Authorization") != f"Bearer {given[-1]}" or used[0] > 3 and len(given) == 1:
                realm = f'Bearer realm="http://{request.headers["Host"]}/token",service="a b",scope="repository:team/app:pull"'
                request.reject(401, "UNAUTHORIZED", "who are you", WWW_Authenticate=realm)
                return True
            return False

        with FakeRegistry(image, before=before) as fake:
            entry = {"identity": {"identitytoken": "id"}}.get(credential, {"auth": basic("me", "secret")[6:]})
            home.login(**({fake.host.replace(":", "__"): entry} if credential else {}))
            result = pull(home, fake)
            if credential == "wrong":
                problems = (f"{word} is not said: {result.stderr}" for word in ("denied permission to pull from `team/app`", "not with that")
                            if word not in result.stderr)
            else:
                problems = pulled(home, result, fake, image)
            yield from (f"{credential}: {problem}" for problem in problems)
            if credential != "wrong" and len(given) != 2:
                yield f"{credential}: {len(given)} tokens were issued"
            if any("secret" in text or "token-" in text for text in (result.stdout, result.stderr)):
                yield f"{credential}: a secret is printed"


def login_required(home):
    def before(request):
        request.reject(401, "UNAUTHORIZED", "who are you", WWW_Authenticate='Basic realm="x"')
        return True

    with FakeRegistry(Image(), before=before) as fake:
        yield from rejected(home, pull(home, fake), "requires a login", f"docker login {fake.host}")


# ---- settings -----------------------------------------------------------------------------------------------------------

def mirrors(home):
    image = Image()
    with FakeRegistry(image) as origin, FakeRegistry(image) as mirror, FakeRegistry() as empty:
        with FakeRegistry() as dead:
            pass
        home.registries({origin.host: {"plain_http": True, "mirrors": [f"http://{dead.host}", f"http://{empty.host}", f"http://{mirror.host}"]}})
        result = home.run("image", "pull", origin.name)
        yield from pulled(home, result, origin, image)
        if origin.requests_for("") or len(mirror.requests_for("/blobs/")) != 4:
            yield "the mirror did not get all requests"
        if "trying the next endpoint" not in result.stderr:
            yield f"the failed mirrors are not reported: {result.stderr}"
        home.registries({origin.host: {"plain_http": True, "mirrors": [f"http://{empty.host}"]}})
        other = Image(sizes=(77,))
        origin.add(other)
        yield from pulled(home, home.run("image", "pull", origin.name), origin, other)


def settings(home):
    for text, words in [
        ("registries:\n  a.example:\n    insecur: true\n", ["line 3", "`registries.a.example.insecur`", "unknown field"]),
        ("registries: [\n", ["registries.yaml", "line"]),
        ("registries:\n  a.example:\n    ca: [not-there.pem]\n", ["not-there.pem", "no such file"]),
        ("registries:\n  a.example:\n    mirrors: ['ftp://x']\n", ["`ftp://x` is not a mirror"]),
    ]:
        home.registries(text)
        result = home.run("image", "pull", "a.example/b:1")
        if result.returncode not in (2, 3):
            yield f"{text!r}: exit code {result.returncode}"
        yield from (f"{text!r}: `{word}` is not in the output: {result.stderr}" for word in words if word.lower() not in result.stderr.lower())


# ---- interruptions -------------------------------------------------------------------------------------------------

def slow_blob(pause):
    def blob(request, content):
        start = int((request.headers.get("Range") or "bytes=0-").removeprefix("bytes=").split("-")[0])
        request.send_response(206 if start else 200)
        request.send_header("Content-Length", str(len(content) - start))
        if start:
            request.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        request.end_headers()
        for at in range(start, len(content), 1 << 16):
            request.wfile.write(content[at : at + (1 << 16)])
            time.sleep(pause)

    return blob


def killed(home):
    image = Image(sizes=(2_000_000, 3_000_000, 1_000_000, 10))
    sent, hook = [0], slow_blob(0.02)

    def blob(request, content):
        write = request.wfile.write

        def counted(piece):
            sent[0] += len(piece)
            return write(piece)

        request.wfile.write = counted
        return hook(request, content)

    with FakeRegistry(image, blob=blob) as fake:
        for _ in range(12):
            process = home.start("image", "pull", "--plain-http", "--quiet", fake.name)
            try:
                process.wait(random.uniform(0.05, 0.5))
            except subprocess.TimeoutExpired:
                process.kill()
            process.wait()
            yield from home.store_problems()
        yield from pulled(home, pull(home, fake), fake, image)
        total = sum(map(len, image.blobs.values()))
        # Data in flight at a kill is sent again: the socket's buffers, 12 times, on 4 connections.
        if not ranges(fake) or sent[0] > 3 * total:
            yield f"{sent[0]} bytes were sent of {total}, resumed at {ranges(fake)}"
        remaining = list((home.store / "partial").iterdir())
        if remaining:
            yield f"left: {remaining}"


def unpacked_despite_faults(home):
    """Layers are unpacked while they come: whatever the registry does meanwhile, only whole and verified ones get their names."""
    def wrong_first_bytes(request, content):
        return request.answer(200, bytes(len(content) // 3) + content[len(content) // 3:])

    def wrong_range(request, content):
        if request.headers.get("Range"):
            return request.answer(206, content[7:], Content_Range=f"bytes 7-{len(content) - 1}/{len(content)}")
        return truncated(request, content)

    for fault, times in ((truncated, 3), (wrong_range, 2), (wrong_first_bytes, 1)):
        image = Image(sizes=(200_000, 3_000_000, 10))
        with FakeRegistry(image, blob=first_times(image, times, fault)) as fake:
            result = pull(home, fake, "--unpack")
            if result.returncode != 0:
                # Other bytes are not asked for again by themselves.
                yield from rejected(home, result, "does not match")
                yield from unpacked_problems(home, image, complete=False)
                result = pull(home, fake, "--unpack")
            yield from (f"{fault.__name__}: {problem}" for problem in pulled(home, result, fake, image))
            yield from (f"{fault.__name__}: {problem}" for problem in unpacked_problems(home, image, complete=True))
            home.run("image", "rm", fake.name)


def killed_while_unpacking(home):
    """Killed at any moment, `pull --unpack` goes on where it was; in the end nothing incomplete is left."""
    image = Image(sizes=(2_000_000, 3_000_000, 1_000_000, 10))
    with FakeRegistry(image, blob=slow_blob(0.01)) as fake:
        for _ in range(12):
            process = home.start("image", "pull", "--plain-http", "--quiet", "--unpack", fake.name)
            try:
                process.wait(random.uniform(0.05, 0.6))
            except subprocess.TimeoutExpired:
                process.kill()
            process.wait()
            yield from home.store_problems()
            whole = Path(home.store / "unpacked").glob("*/*")
            if any(path.name.endswith(".part") is False and not (path / "left.json").exists() for path in whole):
                yield "a layer has its name before it was whole"
        yield from pulled(home, pull(home, fake, "--unpack"), fake, image)
        yield from unpacked_problems(home, image, complete=True)


def full_disk_while_unpacking(home):
    """A disk that is full while layers are unpacked: the message says so, nothing incomplete is left, and with room it goes on."""
    if os.geteuid() != 0:
        print(needs.line("registry_faults: full disk while unpacking", "root"))
        return
    image = Image(sizes=(1_000_000, 5_000_000))
    home.store.mkdir()

    def mount(*words):
        subprocess.run(["mount", "-t", "tmpfs", *words, "tmpfs", home.store], check=True)

    mount("-o", "size=9m")
    try:
        with FakeRegistry(image) as fake:
            yield from rejected(home, pull(home, fake, "--unpack"), "no space left in the image store", "jobc image gc")
            yield from unpacked_problems(home, image, complete=False)
            mount("-o", "remount,size=40m")
            complete, before = home.blobs(), len(fake.requests_for("/blobs/"))
            yield from pulled(home, pull(home, fake, "--unpack"), fake, image)
            yield from unpacked_problems(home, image, complete=True)
            again = [request["path"] for request in fake.requests_for("/blobs/")[before:] if request["path"].split("/")[-1] in complete]
            if again or not complete:
                yield f"of the complete blobs {complete}, {again} were requested again"
    finally:
        subprocess.run(["umount", home.store], check=True)


def interrupted(home):
    image = Image()
    with FakeRegistry(image, blob=slow_blob(0.2)) as fake:
        process = home.start("image", "pull", "--plain-http", fake.name)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        started = time.monotonic()
        code = process.wait(10)
        if code != -signal.SIGINT or time.monotonic() - started > 1:
            yield f"exit code {code} after {time.monotonic() - started:.1f} s"
        yield from home.store_problems()


def concurrent_pulls(home):
    image = Image(sizes=(1_000_000, 1_000_000))
    with FakeRegistry(image, blob=slow_blob(0.02)) as fake:
        processes = [home.start("image", "pull", "--plain-http", fake.name) for _ in range(3)]
        codes = [process.wait(60) for process in processes]
        if codes != [0, 0, 0]:
            yield f"exit codes {codes}"
        if len(fake.requests_for("/blobs/")) != 3:
            yield f"{len(fake.requests_for('/blobs/'))} blobs were requested, not 3"
        yield from home.store_problems()


def memory_use(home):
    """The memory of a pull does not depend on the size of the blob."""
    image = Image(sizes=(120_000_000,))
    with FakeRegistry(image) as fake:
        process = home.start("image", "pull", "--plain-http", fake.name)
        # Not from wait4(2), whose value is at least the memory of this process at the fork.
        peak = 0
        while process.poll() is None:
            with contextlib.suppress(OSError, IndexError):
                status = Path(f"/proc/{process.pid}/status").read_text()
                peak = max(peak, int(status.split("VmHWM:")[1].split()[0]))
            time.sleep(0.01)
        if process.returncode != 0 or not 0 < peak <= 100 * 1024:
            yield f"exit code {process.returncode}, {peak // 1024} MiB"


CASES = [
    no_fault, resumed, truncated_without_ranges, wrong_range, always_truncated, unreachable, other_bytes, other_bytes_in_front,
    swapped, longer, shorter, endless, manifest_of_another_digest, manifest_of_another_promise, documents, docker_kinds, platforms,
    unknown, retry_after, long_retry_after, redirected, tokens, login_required, mirrors, settings, killed, unpacked_despite_faults,
    killed_while_unpacking, full_disk_while_unpacking, interrupted, concurrent_pulls, memory_use,
]


def main():
    harness = Harness("registry_faults", __doc__)
    harness.parse()
    harness.tool("mount")
    for case in CASES:
        name = case.__name__.replace("_", " ")
        if harness.wants(name):
            with scratch() as directory:
                harness.check(name, case(Home(directory)))
    harness.end()


if __name__ == "__main__":
    main()
