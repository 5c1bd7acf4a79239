"""The Debian and RPM packages, each installed into an empty root file system, run and removed by its package manager."""

import gzip
import os
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import needs
import pytest
from releases import PACKAGING, REPOSITORY, expect, files_below, older_packaging, ran, succeeds

pytestmark = [pytest.mark.slow, pytest.mark.needs("root"), pytest.mark.duration(120)]
# The program that writes each kind of package.
WRITERS = {"deb": "dpkg-deb", "rpm": "rpmbuild"}


@pytest.fixture(scope="module")
def tree(binaries, shared):
    """The files of the packages."""
    succeeds(PACKAGING / "stage", binaries, shared / "tree")
    return shared / "tree"


@pytest.fixture(scope="module")
def older(tree, shared):
    """The packaging scripts of the version before, and its files."""
    shutil.copytree(tree, shared / "old-tree")
    (shared / "old-tree/share/doc/jobc/old").write_text("only in the version before\n")
    return older_packaging(shared / "older"), shared / "old-tree"


def written(packaging, tree, out, kind):
    """Writes a package and returns its path."""
    needs.tool(WRITERS[kind])
    succeeds(packaging / "linux", tree, out, "--only", kind, "--fast")
    path, = out.glob(f"*.{kind}")
    return path


@pytest.fixture(scope="module")
def packages(tree, older, shared):
    """The package of a kind, which is written once, and that of the version before."""
    found = {}

    def package(kind):
        if kind not in found:
            found[kind] = SimpleNamespace(new=written(PACKAGING, tree, shared / f"{kind}-new", kind), old=written(*older, shared / f"{kind}-old", kind))
        return found[kind]

    return package


@pytest.mark.parametrize("kind", WRITERS)
def test_the_same_tree_gives_the_same_package(kind, packages, tree, directory):
    assert written(PACKAGING, tree, directory, kind).read_bytes() == packages(kind).new.read_bytes()


def complete(root):
    """The installed program checks a job; its files are those of the tree, with compressed manual pages."""
    succeeds(root / "usr/bin/jobc", "check", REPOSITORY / "examples/hello-cpu/job.yaml")
    schema = root / "usr/share/jobc/schemas/job.v1.schema.json"
    expect(ran([root / "usr/bin/jobc", "schema", "--path"]), 0, f"{schema}\n")
    page = root / "usr/share/man/man1/jobc-check.1.gz"
    assert b".TH jobc-check 1" in gzip.decompress(page.read_bytes())
    for name in ("bash-completion/completions/jobc", "zsh/site-functions/_jobc", "fish/vendor_completions.d/jobc.fish",
                 "nvim/site/pack/jobc/opt/jobc/plugin/jobc.lua",
                 "doc/jobc/completions/jobc.elv", "doc/jobc/user-namespaces.md", "doc/jobc/LICENSE-MIT"):
        assert (root / "usr/share" / name).exists(), name
    for path in root.rglob("usr/**/*"):
        assert path.stat().st_uid == 0 and not path.stat().st_mode & 0o022, path


def upgrade(root, installed, *upgrading):
    """An upgrade replaces the version before, with a file that only that one has."""
    old = root / "usr/share/doc/jobc/old"
    expect(installed(), 0, "0.0.1")
    assert old.exists()
    succeeds(*upgrading)
    assert "0.0.1" not in installed().stdout and not old.exists()


def test_dpkg_installs_upgrades_and_purges_the_package(packages, directory):
    package = packages("deb")
    for name in ("updates", "info", "parts"):
        (directory / "var/lib/dpkg" / name).mkdir(parents=True)
    for name in ("status", "available"):
        (directory / "var/lib/dpkg" / name).touch()
    command = ["dpkg", f"--root={directory}", "--force-depends", "--log=/dev/null"]
    succeeds(*command, "--install", package.old)
    query = ["dpkg-query", f"--admindir={directory}/var/lib/dpkg", "--show", "jobc"]
    upgrade(directory, lambda: ran(query), *command, "--install", package.new)
    complete(directory)
    succeeds(*command, "--purge", "jobc")
    assert not (directory / "usr").exists()


def fields(package):
    """The fields of a Debian package."""
    return dict(line.split(": ", 1) for line in succeeds("dpkg-deb", "--field", package).stdout.splitlines() if ": " in line)


def names(text):
    """The packages of a relation, with the least version of each."""
    return {found[1]: found[2] for found in re.finditer(r"([a-z0-9.+-]+)(?: \(>= ([^)]+)\))?", text)}


@pytest.mark.needs("dpkg-shlibdeps")
def test_the_deb_depends_on_what_dpkg_shlibdeps_finds(packages, tree, directory):
    (directory / "debian").mkdir()
    (directory / "debian/control").write_text("Source: jobc\n\nPackage: jobc\nArchitecture: any\n")
    found = expect(ran(["dpkg-shlibdeps", "-O", *sorted((tree / "bin").iterdir())], cwd=directory), 0, "shlibs:Depends=")
    depends, needed = names(fields(packages("deb").new).get("Depends", "")), names(found.stdout.split("shlibs:Depends=")[-1])
    assert set(needed) == set(depends)
    for name, version in needed.items():
        if depends[name]:
            succeeds("dpkg", "--compare-versions", depends[name], "ge", version)


@pytest.mark.needs("apt-get")
def test_apt_knows_the_packages_that_the_deb_recommends_and_suggests(packages):
    package = packages("deb").new
    expect(ran(["apt-get", "--simulate", "-o", "Debug::NoLocking=1", "install", package]), 0, "Inst jobc")
    for name in names("{Recommends}, {Suggests}".format(**fields(package))):
        expect(ran(["apt-cache", "show", name]), 0, f"Package: {name}")


@pytest.mark.needs("apt-get", "debootstrap")
def test_apt_installs_the_deb_on_a_minimal_debian_with_what_it_needs_and_removes_all_of_it(packages, directory):
    root = directory / "debian-root"
    succeeds("debootstrap", "--variant=minbase", "bookworm", root, timeout=1200)
    # Without these, apt starts services and asks questions; the proxy is that of this host.
    (root / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")
    (root / "usr/sbin/policy-rc.d").chmod(0o755)
    for name in ("resolv.conf", "apt/apt.conf.d", "apt/sources.list", "apt/sources.list.d"):
        if (source := Path("/etc") / name).is_dir():
            shutil.copytree(source, root / "etc" / name, dirs_exist_ok=True)
        elif source.exists():
            shutil.copyfile(source, root / "etc" / name)
    shutil.copyfile(packages("deb").new, root / "jobc.deb")
    (root / "job.yaml").write_text((REPOSITORY / "examples/hello-cpu/job.yaml").read_text())

    def inside(*command):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8", "HOME": "/root", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
        return ran(["chroot", root, *command], env=environment)

    def installed():
        return set(inside("dpkg-query", "--show").stdout.splitlines())

    expect(inside("apt-get", "update", "-qq"))
    before = installed()
    expect(inside("apt-get", "install", "-qq", "--yes", "/jobc.deb"))
    assert {"uidmap", "passt", "ca-certificates", "jobc"} <= {line.split("\t")[0] for line in installed()}
    expect(inside("jobc", "check", "/job.yaml"))
    expect(inside("jobc-oci", "--version"), 0, "version")
    # apt itself recommends ca-certificates, and would keep it.
    keep = [word for kind in ("Recommends", "Suggests") for word in ("-o", f"APT::AutoRemove::{kind}Important=false")]
    expect(inside("apt-get", "purge", "-qq", "--yes", "--auto-remove", *keep, "jobc"))
    assert installed() == before
    assert [path.name for path in root.rglob("*jobc*")] == ["jobc.deb"]


@pytest.mark.needs("rpm")
def test_the_rpm_requires_the_libraries_that_rpmbuild_found_and_recommends_the_rest(packages):
    for kind, expected in (("requires", ("libc.so.6",)), ("recommends", ("shadow-utils", "(passt or slirp4netns)", "ca-certificates")),
                           ("suggests", ("git-core", "openssh", "strace"))):
        found = ran(["rpm", "--query", "--package", f"--{kind}", "--nosignature", packages("rpm").new])
        for name in expected:
            expect(found, 0, name)


@pytest.mark.needs("rpm")
def test_rpm_installs_upgrades_and_erases_the_package(packages, directory):
    package, command = packages("rpm"), ["rpm", f"--root={directory}", "--nodeps", "--nosignature"]
    succeeds(*command, "--install", package.old)
    upgrade(directory, lambda: ran(["rpm", f"--root={directory}", "--query", "jobc"]), *command, "--upgrade", package.new)
    complete(directory)
    succeeds(*command, "--erase", "jobc")
    assert not [name for name in files_below(directory / "usr") if "jobc" in name]
