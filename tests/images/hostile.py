#!/usr/bin/env python3
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
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runtime"))

from archives import (BLOCK, CHARACTER, FILE, DIRECTORY, HARD, PIPE, archive, file, gnu, header, link, member, pax, record, sparse, xattr_version_2)
from harness import REPOSITORY, Harness
import user

LIMIT = 64 << 20
MAX_MEMORY = 100 << 10


def cases(outside):
    """Name, archive, and expected result: text of the error, or paths that the layer must have.

    `outside` is a directory of the host with a file `sentinel`; `up` leads to it from any root with `..`.
    """
    up = "../" * 16 + outside.lstrip("/")
    own = outside.lstrip("/")
    yield "a path with ..", archive(file(f"{up}/evil")), "a path with `..`"
    yield ".. in the middle", archive(file("a/../../evil")), "a path with `..`"
    yield ".. at the end", archive(member(DIRECTORY, "a/..")), "a path with `..`"
    yield "an absolute path", archive(file(f"{outside}/sentinel")), [f"{own}/sentinel"]
    yield "many slashes", archive(file(f"///{outside}///sentinel")), [f"{own}/sentinel"]
    yield "a link out, absolute", archive(link("way", outside), file("way/sentinel")), "below a dangling link"
    yield "a link out by ..", archive(link("way", up), file("way/sentinel")), "below a dangling link"
    yield "a link to the root", archive(link("way", "/"), file("way/inside")), ["way", "inside"]
    yield "a link above the root", archive(link("way", "../../.."), file("way/inside")), ["inside"]
    yield "a chain of links", archive(link("a", "b"), link("b", "c"), link("c", outside), file("a/sentinel")), "below a dangling link"
    yield "a link to itself", archive(link("a", "a"), file("a/x")), "ELOOP"
    yield "links in a circle", archive(link("a", "b"), link("b", "a"), file("a/x")), "ELOOP"
    yield "a link that is replaced", archive(link("s", f"{outside}/sentinel"), file("s")), ["s"]
    yield "a directory over a link", archive(link("way", outside), member(DIRECTORY, "way"), file("way/x")), ["way/x"]
    yield "a link by way of a link", archive(link("way", outside), link("way/back", "x")), "below a dangling link"
    yield "a link deep below a link", archive(link("a", "/"), link("a/b", outside), file("a/b/sentinel")), "below a dangling link"
    yield "proc", archive(link("p", "/proc/self/root"), file(f"p/{own}/sentinel")), "below a dangling link"
    yield "a hard link to a file of the host", archive(link("shadow", "/etc/shadow", HARD)), "which is in no layer"
    yield "a hard link by ..", archive(link("stolen", f"{up}/sentinel", HARD)), "a path with `..`"
    yield "a hard link through a link", archive(link("way", outside), link("stolen", "way/sentinel", HARD)), "in no layer"
    yield "a hard link to a link, then written to", archive(
        link("way", f"{outside}/sentinel"), link("stolen", "way", HARD), file("stolen")), ["stolen", "way"]
    yield "a hard link to a directory", archive(member(DIRECTORY, "d"), link("h", "d", HARD)), "not permitted"
    yield "a hard link to the root", archive(link("h", ".", HARD)), "the root"
    yield "a whiteout through a link", archive(link("way", outside), file("way/.wh.sentinel", b"")), "below a dangling link"
    yield "an opaque directory through a link", archive(link("way", outside), file("way/.wh..wh..opq", b"")), "below a dangling link"
    yield "a whiteout of ..", archive(file(".wh...", b"")), "a whiteout without a name"
    yield "a whiteout of .", archive(file(".wh..", b"")), "a whiteout without a name"
    yield "a whiteout of nothing", archive(file("a/.wh.", b"")), "a whiteout without a name"
    yield "a whiteout with ..", archive(file(f"{up}/.wh.sentinel", b"")), "a path with `..`"
    yield "a whiteout that is a link", archive(link(".wh.a", outside), file("a/x")), ["a/x"]
    yield "a hard link to a whiteout", archive(file(".wh.a", b""), link("b", "a", HARD)), "in no layer"
    yield "a path of pax out of the root", archive(pax(records=[("path", f"{up}/evil")]), file("good")), "a path with `..`"
    yield "a target of pax", archive(pax(records=[("linkpath", outside)]), link("way", "good"), file("way/sentinel")), "below a dangling link"
    yield "a path of pax, then one of GNU", archive(
        pax(records=[("path", "pax")]), gnu("L", b"gnu"), file("plain")), ["gnu"]
    yield "a path of pax with a NUL byte", archive(pax(records=[("path", b"a\0b")]), file("good")), "a NUL byte"
    yield "a size of pax that hides an entry", archive(
        pax(records=[("size", "1024")]), header(FILE, b"outer", size=0) + file("hidden") + b"\0" * 0), ["outer"]
    yield "a size of pax past the end", archive(pax(records=[("size", str(1 << 40))]), file("good")), "truncated"
    yield "an invalid size of pax", archive(pax(records=[("size", "-1")]), file("good")), "an invalid number in an extended header"
    yield "a record without a newline", archive(pax(text=b"12 path=good!"), file("x")), "a damaged extended header"
    yield "a record that is longer than its header", archive(pax(text=b"999 path=x\n"), file("x")), "a damaged extended header"
    yield "a record of length zero", archive(pax(text=b"0 path=x\n" + record("path", "x")), file("x")), "a damaged extended header"
    yield "a global pax header", archive(pax("g", [("path", f"{up}/evil")]), file("good")), ["good"]
    yield "a long name of GNU out of the root", archive(gnu("L", f"{up}/evil".encode()), file("good")), "a path with `..`"
    yield "a long target of GNU", archive(gnu("K", outside.encode()), link("way", "x"), file("way/sentinel")), "below a dangling link"
    yield "an endless name", archive(gnu("L", b"a" * (3 << 20)), file("x")), "more than 1 MiB"
    yield "endless attributes", archive(
        *[pax(records=[("SCHILY.xattr.user.a", b"a" * 60_000)]) for _ in range(30)], file("x")), "more than 1 MiB"
    yield "a name of 5,000 bytes", archive(gnu("L", b"n" * 5000), file("x")), "ENAMETOOLONG"
    yield "a path of 2,000 directories", archive(gnu("L", b"d/" * 2000 + b"f"), file("x")), ["d"]
    ways = [link(f"way{number}", ("top/" if number == 0 else f"way{number - 1}/") + "d/" * 100) +
            gnu("L", f"way{number}/".encode() + b"d/" * 100 + b"f") + file("x", b"") for number in range(20)]
    yield "directories deeper than a path can be long", archive(gnu("L", b"top/" + b"d/" * 100 + b"f"), file("x", b""), *ways), ["top"]
    yield "too many directories to remember", gzip.compress(archive(
        *[gnu("L", b"%d/" % number + b"d/" * 1900 + b"f") + file("x", b"") for number in range(40)]), 1), "too many directories"
    yield "the same name again and again", archive(*[file("x", b"%d" % number) for number in range(200)]), ["x"]
    yield "a file where a full directory is", archive(member(DIRECTORY, "a"), file("a/b"), file("a")), ["a"]
    yield "a file below a file", archive(file("a"), file("a/b")), "ENOTDIR"
    yield "a device of a disk", archive(member(BLOCK, "disk", device=(8, 0), mode=0o666)), None
    yield "a device number out of range", archive(member(CHARACTER, "c", raw={329: b"\x80" + b"\xff" * 7})), "device"
    yield "a whiteout as a device", archive(member(CHARACTER, "w", device=(0, 0))), None
    yield "a pipe", archive(member(PIPE, "pipe"), file("pipe")), ["pipe"]
    yield "attributes of overlays", archive(
        pax(records=[("SCHILY.xattr.trusted.overlay.redirect", outside), ("SCHILY.xattr.user.overlay.redirect", outside),
                     ("SCHILY.xattr.trusted.overlay.opaque", "y"), ("SCHILY.xattr.security.selinux", "x")]),
        member(DIRECTORY, "d")), ["d"]
    yield "a capability with a newline", archive(
        pax(records=[("SCHILY.xattr.security.capability", xattr_version_2(0x0a))]), file("tool", mode=0o755)), ["tool"]
    yield "set-user-id of somebody else", archive(file("su", mode=0o6755, uid=0, gid=0), file("mine", mode=0o4755, uid=12345)), None
    yield "an invalid owner", archive(file("x", raw={108: b"\x80\0\0\0\xff\xff\xff\xff"})), "an owner that is not a valid id"
    yield "a sparse file of 8 PiB", archive(sparse("s", [(0, 4)], 1 << 53, b"data")), "more than 2 TiB"
    yield "a sparse file with pieces past its end", archive(sparse("s", [(1 << 20, 4)], 16, b"data")), "damaged map"
    yield "a sparse file with overlapping pieces", archive(sparse("s", [(0, 4), (2, 2)], 99, b"dataxx")), "damaged map"
    yield "a sparse file with more data than pieces", archive(sparse("s", [(0, 4)], 99, b"d" * 600)), "does not match"
    yield "a sparse file of pax with a wrong map", archive(
        pax(records=[("GNU.sparse.major", "1"), ("GNU.sparse.minor", "0"), ("GNU.sparse.name", f"{up}/evil"),
                     ("GNU.sparse.realsize", "10")]), file("good", b"1\n0\n4\n".ljust(512, b"\0") + b"data")), "a path with `..`"
    yield "a sparse file of pax with an endless map", archive(
        pax(records=[("GNU.sparse.major", "1"), ("GNU.sparse.minor", "0"), ("GNU.sparse.name", "s"),
                     ("GNU.sparse.realsize", "10")]), file("good", b"99999999999\n".ljust(1024, b"1"))), "more than 65536 pieces"
    yield "a gzip bomb", bomb(), "becomes larger than"
    yield "a truncated file", archive(file("x", b"d" * 2000))[:1500], "truncated"
    yield "a truncated header", archive(file("x"))[:700], None
    yield "a long name without a file", archive(gnu("L", b"name")), "ends in the middle of a header"
    yield "garbage after the end", archive(file("x")) + b"rubbish" * 1000, ["x"]
    yield "an entry after the end", archive(file("x")) + archive(file(f"{up}/evil")), ["x"]
    yield "no end", archive(file("x"), end=False), ["x"]
    yield "no end, and a last block that is not filled", archive(file("x"), end=False)[:512 + 4], ["x"]
    yield "a checksum that is wrong", archive(file("x").replace(b"text", b"text"), b"x" + file("y")[1:]), "checksum"
    yield "not an archive", b"#!/bin/sh\n" * 100, "not a tar archive"
    yield "an unknown type", archive(member("M", "volume")), "an entry of type `M`"
    yield "truncated gzip", gzip.compress(archive(file("x", os.urandom(9000))))[:-3000], "truncated"
    yield "gzip with a bit changed", flip_bit(gzip.compress(archive(file("x", b"text" * 5000)))), ""
    yield "xz", lzma.compress(archive(file("x"))), ["x"]
    yield "bzip2", bz2.compress(archive(file("x"))), ["x"]
    yield "several streams of xz", lzma.compress(archive(file("x"), end=False)) + lzma.compress(archive(file("y"))), ["x", "y"]
    yield "several streams of bzip2", bz2.compress(archive(file("x"), end=False)) + bz2.compress(archive(file("y"))), ["x", "y"]
    yield "truncated xz", lzma.compress(archive(file("x", os.urandom(9000))))[:-3000], "truncated"
    yield "truncated bzip2", bz2.compress(archive(file("x", os.urandom(9000))))[:-3000], "truncated"
    yield "xz with a bit changed", flip_bit(lzma.compress(archive(file("x", b"text" * 5000)))), ""
    yield "bzip2 with a bit changed", flip_bit(bz2.compress(archive(file("x", b"text" * 5000)))), ""
    yield "xz with a dictionary of 128 MiB", lzma.compress(
        archive(file("x")), filters=[{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 128 << 20}]), "its xz dictionary is larger than 64 MiB"
    yield "an xz bomb", bomb(lambda data: lzma.compress(data, preset=0)), "becomes larger than"
    yield "a bzip2 bomb", bomb(bz2.compress), "becomes larger than"
    yield "zip", b"PK\x03\x04" + b"\0" * 600, "a zip archive"
    yield "negative size", archive(file("x", raw={124: b"\xff" * 12})), "size"
    yield "a size of eight exabytes", archive(file("x", raw={124: b"\x80\0\0\0" + b"\x7f" + b"\xff" * 7})), "more than 2 TiB"


def bomb(compress=lambda data: gzip.compress(data, 1)):
    """A gigabyte of zeros in a megabyte, as a file of a valid archive."""
    return compress(header(FILE, b"zeros", size=1 << 30)) + compress(b"\0" * (64 << 20)) * 16 + compress(b"\0" * 1024)


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


def environment_of_unpacker():
    """The environment of the unpacker, with `MUTATION` of `selftest`."""
    return {"HOME": "/nonexistent"} | {name: os.environ[name] for name in ("PATH", "MUTATION") if name in os.environ}


def zstd_frame(head, exponent, blocks):
    """A frame of zstd (RFC 8878) with a window of 2 to the `exponent`: `head`, then blocks of 128 KiB of one byte each."""
    raw = len(head) << 3
    runs = b"".join((131_072 << 3 | 2 | (number == blocks - 1)).to_bytes(3, "little") + b"z" for number in range(blocks))
    return b"\x28\xb5\x2f\xfd\x00" + bytes([exponent - 10 << 3]) + raw.to_bytes(3, "little") + head + runs


def zstd_windows(harness, binary, sandbox):
    """zstd frames with large windows: several at once share the memory limit, and one beyond the limit is rejected."""
    name, size = "zstd windows", 80 << 20
    if not harness.wants(name):
        return
    for exponent, expected in [(26, 0), (27, 1), (30, 1)]:
        store, layout = sandbox / "store", sandbox / "layout"
        subprocess.run(["rm", "-rf", store, layout], check=True)
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
        result = subprocess.run([binary, "import", store, layout], env=environment_of_unpacker(), capture_output=True, text=True,
                              timeout=300, check=False)
        problems = []
        if result.returncode != expected or expected and "zstd window is" not in result.stderr:
            problems.append(f"exit code {result.returncode}: {result.stderr.strip()}")
        elif not expected and (peak := int(result.stdout.split()[-1])) > MAX_MEMORY:
            problems.append(f"it used {peak >> 10} MiB of memory")
        harness.check(f"{name} of {1 << exponent - 20} MiB", problems)


def import_bombs(harness, binary, sandbox):
    """Archives of which one header claims or has very much, as `image import` reads them."""
    document = file("manifest.json", b"[]")
    bombs = [("a long name of 1 GiB at the beginning", b"", "L", 1 << 30), ("a long link of 1 GiB behind a document", document, "K", 1 << 30),
             ("pax records of 64 MiB at the beginning", b"", "x", 64 << 20), ("pax records of 64 MiB behind a document", document, "x", 64 << 20)]
    for name, before, kind, size in bombs:
        if not harness.wants(name):
            continue
        path, store = sandbox / "bomb.tar.gz", sandbox / "store"
        subprocess.run(["rm", "-rf", store], check=True)
        rest = size
        with gzip.open(path, "wb", compresslevel=1) as out:
            out.write(before + header(kind, b"././@LongLink", size=size))
            while rest > 0:
                rest -= out.write(b"n" * min(rest, 1 << 20))
        # A child's own maximum would be at least what this process has.
        measured = sandbox / "measured"
        result = subprocess.run(["time", "--format=%M", f"--output={measured}", binary, "import", store, path], env=environment_of_unpacker(),
                                capture_output=True, text=True, timeout=300, check=False)
        problems = []
        if result.returncode != 1 or "take more than 1 MiB" not in result.stderr:
            problems.append(f"exit code {result.returncode}: {result.stderr.strip()}")
        if (peak := int(measured.read_text().split()[-1])) > MAX_MEMORY:
            problems.append(f"it used {peak >> 10} MiB of memory")
        harness.check(name, problems)


def many_directories(harness, binary, sandbox):
    """A layer of very many directories: it is unpacked with the memory of any other layer, and each has its mode and time."""
    name, count = "400000 directories", 400_000
    if not harness.wants(name):
        return
    path, store = sandbox / "many.tar", sandbox / "store"
    subprocess.run(["rm", "-rf", store], check=True)
    with open(path, "wb") as out:
        out.write(member(DIRECTORY, "many", mode=0o750, mtime=1_600_000_000))
        for number in range(count):
            out.write(member(DIRECTORY, f"many/directory-{number:06}", mode=0o700 + number % 8, mtime=1_500_000_000 + number))
        # A file in the first of them changes its time again.
        out.write(file("many/directory-000000/file") + b"\0" * 1024)
    result = subprocess.run([binary, "import", store, path], env=environment_of_unpacker(), capture_output=True, text=True, timeout=300,
                            check=False)
    problems = []
    if result.returncode != 0:
        problems.append(f"exit code {result.returncode}: {result.stderr.strip()}")
    else:
        peak = int(result.stdout.split("\n")[-2].split()[1])
        if peak > MAX_MEMORY:
            problems.append(f"it used {peak >> 10} MiB of memory")
        top = Path(result.stdout.split("\n")[0]) / "many"
        if len(os.listdir(top)) != count:
            problems.append(f"{len(os.listdir(top))} directories")
        for number in (0, 1, count // 2, count - 1):
            data = os.stat(top / f"directory-{number:06}")
            if (stat.S_IMODE(data.st_mode), int(data.st_mtime)) != (0o700 + number % 8, 1_500_000_000 + number):
                problems.append(f"directory {number} has the mode {data.st_mode:o} and the time {data.st_mtime}")
        if (stat.S_IMODE(top.stat().st_mode), int(top.stat().st_mtime)) != (0o750, 1_600_000_000):
            problems.append("the directory above them has another mode or time")
    subprocess.run(["rm", "-rf", store, path], check=True)
    harness.check(name, problems)


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


def check_layer(harness, account, prefix, binary, sandbox, case, layer, expected):
    store = sandbox / "store"
    subprocess.run(["rm", "-rf", store], check=True)
    file_ = sandbox / "layer"
    file_.write_bytes(layer)
    store.mkdir()
    if prefix:
        os.chown(store, account.uid, account.gid)
    before = walk(sandbox, store)
    environment = environment_of_unpacker() | {"JOBC_LAYER_LIMIT": str(LIMIT)}
    result = subprocess.run([*prefix, binary, "layer", store, file_, content(layer)], env=environment, capture_output=True,
                          text=True, errors="replace", timeout=300, check=False)
    problems = []
    if walk(sandbox, store) != before:
        problems.append("something outside the store was changed")
    unpacked = list((store / "unpacked").glob("*/*"))
    if result.returncode not in (0, 1) or "panicked" in result.stderr:
        problems.append(f"exit code {result.returncode}: {result.stderr}")
    if result.returncode == 1:
        if unpacked:
            problems.append(f"{unpacked} is left of a rejected layer: {result.stderr.strip()}")
        if not isinstance(expected, str) and expected is not None:
            problems.append(f"it is rejected: {result.stderr.strip()}")
        elif isinstance(expected, str) and expected not in result.stderr:
            problems.append(f"it is rejected for another reason than `{expected}`: {result.stderr.strip()}")
    elif result.returncode == 0:
        if isinstance(expected, str):
            problems.append("it is not rejected")
        lines = result.stdout.split("\n")
        peak = int(lines[-2].split()[1])
        if peak > MAX_MEMORY:
            problems.append(f"it used {peak >> 10} MiB of memory")
        for path in expected or []:
            if not os.path.lexists(os.path.join(lines[0], path)):
                problems.append(f"the layer has no `{path}`")
        for directory, names, files in os.walk(lines[0]):
            for name in names + files:
                problems += unsafe_file(os.path.join(directory, name), account)
    harness.check(f"{case}, {'as root' if account is None else account.name}", problems)


def unsafe_file(path, account):
    """File attributes that no layer may have, for any user."""
    if len(path) > 4000:
        return
    for name in os.listxattr(path, follow_symlinks=False) if not os.path.islink(path) else []:
        if name.startswith(("trusted.overlay.redirect", "user.overlay.redirect", "security.selinux")):
            yield f"`{path}` has the attribute {name}"
    data = os.lstat(path)
    if account is not None and data.st_uid == 0:
        yield f"`{path}` belongs to root of the host"
    if account is not None and (stat.S_ISBLK(data.st_mode) or stat.S_ISCHR(data.st_mode) and data.st_rdev != 0):
        yield f"`{path}` is a device"
    if account is not None and account.subuids is None and data.st_mode & 0o6000:
        yield f"`{path}` has the mode bits {data.st_mode:o}"


def main():
    # The tree of an archive may be deep.
    sys.setrecursionlimit(20_000)
    harness = Harness("hostile", __doc__)
    harness.parser.add_argument("--list", action="store_true", help="print the names of the archives")
    harness.parser.add_argument("--user", choices=("root", "range", "single"),
                              help="run only as root, or as a user with or without a range of ids")
    options = harness.parse()
    if options.list:
        for case, _, _ in cases("/outside"):
            print(case)
        return
    binary = options.runtime or REPOSITORY / "target/debug/examples/unpack"
    if not Path(binary).exists():
        harness.missing("unpack", "`cargo build --example unpack -p jobc-image`")
    if os.geteuid() != 0:
        harness.missing("root")
    harness.tool("time")
    accounts = {"root": lambda: None, "range": user.with_range, "single": user.without_range}
    for account in [make_account() for name, make_account in accounts.items() if options.user in (None, name)]:
        with tempfile.TemporaryDirectory(prefix="jobc-hostile-") as directory:
            sandbox = Path(directory)
            sandbox.chmod(0o755)
            outside = sandbox / "outside"
            outside.mkdir()
            # Where a user could write, so that the program is tested and not the user's permissions.
            (outside / "sentinel").write_text("untouched")
            for path in [outside, outside / "sentinel"]:
                if account:
                    os.chown(path, account.uid, account.gid)
            for case, layer, expected in cases(str(outside)):
                if harness.wants(case):
                    check_layer(harness, account, account.prefix() if account else [], binary, sandbox, case, layer, expected)
            if account is None:
                zstd_windows(harness, binary, sandbox)
                import_bombs(harness, binary, sandbox)
                many_directories(harness, binary, sandbox)
            subprocess.run(["rm", "-rf", sandbox / "store"], check=True)
    harness.end()


if __name__ == "__main__":
    main()
