"""Tests pulling from a faulty registry, and from one that requires retries, tokens or passwords: the right result, a clear message,
and a valid store.
"""

import contextlib
import gzip
import io
import json
import random
import signal
import subprocess
import tarfile
import time
import urllib.parse
from pathlib import Path

import pytest

from fake_registry import CONFIG, INDEX, MANIFEST, FakeRegistry, Image, basic, digest

pytestmark = [pytest.mark.duration(20), pytest.mark.needs("mount")]

DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


def pull(home, fake, *words, seconds=60):
    return home.run("image", "pull", "--plain-http", *words, fake.name, seconds=seconds)


def assert_pulled(home, result, fake, image=None):
    """A pull has succeeded."""
    assert result.returncode == 0, f"exit code {result.returncode}: {result.stderr}"
    assert fake.name in home.names(), f"the names are {home.names()}"
    assert image is None or set(image.blobs) <= home.blobs(), "blobs are missing"
    assert not list(home.store_problems())


def assert_rejected(home, result, *words, code=3):
    """A pull has failed with this text and left no name and no wrong blob."""
    assert result.returncode == code, f"exit code {result.returncode}, not {code}: {result.stderr}"
    assert not [word for word in words if word not in result.stderr], result.stderr
    assert not home.names(), f"names are left: {home.names()}"
    assert not list(home.store_problems())


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


def assert_unpacked(home, image, complete):
    """The layers are directories with their content; none is incomplete, and with `complete` none is missing."""
    unpacked = {path.name: path for kind in (home.store / "unpacked").glob("*") for path in kind.iterdir()}
    assert not [name for name in unpacked if name.endswith(".part")]
    for blob in image.layers:
        plain = gzip.decompress(blob)
        path = unpacked.get(digest(plain).removeprefix("sha256:"))
        with tarfile.open(fileobj=io.BytesIO(plain)) as archive:
            for entry in archive if path else []:
                assert (path / "files" / entry.name).read_bytes() == archive.extractfile(entry).read(), f"{entry.name} has other content"
        assert not (complete and not path), "a layer is not unpacked"


def ranges(fake):
    return [int(request["headers"]["range"][6:-1]) for request in fake.requests_for("/blobs/") if "range" in request["headers"]]


# ---- faults of the network ----------------------------------------------------------------------------------------------

def test_blobs_are_requested_once(home):
    image = Image()
    with FakeRegistry(image) as fake:
        assert_pulled(home, pull(home, fake), fake, image)
        first = len(fake.requests_for("/blobs/"))
        assert first == 4, f"{first} blobs were requested, not 4"
        assert_pulled(home, pull(home, fake), fake, image)
        assert len(fake.requests_for("/blobs/")) == first, "stored blobs were requested again"


def test_a_truncated_blob_is_resumed(home):
    image = Image()
    with FakeRegistry(image, blob=first_times(image, 3, truncated)) as fake:
        assert_pulled(home, pull(home, fake), fake, image)
        starts = ranges(fake)
        assert len(starts) == 3 and starts == sorted(starts) and abs(starts[0] - len(image.largest) // 2) <= 1, f"it resumed at {starts} of {len(image.largest)}"


def test_a_registry_without_ranges_sends_the_blob_again(home):
    image = Image()

    def complete(request, content):
        del request.headers["Range"]
        return request.blob(content)

    truncate = first_times(image, 1, truncated)

    def blob(request, content):
        return complete(request, content) if request.headers.get("Range") else truncate(request, content)

    with FakeRegistry(image, blob=blob) as fake:
        assert_pulled(home, pull(home, fake), fake, image)


def test_another_range_than_requested_is_not_used(home):
    image = Image()
    first = first_times(image, 1, truncated)

    def blob(request, content):
        if request.headers.get("Range"):
            return request.answer(206, content[7:], Content_Range=f"bytes 7-{len(content) - 1}/{len(content)}")
        return first(request, content)

    with FakeRegistry(image, blob=blob) as fake:
        assert_pulled(home, pull(home, fake), fake, image)


def test_a_blob_is_tried_six_times(home):
    image = Image()

    def nothing(request, content):
        request.send_response(200)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.disconnect()

    with FakeRegistry(image, blob=first_times(image, 99, nothing)) as fake:
        assert_rejected(home, pull(home, fake), fake.host)
        tries = len(fake.requests_for(digest(image.largest)))
        assert tries == 6, f"it was tried {tries} times, not 6"


def test_an_unreachable_registry_is_reported_at_once(home):
    with FakeRegistry(Image()) as fake:
        name = fake.name
    started = time.monotonic()
    assert_rejected(home, home.run("image", "pull", "--plain-http", name), "cannot reach the registry", "connection refused")
    assert time.monotonic() - started <= 3, "it waited for an unreachable registry"


# ---- faults of the registry --------------------------------------------------------------------------------------------

def test_a_blob_of_other_bytes_is_rejected(home):
    image = Image()

    def blob(request, content):
        return request.blob(content if content != image.largest else bytes(len(content)))

    with FakeRegistry(image, blob=blob) as fake:
        assert_rejected(home, pull(home, fake), "does not match", digest(image.largest))
        assert digest(image.largest) not in home.blobs(), "the blob is in the store"
        fake.blob = None
        assert_pulled(home, pull(home, fake), fake, image)


def test_a_wrong_part_of_an_earlier_pull_is_pulled_again(home):
    image = Image()
    partial = home.store / "partial"
    partial.mkdir(parents=True)
    (partial / digest(image.largest).replace(":", "-")).write_bytes(bytes(1000))
    with FakeRegistry(image) as fake:
        assert_pulled(home, pull(home, fake), fake, image)
        assert (ranges(fake), len(fake.requests_for(digest(image.largest)))) == ([1000], 2)


def test_swapped_blobs_are_rejected(home):
    image = Image(sizes=(5000, 5000))
    one, two = image.layers
    size = min(len(one), len(two))

    def blob(request, content):
        return request.blob({one: two, two: one}.get(content, content))

    with FakeRegistry(image, blob=blob) as fake:
        assert_rejected(home, pull(home, fake), "does not match")
        assert not (size and {digest(one), digest(two)} & home.blobs()), "a blob is in the store"


def test_a_longer_blob_is_rejected(home):
    image = Image()
    with FakeRegistry(image, blob=first_times(image, 99, lambda request, content: request.blob(content + b"more"))) as fake:
        assert_rejected(home, pull(home, fake), "does not match", f"{len(image.largest) + 4} bytes")


def test_a_shorter_blob_is_rejected(home):
    image = Image()
    with FakeRegistry(image, blob=first_times(image, 99, lambda request, content: request.blob(content[:-1]))) as fake:
        assert_rejected(home, pull(home, fake), "does not match", f"{len(image.largest) - 1} bytes")


def test_no_more_is_read_of_a_blob_than_the_manifest_says(home):
    """An endless blob without a length: no more is read than the manifest says."""
    image = Image()

    def blob(request, _):
        request.send_response(200)
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        while True:
            request.wfile.write(b"10000\r\n" + bytes(0x10000) + b"\r\n")

    with FakeRegistry(image, blob=first_times(image, 99, blob)) as fake:
        assert_rejected(home, pull(home, fake), "does not match", "more bytes")


def test_a_manifest_of_another_digest_is_rejected(home):
    image = Image()
    with FakeRegistry(image) as fake:
        wanted = digest(b"something")
        fake.documents[wanted] = (MANIFEST, image.manifest)
        result = home.run("image", "pull", "--plain-http", f"{fake.host}/team/app@{wanted}")
        assert_rejected(home, result, "does not match", wanted, digest(image.manifest))


def test_a_manifest_with_the_digest_of_another_is_rejected(home):
    image = Image()

    def before(request):
        if "/manifests/" in request.path:
            request.answer(200, image.manifest, MANIFEST, Docker_Content_Digest=digest(b"something"))
            return True
        return False

    with FakeRegistry(image, before=before) as fake:
        assert_rejected(home, pull(home, fake), "does not match")


LAYER, FOREIGN = (Image.descriptor(b"x", f"application/vnd.{kind}") for kind in ("example.layer", "docker.image.rootfs.foreign.diff.tar.gzip"))
ARTIFACT, KNOWN = Image.descriptor(b"{}", "application/vnd.example.model.v1+json"), Image.descriptor(b"{}", CONFIG)


@pytest.mark.parametrize("media_type, body, words, code", [
    ("application/vnd.docker.distribution.manifest.v1+prettyjws", {"schemaVersion": 1}, "schema 1", 2),
    (MANIFEST, {"schemaVersion": 2, "config": KNOWN, "layers": [FOREIGN]}, "registries may not distribute", 2),
    (MANIFEST, {"schemaVersion": 2, "config": KNOWN, "layers": [LAYER]}, "a layer of kind `application/vnd.example.layer`", 2),
    (MANIFEST, {"schemaVersion": 2, "config": ARTIFACT, "layers": []}, "is an artifact of type", 2),
    (MANIFEST, {"schemaVersion": 2, "manifests": []}, "looks like another type", 3),
    (INDEX, {"schemaVersion": 2, "manifests": []}, "is for nothing, and not for", 2),
    ("text/html", "<html>", "is not a manifest", 3),
    (MANIFEST, {"schemaVersion": 2, "config": KNOWN, "layers": [], "x": "y" * (5 << 20)}, "exceeds the limit of 4194304 bytes", 3),
], ids=["schema_1", "foreign_layer", "unknown_layer", "artifact", "index_as_manifest", "no_platform", "html", "too_large"])
def test_a_document_that_is_not_an_image_is_rejected_before_blobs_are_requested(home, media_type, body, words, code):
    """Code 2 is for an image that cannot be used, 3 for an answer that breaks the rules of registries."""
    with FakeRegistry() as fake:
        fake.put("1", media_type, body.encode() if isinstance(body, str) else json.dumps(body).encode())
        assert_rejected(home, pull(home, fake), words, code=code)
        assert not fake.requests_for("/blobs/"), "blobs were requested"


def test_an_image_of_dockers_media_types_is_pulled(home):
    image = Image()
    body = json.loads(image.manifest)
    body["mediaType"] = DOCKER_MANIFEST
    body["config"]["mediaType"] = "application/vnd.docker.container.image.v1+json"
    for entry in body["layers"]:
        entry["mediaType"] = "application/vnd.docker.image.rootfs.diff.tar.gzip"
    with FakeRegistry(image) as fake:
        fake.put("1", DOCKER_MANIFEST, json.dumps(body).encode())
        assert_pulled(home, pull(home, fake), fake, image)


def test_the_image_of_the_platform_is_pulled(home):
    mine, other = Image(sizes=(100,)), Image(sizes=(200,), architecture="arm64")
    with FakeRegistry(mine) as fake:
        fake.add(other)
        entries = [Image.descriptor(image.manifest, MANIFEST, platform={"os": "linux", "architecture": name})
                   for image, name in ((other, "arm64"), (mine, "amd64"))]
        entries.append(Image.descriptor(b"{}", MANIFEST, platform={"os": "unknown", "architecture": "unknown"}))
        index = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}).encode()
        fake.put("1", INDEX, index)
        result = pull(home, fake)
        assert_pulled(home, result, fake, mine)
        assert digest(index) in result.stdout, f"the digest of the list is not printed: {result.stdout}"
        assert not (set(other.blobs) & home.blobs()), "the other platform was fetched"
        assert_pulled(home, pull(home, fake, "--platform", "linux/arm64"), fake, other)
        result = pull(home, fake, "--platform", "linux/s390x")
        assert result.returncode == 2 and "`linux/arm64`, `linux/amd64`" in result.stderr, f"a missing platform: {result.returncode} {result.stderr}"
        mine_by_digest = f"{fake.host}/team/app@{digest(mine.manifest)}"
        asked = len(fake.requests_for(""))
        result = home.run("image", "pull", "--plain-http", mine_by_digest)
        assert result.returncode == 0 and len(fake.requests_for("")) == asked, f"a stored digest was requested: {result.stderr}"


def test_an_unknown_name_is_reported_with_the_words_of_the_registry(home):
    with FakeRegistry() as fake:
        assert_rejected(home, pull(home, fake), "has no `", "there is no such thing (NAME_UNKNOWN)", code=1)


# ---- requirements of the registry -----------------------------------------------------------------------------------------

def test_a_pull_waits_as_long_as_the_registry_asks(home):
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
        assert_pulled(home, pull(home, fake), fake, image)
        assert time.monotonic() - started >= 2, "it did not wait"


def test_a_pull_does_not_wait_for_a_day(home):
    def before(request):
        request.reject(429, "TOOMANYREQUESTS", "slowly", Retry_After="86400")
        return True

    with FakeRegistry(Image(), before=before) as fake:
        assert_rejected(home, pull(home, fake), "429", "slowly (TOOMANYREQUESTS)", "a retry after 86400 s")
        assert len(fake.requests_for("")) == 1, "it was requested again"


def test_the_host_of_a_redirect_does_not_get_the_credentials(home):
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
            assert_pulled(home, pull(home, fake), fake, image)
            assert not any("authorization" in request["headers"] for request in storage.requests), "the other host got the password"
            assert len(ranges(storage)) == 1, "the other host was not asked for the remaining range"


@pytest.mark.parametrize("credential", [None, "password", "identity", "wrong", "absent helper"])
def test_a_token_service_gives_tokens_and_a_new_one_when_it_expires(home, credential):
    image, given, used = Image(), [], [0]

    def before(request):
        url = urllib.parse.urlparse(request.path)
        if url.path == "/token":
            fields = urllib.parse.parse_qs(request.body.decode() if request.command == "POST" else url.query)
            right = {
                **dict.fromkeys((None, "absent helper"), request.command == "GET" and "Authorization" not in request.headers),
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
        home.login(**({fake.host.replace(":", "__"): entry} if credential not in (None, "absent helper") else {}))
        if credential == "absent helper":
            # As Docker Desktop leaves it behind; what is public needs no login.
            (home.directory / ".docker").mkdir(exist_ok=True)
            (home.directory / ".docker/config.json").write_text('{"credsStore": "desktop.exe"}')
        result = pull(home, fake)
        if credential == "wrong":
            assert "denied permission to pull from `team/app`" in result.stderr and "not with that" in result.stderr, result.stderr
        else:
            assert_pulled(home, result, fake, image)
            assert len(given) == 2, f"{len(given)} tokens were issued"
            assert ("is used without a login" in result.stderr) == (credential == "absent helper"), result.stderr
        assert not any("secret" in text or "token-" in text for text in (result.stdout, result.stderr)), "a secret is printed"


def test_a_login_that_is_needed_is_reported(home):
    def before(request):
        request.reject(401, "UNAUTHORIZED", "who are you", WWW_Authenticate='Basic realm="x"')
        return True

    with FakeRegistry(Image(), before=before) as fake:
        assert_rejected(home, pull(home, fake), "requires a login", f"docker login {fake.host}")


# ---- settings -----------------------------------------------------------------------------------------------------------

def test_mirrors_are_tried_in_order_before_the_registry(home):
    image = Image()
    with FakeRegistry(image) as origin, FakeRegistry(image) as mirror, FakeRegistry() as empty:
        with FakeRegistry() as dead:
            pass
        home.registries({origin.host: {"plain_http": True, "mirrors": [f"http://{dead.host}", f"http://{empty.host}", f"http://{mirror.host}"]}})
        result = home.run("image", "pull", origin.name)
        assert_pulled(home, result, origin, image)
        assert not origin.requests_for("") and len(mirror.requests_for("/blobs/")) == 4, "the mirror did not get all requests"
        assert "trying the next endpoint" in result.stderr, f"the failed mirrors are not reported: {result.stderr}"
        home.registries({origin.host: {"plain_http": True, "mirrors": [f"http://{empty.host}"]}})
        other = Image(sizes=(77,))
        origin.add(other)
        assert_pulled(home, home.run("image", "pull", origin.name), origin, other)


@pytest.mark.parametrize("text, words", [
    ("registries:\n  a.example:\n    insecur: true\n", ["line 3", "`registries.a.example.insecur`", "unknown field"]),
    ("registries: [\n", ["registries.yaml", "line"]),
    ("registries:\n  a.example:\n    ca: [not-there.pem]\n", ["not-there.pem", "no such file"]),
    ("registries:\n  a.example:\n    mirrors: ['ftp://x']\n", ["`ftp://x` is not a mirror"]),
], ids=["field", "syntax", "ca", "mirror"])
def test_a_mistake_in_the_settings_is_reported_at_its_place(home, text, words):
    home.registries(text)
    result = home.run("image", "pull", "a.example/b:1")
    assert result.returncode in (2, 3), f"exit code {result.returncode}"
    assert not [word for word in words if word.lower() not in result.stderr.lower()], result.stderr


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


def test_a_killed_pull_resumes(home):
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
            assert not list(home.store_problems())
        assert_pulled(home, pull(home, fake), fake, image)
        total = sum(map(len, image.blobs.values()))
        # Data in flight at a kill is sent again: the socket's buffers, 12 times, on 4 connections.
        assert ranges(fake) and sent[0] <= 3 * total, f"{sent[0]} bytes were sent of {total}, resumed at {ranges(fake)}"
        remaining = list((home.store / "partial").iterdir())
        assert not remaining, f"left: {remaining}"


def wrong_first_bytes(request, content):
    return request.answer(200, bytes(len(content) // 3) + content[len(content) // 3:])


def wrong_range(request, content):
    if request.headers.get("Range"):
        return request.answer(206, content[7:], Content_Range=f"bytes 7-{len(content) - 1}/{len(content)}")
    return truncated(request, content)


@pytest.mark.parametrize("fault, times", [(truncated, 3), (wrong_range, 2), (wrong_first_bytes, 1)])
def test_layers_are_unpacked_while_they_come_and_only_verified_ones_get_their_names(home, fault, times):
    image = Image(sizes=(200_000, 3_000_000, 10))
    with FakeRegistry(image, blob=first_times(image, times, fault)) as fake:
        result = pull(home, fake, "--unpack")
        if result.returncode != 0:
            # Other bytes are not asked for again by themselves.
            assert_rejected(home, result, "does not match")
            assert_unpacked(home, image, complete=False)
            result = pull(home, fake, "--unpack")
        assert_pulled(home, result, fake, image)
        assert_unpacked(home, image, complete=True)


def test_a_pull_killed_while_unpacking_resumes(home):
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
            assert not list(home.store_problems())
            whole = (home.store / "unpacked").glob("*/*")
            assert not any(not path.name.endswith(".part") and not (path / "left.json").exists() for path in whole), "a layer has its name before it was whole"
        assert_pulled(home, pull(home, fake, "--unpack"), fake, image)
        assert_unpacked(home, image, complete=True)


@pytest.mark.needs("root")
def test_a_full_disk_while_unpacking_is_reported_and_leaves_nothing_incomplete(home):
    """A disk that is full while layers are unpacked: the message says so, nothing incomplete is left, and with room it goes on."""
    image = Image(sizes=(1_000_000, 5_000_000))
    home.store.mkdir()

    def mount(*words):
        subprocess.run(["mount", "-t", "tmpfs", *words, "tmpfs", home.store], check=True)

    mount("-o", "size=9m")
    try:
        with FakeRegistry(image) as fake:
            # Where all blobs were there before the disk was full, the image has its name already.
            full = pull(home, fake, "--unpack")
            assert full.returncode == 3 and "left in the image store" in full.stderr and "jobc image gc" in full.stderr, full.stderr
            assert_unpacked(home, image, complete=False)
            mount("-o", "remount,size=40m")
            complete, before = home.blobs(), len(fake.requests_for("/blobs/"))
            assert_pulled(home, pull(home, fake, "--unpack"), fake, image)
            assert_unpacked(home, image, complete=True)
            again = [request["path"] for request in fake.requests_for("/blobs/")[before:] if request["path"].split("/")[-1] in complete]
            assert not again and complete, f"of the complete blobs {complete}, {again} were requested again"
    finally:
        subprocess.run(["umount", home.store], check=True)


def test_an_interrupted_pull_ends_at_once(home):
    image = Image()
    with FakeRegistry(image, blob=slow_blob(0.2)) as fake:
        process = home.start("image", "pull", "--plain-http", fake.name)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        started = time.monotonic()
        code = process.wait(10)
        assert code == -signal.SIGINT and time.monotonic() - started <= 1, f"exit code {code} after {time.monotonic() - started:.1f} s"
        assert not list(home.store_problems())


def test_concurrent_pulls_request_each_blob_once(home):
    image = Image(sizes=(1_000_000, 1_000_000))
    with FakeRegistry(image, blob=slow_blob(0.02)) as fake:
        processes = [home.start("image", "pull", "--plain-http", fake.name) for _ in range(3)]
        codes = [process.wait(60) for process in processes]
        assert codes == [0, 0, 0], f"exit codes {codes}"
        assert len(fake.requests_for("/blobs/")) == 3, f"{len(fake.requests_for('/blobs/'))} blobs were requested, not 3"
        assert not list(home.store_problems())


@pytest.mark.slow
def test_the_memory_of_a_pull_does_not_depend_on_the_size_of_the_blob(home):
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
        assert process.returncode == 0 and 0 < peak <= 100 * 1024, f"exit code {process.returncode}, {peak // 1024} MiB"
