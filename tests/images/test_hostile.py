"""Unpacks hostile archives as layers, as root and as users: nothing may be written outside the layer's directory, nothing of
a rejected layer may be left in the store, and no archive may use much memory."""

import bz2
import gzip
import hashlib
import json
import lzma
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from archives import (BLOCK, CHARACTER, FILE, DIRECTORY, HARD, PIPE, archive, file, gnu, header, link, member, pax, record, sparse, xattr_version_2)

pytestmark = [pytest.mark.duration(20), pytest.mark.needs("root", "time")]

LIMIT = 64 << 20
MAX_MEMORY = 100 << 10


def cases(outside):
    """Name, function that makes the archive, and expected result: text of the error, or paths that the layer must have.

    `outside` is a directory of the host with a file `sentinel`; `up` leads to it from any root with `..`.
    """
    up = "../" * 16 + outside.lstrip("/")
    own = outside.lstrip("/")
    yield "a path with ..", lambda: archive(file(f"{up}/evil")), "a path with `..`"
    yield ".. in the middle", lambda: archive(file("a/../../evil")), "a path with `..`"
    yield ".. at the end", lambda: archive(member(DIRECTORY, "a/..")), "a path with `..`"
    yield "an absolute path", lambda: archive(file(f"{outside}/sentinel")), [f"{own}/sentinel"]
    yield "many slashes", lambda: archive(file(f"///{outside}///sentinel")), [f"{own}/sentinel"]
    yield "a link out, absolute", lambda: archive(link("way", outside), file("way/sentinel")), "below a dangling link"
    yield "a link out by ..", lambda: archive(link("way", up), file("way/sentinel")), "below a dangling link"
    yield "a link to the root", lambda: archive(link("way", "/"), file("way/inside")), ["way", "inside"]
    yield "a link above the root", lambda: archive(link("way", "../../.."), file("way/inside")), ["inside"]
    yield "a chain of links", lambda: archive(link("a", "b"), link("b", "c"), link("c", outside), file("a/sentinel")), "below a dangling link"
    yield "a link to itself", lambda: archive(link("a", "a"), file("a/x")), "ELOOP"
    yield "links in a circle", lambda: archive(link("a", "b"), link("b", "a"), file("a/x")), "ELOOP"
    yield "a link that is replaced", lambda: archive(link("s", f"{outside}/sentinel"), file("s")), ["s"]
    yield "a directory over a link", lambda: archive(link("way", outside), member(DIRECTORY, "way"), file("way/x")), ["way/x"]
    yield "a link by way of a link", lambda: archive(link("way", outside), link("way/back", "x")), "below a dangling link"
    yield "a link deep below a link", lambda: archive(link("a", "/"), link("a/b", outside), file("a/b/sentinel")), "below a dangling link"
    yield "proc", lambda: archive(link("p", "/proc/self/root"), file(f"p/{own}/sentinel")), "below a dangling link"
    yield "a hard link to a file of the host", lambda: archive(link("shadow", "/etc/shadow", HARD)), "which is in no layer"
    yield "a hard link by ..", lambda: archive(link("stolen", f"{up}/sentinel", HARD)), "a path with `..`"
    yield "a hard link through a link", lambda: archive(link("way", outside), link("stolen", "way/sentinel", HARD)), "in no layer"
    yield "a hard link to a link, then written to", lambda: archive(
        link("way", f"{outside}/sentinel"), link("stolen", "way", HARD), file("stolen")), ["stolen", "way"]
    yield "a hard link to a directory", lambda: archive(member(DIRECTORY, "d"), link("h", "d", HARD)), "not permitted"
    yield "a hard link to the root", lambda: archive(link("h", ".", HARD)), "the root"
    yield "a whiteout through a link", lambda: archive(link("way", outside), file("way/.wh.sentinel", b"")), "below a dangling link"
    yield "an opaque directory through a link", lambda: archive(link("way", outside), file("way/.wh..wh..opq", b"")), "below a dangling link"
    yield "a whiteout of ..", lambda: archive(file(".wh...", b"")), "a whiteout without a name"
    yield "a whiteout of .", lambda: archive(file(".wh..", b"")), "a whiteout without a name"
    yield "a whiteout of nothing", lambda: archive(file("a/.wh.", b"")), "a whiteout without a name"
    yield "a whiteout with ..", lambda: archive(file(f"{up}/.wh.sentinel", b"")), "a path with `..`"
    yield "a whiteout that is a link", lambda: archive(link(".wh.a", outside), file("a/x")), ["a/x"]
    yield "a hard link to a whiteout", lambda: archive(file(".wh.a", b""), link("b", "a", HARD)), "in no layer"
    yield "a path of pax out of the root", lambda: archive(pax(records=[("path", f"{up}/evil")]), file("good")), "a path with `..`"
    yield "a target of pax", lambda: archive(pax(records=[("linkpath", outside)]), link("way", "good"), file("way/sentinel")), "below a dangling link"
    yield "a path of pax, then one of GNU", lambda: archive(
        pax(records=[("path", "pax")]), gnu("L", b"gnu"), file("plain")), ["gnu"]
    yield "a path of pax with a NUL byte", lambda: archive(pax(records=[("path", b"a\0b")]), file("good")), "a NUL byte"
    yield "a size of pax that hides an entry", lambda: archive(
        pax(records=[("size", "1024")]), header(FILE, b"outer", size=0) + file("hidden") + b"\0" * 0), ["outer"]
    yield "a size of pax past the end", lambda: archive(pax(records=[("size", str(1 << 40))]), file("good")), "truncated"
    yield "an invalid size of pax", lambda: archive(pax(records=[("size", "-1")]), file("good")), "an invalid number in an extended header"
    yield "a record without a newline", lambda: archive(pax(text=b"12 path=good!"), file("x")), "a damaged extended header"
    yield "a record that is longer than its header", lambda: archive(pax(text=b"999 path=x\n"), file("x")), "a damaged extended header"
    yield "a record of length zero", lambda: archive(pax(text=b"0 path=x\n" + record("path", "x")), file("x")), "a damaged extended header"
    yield "a global pax header", lambda: archive(pax("g", [("path", f"{up}/evil")]), file("good")), ["good"]
    yield "a long name of GNU out of the root", lambda: archive(gnu("L", f"{up}/evil".encode()), file("good")), "a path with `..`"
    yield "a long target of GNU", lambda: archive(gnu("K", outside.encode()), link("way", "x"), file("way/sentinel")), "below a dangling link"
    yield "an endless name", lambda: archive(gnu("L", b"a" * (3 << 20)), file("x")), "more than 1 MiB"
    yield "endless attributes", lambda: archive(
        *[pax(records=[("SCHILY.xattr.user.a", b"a" * 60_000)]) for _ in range(30)], file("x")), "more than 1 MiB"
    yield "a name of 5,000 bytes", lambda: archive(gnu("L", b"n" * 5000), file("x")), "ENAMETOOLONG"
    yield "a path of 2,000 directories", lambda: archive(gnu("L", b"d/" * 2000 + b"f"), file("x")), ["d"]
    ways = [link(f"way{number}", ("top/" if number == 0 else f"way{number - 1}/") + "d/" * 100) +
            gnu("L", f"way{number}/".encode() + b"d/" * 100 + b"f") + file("x", b"") for number in range(20)]
    yield "directories deeper than a path can be long", lambda: archive(gnu("L", b"top/" + b"d/" * 100 + b"f"), file("x", b""), *ways), ["top"]
    yield "too many directories to remember", lambda: gzip.compress(archive(
        *[gnu("L", b"%d/" % number + b"d/" * 1900 + b"f") + file("x", b"") for number in range(40)]), 1), "too many directories"
    yield "the same name again and again", lambda: archive(*[file("x", b"%d" % number) for number in range(200)]), ["x"]
    yield "a file where a full directory is", lambda: archive(member(DIRECTORY, "a"), file("a/b"), file("a")), ["a"]
    yield "a file below a file", lambda: archive(file("a"), file("a/b")), "ENOTDIR"
    yield "a device of a disk", lambda: archive(member(BLOCK, "disk", device=(8, 0), mode=0o666)), None
    yield "a device number out of range", lambda: archive(member(CHARACTER, "c", raw={329: b"\x80" + b"\xff" * 7})), "device"
    yield "a whiteout as a device", lambda: archive(member(CHARACTER, "w", device=(0, 0))), None
    yield "a pipe", lambda: archive(member(PIPE, "pipe"), file("pipe")), ["pipe"]
    yield "attributes of overlays", lambda: archive(
        pax(records=[("SCHILY.xattr.trusted.overlay.redirect", outside), ("SCHILY.xattr.user.overlay.redirect", outside),
                     ("SCHILY.xattr.trusted.overlay.opaque", "y"), ("SCHILY.xattr.security.selinux", "x")]),
        member(DIRECTORY, "d")), ["d"]
    yield "a capability with a newline", lambda: archive(
        pax(records=[("SCHILY.xattr.security.capability", xattr_version_2(0x0a))]), file("tool", mode=0o755)), ["tool"]
    yield "set-user-id of somebody else", lambda: archive(file("su", mode=0o6755, uid=0, gid=0), file("mine", mode=0o4755, uid=12345)), None
    yield "an invalid owner", lambda: archive(file("x", raw={108: b"\x80\0\0\0\xff\xff\xff\xff"})), "an owner that is not a valid id"
    yield "a sparse file of 8 PiB", lambda: archive(sparse("s", [(0, 4)], 1 << 53, b"data")), "more than 2 TiB"
    yield "a sparse file with pieces past its end", lambda: archive(sparse("s", [(1 << 20, 4)], 16, b"data")), "damaged map"
    yield "a sparse file with overlapping pieces", lambda: archive(sparse("s", [(0, 4), (2, 2)], 99, b"dataxx")), "damaged map"
    yield "a sparse file with more data than pieces", lambda: archive(sparse("s", [(0, 4)], 99, b"d" * 600)), "does not match"
    yield "a sparse file of pax with a wrong map", lambda: archive(
        pax(records=[("GNU.sparse.major", "1"), ("GNU.sparse.minor", "0"), ("GNU.sparse.name", f"{up}/evil"),
                     ("GNU.sparse.realsize", "10")]), file("good", b"1\n0\n4\n".ljust(512, b"\0") + b"data")), "a path with `..`"
    yield "a sparse file of pax with an endless map", lambda: archive(
        pax(records=[("GNU.sparse.major", "1"), ("GNU.sparse.minor", "0"), ("GNU.sparse.name", "s"),
                     ("GNU.sparse.realsize", "10")]), file("good", b"99999999999\n".ljust(1024, b"1"))), "more than 65536 pieces"
    yield "a gzip bomb", lambda: bomb(), "becomes larger than"
    yield "a truncated file", lambda: archive(file("x", b"d" * 2000))[:1500], "truncated"
    yield "a truncated header", lambda: archive(file("x"))[:700], None
    yield "a long name without a file", lambda: archive(gnu("L", b"name")), "ends in the middle of a header"
    yield "garbage after the end", lambda: archive(file("x")) + b"rubbish" * 1000, ["x"]
    yield "an entry after the end", lambda: archive(file("x")) + archive(file(f"{up}/evil")), ["x"]
    yield "no end", lambda: archive(file("x"), end=False), ["x"]
    yield "no end, and a last block that is not filled", lambda: archive(file("x"), end=False)[:512 + 4], ["x"]
    yield "a checksum that is wrong", lambda: archive(file("x").replace(b"text", b"text"), b"x" + file("y")[1:]), "checksum"
    yield "not an archive", lambda: b"#!/bin/sh\n" * 100, "not a tar archive"
    yield "an unknown type", lambda: archive(member("M", "volume")), "an entry of type `M`"
    yield "truncated gzip", lambda: gzip.compress(archive(file("x", os.urandom(9000))))[:-3000], "truncated"
    yield "gzip with a bit changed", lambda: flip_bit(gzip.compress(archive(file("x", b"text" * 5000)))), ""
    yield "xz", lambda: lzma.compress(archive(file("x"))), ["x"]
    yield "bzip2", lambda: bz2.compress(archive(file("x"))), ["x"]
    yield "several streams of xz", lambda: lzma.compress(archive(file("x"), end=False)) + lzma.compress(archive(file("y"))), ["x", "y"]
    yield "several streams of bzip2", lambda: bz2.compress(archive(file("x"), end=False)) + bz2.compress(archive(file("y"))), ["x", "y"]
    yield "truncated xz", lambda: lzma.compress(archive(file("x", os.urandom(9000))))[:-3000], "truncated"
    yield "truncated bzip2", lambda: bz2.compress(archive(file("x", os.urandom(9000))))[:-3000], "truncated"
    yield "xz with a bit changed", lambda: flip_bit(lzma.compress(archive(file("x", b"text" * 5000)))), ""
    yield "bzip2 with a bit changed", lambda: flip_bit(bz2.compress(archive(file("x", b"text" * 5000)))), ""
    yield "xz with a dictionary of 128 MiB", lambda: lzma.compress(
        archive(file("x")), filters=[{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 128 << 20}]), "its xz dictionary is larger than 64 MiB"
    yield "an xz bomb", lambda: bomb(lambda data: lzma.compress(data, preset=0)), "becomes larger than"
    yield "a bzip2 bomb", lambda: bomb(bz2.compress), "becomes larger than"
    yield "zip", lambda: b"PK\x03\x04" + b"\0" * 600, "a zip archive"
    yield "negative size", lambda: archive(file("x", raw={124: b"\xff" * 12})), "size"
    yield "a size of eight exabytes", lambda: archive(file("x", raw={124: b"\x80\0\0\0" + b"\x7f" + b"\xff" * 7})), "more than 2 TiB"


def bomb(compress=lambda data: gzip.compress(data, 1)):
    """Four times the limit in zeros, which take a quarter of a megabyte, as a file of a valid archive."""
    return compress(header(FILE, b"zeros", size=4 * LIMIT)) + compress(b"\0" * LIMIT) * 4 + compress(b"\0" * 1024)


def flip_bit(data):
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 0x55]) + data[middle + 1:]


def content(bytes_):
    """The digest of an archive after decompression, as far as Python can."""
    for magic, decompress in ((b"\x1f\x8b", gzip.decompress), (b"\xfd7zXZ", lzma.decompress), (b"BZh", bz2.decompress)):
        if bytes_.startswith(magic):
            try:
                bytes_ = decompress(bytes_)
            except (EOFError, OSError, Exception):  # noqa: BLE001 - it is corrupt on purpose
                pass
            break
    return "sha256:" + hashlib.sha256(bytes_).hexdigest()


def run(*words, **environment):
    """Runs the unpacker, with `JOBC_MUTATION` of `selftest.py`."""
    environment |= {"HOME": "/nonexistent"} | {name: os.environ[name] for name in ("PATH", "JOBC_MUTATION") if name in os.environ}
    return subprocess.run(words, env=environment, capture_output=True, text=True, errors="replace", timeout=300, check=False)


def peak_of(result):
    """The most memory that the unpacker used, in KiB."""
    return int(result.stdout.split()[-1])


def zstd_frame(head, exponent, blocks):
    """A frame of zstd (RFC 8878) with a window of 2 to the `exponent`: `head`, then blocks of 128 KiB of one byte each."""
    raw = len(head) << 3
    runs = b"".join((131_072 << 3 | 2 | (number == blocks - 1)).to_bytes(3, "little") + b"z" for number in range(blocks))
    return b"\x28\xb5\x2f\xfd\x00" + bytes([exponent - 10 << 3]) + raw.to_bytes(3, "little") + head + runs


@pytest.mark.parametrize("exponent, expected", [(26, 0), (27, 1), (30, 1)])
def test_zstd_frames_with_large_windows_share_the_memory_limit(unpack, directory, exponent, expected):
    size, layout = 80 << 20, directory / "layout"
    (layout / "blobs/sha256").mkdir(parents=True)

    def put(data, kind):
        digest = hashlib.sha256(data).hexdigest()
        (layout / "blobs/sha256" / digest).write_bytes(data)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(data)}

    heads = [header(FILE, b"file%d" % number, size=size) for number in range(4)]
    layers = [put(zstd_frame(head, exponent, size >> 17), "layer.v1.tar+zstd") for head in heads]
    diffs = [content(head + b"z" * size) for head in heads]
    config = {"os": "linux", "architecture": os.uname().machine.replace("x86_64", "amd64").replace("aarch64", "arm64"),
              "rootfs": {"type": "layers", "diff_ids": diffs}}
    config = put(json.dumps(config).encode(), "config.v1+json")
    manifest = put(json.dumps({"schemaVersion": 2, "config": config, "layers": layers}).encode(), "manifest.v1+json")
    (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [manifest]}))
    (layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    result = run(unpack, "import", directory / "store", layout)
    assert result.returncode == expected, result.stderr
    if expected:
        assert "zstd window is" in result.stderr
    else:
        assert peak_of(result) <= MAX_MEMORY


DOCUMENT = file("manifest.json", b"[]")


@pytest.mark.parametrize("before, kind, size", [
    (b"", "L", 1 << 30), (DOCUMENT, "K", 1 << 30), (b"", "x", 64 << 20), (DOCUMENT, "x", 64 << 20),
], ids=["a_long_name_of_1_GiB_at_the_beginning", "a_long_link_of_1_GiB_behind_a_document", "pax_records_of_64_MiB_at_the_beginning",
        "pax_records_of_64_MiB_behind_a_document"])
def test_a_header_that_claims_very_much_is_rejected_by_an_import(unpack, directory, before, kind, size):
    path, rest = directory / "bomb.tar.gz", size
    with gzip.open(path, "wb", compresslevel=1) as out:
        out.write(before + header(kind, b"././@LongLink", size=size))
        while rest > 0:
            rest -= out.write(b"n" * min(rest, 1 << 20))
    # A child's own maximum would be at least what this process has.
    measured = directory / "measured"
    result = run("time", "--format=%M", f"--output={measured}", unpack, "import", directory / "store", path)
    assert result.returncode == 1 and "take more than 1 MiB" in result.stderr, result.stderr
    assert int(measured.read_text().split()[-1]) <= MAX_MEMORY


@pytest.mark.slow
@pytest.mark.duration(60)
def test_a_layer_of_very_many_directories_takes_the_memory_of_any_other(unpack, directory):
    count, path = 400_000, directory / "many.tar"
    with open(path, "wb") as out:
        out.write(member(DIRECTORY, "many", mode=0o750, mtime=1_600_000_000))
        for number in range(count):
            out.write(member(DIRECTORY, f"many/directory-{number:06}", mode=0o700 + number % 8, mtime=1_500_000_000 + number))
        # A file in the first of them changes its time again.
        out.write(file("many/directory-000000/file") + b"\0" * 1024)
    result = run(unpack, "import", directory / "store", path)
    assert result.returncode == 0, result.stderr
    assert peak_of(result) <= MAX_MEMORY
    top = Path(result.stdout.split("\n")[0]) / "many"
    assert len(os.listdir(top)) == count
    modes = {top: (0o750, 1_600_000_000)}
    modes |= {top / f"directory-{number:06}": (0o700 + number % 8, 1_500_000_000 + number) for number in (0, 1, count // 2, count - 1)}
    assert {path: (stat.S_IMODE(path.stat().st_mode), int(path.stat().st_mtime)) for path in modes} == modes
    subprocess.run(["rm", "-rf", directory / "store", path], check=True)


def walk(top, skip):
    """Every path below a directory, with what shows a change."""
    found = {}
    for directory, names, files in os.walk(top):
        if Path(directory) == skip:
            names.clear()
            continue
        for name in names + files:
            path = os.path.join(directory, name)
            data = os.lstat(path)
            text = Path(path).read_bytes() if stat.S_ISREG(data.st_mode) else b""
            # The names of a directory are compared; its size depends on the file system.
            size = 0 if stat.S_ISDIR(data.st_mode) else data.st_size
            found[path] = (data.st_mode, data.st_uid, size, text)
    return found


@pytest.fixture(scope="module")
def sandbox(shared, account):
    """A directory with a directory `outside`, in which the user could write, so that the program is tested and not permissions."""
    # The tree of an archive may be deep.
    sys.setrecursionlimit(20_000)
    sandbox = shared / (account.name if account else "root")
    outside = sandbox / "outside"
    outside.mkdir(parents=True)
    (outside / "sentinel").write_text("untouched")
    for path in [outside, outside / "sentinel"] if account else []:
        os.chown(path, account.uid, account.gid)
    yield sandbox
    subprocess.run(["rm", "-rf", sandbox], check=True)


# Half a minute each.
MANY_DIRECTORIES = ("a path of 2,000 directories", "too many directories to remember")


@pytest.mark.accounts("root", "single", slow="range")
@pytest.mark.parametrize("case", [
    pytest.param(name, id=name.replace(" ", "_").replace(",", ""), marks=[pytest.mark.slow] * (name in MANY_DIRECTORIES))
    for name, *_ in cases("/outside")
])
def test_a_hostile_archive_changes_nothing_outside_and_leaves_nothing_if_rejected(unpack, account, sandbox, case):
    store, path = sandbox / "store", sandbox / "layer"
    layer, expected = next((make(), expected) for name, make, expected in cases(str(sandbox / "outside")) if name == case)
    subprocess.run(["rm", "-rf", store], check=True)
    path.write_bytes(layer)
    store.mkdir()
    if account:
        os.chown(store, account.uid, account.gid)
    before = walk(sandbox, store)
    result = run(*(account.prefix() if account else []), unpack, "layer", store, path, content(layer), JOBC_LAYER_LIMIT=str(LIMIT))
    assert walk(sandbox, store) == before, "something outside the store was changed"
    unpacked = list((store / "unpacked").glob("*/*"))
    assert result.returncode in (0, 1) and "panicked" not in result.stderr, f"exit code {result.returncode}: {result.stderr}"
    if result.returncode == 1:
        assert not unpacked, f"{unpacked} is left of a rejected layer: {result.stderr.strip()}"
        assert expected is None or isinstance(expected, str), f"it is rejected: {result.stderr.strip()}"
        assert (expected or "") in result.stderr, f"it is rejected for another reason than `{expected}`: {result.stderr.strip()}"
    else:
        assert not isinstance(expected, str), "it is not rejected"
        assert peak_of(result) <= MAX_MEMORY, f"it used {peak_of(result) >> 10} MiB of memory"
        top = result.stdout.split("\n")[0]
        missing = [path for path in expected or [] if not os.path.lexists(os.path.join(top, path))]
        assert not missing, f"the layer has no {missing}"
        for directory, names, files in os.walk(top):
            for name in names + files:
                assert_safe(os.path.join(directory, name), account)


def assert_safe(path, account):
    """The file must not have attributes that no layer may have, for any user."""
    if len(path) > 4000:
        return
    for name in os.listxattr(path, follow_symlinks=False) if not os.path.islink(path) else []:
        assert not name.startswith(("trusted.overlay.redirect", "user.overlay.redirect", "security.selinux")), f"`{path}` has the attribute {name}"
    data = os.lstat(path)
    if account is None:
        return
    assert data.st_uid != 0, f"`{path}` belongs to root of the host"
    assert not stat.S_ISBLK(data.st_mode) and (not stat.S_ISCHR(data.st_mode) or data.st_rdev == 0), f"`{path}` is a device"
    assert account.subuids is not None or not data.st_mode & 0o6000, f"`{path}` has the mode bits {data.st_mode:o}"
