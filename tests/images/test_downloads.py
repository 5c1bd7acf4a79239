"""Tests `ADD` of URLs, by servers on loopback that redirect, truncate, stall and announce too much."""

import hashlib
import io
import signal
import subprocess
import tarfile
import time

import pytest

import web
from home import assert_result
from remote import Builder

pytestmark = [pytest.mark.duration(10), pytest.mark.needs("openssl")]

CONTENT = b"content\n"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


class Downloads(Builder):
    """A builder that trusts the certificate of a server."""

    def __init__(self, directory, ca, server, plain):
        super().__init__(directory)
        self.home.environment["SSL_CERT_FILE"] = str(ca / "ca.pem")
        self.server, self.plain = server, plain

    def add(self, words, **environment):
        """Builds an image with `ADD`, in which `{server}` and `{plain}` are the addresses of the servers."""
        return self.run(self.text(words), **environment)

    def text(self, words):
        return f"FROM scratch\nADD {words.format(server=self.server.url, plain=self.plain.url)}\n"

    def file(self, result, path):
        """The entry and the content of a file of an image that was built."""
        assert_result(result)
        return self.files(result)[path]


@pytest.fixture(scope="module")
def module_builder(shared, ca):
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as made:
        made.addfile(tarfile.TarInfo("inner"), io.BytesIO())
    with web.Web(ca) as server, web.Web() as plain:
        server.files = {"/a/file.txt": CONTENT, "/tree.tar.gz": archive.getvalue()}
        plain.files = {"/plain": b"plain\n"}
        server.hooks = {"/moved": web.redirect("/a/file.txt"), "/loop": web.redirect("/loop"), "/down": web.redirect(f"{plain.url}/plain"),
                        "/huge": web.huge, "/short": web.truncated, "/slow": web.slow}
        yield Downloads(shared, ca, server, plain)


@pytest.fixture
def builder(module_builder):
    """A builder with servers; no download leaves anything."""
    module_builder.server.statuses("/a/file.txt")
    yield module_builder
    assert not module_builder.left()


def test_a_file_is_added_with_its_time(builder):
    entry, content = builder.file(builder.add("{server}/a/file.txt?x=1 /to/"), "to/file.txt")
    assert (entry.mode & 0o7777, entry.uid, entry.gid, entry.mtime, content) == (0o600, 0, 0, web.MODIFIED, CONTENT)


def test_a_file_is_fetched_again_only_if_it_has_changed(builder):
    results = [builder.add("{server}/a/file.txt /to/") for _ in range(2)]
    assert builder.server.statuses("/a/file.txt") == [200, 304]
    for result in results:
        assert_result(result)
    assert results[0].stdout == results[1].stdout
    builder.server.files["/a/file.txt"] = b"changed\n"
    changed = builder.add("{server}/a/file.txt /to/")
    builder.server.files["/a/file.txt"] = CONTENT
    assert builder.file(changed, "to/file.txt")[1] == b"changed\n"


def test_a_file_with_a_checksum_is_fetched_once(builder):
    results = [builder.add(f"--checksum=sha256:{DIGEST} --chown=5:6 --chmod=640 {{server}}/a/file.txt /named") for _ in range(2)]
    assert builder.server.statuses("/a/file.txt") == [200]
    for result in results:
        entry, _ = builder.file(result, "named")
        assert (entry.mode & 0o7777, entry.uid, entry.gid) == (0o640, 5, 6)


@pytest.mark.parametrize("words, path", [("{server}/tree.tar.gz /x/", "x/tree.tar.gz"), ("--unpack {server}/tree.tar.gz /x/", "x/inner"),
                                         ("--unpack=false {server}/tree.tar.gz /x/", "x/tree.tar.gz"), ("{plain}/plain /x", "x")],
                         ids=["archive", "unpack", "unpack_false", "plain_http"])
def test_an_archive_is_unpacked_if_requested(builder, words, path):
    builder.file(builder.add(words), path)


def test_a_redirect_is_followed(builder):
    assert builder.file(builder.add("{server}/moved /x"), "x")[1] == CONTENT


@pytest.mark.parametrize("words, texts", [
    (f"--checksum=sha256:{'0' * 64} {{server}}/a/file.txt /x", ["does not match: expected `sha256:000", DIGEST]),
    (f"--checksum=sha256:{DIGEST} {{server}}/a {{server}}/b /x/", ["`--checksum` needs a single URL"]),
    ("{server}/absent /x", ["404 Not Found", "Dockerfile:2"]),
    ("{server}/loop /x", ["more than 10 times"]),
    ("{server}/down /x", ["without TLS"]),
    ("{server}/huge /x", ["larger than"]),
    ("{server}/short /x", ["broke off after 4"]),
], ids=["checksum", "checksum_of_two", "absent", "endless_redirects", "redirect_without_TLS", "too_large", "broken_off"])
def test_a_failed_download_is_reported(builder, words, texts):
    assert_result(builder.add(words), 1, *texts)


def test_an_unknown_certificate_is_rejected(builder):
    assert_result(builder.add("{server}/tree.tar.gz /x", SSL_CERT_FILE=None), 1, "cannot download")


def test_an_interrupt_ends_a_download(builder):
    (builder.context / "Dockerfile").write_text(builder.text("{server}/slow /x"))
    process = subprocess.Popen([builder.program, "image", "build", "--builder", "embedded", builder.context], cwd=builder.home.directory,
                               env=builder.home.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        assert process.wait(timeout=20) == 130
        assert process.stderr.read().endswith("jobc: interrupted; no image was built\n")
        assert time.monotonic() - began < 5
    finally:
        process.kill()
        process.wait()
