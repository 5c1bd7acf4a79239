"""Builds archives as bytes, also invalid ones, which Python's tarfile cannot write."""

import struct

FILE, HARD, LINK, CHARACTER, BLOCK, DIRECTORY, PIPE = "0", "1", "2", "3", "4", "5", "6"


def octal(number, width):
    return b"%0*o\0" % (width - 1, number)


def header(kind, name, size=0, link=b"", mode=None, magic=b"ustar\x0000", uid=0, gid=0, mtime=1_700_000_000,
           device=(0, 0), prefix=b"", raw=None):
    """A header; `raw` are fields that are written unchanged: {offset: bytes}."""
    block = bytearray(512)

    def put(at, value):
        block[at:at + len(value)] = value
    put(0, name[:100])
    put(100, octal((0o755 if kind == DIRECTORY else 0o644) if mode is None else mode, 8))
    put(108, octal(uid, 8))
    put(116, octal(gid, 8))
    put(124, octal(size, 12))
    put(136, octal(mtime, 12))
    put(156, kind.encode())
    put(157, link[:100])
    put(257, magic)
    put(329, octal(device[0], 8))
    put(337, octal(device[1], 8))
    put(345, prefix[:155])
    for at, value in (raw or {}).items():
        put(at, value)
    put(148, b"        ")
    put(148, b"%06o\0 " % sum(block))
    return bytes(block)


def filled(data):
    return data + b"\0" * (-len(data) % 512)


def member(kind, name, data=b"", **more):
    """A header with its data."""
    size = more.pop("size", len(data))
    return header(kind, name.encode() if isinstance(name, str) else name, size=size, **more) + filled(data)


def file(name, data=b"text", **more):
    return member(FILE, name, data, **more)


def link(name, target, kind=LINK, **more):
    return member(kind, name, link=target.encode(), **more)


def record(key, value):
    """A pax record, whose length includes the length field."""
    value = value if isinstance(value, bytes) else value.encode()
    rest = len(key) + len(value) + 3
    length = rest + len(str(rest))
    while rest + len(str(length)) != length:
        length = rest + len(str(length))
    return b"%d %s=%s\n" % (length, key.encode(), value)


def pax(kind="x", records=(), text=None):
    """An extended header."""
    text = b"".join(record(*one) for one in records) if text is None else text
    return member(kind, "PaxHeaders/x", text)


def gnu(kind, text):
    """A long name (`L`) or a long link target (`K`) of GNU tar."""
    return member(kind, "././@LongLink", text + b"\0", magic=b"ustar  \0")


def sparse(name, pieces, real, data, stored=None):
    """A sparse file in the old GNU format."""
    raw = {483: big(real)}
    for index, (offset, length) in enumerate(pieces[:4]):
        raw[386 + 24 * index] = big(offset)
        raw[398 + 24 * index] = big(length)
    return header("S", name.encode(), size=len(data) if stored is None else stored, magic=b"ustar  \0", raw=raw) + filled(data)


def big(number):
    """A number in base-256 encoding."""
    return b"\x80" + number.to_bytes(11, "big") if number >= 8 ** 11 else octal(number, 12)


def archive(*members, end=True):
    return b"".join(members) + (b"\0" * 1024 if end else b"")


def xattr_version_2(permitted):
    """The value of `security.capability` (version 2) for these bits."""
    return struct.pack("<IIIII", 0x02000001, permitted, 0, 0, 0)
