"""The image that the tests of this directory share: Debian by debootstrap with three layers of changes, made once by umoci."""

import fcntl
import json
import subprocess

from harness import REPOSITORY

CACHE = REPOSITORY / "target/images-cache"
PROGRAMS = ("debootstrap", "umoci", "setcap", "setfattr")

# The changes of each layer: files replaced, removed and added, directories removed and created again, links, mode bits, owners,
# times, capabilities and attributes, a device, a FIFO, sparse files, long names.
CHANGES = ["""
rm -rf usr/share/doc var/cache/apt
echo changed >etc/hostname
mkdir -p srv/data/deep && truncate -s 40M srv/data/holes && printf end >>srv/data/holes
ln etc/debian_version srv/hard && ln -s /etc/debian_version srv/soft
chmod 4755 bin/ls && chown 33:33 srv/data && chmod 2775 srv/data
touch -d '2001-02-03 04:05:06.789012345Z' srv/data/deep
""", """
rm -rf srv/data/deep && mkdir srv/data/deep && echo new >srv/data/deep/file
rm etc/hostname
setcap cap_net_raw,cap_dac_override,cap_fowner+ep usr/bin/perl 2>/dev/null || setcap cap_net_raw+ep bin/cat
setfattr -n user.note -v "$(printf 'two\\nlines')" etc/debian_version
mknod srv/device c 1 3 && mkfifo srv/pipe
long=$(printf 'n%.0s' $(seq 120)); mkdir -p srv/$long && echo x >srv/$long/$long
""", """
rm -rf usr/share/locale && mkdir usr/share/locale && echo x >usr/share/locale/only
rm srv/soft && mkdir srv/soft && echo y >srv/soft/inner
echo appended >>etc/debian_version
chown 65534:65534 srv/pipe
"""]


# Without a mirror for debootstrap, the essential packages are unpacked without configuring them.
BASE = """
rm -rf {base}
if ! debootstrap --variant=minbase bookworm {base} >{place}/debootstrap.log; then
    echo "image: debootstrap fails, so packages are unpacked without configuring them" >&2
    rm -rf {base} {place}/packages && mkdir -p {base} {place}/packages && cd {place}/packages
    apt-get download -qq libc6 $(dpkg-query --show --showformat '${{Package}} ${{Essential}}\n' | awk '$2 == "yes" {{ print $1 }}')
    for package in *.deb; do dpkg-deb --extract $package {base}; done
    echo here >{base}/etc/hostname
fi
"""


def ensure_image():
    """The layout with the image `debian`, which is created if it is missing, by the programs of `PROGRAMS`."""
    layout = CACHE / "layout"
    CACHE.mkdir(parents=True, exist_ok=True)
    # One test makes it, and others wait for it.
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (CACHE / "whole").exists():
            create(layout)
    return layout


def create(layout):
    base = CACHE / "base"
    if not (base / "etc/debian_version").exists():
        run(BASE.format(base=base, place=CACHE))
    bundle = CACHE / "bundle"
    run(f"rm -rf {layout} {bundle} && umoci init --layout {layout} && umoci new --image {layout}:debian && "
        f"umoci unpack --image {layout}:debian {bundle} && cp -a {base}/. {bundle}/rootfs/ && "
        f"umoci repack --image {layout}:debian {bundle}")
    for change in CHANGES:
        run(f"rm -rf {bundle} && umoci unpack --image {layout}:debian {bundle} && cd {bundle}/rootfs && {{ {change.strip()}\n}} && "
            f"umoci repack --image {layout}:debian {bundle}")
    run(f"rm -rf {bundle} && umoci gc --layout {layout} && chmod -R a+rX {CACHE} && touch {CACHE}/whole")


def run(script):
    subprocess.run(["sh", "-ec", script], check=True, stdout=subprocess.DEVNULL)


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
