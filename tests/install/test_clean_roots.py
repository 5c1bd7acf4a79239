"""Each way to install, in a Debian with only its essential packages and what the way needs, run by jobc's own runtime: the version before is
installed, upgraded, runs the README's first job (all its commands where there is Python), and is removed. Nothing is left.

Packages come from a server on loopback, whose network the containers share. debootstrap gets Debian from its mirror.
"""

import filecmp
import os
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import needs
import pytest
from bundle import configuration, write
from first_hour import blocks, same
from releases import PACKAGING, expect, older_packaging, ran, server, succeeds

pytestmark = [pytest.mark.slow, pytest.mark.needs("root", "debootstrap", "dpkg-deb", "rpmbuild"), pytest.mark.duration(300)]
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

    def __init__(self, program, base, directory, address):
        self.program, self.base, self.upper, self.bundle = program, base, directory / "upper", directory / "bundle"
        self.states, self.address, self.containers = directory / "states", address, 0
        for path in (self.upper, directory / "work", self.bundle / "rootfs", self.states):
            path.mkdir(parents=True)
        self.mount = ["mount", "-t", "overlay", "overlay", "-o", f"lowerdir={base},upperdir={self.upper},workdir={directory / 'work'}",
                      self.bundle / "rootfs"]

    def __enter__(self):
        succeeds(*self.mount)
        return self

    def __exit__(self, *_):
        succeeds("umount", self.bundle / "rootfs")

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
        return ran([self.program, "--root", self.states, "run", "--bundle", self.bundle, f"clean-{os.getpid()}-{self.containers}"])

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


@pytest.fixture(scope="module")
def served(binaries, shared):
    """What the server serves: two versions of the archive, the wheel, the Debian and the RPM package. `new` is the newer one."""
    served, tree = shared / "served", shared / "tree"
    index, new = served / "simple/jobc", ran([PACKAGING / "version"]).stdout.strip()
    succeeds(PACKAGING / "stage", binaries, tree)
    for packaging, version in ((older_packaging(shared / "older"), OLD), (PACKAGING, new)):
        release = served / f"download/v{version}"
        succeeds(packaging / "archive", tree, release)
        succeeds(packaging / "archive", "--sums", release)
        succeeds(packaging / "linux", tree, served / version, "--fast")
        succeeds(packaging / "wheel", binaries, index)
    # pipx wants the newest of these, whatever it installs.
    for name in ("pip", "setuptools", "wheel"):
        succeeds(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", served / "simple" / name, name)
    (served / "latest/download").mkdir(parents=True)
    shutil.copy(served / f"download/v{new}/SHA256SUMS", served / "latest/download")
    for project in index.parent.iterdir():
        wheels = "".join(f'<a href="{path.name}">{path.name}</a>' for path in sorted(project.glob("*.whl")))
        (project / "index.html").write_text(f"<!DOCTYPE html><html><body>{wheels}</body></html>")
    with server(served) as address:
        yield SimpleNamespace(directory=served, address=address, new=new)


@pytest.fixture(scope="module")
def debian(shared):
    """A Debian with its essential packages and some more, and an unprivileged user; it is made once."""
    made, cache = {}, shared / "packages"
    cache.mkdir()

    def debian(*packages):
        if packages not in made:
            root = shared / f"debian-{len(made)}"
            succeeds("debootstrap", "--variant=minbase", f"--include={','.join(packages)}", f"--cache-dir={cache}", "bookworm", root, timeout=1200)
            for path, line in (("passwd", f"ann:x:{USER}:{USER}::{HOME}:/bin/sh"), ("group", f"ann:x:{USER}:")):
                with (root / "etc" / path).open("a") as file:
                    file.write(f"{line}\n")
            (root / HOME[1:]).mkdir()
            os.chown(root / HOME[1:], USER, USER)
            for program in (PACKAGING / "install.sh", shutil.which("uv", path=Path(sys.executable).parent)):
                if program:
                    shutil.copy(program, root / "mnt")
            made[packages] = root
        return made[packages]

    return debian


@pytest.fixture
def life(binaries, served, debian, directory):
    """Installs the version before in a Debian with some packages, upgrades it, runs the first job, and removes all of it.

    `version` prints which package is installed: the program in both is the same. `whole` runs all commands of the README's section.
    """
    def life(*packages, old, new, remove, user=USER, whole=False, version="jobc --version", place=()):
        with Root(binaries / "jobc-oci", debian(*packages), directory, served.address) as root:
            expect(root.run(old, user))
            expect(root.run(version, user), 0, OLD)
            expect(root.run(new, user))
            assert OLD not in expect(root.run(version, user), 0, "0.").stdout
            commands, screen = blocks()
            expect(root.run(commands[0]), 0, "it runs")
            if whole:
                assert set(same(screen)) <= set(same(expect(root.run("\n".join(commands[1:]))).stdout))
            else:
                expect(root.run(f"{commands[1]} && {commands[2]}"))
            expect(root.run(remove, user))
            assert root.run("command -v jobc || command -v jobc-oci || command -v jobc-nvml").returncode
            expect(root.run(KEPT))
            assert not list(root.left(*place))

    return life


def test_the_script(life):
    script = "sh /mnt/install.sh"
    life("curl", old=f"{script} --version {OLD} | tee /tmp/version", new=f"{script} | tee /tmp/version", remove=f"{script} --remove; rm /tmp/version",
         version="cat /tmp/version; jobc --version >/dev/null")


def test_pip(life):
    life("python3-venv", whole=True,
         old=f"python3 -m venv ~/.venv && ~/.venv/bin/pip install --quiet jobc=={OLD} && mkdir -p ~/.local/bin && ln -s ~/.venv/bin/jobc ~/.local/bin",
         new="~/.venv/bin/pip install --quiet --upgrade jobc", version="~/.venv/bin/pip list; jobc --version >/dev/null",
         remove="~/.venv/bin/pip uninstall --quiet --yes jobc; ! find ~/.venv -name '*jobc*' | grep . ; rm -r ~/.venv ~/.local/bin/jobc")


def test_pipx(life):
    life("python3-venv", "pipx", whole=True, old=f"pipx install jobc=={OLD}", new="pipx upgrade jobc", version="pipx list; jobc --version >/dev/null",
         remove="pipx uninstall jobc; rm -rf ~/.local/pipx ~/.cache/pip")


def test_uv(life):
    needs.tool("uv")
    life("python3-venv", whole=True, old=f"/mnt/uv tool install --quiet jobc=={OLD}", new="/mnt/uv tool install --quiet --upgrade jobc@latest",
         version="/mnt/uv tool list; jobc --version >/dev/null", remove="/mnt/uv tool uninstall --quiet jobc; rm -rf ~/.local/share/uv ~/.cache/uv")


def download(served, version, kind):
    """A script that downloads a package to /tmp, and the name of the package."""
    path, = (served.directory / version).glob(f"*.{kind}")
    return f"cd /tmp && curl --silent --show-error --fail --remote-name-all $JOBC_DOWNLOAD/{version}/{path.name}", path.name


def test_dpkg(life, served):
    old, new = (" && dpkg --install ".join(download(served, version, "deb")) for version in (OLD, served.new))
    life("curl", old=old, new=new, version="dpkg-query --show --showformat '${Version}' jobc; jobc --version >/dev/null",
         remove="dpkg --purge jobc; rm /tmp/*.deb", user=0, place=("var/lib/dpkg", "var/log", "var/cache"))


def test_rpm(life, served):
    rpm = "rpm --nodeps --nosignature"
    old, new = (f" && {rpm} {option} ".join(download(served, version, "rpm")) for version, option in ((OLD, "--install"), (served.new, "--upgrade")))
    life("curl", "rpm", old=old, new=new, version="rpm --query jobc; jobc --version >/dev/null", remove=f"{rpm} --erase jobc; rm /tmp/*.rpm", user=0,
         place=("var/lib/rpm", "root/.rpmdb"))
