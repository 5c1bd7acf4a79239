#!/usr/bin/env python3
"""Tests pulling from a faulty registry and from one with demands: the right result, a clear message, and nothing wrong in the
store.
"""

import contextlib
import json
import random
import signal
import subprocess
import time
import urllib.parse
from pathlib import Path

from fake_registry import CONFIG, INDEX, LAYER, MANIFEST, Fake, Image, basic, digest
from home import Home
from harness import Harness, scratch

DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


def pull(home, fake, *words, seconds=60):
    return home.run("image", "pull", "--plain-http", *words, fake.name, seconds=seconds)


def fine(home, result, fake, image=None):
    """Problems of a pull that must have brought the image in."""
    if result.returncode != 0:
        yield f"it ends with {result.returncode}: {result.stderr}"
        return
    if fake.name not in home.names():
        yield f"the names are {home.names()}"
    if image is not None and not set(image.blobs) <= home.blobs():
        yield "blobs are missing"
    yield from home.unsound()


def refused(home, result, *words, code=3):
    """Problems of a pull that must have failed with these words and left no name and no wrong blob."""
    if result.returncode != code:
        yield f"it ends with {result.returncode}, not {code}: {result.stderr}"
    yield from (f"`{word}` is not said: {result.stderr}" for word in words if word not in result.stderr)
    if home.names():
        yield f"there are names: {home.names()}"
    yield from home.unsound()


def once(image, times, how):
    """A hook that sends the largest blob otherwise, the first so many times."""
    left = [times]

    def blob(request, content):
        if content == image.largest and left[0] > 0:
            left[0] -= 1
            return how(request, content)
        return request.blob(content)

    return blob


def half(request, content):
    """Promises all of it and ends in the middle."""
    start = int((request.headers.get("Range") or "bytes=0-").removeprefix("bytes=").split("-")[0])
    rest = content[start:]
    request.send_response(206 if start else 200)
    request.send_header("Content-Length", str(len(rest)))
    if start:
        request.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
    request.end_headers()
    request.wfile.write(rest[: len(rest) // 2])
    request.cut()


def ranges(fake):
    return [int(request["headers"]["range"][6:-1]) for request in fake.asked("/blobs/") if "range" in request["headers"]]


# ---- what the network does ----------------------------------------------------------------------------------------------

def sound(home):
    image = Image()
    with Fake(image) as fake:
        yield from fine(home, pull(home, fake), fake, image)
        first = len(fake.asked("/blobs/"))
        if first != 4:
            yield f"{first} blobs were asked for, not 4"
        yield from fine(home, pull(home, fake), fake, image)
        if len(fake.asked("/blobs/")) != first:
            yield "what is here was asked for again"


def cut_and_resumed(home):
    image = Image()
    with Fake(image, blob=once(image, 3, half)) as fake:
        yield from fine(home, pull(home, fake), fake, image)
        starts = ranges(fake)
        if len(starts) != 3 or starts != sorted(starts) or abs(starts[0] - len(image.largest) // 2) > 1:
            yield f"it went on at {starts} of {len(image.largest)}"


def cut_without_ranges(home):
    image = Image()

    def whole(request, content):
        del request.headers["Range"]
        return request.blob(content)

    cut = once(image, 1, half)

    def blob(request, content):
        return whole(request, content) if request.headers.get("Range") else cut(request, content)

    with Fake(image, blob=blob) as fake:
        yield from fine(home, pull(home, fake), fake, image)


def other_part_than_asked(home):
    image = Image()
    first = once(image, 1, half)

    def blob(request, content):
        if request.headers.get("Range"):
            return request.answer(206, content[7:], Content_Range=f"bytes 7-{len(content) - 1}/{len(content)}")
        return first(request, content)

    with Fake(image, blob=blob) as fake:
        yield from fine(home, pull(home, fake), fake, image)


def cut_for_good(home):
    image = Image()

    def nothing(request, content):
        request.send_response(200)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.cut()

    with Fake(image, blob=once(image, 99, nothing)) as fake:
        yield from refused(home, pull(home, fake), fake.host)
        tries = len(fake.asked(digest(image.largest)))
        if tries != 6:
            yield f"it was tried {tries} times, not 6"


def silent_then_dead(home):
    with Fake(Image()) as fake:
        name = fake.name
    started = time.monotonic()
    yield from refused(home, home.run("image", "pull", "--plain-http", name), "cannot reach the registry", "connection refused")
    if time.monotonic() - started > 3:
        yield "a registry that is not there was waited for"


# ---- what the registry sends --------------------------------------------------------------------------------------------

def other_bytes(home):
    image = Image()

    def blob(request, content):
        return request.blob(content if content != image.largest else bytes(len(content)))

    with Fake(image, blob=blob) as fake:
        yield from refused(home, pull(home, fake), "does not match", digest(image.largest))
        if digest(image.largest) in home.blobs():
            yield "the blob is here"
        fake.blob = None
        yield from fine(home, pull(home, fake), fake, image)


def other_bytes_in_front(home):
    """What was kept of an earlier pull is not what it should be: seen at the end, and fetched anew."""
    image = Image()
    partial = home.store / "partial"
    partial.mkdir(parents=True)
    (partial / digest(image.largest).replace(":", "-")).write_bytes(bytes(1000))
    with Fake(image) as fake:
        yield from fine(home, pull(home, fake), fake, image)
        if ranges(fake) != [1000] or len(fake.asked(digest(image.largest))) != 2:
            yield f"it went on at {ranges(fake)}, in {len(fake.asked(digest(image.largest)))} requests"


def swapped(home):
    image = Image(sizes=(5000, 5000))
    one, two = image.layers
    size = min(len(one), len(two))

    def blob(request, content):
        return request.blob({one: two, two: one}.get(content, content))

    with Fake(image, blob=blob) as fake:
        yield from refused(home, pull(home, fake), "does not match")
        if size and {digest(one), digest(two)} & home.blobs():
            yield "one is here"


def longer(home):
    image = Image()
    with Fake(image, blob=once(image, 99, lambda request, content: request.blob(content + b"more"))) as fake:
        yield from refused(home, pull(home, fake), "does not match", f"{len(image.largest) + 4} bytes")


def shorter(home):
    image = Image()
    with Fake(image, blob=once(image, 99, lambda request, content: request.blob(content[:-1]))) as fake:
        yield from refused(home, pull(home, fake), "does not match", f"{len(image.largest) - 1} bytes")


def endless(home):
    """Bytes without end and without a promise: no more of them are taken than the manifest says."""
    image = Image()

    def blob(request, _):
        request.send_response(200)
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        while True:
            request.wfile.write(b"10000\r\n" + bytes(0x10000) + b"\r\n")

    with Fake(image, blob=once(image, 99, blob)) as fake:
        yield from refused(home, pull(home, fake), "does not match", "more bytes")


def manifest_of_another_digest(home):
    image = Image()
    with Fake(image) as fake:
        wanted = digest(b"something")
        fake.documents[wanted] = (MANIFEST, image.manifest)
        result = home.run("image", "pull", "--plain-http", f"{fake.host}/team/app@{wanted}")
        yield from refused(home, result, "does not match", wanted, digest(image.manifest))


def manifest_of_another_promise(home):
    image = Image()

    def before(request):
        if "/manifests/" in request.path:
            request.answer(200, image.manifest, MANIFEST, Docker_Content_Digest=digest(b"something"))
            return True
        return False

    with Fake(image, before=before) as fake:
        yield from refused(home, pull(home, fake), "does not match")


def documents(home):
    """Documents that are no image each say what they are, before anything is fetched."""
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
        with Fake() as fake:
            content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            fake.put("1", media_type, content)
            for problem in refused(home, pull(home, fake), words, code=code):
                yield f"{words}: {problem}"
            if fake.asked("/blobs/"):
                yield f"{words}: blobs were asked for"


def docker_kinds(home):
    image = Image()
    body = json.loads(image.manifest)
    body["mediaType"] = DOCKER_MANIFEST
    body["config"]["mediaType"] = "application/vnd.docker.container.image.v1+json"
    for entry in body["layers"]:
        entry["mediaType"] = "application/vnd.docker.image.rootfs.diff.tar.gzip"
    with Fake(image) as fake:
        fake.put("1", DOCKER_MANIFEST, json.dumps(body).encode())
        yield from fine(home, pull(home, fake), fake, image)


def platforms(home):
    mine, other = Image(sizes=(100,)), Image(sizes=(200,), architecture="arm64")
    with Fake(mine) as fake:
        fake.add(other)
        entries = [Image.descriptor(image.manifest, MANIFEST, platform={"os": "linux", "architecture": name})
                   for image, name in ((other, "arm64"), (mine, "amd64"))]
        entries.append(Image.descriptor(b"{}", MANIFEST, platform={"os": "unknown", "architecture": "unknown"}))
        index = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}).encode()
        fake.put("1", INDEX, index)
        result = pull(home, fake)
        yield from fine(home, result, fake, mine)
        if digest(index) not in result.stdout:
            yield f"the digest of the list is not printed: {result.stdout}"
        if set(other.blobs) & home.blobs():
            yield "the other platform was fetched"
        yield from fine(home, pull(home, fake, "--platform", "linux/arm64"), fake, other)
        result = pull(home, fake, "--platform", "linux/s390x")
        if result.returncode != 3 or "`linux/arm64`, `linux/amd64`" not in result.stderr:
            yield f"a platform that is not there: {result.returncode} {result.stderr}"
        mine_by_digest = f"{fake.host}/team/app@{digest(mine.manifest)}"
        asked = len(fake.asked(""))
        result = home.run("image", "pull", "--plain-http", mine_by_digest)
        if result.returncode != 0 or len(fake.asked("")) != asked:
            yield f"what is here by its digest was asked for: {result.stderr}"


def unknown(home):
    with Fake() as fake:
        yield from refused(home, pull(home, fake), "has no `", "there is no such thing (NAME_UNKNOWN)", code=1)


# ---- what the registry asks for -----------------------------------------------------------------------------------------

def asks_to_wait(home):
    image, left = Image(), {"429": 1, "503": 2}

    def before(request):
        if "/blobs/" in request.path and left["503"] > 0:
            left["503"] -= 1
            request.refuse(503, "UNAVAILABLE", "later")
            return True
        if "/manifests/" in request.path and left["429"] > 0:
            left["429"] -= 1
            request.refuse(429, "TOOMANYREQUESTS", "slowly", Retry_After="2")
            return True
        return False

    with Fake(image, before=before) as fake:
        started = time.monotonic()
        yield from fine(home, pull(home, fake), fake, image)
        if time.monotonic() - started < 2:
            yield "it did not wait"


def asks_to_wait_for_long(home):
    def before(request):
        request.refuse(429, "TOOMANYREQUESTS", "slowly", Retry_After="86400")
        return True

    with Fake(Image(), before=before) as fake:
        yield from refused(home, pull(home, fake), "429", "slowly (TOOMANYREQUESTS)", "a retry after 86400 s")
        if len(fake.asked("")) != 1:
            yield "it was asked again"


def elsewhere(home):
    """Blobs lie on another host, which is not shown what lets us in."""
    image = Image()
    with Fake(image) as storage:
        def before(request):
            if request.headers.get("Authorization") != basic("me", "secret"):
                request.refuse(401, "UNAUTHORIZED", "who are you", WWW_Authenticate='Basic realm="x"')
                return True
            if "/blobs/" in request.path:
                request.answer(307, Location=f"http://localhost:{storage.port}{request.path}")
                return True
            return False

        storage.blob = once(image, 1, half)
        with Fake(image, before=before) as fake:
            home.login(**{fake.host.replace(":", "__"): {"auth": basic("me", "secret")[6:]}})
            yield from fine(home, pull(home, fake), fake, image)
            if any("authorization" in request["headers"] for request in storage.requests):
                yield "the other host was shown the password"
            if len(ranges(storage)) != 1:
                yield "the other host was not asked for the rest"


def tokens(home):
    """A token service, asked as nobody, by name and password, and by identity token; and a token that ends on its way."""
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
                    request.refuse(401, "UNAUTHORIZED", "not with that")
                    return True
                given.append(f"token-{len(given)}")
                request.answer(200, json.dumps({"token": given[-1], "expires_in": 300}).encode())
                return True
            # The first token ends after two requests.
            used[0] += 1
            if not given or request.headers.get("Authorization") != f"Bearer {given[-1]}" or used[0] > 3 and len(given) == 1:
                realm = f'Bearer realm="http://{request.headers["Host"]}/token",service="a b",scope="repository:team/app:pull"'
                request.refuse(401, "UNAUTHORIZED", "who are you", WWW_Authenticate=realm)
                return True
            return False

        with Fake(image, before=before) as fake:
            entry = {"identity": {"identitytoken": "id"}}.get(credential, {"auth": basic("me", "secret")[6:]})
            home.login(**({fake.host.replace(":", "__"): entry} if credential else {}))
            result = pull(home, fake)
            if credential == "wrong":
                problems = (f"{word} is not said: {result.stderr}" for word in ("denied permission to pull from `team/app`", "not with that")
                            if word not in result.stderr)
            else:
                problems = fine(home, result, fake, image)
            yield from (f"{credential}: {problem}" for problem in problems)
            if credential != "wrong" and len(given) != 2:
                yield f"{credential}: {len(given)} tokens were given"
            if any("secret" in text or "token-" in text for text in (result.stdout, result.stderr)):
                yield f"{credential}: a secret is printed"


def nobody(home):
    def before(request):
        request.refuse(401, "UNAUTHORIZED", "who are you", WWW_Authenticate='Basic realm="x"')
        return True

    with Fake(Image(), before=before) as fake:
        yield from refused(home, pull(home, fake), "requires a login", f"docker login {fake.host}")


# ---- settings -----------------------------------------------------------------------------------------------------------

def mirrors(home):
    image = Image()
    with Fake(image) as origin, Fake(image) as mirror, Fake() as empty:
        with Fake() as dead:
            pass
        home.registries({origin.host: {"plain_http": True, "mirrors": [f"http://{dead.host}", f"http://{empty.host}", f"http://{mirror.host}"]}})
        result = home.run("image", "pull", origin.name)
        yield from fine(home, result, origin, image)
        if origin.asked("") or len(mirror.asked("/blobs/")) != 4:
            yield "the mirror was not asked for all of it"
        if "trying the next endpoint" not in result.stderr:
            yield f"nothing is said of the others: {result.stderr}"
        home.registries({origin.host: {"plain_http": True, "mirrors": [f"http://{empty.host}"]}})
        other = Image(sizes=(77,))
        origin.add(other)
        yield from fine(home, home.run("image", "pull", origin.name), origin, other)


def settings(home):
    for text, words in [
        ("registries:\n  a.example:\n    insecure: true\n", ["line 3", "`registries.a.example.insecure`", "unknown field"]),
        ("registries: [\n", ["registries.yaml", "line"]),
        ("registries:\n  a.example:\n    ca: [not-there.pem]\n", ["not-there.pem", "no such file"]),
        ("registries:\n  a.example:\n    mirrors: ['ftp://x']\n", ["`ftp://x` is not a mirror"]),
    ]:
        home.registries(text)
        result = home.run("image", "pull", "a.example/b:1")
        if result.returncode not in (2, 3):
            yield f"{text!r} ends with {result.returncode}"
        yield from (f"{text!r}: `{word}` is not said: {result.stderr}" for word in words if word.lower() not in result.stderr.lower())


# ---- ends in the middle -------------------------------------------------------------------------------------------------

def slowly(pause):
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
    sent, hook = [0], slowly(0.02)

    def blob(request, content):
        write = request.wfile.write

        def counted(piece):
            sent[0] += len(piece)
            return write(piece)

        request.wfile.write = counted
        return hook(request, content)

    with Fake(image, blob=blob) as fake:
        for _ in range(12):
            process = home.start("image", "pull", "--plain-http", "--quiet", fake.name)
            try:
                process.wait(random.uniform(0.05, 0.5))
            except subprocess.TimeoutExpired:
                process.kill()
            process.wait()
            yield from home.unsound()
        yield from fine(home, pull(home, fake), fake, image)
        total = sum(map(len, image.blobs.values()))
        # What was on its way when it was killed is sent again: the socket's buffers, 12 times, on 4 connections.
        if not ranges(fake) or sent[0] > 3 * total:
            yield f"{sent[0]} bytes were sent of {total}, going on at {ranges(fake)}"
        left = list((home.store / "partial").iterdir())
        if left:
            yield f"there is left {left}"


def interrupted(home):
    image = Image()
    with Fake(image, blob=slowly(0.2)) as fake:
        process = home.start("image", "pull", "--plain-http", fake.name)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        started = time.monotonic()
        code = process.wait(10)
        if code != -signal.SIGINT or time.monotonic() - started > 1:
            yield f"it ends with {code} after {time.monotonic() - started:.1f} s"
        yield from home.unsound()


def two_at_once(home):
    image = Image(sizes=(1_000_000, 1_000_000))
    with Fake(image, blob=slowly(0.02)) as fake:
        processes = [home.start("image", "pull", "--plain-http", fake.name) for _ in range(3)]
        codes = [process.wait(60) for process in processes]
        if codes != [0, 0, 0]:
            yield f"they end with {codes}"
        if len(fake.asked("/blobs/")) != 3:
            yield f"{len(fake.asked('/blobs/'))} blobs were asked for, not 3"
        yield from home.unsound()


def small_in_memory(home):
    """However large a blob is, little of it is in memory at once."""
    image = Image(sizes=(120_000_000,))
    with Fake(image) as fake:
        process = home.start("image", "pull", "--plain-http", fake.name)
        # Not from wait4(2): what that tells is never less than what this process had when it forked.
        peak = 0
        while process.poll() is None:
            with contextlib.suppress(OSError, IndexError):
                status = Path(f"/proc/{process.pid}/status").read_text()
                peak = max(peak, int(status.split("VmHWM:")[1].split()[0]))
            time.sleep(0.01)
        if process.returncode != 0 or not 0 < peak <= 100 * 1024:
            yield f"it ends with {process.returncode} and took {peak // 1024} MiB"


CASES = [
    sound, cut_and_resumed, cut_without_ranges, other_part_than_asked, cut_for_good, silent_then_dead, other_bytes, other_bytes_in_front,
    swapped, longer, shorter, endless, manifest_of_another_digest, manifest_of_another_promise, documents, docker_kinds, platforms,
    unknown, asks_to_wait, asks_to_wait_for_long, elsewhere, tokens, nobody, mirrors, settings, killed, interrupted, two_at_once,
    small_in_memory,
]


def main():
    harness = Harness("registry_faults", __doc__)
    harness.parse()
    for case in CASES:
        name = case.__name__.replace("_", " ")
        if harness.wants(name):
            with scratch() as directory:
                harness.check(name, case(Home(directory)))
    harness.end()


if __name__ == "__main__":
    main()
