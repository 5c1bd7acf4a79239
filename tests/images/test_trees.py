"""Unpacks an image with jobc and with umoci: equal file by file, in type, mode, owner, time to the nanosecond, attributes,
content and links. As root, and as an unprivileged user with one id (`umoci unpack --rootless`)."""

import os
import subprocess

import pytest

import image
import user
from image import listed

pytestmark = [pytest.mark.slow, pytest.mark.duration(200), pytest.mark.needs("root", *image.PROGRAMS)]


def overlay(directories, on, in_user_namespace):
    """A command prefix that mounts layers, lowest first."""
    options = "lowerdir=" + ":".join(reversed(directories)) + (",userxattr" if in_user_namespace else "")
    return ["unshare", *(["--user", "--map-root-user"] if in_user_namespace else []), "--mount", "sh", "-ec",
            'mount -t overlay overlay -o "$1" "$2"; shift 2; exec "$@"', "sh", options, str(on)]


def unpacked(binary, layout, store, prefix=()):
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


def test_an_image_is_unpacked_as_by_umoci(unpack, directory, note):
    layout = image.ensure_image()
    directories = unpacked(unpack, layout, directory / "store")
    subprocess.run(["umoci", "unpack", "--image", f"{layout}:debian", directory / "bundle"], check=True, capture_output=True)
    theirs = listed(directory / "bundle/rootfs")
    (directory / "on").mkdir()
    ours = listed(directory / "on", overlay(directories, directory / "on", False))

    def ignored(path, one):
        # An opaque directory has it for overlays in user namespaces; other overlays ignore it.
        one["xattr"].pop("user.overlay.opaque", None)
        return one
    note(f"as root: {len(theirs)} files in {len(directories)} directories")
    assert not differences(ours, theirs, ignored)


def test_an_unprivileged_user_unpacks_an_image_as_by_umoci(unpack, directory, note):
    account, layout = user.without_range(), image.ensure_image()
    home = directory / "user"
    for path in (home, home / "on"):
        path.mkdir()
        os.chown(path, account.uid, account.gid)
    prefix = ["env", f"HOME={home}", *account.prefix()]
    directories = unpacked(unpack, layout, home / "store", prefix)
    subprocess.run([*prefix, "umoci", "unpack", "--rootless", "--image", f"{layout}:debian", home / "bundle"], check=True, capture_output=True, cwd=home)
    theirs = listed(home / "bundle/rootfs")
    ours = listed(home / "on", [*prefix, *overlay(directories, home / "on", True)])
    for path in theirs.keys() - ours.keys():
        # umoci writes an empty file for a device; jobc omits it with a message.
        if path.startswith(("dev/", "srv/device")):
            theirs.pop(path)

    def ignored(path, one):
        one["uid"] = one["gid"] = 0
        one["mode"] = oct(int(one["mode"], 8) & ~0o6000)
        for name in ["user.rootlesscontainers", "user.overlay.opaque", "security.capability"]:
            one["xattr"].pop(name, None)
        return one
    note("a user with one id: owners, set-user-id bits, capabilities and devices are not compared")
    assert not differences(ours, theirs, ignored)
