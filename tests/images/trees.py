#!/usr/bin/env python3
"""An image unpacked here and by umoci: equal file by file, by kind, bits, owner, time to the nanosecond, attributes, content and
links. As root, and as an unprivileged user with one id (`umoci unpack --rootless`)."""

import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runtime"))

import image
import user
from harness import REPOSITORY, Harness, scratch

# Run in a mount namespace of its own, where the layers are an overlay.
LIST = """
import hashlib, json, os, stat, sys
top, found, inodes = sys.argv[1].encode(), {}, {}
for directory, names, files in os.walk(top):
    for name in [b"."] * (directory == top) + names + files:
        path = os.path.join(directory, name)
        data = os.lstat(path)
        shown = os.path.relpath(path, top).decode(errors="surrogateescape")
        kind = stat.S_IFMT(data.st_mode)
        one = {"mode": oct(data.st_mode), "uid": data.st_uid, "gid": data.st_gid, "mtime": data.st_mtime_ns}
        one["xattr"] = {n: os.getxattr(path, n, follow_symlinks=False).hex()
                        for n in sorted(os.listxattr(path, follow_symlinks=False))}
        if kind == stat.S_IFREG:
            one["size"], one["content"] = data.st_size, hashlib.sha256(open(path, "rb").read()).hexdigest()
        if kind == stat.S_IFLNK:
            one["target"] = os.readlink(path).decode(errors="surrogateescape")
        if kind in (stat.S_IFCHR, stat.S_IFBLK):
            one["device"] = data.st_rdev
        if kind != stat.S_IFDIR and data.st_nlink > 1:
            inodes.setdefault((data.st_dev, data.st_ino), []).append(shown)
        found[shown] = one
for names in inodes.values():
    for name in names:
        found[name]["linked"] = sorted(names)
json.dump(found, sys.stdout)
"""


def listed(root, prefix=()):
    # One that users may run too.
    done = subprocess.run([*prefix, "/usr/bin/python3", "-c", LIST, root], capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.decode())
    return json.loads(done.stdout)


def overlay(directories, on, in_user_namespace):
    """The words that mount layers, lowest first, and go on with what follows."""
    options = "lowerdir=" + ":".join(reversed(directories)) + (",userxattr" if in_user_namespace else "")
    return ["unshare", *(["--user", "--map-root-user"] if in_user_namespace else []), "--mount", "sh", "-ec",
            'mount -t overlay overlay -o "$1" "$2"; shift 2; exec "$@"', "sh", options, str(on)]


def unpack(binary, layout, store, prefix=()):
    done = subprocess.run([*prefix, binary, "import", store, layout], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    lines = done.stdout.splitlines()
    return lines[:-1]


def differences(ours, theirs, ignored):
    """What is not the same, a line each; `ignored` takes away what is not compared."""
    lines = []
    for path in sorted(ours.keys() | theirs.keys()):
        here, there = ours.get(path), theirs.get(path)
        if here is None or there is None:
            lines.append(f"`{path}` is only {'here' if there is None else 'there'}")
            continue
        here, there = ignored(path, dict(here)), ignored(path, dict(there))
        lines += [f"`{path}`: {key} is {here.get(key)} here and {there.get(key)} there"
                  for key in sorted(here.keys() | there.keys()) if here.get(key) != there.get(key)]
    return lines[:40] + ([f"and {len(lines) - 40} more"] if len(lines) > 40 else [])


def as_root(harness, binary, layout, directory):
    directories = unpack(binary, layout, directory / "store")
    subprocess.run(["umoci", "unpack", "--image", f"{layout}:debian", directory / "bundle"], check=True, capture_output=True)
    theirs = listed(directory / "bundle/rootfs")
    (directory / "on").mkdir()
    ours = listed(directory / "on", overlay(directories, directory / "on", False))

    def ignored(path, one):
        # An opaque directory carries it for overlays in user namespaces too; to the others it is a note.
        one["xattr"].pop("user.overlay.opaque", None)
        return one
    harness.check(f"as root, {len(theirs)} files in {len(directories)} directories", differences(ours, theirs, ignored))
    # What our own packing makes of the tree is, unpacked by umoci's reader, the tree again.
    return ours


def as_user(harness, binary, layout, directory):
    who = user.without_range()
    place = directory / "user"
    place.mkdir()
    os.chown(place, who.uid, who.gid)
    prefix = ["env", f"HOME={place}", *who.prefix()]
    directories = unpack(binary, layout, place / "store", prefix)
    subprocess.run([*prefix, "umoci", "unpack", "--rootless", "--image", f"{layout}:debian", place / "bundle"],
                   check=True, capture_output=True, cwd=place)
    theirs = listed(place / "bundle/rootfs")
    (place / "on").mkdir()
    os.chown(place / "on", who.uid, who.gid)
    ours = listed(place / "on", [*prefix, *overlay(directories, place / "on", True)])
    devices = {path for path in theirs if path not in ours}
    for path in devices:
        # umoci makes an empty file of a device, and we leave it out and say so.
        if path.startswith(("dev/", "srv/device")):
            theirs.pop(path)

    def ignored(path, one):
        one["uid"] = one["gid"] = 0
        one["mode"] = oct(int(one["mode"], 8) & ~0o6000)
        for name in ["user.rootlesscontainers", "user.overlay.opaque", "security.capability"]:
            one["xattr"].pop(name, None)
        return one
    harness.note("a user with one id: owners, set-user-id bits, capabilities and devices are not compared")
    harness.check(f"as {who.name}, {len(theirs)} files", differences(ours, theirs, ignored))


def main():
    harness = Harness("trees", __doc__)
    options = harness.parse()
    binary = options.runtime or REPOSITORY / "target/debug/examples/unpack"
    if not Path(binary).exists():
        harness.skip("`cargo build --example unpack -p jobc-image` builds the program under test")
    if os.geteuid() != 0:
        harness.skip("only root can unpack what belongs to others")
    layout = image.make(harness)
    with scratch("jobc-trees-") as directory:
        if harness.wants("root"):
            as_root(harness, binary, layout, directory)
        if harness.wants("user"):
            as_user(harness, binary, layout, directory)
    harness.end()


if __name__ == "__main__":
    main()
