#!/usr/bin/env python3
"""Unpacks an image with jobc and with umoci: equal file by file, in type, mode, owner, time to the nanosecond, attributes,
content and links. As root, and as an unprivileged user with one id (`umoci unpack --rootless`)."""

import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runtime"))

import image
import user
from harness import REPOSITORY, Harness, scratch

# Runs in its own mount namespace, where the layers are an overlay.
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
    # A python3 that users may run too.
    result = subprocess.run([*prefix, "/usr/bin/python3", "-c", LIST, root], capture_output=True, check=False)
    if result.returncode:
        raise RuntimeError(result.stderr.decode())
    return json.loads(result.stdout)


def overlay(directories, on, in_user_namespace):
    """A command prefix that mounts layers, lowest first."""
    options = "lowerdir=" + ":".join(reversed(directories)) + (",userxattr" if in_user_namespace else "")
    return ["unshare", *(["--user", "--map-root-user"] if in_user_namespace else []), "--mount", "sh", "-ec",
            'mount -t overlay overlay -o "$1" "$2"; shift 2; exec "$@"', "sh", options, str(on)]


def unpack(binary, layout, store, prefix=()):
    result = subprocess.run([*prefix, binary, "import", store, layout], capture_output=True, text=True, check=False)
    if result.returncode:
        raise RuntimeError(result.stderr)
    lines = result.stdout.splitlines()
    return lines[:-1]


def differences(ours, theirs, ignored):
    """One line for each difference; `ignored` removes what is not compared."""
    lines = []
    for path in sorted(ours.keys() | theirs.keys()):
        our_file, their_file = ours.get(path), theirs.get(path)
        if our_file is None or their_file is None:
            lines.append(f"`{path}` is only {'in jobc' if their_file is None else 'in umoci'}")
            continue
        our_file, their_file = ignored(path, dict(our_file)), ignored(path, dict(their_file))
        lines += [f"`{path}`: {key} is {our_file.get(key)} with jobc and {their_file.get(key)} with umoci"
                  for key in sorted(our_file.keys() | their_file.keys()) if our_file.get(key) != their_file.get(key)]
    return lines[:40] + ([f"and {len(lines) - 40} more"] if len(lines) > 40 else [])


def compare_as_root(harness, binary, layout, directory):
    directories = unpack(binary, layout, directory / "store")
    subprocess.run(["umoci", "unpack", "--image", f"{layout}:debian", directory / "bundle"], check=True, capture_output=True)
    theirs = listed(directory / "bundle/rootfs")
    (directory / "on").mkdir()
    ours = listed(directory / "on", overlay(directories, directory / "on", False))

    def ignored(path, one):
        # An opaque directory has it for overlays in user namespaces; other overlays ignore it.
        one["xattr"].pop("user.overlay.opaque", None)
        return one
    harness.check(f"as root, {len(theirs)} files in {len(directories)} directories", differences(ours, theirs, ignored))
    # For the caller to compare with.
    return ours


def compare_as_user(harness, binary, layout, directory):
    account = user.without_range()
    directory_of_user = directory / "user"
    directory_of_user.mkdir()
    os.chown(directory_of_user, account.uid, account.gid)
    prefix = ["env", f"HOME={directory_of_user}", *account.prefix()]
    directories = unpack(binary, layout, directory_of_user / "store", prefix)
    subprocess.run([*prefix, "umoci", "unpack", "--rootless", "--image", f"{layout}:debian", directory_of_user / "bundle"],
                   check=True, capture_output=True, cwd=directory_of_user)
    theirs = listed(directory_of_user / "bundle/rootfs")
    (directory_of_user / "on").mkdir()
    os.chown(directory_of_user / "on", account.uid, account.gid)
    ours = listed(directory_of_user / "on", [*prefix, *overlay(directories, directory_of_user / "on", True)])
    devices = {path for path in theirs if path not in ours}
    for path in devices:
        # umoci writes an empty file for a device; jobc omits it with a message.
        if path.startswith(("dev/", "srv/device")):
            theirs.pop(path)

    def ignored(path, one):
        one["uid"] = one["gid"] = 0
        one["mode"] = oct(int(one["mode"], 8) & ~0o6000)
        for name in ["user.rootlesscontainers", "user.overlay.opaque", "security.capability"]:
            one["xattr"].pop(name, None)
        return one
    harness.note("a user with one id: owners, set-user-id bits, capabilities and devices are not compared")
    harness.check(f"as {account.name}, {len(theirs)} files", differences(ours, theirs, ignored))


def main():
    harness = Harness("trees", __doc__)
    options = harness.parse()
    binary = options.runtime or REPOSITORY / "target/debug/examples/unpack"
    if not Path(binary).exists():
        harness.missing("unpack", "`cargo build --example unpack -p jobc-image`")
    if os.geteuid() != 0:
        harness.missing("root")
    layout = image.ensure_image(harness)
    with scratch("jobc-trees-") as directory:
        if harness.wants("root"):
            compare_as_root(harness, binary, layout, directory)
        if harness.wants("user"):
            compare_as_user(harness, binary, layout, directory)
    harness.end()


if __name__ == "__main__":
    main()
