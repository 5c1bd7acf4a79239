#!/usr/bin/env python3
"""Each way to install, in a Debian with only its essential packages and what the way needs, run by jobc's own runtime: the version before is
installed, upgraded, runs the README's first job (all its commands where there is Python), and is removed. Nothing is left.

Packages come from a server on loopback, whose network the containers share. debootstrap gets Debian from its mirror.
"""

import contextlib
import filecmp
import os
import re
import shutil
import sys
from pathlib import Path

from releases import PACKAGING, REPOSITORY, Harness, expect, older_packaging, ran, scratch, server

sys.path.insert(0, str(REPOSITORY / "tests/jobs"))

from bundle import configuration, write  # noqa: E402
from first_hour import blocks, same  # noqa: E402

BINARIES = Path(os.environ.get("JOBC_BINARIES") or REPOSITORY / "target/release")
OLD = "0.0.1"
USER, HOME = 1000, "/home/ann"
# What podman and Docker leave to root of a container, for the package managers.
CAPABILITIES = [f"CAP_{name}" for name in ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETFCAP", "SETGID",
                                           "SETPCAP", "SETUID", "SYS_CHROOT")]
# What jobs, images and caches leave on purpose, and how to remove them: docs/start/install.md.
KEPT = """rm -rf ~/.local/state/jobc ~/.local/share/jobc ~/.cache/jobc /tmp/jobc-$(id -u) /run/lock/jobc ~/sweep ~/sweep.html
for directory in ~/.local/state ~/.local/share ~/.local/bin ~/.local ~/.cache; do [ ! -d $directory ] || rmdir --ignore-fail-on-non-empty $directory; done
"""


class Root:
    """A root file system: an overlay over one of debootstrap, and containers in it."""

    def __init__(self, base, directory, address):
        self.base, self.upper, self.bundle = base, directory / "upper", directory / "bundle"
        self.states, self.address, self.containers = directory / "states", address, 0
        for path in (self.upper, directory / "work", self.bundle / "rootfs", self.states):
            path.mkdir(parents=True)
        self.mount = ["mount", "-t", "overlay", "overlay", "-o", f"lowerdir={base},upperdir={self.upper},workdir={directory / 'work'}",
                      self.bundle / "rootfs"]

    def __enter__(self):
        ran(self.mount, check=True)
        return self

    def __exit__(self, *_):
        ran(["umount", self.bundle / "rootfs"], check=True)

    def run(self, script, user=USER):
        """Runs a script of sh to its end, as an unprivileged user or as root."""
        config = configuration()
        config["process"].update(args=["sh", "-ec", script], cwd=HOME if user else "/", user={"uid": user, "gid": user}, noNewPrivileges=False,
                                 capabilities={kind: [] if user and kind != "bounding" else CAPABILITIES for kind in ("bounding", "effective", "permitted")})
        home = HOME if user else "/root"
        variables = {"HOME": home, "PATH": f"{home}/.local/bin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8",
                     "JOBC_DOWNLOAD": self.address, "PIP_INDEX_URL": f"{self.address}/simple", "UV_DEFAULT_INDEX": f"{self.address}/simple",
                     "PIP_DISABLE_PIP_VERSION_CHECK": "1", "UV_PYTHON_DOWNLOADS": "never", "DEBIAN_FRONTEND": "noninteractive"}
        config["process"]["env"] = [f"{name}={value}" for name, value in variables.items()]
        config["linux"].update(namespaces=[{"type": kind} for kind in ("pid", "ipc", "uts", "mount")], maskedPaths=[], readonlyPaths=[])
        config["linux"].pop("resources")
        write(self.bundle, config)
        self.containers += 1
        return ran([BINARIES / "jobc-oci", "--root", self.states, "run", "--bundle", self.bundle, f"clean-{os.getpid()}-{self.containers}"])

    def left(self, *expected):
        """Differences from the root file system as it was made: files that are new, changed or removed."""
        for path in sorted(self.upper.rglob("*")):
            name = path.relative_to(self.upper)
            before = self.base / name
            if str(name).startswith(expected):
                continue
            if path.is_char_device():
                yield f"removed: {name}"
            elif path.is_dir() and before.is_dir():
                continue
            elif not os.path.lexists(before):
                yield f"left behind: {name}"
            elif path.is_symlink():
                yield from [f"changed: {name}"] if os.readlink(path) != os.readlink(before) else []
            elif not filecmp.cmp(path, before, shallow=False):
                yield f"changed: {name}"


def first_job(root, whole):
    """The README's first command, and all of its section where there is Python."""
    commands, screen = blocks()
    yield from expect(root.run(commands[0]), 0, "it runs")
    if not whole:
        yield from expect(root.run(f"{commands[1]} && {commands[2]}"))
        return
    done = root.run("\n".join(commands[1:]))
    yield from expect(done)
    if not set(same(screen)) <= set(same(done.stdout)):
        yield f"the screen of the README is not what is seen: {done.stdout}"


def life(root, old, new, remove, user=USER, whole=False, version="jobc --version", place=None):
    """Installs the version before, upgrades it, runs the first job, and removes all of it.

    `version` prints which package is installed: the program in both is the same.
    """
    yield from expect(root.run(old, user), 0)
    yield from expect(root.run(version, user), 0, OLD)
    yield from expect(root.run(new, user), 0)
    upgraded = root.run(version, user)
    yield from expect(upgraded, 0, "0.")
    if OLD in upgraded.stdout:
        yield f"not upgraded: {upgraded.stdout}"
    yield from first_job(root, whole)
    yield from expect(root.run(remove, user), 0)
    if root.run("command -v jobc || command -v jobc-oci || command -v jobc-nvml").returncode == 0:
        yield "the programs are still there"
    yield from expect(root.run(KEPT))
    yield from root.left(*(place or ()))


def debian(directory, name, packages, shared):
    """A Debian with its essential packages and some more, and an unprivileged user; the problems of making it."""
    root = directory / name
    made = ran(["debootstrap", "--variant=minbase", f"--include={','.join(packages)}", f"--cache-dir={shared}", "bookworm", root], timeout=1200)
    if made.returncode:
        return root, [made.stdout[-1000:] + made.stderr[-1000:]]
    for path, line in (("passwd", f"ann:x:{USER}:{USER}::{HOME}:/bin/sh"), ("group", f"ann:x:{USER}:")):
        with (root / "etc" / path).open("a") as file:
            file.write(f"{line}\n")
    (root / HOME[1:]).mkdir()
    os.chown(root / HOME[1:], USER, USER)
    return root, []


def published(directory, tree, older):
    """Everything that the server serves: two versions of the archive, the wheel, the Debian and the RPM package."""
    served = directory / "served"
    index = served / "simple/jobc"
    new = ran([PACKAGING / "version"]).stdout.strip()
    yield served, []
    for packaging, version in ((older, OLD), (PACKAGING, new)):
        release = served / f"download/v{version}"
        for command in ([packaging / "archive", tree, release], [packaging / "archive", "--sums", release],
                        [packaging / "linux", tree, served / version, "--fast"], [packaging / "wheel", BINARIES, index]):
            yield served, list(expect(ran(command)))
    # pipx wants the newest of these, whatever it installs.
    for name in ("pip", "setuptools", "wheel"):
        download = [REPOSITORY / ".oracles/venv/bin/python", "-m", "pip", "download", "--quiet", "--no-deps", "--dest", served / "simple" / name, name]
        yield served, list(expect(ran(download)))
    latest = served / "latest/download"
    latest.mkdir(parents=True)
    shutil.copy(served / f"download/v{new}/SHA256SUMS", latest)
    for project in index.parent.iterdir():
        wheels = "".join(f'<a href="{path.name}">{path.name}</a>' for path in sorted(project.glob("*.whl")))
        (project / "index.html").write_text(f"<!DOCTYPE html><html><body>{wheels}</body></html>")


def ways(served, uv):
    """Each way: its name, the packages of the root beside the essential ones, and the arguments of `life`."""
    new = next(path.name for path in served.iterdir() if re.fullmatch(r"\d+\.\d+\.\d+.*", path.name) and path.name != OLD)
    script = "sh /mnt/install.sh"
    yield "script", ("curl",), {
        "old": f"{script} --version {OLD} | tee /tmp/version", "new": f"{script} | tee /tmp/version", "remove": f"{script} --remove; rm /tmp/version",
        "version": "cat /tmp/version; jobc --version >/dev/null"}
    yield "pip", ("python3-venv",), {
        "old": f"python3 -m venv ~/.venv && ~/.venv/bin/pip install --quiet jobc=={OLD} && mkdir -p ~/.local/bin && ln -s ~/.venv/bin/jobc ~/.local/bin",
        "new": "~/.venv/bin/pip install --quiet --upgrade jobc", "version": "~/.venv/bin/pip list; jobc --version >/dev/null", "whole": True,
        "remove": "~/.venv/bin/pip uninstall --quiet --yes jobc; ! find ~/.venv -name '*jobc*' | grep . ; rm -r ~/.venv ~/.local/bin/jobc"}
    yield "pipx", ("python3-venv", "pipx"), {
        "old": f"pipx install jobc=={OLD}", "new": "pipx upgrade jobc", "version": "pipx list; jobc --version >/dev/null", "whole": True,
        "remove": "pipx uninstall jobc; rm -rf ~/.local/pipx ~/.cache/pip"}
    if uv:
        yield "uv", ("python3-venv",), {
            "old": f"/mnt/uv tool install --quiet jobc=={OLD}", "new": "/mnt/uv tool install --quiet --upgrade jobc@latest",
            "version": "/mnt/uv tool list; jobc --version >/dev/null", "whole": True, "remove": "/mnt/uv tool uninstall --quiet jobc; rm -rf ~/.local/share/uv ~/.cache/uv"}
    package = "curl --silent --show-error --fail --remote-name-all $JOBC_DOWNLOAD/{}/{}"
    old_deb, new_deb = (next((served / version).glob("*.deb")).name for version in (OLD, new))
    query = "dpkg-query --show --showformat '${Version}' jobc; jobc --version >/dev/null"
    yield "dpkg", ("curl",), {
        "old": f"cd /tmp && {package.format(OLD, old_deb)} && dpkg --install {old_deb}", "new": f"cd /tmp && {package.format(new, new_deb)} && dpkg --install {new_deb}",
        "version": query, "remove": "dpkg --purge jobc; rm /tmp/*.deb", "user": 0, "place": ("var/lib/dpkg", "var/log", "var/cache")}
    old_rpm, new_rpm = (next((served / version).glob("*.rpm")).name for version in (OLD, new))
    rpm = "rpm --nodeps --nosignature"
    yield "rpm", ("curl", "rpm"), {
        "old": f"cd /tmp && {package.format(OLD, old_rpm)} && {rpm} --install {old_rpm}",
        "new": f"cd /tmp && {package.format(new, new_rpm)} && {rpm} --upgrade {new_rpm}",
        "version": "rpm --query jobc; jobc --version >/dev/null", "remove": f"{rpm} --erase jobc; rm /tmp/*.rpm", "user": 0,
        "place": ("var/lib/rpm", "root/.rpmdb")}


def main():
    harness = Harness("clean_roots", __doc__)
    harness.parse()
    if os.getuid() != 0:
        harness.missing("root")
    if not (BINARIES / "jobc").exists():
        harness.missing("built programs", "`tests/install/run`")
    for tool in ("debootstrap", "dpkg-deb", "rpmbuild"):
        harness.tool(tool)
    uv = REPOSITORY / ".oracles/venv/bin/uv"
    with scratch() as directory, contextlib.ExitStack() as stack:
        harness.check("stage", expect(ran([PACKAGING / "stage", BINARIES, directory / "tree"])))
        for served, problems in published(directory, directory / "tree", older_packaging(directory / "older")):  # noqa: B007
            if problems:
                harness.check("packages", problems)
        address = stack.enter_context(server(served))
        shared = directory / "packages"
        shared.mkdir()
        bases = {}
        for name, packages, how in ways(served, uv.exists()):
            if not harness.wants(name):
                continue
            if packages not in bases:
                bases[packages], problems = debian(directory, f"debian-{len(bases)}", packages, shared)
                harness.check(f"a Debian with {', '.join(packages)}", problems)
                shutil.copy(PACKAGING / "install.sh", bases[packages] / "mnt")
                if uv.exists():
                    shutil.copy(uv, bases[packages] / "mnt")
            with Root(bases[packages], directory / f"way-{name}", address) as root:
                harness.check(name, life(root, **how))
    harness.end()


main()
